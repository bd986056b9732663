"""When a schedule's next time is."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from agentos.errors import WorkflowError

MOST = 100
"""How many missed times are made up for at the most."""
_FIELDS = 5


def _croniter() -> Any:
    try:
        from croniter import croniter  # type: ignore[import-untyped]  # it has no types
    except ImportError:
        raise WorkflowError(
            "schedules need croniter, which is not installed: pip install 'agentos-host[workflows]'"
        ) from None
    return croniter


def check(cron: str, timezone: str) -> None:
    """Raise WorkflowError if a schedule can't be kept: five fields, and a time zone by its name."""
    croniter = _croniter()
    if not isinstance(cron, str) or len(cron.split()) != _FIELDS or not croniter.is_valid(cron):
        raise WorkflowError(f"cron: expected five fields, such as '0 7 * * 1-5', got {cron!r}")
    try:
        ZoneInfo(timezone)
    except (ValueError, OSError, TypeError, LookupError):
        raise WorkflowError(f"timezone: expected a name such as 'Europe/Berlin', got {timezone!r}") from None


def times_after(cron: str, timezone: str, after: float) -> Iterator[float]:
    """Yield the times of a schedule after one, in seconds since 1970."""
    croniter = _croniter()
    start = datetime.fromtimestamp(after, UTC).astimezone(ZoneInfo(timezone))
    found = croniter(cron, start, ret_type=datetime)
    while True:
        yield found.get_next(datetime).timestamp()
