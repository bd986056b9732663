"""Where a repository is: its files, its own folder, and what it shares with other working trees.

All of it must be within the root. A `.git` that is a link, or a file that names another folder, is followed only there.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
from agentos_pack_common import PathError, Root

SMALL: Final = 1_000_000
_MOST_ALTERNATES: Final = 50
_SHARED: Final = ("objects", "refs", "packed-refs", "logs", "info", "shallow", "worktrees", "config")
_OWN: Final = ("HEAD", "index", "refs", "logs")
_SCANNED: Final = ("refs", "logs", "info")
"""Folders that git reads and writes files in, at any depth; the objects are another."""
_MOST_SCANNED: Final = 500_000


class GitError(ValueError):
    """A repository that can't be used, or a command that git refused."""


@attrs.frozen
class Place:
    """A repository. `name` is how messages call it.

    `own` is the folder of the working tree at `tree`, `shared` that of all its working trees (mostly the same), and
    `parts` is where what is in the latter really is.
    """

    name: str
    tree: Path
    own: Path
    shared: Path
    parts: Mapping[str, Path] = attrs.field(factory=dict, repr=False)


def find_place(root: Root, repo: str) -> Place:
    """Return the repository that *repo*, a folder beneath *root*, belongs to; its parts are not looked at."""
    with _path_errors():
        return _find_repository(root, root.resolve(repo))


def with_parts(root: Root, place: Place) -> Place:
    """Return *place* with its parts; refuse one that leads out of *root*."""
    with _path_errors():
        return _checked(root.folder, place)


@contextlib.contextmanager
def _path_errors() -> Iterator[None]:
    """Raise what the file system refuses as a fault of the repository."""
    try:
        yield
    except PathError as error:
        raise GitError(f"repo: {error}") from None
    except OSError as error:
        raise GitError(f"repo: can't be looked at: {error.strerror}") from None


def _find_repository(root: Root, start: Path) -> Place:
    name = root.relative(start)
    if not start.is_dir():
        raise GitError(f"repo: {name!r} is not a folder; name the folder of a repository")
    for tree in (start, *start.parents):
        if not tree.is_relative_to(root.folder):
            break
        if (tree / ".git").exists() or (tree / ".git").is_symlink():
            return Place(root.relative(tree), tree, *_folders(root.folder, tree))
    raise GitError(f"repo: {name!r} is not in a git repository whose top folder is beneath the root")


def _folders(root: Path, tree: Path) -> tuple[Path, Path]:
    """Return a repository's own folder and the one that it shares with other working trees."""
    own = _within(root, tree / ".git", ".git")
    if own.is_file():
        named = read_small(own, 4_096).decode("utf-8", "surrogateescape").rstrip("\r\n")
        if not named.startswith("gitdir: "):
            raise GitError("repo: its .git is a file that names no folder")
        own = _within(root, tree / named.removeprefix("gitdir: "), "the folder that .git names")
    shared = own
    if (own / "commondir").is_file():
        named = read_small(_within(root, own / "commondir", "commondir"), 4_096).decode("utf-8", "surrogateescape")
        shared = _within(root, own / named.rstrip("\r\n"), "the folder that it shares with its main working tree")
    if not (own.is_dir() and (shared / "objects").is_dir() and (own / "HEAD").is_file()):
        raise GitError("repo: its .git is no git folder")
    return own, shared


def _within(root: Path, path: Path, what: str) -> Path:
    """Return where *path* really is, if that is within *root*."""
    try:
        real = Path(os.path.realpath(path, strict=True))
    except (OSError, ValueError):
        raise GitError(f"repo: {what} leads nowhere") from None
    if not real.is_relative_to(root):
        raise GitError(f"repo: {what} leads out of the root folder; only repositories that are within it are used")
    return real


def _checked(root: Path, place: Place) -> Place:
    """Return *place* with its parts, all of which are within *root*."""
    own, parts = _parts(root, place.own, _OWN), _parts(root, place.shared, _SHARED)
    _check_links(root, [found[name] for found in (own, parts) for name in _SCANNED if name in found])
    _check_alternates(root, parts["objects"])
    return attrs.evolve(place, parts=parts)


def _parts(root: Path, folder: Path, names: Sequence[str]) -> dict[str, Path]:
    # lexists: a link that leads nowhere now may lead somewhere later
    return {name: _within(root, folder / name, name) for name in names if os.path.lexists(folder / name)}


def _check_links(root: Path, folders: Sequence[Path]) -> None:
    """See that no link in *folders*, at any depth, leads outside: git would read there, and write."""
    waiting, seen, count = list(folders), set[Path](), 0
    while waiting:
        folder = waiting.pop()
        if folder in seen or not folder.is_dir():
            continue
        seen.add(folder)
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:  # git clears folders away
            for entry in entries:
                count += 1
                if entry.is_symlink():
                    waiting.append(_within(root, folder / entry.name, "a link in its git folder"))
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(folder / entry.name)
        if count > _MOST_SCANNED:
            raise GitError(f"repo: its git folder has more than {_MOST_SCANNED:,} files; pack them by git gc first")


def _check_alternates(root: Path, objects: Path) -> None:
    """See that no objects are borrowed from outside: they would be shown as if they were the repository's own."""
    waiting, seen = [objects], set[Path]()
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        if len(seen) > _MOST_ALTERNATES:
            raise GitError(f"repo: it borrows objects from more than {_MOST_ALTERNATES} folders")
        _check_links(root, [folder])
        waiting.extend(_within(root, path, "a folder that it borrows objects from") for path in _alternates(folder))


def _alternates(objects: Path) -> Iterator[Path]:
    file = objects / "info" / "alternates"
    if not os.path.lexists(file):
        return
    for line in read_small(file, SMALL).decode("utf-8", "surrogateescape").splitlines():
        if line and not line.startswith("#"):
            yield objects / line


def read_small(path: Path, limit: int) -> bytes:
    """Return the content of a small regular file; no link is followed, and nothing that blocks is opened."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise GitError(f"repo: {path.name} can't be read: {error.strerror}") from None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise GitError(f"repo: {path.name} is no regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise GitError(f"repo: {path.name} has more than {limit:,} bytes")
    return data
