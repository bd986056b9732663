"""The functions as tools: names, schemas, and the call."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from agentos_pack_datetime.arithmetic import LIMITS, date_math
from agentos_pack_datetime.clock import Clock, DateTimeTools
from agentos_pack_datetime.conversion import convert_time
from agentos_pack_datetime.ics import parse_ics

PUBLIC = "*public*"
"""Stands in for the core's own PUBLIC."""


@attrs.frozen(kw_only=True)
class FunctionTool:
    """A function that a model may call."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = attrs.field(repr=False)
    function: Callable[..., Any] = attrs.field(repr=False)
    effect: str = "read"
    required_access: str = PUBLIC

    async def execute(self, args: Mapping[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG002
        """Call the function and return its result as plain data."""
        return attrs.asdict(self.function(**args))


def create_tools(clock: Clock) -> tuple[FunctionTool, ...]:
    """Return the four tools, reading the time from *clock*."""
    functions = (DateTimeTools(clock).now, convert_time, date_math, parse_ics)
    return tuple(
        FunctionTool(
            name=function.__name__,
            description=function.__doc__ or "",
            input_schema=_SCHEMAS[function.__name__],
            function=function,
        )
        for function in functions
    )


def _closed(required: list[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _text(description: str, longest: int = 64, **more: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": description, **more}


def _optional_text(description: str) -> dict[str, Any]:
    return {**_text(description), "type": ["string", "null"], "default": None}


def _amount(unit: str, description: str) -> dict[str, Any]:
    limit = LIMITS[unit]
    return {
        "type": "integer",
        "minimum": -limit,
        "maximum": limit,
        "default": 0,
        "description": f"{description} to add; negative to subtract",
    }


def _disambiguate(what: str) -> dict[str, Any]:
    return {
        "type": "string",
        "enum": ["reject", "earlier", "later"],
        "default": "reject",
        "description": f"Which moment to take when a clock change skips or repeats {what} local time: "
        "earlier, later, or reject, which answers with both",
    }


_SCHEMAS = {
    "now": _closed(
        [],
        tz=_text("The IANA name of a time zone, such as Europe/Berlin or America/New_York", default="UTC"),
    ),
    "convert_time": _closed(
        ["time"],
        time=_text("An ISO 8601 time such as 2024-07-01T12:30, or with its offset from UTC: 2024-07-01T12:30+02:00"),
        from_tz=_optional_text("The IANA name of the zone the time is in; needed unless the time has an offset"),
        to_tz=_text("The IANA name of the zone to convert to, such as Asia/Tokyo", default="UTC"),
        disambiguate=_disambiguate("the"),
    ),
    "date_math": _closed(
        ["start"],
        start=_text("An ISO 8601 date or time: 2024-01-31, 2024-01-31T09:00 or 2024-01-31T09:00+01:00"),
        years=_amount("years", "Years"),
        months=_amount("months", "Months"),
        weeks=_amount("weeks", "Weeks"),
        days=_amount("days", "Calendar days"),
        hours=_amount("hours", "Hours"),
        minutes=_amount("minutes", "Minutes"),
        seconds=_amount("seconds", "Seconds"),
        tz=_optional_text(
            "The IANA name of the zone to reckon in, so that clock changes count; without it a day has 24 hours"
        ),
        until=_optional_text("Another date or time, of the same kind as start, to measure to"),
        disambiguate=_disambiguate("a"),
    ),
    "parse_ics": _closed(
        ["text"],
        text=_text("The text of an iCalendar (.ics) file, at most 256 KiB; not a path or an address", longest=262_144),
        limit={
            "type": "integer",
            "minimum": 1,
            "maximum": 500,
            "default": 50,
            "description": "How many events to return at most, 1 to 500",
        },
    ),
}
