"""One process of a pack, from its start to its end: never mended.

It speaks on a socket of its own, and what it prints is its pack's log. A message that is invalid or too large ends it:
behind such a one nobody can say where the next begins.
"""

import asyncio
import contextlib
import contextvars
import socket
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

from agentos.model.isolation import WorkerLimits
from agentos.processes.spawned_process import ChildProcess, start
from agentos.workers.frames import FrameError, Frames
from agentos.workers.launching import LaunchPlan
from agentos.workers.peer import Handle, Peer, PeerError
from agentos.workers.process_limits import limit_reached

GRACE = 2.0
"""How many seconds a process may take to end when it is asked to."""
LINE_LIMIT = 64 * 1024
"""How much of a line of its output is kept to look for secrets in it; less is shown."""
_UNREAD_MESSAGES = 8
"""How many messages of the largest size may wait for the process to read them."""


class WorkerProcess:
    """A process that is being asked things. *on_end* is called once with the reason, as soon as it can't be any more.

    `number` is that of its mount.
    """

    def __init__(
        self,
        number: int,
        *,
        limits: WorkerLimits,
        handle: Handle,
        note: Callable[[int, bytes, bool], None],
        on_end: Callable[["WorkerProcess", str], Awaitable[None]],
        silence: float,
        mask: Callable[[str], str] = str,
    ) -> None:
        self.number = number
        self.is_open = False
        self.calls = 0
        self.ended = asyncio.Event()
        """Whoever waited was told, and nothing of it is left."""
        self._limits = limits
        self._limit = limits.message
        self._on_end = on_end
        self._silence = silence
        self._listening: asyncio.Task[None] | None = None
        self._process = ChildProcess(grace=GRACE, line_limit=LINE_LIMIT, note=note)
        self._channel = _HostSocket(self._receive, self._lost)
        self._frames = Frames(self._limit)
        self.peer = Peer(self._write, handle, limit=self._limit, mask=mask)
        self._is_started = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._process.pid

    async def start(self, plan: LaunchPlan) -> None:
        """Start the process. Raise CannotStartError if that is not possible."""
        ours, theirs = socket.socketpair()
        with contextlib.closing(theirs):
            try:
                command, *args = plan.argv
                args += [str(theirs.fileno())] * 2 + [str(self._limit)]
                fds = (theirs.fileno(),)
                await start(self._process, command, args, plan.env, plan.cwd, stdin=subprocess.DEVNULL, pass_fds=fds)
            except BaseException:
                ours.close()
                raise
        self._is_started = True
        ours.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: self._channel, sock=ours)
        self.is_open = self._ending is None

    async def ask(self, op: str, body: Any) -> Any:
        """Return what it answers; raise what it raised, or the error that it was ended with."""
        self.calls += 1
        try:
            return await self.peer.request(op, body)
        except asyncio.CancelledError:
            self._listen()
            raise

    def _listen(self) -> None:
        """End it if it does not answer at all any more: somebody gave up waiting for it."""
        if self.is_open and self._listening is None:
            self._listening = asyncio.create_task(self._await_sign(), context=contextvars.Context())

    async def _await_sign(self) -> None:
        try:
            async with asyncio.timeout(self._silence):
                await self.peer.request("sign")
        except TimeoutError:
            self.end(f"it did not answer for {self._silence:g} s after a call was given up", at_once=True)
        except Exception:  # noqa: BLE001 - whatever it answered: it did, or it is over
            return
        finally:
            self._listening = None

    def end(self, reason: str, *, at_once: bool = False) -> None:
        """Note that it is over, or end it: at once, or politely. The first reason counts."""
        if self._ending is None:
            self.is_open = False
            if at_once and self._is_started:
                self._process.kill()
            self._ending = asyncio.create_task(self._end(reason))

    async def stop(self, reason: str) -> None:
        """End it politely; return when nothing of it is left."""
        self.end(reason)
        await self.ended.wait()

    async def _end(self, reason: str) -> None:
        try:
            if not reason:
                how, code = await self._process.how_it_ended()
                reason = limit_reached(code, self._limits) or how
                self._process.kill()
            await self._on_end(self, reason)
        finally:
            self._channel.close()
            if self._listening is not None:
                self._listening.cancel()
            if self._is_started:
                await self._process.stop()
            self.ended.set()

    # -- its messages --------------------------------------------------------------------------------------------------

    def _write(self, line: bytes) -> None:
        if self._channel.unread > _UNREAD_MESSAGES * self._limit:
            self.end("it does not read what it is sent", at_once=True)
        self._channel.write(line)

    def _receive(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self.peer.receive(frame)
        except (FrameError, PeerError) as error:
            self.end(f"it sent {error}", at_once=True)

    def _lost(self) -> None:
        self.end("")


class _HostSocket(asyncio.Protocol):
    """The socket to a process."""

    def __init__(self, receive: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        self._receive = receive
        self._lost = lost
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of a stream

    def data_received(self, data: bytes) -> None:
        self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        self._lost()

    @property
    def unread(self) -> int:
        """Return how many bytes wait to be read by the process."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, line: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(line)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
