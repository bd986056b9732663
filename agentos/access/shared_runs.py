"""Work that is done once for all who ask for it at the same time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class SharedRun:
    """Runs *work* for all who asked before it began. Who asks while it runs waits for the next run.

    What it raises is raised to all whom it ran for. One who is cancelled harms no other.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._is_running = False
        self._waiting: list[asyncio.Future[BaseException | None]] = []
        self._next: asyncio.Task[BaseException | None] | None = None

    async def __call__(self) -> None:
        """Have the work done, from its beginning."""
        if self._is_running:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            error = await turn
        else:
            error = await self._run()
        if error is not None:
            raise error

    async def _run(self) -> BaseException | None:
        served, self._waiting, self._is_running = self._waiting, [], True
        error: BaseException | None = asyncio.CancelledError()
        try:
            await self._work()
            error = None
        except Exception as raised:  # noqa: BLE001 - it is for all whom it ran for
            error = raised
        finally:
            for turn in served:
                if not turn.done():
                    turn.set_result(error)
            self._waiting = [turn for turn in self._waiting if not turn.done()]
            self._is_running = bool(self._waiting)
            self._next = asyncio.ensure_future(self._run()) if self._waiting else None
        return error
