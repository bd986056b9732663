"""Schedules: what each says, and for which times it starts a run."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Literal

import attrs

from agentos.access.proposals import stored_principal
from agentos.errors import WorkflowError
from agentos.model.field_checks import fault_of_name
from agentos.workflows import cron as cron_times
from agentos.workflows.run_views import time_of

Missed = Literal["skip", "once", "all"]
"""What becomes of times that a schedule missed because no host was there."""
_MISSED = ("skip", "once", "all")
_LATE = 60.0
"""A time of a schedule counts as missed if it passed so many seconds ago."""
_LIMIT = 1_000


@attrs.frozen(kw_only=True)
class WorkflowSchedule:
    """A workflow that is started again and again."""

    id: str
    workflow: str
    cron: str
    timezone: str = "UTC"
    inputs: Mapping[str, Any] = attrs.field(factory=dict)
    missed: Missed = "once"
    principal: str | None = None
    """The key of who starts it; None: the principal that the workflow declares."""
    next_at: datetime | None = None
    last_at: datetime | None = None


def check_schedule(id: str, cron: str, timezone: str, missed: str) -> None:
    """Raise WorkflowError for a schedule that can't be kept."""
    if fault := fault_of_name(id):
        raise WorkflowError(f"schedule: id: {fault}")
    if missed not in _MISSED:
        raise WorkflowError(f"missed: expected one of {', '.join(_MISSED)}, got {missed!r}")
    cron_times.check(cron, timezone)


def schedule_of(row: Mapping[str, Any]) -> WorkflowSchedule:
    """Return a schedule as it is stored."""
    said = json.loads(row["data"])
    starter = said["starter"]
    return WorkflowSchedule(
        id=row["id"],
        workflow=row["workflow"],
        cron=said["cron"],
        timezone=said["timezone"],
        inputs=said["inputs"],
        missed=said["missed"],
        principal=None if starter is None else stored_principal(starter).key,
        next_at=time_of(row["next_at"]),
        last_at=time_of(row["last_at"]),
    )


def due_times(said: Mapping[str, Any], first: float, now: float) -> tuple[Sequence[float], float]:
    """Return for which times since *first*, which has come, a run is started, and when the next time is."""
    later = cron_times.times_after(said["cron"], said["timezone"], first)
    times, upcoming = [first], next(later)
    while upcoming <= now and len(times) < _LIMIT:
        times.append(upcoming)
        upcoming = next(later)
    if upcoming <= now:
        upcoming = next(cron_times.times_after(said["cron"], said["timezone"], now))
    return _wanted_times(times, said["missed"], now), upcoming


def _wanted_times(times: Sequence[float], missed: str, now: float) -> Sequence[float]:
    """Return for which of the times that have come a run is started."""
    in_time = [time for time in times if now - time <= _LATE]
    late = times[: len(times) - len(in_time)]
    if missed == "skip":
        return in_time
    if missed == "once":
        return in_time or late[-1:]
    return list(islice(times, max(0, len(times) - cron_times.MOST), None))
