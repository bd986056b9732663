"""Names on the wire: what every provider accepts, and the way back.

A name carries a hash only where it has to: where it is too long, where nothing readable is left of it, or where another
has the same.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable

import attrs

_FITS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_HEAD = 64 - 9


def wire_name(name: str) -> str:
    """Return what *name* is on the wire if no other is the same there."""
    return _readable(name) or _hashed(name)


def _readable(name: str) -> str | None:
    """Return *name* with what providers refuse replaced; None if it is too long, or nothing is left of it."""
    if _FITS.fullmatch(name):
        return name
    kept = _kept(name)
    return kept if _FITS.fullmatch(kept) and kept != _PREFIX else None


_PREFIX = "t_"
"""What a name begins with that would begin with a digit."""


def _kept(name: str) -> str:
    kept = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")
    return kept if re.match(r"[A-Za-z]", kept) else f"{_PREFIX}{kept}"


def _hashed(name: str) -> str:
    """Return a readable head and eight hex digits of the name's hash."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_kept(name)[:_HEAD].rstrip('_-')}_{digest}"


def made_up_names(names: Iterable[str], standing: Collection[str]) -> dict[str, str]:
    """Return a wire name for each of *names* that is neither another's nor *standing*.

    Of those that would be the same each has its hash, so that it does not depend on their order which is which.
    """
    readable = {name: _readable(name) for name in names}
    counts = Counter(readable.values())
    made = {name: wire for name, wire in readable.items() if wire and counts[wire] == 1 and wire not in standing}
    taken = {*standing, *made.values()}
    for name in readable:
        if name not in made:
            made[name] = _free(name, taken)
            taken.add(made[name])
    return made


def _free(name: str, taken: Collection[str]) -> str:
    wire, attempt = _hashed(name), 0
    while wire in taken:
        attempt += 1
        wire = _hashed(f"{name}\0{attempt}")
    return wire


@attrs.frozen
class WireNames:
    """A two-way map between names and wire names, made for one request."""

    to_wire: dict[str, str] = attrs.field(factory=dict)
    from_wire: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, names: Iterable[str]) -> "WireNames":
        """Give each name a wire name of its own; one that fits as it is keeps it."""
        names = list(dict.fromkeys(names))
        fitting = {name: name for name in names if _FITS.fullmatch(name)}
        to_wire = fitting | made_up_names([name for name in names if name not in fitting], fitting)
        return cls(to_wire, {wire: name for name, wire in to_wire.items()})

    def decode(self, wire: str) -> str:
        """Return the name behind *wire*; a name that is not in the map is its own."""
        return self.from_wire.get(wire, wire)
