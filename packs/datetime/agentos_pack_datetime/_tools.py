"""The functions as tools."""

from agentos import PUBLIC, Tool, tool
from agentos_pack_datetime.arithmetic import date_math
from agentos_pack_datetime.clock import Clock, DateTimeTools
from agentos_pack_datetime.conversion import convert_time
from agentos_pack_datetime.ics import parse_ics

_reads = tool(effect="read", required_access=PUBLIC, timeout=20, category="time")


def create_tools(clock: Clock) -> tuple[Tool, ...]:
    """Return the four tools, reading the time from *clock*."""
    return tuple(_reads(function) for function in (DateTimeTools(clock).now, convert_time, date_math, parse_ics))
