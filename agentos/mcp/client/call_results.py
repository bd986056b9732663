"""A server's answer to a call, as a result."""

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from agentos.mcp.client.server_text import Words
from agentos.model.tool_call import ToolResult

_MESSAGE = 10_000
_NAME = 500


def result_of(answer: CallToolResult, words: Words, *, media_limit: int) -> ToolResult:
    """Return what a model, a program and a user interface get of *answer*.

    Structured content is the output; without any, the text is. Images and sound are named in the text, and kept as
    state if they are not too large.
    """
    text = "\n".join(_texts(answer.content, words))
    state = _state(answer.content, words, media_limit)
    if answer.is_error:
        message = words.cut(text, _MESSAGE) or "the server reports an error without saying which"
        failed = ToolResult.fail("ToolRaised", message, state=state)
        return attrs.evolve(failed, output=answer.structured_content)
    output = answer.structured_content if answer.structured_content is not None else text
    return ToolResult.ok(output, text, state)


def _texts(content: Iterable[Any], words: Words) -> Iterator[str]:
    for block in content:
        if isinstance(block, TextContent):
            yield block.text
        elif isinstance(block, ImageContent | AudioContent):
            yield f"[{block.type} {words.cut(block.mime_type, _NAME)}, {_size(block.data)}]"
        elif isinstance(block, ResourceLink):
            yield f"[resource {words.cut(block.uri, _NAME)}: {words.cut(block.title or block.name, _NAME)}]"
        elif isinstance(block, EmbeddedResource):
            yield _resource(block.resource, words)


def _resource(resource: TextResourceContents | BlobResourceContents, words: Words) -> str:
    place = words.cut(resource.uri, _NAME)
    if isinstance(resource, TextResourceContents):
        return f"[resource {place}]\n{resource.text}"
    return f"[resource {place}, {words.cut(resource.mime_type or 'of no said type', _NAME)}, {_size(resource.blob)}]"


def _size(encoded: str) -> str:
    return f"{len(encoded.rstrip('=')) * 3 // 4:,} bytes"


def _state(content: Iterable[Any], words: Words, limit: int) -> dict[str, Any] | None:
    media = [block for block in content if isinstance(block, ImageContent | AudioContent)]
    if not media or sum(len(block.data) for block in media) > limit:
        return None
    kinds = [(block, words.cut(block.mime_type, _NAME)) for block in media]
    return {"media": [{"type": block.type, "mimeType": kind, "data": block.data} for block, kind in kinds]}
