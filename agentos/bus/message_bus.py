"""MessageBus: what packs and hosts publish and subscribe with, which is `host.bus`.

A message reaches each listener at most once: what is published while nobody listens, while a host is away from the
store, while one channel takes another's place, or faster than a listener listens, is not heard. What one sender
publishes on one topic is heard in that order.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any

from agentos.base.foreign import to_the_end
from agentos.bus.bus_events import BusMessagesDropped
from agentos.bus.bus_messages import check_topic, written
from agentos.bus.carriers import BuiltInCarrier, Carrier, PackCarrier
from agentos.bus.subscriptions import BusSubscription, Listener
from agentos.errors import BusError
from agentos.kinds.communication_channel import COMMUNICATION_CHANNEL, HEARD
from agentos.model.guarding import fault_of_parameters
from agentos.payloads.foreign_job import Threads
from agentos.payloads.payload_context import active_in_order
from agentos.processes.backoff import Backoff
from agentos.secrets.masking import MaskingLogger
from agentos.store import Store

if TYPE_CHECKING:
    from agentos.extensions.manager import ExtensionManager

Unsubscribe = Callable[[], Awaitable[None]]
"""Ends a subscription at once; awaited, when its listener has ended too."""

_SUBSCRIPTIONS = 10_000
"""How many subscriptions a host has at most."""
_FIRST, _LONGEST, _JITTER = 0.1, 30.0, 0.2


class MessageBus:
    """Carries messages by topic: in memory, by a PostgreSQL store to all its hosts, or by a pack's channel."""

    def __init__(self, manager: "ExtensionManager", store: Store, threads: Threads) -> None:
        self._events = manager.events
        self._masker = manager.masker
        self._registry = manager.registry(COMMUNICATION_CHANNEL.name)
        self._threads = threads
        self._logger = MaskingLogger("agentos.bus", manager.masker)
        self._topics: dict[str, list[BusSubscription]] = {}
        self._count = 0
        self._built_in = BuiltInCarrier(store, self._arrived, self._logger)
        self._carrier: Carrier = self._built_in
        self._is_settled = True
        self._turn = asyncio.Lock()
        self._backoff = Backoff(_FIRST, _LONGEST, _JITTER)
        self._again: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._leaving: list[object] = []
        self._is_closed = False
        manager.watch(self._note_switch)

    # -- for hosts ---------------------------------------------------------------------------------------------

    async def publish(self, topic: str, message: Any) -> None:
        """Tell *message*, a JSON value, to all who have subscribed to *topic*; known secrets in it are masked.

        Raises ValueError for what is no topic or message, BusError if a pack's channel fails, and StoreError if other
        hosts can't be told: the listeners of this host have heard it then.
        """
        check_topic(topic, self._masker)
        text = written(message, self._masker)
        self._require_open()
        if not self._is_settled:
            await self._settle()
        await self._carrier.publish(topic, text)

    async def subscribe(self, topic: str, listener: Listener) -> Unsubscribe:
        """Call *listener*, sync or async, with every message of *topic* from now on; return what ends it."""
        return await self._subscribe(self, "host", topic, listener)

    # -- for packs ---------------------------------------------------------------------------------------------

    def handle(self, owner: object, name: str) -> "OwnersBus":
        """Return the view of one owner; *owner* is what subscriptions belong to, *name* what is told."""
        return OwnersBus(self, owner, name)

    async def release_all(self, owner: object) -> None:
        """End all of *owner*'s subscriptions; it gets no other meanwhile."""
        mine = [one for each in self._topics.values() for one in each if one.owner is owner]
        self._leaving.append(owner)
        try:
            await self._end(mine)
        finally:
            self._leaving.remove(owner)

    async def _subscribe(self, owner: object, name: str, topic: str, listener: Listener) -> Unsubscribe:
        check_topic(topic, self._masker)
        if fault := fault_of_parameters(listener, 1):
            raise TypeError(f"listener: {fault}")
        self._require_open(owner, name)
        if self._count >= _SUBSCRIPTIONS:
            raise BusError(f"there are {_SUBSCRIPTIONS:,} subscriptions already", hint="end those that nobody needs")
        one = BusSubscription(
            topic,
            listener,
            owner=owner,
            pack=name,
            threads=self._threads,
            logger=self._logger,
            tell_dropped=self._tell_dropped,
        )
        self._topics.setdefault(topic, []).append(one)
        self._count += 1
        try:
            failures = await self._settle()
            if topic in failures:
                raise failures[topic]
        except BaseException:
            self._remove(one)
            raise
        return self._unsubscribe(one)

    def _unsubscribe(self, one: BusSubscription) -> Unsubscribe:
        loop, thread = asyncio.get_running_loop(), threading.get_ident()

        def unsubscribe() -> Awaitable[None]:
            one.stop()
            if threading.get_ident() == thread:
                return self._begin(self._end([one]))
            loop.call_soon_threadsafe(lambda: self._begin(self._end([one])))
            return HEARD

        return unsubscribe

    async def _end(self, some: Collection[BusSubscription]) -> None:
        for one in some:
            one.stop()
            self._remove(one)
        if some and not self._is_closed:
            await self._settle()
        await asyncio.gather(*(one.ended() for one in some))

    def _remove(self, one: BusSubscription) -> None:
        rest = self._topics.get(one.topic, [])
        if one in rest:
            rest.remove(one)
            self._count -= 1
            if not rest:
                del self._topics[one.topic]

    def _require_open(self, owner: object = None, name: str = "") -> None:
        if self._is_closed:
            raise BusError("the bus is closed: the host is shut down")
        if owner in self._leaving or getattr(owner, "closed", False):
            raise BusError(f"the pack {name!r} is not loaded any more")

    # -- carrying ----------------------------------------------------------------------------------------------

    def _arrived(self, topic: str, text: str) -> None:
        for one in self._topics.get(topic, ()):
            one.take(text)

    def _note_switch(self, keys: Collection[tuple[str, str]]) -> None:
        """Let a channel that came into force carry, and one that went out of force no more."""
        if any(kind == COMMUNICATION_CHANNEL.name for kind, _ in keys) and not self._is_closed:
            self._is_settled = False
            self._begin(self._settle(), Context())

    async def _settle(self) -> dict[str, BusError]:
        """See that the carrier in force brings what is subscribed to; return why not, of the topics that it can't."""
        return await to_the_end(self._settle_in_turn())

    async def _settle_in_turn(self) -> dict[str, BusError]:
        async with self._turn:
            self._is_settled = True
            carrier = self._in_force()
            if carrier is not self._carrier:
                before, self._carrier = self._carrier, carrier
                await before.leave()
            failures = await carrier.follow(tuple(self._topics))
        if failures:
            self._settle_again()
        else:
            self._backoff.reset()
        return failures

    def _in_force(self) -> Carrier:
        entries = active_in_order(self._registry)
        if not entries:
            return self._built_in
        slot: Any = entries[0]._slot  # noqa: SLF001 - the slot is our own
        if isinstance(self._carrier, PackCarrier) and self._carrier.slot is slot:
            return self._carrier
        return PackCarrier(entries[0], self._threads, self._arrived, self._masker, self._logger)

    def _settle_again(self) -> None:
        if self._again is None and not self._is_closed:
            self._again = asyncio.get_running_loop().call_later(self._backoff.next(), self._settle_now)

    def _settle_now(self) -> None:
        self._again = None
        self._begin(self._settle(), Context())

    # -- what goes on beside -----------------------------------------------------------------------------------

    def _begin(self, work: Coroutine[Any, Any, Any], context: Context | None = None) -> "asyncio.Task[Any]":
        """Do something in a task; in a *context* of its own, if it is no part of what is being done."""
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.warning("the bus could not be brought up to date", exc_info=error)

    def _tell_dropped(self, one: BusSubscription, count: int) -> None:
        text = "messages dropped on topic %s: %s; a listener of %s is too slow"
        self._logger.warning(text, one.topic, count, one.pack)
        if self._events.is_heard:
            self._events.post(BusMessagesDropped(topic=one.topic, pack=one.pack, count=count))
            self._begin(self._events.deliver(), Context())

    async def close(self) -> None:
        """End every subscription, and what carries messages."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._again is not None:
            self._again.cancel()
        await self._end([one for each in self._topics.values() for one in each])
        async with self._turn:
            await self._carrier.leave()
        while self._tasks:
            await asyncio.wait(self._tasks)


class OwnersBus:
    """The bus as one owner sees it: its subscriptions end with it."""

    def __init__(self, bus: MessageBus, owner: object, name: str) -> None:
        self._bus = bus
        self._owner = owner
        self._name = name

    async def publish(self, topic: str, message: Any) -> None:
        """Tell *message*, a JSON value, to all who have subscribed to *topic*: see `MessageBus.publish`."""
        self._bus._require_open(self._owner, self._name)  # noqa: SLF001 - its own
        await self._bus.publish(topic, message)

    async def subscribe(self, topic: str, listener: Listener) -> Unsubscribe:
        """Call *listener*, sync or async, with every message of *topic* from now on; return what ends it."""
        return await self._bus._subscribe(self._owner, self._name, topic, listener)  # noqa: SLF001 - its own

    def __repr__(self) -> str:
        return f"<OwnersBus of {self._name!r}>"
