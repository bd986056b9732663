"""Packs that installed distributions announce under the group `agentos.packs`."""

from typing import Any

import attrs

from agentos.errors import PackLoadError
from agentos.model.field_checks import did_you_mean

GROUP = "agentos.packs"


@attrs.frozen
class PackEntryPoint:
    """An entry point, and the distribution that announces it."""

    name: str
    value: str
    _distribution: Any = attrs.field(eq=False, repr=False)

    @property
    def distribution(self) -> str:
        """Name the distribution with its version. Its metadata is read now: of most nobody asks."""
        if self._distribution is None:
            return "an unknown distribution"
        text = self._distribution.read_text("METADATA") or self._distribution.read_text("PKG-INFO") or ""
        # Not `metadata`: it parses the description too, as the body of an e-mail.
        head = dict(line.split(": ", 1) for line in text.partition("\n\n")[0].splitlines() if ": " in line)
        return f"{head.get('Name')} {head.get('Version')}"

    @property
    def module(self) -> str:
        """Return the module that the entry point names."""
        return self.value.partition(":")[0].strip()

    @property
    def attribute(self) -> str:
        """Return the path of the object in the module; empty for the module itself."""
        return self.value.partition(":")[2].partition("[")[0].strip()


class PackEntryPoints:
    """What is installed, read once and again when a name is not found. Nothing is imported to find out."""

    def __init__(self) -> None:
        self._found: dict[str, list[PackEntryPoint]] | None = None

    def find(self, name: str) -> list[PackEntryPoint]:
        """Return who announces *name*; more than one is a conflict."""
        if self._found is None or name not in self._found:
            self._found = _scan()
        return self._found.get(name, [])

    def find_one(self, name: str, pack: str) -> PackEntryPoint | None:
        """Return who announces *name*, for the entry called *pack*; a conflict is a PackLoadError."""
        found = self.find(name)
        if len(found) > 1:
            who = " and ".join(one.distribution for one in found)
            raise PackLoadError(pack, f"is announced by {who}; uninstall one, or name the module instead")
        return found[0] if found else None

    def hint(self, name: str) -> str:
        """Return the announced name that is nearest to an unknown one, else all of them."""
        known = self.names()
        return did_you_mean(name, known) or f". Installed packs: {', '.join(known) or 'none'}"

    def names(self) -> list[str]:
        """Return every announced name, sorted."""
        if self._found is None:
            self._found = _scan()
        return sorted(self._found)


def _scan() -> dict[str, list[PackEntryPoint]]:
    from importlib.metadata import entry_points

    found: dict[str, list[PackEntryPoint]] = {}
    for point in entry_points(group=GROUP):
        others = found.setdefault(point.name, [])
        announced = PackEntryPoint(point.name, point.value, point.dist)
        # The same distribution can be on the path twice.
        if all(other != announced or other.distribution != announced.distribution for other in others):
            others.append(announced)
    return found
