"""A task that is cancelled at a chosen place: wherever a caller waits, what it asked for is whole or not there."""

import asyncio
import contextlib


class CancelledAt:
    """Awaits a coroutine, and cancels the task that does so when it is about to wait for the nth time."""

    def __init__(self, coroutine, turn, *, later):
        self._coroutine = coroutine
        self._turn = turn
        self._later = later

    def __await__(self):
        steps = self._coroutine.__await__()
        told, value, error = 0, None, None
        while True:
            try:
                waits_for = steps.throw(error) if error is not None else steps.send(value)
            except StopIteration as end:
                return end.value
            told += 1
            if told == self._turn and self._later:
                asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
            elif told == self._turn:
                asyncio.current_task().cancel()
            value = error = None
            try:
                value = yield waits_for
            except BaseException as raised:
                error = raised


async def cancelled_at(turn, coroutine, *, later=False):
    """Run *coroutine* in a task that is cancelled at its nth wait; tell whether it was."""

    async def run():
        return await CancelledAt(coroutine, turn, later=later)

    try:
        await asyncio.ensure_future(run())
    except asyncio.CancelledError:
        return True
    return False


async def cancelled_after(turns, coroutine):
    """Run *coroutine* in a task that is cancelled after *turns* of the loop."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
        return False
    return True
