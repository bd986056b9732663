"""What carries messages: the built-in way, or a channel of a pack in its place."""

import asyncio
import json
import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Protocol

from agentos.base.foreign import type_name
from agentos.bus.bus_messages import written
from agentos.bus.store_link import StoreLink
from agentos.errors import BusError, StoreError
from agentos.kinds.communication_channel import BUS_TIMEOUT, HEARD, Heard
from agentos.payloads.asked_payload import Finds, ask_payload
from agentos.payloads.foreign_job import Outcome, Threads
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.entry import Entry
from agentos.store import Store

Arrived = Callable[[str, str], None]
"""Takes in a message of a topic, as JSON, on the event loop."""


class Carrier(Protocol):
    """Carries messages from who publishes to who has subscribed."""

    async def publish(self, topic: str, text: str) -> None:
        """Carry a message."""
        ...

    async def follow(self, topics: Collection[str]) -> dict[str, BusError]:
        """Bring what is published of *topics*, and of nothing else; return why that can't be, of each that can't."""
        ...

    async def leave(self) -> None:
        """Bring nothing more."""
        ...


class BuiltInCarrier:
    """Brings messages to the listeners of this host at once, and by a shared store to other hosts."""

    def __init__(self, store: Store, arrived: Arrived, logger: MaskingLogger) -> None:
        self._arrived = arrived
        self._link = StoreLink(store, arrived, logger) if store.is_shared else None

    async def publish(self, topic: str, text: str) -> None:
        """Carry a message; raise StoreError if other hosts can't be told."""
        self._arrived(topic, text)
        if self._link is not None:
            await self._link.send(topic, text)

    async def follow(self, topics: Collection[str]) -> dict[str, BusError]:
        """Listen to other hosts, where somebody wants to hear."""
        if topics and self._link is not None:
            try:
                await self._link.listen()
            except StoreError as error:
                return dict.fromkeys(topics, BusError(f"other hosts can't be heard: {error}"))
        return {}

    async def leave(self) -> None:
        """Bring nothing more."""
        if self._link is not None:
            await self._link.close()


class PackCarrier:
    """Brings messages by a channel of a pack, as long as that is in force."""

    def __init__(self, entry: Entry, threads: Threads, arrived: Arrived, masker: Masker, logger: MaskingLogger) -> None:
        self.slot: Any = entry._slot  # noqa: SLF001 - the slot is our own
        self._entry = entry
        self._name = f"{entry.source.pack}:{entry.id}"
        self._threads = threads
        self._arrived = arrived
        self._masker = masker
        self._logger = logger
        self._followed: dict[str, Any] = {}
        """By topic, what ends its subscription."""
        self._is_used = False

    async def publish(self, topic: str, text: str) -> None:
        """Have the pack carry a message; raise BusError if it can't."""
        await self._required("publish", topic, json.loads(text))

    async def follow(self, topics: Collection[str]) -> dict[str, BusError]:
        """Have the pack bring what is published of *topics*, and of nothing else."""
        failures: dict[str, BusError] = {}
        await asyncio.gather(*(self._unfollow(one) for one in list(self._followed) if one not in topics))
        new = [one for one in topics if one not in self._followed]
        for topic, ends in zip(new, await asyncio.gather(*map(self._subscribed, new)), strict=True):
            if isinstance(ends, BusError):
                failures[topic] = ends
            else:
                self._followed[topic] = ends
        self._use(is_used=bool(self._followed))
        return failures

    def _use(self, *, is_used: bool) -> None:
        """Keep the channel from being deactivated before its subscriptions are ended."""
        if is_used and not self._is_used:
            self.slot.users.count += 1
        elif self._is_used and not is_used:
            self.slot.users.leave()
        self._is_used = is_used

    async def _subscribed(self, topic: str) -> Callable[[], Any] | BusError:
        """Return what ends a new subscription, or why there is none."""
        hears = _Ears(partial(self._arrived, topic), self._masker)
        try:
            ends = await self._required("subscribe", topic, hears)
        except BusError as error:
            return error
        if not callable(ends):
            return BusError(f"{self._name}: subscribe returned a {type_name(ends)}; expected what ends it")

        def end() -> Any:
            hears.is_open = False
            return ends()

        return end

    async def _unfollow(self, topic: str) -> None:
        ends = self._followed.pop(topic)
        _, error = await self._ask(lambda _: ends)
        if error is not None:
            self._logger.warning("%s raised when a subscription ended", self._name, exc_info=error)

    async def leave(self) -> None:
        """End what was subscribed to at the pack's channel."""
        await self.follow(())

    async def _required(self, act: str, *given: Any) -> Any:
        answer, error = await self._ask(act, *given)
        if error is not None:
            self._logger.warning("%s: %s failed", self._name, act, exc_info=error)
            raise BusError(f"{self._name}: {act} raised {type_name(error)}")
        return answer

    async def _ask(self, finds: str | Finds, *given: Any) -> Outcome:
        return await ask_payload(self._entry, finds, *given, threads=self._threads, seconds=BUS_TIMEOUT, on_loop=True)


class _Ears:
    """What a pack's channel calls with a message, from any thread. What is no message is refused to it."""

    def __init__(self, arrived: Callable[[str], None], masker: Masker) -> None:
        self.is_open = True
        self._arrived = arrived
        self._masker = masker
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def __call__(self, message: Any) -> Heard:
        text = written(message, self._masker)
        if threading.get_ident() == self._thread:
            self._take(text)
        else:
            self._loop.call_soon_threadsafe(self._take, text)
        return HEARD

    def _take(self, text: str) -> None:
        if self.is_open:
            self._arrived(text)
