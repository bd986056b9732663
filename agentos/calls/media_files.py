"""Files that a tool names as media, read where the host allows it.

Whoever named a path may not be able to read it itself: a worker, or a tool that repeats what others say. So nothing is
read but plain files inside of the folders that the host names, and no link leads out of them.
"""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import attrs

from agentos.model.media import Media, printable_name

_CAN_STEP = os.open in os.supports_dir_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0)
_FILE = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class UnreadableMediaError(Exception):
    """A file that is not read, and why; that says nothing of files outside of the host's folders."""


class MediaFiles:
    """Reads media from the folders that a host allows; without any, it reads nothing."""

    def __init__(self, folders: Iterable[str | Path] = ()) -> None:
        self._folders = tuple(Path(folder).absolute() for folder in folders)

    def read(self, media: Media, limit: int) -> Media:
        """Return *media* with the bytes of its file; raise UnreadableMediaError if it has more than *limit*."""
        assert media.path is not None  # noqa: S101 - the caller chose those with a path
        data = self._bytes_of(media.path, limit)
        return attrs.evolve(media, path=None, data=data, name=media.name or printable_name(media.path.name))

    def _bytes_of(self, path: Path, limit: int) -> bytes:
        for folder in self._folders:
            parts = _parts_inside(folder, path)
            if parts:
                return _read(folder, parts, limit)
        raise UnreadableMediaError("it is not in a folder that the host reads media from (setting `media_folders`)")


def _parts_inside(folder: Path, path: Path) -> tuple[str, ...]:
    """Return the way from *folder* to *path*; nothing if it leads elsewhere. A relative path begins at the folder."""
    try:
        inside = path.relative_to(folder) if path.is_absolute() else path
    except ValueError:
        return ()
    return () if ".." in inside.parts else inside.parts


def _read(folder: Path, parts: tuple[str, ...], limit: int) -> bytes:
    """Read a file step by step from its folder, so that no link on the way is followed, however it comes there."""
    if not _CAN_STEP:  # pragma: no cover - another platform
        raise UnreadableMediaError("files can't be read safely on this platform; return the bytes")
    at = os.open(folder, _FOLDER)
    try:
        for part in parts:
            inner = os.open(part, _FILE, dir_fd=at)
            os.close(at)
            at = inner
        facts = os.fstat(at)
        if not stat.S_ISREG(facts.st_mode):
            raise UnreadableMediaError("it is not a plain file")
        if facts.st_size > limit:
            raise UnreadableMediaError(f"it has {facts.st_size:,} bytes, too many to keep (setting `limits.media`)")
        return _whole(at, limit)
    finally:
        os.close(at)


def _whole(file: int, limit: int) -> bytes:
    """Read a file that may grow meanwhile, and no more than *limit* of it."""
    with os.fdopen(os.dup(file), "rb") as reader:
        data = reader.read(limit + 1)
    if len(data) > limit:
        raise UnreadableMediaError("it grew while it was read")
    return data


def why_unreadable(error: OSError | UnreadableMediaError) -> str:
    """Say why a file was not read, without more of where it is than its own name."""
    if isinstance(error, UnreadableMediaError):
        return str(error)
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a link is in its way"
    return (error.strerror or "it can't be read").lower()
