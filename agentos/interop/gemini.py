"""Gemini, by google-genai or plain REST: function declarations out, calls in."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentos.interop._provider_calls import (
    PENDING,
    Message,
    ModelCall,
    Reply,
    RunMessages,
    ToolHost,
    ToolList,
    built_one_by_one,
    first_field,
    is_failure,
    name_of,
    plain_data,
    provider_list,
    results_of,
    unique_ids,
    without_nulls,
)
from agentos.interop._provider_media import (
    PDF,
    Part,
    ShownResult,
    encoded,
    labelled,
    nothing_shown,
    shown_result,
)
from agentos.interop._provider_schemas import object_schema
from agentos.model.media import Media
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.tools.listing import ToolInfo

_SPELLINGS = ("function_call", "functionCall")


def tools(host: ToolHost, principal: Principal | None = None) -> ToolList:
    """Return what *principal* is offered, as the `function_declarations` of a tool of a request.

    Items are kept for the next request: copy one before writing to it.
    """
    return provider_list(host, principal, "gemini", built_one_by_one(_declaration))


def _declaration(info: ToolInfo, wire: str) -> dict[str, Any]:
    parameters = object_schema(info.input_schema)
    return {"name": wire, "description": info.description, "parameters_json_schema": parameters}


async def run(
    host: ToolHost,
    response: Any,
    tools: Sequence[Any],
    principal: Principal | None = None,
    *,
    session: Mapping[str, Any] | None = None,
    media: bool = True,
) -> RunMessages:
    """Run the function calls of *response*, side by side, and return the contents to append for the next request.

    *response* is google-genai's response or a mapping; *tools* is the list that was sent. What comes back is the
    model's content and, if it made calls, one user content with a function response for each. Images, sound and PDF
    files of results are shown to the model; without *media* it reads their names alone. Its `results` are what the
    calls came to, and its `pending` the proposals that wait for a person.
    """
    reply = read(response)
    results = await results_of(host, reply.calls, tools, principal, session)
    return RunMessages([*reply.messages, *answers(reply.calls, results, media=media)], results)


def read(response: Any) -> Reply:
    """Read what a model said: of a response, or of one content of it."""
    candidates = first_field(response, "candidates")
    content = first_field(candidates[0], "content") if candidates else response
    given = [plain_data(part, by_alias=False) for part in first_field(content, "parts") or ()]
    keys = [next((key for key in _SPELLINGS if part.get(key) is not None), None) for part in given]
    ids = iter(_ids([part[key].get("id") for part, key in zip(given, keys, strict=True) if key]))
    parts: list[dict[str, Any]] = []
    calls: list[ModelCall] = []
    for part, key in zip(given, keys, strict=True):
        repeated = without_nulls(part)
        if key is not None:
            given_call = repeated[key]
            calls.append(ModelCall(next(ids), name_of(given_call.get("name")), given_call.get("args")))
            repeated[key] = _repeated_call(given_call, calls[-1])
        parts.append(repeated)
    return Reply([{"role": "model", "parts": parts}] if parts else [], calls)


def _ids(given: list[Any]) -> list[str]:
    """Return an id for each call. Where the provider gives none at all it matches by order, and so do we."""
    return unique_ids(given) if any(given) else ["" for _ in given]


def _repeated_call(given: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    repeated = {**without_nulls(given), "name": call.wire}
    return {**repeated, "id": call.id} if call.id else repeated


def answers(calls: Sequence[ModelCall], results: Sequence[ToolResult], *, media: bool = True) -> list[Message]:
    """Return one content with a function response for each call, and behind them what they show; none without calls.

    Not every model takes media inside of a function response; all that see or hear take it beside.
    """
    shown = [shown_result(result, _inline if media else nothing_shown) for result in results]
    parts = [_answer(call, result, its) for call, result, its in zip(calls, results, shown, strict=True)]
    parts += labelled(calls, [its.parts for its in shown], lambda text: {"text": text})
    return [{"role": "user", "parts": parts}] if parts else []


def _answer(call: ModelCall, result: ToolResult, shown: ShownResult) -> Part:
    response: Part = {"error" if is_failure(result) else "output": shown.text}
    if result.pending is not None:
        response["_meta"] = {PENDING: dict(result.pending)}
    answer: Part = {"name": call.wire, "response": response}
    return {"function_response": {"id": call.id, **answer} if call.id else answer}


_INLINE = frozenset(
    {
        *("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", PDF),
        *("audio/wav", "audio/mpeg", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"),
    }
)


def _inline(media: Media) -> Part | None:
    if media.type not in _INLINE or not media.data:
        return None
    return {"inline_data": {"mime_type": media.type, "data": encoded(media)}}
