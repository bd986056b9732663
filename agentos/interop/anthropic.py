"""Anthropic: tools out, calls in."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentos.interop._provider_calls import (
    Message,
    ModelCall,
    Reply,
    RunMessages,
    ToolHost,
    ToolList,
    described_tools,
    first_field,
    is_failure,
    name_of,
    plain_data,
    results_of,
    unique_ids,
    without_nulls,
)
from agentos.interop._provider_media import (
    IMAGES,
    PDF,
    Part,
    ShownResult,
    encoded,
    labelled,
    nothing_shown,
    shown_result,
    web_address,
)
from agentos.model.media import Media
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
    media: bool = True,
) -> RunMessages:
    """Run the tool calls of *response*, side by side, and return what to append for the next request.

    *response* is the SDK's message or a mapping; *tools* is the list that was sent. What comes back is the assistant's
    message and, if it made calls, one user message with a result for each. Images and PDF files of results are shown
    to the model; without *media* it reads their names alone. Its `results` are what the calls came to, and its
    `pending` the proposals that wait for a person.
    """
    reply = read(response)
    results = await results_of(host, reply.calls, tools, principal, session)
    return RunMessages([*reply.messages, *answers(reply.calls, results, media=media)], results)


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


def answers(calls: Sequence[ModelCall], results: Sequence[ToolResult], *, media: bool = True) -> list[Message]:
    """Return one message with a result for each call, and behind them what failures show; none without calls.

    A result that is marked as an error takes text alone.
    """
    shown = [shown_result(result, _block if media else nothing_shown) for result in results]
    blocks = [_answer(call, result, its) for call, result, its in zip(calls, results, shown, strict=True)]
    beside = [its.parts if is_failure(result) else [] for result, its in zip(results, shown, strict=True)]
    content = [*blocks, *labelled(calls, beside, _text)]
    return [{"role": "user", "content": content}] if content else []


def _answer(call: ModelCall, result: ToolResult, shown: ShownResult) -> Part:
    block: Part = {"type": "tool_result", "tool_use_id": call.id, "content": shown.text}
    if is_failure(result):
        return {**block, "is_error": True}
    return {**block, "content": [_text(shown.text), *shown.parts]} if shown.parts else block


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


_IMAGE_LIMIT = 3_750_000
"""How many bytes an image may have: a request with a larger one is refused whole."""


def _block(media: Media) -> Part | None:
    kind = "image" if media.type in IMAGES else "document" if media.type == PDF else None
    if kind is None or (kind == "image" and (media.size or 0) > _IMAGE_LIMIT):
        return None
    if media.data:
        return {"type": kind, "source": {"type": "base64", "media_type": media.type, "data": encoded(media)}}
    address = web_address(media)
    return None if address is None else {"type": kind, "source": {"type": "url", "url": address}}
