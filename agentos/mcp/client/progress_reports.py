"""How far a server says that a call is, reported at a bounded pace: a server may say it as often as it likes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from agentos.mcp.report_queue import Report, ReportQueue, is_number

_AT_ONCE = 16
"""How many reports are passed on without a pause, and how many wait; of more, the newest are kept."""
_PAUSE = 0.05
_MESSAGE = 2_000


class ProgressReports:
    """The reports on one call: the newest of them, one at a time, and nothing after its end."""

    def __init__(
        self, report: Callable[[float, float | None, str], Awaitable[Any]], clip: Callable[[str, int], str]
    ) -> None:
        self._report = report
        self._clip = clip
        self._queue = ReportQueue(self._pass_on, _AT_ONCE)
        self._count = 0
        self._ended = asyncio.Event()

    def note(self, params: Any) -> None:
        """Take a report as a server sends it; an invalid one is dropped."""
        progress, total, message = (params.get(name) for name in ("progress", "total", "message"))
        if self._ended.is_set() or not is_number(progress):
            return
        text = self._clip(message, _MESSAGE) if isinstance(message, str) else ""
        self._queue.push((float(progress), float(total) if is_number(total) else None, text))

    async def _pass_on(self, report: Report) -> None:
        await self._report(*report)
        self._count += 1
        if self._count >= _AT_ONCE:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await self._ended.wait()

    async def finish(self) -> None:
        """Take no more reports, and pass on those that wait without a pause."""
        self._ended.set()
        await self._queue.finish()

    def stop(self) -> None:
        """Take and pass on no more."""
        self._ended.set()
        self._queue.stop()
