"""Confinement of a worker by the Linux kernel: no network, and nothing written outside of some folders.

This is hardening and not a boundary: it keeps a pack that goes wrong from reaching far. It does not keep a hostile one
from reading what the host's user may read, from changing the mode or owner of what is there, or from using a hole in
the kernel. A process confines itself, without rights of its own and without another program, and all that it starts
inherits it: writing by Landlock, the network by a seccomp filter that refuses to make a socket of any kind (Landlock
knows TCP alone). Pairs of sockets without an address can be made; the event loop needs one.

Imports the standard library alone: it runs before the paths of the pack are known.
"""

import ctypes
import functools
import os
import platform
import struct
import sys
from collections.abc import Iterable

_PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 21, 22, 38
_SECCOMP_MODE_FILTER, _SECCOMP_GET_ACTION_AVAIL = 2, 2
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_TELL_VERSION, _LANDLOCK_PATH_BENEATH = 1, 1

_LEAST_LANDLOCK = 3
"""The first version that knows of truncating; Linux 6.2 has it."""
_SCOPES_SINCE = 6
_NO_ABSTRACT_SOCKETS_NOR_SIGNALS = 0b11
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_WRITE_BENEATH = _WRITE_FILE | _TRUNCATE | sum(1 << bit for bit in range(4, 14))
"""Writing, truncating, removing, making of every kind, and moving from folder to folder."""
_ALWAYS_WRITABLE = ("/dev/null",)

_MACHINES = {"x86_64": (0xC000003E, 41, 317), "aarch64": (0xC00000B7, 198, 277)}
"""Of each machine: its number for seccomp, and those of the calls `socket` and `seccomp`."""
_IO_URING_SETUP = 425
_X32 = 0x40000000
"""Calls from here on are another spelling of the same ones, on x86."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EPERM, _EACCES = 1, 13


class ConfinementError(Exception):
    """A process that can't be confined; the message says why."""


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _syscall(number: int, *arguments: "int | bytes | ctypes.Array[ctypes.c_char] | None") -> int:
    words = (ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)
    return int(_libc().syscall(ctypes.c_long(number), *words))


def _checked(what: str, result: int) -> int:
    if result < 0:
        raise ConfinementError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


# -- what the system has ----------------------------------------------------------------------------------------


def missing_for(*, network: bool, limits_writing: bool) -> str | None:
    """Say what this system lacks to refuse the network (unless *network*) or to limit writing; None if nothing."""
    if not sys.platform.startswith("linux"):
        return f"confinement needs Linux, and this is {sys.platform}"
    if limits_writing and (version := _landlock_version()) < _LEAST_LANDLOCK:
        found = "has none" if version < 1 else f"has {version}"
        return f"`write` needs Landlock {_LEAST_LANDLOCK} or later (Linux 6.2), and this kernel {found}"
    if not network and not _has_seccomp():
        return f"`network = false` needs seccomp filters on {' or '.join(_MACHINES)}, and this system has none"
    return None


def _landlock_version() -> int:
    return _syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_TELL_VERSION)


def _has_seccomp() -> bool:
    machine = _MACHINES.get(platform.machine())
    if machine is None or _libc().prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) < 0:
        return False
    return _syscall(machine[2], _SECCOMP_GET_ACTION_AVAIL, 0, struct.pack("=I", _REFUSE)) == 0


# -- confining this process -------------------------------------------------------------------------------------


def confine(*, network: bool, write: Iterable[str] | None) -> None:
    """Confine this process, its threads to come and all that it starts, for good.

    network: whether sockets may be made. write: the folders and files that may be written; None leaves all as it is.
    """
    write = None if write is None else tuple(write)
    if lack := missing_for(network=network, limits_writing=write is not None):
        raise ConfinementError(lack)
    _checked("no_new_privs", _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if write is not None:
        _limit_writing([*_ALWAYS_WRITABLE, *write])
    if not network:
        _refuse_sockets(*_MACHINES[platform.machine()][:2])


def _limit_writing(paths: Iterable[str]) -> None:
    scopes = _NO_ABSTRACT_SOCKETS_NOR_SIGNALS if _landlock_version() >= _SCOPES_SINCE else 0
    attributes = struct.pack("=QQQ", _WRITE_BENEATH, 0, scopes)
    ruleset = _checked("Landlock", _syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0))
    try:
        for path in paths:
            _allow_writing(ruleset, path)
        _checked("Landlock", _syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow_writing(ruleset: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise ConfinementError(f"{path} can't be made writable: {error.strerror}") from None
    try:
        rights = _WRITE_BENEATH if os.path.isdir(path) else _WRITE_FILE | _TRUNCATE  # noqa: PTH112 - pathlib costs 10 ms
        rule = struct.pack("=Qi", rights, descriptor)
        _checked(path, _syscall(_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _refuse_sockets(machine: int, socket: int) -> None:
    """Refuse `socket`, the rings that could make one too, and calls by the numbers of another machine."""
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    code = [
        (load, 0, 0, 4),  # which machine's numbers
        (equal, 0, 4, machine),
        (load, 0, 0, 0),  # which call
        (at_least, 2, 0, _X32),
        (equal, 2, 0, socket),
        (equal, 0, 2, _IO_URING_SETUP),
        (end, 0, 0, _REFUSE | _EPERM),
        (end, 0, 0, _REFUSE | _EACCES),
        (end, 0, 0, _ALLOW),
    ]
    packed = b"".join(struct.pack("=HBBI", *line) for line in code)
    program = _Program(len(code), packed)
    set_filter = _libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)
    _checked("seccomp", set_filter)
