"""Files in a request: how an argument carries one, and how it is written into a body."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agentos.openapi.document_parts import mapping, text
from agentos.openapi.values import Path, as_text
from agentos.schema.build import BuildError, Json

OCTETS = "application/octet-stream"
"""The media type of a file of which nobody says more."""
_MEDIA = r"[A-Za-z0-9!#$&^_.+-]+"
_FILENAME = r'[^\u0000-\u001f\u007f"\\/]{1,255}'
_PART_NAME = re.compile(r'[^\x00-\x1f\x7f"\\]+')


def file_schema(description: str = "", media: str = OCTETS) -> Json:
    """Return the schema of a file as an argument: its text, or its bytes in Base64.

    A range such as `image/*` as *media* leaves the media type to the caller.
    """
    is_range = "*" in media
    kind = _MEDIA if is_range and media.startswith("*") else re.escape(media.partition("/")[0])
    pattern = f"^{kind}/{_MEDIA}$" if is_range else f"^{_MEDIA}/{_MEDIA}$"
    otherwise = "" if is_range else f" {media} if it is not said."
    return {
        "type": "object",
        "description": f"{description} A file: its content as `text`, or as `base64`.".strip(),
        "properties": {
            "text": {"type": "string"},
            "base64": {"type": "string", "contentEncoding": "base64"},
            "filename": {"type": "string", "pattern": f"^{_FILENAME}$"},
            "mediaType": {"type": "string", "pattern": pattern, "description": f"What it is.{otherwise}"},
        },
        "required": ["mediaType"] if is_range else [],
        "oneOf": [{"required": ["text"]}, {"required": ["base64"]}],
        "additionalProperties": False,
    }


class File(NamedTuple):
    """A file that an argument carries."""

    content: bytes
    shown: str
    """What a person is shown of it: its text, or its size and hash."""
    filename: str | None
    media: str


def file_of(value: Any, path: Path, media: str) -> File:
    """Return the file that an argument carries; *media* is what it is unless it says so itself."""
    given = value if isinstance(value, dict) else {}
    if len(given.keys() & {"text", "base64"}) != 1:
        raise BuildError("expected a file: an object with `text` or `base64`", path)
    filename, said = given.get("filename"), given.get("mediaType", media)
    if filename is not None and not re.fullmatch(_FILENAME, as_text(filename, (*path, "filename"))):
        raise BuildError("expected a name without slashes, quotes and line ends", (*path, "filename"))
    if not isinstance(said, str) or not re.fullmatch(f"{_MEDIA}/{_MEDIA}", said):
        raise BuildError("expected a media type such as image/png", (*path, "mediaType"))
    if "text" in given:
        written = as_text(given["text"], (*path, "text"))
        return File(written.encode(), written, filename, said)
    content = _decoded(given["base64"], (*path, "base64"))
    digest = hashlib.sha256(content).hexdigest()
    return File(content, f"[{len(content)} bytes, sha256 {digest}]", filename, said)


def _decoded(value: Any, path: Path) -> bytes:
    try:
        return base64.b64decode("".join(as_text(value, path).split()), validate=True)
    except (binascii.Error, ValueError) as error:
        if isinstance(error, BuildError):
            raise
        raise BuildError(f"expected Base64: {error}", path) from None


class Part(NamedTuple):
    """A part of a form: its head, what is in it, and what a person is shown of that."""

    head: str
    content: bytes
    shown: str


def text_part(name: str, value: str, media: str | None = None) -> Part:
    """Return a part of text."""
    return Part(_head(name, None, media), value.encode(), value)


def file_part(name: str, file: File) -> Part:
    """Return a part that is a file; one without a name has that of its field, since servers go by it."""
    return Part(_head(name, file.filename or name, file.media), file.content, file.shown)


def _head(name: str, filename: str | None, media: str | None) -> str:
    if not _PART_NAME.fullmatch(as_text(name, (name,))):
        raise BuildError("expected names of fields without quotes and line ends", (name,))
    named = f'; filename="{filename}"' if filename else ""
    kind = f"\r\nContent-Type: {media}" if media else ""
    return f'Content-Disposition: form-data; name="{name}"{named}{kind}\r\n\r\n'


def multipart(parts: Iterable[Part]) -> tuple[bytes, str, str]:
    """Return a form of *parts*, its boundary, and what a person is shown of it."""
    parts = list(parts)
    boundary = hashlib.sha256(b"".join(part.head.encode() + part.content for part in parts)).hexdigest()
    # No text has its own hash in it.
    body = b"".join(b"--%b\r\n%b%b\r\n" % (boundary.encode(), part.head.encode(), part.content) for part in parts)
    shown = "".join(f"--{boundary}\r\n{part.head}{part.shown}\r\n" for part in parts)
    return body + f"--{boundary}--\r\n".encode(), boundary, f"{shown}--{boundary}--\r\n"


# -- in a document -------------------------------------------------------------------------------------------------


def is_file(node: Any, *, said: str = "") -> bool:
    """Tell whether a schema is that of a file; *said* is the media type that its encoding names."""
    if not isinstance(node, dict):
        return False
    branches = [each for word in ("anyOf", "oneOf") for each in node.get(word) or () if each != {"type": "null"}]
    if len(branches) == 1:
        return is_file(branches[0], said=said)
    if "contentEncoding" in node or node.get("format") in ("byte", "base64"):
        return False
    media = text(node.get("contentMediaType"))
    if media or node.get("format") == "binary":
        return node.get("format") == "binary" or not _is_text(media)
    return bool(said) and not _is_text(said) and node.get("type", "string") == "string"


def _is_text(media: str) -> bool:
    return media.startswith("text/") or media.partition(";")[0].strip().endswith(
        ("/json", "+json", "x-www-form-urlencoded")
    )


def media_of_files(schema: Json, encoding: Mapping[str, Any], follow: Any, where: str) -> dict[str, str]:
    """Return which members of a form are files, or lists of them, and the media type of each."""
    found = {}
    for name, given in mapping(schema.get("properties"), where, "properties").items():
        said = text(mapping(encoding.get(name), where, "encoding").get("contentType")).split(",")[0].strip()
        node = follow(given)
        item = follow(node.get("items")) if isinstance(node, dict) and node.get("type") == "array" else None
        if is_file(node, said=said) or is_file(item, said=said):
            media = said or text((item or node).get("contentMediaType")) or OCTETS
            found[name] = media.partition(";")[0].strip().lower()
    return found
