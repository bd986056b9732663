"""The time limit of calls whose tool names none of its own."""

import asyncio
from typing import Protocol


class Expiring(Protocol):
    """Whatever has a time limit."""

    def expire(self) -> None:
        """End because the time is up."""
        ...


class TimeLimits:
    """Ends calls that take too long, by looking at all of them once a second.

    A timer for each call would cost more than the rest of a short call. A tool that names its own timeout has one.
    """

    PERIOD = 1.0

    def __init__(self) -> None:
        self._deadlines: dict[Expiring, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, call: Expiring, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """End *call* after *seconds*, if it has not ended then."""
        self._deadlines[call] = loop.time() + seconds
        if self._loop is not loop:
            self._loop = loop
            loop.call_later(self.PERIOD, self._look)

    def end(self, call: Expiring) -> None:
        """Forget *call*: it has ended."""
        self._deadlines.pop(call, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            return
        now = loop.time()
        for call in [one for one, deadline in self._deadlines.items() if deadline <= now]:
            call.expire()
        if self._deadlines:
            loop.call_later(self.PERIOD, self._look)
        else:
            self._loop = None
