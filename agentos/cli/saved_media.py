"""Images, sound and files of a result, saved where a person asked for it.

What a result calls them is foreign text: it chooses a part of a file's name, never its folder, and nothing that is
there already is overwritten.
"""

import mimetypes
import os
import re
from collections.abc import Iterator
from pathlib import Path

from agentos.base.full_disks import reason
from agentos.errors import AgentOSError
from agentos.model.media import Media
from agentos.model.tool_call import ToolResult

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_STEM_LIMIT = 80
_TRIES = 10_000
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))})
_ENDINGS = {"image/jpeg": ".jpg", "audio/mpeg": ".mp3", "text/plain": ".txt", "application/octet-stream": ".bin"}


class MediaNotSavedError(AgentOSError):
    """Media that could not be written."""


def save_media(result: ToolResult, folder: Path) -> list[Path | None]:
    """Write the media of *result* into *folder*, and return where each is; None for one that is only an address."""
    try:
        if result.media:
            folder.mkdir(parents=True, exist_ok=True)
        return [None if one.data is None else _saved(one, folder) for one in result.media]
    except OSError as error:
        said = f"the media of the result could not be saved in {folder}: {reason(error)}"
        raise MediaNotSavedError(said) from error


def _saved(media: Media, folder: Path) -> Path:
    for name in _names(media):
        try:
            file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(file, "wb") as writer:
            writer.write(media.data or b"")
        return folder / name
    raise MediaNotSavedError(f"{folder} has too many files of that name already")


def _names(media: Media) -> Iterator[str]:
    """Yield the names to try, each safe on every system; what a file is called ends as its type says."""
    stem, ending = _stem_and_ending(media)
    yield f"{stem}{ending}"
    for number in range(2, _TRIES):
        yield f"{stem}-{number}{ending}"


def _stem_and_ending(media: Media) -> tuple[str, str]:
    ending = _ENDINGS.get(media.type) or mimetypes.guess_extension(media.type) or ".bin"
    base = re.split(r"[/\\]", media.name or "")[-1]
    said = Path(base).suffix.lower()
    if said and said in {ending, *mimetypes.guess_all_extensions(media.type)}:
        base, ending = base[: -len(said)], said
    stem = _UNSAFE.sub("_", base).strip("._-")[:_STEM_LIMIT].strip("._-") or media.kind
    return (f"_{stem}" if stem.partition(".")[0].lower() in _RESERVED else stem), ending
