"""What a result has beside its text: images, sound, files, and addresses of them."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs

from agentos.model.field_checks import frozen_mapping

MEDIA_COUNT = 32
"""How many media a result has at most."""
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}(;[\x20-\x7e]{1,200})?")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:[\x21-\x7e]+")
_URL_LIMIT = 8_000
_NAME_LIMIT = 200
_KINDS = ("image", "audio", "video")


def _as_bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _as_path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) else value


def _is_printable(name: str) -> bool:
    return 0 < len(name) <= _NAME_LIMIT and name.isprintable()


@attrs.frozen
class Media:
    """An image, sound or a file: its type, and exactly one of its bytes, the path of a file, or an address.

    `path` is read when the call ends, if it is in a folder that the host allows (`media_folders`); who reads a result
    has `data` then. `url` is handed on as it is: agentos fetches nothing. `name` is what to call it, not where to put
    it. A tool returns Media, or a list or a class with Media in it, or `ToolResult.ok(..., media=[...])`.
    """

    mime: str
    data: bytes | None = attrs.field(default=None, repr=False, converter=_as_bytes)
    path: Path | None = attrs.field(default=None, converter=_as_path)
    url: str | None = None
    name: str | None = None

    __output_schema__: ClassVar[Mapping[str, Any]] = frozen_mapping(
        {
            "type": "object",
            "properties": {
                "mime": {"type": "string"},
                "name": {"type": "string"},
                "size": {"type": "integer", "description": "How many bytes it has."},
                "url": {"type": "string"},
            },
            "required": ["mime"],
            "additionalProperties": False,
        }
    )

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.mime, str) or not _MIME.fullmatch(self.mime):
            raise ValueError(f"mime: expected a media type such as image/png, got {self.mime!r:.80}")
        given = [name for name in ("data", "path", "url") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of data, path and url, got {' and '.join(given) or 'nothing'}")
        if self.data is not None and not isinstance(self.data, bytes):
            raise ValueError(f"data: expected bytes, got {type(self.data).__name__}")
        if self.path is not None and not isinstance(self.path, Path):
            raise ValueError(f"path: expected a path, got {type(self.path).__name__}")
        if self.url is not None and not _is_address(self.url):
            raise ValueError("url: expected an address with its scheme, such as https://example.org/a.png")
        if self.name is not None and not (isinstance(self.name, str) and _is_printable(self.name)):
            raise ValueError(f"name: expected printable text of up to {_NAME_LIMIT} characters")

    @property
    def kind(self) -> str:
        """Return what it is: image, audio, video or file."""
        kind = self.type.partition("/")[0]
        return kind if kind in _KINDS else "file"

    @property
    def type(self) -> str:
        """Return the media type in lower case and without its parameters."""
        return self.mime.partition(";")[0].strip().lower()

    @property
    def size(self) -> int | None:
        """Return how many bytes it has; None if only its place is known."""
        return None if self.data is None else len(self.data)

    def reference(self) -> dict[str, Any]:
        """Return what stands for it in JSON: everything but its bytes."""
        name = self.name if self.name is not None or self.path is None else _visible(self.path.name) or None
        facts = {"mime": self.mime, "name": name, "size": self.size, "url": self.url}
        return {key: value for key, value in facts.items() if value is not None}

    def in_words(self) -> str:
        """Return what a model or a person reads where it can't be shown."""
        return reference_in_words(self.reference())


def _is_address(url: Any) -> bool:
    """Tell whether something is an address; bytes in the guise of one are not: they belong into `data`."""
    if not isinstance(url, str) or len(url) > _URL_LIMIT or not _URL.fullmatch(url):
        return False
    return not url.lower().startswith("data:")


def printable_name(text: str, mask: Callable[[str], str] = str) -> str | None:
    """Return foreign text as a name, masked before it is cut; None if nothing is left of it."""
    return mask(_visible(mask(text)))[:_NAME_LIMIT].strip() or None


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text).strip()


def reference_in_words(reference: Mapping[str, Any]) -> str:
    """Return what a reference says, on one line in brackets."""
    kind = str(reference["mime"]).partition("/")[0].lower()
    words = [kind if kind in _KINDS else "file", reference["mime"], reference.get("name")]
    size, url = reference.get("size"), reference.get("url")
    named = " ".join(filter(None, words)) + (f", {size:,} bytes" if size is not None else "")
    return f"[{named} at {url}]" if url is not None else f"[{named}]"
