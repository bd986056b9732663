"""Which hosts still run, told by the operating system and not by clocks.

A host that has a store open holds a lock that ends with its process, however the process ends: on a file of its own
beside a SQLite database, or in a session of its own with PostgreSQL. Whoever wants to know tries that lock.
"""

import contextlib
import os
import re
import sys
import weakref
from pathlib import Path
from typing import Any, Protocol

from agentos.base.full_disks import is_full, reason, way_out
from agentos.errors import StoreError

_INSTANCE = re.compile(r"[0-9a-f]{32}")


class Held(Protocol):
    """What shows that a host runs, and would go on to in a process that it forks."""

    def leave_to_parent(self) -> None:
        """Give up a forked process's share of it."""
        ...


HELD: "weakref.WeakSet[Held]" = weakref.WeakSet()
"""What would outlive this process in one that it forked."""


class Presence(Protocol):
    """That a host runs, for others to see; and a look at the others."""

    async def renew(self) -> None:
        """See that our lock is held, at first and whenever it may have been lost."""
        ...

    async def is_alive(self, instance: str) -> bool:
        """Tell whether the host *instance*, which is not ours, holds its lock."""
        ...

    async def release(self) -> None:
        """Let our lock go."""
        ...


class AlonePresence:
    """A store in memory has one host."""

    async def renew(self) -> None:
        """Hold nothing."""

    async def is_alive(self, instance: str) -> bool:  # noqa: ARG002 - the signature is the contract
        """Know of nobody else."""
        return False

    async def release(self) -> None:
        """Let nothing go."""


class FilePresence:
    """A locked file of our own in a folder beside the database."""

    def __init__(self, folder: Path, instance: str) -> None:
        self._folder = folder
        self._file = folder / instance
        self._lock: _FileLock | None = None

    async def renew(self) -> None:
        """Lock our file; lock a new one if somebody removed it."""
        try:
            if self._lock is None or not self._lock.is_of(self._file):
                self._hold()
        except OSError as error:
            way = way_out(error, "See that this user may write that folder")
            raise StoreError(
                f"the store can't show that this host runs, at {self._file}: {reason(error)}. {way}",
                unavailable=True,
                full_disk=is_full(error),
            ) from None

    def _hold(self) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if self._lock is None:
            self._sweep()
        lock = _FileLock.exclusive(self._file)
        while not lock.is_of(self._file):  # another host swept it before it was locked
            lock.release()
            lock = _FileLock.exclusive(self._file)
        self._lock = lock

    def _sweep(self) -> None:
        """Remove the files of hosts that are gone."""
        for file in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if _INSTANCE.fullmatch(file.name) and not _is_locked(file):
                    file.unlink()

    async def is_alive(self, instance: str) -> bool:
        """Try the lock of that host's file."""
        if not _INSTANCE.fullmatch(instance):
            return False
        try:
            return _is_locked(self._folder / instance)
        except OSError as error:
            raise StoreError(
                f"whether the host {instance} runs can't be told, at {self._folder}: {error.strerror}. "
                "See that all who share the store run as one user"
            ) from None

    async def release(self) -> None:
        """Remove our file and let its lock go."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()
            self._lock.release()
            self._lock = None


class _FileLock:
    """A locked file that is open. Dropped, it is closed; the kernel does the same for a process that is killed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.release = weakref.finalize(self, os.close, descriptor)
        HELD.add(self)

    @classmethod
    def exclusive(cls, file: Path) -> "_FileLock":
        """Make *file* and lock it. Only those who just try its lock can stand in the way, for a moment."""
        lock = cls(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        _take(lock._descriptor)
        return lock

    def leave_to_parent(self) -> None:
        """Close a forked process's share of the lock."""
        self.release()

    def is_of(self, file: Path) -> bool:
        """Tell whether *file* is still the file that is locked."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), file.stat())
        except FileNotFoundError:
            return False


def _is_locked(file: Path) -> bool:
    """Tell whether a process holds the lock of *file*."""
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _is_free(descriptor)
    finally:
        os.close(descriptor)


if sys.platform == "win32":  # pragma: no cover - another platform's way
    import msvcrt

    def _take(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)

    def _is_free(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        return True

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _is_free(descriptor: int) -> bool:
        try:  # shared: two that look at once do not take each other for the host
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def close_share(session: Any) -> None:
    """Close a forked process's share of a connection; its number stays taken, so that nothing else gets it."""
    with contextlib.suppress(Exception), open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        os.dup2(nothing.fileno(), session.fileno(), inheritable=False)


def leave_to_parent() -> None:
    """Let a process that was forked hold nothing of its parent's: it must not make a parent that died look alive."""
    for one in list(HELD):
        one.leave_to_parent()


if hasattr(os, "register_at_fork"):  # pragma: no branch - not on every platform
    os.register_at_fork(after_in_child=leave_to_parent)
