"""Calls that last: one that says when it began, and goes on until it is taken back."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from agentos.processes.backoff import Backoff

Began = Callable[[], None]
_FIRST, _LONGEST, _JITTER = 0.1, 30.0, 0.2


async def begun(call: Callable[[Began], Coroutine[Any, Any, None]]) -> "asyncio.Task[None]":
    """Make a call in a task, and return that when the call says that it began; raise what it raised if it did not."""
    began = asyncio.Event()
    task = asyncio.create_task(call(began.set))
    waits = asyncio.create_task(began.wait())
    try:
        await asyncio.wait((task, waits), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        waits.cancel()
    if not began.is_set():
        task.result()
    return task


async def kept(call: Callable[[Began], Coroutine[Any, Any, None]]) -> "asyncio.Task[None]":
    """Make a call that lasts, and again whenever it ended, as with its process; raise if it can't be made at first."""
    return asyncio.create_task(_again(call, await begun(call)))


async def _again(call: Callable[[Began], Coroutine[Any, Any, None]], under_way: "asyncio.Task[None]") -> None:
    backoff = Backoff(_FIRST, _LONGEST, _JITTER)
    while True:
        with contextlib.suppress(Exception):  # the process ended, or the pack's function did
            await under_way
        await asyncio.sleep(backoff.next())
        under_way = asyncio.create_task(call(backoff.reset))


def taken_back(task: "asyncio.Task[None]") -> Awaitable[Any]:
    """Take a call back; what is returned can be awaited until it has ended."""
    task.cancel()
    return asyncio.ensure_future(asyncio.wait([task]))
