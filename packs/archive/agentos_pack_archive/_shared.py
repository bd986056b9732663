"""What the three tools share: their arguments, an archive opened by its path, and a call that was ended."""

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

from agentos_pack_common import PathError, Root, clip_rows

from agentos import Schema, ToolContext
from agentos_pack_archive._limits import ArchiveError, Limits
from agentos_pack_archive._members import Archive, open_archive

SHOWN = 200
BYTES = 20_000

PathArgument = Annotated[
    str,
    "Path of the archive, relative to the root folder of these tools, with / between folders",
    Schema(minLength=1, maxLength=4096),
]


REFUSED = {"hidden": "it would be a file that is hidden here", "bad": "its name can't be used here"}
"""Why a member can't be unpacked whose name is not at fault by itself, by the kind of the error."""


def refusal_of(root: Root, path: str) -> str | None:
    """Say why a member can't be unpacked wherever that is tried; None if nothing in its name forbids it."""
    try:
        return REFUSED["hidden"] if root.hides(path) else None
    except PathError as error:
        return REFUSED.get(error.kind)


@contextlib.contextmanager
def opened(root: Root, path: str, limits: Limits) -> Iterator[Archive]:
    """Open an archive; whatever is wrong with it is told with its path."""
    with root.open_read(path, max_bytes=limits.archive_bytes) as file, telling(path):
        if file.truncated:
            raise ArchiveError(f"it has {file.size:,} bytes; at most {limits.archive_bytes:,} are read")
        yield open_archive(file, file.size, limits)


@contextlib.contextmanager
def telling(path: str) -> Iterator[None]:
    """Put the path before what is wrong with an archive."""
    try:
        yield
    except ArchiveError as error:
        words = str(error)
    else:
        return
    raise ArchiveError(f"path: {path!r} can't be used: {words}")


def check_wanted(context: ToolContext | None) -> None:
    """Stop if nobody waits for the call any more."""
    if context is not None and context.cancelled:
        raise ArchiveError("the call was ended; nothing was changed")


def first(rows: list[Any]) -> list[Any]:
    """Return the first of many, as many as fit into a result."""
    return clip_rows(rows, max_rows=SHOWN, max_bytes=BYTES).rows
