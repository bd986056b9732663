"""The channels of packs, started while the manifest turns them on and their packs are in force."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from agentos.kinds.messaging_channel import CHANNEL_TIMEOUT
from agentos.model.channels import ChannelMessage, ChannelSettings
from agentos.payloads.asked_payload import ask_payload
from agentos.payloads.foreign_job import Outcome, Threads
from agentos.processes.backoff import Backoff
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.entry import Entry
from agentos.stacks.registry import Registry

Deliver = Callable[[ChannelMessage], Awaitable[bool]]
Resume = Callable[[str, str], Awaitable[None]]
"""Has what waits for a conversation of a channel sent now."""
_FIRST, _LONGEST, _JITTER = 1.0, 60.0, 0.2


@attrs.define(eq=False)
class _RunningChannel:
    entry: Entry
    is_running: bool = False
    task: "asyncio.Task[None] | None" = None


class ChannelDelivery:
    """What a channel is given at its start: it brings messages in, and says when somebody can be reached again."""

    def __init__(self, channel: str, deliver: Deliver, resume: Resume) -> None:
        self._channel = channel
        self._deliver = deliver
        self._resume = resume

    async def __call__(self, message: ChannelMessage) -> bool:
        """Keep a message, whatever channel it says it came by; False if it is known."""
        if not isinstance(message, ChannelMessage):
            raise TypeError(f"deliver: expected a ChannelMessage, got {type(message).__name__}")
        return await self._deliver(attrs.evolve(message, channel=self._channel))

    async def resume(self, conversation: str) -> None:
        """Send what waits for *conversation* now, rather than when it would be tried again."""
        await self._resume(self._channel, conversation)


async def ask_channel(entry: Entry, threads: Threads, name: str, *given: Any, within: float | None = None) -> Outcome:
    """Call a method of a channel, and return what it returned or raised; it has its own time, or *within* if less."""
    most = math.inf if within is None else within
    return await ask_payload(entry, name, *given, threads=threads, seconds=CHANNEL_TIMEOUT, most=most, on_loop=True)


class RunningChannels:
    """Starts channels, again and again if they fail, and stops those that went out of force."""

    def __init__(
        self,
        registry: Registry,
        settings: Mapping[str, ChannelSettings],
        threads: Threads,
        deliver: Deliver,
        resume: Resume,
        logger: MaskingLogger,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._threads = threads
        self._deliver = deliver
        self._resume = resume
        self._logger = logger
        self._channels: dict[str, _RunningChannel] = {}

    def get(self, id: str) -> Entry | None:
        """Return the channel of that id, if it is at work."""
        found = self._channels.get(id)
        return found.entry if found is not None and found.is_running else None

    def wanted(self) -> dict[str, Entry]:
        """Return the channels that are in force and turned on."""
        active = {entry.id: entry for entry in self._registry.list_active()}
        return {id: entry for id, entry in active.items() if id in self._settings and self._settings[id].enabled}

    async def look(self) -> None:
        """Start what is new, and stop what is gone."""
        wanted = self.wanted()
        for id, one in list(self._channels.items()):
            if id not in wanted or wanted[id].payload is not one.entry.payload:
                del self._channels[id]
                await self._stop(one)
        for id in wanted.keys() - self._channels.keys():
            one = self._channels[id] = _RunningChannel(wanted[id])
            one.task = asyncio.create_task(self._start(one))

    async def _start(self, one: _RunningChannel) -> None:
        backoff = Backoff(_FIRST, _LONGEST, _JITTER)
        given = ChannelDelivery(one.entry.id, self._deliver, self._resume)
        while True:
            _, error = await ask_channel(one.entry, self._threads, "start", given)
            if error is None:
                one.is_running = True
                return
            self._logger.warning("channel %s could not be started and is tried again", one.entry.id, exc_info=error)
            await asyncio.sleep(backoff.next())

    async def _stop(self, one: _RunningChannel, within: float | None = None) -> None:
        if one.task is not None and not one.task.done():
            one.task.cancel()
            await asyncio.wait([one.task])
        one.is_running = False
        _, error = await ask_channel(one.entry, self._threads, "stop", within=within)
        if error is not None:
            self._logger.warning("channel %s raised when it was stopped", one.entry.id, exc_info=error)

    async def close(self, within: float) -> None:
        """Stop all of them, side by side; what takes longer than *within* seconds is left behind."""
        channels, self._channels = self._channels, {}
        await asyncio.gather(*(self._stop(one, within) for one in channels.values()))
