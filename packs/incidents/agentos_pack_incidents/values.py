"""What an incident is, and what the tools return."""

from datetime import UTC, datetime
from typing import Final, Literal, get_args

import attrs

Severity = Literal["critical", "high", "medium", "low"]
Status = Literal["open", "investigating", "monitoring", "resolved"]
Kind = Literal["opened", "updated", "resolved", "reopened"]
Asked = Literal["unresolved", "open", "investigating", "monitoring", "resolved", "any"]

SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)
STATUSES: Final[tuple[str, ...]] = get_args(Status)
KINDS: Final[tuple[str, ...]] = get_args(Kind)


class IncidentError(ValueError):
    """A call that can't be done; the message says why, and what to do."""


class StaleError(IncidentError):
    """A change that was made for a version that is not the present one."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@attrs.frozen
class Actor:
    """Who changes something, the proposal by which a person approved it, and when."""

    by: str
    proposal: str | None = None
    at: str = attrs.field(factory=_now)


@attrs.frozen(kw_only=True)
class Draft:
    """An incident that is not opened yet."""

    title: str
    severity: Severity
    service: str = ""
    summary: str = ""


@attrs.frozen(kw_only=True)
class Question:
    """Which incidents to list."""

    status: Asked = "any"
    severity: Severity | None = None
    text: str = ""
    before: int | None = None
    limit: int = 20


@attrs.frozen(kw_only=True)
class Line:
    """An incident in one line."""

    id: int
    version: int
    title: str
    service: str
    severity: Severity
    status: Status
    opened_at: str
    updated_at: str


@attrs.frozen(kw_only=True)
class Lines:
    """Incidents, the newest first. `total` counts all that fit the question, also those that are not shown."""

    incidents: list[Line]
    total: int
    truncated: bool


@attrs.frozen(kw_only=True)
class Happening:
    """One entry of a timeline. `proposal` is the approval by which it was done, if it needed one."""

    at: str
    by: str
    kind: Kind
    text: str
    proposal: str | None


@attrs.frozen(kw_only=True)
class Incident:
    """An incident with its timeline, the oldest entry first. `truncated` tells that older entries are not shown."""

    id: int
    version: int
    title: str
    service: str
    summary: str
    severity: Severity
    status: Status
    opened_at: str
    opened_by: str
    updated_at: str
    resolved_at: str | None
    resolution: str | None
    timeline: list[Happening]
    timeline_total: int
    truncated: bool


@attrs.frozen(kw_only=True)
class Changed:
    """What a change came to. The next change of the incident names this version."""

    id: int
    version: int
    title: str
    severity: Severity
    status: Status
    changes: list[str]


@attrs.frozen(kw_only=True)
class Purged:
    """An incident that is gone for good."""

    id: int
    title: str
    timeline_total: int


@attrs.frozen(kw_only=True)
class Preview:
    """What a call would do: in one sentence, and in detail."""

    would: str
    details: list[str]
