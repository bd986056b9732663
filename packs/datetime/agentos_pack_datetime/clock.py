"""Tell the time."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import attrs
from whenever import Instant

from agentos_pack_datetime._moments import Text, iso, weekday
from agentos_pack_datetime._zones import zone

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


def _is_clock(_: Any, __: Any, value: object) -> None:
    if not callable(value):
        raise ValueError(  # noqa: TRY004 - a manifest's value
            f"expected a function that returns an aware datetime, got {type(value).__name__}"
        )


@attrs.frozen(kw_only=True)
class Options:
    """What a manifest may say: nothing in a file; from Python, a clock that replaces the one of the host."""

    clock: Any = attrs.field(default=system_clock, validator=_is_clock)


@attrs.frozen(kw_only=True)
class CurrentTime:
    """The current time in one zone, to the second."""

    time: str
    tz: str
    abbreviation: str
    weekday: str
    utc: str
    unix_seconds: int


@attrs.frozen
class DateTimeTools:
    """The tools that need a clock, on a clock of your choice."""

    clock: Clock = system_clock

    def now(
        self,
        tz: Annotated[Text, "The IANA name of a time zone, such as Europe/Berlin or America/New_York"] = "UTC",
    ) -> CurrentTime:
        """Tell the current date and time in a time zone, to the second, by the clock of the host."""
        zone_name = zone(tz, "tz")
        moment = self._read_clock().to_tz(zone_name)
        return CurrentTime(
            time=iso(moment),
            tz=zone_name,
            abbreviation=moment.tz_abbrev(),
            weekday=weekday(moment),
            utc=moment.to_instant().format_iso(),
            unix_seconds=moment.timestamp(),
        )

    def _read_clock(self) -> Instant:
        found = self.clock()
        if not isinstance(found, datetime) or found.tzinfo is None:
            raise ValueError(f"clock: expected an aware datetime, got {found!r}; write datetime.now(UTC)")
        return Instant(found).round("second", mode="floor")
