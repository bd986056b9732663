"""Files that come into place together, or not at all.

They are written into a folder beside their destination. If the destination is new, that folder becomes it by one
renaming. If it is there already, the files are moved into it one by one, and moved back if one of them fails.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from agentos_pack_common import Item, PathError, Root

from agentos_pack_archive._names import PREFIX
from agentos_pack_archive._writing import make_folders, write_file


class Staging:
    """One extraction under way."""

    def __init__(self, root: Root, destination: str, *, overwrite: bool) -> None:
        self._root = root
        self._destination = root.relative(root.resolve(destination))
        root.check_new(destination, folder=True)
        self._overwrite = overwrite
        self._new = _first_missing(root, self._destination)
        above = (self._new or self._destination).rpartition("/")[0]
        self._folder = "/".join(filter(None, [above, f"{PREFIX}{secrets.token_hex(8)}"]))
        self._inner = ["new"] if self._new is None else self._destination[len(self._new) :].split("/")[1:]
        self._held = contextlib.ExitStack()
        self._top = -1
        self._files: list[str] = []
        self._folders: dict[str, None] = {}

    def __enter__(self) -> Self:
        self._root.make_folder(self._folder)
        with contextlib.ExitStack() as undo:
            undo.callback(self._clear)
            self._top = self._held.enter_context(self._root.open_folder(self._folder))
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
        self._clear()

    def _clear(self) -> None:
        with contextlib.suppress(PathError):  # it became the destination
            _remove_tree(self._root, self._folder)

    @property
    def destination(self) -> str:
        """Return where the files come, from the root on."""
        return self._destination

    # -- what is to come -----------------------------------------------------------------------------------------

    def target_of(self, path: str) -> str:
        """Return where a member comes, from the root on."""
        return path if self._destination == "." else f"{self._destination}/{path}"

    def check_new(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether a file takes the place of another; raise PathError if it may not."""
        if self._new is not None:
            return False
        there = self._there(path)
        if there is None or (is_folder and there.kind == "folder"):
            return False
        target = self.target_of(path)
        if is_folder or there.kind != "file":
            raise PathError("exists", target, f"is a {there.kind} already; choose another destination")
        if not self._overwrite:
            raise PathError("exists", target, "exists already; choose another destination, or say overwrite")
        return True

    def _there(self, path: str) -> Item | None:
        """Return what is where a member is to come; refuse a way that leads through a link or a file."""
        parts = path.split("/")
        item = None
        for count in range(1, len(parts) + 1):
            target = self.target_of("/".join(parts[:count]))
            item = self._root.find(target)
            if item is None:
                return None
            if count < len(parts) and item.kind != "folder":
                raise PathError("exists", target, f"is a {item.kind}, and members are to come beneath it")
        return item

    def add_folder(self, path: str) -> None:
        """Make a folder, and those above it."""
        parts = path.split("/")
        self._note_folders(parts)
        make_folders(self._top, [*self._inner, *parts])

    def add_file(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a file, and the folders above it."""
        parts = path.split("/")
        self._note_folders(parts[:-1])
        write_file(self._top, [*self._inner, *parts], chunks)
        self._files.append(path)

    def _note_folders(self, parts: list[str]) -> None:
        self._folders |= dict.fromkeys("/".join(parts[:count]) for count in range(1, len(parts) + 1))

    def _staged(self, path: str) -> str:
        return "/".join([self._folder, *self._inner, path])

    # -- putting it in place -------------------------------------------------------------------------------------

    def commit(self, check: Callable[[], None]) -> None:
        """Put everything in place; if something fails, or *check* raises, put back what was there."""
        check()
        if self._new is not None:
            make_folders(self._top, self._inner)
            self._root.rename(self._folder, self._new, overwrite=False)
            return
        for path in [*self._folders, *self._files]:
            self.check_new(path, is_folder=path in self._folders)
        self._root.make_folder(f"{self._folder}/old")
        with contextlib.ExitStack() as undo:
            for folder in self._folders:
                self._place_folder(folder, undo)
            for number, file in enumerate(self._files):
                check()
                self._place_file(file, number, undo)
            undo.pop_all()

    def _place_folder(self, path: str, undo: contextlib.ExitStack) -> None:
        target = self.target_of(path)
        if self._there(path) is None:
            self._root.make_folder(target)
            undo.callback(self._root.remove_folder, target)

    def _place_file(self, path: str, number: int, undo: contextlib.ExitStack) -> None:
        target = self.target_of(path)
        if self.check_new(path, is_folder=False):
            kept = f"{self._folder}/old/{number}"
            self._root.rename(target, kept, overwrite=False, durable=False)
            undo.callback(self._root.rename, kept, target, overwrite=True, durable=False)
        self._root.rename(self._staged(path), target, overwrite=False, durable=False)
        undo.callback(self._root.rename, target, self._staged(path), overwrite=False, durable=False)


def _first_missing(root: Root, path: str) -> str | None:
    """Return the first folder on the way that is not there; None if all are."""
    if path == ".":
        return None
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        part = "/".join(parts[:count])
        item = root.find(part)
        if item is None:
            return part
        if item.kind != "folder":
            raise PathError("not_a_folder", part, "is not a folder; choose another destination")
    return None


def _remove_tree(root: Root, folder: str) -> None:
    """Remove a folder of ours with all that is in it."""
    for item in list(root.scan(folder)):
        if item.kind == "folder":
            _remove_tree(root, item.path)
        else:
            root.remove_file(item.path)
    root.remove_folder(folder)
