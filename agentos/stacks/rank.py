"""The one order in which slots and entries stand on a stack."""

from typing import Protocol


class Ranked(Protocol):
    """What has a place in the order."""

    @property
    def priority(self) -> int:
        """Return what counts first."""
        ...

    @property
    def sequence(self) -> int:
        """Return when it was registered."""
        ...


def rank(one: Ranked) -> tuple[int, int]:
    """Return a key for the one total order: higher priority wins; at equal priority, the later registration."""
    return (one.priority, one.sequence)
