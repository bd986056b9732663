"""list_changed for clients of both eras.

Changes are noticed where stacks are switched over, not on the bus of events: a listener there would make every call
dearer. Each client is notified in a task of its own, so that a slow one holds up nobody.
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
from agentos.mcp.server.served_host import BRIDGES, ServedHost
from agentos.mcp.server.shown_tools import client_key, is_modern
from agentos.model.principal import Principal
from agentos.stacks.entry import Entry
from agentos.tools.tool import Tool, as_tool

Context = ServerRequestContext[Any, Any]
Client = tuple[str, frozenset[str], str]
Keys = Collection[tuple[str, str]]

SEND_TIMEOUT = 10.0
"""How long a client may take to read one notification, before it is dropped."""
_TOOLS, _PROMPTS, _RESOURCES = ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()
_SENDERS = {
    _TOOLS: Connection.send_tool_list_changed,
    _PROMPTS: Connection.send_prompt_list_changed,
    _RESOURCES: Connection.send_resource_list_changed,
}


class _StackChangeRelay:
    """Passes on which stacks of one manager changed. A manager can't unwatch, so there is one relay for each."""

    def __init__(self) -> None:
        self.listeners: set[Callable[[Keys], None]] = set()

    def __call__(self, keys: Keys) -> None:
        for listener in list(self.listeners):
            listener(keys)


_relays: "WeakKeyDictionary[ExtensionManager, _StackChangeRelay]" = WeakKeyDictionary()


def _relay_of(manager: ExtensionManager) -> _StackChangeRelay:
    found = _relays.get(manager)
    if found is None:
        found = _relays[manager] = _StackChangeRelay()
        manager.watch(found)
    return found


class _ListSnapshot:
    """The tools in force as they were last seen, to find out which lists a change affects."""

    def __init__(self, host: ServedHost) -> None:
        self._registry = host.extensions.registry("tool")
        self._shown: dict[str, Entry] = {entry.id: entry for entry in self._registry.list_active()}
        self._packs = Counter(entry.source.pack for entry in self._shown.values())

    def changed_by(self, keys: Keys) -> "tuple[list[ServerEvent], list[_ChangedTool]]":
        """Return the lists that are others than before, and the tools that are."""
        packs = set(+self._packs)
        pairs = [self._replace(id) for kind, id in keys if kind == self._registry.kind]
        entries = [entry for pair in pairs if _differ(*pair) for entry in pair if entry is not None]
        found = [_ChangedTool(one.source.pack, tool) for one in entries if (tool := as_tool(one.payload)) is not None]
        if not found:
            return [], []
        events: list[ServerEvent] = [_TOOLS]
        if any(_has_prompt(one.tool) for one in found):
            events.append(_PROMPTS)
        if set(+self._packs) != packs:
            events.append(_RESOURCES)
        return events, found

    def _replace(self, id: str) -> tuple[Entry | None, Entry | None]:
        before, now = self._shown.pop(id, None), self._registry.get_active(id)
        if before is not None:
            self._packs[before.source.pack] -= 1
        if now is not None:
            self._shown[id] = now
            self._packs[now.source.pack] += 1
        return before, now


@attrs.frozen
class _ChangedTool:
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
class _Subscription:
    """Who listens on a stream, and to which documents: packs by their names, tools by theirs."""

    client: Client
    who: Principal
    uris: tuple[str, ...]
    tool_name: Callable[[str], str]

    def updated(self, changed: Collection[_ChangedTool]) -> list[ServerEvent]:
        """Return which of the documents are others now. What its principal may not call changes nothing in them."""
        if not self.uris:
            return []
        seen = [one for one in changed if self.who.may_call(one.tool)]
        packs, tools = {one.pack for one in seen}, {one.tool.name for one in seen}
        return [ResourceUpdated(uri) for uri in self.uris if self._is_among(uri, packs, tools)]

    def _is_among(self, uri: str, packs: Collection[str], tools: Collection[str]) -> bool:
        if uri.startswith(PACKS):
            return unquote(uri.removeprefix(PACKS)) in packs
        return uri.startswith(TOOLS) and self.tool_name(unquote(uri.removeprefix(TOOLS))) in tools


_subscriber: ContextVar[_Subscription | None] = ContextVar("agentos_mcp_listening", default=None)


class _SubscriptionBus:
    """Delivers events to open streams: to all of them, or to those of one client."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._listeners: dict[object, tuple[_Subscription | None, Callable[[ServerEvent], None]]] = {}
        self._on_change = on_change

    def __len__(self) -> int:
        return len(self._listeners)

    def notify(self, event: ServerEvent, client: Client | None = None) -> None:
        """Deliver *event*; a stream keeps it until its client reads it."""
        for stream, listener in list(self._listeners.values()):
            if client is None or (stream is not None and stream.client == client):
                listener(event)

    def publish_updates(self, changed: Collection[_ChangedTool]) -> None:
        """Tell each stream which of its documents changed."""
        for stream, listener in list(self._listeners.values()):
            for event in () if stream is None else stream.updated(changed):
                listener(event)

    async def publish(self, event: ServerEvent) -> None:
        """Deliver *event* to everybody."""
        self.notify(event)
        await anyio.lowlevel.checkpoint()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Register *listener* for the client whose request is being served; return what takes it off."""
        token = object()
        self._listeners[token] = (_subscriber.get(), listener)
        self._on_change()

        def unsubscribe() -> None:
            self._listeners.pop(token, None)
            self._on_change()

        return unsubscribe


class _HandshakeClient:
    """A client of the handshake era, notified of one change after another in the background."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._unsent: dict[ServerEvent, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def notify(self, events: Iterable[ServerEvent]) -> None:
        """Notify the client soon; the same event is sent once while it waits."""
        self._unsent.update(dict.fromkeys(events))
        if self._sending is None and self._unsent:
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._unsent:
                event = next(iter(self._unsent))
                del self._unsent[event]
                with anyio.move_on_after(SEND_TIMEOUT):
                    await _SENDERS[event](self._connection)
        finally:
            self._sending = None

    def end(self) -> None:
        """Tell nothing more."""
        self._unsent.clear()
        if self._sending is not None:
            self._sending.cancel()


class ListChangeNotifier:
    """Notifies subscribed clients of changes. While there are none, nothing is watched."""

    def __init__(self, host: ServedHost, tool_name: Callable[[str], str]) -> None:
        self._host = host
        self._tool_name = tool_name
        self._sessions: dict[Connection, _HandshakeClient] = {}
        self._bus = _SubscriptionBus(self._watch_if_needed)
        self._listen = ListenHandler(self._bus)
        self._snapshot: _ListSnapshot | None = None

    # -- clients -----------------------------------------------------------------------------------------------

    async def on_initialized(self, ctx: Context, params: types.NotificationParams) -> None:  # noqa: ARG002 - a handler
        """Remember a client of the handshake era, until its connection ends."""
        connection = ctx.session._connection  # noqa: SLF001 - the SDK has no public way to what lives as long as it
        if connection not in self._sessions:
            self._sessions[connection] = _HandshakeClient(connection)
            connection.exit_stack.callback(self._forget, connection)
            self._watch_if_needed()

    async def on_listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams, who: Principal
    ) -> types.SubscriptionsListenResult:
        """Serve a stream of changes to a client of the era without sessions."""
        uris = tuple(dict.fromkeys(params.notifications.resource_subscriptions or ()))
        _subscriber.set(_Subscription(client=client_key(ctx, who), who=who, uris=uris, tool_name=self._tool_name))
        return await self._listen(ctx, params)

    async def notify_client(self, ctx: Context, who: Principal) -> None:
        """Tell one client that its own list of tools changed."""
        if is_modern(ctx):
            self._bus.notify(_TOOLS, client_key(ctx, who))
        elif (session := self._sessions.get(ctx.session._connection)) is not None:  # noqa: SLF001 - as above
            session.notify([_TOOLS])

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
        relay = _relay_of(self._host.extensions)
        if not self._sessions and not len(self._bus):
            relay.listeners.discard(self._on_stacks_changed)
            self._snapshot = None
            self._watch_bridges(is_wanted=False)
        elif self._snapshot is None:
            self._snapshot = _ListSnapshot(self._host)
            relay.listeners.add(self._on_stacks_changed)
            self._watch_bridges(is_wanted=True)

    def _watch_bridges(self, *, is_wanted: bool) -> None:
        """Hear, or hear no more, when what bridged servers offer beside tools is another."""
        for entry in self._host.extensions.registry(BRIDGES).list_active():
            watchers = entry.payload.watchers
            (watchers.add if is_wanted else watchers.discard)(self._on_documents_changed)

    def _on_documents_changed(self) -> None:
        self._notify([_PROMPTS, _RESOURCES])

    def _on_stacks_changed(self, keys: Keys) -> None:
        events, changed = self._snapshot.changed_by(keys) if self._snapshot is not None else ([], [])
        if any(kind == BRIDGES for kind, _ in keys):
            self._watch_bridges(is_wanted=True)
            events = list(dict.fromkeys([*events, _PROMPTS, _RESOURCES]))
        self._notify(events)
        self._bus.publish_updates(changed)

    def _notify(self, events: Collection[ServerEvent]) -> None:
        for event in events:
            self._bus.notify(event)
        for session in self._sessions.values():
            session.notify(events)
