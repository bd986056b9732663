"""One call under way: run where it belongs, ended by itself, by its timeout, or by somebody who cancels it."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from types import AsyncGeneratorType, CoroutineType
from typing import Any, Literal

import attrs

from agentos.calls.results import NotSerialisableError, to_json
from agentos.calls.threads import Threads
from agentos.tools.ready import Prepared
from agentos.tools.tool_context import ToolContext

ITEM_LIMIT = 10_000
"""How many items a tool that yields may yield."""
_GRACE = 5.0
"""How long a tool may clean up after its caller was cancelled."""

_left_behind: set["asyncio.Task[Any]"] = set()


class Watch:
    """Ends calls that outstay the house's own time limit, by looking at all of them once a second.

    A timer for each call would cost more than the rest of a short call. A tool that names its own timeout has one.
    """

    PERIOD = 1.0

    def __init__(self) -> None:
        self._deadlines: dict[Running, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, running: "Running", loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Watch *running* for *seconds*."""
        self._deadlines[running] = loop.time() + seconds
        if self._loop is not loop:
            self._loop = loop
            loop.call_later(self.PERIOD, self._look)

    def end(self, running: "Running") -> None:
        """Watch *running* no more."""
        self._deadlines.pop(running, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            return
        now = loop.time()
        for running in [one for one, deadline in self._deadlines.items() if deadline <= now]:
            running.expire()
        if self._deadlines:
            loop.call_later(self.PERIOD, self._look)
        else:
            self._loop = None


class Running:
    """A call under way. `ended_by` says who ended it, if it did not end by itself."""

    __slots__ = ("_context", "_future", "_task", "_watch", "ended_by")

    def __init__(self, context: ToolContext, watch: Watch) -> None:
        self._context = context
        self._watch = watch
        self._task: asyncio.Task[Any] | None = None
        self._future: asyncio.Future[Any] | None = None
        self.ended_by: Literal["timeout", "cancel"] | None = None

    # -- ending it ---------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """End the call from outside."""
        self._end("cancel")

    def expire(self) -> None:
        """End the call because its time is up."""
        self._end("timeout")

    def _end(self, by: Literal["timeout", "cancel"]) -> None:
        if self.ended_by is not None:
            return
        self.ended_by = by
        self._context.cancelled = True
        if self._task is not None:
            self._task.cancel()
        if self._future is not None:
            _resolve(self._future)

    # -- on the loop -------------------------------------------------------------------------------------------

    async def on_loop(self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Run an async tool. One that names its timeout gets a task of its own, so that it can't outstay it."""
        value = prepared.execute(arguments, context)  # type: ignore[misc]  # bound, or it would not be in force
        if type(value) is not CoroutineType:
            if inspect.isasyncgen(value):
                value = _collected(value, context)
            elif not inspect.isawaitable(value):
                return _gathered(value, context) if inspect.isgenerator(value) else value
        if prepared.tool.timeout is not None:
            return await self._apart(value, prepared)
        return await self._inline(value, prepared.timeout)

    async def _inline(self, value: Awaitable[Any], seconds: float | None) -> Any:
        """Await in the caller's own task: the cheapest way, for tools that end when they are cancelled."""
        loop = asyncio.get_running_loop()
        task = self._task = asyncio.current_task(loop)
        if seconds is not None:
            self._watch.begin(self, loop, seconds)
        try:
            outcome = await value
        except asyncio.CancelledError:
            if self.ended_by is not None and task is not None and task.uncancel() > 0:
                self.ended_by = None  # the caller itself was cancelled as well, and that counts more
            raise
        finally:
            self._task = None
            self._watch.end(self)
        if self.ended_by is not None and task is not None:
            await _swallow_cancellation(task)
        return outcome

    async def _apart(self, value: Any, prepared: Prepared) -> Any:
        """Await in a task of its own, which is left behind if it does not end when it is cancelled."""
        loop = asyncio.get_running_loop()
        task = self._task = loop.create_task(_carried(value))
        future = self._future = loop.create_future()
        task.add_done_callback(lambda _: _resolve(future))
        if isinstance(value, CoroutineType):
            task.add_done_callback(lambda _: value.close())  # one that was cancelled before it began is not missed
        clock = loop.call_later(prepared.timeout, self.expire) if prepared.timeout is not None else None
        try:
            await future
        except asyncio.CancelledError:
            self.ended_by = None
            self._context.cancelled = True
            task.cancel()
            await asyncio.wait([task], timeout=_GRACE)
            raise
        finally:
            if clock is not None:
                clock.cancel()
            if not task.done():
                _leave_behind(task, prepared)
            elif not task.cancelled():
                task.exception()  # seen
        return None if self.ended_by is not None else _unpacked(task.result())

    async def gathered(self, value: Any, context: ToolContext, prepared: Prepared) -> Any:
        """Gather what comes out of a generator or iterator that an async tool returned; anything else is itself."""
        if type(value) is AsyncGeneratorType:
            return await self._inline(_collected(value, context), prepared.timeout)
        return _gathered(value, context) if issubclass(type(value), Iterator) else value

    # -- in a thread -------------------------------------------------------------------------------------------

    async def in_thread(
        self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext, threads: Threads
    ) -> Any:
        """Run a sync tool in a thread; when nobody waits any more, the thread is abandoned."""
        loop = asyncio.get_running_loop()
        context._loop = loop  # noqa: SLF001 - what the tool tells from its thread goes through the loop

        def call() -> Any:
            value = prepared.execute(arguments, context)  # type: ignore[misc]  # bound, or it would not be in force
            return _gathered(value, context) if issubclass(type(value), Iterator) else value

        job = threads.start(call)
        self._future = job.future
        clock = loop.call_later(prepared.timeout, self.expire) if prepared.timeout is not None else None
        try:
            value = await job.future
        except asyncio.CancelledError:
            context.cancelled = True
            threads.abandon(job)
            raise
        finally:
            if clock is not None:
                clock.cancel()
            if self.ended_by is not None:
                threads.abandon(job)
            context._loop = None  # noqa: SLF001 - as above
        if self.ended_by is None and inspect.isawaitable(value):
            return await self._inline(value, prepared.timeout)
        if self.ended_by is None and inspect.isasyncgen(value):
            return await self._inline(_collected(value, context), prepared.timeout)
        return value


def _resolve(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        future.set_result(None)


@attrs.frozen
class _Left:
    """What a tool that tried to end the program raised. A task would hand it to the event loop, which would end."""

    error: SystemExit


async def _carried(value: Awaitable[Any]) -> Any:
    try:
        return await value
    except SystemExit as error:
        return _Left(error)


def _unpacked(outcome: Any) -> Any:
    if type(outcome) is _Left:
        raise outcome.error
    return outcome


def _leave_behind(task: "asyncio.Task[Any]", prepared: Prepared) -> None:
    """Keep a task that goes on after its call has ended, and count it as a use of the tool until it ends."""
    _left_behind.add(task)
    prepared.users.count += 1

    def ended(task: "asyncio.Task[Any]") -> None:
        _left_behind.discard(task)
        prepared.users.leave()
        if not task.cancelled():
            task.exception()  # seen

    task.add_done_callback(ended)


async def _swallow_cancellation(task: "asyncio.Task[Any]") -> None:
    """Take back a cancellation that the tool did not let through: the caller must not meet it."""
    task.uncancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        if task.cancelling():
            raise


async def _collected(items: AsyncIterator[Any], context: ToolContext) -> list[Any]:
    """Gather what an async tool yields; the host hears of each item at once."""
    collected: list[Any] = []
    async for item in items:
        collected.append(item)
        await context.send_content(_text(item))
        _bound(collected)
    return collected


def _gathered(items: Iterator[Any], context: ToolContext) -> list[Any]:
    """Gather what a sync tool yields; the host hears of each item at once."""
    collected: list[Any] = []
    for item in items:
        collected.append(item)
        context.send_content(_text(item))
        _bound(collected)
        if context.cancelled:
            break
    return collected


def _bound(collected: list[Any]) -> None:
    if len(collected) > ITEM_LIMIT:
        raise ValueError(f"the tool yielded more than {ITEM_LIMIT} items")


def _text(item: Any) -> str:
    if isinstance(item, str):
        return item
    try:
        return json.dumps(to_json(item), ensure_ascii=False)
    except NotSerialisableError:
        return ""
