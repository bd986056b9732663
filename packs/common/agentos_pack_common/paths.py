"""A folder that paths can't leave."""

import contextlib
import datetime as dt
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import attrs

from agentos_pack_common._hidden import DEFAULT_HIDDEN, Hidden
from agentos_pack_common._names import PathError, Written, check_new, is_text, read_path, telling
from agentos_pack_common._reading import BoundedReader, check_regular, is_twin_of_hidden, open_bounded
from agentos_pack_common._saving import PREFIX, put, put_new, save, sync_folder
from agentos_pack_common._walks import Walk, beneath

__all__ = ["DEFAULT_HIDDEN", "BoundedReader", "Item", "PathError", "Root"]

AnyPath = str | os.PathLike[str]
_ENTRIES = 100_000
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


@attrs.frozen
class Item:
    """What is found at a path."""

    path: str
    """From the root on, with / between folders."""
    kind: Literal["file", "folder", "link", "other"]
    size: int
    """Bytes; of a file only."""
    modified: dt.datetime
    """In UTC."""


class Root:
    """A folder, and what may be done beneath it. Paths are relative to it, or absolute and within it.

    Links are followed if they stay within. Hidden files are treated as if nobody may use them. The folder itself, and
    those above it, must not be writable by whoever is to be kept in.
    """

    def __init__(self, folder: AnyPath, *, writable: bool = True, hidden: Iterable[str] = DEFAULT_HIDDEN) -> None:
        if os.open not in os.supports_dir_fd:
            raise PathError(
                "failed", os.fspath(folder), "can't be a root: this system can't open files from a folder on"
            )
        read_path(folder)
        given = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links
        self.folder = Path(os.path.realpath(given))
        self.writable = writable
        self._hidden = Hidden(hidden)
        self._spellings = (self.folder, given)
        if not self.folder.is_dir():
            raise PathError(
                "not_a_folder", os.fspath(folder), "is not a folder that exists; make it, or name another one"
            )

    def __repr__(self) -> str:
        return f"<Root {self.folder}>"

    # -- where things are ----------------------------------------------------------------------------------------

    def resolve(self, path: AnyPath) -> Path:
        """Return where *path* really is, whether or not something is there.

        That holds for now: someone may put a link there later. Give the result to programs that take nothing but
        paths, and use the other methods for reading and writing.
        """
        with self._walk(path, lenient=True) as walk:
            return self.folder.joinpath(*walk.parts)

    def relative(self, path: AnyPath) -> str:
        """Return *path* as it is seen from the root, for messages and results; nothing is looked up."""
        names: list[str] = []
        for part in self._read(path).parts:
            if part != "..":
                names.append(part)
            elif names:
                names.pop()
            else:
                raise PathError("outside", os.fspath(path), "leaves the root folder; stay beneath it")
        return "/".join(names) or "."

    def hides(self, path: AnyPath) -> bool:
        """Tell whether *path*, or a folder on the way to it, is hidden for its name; nothing is looked up."""
        parts = self.relative(path).split("/")
        return any(self._hidden.hides(parts[:count]) for count in range(1, len(parts) + 1))

    def stat(self, path: AnyPath, *, follow: bool = True) -> Item:
        """Return what is at *path*; without *follow* a link at its end is told as a link."""
        with self._walk(path, follow=follow) as walk:
            return _item(walk.parts, _there(walk))

    def find(self, path: AnyPath) -> Item | None:
        """Return what is at *path*, a link as a link; None if nothing is there."""
        try:
            return self.stat(path, follow=False)
        except PathError as error:
            if error.kind != "missing":
                raise
        return None

    def scan(self, path: AnyPath = ".") -> Iterator[Item]:
        """Return what is in a folder, by name. Hidden files are left out, and names that are not UTF-8."""
        with self._walk(path) as walk:
            _there(walk)
            fd = walk.open_folder()
            try:
                with telling(walk.label):
                    return iter(self._items(fd, walk))
            finally:
                os.close(fd)

    def _items(self, fd: int, walk: Walk) -> list[Item]:
        items, parts = [], walk.parts
        for name in sorted(_listed(fd, walk.label)):
            if name.startswith(PREFIX) or self._hidden.hides([*parts, name]):
                continue
            with contextlib.suppress(FileNotFoundError):
                items.append(_item((*parts, name), os.stat(name, dir_fd=fd, follow_symlinks=False)))
        return items

    # -- reading -------------------------------------------------------------------------------------------------

    def open_read(self, path: AnyPath, *, max_bytes: int) -> BoundedReader:
        """Open a regular file for reading bytes. It ends after *max_bytes*; its `truncated` tells if there is more."""
        with self._walk(path) as walk:
            return open_bounded(walk, self._hidden, max_bytes)

    def read_bytes(self, path: AnyPath, *, max_bytes: int) -> bytes:
        """Return a whole file; raise PathError if it has more than *max_bytes*."""
        with self.open_read(path, max_bytes=max_bytes) as file:
            data = b"" if file.truncated else file.read()
            if file.truncated:  # asked again: it may have grown
                raise PathError("failed", self._label(path), f"has more than {max_bytes:,} bytes")
            return data

    @contextlib.contextmanager
    def open_folder(self, path: AnyPath = ".") -> Iterator[int]:
        """Open a folder and yield its descriptor, for `run_process(cwd=...)`: no link can take its place any more."""
        with self._walk(path) as walk:
            _there(walk)
            fd = walk.open_folder()
        try:
            yield fd
        finally:
            os.close(fd)

    # -- writing -------------------------------------------------------------------------------------------------

    def write_bytes(
        self, path: AnyPath, data: bytes, *, overwrite: bool, mode: int = 0o644, parents: bool = False
    ) -> None:
        """Write a file, whole or not at all. mode: of a new file; one that is replaced keeps its own."""
        self._check_writable(path)
        with self._walk(path, make=parents) as walk:
            _check_not_root(walk)
            save(walk, data, overwrite=overwrite, mode=mode)

    def make_folder(self, path: AnyPath, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a folder."""
        self._check_writable(path)
        with self._walk(path, make=parents) as walk, telling(walk.label):
            if exist_ok and walk.kind == stat.S_IFDIR:
                return
            if not walk.kind:
                check_new(walk.name, walk.parts)
            os.mkdir(walk.name or ".", 0o755, dir_fd=walk.fd)

    def remove_file(self, path: AnyPath) -> None:
        """Remove a file, or a link and not what it leads to."""
        self._check_writable(path)
        with self._walk(path, follow=False) as walk, telling(walk.label):
            if walk.kind != stat.S_IFLNK:
                check_regular(walk.kind, walk.label)
            os.unlink(walk.name, dir_fd=walk.fd)

    def remove_folder(self, path: AnyPath) -> None:
        """Remove a folder that is empty."""
        self._check_writable(path)
        with self._walk(path, follow=False) as walk, telling(walk.label):
            _check_not_root(walk)
            os.rmdir(walk.name, dir_fd=walk.fd)

    def rename(self, old: AnyPath, new: AnyPath, *, overwrite: bool, durable: bool = True) -> None:
        """Move a file, a folder or a link within the root; only a file can be overwritten, and only by a file.

        *durable* waits until the new name is on the disk: for one of thousands that waits too long.
        """
        self._check_writable(old)
        with self._walk(old, follow=False) as source, self._walk(new, follow=False) as target:
            info = self._check_move(source, target, overwrite=overwrite)
            is_new = not overwrite and not stat.S_ISDIR(info.st_mode)
            with telling(target.label):
                (put_new if is_new else put)(source.fd, source.name, target.fd, target.name)
                if durable:
                    sync_folder(target.fd)

    # -- checks --------------------------------------------------------------------------------------------------

    def check_new(self, path: AnyPath, *, folder: bool = False) -> None:
        """Refuse a path whose names can't be given to something new, or that ends like a folder and must be a file.

        Names of what is there already are not looked at. Nothing is changed: previews tell by this what would fail.
        """
        with self._walk(path, lenient=True) as walk:
            if not walk.kind and walk.must_be_folder and not folder:
                raise PathError("bad", walk.label, "ends like a folder; leave out the slash at its end")
            _check_names(walk)

    def check_rename(self, old: AnyPath, new: AnyPath, *, overwrite: bool) -> None:
        """Refuse what rename would refuse, except that folders on the way to *new* may be missing."""
        self._check_writable(old)
        with self._walk(old, follow=False) as source, self._walk(new, follow=False, lenient=True) as target:
            self._check_move(source, target, overwrite=overwrite)

    def is_empty(self, path: AnyPath) -> bool:
        """Tell whether a folder has nothing in it, hidden files included."""
        with self.open_folder(path) as fd, telling(self._label(path)), os.scandir(fd) as entries:
            return next(entries, None) is None

    def _check_move(self, source: Walk, target: Walk, *, overwrite: bool) -> os.stat_result:
        info = _there(source)
        _check_not_root(source)
        _check_not_root(target)
        if source.kind not in (stat.S_IFDIR, stat.S_IFLNK):
            check_regular(source.kind, source.label)
        if self._hidden.begins(source.parts):
            raise PathError("hidden", source.label, "can't be moved: files in it are hidden for its name")
        if source.kind == stat.S_IFREG and info.st_nlink > 1 and is_twin_of_hidden(source, self._hidden, info):
            raise PathError("hidden", source.label, "is hidden: it is another name of a file that is")
        _check_free(source, target, overwrite=overwrite)
        return info

    def _check_writable(self, path: AnyPath) -> None:
        if not self.writable:
            raise PathError("read_only", self._label(path), "can't be changed: this folder is open for reading only")

    def _label(self, path: AnyPath) -> str:
        """Return how *path* is told in messages: from the root on, if it was given with all that is above."""
        written = self._read(path)
        return "/".join(written.parts) or "." if written.is_absolute else os.fspath(path)

    def _read(self, path: AnyPath) -> Written:
        """Take *path* apart, as seen from the root."""
        written = read_path(path)
        if not written.is_absolute:
            return written
        for folder in self._spellings:
            inner = beneath(folder, written.parts)
            if inner is not None:
                return attrs.evolve(written, parts=inner)
        raise PathError(
            "outside", os.fspath(path), "is outside of the root folder; give a path from the root folder on"
        )

    @contextlib.contextmanager
    def _walk(self, path: AnyPath, *, follow: bool = True, make: bool = False, lenient: bool = False) -> Iterator[Walk]:
        with Walk(self.folder, self._hidden, self._label(path)) as walk:
            yield walk.go(self._read(path), follow=follow, make=make, lenient=lenient)


def _there(walk: Walk) -> os.stat_result:
    if walk.info is None:
        raise PathError("missing", walk.label, "does not exist; list the folder to see what does")
    return walk.info


def _check_not_root(walk: Walk) -> None:
    if not walk.name:
        raise PathError("bad", walk.label, "is the root folder itself")


def _check_names(walk: Walk) -> None:
    """Refuse names that are missing and can't be made."""
    if walk.name and not walk.kind:
        parts = walk.parts
        for count in range(len(parts) - len(walk.rest), len(parts) + 1):
            check_new(parts[count - 1], parts[:count])


def _check_free(source: Walk, target: Walk, *, overwrite: bool) -> None:
    """Refuse to move something to where something else is, unless both are files and it may be replaced."""
    is_folder = source.kind == stat.S_IFDIR
    if is_folder and target.parts[: len(source.parts)] == source.parts:
        raise PathError("bad", target.label, "lies within the folder that is to be moved there")
    if not target.kind:
        _check_names(target)
        if target.must_be_folder and not is_folder:
            raise PathError("bad", target.label, "ends like a folder; leave out the slash at its end")
    elif not overwrite:
        raise PathError("exists", target.label, "exists already; choose another name, or say that it may be replaced")
    elif (source.kind, target.kind) != (stat.S_IFREG, stat.S_IFREG):
        raise PathError("exists", target.label, "exists already, and only a file can be replaced, by a file")


def _listed(fd: int, label: str) -> list[str]:
    names: list[str] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if len(names) == _ENTRIES:
                raise PathError("failed", label, f"has more than {_ENTRIES:,} entries; it can't be listed")
            if is_text(entry.name):
                names.append(entry.name)
    return names


def _item(parts: tuple[str, ...], info: os.stat_result) -> Item:
    kind = _KINDS.get(stat.S_IFMT(info.st_mode), "other")
    size = info.st_size if kind == "file" else 0
    return Item("/".join(parts) or ".", kind, size, _moment(info.st_mtime))  # type: ignore[arg-type]


def _moment(seconds: float) -> dt.datetime:
    """Return a time of the file system; one that no calendar has becomes the first of all."""
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return dt.datetime.min.replace(tzinfo=dt.UTC)
