"""OpenAI and every endpoint that speaks its language: tools out, calls in, for chat completions and responses."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from agentos.interop._provider_schemas import flat_schema
from agentos.interop._shared import (
    Asked,
    Host,
    Message,
    Reply,
    ToolList,
    name_of,
    pick,
    plain,
    provider_list,
    results_of,
    unique_ids,
    way_back,
    without_nulls,
)
from agentos.interop._strict import NotStrictError, Restorer, strict_schema
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.tools.listing import ToolInfo
from agentos.tools.wire_names import WireNames

Api = Literal["chat", "responses"]


# -- out ---------------------------------------------------------------------------------------------------------


def tools(host: Host, principal: Principal | None = None, *, api: Api = "chat", strict: bool = False) -> ToolList:
    """Return what *principal* is offered, for the `tools` of a request.

    With *strict* each schema that allows it is made strict; a tool whose schema does not is sent as it is. Items are
    kept for the next request: copy one before writing to it.
    """
    if api not in ("chat", "responses"):
        raise ValueError(f"api: expected 'chat' or 'responses', got {api!r}")
    return provider_list(host, principal, ("openai", api, strict), partial(_build, api=api, strict=strict))


def _build(infos: Sequence[ToolInfo], names: WireNames, *, api: Api, strict: bool) -> ToolList:
    items: list[dict[str, Any]] = []
    restorers: dict[str, Restorer] = {}
    for info in infos:
        parameters, is_strict = _parameters(info, strict=strict)
        function: dict[str, Any] = {"name": names.to_wire[info.name], "description": info.description}
        function["parameters"] = parameters
        if strict or api == "responses":  # there, what is not said is strict
            function["strict"] = is_strict
        if is_strict:
            restorers[info.name] = Restorer(info.input_schema)
        items.append(_item(function, api))
    return ToolList(items, names, restorers)


def _item(function: dict[str, Any], api: Api) -> dict[str, Any]:
    return {"type": "function", **function} if api == "responses" else {"type": "function", "function": function}


def _parameters(info: ToolInfo, *, strict: bool) -> tuple[dict[str, Any], bool]:
    if strict:
        try:
            return strict_schema(info.input_schema), True
        except NotStrictError:
            pass
    return flat_schema(info.input_schema), False


# -- in ----------------------------------------------------------------------------------------------------------


async def run(
    host: Host,
    response: Any,
    tools: Sequence[Any],
    principal: Principal | None = None,
    *,
    session: Mapping[str, Any] | None = None,
) -> list[Message]:
    """Run the tool calls of *response*, side by side, and return what to append for the next request.

    *response* is an SDK's object or a mapping: a chat completion, one of its messages, or a response. *tools* is the
    list that was sent. What comes back is what the model said and then one answer for every call it made.
    """
    reply = read(response)
    results = await results_of(host, reply.calls, with_names(host, tools, principal), principal, session)
    return [*reply.said, *answers(reply.calls, results)]


def with_names(host: Host, given: Sequence[Any], principal: Principal | None) -> ToolList:
    """Return the list that was sent, with its way back; of a plain list it is found again."""
    named = way_back(host, given, principal)
    if named is given or not (strict := [wire for wire in map(_strict_name, given or ()) if wire]):
        return named
    known = tools(host, principal, strict=True).restorers
    names = [name for name in map(named.names.decode, strict) if name in known]
    return ToolList((), named.names, {name: known[name] for name in names})


def _strict_name(item: Any) -> str | None:
    function = pick(item, "function") or item
    return name_of(pick(function, "name")) if pick(function, "strict") is True else None


def read(response: Any) -> Reply:
    """Read what a model said: of a chat completion, of a message of one, or of a response."""
    if pick(response, "output") is not None:
        return _read_response(pick(response, "output"))
    message = _message(response)
    if message is None:
        raise ValueError(
            f"expected a chat completion with choices or a response with output, got {type(response).__name__}"
        )
    return _read_message(plain(message))


def _message(response: Any) -> Any:
    choices = pick(response, "choices")
    if choices:
        return pick(choices[0], "message")
    return response if pick(response, "role") == "assistant" else None


def _read_message(message: dict[str, Any]) -> Reply:
    given = message.get("tool_calls") or []
    ids = unique_ids([call.get("id") for call in given])
    calls = [_asked_in_chat(call, id) for call, id in zip(given, ids, strict=True)]
    said = without_nulls(message, "annotations", "parsed", "tool_calls", "function_call")
    said = {"role": "assistant", "content": said.pop("content", None if calls else ""), **said}
    if "audio" in said:
        said["audio"] = {"id": said["audio"].get("id")}
    if calls:
        said["tool_calls"] = [_said_call(call, asked) for call, asked in zip(given, calls, strict=True)]
    return Reply([said], calls)


def _asked_in_chat(call: dict[str, Any], id: str) -> Asked:
    if call.get("type") == "custom":
        custom = call.get("custom") or {}
        return Asked(id, name_of(custom.get("name")), custom.get("input"), "custom")
    function = call.get("function") or {}
    return Asked(id, name_of(function.get("name")), function.get("arguments"))


def _said_call(call: dict[str, Any], asked: Asked) -> dict[str, Any]:
    """Return a call as the next request repeats it; what a provider put beside it, such as a signature, stays."""
    said = {**without_nulls(call, "index"), "id": asked.id, "type": asked.kind}
    if asked.kind == "custom":
        said["custom"] = {"name": asked.wire, "input": asked.arguments or ""}
    else:
        extra = without_nulls(call.get("function") or {}, "parsed_arguments")
        said["function"] = {**extra, "name": asked.wire, "arguments": asked.echo}
    return said


_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


def _read_response(output: Any) -> Reply:
    items = [without_nulls(plain(item), "parsed_arguments") for item in output]
    wanted = [item for item in items if item.get("type") in _CALLS]
    ids = iter(unique_ids([item.get("call_id") for item in wanted]))
    said: list[Message] = []
    calls: list[Asked] = []
    for item in items:
        kind = item.get("type")
        if kind in _CALLS:
            asked = Asked(next(ids), name_of(item.get("name")), item.get(_CALLS[kind]), kind)
            calls.append(asked)
            said.append({**item, "call_id": asked.id, "name": asked.wire, _CALLS[kind]: _text(asked)})
        else:
            said.append(_said_item(item))
    return Reply(said, calls)


def _text(asked: Asked) -> str:
    return str(asked.arguments or "") if asked.kind == "custom_tool_call" else asked.echo


def _said_item(item: dict[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if item.get("type") != "message" or not isinstance(content, list):
        return item
    return {**item, "content": [without_nulls(part, "parsed") for part in content]}


def answers(calls: Sequence[Asked], results: Sequence[ToolResult]) -> list[Message]:
    """Return one answer for each call."""
    return [_answer(asked, result) for asked, result in zip(calls, results, strict=True)]


def _answer(asked: Asked, result: ToolResult) -> Message:
    if asked.kind in _CALLS:
        return {"type": f"{asked.kind}_output", "call_id": asked.id, "output": result.content}
    return {"role": "tool", "tool_call_id": asked.id, "content": result.content}
