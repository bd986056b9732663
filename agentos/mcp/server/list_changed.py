"""list_changed for clients of both eras.

Changes are noticed where stacks are switched over, not on the bus of events: a listener there would make every call
dearer. A client that does not read holds up nobody: each is told in a task of its own.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextvars import ContextVar
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import attrs
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from agentos.extensions.manager import ExtensionManager
from agentos.mcp.server.documents import PACKS, TOOLS
from agentos.mcp.server.host_protocol import Host
from agentos.mcp.server.shown_tools import client_of, is_modern
from agentos.model.principal import Principal
from agentos.stacks.entry import Entry
from agentos.tools.tool import Tool, as_tool

Context = ServerRequestContext[Any, Any]
Client = tuple[str, frozenset[str], str]
Keys = Collection[tuple[str, str]]

TELL_TIMEOUT = 10.0
"""How long a client may take to read that something changed, before it is not told."""
_TOOLS, _PROMPTS, _RESOURCES = ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()
_SEND = {
    _TOOLS: Connection.send_tool_list_changed,
    _PROMPTS: Connection.send_prompt_list_changed,
    _RESOURCES: Connection.send_resource_list_changed,
}


class _Switches:
    """Passes on which stacks of one manager were switched over. The manager keeps this for good, and nobody else."""

    def __init__(self) -> None:
        self.hearers: set[Callable[[Keys], None]] = set()

    def __call__(self, keys: Keys) -> None:
        for hearer in list(self.hearers):
            hearer(keys)


_switches: "WeakKeyDictionary[ExtensionManager, _Switches]" = WeakKeyDictionary()


def _switches_of(manager: ExtensionManager) -> _Switches:
    found = _switches.get(manager)
    if found is None:
        found = _switches[manager] = _Switches()
        manager.watch(found)
    return found


class _Seen:
    """What is offered, as it was last seen, to tell which lists a switch changed."""

    def __init__(self, host: Host) -> None:
        self._registry = host.extensions.registry("tool")
        self._shown: dict[str, Entry] = {entry.id: entry for entry in self._registry.list_active()}
        self._packs = Counter(entry.source.pack for entry in self._shown.values())

    def changed_by(self, keys: Keys) -> "tuple[list[ServerEvent], list[_Changed]]":
        """Return the lists that are others than before, and the tools that are."""
        packs = set(+self._packs)
        pairs = [self._look(id) for kind, id in keys if kind == self._registry.kind]
        entries = [entry for pair in pairs if _differ(*pair) for entry in pair if entry is not None]
        found = [_Changed(one.source.pack, tool) for one in entries if (tool := as_tool(one.payload)) is not None]
        if not found:
            return [], []
        events: list[ServerEvent] = [_TOOLS]
        if any(_has_prompt(one.tool) for one in found):
            events.append(_PROMPTS)
        if set(+self._packs) != packs:
            events.append(_RESOURCES)
        return events, found

    def _look(self, id: str) -> tuple[Entry | None, Entry | None]:
        before, now = self._shown.pop(id, None), self._registry.get_active(id)
        if before is not None:
            self._packs[before.source.pack] -= 1
        if now is not None:
            self._shown[id] = now
            self._packs[now.source.pack] += 1
        return before, now


@attrs.frozen
class _Changed:
    """A tool that came, went or is another one now, and its pack."""

    pack: str
    tool: Tool


def _differ(before: Entry | None, now: Entry | None) -> bool:
    if before is None or now is None:
        return before is not now
    return before.descriptor is not now.descriptor


def _has_prompt(tool: Tool) -> bool:
    return bool(tool.system_prompt or (tool.toolset and tool.toolset.system_prompt))


@attrs.frozen(kw_only=True)
class _Stream:
    """Who listens on a stream, and to which documents: packs by their names, tools by theirs."""

    client: Client
    who: Principal
    uris: tuple[str, ...]
    own_name: Callable[[str], str]

    def updated(self, changed: Collection[_Changed]) -> list[ServerEvent]:
        """Return which of the documents are others now. What its principal may not call changes nothing in them."""
        if not self.uris:
            return []
        seen = [one for one in changed if self.who.may_call(one.tool)]
        packs, tools = {one.pack for one in seen}, {one.tool.name for one in seen}
        return [ResourceUpdated(uri) for uri in self.uris if self._is_among(uri, packs, tools)]

    def _is_among(self, uri: str, packs: Collection[str], tools: Collection[str]) -> bool:
        if uri.startswith(PACKS):
            return unquote(uri.removeprefix(PACKS)) in packs
        return uri.startswith(TOOLS) and self.own_name(unquote(uri.removeprefix(TOOLS))) in tools


_listening: ContextVar[_Stream | None] = ContextVar("agentos_mcp_listening", default=None)


class _Bus:
    """Delivers events to open streams: to all of them, or to those of one client."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._listeners: dict[object, tuple[_Stream | None, Callable[[ServerEvent], None]]] = {}
        self._on_change = on_change

    def __len__(self) -> int:
        return len(self._listeners)

    def tell(self, event: ServerEvent, client: Client | None = None) -> None:
        """Deliver *event*; a stream keeps it until its client reads it."""
        for stream, listener in list(self._listeners.values()):
            if client is None or (stream is not None and stream.client == client):
                listener(event)

    def tell_of_documents(self, changed: Collection[_Changed]) -> None:
        """Tell each stream which of its documents changed."""
        for stream, listener in list(self._listeners.values()):
            for event in () if stream is None else stream.updated(changed):
                listener(event)

    async def publish(self, event: ServerEvent) -> None:
        """Deliver *event* to everybody."""
        self.tell(event)
        await anyio.lowlevel.checkpoint()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Register *listener* for the client whose request is being served; return what takes it off."""
        token = object()
        self._listeners[token] = (_listening.get(), listener)
        self._on_change()

        def unsubscribe() -> None:
            self._listeners.pop(token, None)
            self._on_change()

        return unsubscribe


class _Session:
    """A client of the handshake era that is told of changes, one after another, without holding up whoever changes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._untold: dict[ServerEvent, None] = {}
        self._telling: asyncio.Task[None] | None = None

    def tell(self, events: Iterable[ServerEvent]) -> None:
        """Tell the client soon; what it has not heard of yet is told once."""
        self._untold.update(dict.fromkeys(events))
        if self._telling is None and self._untold:
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        try:
            while self._untold:
                event = next(iter(self._untold))
                del self._untold[event]
                with anyio.move_on_after(TELL_TIMEOUT):
                    await _SEND[event](self._connection)
        finally:
            self._telling = None

    def end(self) -> None:
        """Tell nothing more."""
        self._untold.clear()
        if self._telling is not None:
            self._telling.cancel()


class Changes:
    """Remembers who wants to hear of changes, and tells them. While nobody does, nothing is watched."""

    def __init__(self, host: Host, own_name: Callable[[str], str]) -> None:
        self._host = host
        self._own_name = own_name
        self._sessions: dict[Connection, _Session] = {}
        self._bus = _Bus(self._watch_if_needed)
        self._listen = ListenHandler(self._bus)
        self._seen: _Seen | None = None

    # -- clients -----------------------------------------------------------------------------------------------

    async def on_initialized(self, ctx: Context, params: types.NotificationParams) -> None:  # noqa: ARG002 - a handler
        """Remember a client of the handshake era, until its connection ends."""
        connection = ctx.session._connection  # noqa: SLF001 - the SDK has no public way to what lives as long as it
        if connection not in self._sessions:
            self._sessions[connection] = _Session(connection)
            connection.exit_stack.callback(self._forget, connection)
            self._watch_if_needed()

    async def on_listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams, who: Principal
    ) -> types.SubscriptionsListenResult:
        """Serve a stream of changes to a client of the era without sessions."""
        uris = tuple(dict.fromkeys(params.notifications.resource_subscriptions or ()))
        _listening.set(_Stream(client=client_of(ctx, who), who=who, uris=uris, own_name=self._own_name))
        return await self._listen(ctx, params)

    async def tell_client(self, ctx: Context, who: Principal) -> None:
        """Tell one client that its own list of tools changed."""
        if is_modern(ctx):
            self._bus.tell(_TOOLS, client_of(ctx, who))
        elif (session := self._sessions.get(ctx.session._connection)) is not None:  # noqa: SLF001 - as above
            session.tell([_TOOLS])

    def _forget(self, connection: Connection) -> None:
        if (session := self._sessions.pop(connection, None)) is not None:
            session.end()
            self._watch_if_needed()

    def close(self) -> None:
        """End every stream in good order, and forget everybody."""
        self._listen.close()
        for connection in list(self._sessions):
            self._sessions.pop(connection).end()
        self._watch_if_needed()

    # -- changes -----------------------------------------------------------------------------------------------

    def _watch_if_needed(self) -> None:
        switches = _switches_of(self._host.extensions)
        if not self._sessions and not len(self._bus):
            switches.hearers.discard(self._hear)
            self._seen = None
        elif self._seen is None:
            self._seen = _Seen(self._host)
            switches.hearers.add(self._hear)

    def _hear(self, keys: Keys) -> None:
        events, changed = self._seen.changed_by(keys) if self._seen is not None else ([], [])
        for event in events:
            self._bus.tell(event)
        self._bus.tell_of_documents(changed)
        for session in self._sessions.values():
            session.tell(events)
