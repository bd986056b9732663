"""The outside of a worker: start it, ask it, hear its events, kill it."""

import asyncio
import contextlib
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[2]
_LIMIT = 120.0
"""After how many seconds a worker that says nothing counts as stuck."""


class WorkerEndedError(Exception):
    """A worker ended before it answered."""


class Worker:
    """A Python process that runs a module of this folder."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._events: dict[str, asyncio.Queue[Any]] = {}
        self._listening = asyncio.create_task(self._listen())
        self._is_killed = False

    async def _listen(self) -> None:
        while line := await self._process.stdout.readline():
            told = json.loads(line)
            if "event" in told:
                self._queue(told["event"]).put_nowait(told)
            else:
                self._asked.pop(told["id"]).set_result(told["answer"])
        for future in self._asked.values():
            future.set_exception(WorkerEndedError())

    def _queue(self, event: str) -> "asyncio.Queue[Any]":
        return self._events.setdefault(event, asyncio.Queue())

    def begin(self, do: str, **arguments: Any) -> "asyncio.Future[Any]":
        """Send a request; the future is its answer."""
        id = next(self._numbers)
        future = asyncio.get_running_loop().create_future()
        if self._listening.done():
            future.set_exception(WorkerEndedError())
            return future
        self._asked[id] = future
        self._process.stdin.write(json.dumps({"id": id, "do": do, **arguments}).encode() + b"\n")
        return future

    async def ask(self, do: str, **arguments: Any) -> Any:
        """Send a request and return its answer."""
        return await asyncio.wait_for(self.begin(do, **arguments), _LIMIT)

    async def hear(self, event: str) -> Any:
        """Wait for the next event of that name."""
        return await asyncio.wait_for(self._queue(event).get(), _LIMIT)

    async def kill(self) -> None:
        """End the process as `kill -9` does."""
        self._is_killed = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def end(self) -> None:
        """Let the process end by itself; it must have had nothing to complain about."""
        if self._process.returncode is None and not self._is_killed:
            self._process.stdin.close()
        complaints, _ = await asyncio.gather(self._process.stderr.read(), self._listening)
        code = await asyncio.wait_for(self._process.wait(), _LIMIT)
        for future in self._asked.values():
            future.cancelled() or future.exception()
        if complaints or code != (-9 if self._is_killed else 0):
            raise AssertionError(f"a worker ended with {code} and said: {complaints.decode()}")


@contextlib.asynccontextmanager
async def started(module: str, *arguments: Any, pass_fds: tuple[int, ...] = ()):
    """Run `access.workers.<module>`; warnings are errors there too."""
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
    command = (sys.executable, "-W", "error", "-m", f"access.workers.{module}", *map(str, arguments))
    environment = {**os.environ, "PYTHONPATH": path}
    process = await asyncio.create_subprocess_exec(
        *command, **pipes, pass_fds=pass_fds, env=environment, cwd=TESTS.parent, limit=2**22
    )
    worker = Worker(process)
    try:
        yield worker
    except BaseException:
        await worker.kill()
        raise
    finally:
        await worker.end()
