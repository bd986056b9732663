"""Read the events of an iCalendar file."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import attrs
from whenever import Date, PlainDateTime, ZonedDateTime

from agentos import Schema
from agentos_pack_datetime._moments import iso
from agentos_pack_datetime._zones import known_zone

if TYPE_CHECKING:
    from icalendar.parser import Contentline

T = TypeVar("T")

MAX_BYTES = 256 * 1024
MAX_LINE = 64 * 1024
MAX_DEPTH = 8
MAX_EVENTS = 500
MAX_PROBLEMS = 10

_READ = frozenset({"UID", "SUMMARY", "LOCATION", "DTSTART", "DTEND", "DURATION", "RRULE"})
_NAME = re.compile(r"[A-Za-z0-9-]+(?=[;:])")
_WEEKS_OR_DAYS = re.compile(r"(\d+)([WD])")
_EXCERPT = 80


@attrs.frozen(kw_only=True)
class Event:
    """One event as it is written in the file; repetitions are not expanded.

    `start` and `end` are dates for an all-day event (the end is the day after the last), otherwise times,
    with an offset if the zone is known. `tz` is the zone of the start: its IANA name, the file's own name if
    it is not known, or None for a time that is local to the reader. `problems` says what could not be read.
    """

    uid: str | None
    summary: str | None
    start: str | None
    end: str | None
    all_day: bool
    tz: str | None
    location: str | None
    recurrence: str | None
    problems: list[str]


@attrs.frozen(kw_only=True)
class Events:
    """The first events of a file, in its order, and how many there are in all."""

    events: list[Event]
    total: int
    truncated: bool


def parse_ics(
    text: Annotated[
        str,
        "The text of an iCalendar (.ics) file, at most 256 KiB; not a path or an address",
        Schema(minLength=1, maxLength=262_144),
    ],
    limit: Annotated[int, "How many events to return at most, 1 to 500", Schema(minimum=1, maximum=MAX_EVENTS)] = 50,
) -> Events:
    """List the events in the text of an iCalendar file.

    Repeating events are listed once, with their rule. Time zones that the file defines itself are not read:
    times in them come without an offset. To-dos, alarms and attendees are left out.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_EVENTS:
        raise ValueError(f"limit: expected a whole number from 1 to {MAX_EVENTS}")
    found = list(_event_lines(_content_lines(text)))
    return Events(events=[_event(lines) for lines in found[:limit]], total=len(found), truncated=len(found) > limit)


def _content_lines(text: str) -> list["Contentline"]:
    """Return the unfolded lines of *text*.

    Nothing more of icalendar reads the whole: its calendar parser opens a text without line breaks as a file,
    looks zones up as files, and keeps the zones that one calendar defines for the next one.
    """
    from icalendar.parser import Contentlines

    raw = text.removeprefix("\ufeff").encode("utf-8", "replace")
    if len(raw) > MAX_BYTES:
        raise ValueError(f"text: {len(raw):,} bytes; at most {MAX_BYTES:,} are allowed, so give a part of it")
    lines: list[Contentline] = Contentlines.from_ical(raw)  # type: ignore[no-untyped-call]
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise ValueError(
                f"text: content line {number} has {len(line):,} characters; at most {MAX_LINE:,} are allowed"
            )
    return lines


def _event_lines(lines: Iterable["Contentline"]) -> Iterator[list["Contentline"]]:
    """Yield the lines of each event, without those of the components inside it."""
    path: list[str] = []
    event: list[Contentline] = []
    calendars = 0
    for number, line in enumerate(lines, 1):
        keyword, _, name = (part.strip().upper() for part in line.partition(":"))
        if keyword == "BEGIN":
            path.append(name)
            _check_path(path, number)
            calendars += path == ["VCALENDAR"]
            event = [] if path == ["VCALENDAR", "VEVENT"] else event
        elif keyword == "END":
            if not path or path[-1] != name:
                inside = f"inside {path[-1][:_EXCERPT]}" if path else "outside of everything"
                raise ValueError(f"text: content line {number} has END:{name[:_EXCERPT]} {inside}")
            if path == ["VCALENDAR", "VEVENT"]:
                yield event
            path.pop()
        elif path == ["VCALENDAR", "VEVENT"]:
            event.append(line)
        elif not path and line.strip():
            raise ValueError(f"text: expected BEGIN:VCALENDAR, got {line[:_EXCERPT]!r} on content line {number}")
    if path:
        raise ValueError(f"text: {path[-1][:_EXCERPT]} is not closed; the file may have been cut off")
    if not calendars:
        raise ValueError("text: expected an iCalendar file, which starts with BEGIN:VCALENDAR")


def _check_path(path: list[str], number: int) -> None:
    if path[0] != "VCALENDAR":
        raise ValueError(f"text: expected BEGIN:VCALENDAR, got BEGIN:{path[0][:_EXCERPT]} on content line {number}")
    if len(path) > MAX_DEPTH:
        raise ValueError(f"text: content line {number} is nested deeper than {MAX_DEPTH} levels")


def _event(lines: Iterable["Contentline"]) -> Event:
    properties = _Properties(lines)
    start = properties.read("DTSTART", _when)
    end = None if start is None else _end(start, properties)
    return Event(
        uid=properties.text("UID"),
        summary=properties.text("SUMMARY"),
        start=None if start is None else iso(start.moment),
        end=None if end is None else iso(end.moment),
        all_day=start is not None and isinstance(start.moment, Date),
        tz=None if start is None else start.tz,
        location=properties.text("LOCATION"),
        recurrence=properties.read("RRULE", lambda _, value: _rule(value)),
        problems=properties.problems[:MAX_PROBLEMS],
    )


def _end(start: "_When", properties: "_Properties") -> "_When | None":
    if "DTEND" in properties:
        return properties.read("DTEND", _when)
    if "DURATION" in properties:
        return properties.read("DURATION", lambda _, value: start.after(*_duration(value)))
    return start.default_end()


class _Properties:
    """The properties of an event that we read, and what was wrong with them."""

    def __init__(self, lines: Iterable["Contentline"]) -> None:
        self.problems: list[str] = []
        self._found: dict[str, tuple[Mapping[str, Any], str]] = {}
        for line in lines:
            self._add(line)
        if "DTSTART" not in self:
            self.problems.append("DTSTART is missing")

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def _add(self, line: "Contentline") -> None:
        try:
            name = _name_of(line)
            if name not in _READ:
                return
            _, parameters, value = line.parts()
        except ValueError:
            self.problems.append(f"cannot read the line {line[:_EXCERPT]!r}")
            return
        if name in self._found:
            self.problems.append(f"{name} appears more than once; the first is used")
        else:
            self._found[name] = (parameters, value)

    def text(self, name: str) -> str | None:
        """Return the property's text, if it is there."""
        return self._found[name][1] if name in self._found else None

    def read(self, name: str, reader: Callable[[Mapping[str, Any], str], T]) -> T | None:
        """Return what *reader* makes of the property, or None if it is missing or wrong."""
        if name not in self._found:
            return None
        parameters, value = self._found[name]
        try:
            return reader(parameters, value)
        except ValueError:
            self.problems.append(f"cannot read {name} {value[:_EXCERPT]!r}")
            return None


def _name_of(line: str) -> str:
    found = _NAME.match(line)
    if found is None:
        raise ValueError("a line starts with a name")
    return found[0].upper()


@attrs.frozen
class _When:
    """A date, or a time in a zone, or a time in a zone nobody knows."""

    moment: Date | PlainDateTime | ZonedDateTime
    tz: str | None

    def after(self, days: int, rest: timedelta) -> "_When":
        """Return the moment that is some calendar days and then some time later."""
        moment, seconds = self.moment, int(rest.total_seconds())
        if isinstance(moment, Date):
            return _When(moment.add(days=days + rest.days), self.tz)
        if isinstance(moment, PlainDateTime):
            return _When(moment.add(days=days, seconds=seconds, naive_arithmetic_ok=True), self.tz)
        return _When(moment.add(days=days, seconds=seconds, disambiguation="compatible"), self.tz)

    def default_end(self) -> "_When":
        """Return when it ends if nothing says so: with the day, or at once."""
        if isinstance(self.moment, Date) and self.moment != Date.MAX:
            return self.after(1, timedelta())
        return self


def _when(parameters: Mapping[str, Any], value: str) -> _When:
    from icalendar.prop import vDDDTypes

    found = vDDDTypes.from_ical(value)  # type: ignore[no-untyped-call]
    if not isinstance(found, date):
        raise ValueError("not a date or time")  # noqa: TRY004 - it is the text that is wrong
    if not isinstance(found, datetime):
        return _When(Date(found), None)
    local = PlainDateTime(found.replace(tzinfo=None))
    written = "UTC" if found.tzinfo else parameters.get("TZID")
    if written is None:
        return _When(local, None)
    if not isinstance(written, str):
        raise ValueError("more than one zone")  # noqa: TRY004
    known = _zone_of(written)
    if known is None:
        return _When(local, written[:_EXCERPT])
    # RFC 5545 says which: the first of two, and the offset before the gap.
    return _When(local.assume_tz(known, disambiguation="compatible"), known)


def _zone_of(name: str) -> str | None:
    """Return the IANA name for a TZID: one, Microsoft's name for one, or one after a maker's prefix."""
    from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

    names = [name.strip("/"), WINDOWS_TO_OLSON.get(name, "")]
    if name.startswith("/"):
        parts = name[:_EXCERPT].split("/")
        names += ["/".join(parts[first:]) for first in range(2, len(parts))]
    return next((known for known in map(known_zone, names) if known), None)


def _duration(value: str) -> tuple[int, timedelta]:
    """Return calendar days, and the time to add after them: P1D and PT24H differ when the clocks change."""
    from icalendar.prop import vDuration

    total: timedelta = vDuration.from_ical(value)  # type: ignore[no-untyped-call]
    if total < timedelta():
        raise ValueError("an event cannot end before it starts")
    days = sum(int(number) * (7 if unit == "W" else 1) for number, unit in _WEEKS_OR_DAYS.findall(value.upper()))
    return days, total - timedelta(days=days)


def _rule(value: str) -> str:
    from icalendar.prop import vRecur

    rule = vRecur.from_ical(value)
    if "FREQ" not in rule:
        raise ValueError("a rule says how often")
    return str(rule.to_ical(), "utf-8")
