"""Dates and times as ISO 8601 text, and local times that a clock change skips or repeats."""

import re
from typing import Annotated, Literal, get_args

from whenever import Date, OffsetDateTime, PlainDateTime, RepeatedTime, SkippedTime, ZonedDateTime

from agentos import Schema

Disambiguate = Literal["reject", "earlier", "later"]
Text = Annotated[str, Schema(minLength=1, maxLength=64)]
"""A time or a zone as a model writes it."""
LocalTime = Literal["unique", "skipped", "repeated"]
OUT_OF_RANGE = "is outside the years 1 to 9999"

_LONGEST = 40
# whenever reads second 60 as 59 and drops a zone in brackets; here both are mistakes.
_ISO = re.compile(
    r"\d{4}-?\d\d-?\d\d"
    r"(?P<time>[Tt ]\d\d(?::?[0-5]\d(?::?[0-5]\d(?:[.,]\d{1,9})?)?)?(?P<offset>[Zz]|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


def read(text: str, place: str) -> Date | PlainDateTime | OffsetDateTime:
    """Return what *text* says: a date, a local time, or a time with its offset from UTC."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"{place}: expected ISO 8601 such as 2024-07-01, 2024-07-01T12:30 or 2024-07-01T12:30:00+02:00, "
            f"got {text[:_LONGEST]!r}"
        )
    kind = OffsetDateTime if found["offset"] else PlainDateTime if found["time"] else Date
    try:
        return kind.parse_iso(found[0])
    except ValueError:
        raise ValueError(f"{place}: there is no such date or time as {found[0]!r}") from None


def read_time(text: str, place: str) -> PlainDateTime | OffsetDateTime:
    """Return what *text* says, which must have a time of day."""
    found = read(text, place)
    if isinstance(found, Date):
        raise ValueError(f"{place}: {text!r} has no time of day; write it such as {found.format_iso()}T09:00")  # noqa: TRY004
    return found


def check_choice(disambiguate: str) -> None:
    """Refuse an unknown answer to "which of the two"."""
    choices = get_args(Disambiguate)
    if disambiguate not in choices:
        raise ValueError(f"disambiguate: expected {', '.join(choices)}, got {disambiguate[:_LONGEST]!r}")


def place_in(local: PlainDateTime, tz: str, disambiguate: Disambiguate, place: str) -> tuple[ZonedDateTime, LocalTime]:
    """Return *local* as a time in *tz*, and whether there is exactly one such time there."""
    try:
        return local.assume_tz(tz, disambiguation="raise"), "unique"
    except SkippedTime:
        kind: LocalTime = "skipped"
    except RepeatedTime:
        kind = "repeated"
    except ValueError:
        raise ValueError(f"{place}: {local.format_iso()} in {tz} {OUT_OF_RANGE}") from None
    earlier = local.assume_tz(tz, disambiguation="earlier")
    later = local.assume_tz(tz, disambiguation="later")
    if disambiguate == "reject":
        raise ValueError(
            f"{place}: {local.format_iso()} is {kind} in {tz} by a clock change; choose with disambiguate: "
            f"'earlier' is {iso(earlier)}, 'later' is {iso(later)}"
        )
    return (earlier if disambiguate == "earlier" else later), kind


def iso(moment: Date | PlainDateTime | OffsetDateTime | ZonedDateTime) -> str:
    """Return ISO 8601 text, with the offset from UTC if there is one."""
    return (moment.to_fixed_offset() if isinstance(moment, ZonedDateTime) else moment).format_iso()


def weekday(moment: Date | PlainDateTime | OffsetDateTime | ZonedDateTime) -> str:
    """Return the English name of the day."""
    day = moment if isinstance(moment, Date) else moment.date()
    return day.day_of_week().name.title()
