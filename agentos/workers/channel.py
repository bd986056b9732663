"""The child's end of the conversation with its host: two descriptors, read by the loop or, while it waits, by hand."""

import asyncio
import os
import select
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from agentos.workers.frames import Frame, FrameError, Frames
from agentos.workers.peer import Peer, PeerError

_CHUNK = 256 * 1024

Begin = Callable[[], "tuple[int, asyncio.Future[Any]]"]


class Channel:
    """Reads and writes messages. Writing blocks where the host does not read: nothing is kept here for it."""

    def __init__(self, read: int, write: int, limit: int) -> None:
        self._read = read
        self._coming = select.poll()
        self._coming.register(read, select.POLLIN)
        self._write = write
        self._frames = Frames(limit)
        self._lock = threading.Lock()
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._peer: Peer | None = None
        self.closed = asyncio.Event()
        """The host is gone, or what it says can't be understood: there is nothing left to do."""

    def start(self, peer: Peer) -> None:
        """Hand what comes to *peer* from now on."""
        self._peer = peer
        self._loop.add_reader(self._read, self._take_in)

    def write(self, line: bytes) -> None:
        """Write a message, from any thread."""
        view = memoryview(line)
        try:
            with self._lock:
                while view:
                    view = view[os.write(self._write, view) :]
        except OSError:
            self._loop.call_soon_threadsafe(self.closed.set)

    def _take_in(self) -> None:
        if not self._coming.poll(0):
            return  # what the loop was told of has been read by hand since
        for frame in self._frames_of(self._chunk()):
            self._receive(frame)

    def _chunk(self) -> bytes:
        try:
            data = os.read(self._read, _CHUNK)
        except OSError:
            data = b""
        if not data:
            self._close()
        return data

    def _frames_of(self, data: bytes) -> list[Frame]:
        found: list[Frame] = []
        try:
            found.extend(self._frames.feed(data))
        except FrameError:
            self._close()
        return found

    def _receive(self, frame: Frame) -> None:
        assert self._peer is not None  # noqa: S101 - it is read from `start` on
        try:
            self._peer.receive(frame)
        except PeerError:
            self._close()

    def _close(self) -> None:
        self._loop.remove_reader(self._read)
        self.closed.set()

    # -- waiting for an answer where nothing can be awaited ------------------------------------------------------------

    def wait(self, begin: Begin, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Return the answer to a question: of *begin* on the event loop, which stands still meanwhile, or of *ask*."""
        if threading.get_ident() != self._thread:
            return asyncio.run_coroutine_threadsafe(ask(), self._loop).result()
        number, answer = begin()
        while not answer.done():
            if self.closed.is_set():
                raise PeerError("the host is gone")
            for frame in self._frames_of(self._chunk()):
                if frame.get("re") == number:
                    self._receive(frame)
                else:
                    self._loop.call_soon(self._receive, frame)
        return answer.result()
