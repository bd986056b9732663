"""Gemini, by google-genai or plain REST: function declarations out, calls in."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentos.interop._provider_schemas import object_schema
from agentos.interop._shared import (
    Asked,
    Host,
    Message,
    Reply,
    ToolList,
    each,
    name_of,
    pick,
    plain,
    provider_list,
    results_of,
    unique_ids,
    way_back,
    without_nulls,
)
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.tools.listing import ToolInfo

_SPELLINGS = ("function_call", "functionCall")


def tools(host: Host, principal: Principal | None = None) -> ToolList:
    """Return what *principal* is offered, as the `function_declarations` of a tool of a request.

    Items are kept for the next request: copy one before writing to it.
    """
    return provider_list(host, principal, "gemini", each(_declaration))


def _declaration(info: ToolInfo, wire: str) -> dict[str, Any]:
    parameters = object_schema(info.input_schema)
    return {"name": wire, "description": info.description, "parameters_json_schema": parameters}


async def run(
    host: Host,
    response: Any,
    tools: Sequence[Any],
    principal: Principal | None = None,
    *,
    session: Mapping[str, Any] | None = None,
) -> list[Message]:
    """Run the function calls of *response*, side by side, and return the contents to append for the next request.

    *response* is google-genai's response or a mapping; *tools* is the list that was sent. What comes back is the
    model's content and, if it made calls, one user content with a function response for each.
    """
    reply = read(response)
    results = await results_of(host, reply.calls, way_back(host, tools, principal), principal, session)
    parts = [_answer(asked, result) for asked, result in zip(reply.calls, results, strict=True)]
    return [*reply.said, {"role": "user", "parts": parts}] if parts else reply.said


def read(response: Any) -> Reply:
    """Read what a model said: of a response, or of one content of it."""
    candidates = pick(response, "candidates")
    content = pick(candidates[0], "content") if candidates else response
    given = [plain(part, by_alias=False) for part in pick(content, "parts") or ()]
    keys = [next((key for key in _SPELLINGS if part.get(key) is not None), None) for part in given]
    ids = iter(_ids([part[key].get("id") for part, key in zip(given, keys, strict=True) if key]))
    parts: list[dict[str, Any]] = []
    calls: list[Asked] = []
    for part, key in zip(given, keys, strict=True):
        said = without_nulls(part)
        if key is not None:
            call = said[key]
            calls.append(Asked(next(ids), name_of(call.get("name")), call.get("args")))
            said[key] = _said_call(call, calls[-1])
        parts.append(said)
    return Reply([{"role": "model", "parts": parts}] if parts else [], calls)


def _ids(given: list[Any]) -> list[str]:
    """Return an id for each call. Where the provider gives none at all it matches by order, and so do we."""
    return unique_ids(given) if any(given) else ["" for _ in given]


def _said_call(call: dict[str, Any], asked: Asked) -> dict[str, Any]:
    said = {**without_nulls(call), "name": asked.wire}
    return {**said, "id": asked.id} if asked.id else said


def _answer(asked: Asked, result: ToolResult) -> dict[str, Any]:
    response = {"output" if result.success else "error": result.content}
    answer: dict[str, Any] = {"name": asked.wire, "response": response}
    return {"function_response": {"id": asked.id, **answer} if asked.id else answer}
