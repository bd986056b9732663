"""Add to dates and times, and tell how far they are apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import attrs
from whenever import ZonedDateTime

from agentos import Schema
from agentos_pack_datetime._frames import Frame
from agentos_pack_datetime._moments import OUT_OF_RANGE, Disambiguate, Text, check_choice, place_in, read, weekday
from agentos_pack_datetime._zones import zone

LIMITS = {
    "years": 10_000,
    "months": 120_000,
    "weeks": 600_000,
    "days": 4_000_000,
    "hours": 100_000_000,
    "minutes": 6_000_000_000,
    "seconds": 400_000_000_000,
}
_NANOSECONDS = 1_000_000_000


def _within(unit: str) -> Schema:
    return Schema(minimum=-LIMITS[unit], maximum=LIMITS[unit])


@attrs.frozen(kw_only=True)
class Difference:
    """How far it is from the result to `until`; all parts are negative if `until` is earlier.

    The parts from years to seconds add up. `total_days` counts whole calendar days, `total_seconds` the time
    that passes, clock changes included.
    """

    until: str
    years: int
    months: int
    days: int
    hours: int
    minutes: int
    seconds: int | float
    total_days: int
    total_seconds: int | float


@attrs.frozen(kw_only=True)
class DateMath:
    """A date or time after the addition, and how far it is from there to `until` if that was asked."""

    result: str
    tz: str | None
    weekday: str
    difference: Difference | None


def date_math(
    start: Annotated[Text, "An ISO 8601 date or time: 2024-01-31, 2024-01-31T09:00 or 2024-01-31T09:00+01:00"],
    *,
    years: Annotated[int, "Years to add; negative to subtract", _within("years")] = 0,
    months: Annotated[int, "Months to add; negative to subtract", _within("months")] = 0,
    weeks: Annotated[int, "Weeks to add; negative to subtract", _within("weeks")] = 0,
    days: Annotated[int, "Calendar days to add; negative to subtract", _within("days")] = 0,
    hours: Annotated[int, "Hours to add; negative to subtract", _within("hours")] = 0,
    minutes: Annotated[int, "Minutes to add; negative to subtract", _within("minutes")] = 0,
    seconds: Annotated[int, "Seconds to add; negative to subtract", _within("seconds")] = 0,
    tz: Annotated[
        Text | None,
        "The IANA name of the zone to reckon in, so that clock changes count; without it a day has 24 hours",
    ] = None,
    until: Annotated[Text | None, "Another date or time, of the same kind as start, to measure to"] = None,
    disambiguate: Annotated[
        Disambiguate,
        "Which moment to take when a clock change skips or repeats a local time: earlier, later, or reject, "
        "which answers with both",
    ] = "reject",
) -> DateMath:
    """Add to a date or time, or subtract from it, and optionally tell how far it is from there to another.

    Years and months go first, and a day the month does not have becomes its last; then weeks and days, in
    local time; then hours, minutes and seconds, as time that passes. It knows no business days or holidays.
    """
    check_choice(disambiguate)
    _check_amounts(years=years, months=months, weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    found = read(start, "start")
    frame = Frame.of(found, None if tz is None else zone(tz, "tz"))
    if frame.kind == "date" and (hours or minutes or seconds):
        raise ValueError(f"start: {start!r} has no time of day to add hours, minutes or seconds to")
    moment = frame.enter(found, "start", disambiguate)
    moment = _add_days(moment, frame.tz, disambiguate, years=years, months=months, weeks=weeks, days=days)
    moved = _add_time(moment, hours=hours, minutes=minutes, seconds=seconds)
    return DateMath(
        result=frame.leave(moved),
        tz=frame.tz if frame.kind == "zone" else None,
        weekday=weekday(moved),
        difference=None if until is None else _measure(frame, moved, until, disambiguate),
    )


def _check_amounts(**amounts: object) -> None:
    for name, amount in amounts.items():
        limit = LIMITS[name]
        if isinstance(amount, bool) or not isinstance(amount, int) or abs(amount) > limit:
            raise ValueError(f"{name}: expected a whole number from -{limit:,} to {limit:,}")


def _add_days(
    moment: ZonedDateTime,
    tz: str,
    disambiguate: Disambiguate,
    *,
    years: int,
    months: int,
    weeks: int,
    days: int,
) -> ZonedDateTime:
    local = moment.to_plain()
    with _result_in_range():
        moved = local.add(years=years, months=months, weeks=weeks, days=days)
    if moved == local:
        return moment
    # ZonedDateTime.add would settle a repeated time by the offset it comes from, whatever it is told.
    return place_in(moved, tz, disambiguate, "start, with the days added")[0]


def _add_time(moment: ZonedDateTime, *, hours: int, minutes: int, seconds: int) -> ZonedDateTime:
    with _result_in_range():
        return moment.add(hours=hours, minutes=minutes, seconds=seconds)


@contextmanager
def _result_in_range() -> Iterator[None]:
    try:
        yield
    except ValueError:
        raise ValueError(f"start: the result {OUT_OF_RANGE}") from None


def _measure(frame: Frame, moment: ZonedDateTime, until: str, disambiguate: Disambiguate) -> Difference:
    other = frame.enter(read(until, "until"), "until", disambiguate)
    parts = moment.until(other, in_units=["years", "months", "days", "hours", "minutes", "seconds", "nanoseconds"])
    return Difference(
        until=frame.leave(other),
        years=parts["years"],
        months=parts["months"],
        days=parts["days"],
        hours=parts["hours"],
        minutes=parts["minutes"],
        seconds=_seconds(parts["seconds"] * _NANOSECONDS + parts["nanoseconds"]),
        total_days=moment.until(other, in_units=["days"])["days"],
        total_seconds=_seconds((other - moment).total("nanoseconds")),
    )


def _seconds(nanoseconds: int) -> int | float:
    whole, rest = divmod(nanoseconds, _NANOSECONDS)
    return nanoseconds / _NANOSECONDS if rest else whole
