"""Results as MCP's content, and a bridged server's content as results: text, images, sound, links and resources.

The text of an answer is what a model reads, and what hosts mask and cut. What has bytes is the result's media,
whichever tool made it. Of a server's answer the state keeps how its blocks were arranged, under a key that nobody else
uses, and with it what is neither text nor bytes: links, and what a server says of a block beside it.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import attrs
from mcp_types.version import is_version_at_least

from agentos.model.media import Media, printable_name
from agentos.model.tool_call import ToolResult

CONTENT = "mcp/content"
"""Where a state has all blocks in their order; one whose bytes are among the result's media has their digest."""
_DIGEST = "media"
_MEDIA_TYPES = ("image", "audio")
_OCTETS = "application/octet-stream"
_SINCE = {"text": "", "image": "", "resource": "", "audio": "2025-03-26", "resource_link": "2025-06-18"}
_TEXTS = ("application/json", "application/xml", "application/yaml", "application/toml")

Block = Mapping[str, Any]


# -- from a server -----------------------------------------------------------------------------------------------------


@attrs.frozen
class TakenContent:
    """What a result keeps of a server's blocks that are more than text."""

    media: tuple[Media, ...] = ()
    state: dict[str, Any] | None = None


def taken_content(blocks: Sequence[Block]) -> TakenContent:
    """Take bytes out of *blocks* as media; nothing is kept if there is nothing but text."""
    if all(set(block) <= {"type", "text"} for block in blocks):
        return TakenContent()
    media: list[Media] = []
    return TakenContent(state={CONTENT: [_taken(block, media) for block in blocks]}, media=tuple(media))


def _taken(block: Block, media: list[Media]) -> Block:
    """Return *block* without its bytes, which become one of *media*; as it is if it has none that can be read."""
    if block.get("type") in _MEDIA_TYPES:
        made = _media_of(block, "data", None)
        rest = {key: value for key, value in block.items() if key != "data"}
    elif block.get("type") == "resource" and "blob" in block["resource"]:
        resource = block["resource"]
        made = _media_of(resource, "blob", str(resource["uri"]).rpartition("/")[2])
        rest = {**block, "resource": {key: value for key, value in resource.items() if key != "blob"}}
    else:
        return block
    if made is None:
        return block
    media.append(made)
    return {**rest, _DIGEST: _digest(made)}


def _media_of(part: Block, key: str, name: str | None) -> Media | None:
    """Return the media of a part with bytes; what a server says of itself never names a path of ours."""
    try:
        data = base64.b64decode("".join(part[key].split()), validate=True)
        return Media(part.get("mimeType") or _OCTETS, data, name=name and printable_name(name))
    except (binascii.Error, ValueError):
        return None


# -- to a client -------------------------------------------------------------------------------------------------------


def blocks_for_client(result: ToolResult, text: str, protocol: str) -> list[dict[str, Any]] | None:
    """Return what a client that speaks *protocol* gets of what is more than text, beside or instead of *text*.

    Where the text is what a server's blocks say and the client knows them all, they are handed on as they came. Else
    the text comes first, and after it what is more than text. None if there is nothing but text.
    """
    blocks = _blocks_in(result)
    if not blocks:
        return None
    fit = [dict(block) for block in blocks if _is_known(block, protocol)]
    if len(fit) == len(blocks) and summary(blocks) == text:
        return fit
    return [{"type": "text", "text": text}, *(block for block in fit if block["type"] != "text")]


def _blocks_in(result: ToolResult) -> list[Block]:
    """Return the blocks of a server's answer, as far as its media are still there, and the media it did not come with.

    Of a tool's own result all media are such.
    """
    kept = result.state.get(CONTENT) if isinstance(result.state, dict) else None
    arranged = [block for block in kept if isinstance(block, dict)] if isinstance(kept, list) else []
    media = {_digest(one): one.data for one in result.media if one.data is not None} if arranged else {}
    found = [block for one in arranged if (block := _given_back(one, media)) is not None]
    placed = {block.get(_DIGEST) for block in arranged}
    return [*found, *(_block_of(one) for one in result.media if not arranged or _digest(one) not in placed)]


def _digest(media: Media) -> str:
    return hashlib.sha256(b"\0".join([media.mime.encode(), media.data or b""])).hexdigest()[:32]


def _given_back(block: Block, media: Mapping[str, bytes]) -> Block | None:
    """Return *block* with its bytes; None if a guardrail or a limit has taken them."""
    if _DIGEST not in block:
        return block
    data = media.get(str(block[_DIGEST]))
    if data is None:
        return None
    rest = {key: value for key, value in block.items() if key != _DIGEST}
    if block.get("type") == "resource":
        return {**rest, "resource": {**block["resource"], "blob": _encoded(data)}}
    return {**rest, "data": _encoded(data)}


def _block_of(media: Media) -> Block:
    """Return the block of a tool's own media: an image, sound, a link, or a resource with what is in it."""
    if media.data is None:  # so it has an address: who has a result has no paths
        name = media.name or media.type
        return {"type": "resource_link", "uri": media.url, "name": name, "mimeType": media.mime}
    if media.kind in _MEDIA_TYPES:
        return {"type": media.kind, "data": _encoded(media.data), "mimeType": media.mime}
    address = f"agentos://media/{_digest(media)}/{quote(media.name or 'file', safe='')}"
    content = {"uri": address, "mimeType": media.mime}
    return {"type": "resource", "resource": {**content, **_written(media, media.data)}}


def _written(media: Media, data: bytes) -> dict[str, str]:
    if media.type.startswith("text/") or media.type in _TEXTS or media.type.endswith(("+json", "+xml")):
        try:
            return {"text": data.decode()}
        except UnicodeDecodeError:
            pass
    return {"blob": _encoded(data)}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_known(block: Block, protocol: str) -> bool:
    since = _SINCE.get(str(block.get("type")))
    return since is not None and (not since or is_version_at_least(protocol, since))


# -- in words --------------------------------------------------------------------------------------------------------

_NAME = 500


def summary(blocks: Iterable[Block]) -> str:
    """Return what a model reads of *blocks*: their text, and the names of what is not text."""
    return "\n".join(filter(None, map(_in_words, blocks)))


def _in_words(block: Block) -> str | None:
    kind = block.get("type")
    if kind == "text":
        return str(block["text"])
    if kind in _MEDIA_TYPES:
        return f"[{kind} {_cut(block['mimeType'])}, {_size(block['data'])}]"
    if kind == "resource_link":
        return f"[resource {_cut(block['uri'])}: {_cut(block.get('title') or block['name'])}]"
    return _resource(block["resource"]) if kind == "resource" else None


def _resource(resource: Block) -> str:
    place = _cut(resource["uri"])
    if "text" in resource:
        return f"[resource {place}]\n{resource['text']}"
    return f"[resource {place}, {_cut(resource.get('mimeType') or 'of unknown type')}, {_size(resource['blob'])}]"


def _cut(text: str) -> str:
    return text if len(text) <= _NAME else f"{text[:_NAME]}..."


def _size(encoded: str) -> str:
    return f"{len(encoded.rstrip('=')) * 3 // 4:,} bytes"
