"""How long to wait before trying again."""

import random

_MOST_DOUBLINGS = 32


class Backoff:
    """Waits twice as long each time, within bounds; with *jitter*, never quite the same."""

    def __init__(self, first: float, longest: float, jitter: float = 0.0) -> None:
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self.attempts = 0
        """How often it was asked since it began anew."""

    def reset(self) -> None:
        """Begin anew."""
        self.attempts = 0

    def next(self) -> float:
        """Return the seconds to wait now."""
        doubled: float = self._first * 2 ** min(self.attempts, _MOST_DOUBLINGS)
        self.attempts += 1
        # Jitter, so that servers that went away together are not all asked at the same moment.
        return min(self._longest, doubled) * random.uniform(1.0 - self._jitter, 1.0)  # noqa: S311 - nothing secret
