"""Workflows as data: what a manifest and Python say alike."""

import math
from collections.abc import Iterable
from typing import Any

import attrs

_MOST_ATTEMPTS = 1_000


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _check_attempts(_: Any, field: "attrs.Attribute[int]", value: object) -> None:
    if type(value) is not int or not 1 <= value <= _MOST_ATTEMPTS:
        raise ValueError(f"Retry.{field.name}: expected a whole number from 1 to {_MOST_ATTEMPTS:,}, got {value!r}")


def _check_number(_: Any, field: "attrs.Attribute[float]", value: object) -> None:
    lowest = 1 if field.name == "backoff" else 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or value < lowest:  # type: ignore[operator]  # it is a number
        raise ValueError(f"Retry.{field.name}: expected a number that is at least {lowest}, got {value!r}")


@attrs.frozen
class Retry:
    """How often a step that failed is tried again, and after how long."""

    attempts: int = attrs.field(default=3, validator=_check_attempts)
    """How often it is tried in all."""
    delay: float = attrs.field(default=1.0, validator=_check_number)
    """For how many seconds it waits before the second attempt."""
    backoff: float = attrs.field(default=2.0, validator=_check_number)
    """By how much each wait is longer than the one before."""
    max_delay: float = attrs.field(default=300.0, validator=_check_number)
    """How many seconds it waits at the most."""
    not_on: tuple[str, ...] = attrs.field(default=(), converter=_names)
    """Types of errors that are final. What was refused, denied or not valid is never tried again anyway."""

    def wait(self, attempt: int) -> float:
        """Return for how many seconds it waits after an *attempt*, the first of which is 1."""
        return min(self.max_delay, self.delay * self.backoff ** min(attempt - 1, 64))
