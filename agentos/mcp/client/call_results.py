"""A server's answer to a call, as a result."""

import json
from collections.abc import Iterable
from typing import Any

import attrs
from mcp_types import CallToolResult

from agentos.mcp.client.server_text import ServerText
from agentos.mcp.content_blocks import TakenContent, summary, taken_content
from agentos.model.tool_call import ToolResult

_MESSAGE = 10_000


def result_of(answer: CallToolResult, server_text: ServerText, *, media_limit: int) -> ToolResult:
    """Return what a model, a program and a user interface get of *answer*.

    Structured content is the output; without any, the text is. Images, sound, links and resources are named in the
    text. Their bytes are kept as media, and how all of it was arranged as state, if that is not too large; the text
    says if it is.
    """
    blocks = _plain_blocks(answer.content, server_text)
    text, taken = summary(blocks), taken_content(blocks)
    if taken.state is not None and (size := len(json.dumps(blocks))) > media_limit:
        taken, text = TakenContent(), f"{text}\n[what is not text has {size:,} characters, too many to be handed on]"
    if answer.is_error:
        message = server_text.cut(text, _MESSAGE) or "the server reports an error without saying which"
        failed = ToolResult.fail("ToolRaised", message, state=taken.state)
        return attrs.evolve(failed, output=answer.structured_content, media=taken.media)
    output = answer.structured_content if answer.structured_content is not None else text
    return ToolResult.ok(output, text, taken.state, media=taken.media)


def _plain_blocks(content: Iterable[Any], server_text: ServerText) -> list[dict[str, Any]]:
    """Return the blocks as they were sent, without the secrets that the server was given."""
    return [server_text.mask_data(block.model_dump(by_alias=True, mode="json", exclude_none=True)) for block in content]
