"""Threads for sync tools: the loop never blocks, and a timeout is real.

A thread can't be stopped. One whose caller has given up is abandoned: it ends when its function returns, nobody waits
for it, and at interpreter exit it is left behind. Abandoned threads are counted, and past a limit no sync tool is
started until some of them end.

At most `limit` threads work. A tool that calls another one from its thread gives its place back until that one has
ended; else tools could wait for places that only they could give back. What goes on has precedence over what begins,
and there the deeper call. Of the calls of one depth, as many may wait as may work: no more than twice `limit` are under
way. So threads are bounded: by 2 x limit x depths, and fewer than `abandoned_limit` that are abandoned; with the limits
of a host, which lets tools call tools 8 deep, that is 2 x 32 x 9 + 63 = 639.
"""

import asyncio
import contextvars
import itertools
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_numbers = itertools.count(1)
_IDLE_SECONDS = 30.0

Outcome = tuple[Any, BaseException | None]
"""What a function returned, or what it raised instead."""
NO_OUTCOME: Outcome = (None, None)


class TooManyAbandonedError(RuntimeError):
    """Too many sync tools never came back."""


class ThreadJob:
    """A call in a thread. Its future has the outcome, and never raises: what a thread raises is nobody's Ctrl-C."""

    __slots__ = ("begun", "call", "context", "depth", "future", "has_place", "loop", "over", "waiting")

    def __init__(self, call: Callable[[], Any], depth: int = 0) -> None:
        self.call = call
        self.depth = depth
        """How many calls of tools are around it."""
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Outcome] = self.loop.create_future()
        self.begun = False
        self.over = False
        """It has ended, or nobody waits for it any more."""
        self.has_place = False
        self.waiting = 0
        """How many threads of it wait for the end of another call: its own, and those that it has started."""

    def settle(self, outcome: Outcome) -> None:
        """Hand over the outcome, from any thread."""
        try:
            self.loop.call_soon_threadsafe(_settle, self.future, outcome)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            return


def _settle(future: "asyncio.Future[Outcome]", outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


class ToolThreads:
    """A pool of daemon threads that start when they are needed and end when they are not."""

    def __init__(self, *, limit: int = 32, abandoned_limit: int = 64) -> None:
        self._limit = limit
        self._abandoned_limit = abandoned_limit
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        """Told to those who wait for a place to go on."""
        self._queued: dict[int, dict[ThreadJob, None]] = {}
        """By depth, what waits for a place to begin, in order."""
        self._returning: dict[ThreadJob, None] = {}
        """What waits for a place to go on, after the call that it waited for."""
        self._under_way: Counter[int] = Counter()
        """By depth, how many were given a place to begin and are not over, whether they have it now or not."""
        self._working = 0
        """How many have a place now."""
        self._handed_out: queue.SimpleQueue[ThreadJob | None] = queue.SimpleQueue()
        self._idle = 0
        """How many threads wait for a job that nothing was handed out for yet."""
        self._closed = False
        self.abandoned = 0
        """How many threads run on for a caller that has given up."""

    def job(self, call: Callable[[], Any], depth: int = 0) -> ThreadJob:
        """Return *call* as a job that has not begun."""
        return ThreadJob(call, depth)

    def start(self, job: ThreadJob) -> None:
        """Run *job* in a thread, when there is a place."""
        with self._lock:
            if self.abandoned >= self._abandoned_limit:
                raise self._too_many()
            self._queued.setdefault(job.depth, {})[job] = None
            self._hand_out()

    def abandon(self, job: ThreadJob) -> None:
        """Stop waiting for *job*."""
        with self._lock:
            if not job.over:
                self.abandoned += job.begun
                self._end(job)
                if self.abandoned >= self._abandoned_limit:
                    self._refuse_queued()

    @contextmanager
    def waiting(self, job: ThreadJob) -> Iterator[None]:
        """Give the place of *job* back for the block, in which a thread of it waits for the end of another call."""
        with self._lock:
            job.waiting += 1
            self._give_back(job)
            self._hand_out()
        try:
            yield
        finally:
            with self._lock:
                job.waiting -= 1
                if not (job.waiting or job.over):
                    self._returning[job] = None
                    self._hand_out()
                    self._changed.wait_for(lambda: job.has_place or job.waiting or job.over)

    def close(self) -> None:
        """Let idle threads end, and others when they have nothing to do."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle -= 1
                self._handed_out.put(None)

    # -- places: with the lock held ----------------------------------------------------------------------------

    def _hand_out(self) -> None:
        """Give free places to what goes on, then to what begins, the deepest first."""
        while self._working < self._limit and (job := self._next()) is not None:
            job.has_place = True
            self._working += 1
            if job.begun:
                self._changed.notify_all()
            else:
                self._under_way[job.depth] += 1
                self._hand_to_thread(job)

    def _next(self) -> ThreadJob | None:
        waiting = self._returning or self._may_begin()
        job = next(iter(waiting), None)
        if job is not None:
            del waiting[job]
        return job

    def _may_begin(self) -> dict[ThreadJob, None]:
        if self.abandoned < self._abandoned_limit:
            for depth in sorted(self._queued, reverse=True):
                if self._queued[depth] and self._under_way[depth] < 2 * self._limit:
                    return self._queued[depth]
        return {}

    def _hand_to_thread(self, job: ThreadJob) -> None:
        self._handed_out.put(job)
        if self._idle:
            self._idle -= 1
        else:
            threading.Thread(target=self._work, name=f"agentos-tool-{next(_numbers)}", daemon=True).start()

    def _give_back(self, job: ThreadJob) -> None:
        if job in self._returning:
            del self._returning[job]
            self._changed.notify_all()
        if job.has_place:
            job.has_place = False
            self._working -= 1

    def _end(self, job: ThreadJob) -> None:
        job.over = True
        queued = self._queued.get(job.depth, {})
        if job in queued:
            del queued[job]
        else:
            self._under_way[job.depth] -= 1
        self._give_back(job)
        self._hand_out()

    def _refuse_queued(self) -> None:
        for job in [job for queued in self._queued.values() for job in queued]:
            self._end(job)
            job.settle((None, self._too_many()))

    def _too_many(self) -> TooManyAbandonedError:
        return TooManyAbandonedError(
            f"{self.abandoned} calls of sync tools have not come back; none is started until some do"
        )

    # -- in a thread -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (job := self._wait_for_job()) is not None:
            self._run(job)
            del job  # a thread that waits keeps nothing of the last call alive

    def _run(self, job: ThreadJob) -> None:
        with self._lock:
            job.begun = not job.over
        outcome = _outcome_of(job) if job.begun else NO_OUTCOME
        with self._lock:
            self._idle += 1
            if job.over:
                self.abandoned -= job.begun
                return
            self._end(job)
        job.settle(outcome)

    def _wait_for_job(self) -> ThreadJob | None:
        while True:
            try:
                return self._handed_out.get(timeout=0 if self._closed else _IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._idle:  # else something was handed out to this thread in this moment
                        self._idle -= 1
                        return None


def _outcome_of(job: ThreadJob) -> Outcome:
    try:
        return job.context.run(job.call), None
    except BaseException as error:  # noqa: BLE001 - a tool is foreign code: whatever it raises is its outcome
        return None, error
