"""Calls that last: one that says when it began, and goes on until it is taken back."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Began = Callable[[], None]


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


def taken_back(task: "asyncio.Task[None]") -> Awaitable[Any]:
    """Take a call back; what is returned can be awaited until it has ended."""
    task.cancel()
    return asyncio.ensure_future(asyncio.wait([task]))
