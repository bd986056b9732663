"""Anthropic: tools out, calls in."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentos.interop._shared import (
    Asked,
    Host,
    Message,
    Reply,
    ToolList,
    described,
    name_of,
    pick,
    plain,
    results_of,
    unique_ids,
    way_back,
    without_nulls,
)
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult


def tools(host: Host, principal: Principal | None = None) -> ToolList:
    """Return what *principal* is offered, for the `tools` of a request.

    Items are kept for the next request: copy one before writing to it.
    """
    return described(host, principal)


async def run(
    host: Host,
    response: Any,
    tools: Sequence[Any],
    principal: Principal | None = None,
    *,
    session: Mapping[str, Any] | None = None,
) -> list[Message]:
    """Run the tool calls of *response*, side by side, and return what to append for the next request.

    *response* is the SDK's message or a mapping; *tools* is the list that was sent. What comes back is the assistant's
    message and, if it made calls, one user message with a result for each.
    """
    reply = read(response)
    results = await results_of(host, reply.calls, way_back(host, tools, principal), principal, session)
    blocks = [_answer(asked, result) for asked, result in zip(reply.calls, results, strict=True)]
    return [*reply.said, {"role": "user", "content": blocks}] if blocks else reply.said


def read(response: Any) -> Reply:
    """Read what a model said."""
    content = pick(response, "content")
    if content is None:
        raise ValueError(f"expected a message with content, got {type(response).__name__}")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = [without_nulls(plain(block)) for block in content]
    ids = iter(unique_ids([block.get("id") for block in blocks if block.get("type") == "tool_use"]))
    said: list[dict[str, Any]] = []
    calls: list[Asked] = []
    for block in blocks:
        if block.get("type") == "tool_use":
            calls.append(Asked(next(ids), name_of(block.get("name")), block.get("input")))
            said.append(_said_call(block, calls[-1]))
        elif not _is_blank(block):
            said.append(block)
    return Reply([{"role": "assistant", "content": said}] if said else [], calls)


def _said_call(block: dict[str, Any], asked: Asked) -> dict[str, Any]:
    given = asked.arguments if isinstance(asked.arguments, Mapping) else {}
    return {**block, "id": asked.id, "name": asked.wire, "input": given}


def _is_blank(block: dict[str, Any]) -> bool:
    """Tell whether a block is a text without any: the model may say it, but a request may not repeat it."""
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def _answer(asked: Asked, result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": asked.id, "content": result.content}
    return block if result.success else {**block, "is_error": True}
