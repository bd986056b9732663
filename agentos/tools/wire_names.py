"""Names on the wire: what every provider accepts, and the way back."""

import hashlib
import re
from collections.abc import Iterable

import attrs

_FITS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_HEAD = 64 - 9


def wire_name(name: str) -> str:
    """Return *name* if every provider accepts it, else a readable head and eight hex digits of its hash."""
    if _FITS.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    head = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_HEAD].strip("_-")
    if not head or not re.match(r"[A-Za-z_]", head):
        head = f"t_{head}"[:_HEAD]
    return f"{head}_{digest}"


@attrs.frozen
class WireNames:
    """A two-way map between names and wire names, made for one request."""

    to_wire: dict[str, str] = attrs.field(factory=dict)
    from_wire: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, names: Iterable[str]) -> "WireNames":
        """Give each name a wire name of its own; one that fits as it is keeps it."""
        names = list(dict.fromkeys(names))
        made = cls()
        for name in sorted(names, key=lambda name: _FITS.fullmatch(name) is None):
            wire = wire_name(name)
            attempt = 0
            while wire in made.from_wire:
                attempt += 1
                wire = wire_name(f"{name}\0{attempt}")
            made.to_wire[name] = wire
            made.from_wire[wire] = name
        return made

    def decode(self, wire: str) -> str:
        """Return the name behind *wire*; a name that is not in the map is its own."""
        return self.from_wire.get(wire, wire)
