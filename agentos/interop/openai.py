"""OpenAI and every endpoint that speaks its language: tools out, calls in, for chat completions and responses."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from agentos.interop._provider_calls import (
    Message,
    ModelCall,
    Reply,
    RunMessages,
    ToolHost,
    ToolList,
    first_field,
    name_of,
    names_of_list,
    plain_data,
    provider_list,
    results_of,
    unique_ids,
    without_nulls,
)
from agentos.interop._provider_media import (
    IMAGES,
    PDF,
    Part,
    data_url,
    encoded,
    file_name,
    labelled,
    nothing_shown,
    shown_result,
    web_address,
)
from agentos.interop._provider_schemas import flat_schema
from agentos.interop._strict_schemas import NotStrictError, Restorer, strict_schema
from agentos.model.media import Media
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.tools.listing import ToolInfo
from agentos.tools.wire_names import WireNames

Api = Literal["chat", "responses"]


# -- out ---------------------------------------------------------------------------------------------------------


def tools(host: ToolHost, principal: Principal | None = None, *, api: Api = "chat", strict: bool = False) -> ToolList:
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
        items.append({"type": "function", **(function if api == "responses" else {"function": function})})
    return ToolList(items, names, restorers)


def _parameters(info: ToolInfo, *, strict: bool) -> tuple[dict[str, Any], bool]:
    if strict:
        try:
            return strict_schema(info.input_schema), True
        except NotStrictError:
            pass
    return flat_schema(info.input_schema), False


# -- in ----------------------------------------------------------------------------------------------------------


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

    *response* is an SDK's object or a mapping: a chat completion, one of its messages, or a response. *tools* is the
    list that was sent. What comes back is what the model said and then one answer for every call it made. Images,
    sound and PDF files of results are shown to the model; without *media* it reads their names alone. Its `results`
    are what the calls came to, and its `pending` the proposals that wait for a person.
    """
    reply = read(response)
    results = await results_of(host, reply.calls, tools, principal, session, list_with_names)
    made = answers(reply.calls, results, media=media)
    return RunMessages([*reply.messages, *made, *(media_messages(reply.calls, results) if media else ())], results)


def list_with_names(host: ToolHost, given: Sequence[Any], principal: Principal) -> ToolList:
    """Return the list that was sent, with its way back; of a plain list it is found again."""
    named = names_of_list(host, given, principal)
    if named is given or not (strict := [wire for wire in map(_strict_name, given or ()) if wire]):
        return named
    known = tools(host, principal, strict=True).restorers
    names = [name for name in map(named.names.decode, strict) if name in known]
    return ToolList((), named.names, {name: known[name] for name in names})


def _strict_name(item: Any) -> str | None:
    function = first_field(item, "function") or item
    return name_of(first_field(function, "name")) if first_field(function, "strict") is True else None


def read(response: Any) -> Reply:
    """Read what a model said: of a chat completion, of a message of one, or of a response."""
    if first_field(response, "output") is not None:
        return _read_response(first_field(response, "output"))
    message = _message(response)
    if message is None:
        raise ValueError(
            f"expected a chat completion with choices or a response with output, got {type(response).__name__}"
        )
    return _read_message(plain_data(message))


def _message(response: Any) -> Any:
    choices = first_field(response, "choices")
    if choices:
        return first_field(choices[0], "message")
    return response if first_field(response, "role") == "assistant" else None


def _read_message(message: dict[str, Any]) -> Reply:
    given = message.get("tool_calls") or []
    ids = unique_ids([one.get("id") for one in given])
    calls = [_call_in_chat(one, id) for one, id in zip(given, ids, strict=True)]
    repeated = without_nulls(message, "annotations", "parsed", "tool_calls", "function_call")
    repeated = {"role": "assistant", "content": repeated.pop("content", None if calls else ""), **repeated}
    if "audio" in repeated:
        repeated["audio"] = {"id": repeated["audio"].get("id")}
    if calls:
        repeated["tool_calls"] = [_repeated_call(one, call) for one, call in zip(given, calls, strict=True)]
    return Reply([repeated], calls)


def _call_in_chat(call: dict[str, Any], id: str) -> ModelCall:
    if call.get("type") == "custom":
        custom = call.get("custom") or {}
        return ModelCall(id, name_of(custom.get("name")), custom.get("input"), "custom")
    function = call.get("function") or {}
    return ModelCall(id, name_of(function.get("name")), function.get("arguments"))


def _repeated_call(given: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    """Return a call as the next request repeats it; what a provider put beside it, such as a signature, stays."""
    repeated = {**without_nulls(given, "index"), "id": call.id, "type": call.kind}
    if call.kind == "custom":
        repeated["custom"] = {"name": call.wire, "input": call.arguments or ""}
    else:
        extra = without_nulls(given.get("function") or {}, "parsed_arguments")
        repeated["function"] = {**extra, "name": call.wire, "arguments": call.arguments_json}
    return repeated


_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


def _read_response(output: Any) -> Reply:
    items = [without_nulls(plain_data(item), "parsed_arguments") for item in output]
    wanted = [item for item in items if item.get("type") in _CALLS]
    ids = iter(unique_ids([item.get("call_id") for item in wanted]))
    messages: list[Message] = []
    calls: list[ModelCall] = []
    for item in items:
        kind = item.get("type")
        if kind in _CALLS:
            call = ModelCall(next(ids), name_of(item.get("name")), item.get(_CALLS[kind]), kind)
            calls.append(call)
            given = str(call.arguments or "") if kind == "custom_tool_call" else call.arguments_json
            messages.append({**item, "call_id": call.id, "name": call.wire, _CALLS[kind]: given})
        else:
            messages.append(_repeated_item(item))
    return Reply(messages, calls)


def _repeated_item(item: dict[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if item.get("type") != "message" or not isinstance(content, list):
        return item
    return {**item, "content": [without_nulls(part, "parsed") for part in content]}


def answers(calls: Sequence[ModelCall], results: Sequence[ToolResult], *, media: bool = True) -> list[Message]:
    """Return one answer for each call. In chat completions it is text, and `media_messages` has what is more."""
    return [_answer(call, result, media=media) for call, result in zip(calls, results, strict=True)]


def _answer(call: ModelCall, result: ToolResult, *, media: bool) -> Message:
    if call.kind in _CALLS:
        shown = shown_result(result, _in_response if media else nothing_shown)
        output = [{"type": "input_text", "text": shown.text}, *shown.parts] if shown.parts else shown.text
        return {"type": f"{call.kind}_output", "call_id": call.id, "output": output}
    text = shown_result(result, _in_chat if media else nothing_shown).text
    return {"role": "tool", "tool_call_id": call.id, "content": text}


# -- media ---------------------------------------------------------------------------------------------------------

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_ENDINGS = {PDF: ".pdf"}


def media_messages(calls: Sequence[ModelCall], results: Sequence[ToolResult]) -> list[Message]:
    """Return the message that shows what results have beside text, to be put behind all answers of a chat completion.

    A tool's own message takes text alone, so it is one of the user's, which says of each part where it comes from.
    Nothing is returned for the responses API, whose answers carry it, or if there is nothing to show.
    """
    shown = [
        [] if call.kind in _CALLS else shown_result(result, _in_chat).parts
        for call, result in zip(calls, results, strict=True)
    ]
    parts = labelled(calls, shown, lambda text: {"type": "text", "text": text})
    return [{"role": "user", "content": parts}] if parts else []


def _in_chat(media: Media) -> Part | None:
    if media.type in IMAGES and (address := _address(media)):
        return {"type": "image_url", "image_url": {"url": address}}
    if not media.data:
        return None
    if media.type in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": encoded(media), "format": _SOUNDS[media.type]}}
    if media.type == PDF:
        return {"type": "file", "file": {"filename": file_name(media, _ENDINGS), "file_data": data_url(media)}}
    return None


def _in_response(media: Media) -> Part | None:
    if media.type in IMAGES and (address := _address(media)):
        return {"type": "input_image", "image_url": address, "detail": "auto"}
    if media.type == PDF and media.data:
        return {"type": "input_file", "filename": file_name(media, _ENDINGS), "file_data": data_url(media)}
    return None


def _address(media: Media) -> str | None:
    return data_url(media) if media.data else web_address(media)
