"""Anthropic: tools out, calls in."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentos.interop._provider_calls import (
    Message,
    ModelCall,
    Reply,
    ToolHost,
    ToolList,
    described_tools,
    first_field,
    name_of,
    plain_data,
    results_of,
    unique_ids,
    without_nulls,
)
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult


def tools(host: ToolHost, principal: Principal | None = None) -> ToolList:
    """Return what *principal* is offered, for the `tools` of a request.

    Items are kept for the next request: copy one before writing to it.
    """
    return described_tools(host, principal)


async def run(
    host: ToolHost,
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
    results = await results_of(host, reply.calls, tools, principal, session)
    blocks = [_answer(call, result) for call, result in zip(reply.calls, results, strict=True)]
    return [*reply.messages, {"role": "user", "content": blocks}] if blocks else reply.messages


def read(response: Any) -> Reply:
    """Read what a model said."""
    content = first_field(response, "content")
    if content is None:
        raise ValueError(f"expected a message with content, got {type(response).__name__}")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = [without_nulls(plain_data(block)) for block in content]
    ids = iter(unique_ids([block.get("id") for block in blocks if block.get("type") == "tool_use"]))
    repeated: list[dict[str, Any]] = []
    calls: list[ModelCall] = []
    for block in blocks:
        if block.get("type") == "tool_use":
            calls.append(ModelCall(next(ids), name_of(block.get("name")), block.get("input")))
            repeated.append(_repeated_call(block, calls[-1]))
        elif not _is_blank(block):
            repeated.append(block)
    return Reply([{"role": "assistant", "content": repeated}] if repeated else [], calls)


def _repeated_call(block: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    given = call.arguments if isinstance(call.arguments, Mapping) else {}
    return {**block, "id": call.id, "name": call.wire, "input": given}


def _is_blank(block: dict[str, Any]) -> bool:
    """Tell whether a block is a text without any: the model may say it, but a request may not repeat it."""
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def _answer(call: ModelCall, result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id, "content": result.content}
    return block if result.success else {**block, "is_error": True}
