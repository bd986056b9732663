"""How far a server says that a call is, told at a bounded pace: a server may say it as often as it likes."""

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

Report = Callable[[float, float | None, str], Awaitable[Any]]

_AT_ONCE = 16
"""How many reports are told without a pause, and how many wait; of more, the newest are kept."""
_PAUSE = 0.05
_MESSAGE = 2_000


class ProgressReports:
    """The reports on one call: the newest of them, one at a time, and nothing after its end."""

    def __init__(self, report: Report, clip: Callable[[str, int], str]) -> None:
        self._report = report
        self._clip = clip
        self._waiting: deque[tuple[float, float | None, str]] = deque(maxlen=_AT_ONCE)
        self._reported = 0
        self._reporting: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    def note(self, params: Any) -> None:
        """Take a report as a server sends it; what is none is left out."""
        progress, total, message = (params.get(name) for name in ("progress", "total", "message"))
        if self._ended.is_set() or not _is_number(progress):
            return
        words = self._clip(message, _MESSAGE) if isinstance(message, str) else ""
        self._waiting.append((float(progress), float(total) if _is_number(total) else None, words))
        if self._reporting is None:
            self._reporting = asyncio.create_task(self._report_all())
            self._reporting.add_done_callback(_retrieve_exception)

    async def _report_all(self) -> None:
        try:
            while self._waiting:
                await self._report(*self._waiting.popleft())
                self._reported += 1
                if self._reported >= _AT_ONCE:
                    await self._pause()
        finally:
            self._reporting = None

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE):
                await self._ended.wait()

    async def finish(self) -> None:
        """Take no more reports, and tell those that wait without a pause: the result comes after its progress."""
        self._ended.set()
        if self._reporting is not None:
            await asyncio.wait([self._reporting])

    def stop(self) -> None:
        """Take and tell no more."""
        self._ended.set()
        self._waiting.clear()
        if self._reporting is not None:
            self._reporting.cancel()


def _retrieve_exception(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False
