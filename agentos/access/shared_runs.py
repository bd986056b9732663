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
        self._is_running = False
        self._over = asyncio.Event()
        """Set at the end of a run."""

    async def __call__(self) -> None:
        """Have the work done, from its beginning."""
        wanted = self._begun + 1
        while self._ended < wanted:
            await (self._over.wait() if self._is_running else self._run())
        if self._error is not None:
            raise self._error

    async def _run(self) -> None:
        self._begun += 1
        number, self._is_running, error = self._begun, True, None
        self._over.clear()
        try:
            await self._work()
        except Exception as raised:  # noqa: BLE001 - it is for all whom it ran for
            error = raised
        finally:
            self._is_running = False
            self._over.set()
        self._ended, self._error = number, error
