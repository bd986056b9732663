"""When to stop: the time is up, or nobody waits any more."""

import time
from collections.abc import Callable

from agentos import ToolContext

SECONDS = 20.0


class Clock:
    """Counts the seconds of one call."""

    def __init__(self, is_cancelled: Callable[[], bool] = bool, seconds: float = SECONDS) -> None:
        self._is_cancelled = is_cancelled
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Return the seconds that are left."""
        return self._end - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Tell whether to stop."""
        return self._is_cancelled() or self.left <= 0


def clock_of(context: ToolContext | None) -> Clock:
    """Return the clock of a call; without a context, nobody can end it."""
    return Clock() if context is None else Clock(lambda: context.cancelled)
