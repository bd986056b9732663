"""What a client is shown: tools under names that MCP allows, in pages, or a search in their place."""

import asyncio
import re
import secrets
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agentos.mcp.server.served_host import ServedHost
from agentos.mcp.server.wire_format import ClientToolNames, Item, tool_item
from agentos.model.principal import Principal
from agentos.tools.fused_search import index_of
from agentos.tools.listing import ToolInfo
from agentos.tools.search import Hit, ToolIndex
from agentos.tools.tool import Tool

Context = ServerRequestContext[Any, Any]

PAGE = 1_000
"""How many items a page of a list has."""
LOADED_LIMIT = 1_000
"""How many tools a conversation may have loaded; beyond that, those loaded first go."""
CLIENTS_REMEMBERED = 1_000
"""Of how many clients without a session it is remembered what they loaded."""
_LOADED = "agentos.loaded"
_SESSION = "agentos.session"
_LISTS_CACHED = 64


def is_modern(ctx: Context) -> bool:
    """Tell whether a request speaks the era without sessions."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def client_key(ctx: Context, who: Principal) -> tuple[str, frozenset[str], str]:
    """Return what is known of a client without a session: for whom it asks, and what it calls itself."""
    params = ctx.session.client_params
    return (who.key, who.held, params.client_info.name[:200] if params is not None else "")


def connection_state(ctx: Context) -> dict[str, Any]:
    """Return what lives as long as the client's connection; the SDK has no public way to it."""
    return ctx.session._connection.state  # noqa: SLF001 - see above


def session_of_call(ctx: Context) -> Mapping[str, Any] | None:
    """Return the conversation that a call belongs to, for grants and tools; None in the era without sessions.

    Its id is our own: the transport's is a secret between client and server.
    """
    if is_modern(ctx):
        return None
    state = connection_state(ctx)
    session: Mapping[str, Any] | None = state.get(_SESSION)
    if session is None:
        session = state[_SESSION] = {"id": f"mcp-{secrets.token_hex(8)}"}
    return session


class PageCutter:
    """Cuts lists into pages. A cursor holds for one version of what is registered, in one process."""

    def __init__(self) -> None:
        self._salt = secrets.token_hex(4)
        self._cursor = re.compile(rf"{self._salt}-(\d{{1,12}})-(\d{{1,9}})")

    def cut(self, items: Sequence[Any], cursor: str | None, version: int) -> tuple[Sequence[Any], str | None]:
        """Return the page that *cursor* leads to, and the cursor of the next one."""
        start = self._start(cursor, version)
        end = start + PAGE
        return items[start:end], f"{self._salt}-{version}-{end}" if end < len(items) else None

    def _start(self, cursor: str | None, version: int) -> int:
        if cursor is None:
            return 0
        found = self._cursor.fullmatch(cursor)
        if found is None or int(found[1]) != version:
            message = "the cursor is not valid, or what is offered changed since; list again from the start"
            raise MCPError(types.INVALID_PARAMS, message)
        return int(found[2])


@attrs.frozen(eq=False)
class _ToolsInForce:
    """Every tool that is offered to anybody, at one version of the registry."""

    version: int
    tools: dict[str, Tool]
    names: ClientToolNames


class ShownTools:
    """What each principal is shown; worked out once for each set of rules, until what is registered changes."""

    def __init__(self, host: ServedHost, reserved: Collection[str], search_above: int | None) -> None:
        self._host = host
        self._registry = host.extensions.registry("tool")
        self._reserved = frozenset(reserved)
        self._search_above = search_above
        self._in_force = _ToolsInForce(-1, {}, ClientToolNames())
        self._by_name: dict[frozenset[str], tuple[Sequence[ToolInfo], dict[str, ToolInfo]]] = {}
        self._index: tuple[Sequence[ToolInfo], ToolIndex] | None = None
        self._indexing = asyncio.Lock()
        self._loaded: OrderedDict[Any, dict[str, None]] = OrderedDict()

    @property
    def version(self) -> int:
        """Return the version of what is registered."""
        return self._registry.version

    # -- names -------------------------------------------------------------------------------------------------

    def in_force(self) -> _ToolsInForce:
        """Return every tool in force with its name on the wire."""
        if self._in_force.version != self._registry.version:
            tools = {tool.name: tool for _, tool in self._host.tools.catalog.offered()}
            aliases = (alias for tool in tools.values() for alias in tool.aliases)
            names = ClientToolNames.of(tools, self._reserved, aliases)
            self._in_force = _ToolsInForce(self._registry.version, tools, names)
        return self._in_force

    def tool_name(self, wire: str) -> str:
        """Return the name of a tool that a client knows as *wire*. It costs the same however many tools there are."""
        tool = self._host.tools.executor.get_tool(wire)
        if tool is not None and tool.name == wire:
            return wire
        return self.in_force().names.from_wire.get(wire, wire)

    def input_schema(self, wire: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool, for the SDK's check of headers. It is the same for every caller."""
        if wire in self._reserved:
            return None
        tool = self._host.tools.executor.get_tool(self.tool_name(wire))
        return None if tool is None else tool.input_schema

    # -- lists -------------------------------------------------------------------------------------------------

    def callable_by(self, who: Principal) -> dict[str, ToolInfo]:
        """Return what *who* may call, by name. Not to be written to."""
        infos = self._host.tools.listed(who)
        kept = self._by_name.get(who.held)
        if kept is None or kept[0] is not infos:
            if len(self._by_name) >= _LISTS_CACHED:
                self._by_name.clear()
            kept = self._by_name[who.held] = (infos, {info.name: info for info in infos})
        return kept[1]

    def uses_search(self, who: Principal) -> bool:
        """Tell whether there are too many tools to show: a client of *who* searches for them."""
        return self._search_above is not None and len(self._host.tools.listed(who)) > self._search_above

    def shown_to(self, ctx: Context, who: Principal) -> Sequence[ToolInfo]:
        """Return the tools that a client is shown: all, or those that it loaded."""
        if not self.uses_search(who):
            return self._host.tools.listed(who)
        callable_by = self.callable_by(who)
        return [callable_by[name] for name in self._loaded_by(ctx, who) if name in callable_by]

    def items(self, infos: Sequence[ToolInfo], *, modern: bool) -> list[Item]:
        """Return tools in MCP's shape; one that went away in this moment is left out."""
        in_force = self.in_force()
        found = ((info, in_force.tools.get(info.name)) for info in infos)
        return [
            tool_item(
                info,
                tool,
                in_force.names.wire(info.name),
                is_modern=modern,
                may_wait=tool.output_schema is not None and self._host.tools.may_wait(tool),
            )
            for info, tool in found
            if tool is not None
        ]

    # -- search ------------------------------------------------------------------------------------------------

    async def search(self, query: str, limit: int, who: Principal) -> list[Hit]:
        """Return what fits *query* best among what *who* may call.

        There is one index for everybody, made in a thread when it is first needed; the ranks are filtered as calls are.
        """
        async with self._indexing:
            infos = self._host.tools.listed(None)
            if self._index is None or self._index[0] is not infos:
                self._index = (infos, await asyncio.to_thread(index_of, infos))
            index = self._index[1]
        return index.search(query, limit, among=self.callable_by(who))

    def load(self, ctx: Context, who: Principal, names: Sequence[str]) -> bool:
        """Offer tools from now on in this conversation; tell whether that changed anything."""
        loaded = self._loaded_by(ctx, who)
        before = list(loaded)
        for name in names:
            loaded[name] = None
        while len(loaded) > LOADED_LIMIT:
            del loaded[next(iter(loaded))]
        return list(loaded) != before

    def _loaded_by(self, ctx: Context, who: Principal) -> dict[str, None]:
        """Return what a conversation loaded: by its session, or by its client where the protocol has no sessions."""
        if not is_modern(ctx):
            kept: dict[str, None] = connection_state(ctx).setdefault(_LOADED, {})
            return kept
        client = client_key(ctx, who)
        loaded = self._loaded.setdefault(client, {})
        self._loaded.move_to_end(client)
        while len(self._loaded) > CLIENTS_REMEMBERED:
            self._loaded.popitem(last=False)
        return loaded
