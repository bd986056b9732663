"""The way to a path, from the root on, one folder at a time: the kernel never follows a link for us.

Each folder is opened from the one before it without following links, so it makes no difference what is renamed or
replaced by a link meanwhile: what is opened was beneath the root when it was. Links are read and followed here, from
the root again if they are absolute.
"""

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Self

from agentos_pack_common._hidden import Hidden
from agentos_pack_common._names import PathError, Written, check_new, is_text, split, telling

_LINKS = 40
_STEPS = 4_096
_ONLY_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = _ONLY_FOLDER | getattr(os, "O_PATH", os.O_RDONLY)
READABLE_FOLDER = _ONLY_FOLDER | os.O_RDONLY


def _kernel_devices() -> frozenset[int]:
    """Return the devices of the kernel's own file systems: what seems a file there is a view of processes."""
    found = set()
    for place in ("/proc", "/sys"):
        with contextlib.suppress(OSError):
            found.add(Path(place).stat().st_dev)
    return frozenset(found - {Path("/").stat().st_dev})


_KERNEL = _kernel_devices()


class Walk:
    """Goes to one path and holds the folder that it is in, until it is closed.

    Afterwards `fd` is that folder, `name` the last name in it (empty for the root itself), `info` what is there (None
    if nothing is), and `rest` what comes after a name that is missing. `parts` is where that really is: names from the
    root on, none of them a link; the last one may be, if links are not followed there. `label` is how it was asked for.
    """

    def __init__(self, folder: Path, hidden: Hidden, label: str) -> None:
        self._folder = folder
        self._hidden = hidden
        self.label = label
        self._names: list[str] = []
        self._left: deque[str] = deque()
        self._links = self._steps = 0
        self.must_be_folder = False
        self.fd = -1
        self.name = ""
        self.info: os.stat_result | None = None
        self.rest: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names from the root on."""
        return (*self._names, self.name, *self.rest) if self.name else ()

    @property
    def kind(self) -> int:
        """Return what is there as `stat` tells it; 0 if nothing is."""
        return 0 if self.info is None else stat.S_IFMT(self.info.st_mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._move(-1)

    def go(self, written: Written, *, follow: bool = True, make: bool = False, lenient: bool = False) -> Self:
        """Go to a path.

        follow: through a link at its end, too. make: folders that are missing on the way. lenient: stop at what is
        missing, and leave the rest.
        """
        self.must_be_folder = written.is_folder
        self._left.extend(written.parts)
        self._check_asked(written.parts)
        with telling(self.label):
            self._restart()
            while self._left:
                self._step(self._left.popleft(), follow=follow, make=make, lenient=lenient)
                if not self._left and not self.name:
                    self._go_in_by_name()
            self._arrive()
        return self

    def open_folder(self) -> int:
        """Open the folder that was arrived at, so that it can be listed."""
        if self.kind not in (stat.S_IFDIR, 0):
            raise PathError("not_a_folder", self.label, "is not a folder")
        with telling(self.label):
            return os.open(self.name or ".", READABLE_FOLDER, dir_fd=self.fd)

    def folders(self) -> Generator[tuple[list[str], int], None, None]:
        """Yield the names and the descriptor of each folder on the way, from the root on, to be listed at once."""
        fd = os.open(self._folder, READABLE_FOLDER)
        try:
            yield [], fd
            for count, name in enumerate(self._names, 1):
                outer, fd = fd, os.open(name, READABLE_FOLDER, dir_fd=fd)
                os.close(outer)
                yield self._names[:count], fd
        finally:
            os.close(fd)

    # -- one step ------------------------------------------------------------------------------------------------

    def _step(self, part: str, *, follow: bool, make: bool, lenient: bool) -> None:
        self._steps += 1
        if self._steps > _STEPS:
            raise PathError("bad", self.label, "leads through too many folders")
        if part == "..":
            self._go_up()
            return
        self._check_hidden(part)
        is_last = not self._left
        info = _look(part, self.fd)
        if info is not None and stat.S_ISLNK(info.st_mode) and (follow or not is_last):
            self._follow(part)
        elif is_last or (info is None and lenient):
            self.name, self.info = part, info
            self._leave()
        elif info is None and make:
            self._make(part)
        else:
            self._enter(part, info)

    def _check_asked(self, parts: tuple[str, ...]) -> None:
        """Refuse a path that is hidden by how it is written, wherever its links lead."""
        for count in range(1, len(parts) + 1):
            self._check_hidden(*parts[:count])

    def _check_hidden(self, *parts: str) -> None:
        if self._hidden.hides([*self._names, *parts]):
            raise PathError("hidden", self.label, "is hidden: such files hold secrets, or are run by other programs")

    def _enter(self, part: str, info: os.stat_result | None) -> None:
        if info is not None and not stat.S_ISDIR(info.st_mode):
            raise PathError("not_a_folder", self.label, "lies beneath something that is not a folder")
        try:
            self._move(os.open(part, _FOLDER, dir_fd=self.fd))
        except NotADirectoryError:  # it was one a moment ago: look again
            self._left.appendleft(part)
        else:
            self._names.append(part)

    def _make(self, part: str) -> None:
        check_new(part, [*self._names, part])
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=self.fd)
        self._left.appendleft(part)

    def _leave(self) -> None:
        """Leave the names that come after one that is missing."""
        while self._left:
            self.rest = (*self.rest, self._left.popleft())
            if self.rest[-1] == "..":
                raise PathError("missing", self.label, "goes back out of a folder that does not exist")
            self._check_hidden(self.name, *self.rest)

    def _follow(self, part: str) -> None:
        self._links += 1
        if self._links > _LINKS:
            raise PathError("bad", self.label, "leads through too many links, perhaps in circles")
        try:
            target = split(os.readlink(part, dir_fd=self.fd))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._left.appendleft(part)  # it was a link a moment ago: look again
            return
        if not all(map(is_text, target.parts)):
            raise PathError("bad", self.label, "is a link, or lies beneath one, whose end has a name that is not UTF-8")
        names: tuple[str, ...] | None = target.parts
        if target.is_absolute:
            names = beneath(self._folder, target.parts)
            self._restart()
        if names is None:
            raise PathError("outside", self.label, "is a link, or lies beneath one, that leaves the root folder")
        self.must_be_folder |= target.is_folder and not self._left
        self._left.extendleft(reversed(names))

    def _go_up(self) -> None:
        if not self._names:
            raise PathError("outside", self.label, "leaves the root folder; stay beneath it")
        self._left.extendleft(reversed(self._names[:-1]))
        self._restart()

    def _go_in_by_name(self) -> None:
        """Go to the folder that the way ended in, so that it has a name in another one; the root has none."""
        self._left.extend(self._names)
        self._restart()

    def _restart(self) -> None:
        self._names.clear()
        self._move(os.open(self._folder, _FOLDER))

    def _arrive(self) -> None:
        around = os.fstat(self.fd)
        if not self.name:
            self.info = around
        if self.must_be_folder and self.kind not in (stat.S_IFDIR, 0):
            raise PathError("not_a_folder", self.label, "is not a folder")
        if {around.st_dev, around.st_dev if self.info is None else self.info.st_dev} & _KERNEL:
            raise PathError("outside", self.label, "is no file but a view of the system; it can't be used")

    def _move(self, fd: int) -> None:
        old, self.fd = self.fd, fd
        if old >= 0:
            os.close(old)


def _look(name: str, fd: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def beneath(folder: Path, parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return *parts* of an absolute path as they are seen from *folder*; None if they are not beneath it."""
    own = folder.parts[1:]
    return parts[len(own) :] if parts[: len(own)] == own else None
