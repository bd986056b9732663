"""A process that runs, seen from the event loop: what it says, and when it ends. Nothing here waits by blocking."""

import asyncio
import contextlib
import os
import subprocess
from typing import IO, Any

_CHUNK = 65_536
_FIRST_LOOK = 0.002
_LAST_LOOK = 0.05


class Pipes:
    """Feeds a process and collects what it says: up to *limit* bytes in all, the rest is dropped.

    `full` is done when something had to be dropped, `ended` when all that speak have closed.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", stdin: bytes, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = limit
        self._files: set[IO[bytes]] = set()
        self._rest = memoryview(stdin)
        self.stdout, self.stderr = bytearray(), bytearray()
        self.full: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._stdin = process.stdin
        for file, said in ((process.stdout, self.stdout), (process.stderr, self.stderr)):
            self._listen(file, said)
        if self._stdin is not None:
            os.set_blocking(self._stdin.fileno(), False)
            self._loop.add_writer(self._stdin.fileno(), self._feed)

    def _listen(self, file: Any, said: bytearray) -> None:
        os.set_blocking(file.fileno(), False)
        self._files.add(file)
        self._loop.add_reader(file.fileno(), self._hear, file, said)

    def _hear(self, file: IO[bytes], said: bytearray) -> None:
        try:
            data = os.read(file.fileno(), _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._forget(file)
            return
        said += data[: self._room]
        if len(data) > self._room and not self.full.done():
            self.full.set_result(None)
        self._room -= min(len(data), self._room)

    def _forget(self, file: IO[bytes]) -> None:
        self._loop.remove_reader(file.fileno())
        self._files.discard(file)
        file.close()
        if not self._files and not self.ended.done():
            self.ended.set_result(None)

    def _feed(self) -> None:
        try:
            self._rest = self._rest[os.write(self._stdin.fileno(), self._rest[:_CHUNK]) :]  # type: ignore[union-attr]
        except BlockingIOError:
            return
        except OSError:  # it does not listen any more
            self._rest = self._rest[:0]
        if not self._rest:
            self._stop_feeding()

    def _stop_feeding(self) -> None:
        stdin, self._stdin = self._stdin, None
        if stdin is not None:
            self._loop.remove_writer(stdin.fileno())
            stdin.close()

    def close(self) -> None:
        """Let go of all pipes, whoever still holds their other ends."""
        self._stop_feeding()
        for file in list(self._files):
            self._forget(file)


class Exit:
    """The end of a process. `done` is done then; on Linux the process stays unreaped, so that its id stays its own."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._fd = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._fd = os.pidfd_open(process.pid)
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._end)
        else:
            self._look(_FIRST_LOOK)

    def _look(self, delay: float) -> None:
        if self._process.poll() is not None:
            self._end()
        else:
            self._timer = self._loop.call_later(delay, self._look, min(2 * delay, _LAST_LOOK))

    def _end(self) -> None:
        self.close()
        if not self.done.done():
            self.done.set_result(None)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._loop.remove_reader(fd)
            os.close(fd)
