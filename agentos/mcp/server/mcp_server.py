"""MCPServer: what a principal may see, served to MCP clients of both eras.

A request passes: span -> error containment -> the seal on request states -> handler. Calls go through the same
ToolOrchestrator as any other call of the host, so access is the same everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import mcp_types as types
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider
from pydantic import ValidationError

from agentos._version import __version__
from agentos.base.foreign import Border, is_a
from agentos.interop._provider_calls import named_principal
from agentos.mcp.content_blocks import blocks_for_client
from agentos.mcp.server.approval_prompts import ApprovalPrompts
from agentos.mcp.server.bridged_offers import BridgedOffers
from agentos.mcp.server.client_calls import ClientCalls
from agentos.mcp.server.client_questions import ClientQuestions
from agentos.mcp.server.documents import OWN_SCHEME, TEMPLATES, Documents
from agentos.mcp.server.list_changed import ListChangeNotifier
from agentos.mcp.server.own_tools import (
    PROPOSAL_TOOL_NAMES,
    SEARCH_TOOL_NAMES,
    MeantCall,
    OwnTool,
    ProposalTools,
    SearchTools,
)
from agentos.mcp.server.served_host import ServedHost
from agentos.mcp.server.shown_tools import PageCutter, ShownTools, is_modern, session_of_call
from agentos.mcp.server.wire_format import Item, call_result, encodable_data
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.secrets.masking import MaskingLogger

Context = ServerRequestContext[Any, Any]
Resolver = Callable[[Context], Principal | None]

RESOURCE_NOT_FOUND = -32002
"""What the handshake era says of an unknown resource; since 2026-07-28 it is a matter of invalid parameters."""
_STATE_LIFETIME = 86_400.0
"""How long a sealed state is accepted. What it asks about expires earlier, with its proposal."""
_PLAIN_FIELDS = frozenset({"name", "arguments", "_meta"})
_UNCACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class _NotifyingServer(Server[Any]):
    """The SDK's server, which declares list_changed whatever the transport."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the capabilities for a client of the handshake era, also where a transport passes no options."""
        told = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(told, experimental_capabilities, extensions)


class MCPServer:
    """Serves a host to MCP clients.

    principal: for whom requests are made: one for all, or a function that finds it for each and refuses by None.
        `Principal.system()` is the host itself, which may call everything; None means it too, and logs a warning.
    search_above: with more tools than this a client is shown `search_tools`, `load_tools` and `call_tool` instead; None
        shows all.
    approvals_tools: whether `proposals_*` are offered, for clients that can't put a question before a person.
    state_keys: at least 32 secret bytes each, for servers that share a store and take over from one another; by default
        a key of this process.
    account: on which budget a request's calls are counted; None, or left out, is its principal's.
    """

    def __init__(
        self,
        host: ServedHost,
        *,
        principal: Principal | Resolver | None = None,
        name: str = "agentos",
        instructions: str | None = None,
        search_above: int | None = 40,
        approvals_tools: bool = True,
        state_keys: Sequence[bytes | str] | None = None,
        account: Callable[[Context, Principal], str | None] | None = None,
    ) -> None:
        if not (principal is None or isinstance(principal, Principal) or callable(principal)):
            raise TypeError(f"principal: expected a Principal or a function, got {type(principal).__name__}")
        if search_above is not None and (isinstance(search_above, bool) or not isinstance(search_above, int)):
            raise TypeError(f"search_above: expected a number of tools or None, got {search_above!r}")
        self.host = host
        served = "MCP clients are served"
        self._principal = principal if callable(principal) else named_principal(host, principal, served)
        self._name = name
        self._instructions = instructions
        self._keys = state_keys
        self._account = account
        self._logger = MaskingLogger("agentos.mcp", host.extensions.masker)
        self._pages = PageCutter()
        reserved = (
            *(PROPOSAL_TOOL_NAMES if approvals_tools else ()),
            *(SEARCH_TOOL_NAMES if search_above is not None else ()),
        )
        self._shown = ShownTools(host, reserved, search_above)
        self._notifier = ListChangeNotifier(host, self._shown.tool_name)
        self._calls = ClientCalls(host, self._logger)
        self._questions = ClientQuestions(host, self._calls, self._logger)
        self._prompts = ApprovalPrompts(host, self._calls, self._questions, self._logger, has_tools=approvals_tools)
        self._documents = Documents(host, self._shown)
        self._bridged = BridgedOffers(host, self._logger)
        search_tools = SearchTools(self._shown, self._notifier, host.extensions.masker, reserved)
        self._search_tools = _by_name(search_tools.tools() if search_above is not None else ())
        self._proposal_tools = _by_name(ProposalTools(host, self._prompts).tools() if approvals_tools else ())
        self._own = {**self._search_tools, **self._proposal_tools}

    @cached_property
    def server(self) -> Server[Any]:
        """Return the SDK's low-level server: for a transport, or in memory for `mcp.Client(mcp_server.server)`."""
        made = _NotifyingServer(
            self._name,
            version=__version__,
            instructions=self._instructions,
            get_tool_input_schema=self._shown.input_schema,
            on_list_tools=self._list_tools,  # type: ignore[arg-type]  # dicts are results too: see HandlerResult
            on_call_tool=self._call_tool,  # type: ignore[arg-type]
            on_list_prompts=self._list_prompts,  # type: ignore[arg-type]
            on_get_prompt=self._get_prompt,  # type: ignore[arg-type]
            on_list_resources=self._list_resources,  # type: ignore[arg-type]
            on_list_resource_templates=self._list_templates,  # type: ignore[arg-type]
            on_read_resource=self._read_resource,  # type: ignore[arg-type]
            on_subscriptions_listen=self._listen,
        )
        made.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._notifier.on_initialized
        )
        boundary = RequestStateBoundary(self._security(), default_audience=self._name)
        made.middleware = [
            *map(_skip_unused_spans, made.middleware),
            self._contain_errors,
            boundary,
            self._answer_plain_call,
        ]
        return made

    @cached_property
    def _stamp(self) -> dict[str, Any]:
        """Return what every answer of the era without sessions says of the server; a shallow copy is enough."""
        return self.server.server_info_stamp

    def memory(self) -> Server[Any]:
        """Return what the SDK's client takes to connect within this process."""
        return self.server

    async def run_stdio(self) -> None:
        """Serve one client over stdin and stdout until it closes stdin, or SIGTERM or SIGINT comes."""
        from agentos.mcp.server.stdio import run

        try:
            await run(self.server)
        finally:
            await self.close()

    async def close(self) -> None:
        """End open streams in good order and leave nothing running. Connections are their transport's to end."""
        self._notifier.close()
        await self._questions.close()
        await self._calls.close()

    # -- errors --------------------------------------------------------------------------------------------

    async def _contain_errors(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Pass a request on. An exception is logged, and the client gets a plain internal error."""
        with Border() as border:
            self._principal_of(ctx)
            return await call_next(ctx)
        error = border.raised
        if not is_a(error, (MCPError, ValidationError)):  # not of the protocol itself: a client learns nothing
            self._logger.error("%s failed", ctx.method, exc_info=error)
            error = MCPError(types.INTERNAL_ERROR, "Internal error; the host's log says why")
        if ctx.request_id is not None:
            raise error
        return None  # nobody waits for an answer to a notification

    def _principal_of(self, ctx: Context) -> Principal:
        """Return the principal of a request."""
        if isinstance(self._principal, Principal):
            return self._principal
        found = self._principal(ctx)
        if found is None:
            raise MCPError(types.INVALID_REQUEST, "The request is refused: its principal is unknown")
        if not isinstance(found, Principal):
            raise TypeError(f"principal: expected a Principal or None, got {type(found).__name__}")
        return found

    def _security(self) -> RequestStateSecurity:
        if self._keys is None:
            made = RequestStateSecurity.ephemeral(ttl=_STATE_LIFETIME)
        else:
            made = RequestStateSecurity(keys=self._keys, ttl=_STATE_LIFETIME)
        made.bind_principal = lambda ctx: f"{self._principal_of(ctx).kind}:{self._principal_of(ctx).id}"
        return made

    # -- plain calls --------------------------------------------------------------------------------

    async def _answer_plain_call(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer a plain call at once, in the form it has on the wire.

        The SDK would check the request twice and the answer once more. The tool's own checks are stricter than the
        former, and the answer is made here: what is saved pays for access, validation and audit.
        """
        call = self._plain_call(ctx)
        if call is None:
            return await call_next(ctx)
        made = await self._answer(ctx, *call)
        if not isinstance(made, dict):
            made = made.model_dump(by_alias=True, mode="json", exclude_none=True)
        if is_modern(ctx):
            made["_meta"] = {**made.get("_meta", {}), types.SERVER_INFO_META_KEY: dict(self._stamp)}
        else:
            del made["resultType"]
        return made

    def _plain_call(self, ctx: Context) -> tuple[str, dict[str, Any] | None] | None:
        """Return name and arguments of a call that has nothing else to it, by a client that introduced itself."""
        params = ctx.params
        if ctx.method != "tools/call" or params is None or ctx.session.client_capabilities is None:
            return None
        name, arguments = params.get("name"), params.get("arguments")
        if type(name) is not str or name in self._own or not (arguments is None or type(arguments) is dict):
            return None
        return (name, arguments) if _PLAIN_FIELDS.issuperset(params) else None

    # -- tools -------------------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams) -> Item:
        who = self._principal_of(ctx)
        infos, cursor = self._pages.cut(self._shown.shown_to(ctx, who), params.cursor, self._shown.version)
        tools = self._shown.items(infos, modern=is_modern(ctx))
        if params.cursor is None:
            search_tools = self._search_tools if self._shown.uses_search(who) else {}
            tools = [*(own.item for own in (*search_tools.values(), *self._proposal_tools.values())), *tools]
        return _page("tools", tools, cursor)

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Item | types.InputRequiredResult:
        own = self._own.get(params.name)
        if own is None:
            return await self._answer(ctx, params.name, params.arguments, params)
        result = await own.run(ctx, self._principal_of(ctx), params.arguments)
        if isinstance(result, MeantCall):
            return await self._answer(ctx, result.name, result.arguments, params)
        return call_result(self.host.tools.executor.results.success(result, {}), None, is_modern=is_modern(ctx))

    async def _answer(
        self,
        ctx: Context,
        wire: str,
        arguments: Mapping[str, Any] | None,
        params: types.CallToolRequestParams | None = None,
    ) -> Item | types.InputRequiredResult:
        who, name = self._principal_of(ctx), self._shown.tool_name(wire)
        if params is not None and params.request_state is not None:
            answer = await self._questions.resume(params) or await self._prompts.resume(ctx, params, who)
        else:
            answer = await self._run(ctx, name, arguments, who)
        if isinstance(answer, types.InputRequiredResult):
            return answer
        was_told_schema = params is None or params.name == wire
        tool = self.host.tools.get_tool(name, who) if was_told_schema and type(answer.output) is not dict else None
        if tool is not None and answer.pending is not None and self.host.tools.may_wait(tool):
            tool = None  # no client is shown its output schema
        made = call_result(answer, tool, is_modern=is_modern(ctx))
        if (blocks := blocks_for_client(answer, made["content"][0]["text"], ctx.protocol_version)) is not None:
            made["content"] = encodable_data(blocks)
        return made

    async def _run(
        self, ctx: Context, name: str, arguments: Mapping[str, Any] | None, who: Principal
    ) -> ToolResult | types.InputRequiredResult:
        id = self._calls.new_id()
        made, session = ToolCall(name, arguments, id), session_of_call(ctx)
        account = None if self._account is None else self._account(ctx, who)
        call = self.host.tools.process_tool_call(made, who, session=session, rejoin=True, account=account)
        result = await self._questions.run(ctx, id, call)
        if isinstance(result, types.InputRequiredResult):
            return result
        if result.error is not None and result.error.type == "ApprovalRequired":
            return await self._prompts.ask_or_wait(ctx, result, who)
        return result

    # -- prompts and resources ---------------------------------------------------------------------------------

    async def _list_prompts(self, ctx: Context, params: types.PaginatedRequestParams) -> Item:
        who = self._principal_of(ctx)
        own = self._documents.prompts(who)
        bridged = await self._bridged.prompts(who, [one["name"] for one in own])
        return self._paged("prompts", [*own, *bridged], params)

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Item:
        who = self._principal_of(ctx)
        found = self._documents.prompt(params.name, who)
        if found is None:
            taken = [one["name"] for one in self._documents.prompts(who)]
            found = await self._bridged.prompt(params.name, params.arguments, who, taken)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {params.name[:100]!r}")
        return found

    async def _list_resources(self, ctx: Context, params: types.PaginatedRequestParams) -> Item:
        who = self._principal_of(ctx)
        return self._paged("resources", [*self._documents.resources(who), *await self._bridged.resources(who)], params)

    async def _list_templates(self, ctx: Context, params: types.PaginatedRequestParams) -> Item:
        bridged = await self._bridged.templates(self._principal_of(ctx))
        return self._paged("resourceTemplates", [*TEMPLATES, *bridged], params)

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Item:
        who = self._principal_of(ctx)
        found = self._documents.read(params.uri, who)
        if found is None and not params.uri.startswith(OWN_SCHEME):
            found = await self._bridged.read(params.uri, who)
        if found is None:
            code = types.INVALID_PARAMS if is_modern(ctx) else RESOURCE_NOT_FOUND
            raise MCPError(code, "Resource not found", {"uri": params.uri[:1_000]})
        return {**_UNCACHED, **found}

    def _paged(self, field: str, items: Sequence[Item], params: types.PaginatedRequestParams) -> Item:
        page, cursor = self._pages.cut(items, params.cursor, self._shown.version)
        return _page(field, page, cursor)

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self._notifier.on_listen(ctx, params, self._principal_of(ctx))


async def serve_stdio(host: ServedHost, **options: Any) -> None:
    """Serve *host* over stdin and stdout until the client is gone; *options* are those of MCPServer."""
    await MCPServer(host, **options).run_stdio()


def _skip_unused_spans(in_force: ServerMiddleware[Any]) -> ServerMiddleware[Any]:
    """Skip the SDK's span while no tracer is configured and the request continues no trace."""
    if not isinstance(in_force, OpenTelemetryMiddleware):
        return in_force

    async def spans(ctx: Context, call_next: CallNext) -> HandlerResult:
        if isinstance(get_tracer_provider(), ProxyTracerProvider) and "traceparent" not in (ctx.meta or ()):
            return await call_next(ctx)
        return await in_force(ctx, call_next)

    return spans


def _by_name(tools: Sequence[OwnTool]) -> dict[str, OwnTool]:
    return {tool.item["name"]: tool for tool in tools}


def _page(field: str, items: Sequence[Item], cursor: str | None) -> Item:
    made = {**_UNCACHED, field: list(items)}
    return made if cursor is None else {**made, "nextCursor": cursor}
