"""Progress of a call on its way to whoever reads it: one report at a time, the newest if there are too many."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

Report = tuple[float, float | None, str]
"""How much is done, of how much in all, and a message."""


class ReportQueue:
    """Sends reports in a task of its own, so that a slow reader holds up nobody else."""

    def __init__(self, send: Callable[[Report], Awaitable[Any]], size: int) -> None:
        self._send = send
        self._waiting: deque[Report] = deque(maxlen=size)
        self._sending: asyncio.Task[None] | None = None

    def push(self, report: Report) -> None:
        """Send *report* soon; if more wait than fit, the oldest is dropped."""
        self._waiting.append(report)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
            self._sending.add_done_callback(retrieve_exception)

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send(self._waiting.popleft())
        finally:
            self._sending = None

    async def finish(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - waits for the task, then returns
        """Wait until every report is sent, at most *timeout* seconds: the result comes after its progress."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=timeout)

    def stop(self) -> None:
        """Send no more."""
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()


def retrieve_exception(task: "asyncio.Task[Any]") -> None:
    """Look at the exception of a task that nobody awaits; asyncio would log it otherwise."""
    if not task.cancelled():
        task.exception()


def is_number(value: Any) -> bool:
    """Tell whether *value* is a finite number that a float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
