"""How long to wait before trying again."""

import random

from agentos.mcp.client.limits import ServerLimits

_MOST_DOUBLINGS = 32


class Backoff:
    """Waits twice as long each time, within bounds, and never quite the same."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._attempts = 0

    def reset(self) -> None:
        """Begin anew."""
        self._attempts = 0

    def next(self) -> float:
        """Return the seconds to wait now."""
        doubled: float = self._limits.first_delay * 2 ** min(self._attempts, _MOST_DOUBLINGS)
        self._attempts += 1
        # Jitter, so that servers that went away together are not all asked at the same moment.
        return min(self._limits.longest_delay, doubled) * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret
