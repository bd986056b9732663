"""Threads for sync tools: the loop never blocks, and a timeout is real.

A thread can't be stopped. One whose caller has given up is abandoned: it ends when its function returns, nobody waits
for it, and at interpreter exit it is left behind. Abandoned threads are counted, and past a limit no sync tool is
started until some of them end.
"""

import asyncio
import contextvars
import itertools
import queue
import threading
from collections.abc import Callable
from typing import Any

_numbers = itertools.count(1)
_IDLE_SECONDS = 30.0


class TooManyAbandonedError(RuntimeError):
    """Too many sync tools never came back."""


class _Job:
    __slots__ = ("abandoned", "begun", "call", "context", "future", "loop")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.begun = False
        self.abandoned = False


class ToolThreads:
    """A pool of daemon threads that start when they are needed and end when they are not."""

    def __init__(self, *, limit: int = 32, abandoned_limit: int = 64) -> None:
        self._limit = limit
        self._abandoned_limit = abandoned_limit
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._running = 0
        self._idle = 0
        self.abandoned = 0
        """How many threads run on for a caller that has given up."""

    def start(self, call: Callable[[], Any]) -> _Job:
        """Run *call* in a thread; the job's future has its outcome."""
        if self.abandoned >= self._abandoned_limit:
            raise TooManyAbandonedError(
                f"{self.abandoned} calls of sync tools have not come back; none is started until some do"
            )
        job = _Job(call)
        with self._lock:
            self._jobs.put(job)
            if self._idle < self._jobs.qsize() and self._running - self.abandoned < self._limit:
                self._running += 1
                name = f"agentos-tool-{next(_numbers)}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
        return job

    def abandon(self, job: _Job) -> None:
        """Stop waiting for *job*."""
        with self._lock:
            if not job.abandoned:
                job.abandoned = True
                if job.begun:
                    self.abandoned += 1

    def close(self) -> None:
        """Let idle threads end."""
        with self._lock:
            for _ in range(self._running):
                self._jobs.put(None)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            try:
                job = self._jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                job = None
            with self._lock:
                self._idle -= 1
                if job is None:
                    self._running -= 1
                    return
                if job.abandoned:
                    continue
                job.begun = True
            self._run(job)

    def _run(self, job: _Job) -> None:
        try:
            outcome, error = job.context.run(job.call), None
        except BaseException as raised:  # noqa: BLE001 - a tool is foreign code: whatever it raises is its outcome
            outcome, error = None, raised
        with self._lock:
            if job.abandoned:
                self.abandoned -= 1
                return
            job.abandoned = True
        try:
            job.loop.call_soon_threadsafe(_settle, job.future, outcome, error)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            return


def _settle(future: "asyncio.Future[Any]", outcome: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    elif isinstance(error, StopIteration):
        future.set_exception(RuntimeError("the tool raised StopIteration"))
    else:
        future.set_exception(error)
