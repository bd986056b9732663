"""The tool itself: run where it belongs, ended by itself, by its timeout, or by somebody who cancels it."""

import asyncio
import inspect
from collections.abc import Awaitable, Iterator
from types import AsyncGeneratorType, CoroutineType
from typing import Any

from agentos.base.foreign import Border, is_a, let_outside_pass, type_name
from agentos.calls.invocation import Invocation, Next
from agentos.calls.results import PLAIN
from agentos.calls.threads import NO_OUTCOME, Outcome, ThreadJob, TooManyAbandonedError
from agentos.calls.yielded import collected, gathered
from agentos.errors import WorkerDiedError
from agentos.model.tool_call import ToolResult
from agentos.schema.build import BuildError
from agentos.schema.validation import show_path
from agentos.tools.ready import ReadyTool

_GRACE = 5.0
"""How long a tool may clean up after its caller was cancelled."""

_left_behind: set["asyncio.Task[Any]"] = set()


async def run(invocation: Invocation, next: Next) -> ToolResult:
    """Run the tool. Whatever it does, there is a value or a failure to go on with."""
    users = invocation.ready.users
    use = users.enter()
    try:
        if invocation.ended_by is None:
            invocation.has_run = True
            value = await (_on_loop(invocation) if invocation.ready.is_async else _in_thread(invocation))
            if type(value) not in PLAIN and invocation.ended_by is None:
                value = await _gathered_later(invocation, value)
            invocation.value = value
    except BaseException as error:  # noqa: BLE001 - a tool is foreign code: this is the border of every call
        invocation.result = _result_of(invocation, error)
    finally:
        users.leave(use)
        invocation.forget_context()
        if invocation.call.id is not None:
            invocation.services.in_flight.remove(invocation)  # what has ended can't be cancelled
    if invocation.ended_by is not None and invocation.result is None:
        invocation.result = _ended(invocation)
    return await next(invocation)


def _result_of(invocation: Invocation, error: BaseException) -> ToolResult | None:
    """Return the result of a call whose tool raised; None if we ended it. What came from outside is raised again."""
    if invocation.ended_by is not None and is_a(error, asyncio.CancelledError):
        return None
    let_outside_pass(error)
    return _failure_of(invocation, error)


def _failure_of(invocation: Invocation, error: BaseException) -> ToolResult:
    if is_a(error, BuildError):
        return _not_built(invocation, error)
    if is_a(error, TooManyAbandonedError):
        return invocation.failure("BudgetExceeded", str(error))
    if is_a(error, WorkerDiedError):
        return invocation.failure("WorkerDied", str(error), {"may_have_run": error.may_have_run})
    return _raised(invocation, error)


def _value_of(invocation: Invocation, outcome: Outcome) -> Any:
    """Return what the tool returned; if it raised instead, that is the call's result, whatever it raised."""
    value, error = outcome
    if error is not None:
        invocation.result = _failure_of(invocation, error)
    return value


def _ended(invocation: Invocation) -> ToolResult:
    ready = invocation.ready
    if invocation.ended_by == "timeout":
        message = f"{ready.tool.name} did not finish within {ready.timeout} s; try a smaller request"
        return invocation.failure("TimedOut", message, {"timeout": ready.timeout})
    return invocation.failure("Cancelled", "the call was cancelled before it finished")


def _raised(invocation: Invocation, error: BaseException) -> ToolResult:
    services = invocation.services
    services.logger.warning("tool %s raised", invocation.ready.qualified_id, exc_info=error)
    return invocation.failure("ToolRaised", services.masker.describe(error), {"exception": type_name(error)})


def _not_built(invocation: Invocation, error: BuildError) -> ToolResult:
    """Return the result of arguments that fit the schema, but not the types that the function declared."""
    path = show_path(error.path)
    message = f"the arguments do not fit: {path}: {error.message}"
    return invocation.failure("InvalidArguments", message, {"problems": [{"path": path, "message": error.message}]})


# -- on the loop -------------------------------------------------------------------------------------------------------


def _on_loop(invocation: Invocation) -> Awaitable[Any]:
    """Run an async tool. One that names its timeout gets a task of its own, so that it can't take longer."""
    ready = invocation.ready
    value = ready.execute(invocation.arguments, invocation.context)  # type: ignore[misc]  # bound: it is in force
    if type(value) is not CoroutineType:
        if inspect.isasyncgen(value):
            value = collected(value, invocation.context)
        elif not inspect.isawaitable(value):
            return _plain(gathered(value, invocation.context) if inspect.isgenerator(value) else value)
    return _apart(invocation, value) if ready.tool.timeout is not None else _inline(invocation, value)


async def _plain(value: Any) -> Any:
    return value


async def _inline(invocation: Invocation, value: Awaitable[Any]) -> Any:
    """Await in the caller's own task: the cheapest way, for tools that end when they are cancelled."""
    loop, limits, seconds = asyncio.get_running_loop(), invocation.services.time_limits, invocation.ready.timeout
    task = asyncio.current_task(loop)
    before, invocation.stop = invocation.stop, None if task is None else task.cancel
    if seconds is not None:
        limits.begin(invocation, loop, seconds)
    try:
        outcome = await value
    except asyncio.CancelledError:
        if invocation.ended_by is not None and task is not None and task.uncancel() > 0:
            invocation.ended_by = None  # the caller itself was cancelled as well, and that counts more
        raise
    except BaseException:
        if invocation.ended_by is not None and task is not None:
            await swallow_cancellation(task)
        raise
    finally:
        invocation.stop = before
        limits.end(invocation)
    if invocation.ended_by is not None and task is not None:
        await swallow_cancellation(task)
    return outcome


async def _apart(invocation: Invocation, value: Any) -> Any:
    """Await in a task of its own, which is left behind if it does not end when it is cancelled."""
    loop, seconds = asyncio.get_running_loop(), invocation.ready.timeout
    task = loop.create_task(_carried(value))
    future: asyncio.Future[Any] = loop.create_future()
    task.add_done_callback(lambda _: _resolve(future))
    if isinstance(value, CoroutineType):
        task.add_done_callback(lambda _: value.close())  # one that was cancelled before it began is not missed

    def stop() -> None:
        task.cancel()
        _resolve(future)

    before, invocation.stop = invocation.stop, stop
    clock = loop.call_later(seconds, invocation.expire) if seconds is not None else None
    try:
        await future
    except asyncio.CancelledError:
        invocation.ended_by = None
        invocation.is_cancelled = True
        task.cancel()
        await asyncio.wait([task], timeout=_GRACE)
        raise
    finally:
        invocation.stop = before
        if clock is not None:
            clock.cancel()
        if not task.done():
            _leave_behind(task, invocation.ready)
        elif not task.cancelled():
            task.exception()  # seen
    return None if invocation.ended_by is not None else _value_of(invocation, task.result())


def _resolve(future: "asyncio.Future[Any]", outcome: Any = None) -> None:
    if not future.done():
        future.set_result(outcome)


async def _carried(value: Awaitable[Any]) -> Outcome:
    """Await in a task. It must not raise an exit, which a task would hand to the event loop, and that would end."""
    with Border() as border:
        return await value, None
    return None, border.error


def _leave_behind(task: "asyncio.Task[Any]", ready: ReadyTool) -> None:
    """Keep a task that goes on after its call has ended, and count it as a use of the tool until it ends."""
    _left_behind.add(task)
    ready.users.count += 1

    def ended(task: "asyncio.Task[Any]") -> None:
        _left_behind.discard(task)
        ready.users.leave()
        if not task.cancelled():
            task.exception()  # seen

    task.add_done_callback(ended)


async def swallow_cancellation(task: "asyncio.Task[Any]") -> None:
    """Take back a cancellation of ours that foreign code did not let through: the caller must not meet it."""
    task.uncancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        if task.cancelling():
            raise


# -- in a thread -------------------------------------------------------------------------------------------------------


async def _in_thread(invocation: Invocation) -> Any:
    """Run a sync tool in a thread; when nobody waits any more, the thread is abandoned."""
    loop, ready, context, threads = (
        asyncio.get_running_loop(),
        invocation.ready,
        invocation.context,
        invocation.services.threads,
    )
    context._loop = loop  # noqa: SLF001 - what the tool tells from its thread goes through the loop

    def call() -> Any:
        value = ready.execute(invocation.arguments, context)  # type: ignore[misc]  # bound: it is in force
        return gathered(value, context) if issubclass(type(value), Iterator) else value

    job = invocation.job = ThreadJob(call, invocation.depth)
    threads.start(job)

    def stop() -> None:
        threads.abandon(job)  # now: one that waits for a thread must not begin any more
        _resolve(job.future, NO_OUTCOME)

    before, invocation.stop = invocation.stop, stop
    clock = loop.call_later(ready.timeout, invocation.expire) if ready.timeout is not None else None
    try:
        value = _value_of(invocation, await job.future)
    except asyncio.CancelledError:
        invocation.is_cancelled = True
        threads.abandon(job)
        raise
    finally:
        invocation.stop = before
        if clock is not None:
            clock.cancel()
        context._loop = None  # noqa: SLF001 - as above
    if invocation.ended_by is None and inspect.isawaitable(value):
        return await _inline(invocation, value)
    if invocation.ended_by is None and inspect.isasyncgen(value):
        return await _inline(invocation, collected(value, context))
    return value


# -- what a tool yields ------------------------------------------------------------------------------------------------


async def _gathered_later(invocation: Invocation, value: Any) -> Any:
    """Gather what comes out of a generator or iterator that an async tool returned; anything else is itself."""
    if type(value) is AsyncGeneratorType:
        return await _inline(invocation, collected(value, invocation.context))
    return gathered(value, invocation.context) if issubclass(type(value), Iterator) else value
