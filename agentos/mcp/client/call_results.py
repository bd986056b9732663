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

from agentos.mcp.client.server_text import ServerText
from agentos.model.tool_call import ToolResult

_MESSAGE = 10_000
_NAME = 500


def result_of(answer: CallToolResult, server_text: ServerText, *, media_limit: int) -> ToolResult:
    """Return what a model, a program and a user interface get of *answer*.

    Structured content is the output; without any, the text is. Images and sound are named in the text, and kept as
    state if they are not too large.
    """
    text = "\n".join(_text_blocks(answer.content, server_text))
    state = _state(answer.content, server_text, media_limit)
    if answer.is_error:
        message = server_text.cut(text, _MESSAGE) or "the server reports an error without saying which"
        failed = ToolResult.fail("ToolRaised", message, state=state)
        return attrs.evolve(failed, output=answer.structured_content)
    output = answer.structured_content if answer.structured_content is not None else text
    return ToolResult.ok(output, text, state)


def _text_blocks(content: Iterable[Any], server_text: ServerText) -> Iterator[str]:
    for block in content:
        if isinstance(block, TextContent):
            yield block.text
        elif isinstance(block, ImageContent | AudioContent):
            yield f"[{block.type} {server_text.cut(block.mime_type, _NAME)}, {_size(block.data)}]"
        elif isinstance(block, ResourceLink):
            yield f"[resource {server_text.cut(block.uri, _NAME)}: {server_text.cut(block.title or block.name, _NAME)}]"
        elif isinstance(block, EmbeddedResource):
            yield _resource(block.resource, server_text)


def _resource(resource: TextResourceContents | BlobResourceContents, server_text: ServerText) -> str:
    place = server_text.cut(resource.uri, _NAME)
    if isinstance(resource, TextResourceContents):
        return f"[resource {place}]\n{resource.text}"
    return (
        f"[resource {place}, {server_text.cut(resource.mime_type or 'of unknown type', _NAME)}, {_size(resource.blob)}]"
    )


def _size(encoded: str) -> str:
    return f"{len(encoded.rstrip('=')) * 3 // 4:,} bytes"


def _state(content: Iterable[Any], server_text: ServerText, limit: int) -> dict[str, Any] | None:
    media = [block for block in content if isinstance(block, ImageContent | AudioContent)]
    if not media or sum(len(block.data) for block in media) > limit:
        return None
    kinds = [(block, server_text.cut(block.mime_type, _NAME)) for block in media]
    return {"media": [{"type": block.type, "mimeType": kind, "data": block.data} for block, kind in kinds]}
