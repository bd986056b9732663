"""How much work a check may take: steps are counted, and where these can't be compared, CPU time ends it."""

import time

WORK_LIMIT = 4_000_000
"""How many steps one check may take, at about 25 ns of native code each."""
_SECONDS = 0.05


class TooMuchWorkError(ValueError):
    """A check that was ended, or not begun, because of what it takes."""


class Work:
    """What is left of the steps that one check may take."""

    __slots__ = ("_end", "left")

    def __init__(self, limit: int = WORK_LIMIT) -> None:
        self.left = limit
        self._end = 0.0

    def spend(self, steps: int) -> None:
        """Count *steps*; raise TooMuchWorkError if there are not as many left."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWorkError("it takes too much work")

    def spend_time(self) -> None:
        """Count the CPU time since this was first called: for a row of native checks that are each bounded alone."""
        now = time.thread_time()
        self._end = self._end or now + _SECONDS
        if now > self._end:
            raise TooMuchWorkError("it takes too much time")
