"""Foreign code that cancels the task it runs in, where that is a task that carries something to its end.

Nobody but such code can cancel it. In a task of the caller's there is no telling: Ctrl-C cancels it, too, from a signal
handler that runs between any two steps. So there a cancellation counts, whoever asked for it.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from agentos.base.foreign import carries_to_the_end


async def contained(call: Callable[[], Any]) -> Any:
    """Return what *call* returns, awaited if it has to be.

    What it cancels of a task that carries something to its end, it cancels of itself at most.
    """
    task = asyncio.current_task()
    if task is None or not carries_to_the_end(task):
        answer = call()
        return await answer if inspect.isawaitable(answer) else answer
    before = task.cancelling()
    try:
        answer = call()
    finally:
        own = _take_back(task, before)
    if inspect.isawaitable(answer):
        return await _Contained(answer, task, own)
    if own:
        await _Absorbed(task)
    return answer


def _take_back(task: "asyncio.Task[Any]", before: int) -> bool:
    """Take back the cancellations of *task* beyond *before*; tell whether there were any."""
    own = task.cancelling() > before
    while task.cancelling() > before:
        task.uncancel()
    return own


class _Absorbed:
    """Lets a cancellation that was taken back, and is still thrown once, pass without effect."""

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self._task = task

    def __await__(self) -> Generator[Any, Any, None]:
        before = self._task.cancelling()
        try:
            yield
        except asyncio.CancelledError:
            if self._task.cancelling() > before:  # one of others came at the same time: it is thrown at the next wait
                self._task.cancel()
                self._task.uncancel()


class _Contained:
    """Awaits *awaited* step by step: what is cancelled while a step runs is its own doing."""

    def __init__(self, awaited: Awaitable[Any], task: "asyncio.Task[Any]", own: bool) -> None:
        self._awaited = awaited
        self._task = task
        self._own = own

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, task, own = self._awaited.__await__(), self._task, self._own
        value: Any = None
        error: BaseException | None = None
        while True:
            before = task.cancelling()
            try:
                waits_for = steps.send(value) if error is None else steps.throw(error)
            except BaseException as end:
                if _take_back(task, before) or own:
                    yield from _Absorbed(task).__await__()
                if isinstance(end, StopIteration):
                    return end.value
                raise
            own = _take_back(task, before)
            value = error = None
            try:
                value = yield waits_for
            except BaseException as raised:  # noqa: BLE001 - it is thrown into what is awaited
                error, own = raised, False
