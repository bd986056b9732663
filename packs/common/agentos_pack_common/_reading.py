"""Reading a file: only a regular one, and only so much of it."""

import contextlib
import io
import itertools
import os
import stat
from collections.abc import Generator

from agentos_pack_common._hidden import Hidden
from agentos_pack_common._names import PathError, telling
from agentos_pack_common._walks import READABLE_FOLDER, Walk

_FILE = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_ENTRIES = 20_000


class _Window(io.RawIOBase):
    """The first bytes of a file. To whoever reads it, that is all there is; its descriptor, which has more, stays."""

    def __init__(self, fd: int, limit: int) -> None:
        self._file = io.FileIO(fd, "rb")
        self._limit = limit

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: "bytearray | memoryview") -> int | None:  # type: ignore[override]
        room = max(0, self._limit - self._file.tell())
        return self._file.readinto(memoryview(buffer)[:room])

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            offset, whence = offset + min(self.size(), self._limit), os.SEEK_SET
        return self._file.seek(offset, whence)

    def size(self) -> int:
        """Return how large the whole file is."""
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()
        super().close()


class BoundedReader(io.BufferedReader):
    """A file that was opened for reading; it ends after *max_bytes*, and `truncated` tells if there is more."""

    def __init__(self, fd: int, max_bytes: int) -> None:
        self._window = _Window(fd, max_bytes)
        self.max_bytes = max_bytes
        super().__init__(self._window)

    @property
    def size(self) -> int:
        """Return how large the whole file is."""
        return self._window.size()

    @property
    def truncated(self) -> bool:
        """Tell whether the file has more than can be read here."""
        return self.size > self.max_bytes


def open_bounded(walk: Walk, hidden: Hidden, max_bytes: int) -> BoundedReader:
    """Open the regular file that *walk* arrived at."""
    if max_bytes < 0:
        raise ValueError("max_bytes: expected at least 0")
    check_regular(walk.kind, walk.label)
    with telling(walk.label):
        fd = os.open(walk.name, _FILE, dir_fd=walk.fd)
    try:
        info = os.fstat(fd)
        check_regular(stat.S_IFMT(info.st_mode), walk.label)  # once more: it may have been replaced
        if info.st_nlink > 1 and is_twin_of_hidden(walk, hidden, info):
            raise PathError("hidden", walk.label, "is hidden: it is another name of a file that is")
        return BoundedReader(fd, max_bytes)
    except BaseException:
        os.close(fd)
        raise


def check_regular(kind: int, path: str) -> None:
    """Refuse what is no plain file: to open a pipe or a device may wait for ever, or do something."""
    if kind == 0:
        raise PathError("missing", path, "does not exist; list the folder to see what does")
    if kind == stat.S_IFDIR:
        raise PathError("not_a_file", path, "is a folder")
    if kind != stat.S_IFREG:
        raise PathError("not_a_file", path, "is not a regular file")


# -- hard links --------------------------------------------------------------------------------------------------


def is_twin_of_hidden(walk: Walk, hidden: Hidden, info: os.stat_result) -> bool:
    """Tell whether a file with several names has a hidden one: in its folder, in one above, or one deep in those.

    To look everywhere would take too long, and would still not see names outside of the root.
    """
    with contextlib.suppress(OSError), contextlib.closing(_hidden_around(walk, hidden)) as around:
        for found in itertools.islice(around, _ENTRIES):
            if (found.st_dev, found.st_ino) == (info.st_dev, info.st_ino):
                return True
    return False


def _hidden_around(walk: Walk, hidden: Hidden) -> Generator[os.stat_result, None, None]:
    with contextlib.closing(walk.folders()) as folders:
        for names, fd in folders:
            for name in _names_in(fd):
                if hidden.hides([*names, name]):
                    yield from _with_inner(name, fd)


def _with_inner(name: str, fd: int) -> Generator[os.stat_result, None, None]:
    """Yield what *name* is, and what is in it if it is a folder."""
    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    yield info
    if stat.S_ISDIR(info.st_mode):
        inner = os.open(name, READABLE_FOLDER, dir_fd=fd)
        try:
            yield from (os.stat(each, dir_fd=inner, follow_symlinks=False) for each in _names_in(inner))
        finally:
            os.close(inner)


def _names_in(fd: int) -> list[str]:
    with os.scandir(fd) as entries:
        return [entry.name for entry in itertools.islice(entries, _ENTRIES)]
