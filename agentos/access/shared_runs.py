"""Work that is done once for all who ask for it at the same time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

_LEAD = object()
"""What tells one of those who wait that it is to do the work, for the others too."""


class SharedRun:
    """Runs *work* for all who asked before it began. Who asks while it runs waits for the next run.

    What it raises is raised to all whom it ran for. If whoever runs it is cancelled, the next one who waits does.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._is_running = False
        self._waiting: list[asyncio.Future[object]] = []

    async def __call__(self) -> None:
        """Have the work done, from its beginning."""
        if self._is_running and not await self._leads():
            return
        self._is_running = True
        served, self._waiting = self._waiting, []
        error: Exception | None = None
        try:
            await self._work()
        except Exception as raised:
            error = raised
            raise
        except BaseException:
            self._waiting = served + self._waiting
            served = []
            raise
        finally:
            _tell(served, error)
            self._pass_on()

    async def _leads(self) -> bool:
        """Wait; tell whether to do the work now. If it was done, return or raise as it ended."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            outcome = await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif not turn.cancelled() and turn.result() is _LEAD:
                self._pass_on()
            raise
        if isinstance(outcome, Exception):
            raise outcome
        return outcome is _LEAD

    def _pass_on(self) -> None:
        """Let the next one who waits do the work."""
        self._is_running = False
        while self._waiting and not self._is_running:
            self._is_running = _tell([self._waiting.pop(0)], _LEAD)


def _tell(waiting: "list[asyncio.Future[object]]", outcome: object) -> bool:
    """Give those who wait what they wait for; tell whether any of them still did."""
    told = [turn for turn in waiting if not turn.done()]
    for turn in told:
        turn.set_result(outcome)
    return bool(told)
