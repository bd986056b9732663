"""A pack that uses the bus from a process of its own: it repeats what it hears, and may carry messages itself."""

import os

from agentos import Descriptor, ExtensionPack


class Wire:
    """A channel: what is published reaches its subscribers with the number of this process."""

    def __init__(self):
        self._listeners = []

    async def publish(self, topic, message):
        for listens_to, listener in list(self._listeners):
            if listens_to == topic:
                listener({"carried": message, "by": os.getpid()})

    async def subscribe(self, topic, listener):
        one = (topic, listener)
        self._listeners.append(one)
        return lambda: self._listeners.remove(one)


def create_extension_pack(context):
    async def on_activate(context):
        heard, ends = [], []

        async def repeat(message):
            await context.bus.publish("echoes", {"said": message, "by": os.getpid()})
            if message == "stop":
                ends[0]()

        if context.options.get("listens"):
            await context.bus.subscribe("calls", heard.append)
            ends.append(await context.bus.subscribe("calls", repeat))

    descriptors = [Descriptor("communication-channel", "wire", Wire())] if context.options.get("carries") else []
    return ExtensionPack("messenger", "1.0", descriptors, on_activate=on_activate)
