"""What the scenarios ask for and agentos has no word for: a host may add it to the SDK's server by itself.

The suite was made for SDKs. It wants tools that talk to the client in the middle of a call, prompts with arguments,
resources of any address, completion, and log levels. Here they are beside everything that agentos serves, on the same
server and through the same transport. The tools are tools of a pack still: a call of one passes through the whole of
agentos, and only what it says to the client is carried around it.
"""

import json
import warnings
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import attrs
import mcp_types as types
from fixture_pack import PNG, fixture, note
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from agentos import ExtensionPack

warnings.simplefilter("ignore", MCPDeprecationWarning)  # sampling and logging are what the handshake era asks for

Context = ServerRequestContext[Any, Any]

_MARK = "conformance"

# -- beside a call -------------------------------------------------------------------------------------------------


@attrs.frozen
class Exchange:
    """What a tool says to the client, and hears from it, beside its arguments and its result."""

    ctx: Context
    responses: Mapping[str, Any]
    state: str | None

    @property
    def can(self) -> types.ClientCapabilities:
        """Return what the client said that it can do."""
        return self.ctx.session.client_capabilities or types.ClientCapabilities()

    def said(self, key: str, field: str) -> Any:
        """Return a field of the form that the client filled in; None if it is not there."""
        answer = self.responses.get(key, {})
        return (answer.get("content") or {}).get(field) if answer.get("action") == "accept" else None

    async def log(self, text: str) -> None:
        """Send a message of the log, with the call that it belongs to."""
        await self.ctx.session.send_log_message("info", text, related_request_id=self.ctx.request_id)

    async def ask(self, message: str, properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> str:
        """Put a form before a person while the call waits, and tell what came back."""
        form = {"type": "object", "properties": properties, "required": list(required)}
        answer = await self.ctx.session.elicit_form(message, form, related_request_id=self.ctx.request_id)
        return f"action={answer.action}, content={json.dumps(answer.content)}"


_current: ContextVar[Exchange] = ContextVar("exchange")


async def _carry(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Hand a tool of the additions what is not for agentos, and give its result the form that it asks for."""
    if ctx.method != "tools/call" or (ctx.params or {}).get("name") not in NAMES:
        return await call_next(ctx)
    params = dict(ctx.params or {})
    exchange = Exchange(ctx, _responses(params.pop("inputResponses", {})), params.pop("requestState", None))
    token = _current.set(exchange)
    try:
        result = await call_next(replace(ctx, params=params))
    finally:
        _current.reset(token)
    return _shaped(result)


def _responses(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
        raise MCPError(types.INVALID_PARAMS, "inputResponses: expected an object of objects")
    return given


def _shaped(result: Any) -> HandlerResult:
    told = (result.get("structuredContent") or {}).get(_MARK)
    if told is None:
        return result
    if "needs" in told:
        data = {"requiredCapabilities": told["needs"]}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "The client lacks a capability", data)
    rest = {key: value for key, value in result.items() if key not in ("structuredContent", "content", "isError")}
    return {**rest, **told}


def _asking(state: str | None = None, **requests: Mapping[str, Any]) -> dict[str, Any]:
    told = {"resultType": "input_required", "inputRequests": requests}
    return {_MARK: told if state is None else {**told, "requestState": state}}


def _form(message: str, field: str, kind: str = "string") -> dict[str, Any]:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def _sampling(text: str) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}}


_ROOTS = {"method": "roots/list", "params": {}}

# -- content that is more than text --------------------------------------------------------------------------------

_IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _embedded(uri: str, mime_type: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}


# -- talking to the client while a call waits (handshake era) --------------------------------------------------------


@fixture()
async def test_tool_with_logging() -> str:
    """Tell the client what it is doing."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await _current.get().log(text)
    return "done"


@fixture()
async def test_sampling(prompt: str) -> str:
    """Let the client's model answer."""
    ctx = _current.get().ctx
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {getattr(answer.content, 'text', '')}"


@fixture()
async def test_elicitation(message: str) -> str:
    """Ask the user for a name and an address."""
    fields = {"username": "User's response", "email": "User's email address"}
    properties = {name: {"type": "string", "description": text} for name, text in fields.items()}
    return "User response: " + await _current.get().ask(message, properties, tuple(fields))


_DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
_ENUMS = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


@fixture()
async def test_elicitation_sep1034_defaults() -> str:
    """Ask with a default for everything."""
    return "Elicitation completed: " + await _current.get().ask("Review the defaults", _DEFAULTS)


@fixture()
async def test_elicitation_sep1330_enums() -> str:
    """Ask with every kind of choice."""
    return "Elicitation completed: " + await _current.get().ask("Choose", _ENUMS)


# -- results that ask (2026-07-28) ---------------------------------------------------------------------------------


@fixture()
async def test_missing_capability() -> Any:
    """Need a client that can sample."""
    if _current.get().can.sampling is None:
        return {_MARK: {"needs": {"sampling": {}}}}
    return "sampling is there"


@fixture()
async def test_input_required_result_elicitation() -> Any:
    """Greet whoever gives a name."""
    name = _current.get().said("user_name", "name")
    return f"Hello, {name}!" if name else _asking(user_name=_form("What is your name?", "name"))


@fixture()
async def test_input_required_result_sampling() -> Any:
    """Let the client's model name a capital."""
    answer = _current.get().responses.get("capital_question")
    if answer is None:
        return _asking(capital_question=_sampling("What is the capital of France?"))
    return f"The model says: {answer['content']['text']}"


@fixture()
async def test_input_required_result_list_roots() -> Any:
    """Tell which roots the client has."""
    answer = _current.get().responses.get("client_roots")
    if answer is None:
        return _asking(client_roots=_ROOTS)
    return "Roots: " + ", ".join(root["uri"] for root in answer["roots"])


@fixture()
async def test_input_required_result_request_state() -> Any:
    """Remember what was asked."""
    exchange = _current.get()
    if exchange.state == "asked" and exchange.said("confirm", "ok"):
        return "state-ok"
    return _asking("asked", confirm=_form("Please confirm", "ok", "boolean"))


@fixture()
async def test_input_required_result_multiple_inputs() -> Any:
    """Ask for three things at once."""
    exchange = _current.get()
    asked = {
        "user_name": _form("What is your name?", "name"),
        "greeting": _sampling("Generate a greeting"),
        "client_roots": _ROOTS,
    }
    if exchange.state == "all" and asked.keys() <= exchange.responses.keys():
        return f"{exchange.said('user_name', 'name')} answered everything"
    return _asking("all", **asked)


@fixture()
async def test_input_required_result_multi_round() -> Any:
    """Ask twice, and remember the first answer."""
    exchange = _current.get()
    if exchange.state is None:
        return _asking("begun", step1=_form("Step 1: What is your name?", "name"))
    if (name := exchange.said("step1", "name")) is not None:
        return _asking(f"name {name}", step2=_form("Step 2: What is your favorite color?", "color"))
    return f"{exchange.state}, color {exchange.said('step2', 'color')}"


@fixture()
async def test_input_required_result_capabilities() -> Any:
    """Ask only for what the client can give."""
    can, asked = _current.get().can, {}
    if can.elicitation is not None:
        asked["name"] = _form("What is your name?", "name")
    if can.sampling is not None:
        asked["greeting"] = _sampling("Generate a greeting")
    return _asking(**asked)


TOOLS = [
    test_tool_with_logging,
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_missing_capability,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
]
NAMES = frozenset(tool.name for tool in TOOLS)


def create_extension_pack() -> ExtensionPack:
    """Return the tools. Two of them stand in front of the fixture pack's."""
    return ExtensionPack("additions", "1.0", TOOLS, description="What a host adds for the conformance suite.")


# -- prompts -------------------------------------------------------------------------------------------------------


def _argument(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"The argument {name}", "required": True}


def _prompt(name: str, *arguments: str) -> dict[str, Any]:
    return {"name": name, "description": f"{name}, for tests", "arguments": [_argument(one) for one in arguments]}


PROMPTS = [
    _prompt("test_simple_prompt"),
    _prompt("test_prompt_with_arguments", "arg1", "arg2"),
    _prompt("test_prompt_with_embedded_resource", "resourceUri"),
    _prompt("test_prompt_with_image"),
    _prompt("test_input_required_result_prompt"),
]


def _messages(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": block} for block in blocks]
    return {"messages": messages, "resultType": "complete"}


def _prompted(params: types.GetPromptRequestParams) -> Any:
    """Return a prompt of ours; None if it is none."""
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _messages(_text("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            return _messages(_text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))
        case "test_prompt_with_embedded_resource":
            resource = _embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return _messages(resource, _text("Please process the embedded resource above."))
        case "test_prompt_with_image":
            return _messages(_IMAGE, _text("Please analyze the image above."))
        case "test_input_required_result_prompt":
            answer = (params.input_responses or {}).get("user_context")
            if isinstance(answer, types.ElicitResult) and answer.content:
                return _messages(_text(f"The context is {answer.content['context']}"))
            return _asking(user_context=_form("What context should the prompt use?", "context"))[_MARK]
    return None


# -- resources -----------------------------------------------------------------------------------------------------

_TEMPLATE = "test://template/"
RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}


def _read(uri: str) -> dict[str, Any] | None:
    """Return a resource of ours; None if it is none."""
    found = RESOURCES.get(uri)
    if uri.startswith(_TEMPLATE):
        id = uri.removeprefix(_TEMPLATE).removesuffix("/data")
        data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
        found = {"mimeType": "application/json", "text": json.dumps(data)}
    if found is None:
        return None
    return {"contents": [{"uri": uri, **found}], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


# -- on a server ---------------------------------------------------------------------------------------------------


def add_to(server: Server[Any]) -> None:
    """Serve all of it beside what *server* serves."""
    server.middleware.insert(len(server.middleware) - 1, _carry)  # within the seal, before calls are answered
    _extend(server, "prompts/list", "prompts", PROMPTS)
    listed = [{"uri": uri, "name": uri, "description": f"{uri}, for tests"} for uri in RESOURCES]
    _extend(server, "resources/list", "resources", listed)
    _extend(
        server,
        "resources/templates/list",
        "resourceTemplates",
        [{"uriTemplate": f"{_TEMPLATE}{{id}}/data", "name": "template"}],
    )
    _precede(server, "prompts/get", "name", _prompted)
    _precede(server, "resources/read", "uri", lambda params: _read(params.uri))
    server.add_request_handler("completion/complete", types.CompleteRequestParams, _complete)
    for method, kind in (
        ("logging/setLevel", types.SetLevelRequestParams),
        ("resources/subscribe", types.SubscribeRequestParams),
        ("resources/unsubscribe", types.UnsubscribeRequestParams),
    ):
        server.add_request_handler(method, kind, _accept)


def _extend(server: Server[Any], method: str, field: str, items: list[dict[str, Any]]) -> None:
    """Put *items* behind those that are listed."""
    standing = server.get_request_handler(method)

    async def handler(ctx: Context, params: Any) -> HandlerResult:
        listed = await standing.handler(ctx, params)
        return {**listed, field: [*listed[field], *items]}

    server.add_request_handler(method, standing.params_type, handler)


def _precede(server: Server[Any], method: str, key: str, find: Any) -> None:
    """Answer with what *find* finds, and else as before."""
    standing = server.get_request_handler(method)

    async def handler(ctx: Context, params: Any) -> HandlerResult:
        found = find(params)
        if found is None:
            return await standing.handler(ctx, params)
        note(getattr(params, key))
        return found

    server.add_request_handler(method, standing.params_type, handler)


async def _complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    note(ctx.method)
    offered = [word for word in ("test", "testing", "trial") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=offered, total=len(offered), has_more=False))


async def _accept(ctx: Context, params: Any) -> types.EmptyResult:
    note(ctx.method)
    return types.EmptyResult()
