"""Convert a time from one time zone to another."""

from typing import Annotated

import attrs
from whenever import OffsetDateTime, ZonedDateTime

from agentos_pack_datetime._moments import (
    OUT_OF_RANGE,
    Disambiguate,
    LocalTime,
    Text,
    check_choice,
    iso,
    place_in,
    read_time,
    weekday,
)
from agentos_pack_datetime._zones import zone


@attrs.frozen(kw_only=True)
class TimeConversion:
    """One moment in two zones.

    `local_time` says whether the given local time exists once ("unique") or is "skipped" or "repeated" by a
    clock change. `day_shift` is by how many calendar days the date moves. `weekday` is that of `to_time`.
    """

    from_time: str
    from_tz: str | None
    to_time: str
    to_tz: str
    utc: str
    weekday: str
    day_shift: int
    local_time: LocalTime


def convert_time(
    time: Annotated[
        Text, "An ISO 8601 time such as 2024-07-01T12:30, or with its offset from UTC: 2024-07-01T12:30+02:00"
    ],
    from_tz: Annotated[
        Text | None, "The IANA name of the zone the time is in; needed unless the time has an offset"
    ] = None,
    to_tz: Annotated[Text, "The IANA name of the zone to convert to, such as Asia/Tokyo"] = "UTC",
    disambiguate: Annotated[
        Disambiguate,
        "Which moment to take when a clock change skips or repeats the local time: earlier, later, or "
        "reject, which answers with both",
    ] = "reject",
) -> TimeConversion:
    """Convert a time from one time zone to another.

    The rules are those of the IANA database for the years 1 to 9999; abbreviations such as PST are no zones.
    """
    check_choice(disambiguate)
    target = zone(to_tz, "to_tz")
    source, local_time = _source(time, None if from_tz is None else zone(from_tz, "from_tz"), disambiguate)
    try:
        result = source.to_tz(target)
        utc = source.to_instant().format_iso()
    except ValueError:
        raise ValueError(f"time: {iso(source)} in {target} {OUT_OF_RANGE}") from None
    return TimeConversion(
        from_time=iso(source),
        from_tz=source.tz_id if isinstance(source, ZonedDateTime) else None,
        to_time=iso(result),
        to_tz=target,
        utc=utc,
        weekday=weekday(result),
        day_shift=source.date().until(result.date(), in_units=["days"])["days"],
        local_time=local_time,
    )


def _source(text: str, tz: str | None, disambiguate: Disambiguate) -> tuple[OffsetDateTime | ZonedDateTime, LocalTime]:
    found = read_time(text, "time")
    if isinstance(found, OffsetDateTime):
        return (found if tz is None else _checked(found, tz)), "unique"
    if tz is None:
        raise ValueError(f"from_tz: {text!r} has no offset; say which time zone it is in")
    return place_in(found, tz, disambiguate, "time")


def _checked(moment: OffsetDateTime, tz: str) -> ZonedDateTime:
    """Return *moment* in *tz*, whose offset must be the one that was written."""
    try:
        there = moment.to_tz(tz)
    except ValueError:
        raise ValueError(f"time: {iso(moment)} in {tz} {OUT_OF_RANGE}") from None
    if there.offset != moment.offset:
        raise ValueError(
            f"time: {iso(moment)} contradicts from_tz, {tz} has {iso(there)} at that moment; "
            "leave out the offset or from_tz"
        )
    return there
