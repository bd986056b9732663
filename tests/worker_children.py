"""A pack in a process of its own, without anybody who supervises it: what the tests of both sides of the pipe use."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from agentos import PackEntry
from agentos.workers.declaration import RemotePack, pack_request
from agentos.workers.frames import Frames
from agentos.workers.host_answers import HostAnswers
from agentos.workers.peer import Peer, PeerError

PACKS = Path(__file__).parent / "workers" / "packs"


class Child:
    """A process that serves one pack."""

    def __init__(self):
        self.peer = None
        self.answers = None
        self.remote = None
        self.process = None

    async def start(self, command=(sys.executable, "-m", "agentos.workers.child")):
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = await asyncio.create_subprocess_exec(
            *command, str(theirs_in), str(theirs_out), pass_fds=(theirs_in, theirs_out), env=env
        )
        os.close(theirs_in)
        os.close(theirs_out)
        loop = asyncio.get_running_loop()
        self._frames = Frames()
        self.writer, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(ours_out, "wb"))
        self.reader, _ = await loop.connect_read_pipe(lambda: _Reading(self), os.fdopen(ours_in, "rb"))
        self.peer = Peer(self.writer.write, self.answer)

    async def answer(self, op, body):
        return await self.answers.handle(op, body)

    def received(self, data):
        for frame in self._frames.feed(data):
            self.peer.receive(frame)

    async def ask(self, op, body, *, idempotent=False):
        return await self.peer.request(op, body)

    async def make(self, context):
        self.answers = HostAnswers(context)
        self.remote = RemotePack(await self.peer.request("make", pack_request(context)), self.ask)
        self.answers.call_it(self.remote.pack.name)
        return self.remote.pack

    async def stop(self):
        self.writer.close()
        self.reader.close()
        await self.process.wait()


class _Reading(asyncio.Protocol):
    def __init__(self, child):
        self._child = child

    def data_received(self, data):
        self._child.received(data)

    def connection_lost(self, exc):
        self._child.peer.fail(PeerError("the process is gone"))


@asynccontextmanager
async def in_process(name, **fields):
    """Give an entry whose pack, a module among the tests' packs, runs in a process of its own; and the process."""
    child = Child()
    await child.start()
    own = PackEntry(module=str(PACKS / f"{name}.py"), **fields)

    async def make(context):
        entry = attrs.evolve(own, options=dict(context.options))
        return await child.make(attrs.evolve(context, manifest_entry=entry))

    try:
        yield attrs.evolve(own, factory=make, module=None), child
    finally:
        await child.stop()


@asynccontextmanager
async def placed(place, name, **fields):
    """Give an entry of a pack among the tests' that runs in the host, or in a process of its own."""
    if place == "inline":
        yield PackEntry(module=str(PACKS / f"{name}.py"), **fields)
    else:
        async with in_process(name, **fields) as (entry, _):
            yield entry
