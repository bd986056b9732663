"""Two peers in one process, joined by bytes."""

import asyncio

from agentos.workers.frames import Frames
from agentos.workers.peer import Peer


async def nothing(op, body):
    return None


def joined(here=nothing, there=nothing, **options):
    """Return two peers: what one writes the other receives, in the next turn of the loop."""
    loop, peers = asyncio.get_running_loop(), []

    def wire(to):
        frames = Frames()
        return lambda line: loop.call_soon(lambda: [peers[to].receive(frame) for frame in frames.feed(line)])

    peers += [Peer(wire(1), here, **options), Peer(wire(0), there, **options)]
    return peers
