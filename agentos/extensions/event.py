"""What every event has; beside the kinds' own events, all of them are in `events.py`, which costs more to import."""

from datetime import UTC, datetime
from typing import ClassVar

import attrs

from agentos.model.source import Source


def _now() -> datetime:
    return datetime.now(UTC)


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened. `source` says whose doing it was, if a pack's."""

    type: ClassVar[str]
    source: Source | None = None
    timestamp: datetime = attrs.field(factory=_now)
