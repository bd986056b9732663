"""A function of a pack under way, with a time limit: in a task of its own, or in a thread if it is sync."""

import asyncio
import dis
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import Any, Protocol

from agentos.base.foreign import Border, settled
from agentos.stacks.in_use import Users

Outcome = tuple[Any, BaseException | None]

_left_behind: set["asyncio.Task[Outcome]"] = set()


class ThreadCall(Protocol):
    """A function that runs in a thread."""

    future: "asyncio.Future[Outcome]"


class Threads(Protocol):
    """Runs functions in threads."""

    def job(self, call: Callable[[], Any], depth: int = 0) -> Any:
        """Return *call* as a ThreadCall that has not begun."""
        ...

    def start(self, job: Any) -> None:
        """Run what `job` returned in a thread, when there is a place."""
        ...

    def abandon(self, job: Any) -> None:
        """Stop waiting for a job."""
        ...

    def waiting(self, job: Any) -> AbstractContextManager[None]:
        """Give the place of a job back for the block, in which it waits for something else."""
        ...


class ForeignJob:
    """A function of a pack under way. What does not end in time is left behind.

    Its future has the outcome and never raises, whatever the function does. The entry that the function belongs to
    is in use until it has ended.
    """

    __slots__ = (
        "_call",
        "_clock",
        "_depth",
        "_is_async",
        "_pauses",
        "_seconds",
        "_task",
        "_thread",
        "_threads",
        "_users",
        "ended_at",
        "future",
    )

    def __init__(
        self,
        call: Callable[[], Any],
        *,
        is_async: bool,
        seconds: float | None,
        threads: Threads,
        users: Users,
        depth: int = 0,
    ) -> None:
        self._call = call
        self._is_async = is_async
        self._seconds = seconds
        self._depth = depth
        self._threads = threads
        self._users: Users | None = users
        self._task: asyncio.Task[Outcome] | None = None
        self._thread: Any = None
        self._clock: asyncio.TimerHandle | None = None
        self._pauses = 0
        self.ended_at = 0.0
        self.future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def start(self) -> "ForeignJob":
        """Begin."""
        self._start_clock()
        if self._users is not None:
            self._users.count += 1
        if self._is_async:
            self._carry(self._call)
        else:
            self._start_thread()
        return self

    def waiting(self) -> AbstractContextManager[None]:
        """Give the thread's place back for the block, in which it waits for something else."""
        return self._threads.waiting(self._thread)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock for the block; blocks within one another, and side by side, count as one."""
        if self._pauses == 0 and self._clock is not None:
            self._seconds = self._clock.when() - asyncio.get_running_loop().time()
            self._clock.cancel()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and not self.future.done():
                self._start_clock()

    def _start_clock(self) -> None:
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            self._clock = loop.call_later(max(self._seconds, 0.0), self.give_up, TimeoutError())

    def _carry(self, call: Callable[[], Any]) -> None:
        self._task = asyncio.get_running_loop().create_task(_carried(call))
        self._task.add_done_callback(self._task_ended)

    def _start_thread(self) -> None:
        self._thread = self._threads.job(self._call, self._depth)
        self._thread.future.add_done_callback(self._thread_ended)
        try:
            self._threads.start(self._thread)
        except RuntimeError as error:  # too many threads have not come back
            self._end((None, error))
            self._leave()

    def _task_ended(self, task: "asyncio.Task[Outcome]") -> None:
        _left_behind.discard(task)
        self._end((None, asyncio.CancelledError()) if task.cancelled() else task.result())
        self._leave()

    def _thread_ended(self, future: "asyncio.Future[Outcome]") -> None:
        if self.future.done():
            return
        self._thread = None
        value, error = future.result()
        with Border() as border:  # what it returned may not even let itself be looked at
            if error is None and inspect.isawaitable(value):
                self._carry(lambda: value)
                return
        self._end((value, error) if border.error is None else (None, border.error))
        self._leave()

    def _end(self, outcome: Outcome) -> None:
        if self._clock is not None:
            self._clock.cancel()
        if not self.future.done():
            self.ended_at = perf_counter()
            self.future.set_result(outcome)

    def _leave(self) -> None:
        users, self._users = self._users, None
        if users is not None:
            users.leave()

    def give_up(self, why: BaseException) -> None:
        """Stop waiting: the outcome is *why*. A task is cancelled; a thread can't be, and is left behind."""
        self._end((None, why))
        if self._task is not None and not self._task.done():
            _left_behind.add(self._task)
            self._task.cancel()
        elif self._thread is not None:
            self._threads.abandon(self._thread)
            self._leave()

    async def outcome(self) -> Outcome:
        """Wait for the end; a caller that is cancelled meanwhile gives it up."""
        try:
            return await self.future
        except asyncio.CancelledError:
            self.give_up(asyncio.CancelledError())
            raise


async def _carried(call: Callable[[], Any]) -> Outcome:
    """Call in a task. It must not raise an exit, which a task would hand to the event loop, and that would end."""
    with Border() as border:
        return await settled(call()), None
    return None, border.error


def took_too_long(error: BaseException) -> bool:
    """Tell whether *error*, of an outcome, says that there was none in time."""
    return type(error) is TimeoutError and not error.args


def is_async(function: Any) -> bool:
    """Tell whether calling *function* gives something to await, as far as it can be seen."""
    function = _plain(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - its kind


def never_waits(function: Any) -> bool:
    """Tell whether *function* is async and has nothing that it could wait for: it ends in the step that begins it."""
    function = _plain(function)
    code = getattr(function, "__code__", None)
    if code is None or not inspect.iscoroutinefunction(function):
        return False
    return not any(one.opname in ("SEND", "GET_AWAITABLE") for one in dis.get_instructions(code))


def _plain(function: Any) -> Any:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    return getattr(function, "__func__", function)
