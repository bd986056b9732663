"""When a tool is left alone."""

from collections.abc import Callable

import attrs


@attrs.define
class _Tool:
    failures: int = 0
    """How many calls failed in a row."""
    open_until: float = 0.0
    is_tried: bool = False
    """One call is under way that shows whether it works again."""


class Breaker:
    """Counts the failures of each tool in a row; after too many, it lets nothing through for a while, then one call."""

    def __init__(self, failures: int, seconds: float, clock: Callable[[], float]) -> None:
        self._failures = failures
        self._seconds = seconds
        self._clock = clock
        self._tools: dict[str, _Tool] = {}

    def wait(self, tool: str) -> float:
        """Return for how many seconds *tool* is left alone; 0 if it may be called, which counts as a trial then."""
        one = self._tools.get(tool)
        if one is None or one.failures < self._failures:
            return 0.0
        left = one.open_until - self._clock()
        if left <= 0 and not one.is_tried:
            one.is_tried = True
            return 0.0
        return max(left, 1.0)

    def failures(self, tool: str) -> int:
        """Return how often *tool* failed in a row."""
        return self._tools[tool].failures if tool in self._tools else 0

    def note(self, tool: str, *, has_failed: bool | None) -> None:
        """Take down how a call ended; None: it says nothing of the tool."""
        one = self._tools.setdefault(tool, _Tool())
        one.is_tried = False
        if has_failed is False:
            del self._tools[tool]
        elif has_failed:
            one.failures += 1
            one.open_until = self._clock() + self._seconds
