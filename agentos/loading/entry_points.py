"""Packs that installed distributions announce under the group `agentos.packs`."""

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "agentos.packs"


@attrs.frozen
class Announced:
    """An entry point and the distribution that announces it."""

    name: str
    value: str
    distribution: str

    @property
    def module(self) -> str:
        """Return the module that the entry point names."""
        return self.value.partition(":")[0].strip()

    @property
    def attribute(self) -> str:
        """Return the path of the object in the module; empty for the module itself."""
        return self.value.partition(":")[2].partition("[")[0].strip()


class Announcements:
    """What is installed, read once and again when a name is not found. Nothing is imported to find out."""

    def __init__(self) -> None:
        self._found: dict[str, list[Announced]] | None = None

    def find(self, name: str) -> list[Announced]:
        """Return who announces *name*; more than one is a conflict."""
        if self._found is None or name not in self._found:
            self._found = _scan()
        return self._found.get(name, [])

    def names(self) -> list[str]:
        """Return every announced name, sorted."""
        if self._found is None:
            self._found = _scan()
        return sorted(self._found)


def _scan() -> dict[str, list[Announced]]:
    from importlib.metadata import entry_points

    found: dict[str, list[Announced]] = {}
    for point in entry_points(group=GROUP):
        announced = Announced(point.name, point.value, _distribution_of(point))
        others = found.setdefault(point.name, [])
        if announced not in others:  # the same distribution can be on the path twice
            others.append(announced)
    return found


def _distribution_of(point: "EntryPoint") -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"
