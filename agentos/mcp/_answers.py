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

from agentos.tools.calls import ToolResult

_MESSAGE = 10_000
_NAME = 500


def result_of(answer: CallToolResult, *, media_limit: int) -> ToolResult:
    """Return what a model, a program and a user interface get of *answer*.

    Structured content is the output; without any, the text is. Images and sound are named in the text, and kept as
    state if they are not too large.
    """
    text = "\n".join(_texts(answer.content))
    state = _state(answer.content, media_limit)
    if answer.is_error:
        message = text[:_MESSAGE] or "the server reports an error without saying which"
        failed = ToolResult.fail("ToolRaised", message, state=state)
        return attrs.evolve(failed, output=answer.structured_content)
    output = answer.structured_content if answer.structured_content is not None else text
    return ToolResult.ok(output, text, state)


def _texts(content: Iterable[Any]) -> Iterator[str]:
    for block in content:
        if isinstance(block, TextContent):
            yield block.text
        elif isinstance(block, ImageContent | AudioContent):
            yield f"[{block.type} {_short(block.mime_type)}, {_size(block.data)}]"
        elif isinstance(block, ResourceLink):
            yield f"[resource {_short(block.uri)}: {_short(block.title or block.name)}]"
        elif isinstance(block, EmbeddedResource):
            yield _resource(block.resource)


def _resource(resource: TextResourceContents | BlobResourceContents) -> str:
    if isinstance(resource, TextResourceContents):
        return f"[resource {_short(resource.uri)}]\n{resource.text}"
    return (
        f"[resource {_short(resource.uri)}, {_short(resource.mime_type or 'of no said type')}, {_size(resource.blob)}]"
    )


def _short(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= _NAME else f"{shown[:_NAME]}..."


def _size(encoded: str) -> str:
    return f"{len(encoded.rstrip('=')) * 3 // 4:,} bytes"


def _state(content: Iterable[Any], limit: int) -> dict[str, Any] | None:
    media = [block for block in content if isinstance(block, ImageContent | AudioContent)]
    if not media or sum(len(block.data) for block in media) > limit:
        return None
    shown = [{"type": block.type, "mimeType": _short(block.mime_type), "data": block.data} for block in media]
    return {"media": shown}
