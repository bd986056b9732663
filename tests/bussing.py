"""What tests of the bus have in common: listeners that can be waited for, and a channel of a pack."""

import asyncio

from agentos import Descriptor, ExtensionPack

SECONDS = 30


class Ears:
    """A listener that keeps what it heard."""

    def __init__(self):
        self.heard = []
        self._more = asyncio.Event()

    async def __call__(self, message):
        self.heard.append(message)
        self._more.set()

    async def until(self, count):
        """Return what was heard, once it is so much."""
        async with asyncio.timeout(SECONDS):
            while len(self.heard) < count:
                self._more.clear()
                await self._more.wait()
        return self.heard


class Wire:
    """A channel of a pack: brings what is published to its subscribers, in this process."""

    def __init__(self):
        self.published = []
        self.listeners = {}

    async def publish(self, topic, message):
        self.published.append((topic, message))
        for listener in list(self.listeners.get(topic, ())):
            await listener(message)

    async def subscribe(self, topic, listener):
        mine = self.listeners.setdefault(topic, [])
        mine.append(listener)
        return lambda: mine.remove(listener)


def channel_pack(wire, name="wires", **fields):
    return ExtensionPack(name, "1.0", [Descriptor("communication-channel", "wire", wire, **fields)])


def listening_pack(ears, topic="news", name="reader"):
    """Return a pack that subscribes when it is activated."""

    async def on_activate(context):
        await context.bus.subscribe(topic, ears)

    return ExtensionPack(name, "1.0", [], on_activate=on_activate)


async def repeated_until(condition, do):
    """Do something again and again, until *condition* is true."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await do()
            await asyncio.sleep(0.02)


async def until(condition):
    """Wait until *condition*, a function, is true: it is about what nobody tells."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.01)
