"""The contexts of a pack's functions in its own process: the same classes as in the host, of what the host said.

What they offer beside data is asked of the host: calls of other tools by functions that came along, secrets by name.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import attrs

from agentos.base.foreign import settled
from agentos.calls.threads import ThreadJob, ToolThreads
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import GuardedCall
from agentos.model.kind import kind_of
from agentos.model.pack_context import PackContext
from agentos.model.principal import Principal
from agentos.model.source import Source
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.payloads.foreign_job import is_async
from agentos.payloads.held_calls import begun, taken_back
from agentos.stacks.entry import Entry, EntryState
from agentos.workers.channel import Channel
from agentos.workers.declaration import declare_descriptor
from agentos.workers.peer import Peer, RemoteFunction

Key = tuple[str, str]
LOGGERS = "agentos.packs."
"""What the names of packs' own loggers begin with."""


class AskedSecrets:
    """Reads the secrets that the pack may read, by asking the host."""

    def __init__(self, channel: Channel, peer: Peer) -> None:
        self._channel = channel
        self._peer = peer

    def read(self, id: str) -> str | None:
        """Return the value of now, or None."""
        found: str | None = self._ask("secret", id)
        return found

    def mask(self, text: str) -> str:
        """Return *text* without any value that the host knows."""
        return str(self._ask("mask", text))

    def _ask(self, op: str, body: str) -> Any:
        return self._channel.wait(lambda: self._peer.begin({"op": op}, body), lambda: self._peer.request(op, body))


class AskedBus:
    """The host's bus, for a pack in a process of its own."""

    def __init__(self, port: RemoteFunction) -> None:
        self._port = port

    async def publish(self, topic: str, message: Any) -> None:
        """Tell *message*, a JSON value, to all who have subscribed to *topic*."""
        await self._port("publish", topic, message)

    async def subscribe(self, topic: str, listener: Callable[[Any], Any]) -> Callable[[], Awaitable[None]]:
        """Call *listener*, sync or async, with every message of *topic* from now on; return what ends it."""
        is_sync = not is_async(listener)

        async def hear(message: Any) -> None:
            await settled(await asyncio.to_thread(listener, message) if is_sync else listener(message))

        lasting = await begun(lambda began: self._port("subscribe", topic, hear, began))
        return lambda: taken_back(lasting)


class AskedPort:
    """What the pack registers with while it runs: *own* while the hook that it came with does, else *lasting*."""

    def __init__(self, home: "PackHome", source: Source, own: RemoteFunction, lasting: RemoteFunction) -> None:
        self._home = home
        self._own = own
        self._lasting = lasting
        self.source = source

    @property
    def _port(self) -> RemoteFunction:
        return self._own if self._own.is_open else self._lasting

    def _now(self, *args: Any) -> Any:
        port = self._port
        return self._home.channel.wait(lambda: port.begin(*args), lambda: port(*args))

    def entries(self, kind: str) -> list[Entry]:
        """Return what this owner has on the stacks of *kind*."""
        return [self._home.entry(one) for one in self._now("entries", kind)]

    def all_entries(self, kind: str) -> list[Entry]:
        """Return what stands on the stacks of *kind*, whoever the owner is."""
        return [self._home.entry(one) for one in self._now("all_entries", kind)]

    def accepted(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the definitions of this owner's tools that were accepted in earlier runs, by id."""
        found: Mapping[str, Mapping[str, Any]] = self._now("accepted")
        return found

    def require(self, permission: str) -> None:
        """Raise if the owner lacks *permission*."""
        self._now("require", permission)

    @property
    def bus(self) -> AskedBus:
        """Return the bus as this owner uses it."""
        return AskedBus(self._lasting)

    async def exchange(self, kind: str, add: Sequence[Any], drop: Iterable[str] = ()) -> list[Entry]:
        """Put descriptors on their stacks and take others off, all at once; same owner and id replaces."""
        drop, known = list(drop), self._home.descriptors
        before = dict(known)
        known.update({one.key: one for one in add})
        try:
            entries = await self._port("exchange", kind, [declare_descriptor(one) for one in add], drop)
        except BaseException:
            known.clear()
            known.update(before)
            raise
        for id in drop:
            known.pop((kind, id), None)
        return [self._home.entry(one) for one in entries]

    async def refresh(self, kind: str, ids: Collection[str] | None = None) -> None:
        """Ask the gates of what this owner has on the stacks of *kind* again: of *ids*, or all of it."""
        mine = [one for one in self._home.descriptors.values() if one.kind == kind and one.gate is not None]
        gates = [[one.id, one.gate()] for one in mine if one.gate is not None and (ids is None or one.id in ids)]
        await self._port("refresh", kind, None if ids is None else list(ids), gates)


class _CallHere:
    """A call of a tool under way in the host, as far as its tool here needs it: see `CallUnderWay`."""

    def __init__(self, home: "PackHome", said: Mapping[str, Any]) -> None:
        name, id, key = said["call"]
        self.arguments: dict[str, Any] = said["arguments"]
        self.call = ToolCall(name, said.get("raw", self.arguments), id, key)
        self.principal: Principal = said["principal"]
        self.session: Mapping[str, Any] = said.get("session", {})
        self.depth: int = said["depth"]
        self.approval = SimpleNamespace(proposal=said["approved"]) if "approved" in said else None
        self.is_cancelled = False
        self.ready = home.ready(said["id"], said.get("options", {}))
        self.thread: _Thread | None = None
        self._said = said

    def call_nested(self, name: str, arguments: Any) -> Coroutine[Any, Any, ToolResult]:
        return self._said["nested"](name, arguments)  # type: ignore[no-any-return]

    def call_below(self, arguments: Any) -> Coroutine[Any, Any, ToolResult]:
        return self._said["beneath"](arguments)  # type: ignore[no-any-return]

    def wait_in_thread(self, call: Coroutine[Any, Any, ToolResult], loop: asyncio.AbstractEventLoop) -> ToolResult:
        assert self.thread is not None  # noqa: S101 - it runs in a thread
        with self.thread.waiting():
            return asyncio.run_coroutine_threadsafe(call, loop).result()

    def tell(self, kind: str, _: Any, said: Mapping[str, Any]) -> Callable[[], None]:
        self._said["tell"].tell(kind, dict(said))
        return _nothing


def _nothing() -> None:
    """Have nothing to wait for: it was told."""


class _Thread:
    """A thread in which a function of the pack runs, as its contexts see it."""

    def __init__(self, threads: ToolThreads, job: ThreadJob) -> None:
        self._threads = threads
        self._job = job
        self.future = job.future

    def waiting(self) -> AbstractContextManager[None]:
        """Give the thread's place back for the block, in which it waits for something else."""
        return self._threads.waiting(self._job)

    def blocking(self, function: RemoteFunction) -> Callable[..., Any]:
        """Return a function of the host's as one to be called from the thread, which waits for its end."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.waiting():
                return asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self.future.get_loop()).result()

        return call

    def enter(self, argument: Any) -> Any:
        """Return *argument* as a function that runs in the thread has to be given it."""
        if type(argument) is RemoteFunction:
            return self.blocking(argument)
        call = getattr(argument, "_call", None)
        if type(call) is _CallHere:
            call.thread, argument._loop = self, self.future.get_loop()  # noqa: SLF001 - a context of our own
        elif hasattr(argument, "call_tool"):
            argument.job = self
        return argument


class PackHome:
    """What the contexts of a pack have in common: its descriptors, its services, and the way to the host."""

    def __init__(self, channel: Channel, peer: Peer, threads: ToolThreads) -> None:
        self.channel = channel
        self.threads = threads
        self.secrets = AskedSecrets(channel, peer)
        self.descriptors: dict[Key, Descriptor[Any]] = {}
        self.context: PackContext
        self.readers: dict[str, Callable[..., Any]] = {
            "ToolContext": self._tool_context,
            "PayloadContext": self._payload_context,
            "GuardContext": self._guard_context,
            "WaitingGuardContext": self._guard_context,
            "PlanContext": self._plan_context,
            "GuardedCall": GuardedCall,
            "MiddlewareCall": self._middleware_call,
        }

    def be(self, name: str, version: str | None) -> None:
        """Have the pack's own name, which is known when it is made."""
        source = attrs.evolve(self.context.source, pack=name, version=version)
        logger: Any = logging.getLogger(f"{LOGGERS}{name}")
        self.context = attrs.evolve(self.context, source=source, logger=logger)

    def own(self) -> Any:
        """Return who brought everything here."""
        return SimpleNamespace(context=self.context, scope=self.secrets, source=self.context.source)

    def ready(self, id: str, options: Mapping[str, Any]) -> Any:
        """Return a tool as its context needs it."""
        from agentos.tools.tool import as_tool

        tool = as_tool(self.descriptors["tool", id].payload)
        name = f"{self.context.source.pack}:{id}"
        return SimpleNamespace(tool=tool, entry=SimpleNamespace(options=options), owner=self.own(), qualified_id=name)

    def _entry_here(self, kind: str, id: str, options: Mapping[str, Any]) -> Any:
        owner = self.own()
        slot = SimpleNamespace(owner=owner)
        return SimpleNamespace(
            kind=kind, id=id, options=options, source=owner.source, pack=owner.source.pack, _slot=slot
        )

    def entry(self, said: Mapping[str, Any]) -> Entry:
        """Return an entry on a stack of the host's; one of this pack has its own descriptor."""
        kind, id, source = said["kind"], said["id"], said["source"]
        mine = self.descriptors.get((kind, id)) if source.pack == self.context.source.pack else None
        told = mine or Descriptor(kind, id, kind_of(kind).crossing.proxy(said["payload"], {}))
        return Entry(
            told,
            said["sequence"],
            source,
            said["priority"],
            EntryState(said["state"]),
            said["reason"],
            said["activated_at"],
            options=said["options"],
        )

    # -- what the host says of its contexts ----------------------------------------------------------------------------

    def _tool_context(self, **said: Any) -> Any:
        from agentos.tools.tool_context import ToolContext

        return ToolContext(_CallHere(self, said))  # type: ignore[arg-type]  # as much of it as a tool needs

    def _payload_context(
        self, kind: str, id: str, principal: Principal, session: Any = None, options: Any = None
    ) -> Any:
        from agentos.payloads.payload_context import PayloadContext

        return PayloadContext(self._entry_here(kind, id, options or {}), principal, session or {})

    def _plan_context(self, kind: str, id: str, principal: Principal, **said: Any) -> Any:
        from agentos.kinds.planning_strategy import PlanContext

        entry = self._entry_here(kind, id, said.get("options", {}))
        return PlanContext(entry, principal, said.get("session", {}), said["tools"], said["ask"])

    def _guard_context(self, kind: str, id: str, principal: Principal, **said: Any) -> Any:
        from agentos.guards.guard_context import GuardSubject, WaitingGuardContext

        entry = self._entry_here(kind, id, said.get("options", {}))
        subject = GuardSubject(said["stage"], None, principal, said.get("session", {}))
        subject.preceding, subject.is_final = said["preceding"], said["is_final"]
        guard = SimpleNamespace(id=id, pack=entry.pack, entry=entry, call_tool=_without_context(said["call_tool"]))
        context = WaitingGuardContext(guard, subject, None)
        if said["call"] is not None:
            context.show(said["call"])
        return context

    def _middleware_call(self, context: Any, **said: Any) -> Any:
        from agentos.calls.active_middleware import MiddlewareCall

        return MiddlewareCall(**said, principal=context.principal, session=context.session, context=context)

    def hook_context(self, said: Mapping[str, Any]) -> PackContext:
        """Return what a hook is given."""
        given: dict[str, Any] = {
            "options": said["options"],
            "services": self.context.services,
            "logger": self.context.logger,
            "manifest_entry": self.context.manifest_entry,
            "source": said["source"],
            "secrets": self.secrets,
        }
        if "port" in said:
            given["port"] = AskedPort(self, said["source"], said["port"], said["lasting_port"])
        if "entry" not in said:
            self.context = PackContext(**given)
            return self.context
        from agentos.stacks.entry import LifecycleContext

        return LifecycleContext(**given, entry=self.entry(said["entry"]), find_below=lambda: self._beneath(said))

    def _beneath(self, said: Mapping[str, Any]) -> Entry | None:
        below: RemoteFunction = said["below"]
        found = self.channel.wait(below.begin, below)
        return None if found is None else self.entry(found)


def _without_context(call_tool: RemoteFunction) -> Callable[[Any, str, Any], Coroutine[Any, Any, Any]]:
    return lambda _, name, arguments: call_tool(name, arguments)


def in_thread(threads: ToolThreads, job: ThreadJob, args: Iterable[Any]) -> list[Any]:
    """Return the arguments of a function that runs in a thread."""
    thread = _Thread(threads, job)
    return [thread.enter(argument) for argument in args]
