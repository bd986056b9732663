"""Time zones by their IANA names."""

import difflib
import functools
import re

import whenever

_LONGEST = 64
_ABBREVIATION = re.compile(r"[A-Z]{1,5}")


def zone(name: str, place: str) -> str:
    """Return the IANA spelling of *name*, or raise a ValueError with the nearest names."""
    found = known_zone(name)
    if found is None:
        raise ValueError(f"{place}: unknown time zone {name[:_LONGEST]!r}; {_hint(name[:_LONGEST])}")
    return found


def known_zone(name: str) -> str | None:
    """Return the IANA spelling of *name* in whatever case it is written, or None."""
    return _zones().get(name.strip().casefold())


@functools.cache
def _zones() -> dict[str, str]:
    # Looked up here and never by its text: zone names are also file names.
    return {name.casefold(): name for name in sorted(whenever.available_timezones() - {"Factory"})}


def _hint(name: str) -> str:
    if _ABBREVIATION.fullmatch(name):
        return "an abbreviation may stand for several zones, so give an IANA name such as America/Los_Angeles"
    near = _nearest(name)
    return f"did you mean {' or '.join(near)}?" if near else "give an IANA name such as Europe/Berlin or UTC"


def _nearest(name: str) -> list[str]:
    wanted = name.strip().replace(" ", "_").casefold()
    cities: dict[str, list[str]] = {}
    for folded, zone_name in _zones().items():
        cities.setdefault(folded.rpartition("/")[2], []).append(zone_name)
    city = wanted.rpartition("/")[2]
    found = [zone_name for near in difflib.get_close_matches(city, cities, n=2) for zone_name in cities[near]]
    found += [_zones()[near] for near in difflib.get_close_matches(wanted, _zones(), n=2)]
    return list(dict.fromkeys(found))[:3]
