"""What is installed, read from metadata alone. Nothing is imported to find out."""

from collections.abc import Iterable, Iterator
from importlib import metadata

import attrs
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

MAX_DISTRIBUTIONS = 2_000
"""How far dependencies of dependencies are followed."""


@attrs.frozen
class Missing:
    """A requirement that is not met: what is asked for, and what is there instead, if anything."""

    requirement: str
    found: str | None = None

    def __str__(self) -> str:
        return self.requirement if self.found is None else f"{self.requirement} (installed: {self.found})"


def find_distribution(name: str) -> metadata.Distribution | None:
    """Return the installed distribution called *name*."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def missing_of(distribution: metadata.Distribution) -> list[Missing]:
    """Return what *distribution* needs and does not find.

    Its own requirements count with their versions. Of their requirements in turn only the presence counts: versions
    further down are the installer's matter, and an environment that bends one of them may well work.
    """
    found: dict[str, Missing] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(distribution, frozenset[str](), True)]
    while waiting and len(seen) < MAX_DISTRIBUTIONS:
        holder, extras, is_first = waiting.pop()
        for requirement in _requirements(holder, extras):
            place = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if place in seen:
                continue
            seen.add(place)
            there = find_distribution(requirement.name)
            if fault := _fault(requirement, there, strictly=is_first):
                found[place[0]] = fault
            elif there is not None:
                waiting.append((there, place[1], False))
    return [found[name] for name in sorted(found)]


def modules_required_by(distribution: metadata.Distribution) -> list[str]:
    """Return the names by which the direct requirements of *distribution* are imported, as far as they are there."""
    wanted = {canonicalize_name(one.name) for one in _requirements(distribution, ())}
    modules = metadata.packages_distributions().items()
    return sorted(
        name
        for name, holders in modules
        if name.isidentifier() and not name.startswith("_") and wanted & {canonicalize_name(one) for one in holders}
    )


def _fault(requirement: Requirement, there: metadata.Distribution | None, *, strictly: bool) -> Missing | None:
    wanted = f"{requirement.name}{requirement.specifier}"
    if there is None:
        return Missing(wanted)
    if strictly and not requirement.specifier.contains(there.version, prereleases=True):
        return Missing(wanted, there.version)
    return None


def _requirements(distribution: metadata.Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    for text in distribution.requires or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # of a distribution that is not ours: its installer had to cope with it
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement
