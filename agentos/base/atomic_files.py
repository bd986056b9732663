"""Files that are written whole or not at all, whatever happens in the middle.

    replace_file   put bytes in the place of a file, or make it
    replacing      the same for what is written piece by piece
    make_file      make a file that must not be there yet
    locked         hold off others who change the same files

What is half written stands under another name beside the file, and is cleared away by whatever ends the block.
"""

import contextlib
import errno
import os
import secrets
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PRIVATE = 0o600
_AS_USUAL = 0o666
"""Less what the user's umask takes away."""


class FileChangedError(Exception):
    """Somebody else changed a file that was about to be written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was changed by somebody else just now; nothing was written, try again")


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold off other processes that change the same files, by a lock on *file*, where the platform can."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - another platform
        yield
        return
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, expected: bytes | None = None, private: bool = False) -> None:
    """Put *data* in the place of a file, at once; its mode and owner stay, and a link to it stays a link.

    *expected* is what was read before: a file that somebody else changed meanwhile is left as it is. A *private* file
    is for its owner alone, whatever it was before.
    """
    with replacing(path, expected=expected, private=private) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, expected: bytes | None = None, private: bool = False) -> Iterator[IO[bytes]]:
    """Give a file to write that takes the place of *path* when the block ends well; like `replace_file` else."""
    path = Path(os.path.realpath(path))
    is_there = _is_file(path)
    with _draft(path) as draft:
        with _written(draft, _PRIVATE if private or is_there else _AS_USUAL) as file:
            yield file
        if is_there and not private:
            _take_after(draft, path)
        if expected is not None and path.read_bytes() != expected:
            raise FileChangedError(path)
        draft.replace(path)
    sync_folder(path.parent)


def make_file(path: Path, data: bytes, *, private: bool = False) -> None:
    """Make a file that is not there yet, for its owner alone if *private*; raise FileExistsError if it is there."""
    with _draft(path) as draft:
        write_file(draft, data, mode=_PRIVATE if private else _AS_USUAL)
        _rename_if_free(draft, path)
    sync_folder(path.parent)


def write_file(path: Path, data: bytes, *, mode: int = _AS_USUAL) -> None:
    """Write a new file to the disk, where nobody looks for it yet."""
    with _written(path, mode) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """See that a new name in *folder* survives a power loss, where folders can be opened."""
    if os.name != "posix":  # pragma: no cover - elsewhere the file system sees to it
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals wait while something is cleared away, where they can be made to."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover - elsewhere there are no such masks
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def draft_of(path: Path) -> Path:
    """Return a name beside *path* that nobody else uses."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def _is_file(path: Path) -> bool:
    """Tell whether there is a file to be replaced; a device or a folder is not to be."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return True


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Give the name of a file beside *path*, and clear it away unless it was moved. What fails, fails for *path*."""
    draft = draft_of(path)
    try:
        yield draft
    except OSError as error:
        if error.filename in (None, str(draft)):
            error.filename = str(path)
        raise
    finally:
        with undisturbed(), contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def _written(path: Path, mode: int) -> Iterator[IO[bytes]]:
    """Give a new file to write; at the end of the block it is on the disk. It never has more than *mode*."""
    path.touch(mode, exist_ok=False)
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _take_after(draft: Path, path: Path) -> None:
    before, now = path.stat(), draft.stat()
    chown: Callable[..., None] | None = getattr(os, "chown", None)
    if chown is not None and (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        with contextlib.suppress(OSError):  # only root may give files away
            chown(draft, before.st_uid, before.st_gid)
    draft.chmod(stat.S_IMODE(before.st_mode))


def _rename_if_free(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: look first
        if path.exists():
            raise FileExistsError(errno.EEXIST, "is there already", str(path)) from None
        draft.rename(path)
