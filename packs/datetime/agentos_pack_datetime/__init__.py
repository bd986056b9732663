"""Dates and times for agents: the clock, time zones, date arithmetic, calendar files.

clock       now           the current time, by a clock that can be replaced
conversion  convert_time  from zone to zone
arithmetic  date_math     add, subtract, measure
ics         parse_ics     the events of an iCalendar file   (on icalendar)
_moments, _frames, _zones  what they share                  (on whenever)
_tools      the four as tools

Local times that a clock change skips or repeats are never guessed. Nothing uses the network, and no file is
read but the zone database.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `datetime` with its four tools; the option `clock` replaces the clock of the host."""
    from agentos import ExtensionPack, read_options, with_displays
    from agentos_pack_datetime._displays import DISPLAYS
    from agentos_pack_datetime._tools import create_tools
    from agentos_pack_datetime.clock import Options

    clock = read_options(Options, context.options).clock
    return ExtensionPack(
        name="datetime",
        version=__version__,
        description="The current time, time zones, date arithmetic and iCalendar files.",
        options=Options,
        descriptors=with_displays(create_tools(clock), DISPLAYS),
    )
