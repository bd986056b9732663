"""Work that is done once for all who ask for it at the same time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class SharedRun:
    """Runs *work* for all who asked before it began. Who asks while it runs waits for the next run.

    What it raises is raised to all whom it ran for. If whoever runs it is cancelled, another one who waits does.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._begun = self._ended = 0
        """How often it was begun, and which run was the last to end by itself."""
        self._error: Exception | None = None
        self._over: asyncio.Event | None = None
        """Set at the end of the run that is under way."""

    async def __call__(self) -> None:
        """Have the work done, from its beginning."""
        wanted = self._begun + 1
        while self._ended < wanted:
            await (self._run() if self._over is None else self._over.wait())
        if self._error is not None:
            raise self._error

    async def _run(self) -> None:
        self._begun += 1
        number, self._over, error = self._begun, asyncio.Event(), None
        try:
            await self._work()
        except Exception as raised:  # noqa: BLE001 - it is for all whom it ran for
            error = raised
        finally:
            self._over.set()
            self._over = None
        self._ended, self._error = number, error
