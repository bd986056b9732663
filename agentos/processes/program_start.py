"""How a program is found and started: what is given to it, and nothing else."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from agentos.base.quoting import quoted
from agentos.errors import AgentOSError

SAFE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
"""Where programs are looked for, whatever the environment says."""

_ARGUMENT_LIMIT = 131_071  # Linux takes no longer one
_WORD_LIMIT = 100_000


class ProcessError(AgentOSError, ValueError):
    """A process that can't be started."""


def find_program(name: str, path: str = SAFE_PATH) -> str | None:
    """Return where the program *name* is, in the folders of *path*; None if it is not there.

    Only absolute folders count, so what is found does not depend on where one is.
    """
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        return None
    candidates = (os.path.join(folder, name) for folder in path.split(":") if folder.startswith("/"))  # noqa: PTH118
    return next((found for found in candidates if _is_program(found)), None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


@attrs.frozen
class Start:
    """What is started: checked, but not yet with its limits."""

    program: str
    arguments: tuple[str, ...] = attrs.field(repr=False)
    environment: Mapping[str, str] = attrs.field(repr=False)
    folder: str | None = attrs.field(repr=False)


def read_start(argv: Sequence[str], cwd: str | os.PathLike[str] | int | None, env: Mapping[str, str] | None) -> Start:
    """Check what a caller wants to start."""
    words = _checked_argv(argv)
    environment = {"PATH": SAFE_PATH, **_environment(env or {})}
    return Start(_program(words[0], environment["PATH"]), tuple(words[1:]), environment, _folder(cwd))


def _checked_argv(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str | bytes) or not isinstance(argv, Sequence):
        raise ProcessError("argv: expected a list of texts, the program first; no shell takes a line apart here")
    if not argv or not argv[0]:
        raise ProcessError("argv: is empty; expected a program and its arguments")
    if len(argv) > _WORD_LIMIT:
        raise ProcessError(f"argv: has more than {_WORD_LIMIT:,} words; give them as stdin, or in a file")
    for index, word in enumerate(argv):
        _check_text(word, f"argv[{index}]")
    return list(argv)


def _check_text(text: object, place: str) -> None:
    if not isinstance(text, str):
        raise ProcessError(f"{place}: expected text, got {type(text).__name__}")
    if "\0" in text:
        raise ProcessError(f"{place}: has a NUL character in it")
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError:
        size = -1
    if size < 0:
        raise ProcessError(f"{place}: has half of a surrogate pair in it")
    if size > _ARGUMENT_LIMIT:
        raise ProcessError(f"{place}: has more than {_ARGUMENT_LIMIT:,} bytes; give it as stdin, or in a file")


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        _check_text(name, "env")
        _check_text(value, f"env[{quoted(name)}]")
        if not name or "=" in name:
            raise ProcessError(f"env: {quoted(name)} is no name of a variable")
    return dict(env)


def _program(word: str, path: str) -> str:
    if "/" not in word:
        found = find_program(word, path)
        if found is None:
            raise ProcessError(f"argv[0]: there is no program {quoted(word)}; install it, or give its whole path")
        return found
    if not word.startswith("/"):
        raise ProcessError(f"argv[0]: {quoted(word)} depends on the folder; give a plain name or a whole path")
    if not _is_program(word):
        raise ProcessError(f"argv[0]: {quoted(Path(word).name)} is no program that may be run")
    return word


def _folder(cwd: str | os.PathLike[str] | int | None) -> str | None:
    if cwd is None:
        return None
    if isinstance(cwd, int):
        return f"/proc/self/fd/{cwd}"
    folder = os.fspath(cwd)
    _check_text(folder, "cwd")
    if not os.path.isdir(folder):  # noqa: PTH112
        raise ProcessError("cwd: is not a folder that exists")
    return folder


def spawn(start: Start, bounds: Mapping[str, tuple[int, int]], *, has_input: bool) -> "subprocess.Popen[bytes]":
    """Start it, as the leader of a session and a group of its own, within *bounds*."""
    try:
        return subprocess.Popen(  # noqa: S603 - this is what the module is for; the caller's policy says which
            bounded(start, bounds) if bounds else [start.program, *start.arguments],
            bufsize=0,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=start.folder,
            env=start.environment,
            start_new_session=True,
        )
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "unknown"
    raise ProcessError(f"{quoted(Path(start.program).name)} can't be started: {why}")


# -- limits ------------------------------------------------------------------------------------------------------
# They must hold from the first instruction on, and Python code between fork and exec can hang in a program with
# threads. So a program that does nothing else sets them on itself and then becomes the one that was asked for.

PRLIMIT = find_program("prlimit")
FAILED = b"prlimit: failed to execute "

_LAUNCHER = """
import _signal, posix, resource, sys
bounds, locale, program = sys.argv[1:4]
for bound in bounds.split():
    name, soft, hard = bound.split(":")
    resource.setrlimit(getattr(resource, "RLIMIT_" + name), (int(soft), int(hard)))
for name in ("SIGPIPE", "SIGXFSZ", "SIGXFZ"):
    if hasattr(_signal, name):
        _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
environment = {name: value for name, value in posix.environ.items() if name != b"LC_CTYPE"}
if locale:
    environment[b"LC_CTYPE"] = locale[1:].encode()
try:
    posix.execve(program, sys.argv[3:], environment)
except OSError as error:
    posix.write(2, b"prlimit: failed to execute " + program.encode() + b": " + str(error.args[1]).encode())
posix._exit(126)
"""


def bounded(start: Start, bounds: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return what is started instead, so that *bounds* hold: by util-linux, else by Python, which takes 10 ms more."""
    if PRLIMIT is not None:
        flags = [f"--{name.lower()}={soft}:{hard}" for name, (soft, hard) in bounds.items()]
        return [PRLIMIT, *flags, "--", start.program, *start.arguments]
    listed = " ".join(f"{name}:{soft}:{hard}" for name, (soft, hard) in bounds.items())
    said = start.environment.get("LC_CTYPE")  # Python sets it for itself where the locale is C
    locale = "" if said is None else f"={said}"
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, listed, locale, start.program, *start.arguments]
