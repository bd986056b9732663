"""Files written beneath a folder of our own, from its descriptor on: no link takes part, and none is waited for.

What is written here is not forced to the disk file by file, which would take a hundredth of a second for each. It is
put in place by renaming, so a program that ends halfway leaves nothing; a machine that loses its power may.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator

from agentos_pack_archive._limits import ArchiveError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_folders(top: int, parts: Iterable[str]) -> None:
    """Make folders, each within the one before."""
    with _telling(), _inside(top, parts):
        pass


def write_file(top: int, parts: list[str], chunks: Iterable[bytes]) -> None:
    """Write a new file, and the folders above it."""
    with (
        _telling(),
        _inside(top, parts[:-1]) as folder,
        os.fdopen(os.open(parts[-1], _FILE, 0o644, dir_fd=folder), "wb") as file,
    ):
        file.writelines(chunks)


@contextlib.contextmanager
def _inside(top: int, parts: Iterable[str]) -> Iterator[int]:
    fd = os.dup(top)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=fd)
            inner = os.open(part, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        words = os.strerror(error.errno or 0)
    else:
        return
    raise ArchiveError(f"a member can't be written: {words}")
