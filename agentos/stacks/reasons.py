"""Why an entry is in force or not: what the decision knew, written out when somebody asks for the text."""

import attrs

from agentos.model.source import Source

ONLY = "the only entry"
HOLLOW = "it wraps, but nothing is beneath it that it could call; load a pack that offers that"


@attrs.frozen
class Strongest:
    """It won: over the next eligible entry if there is one, else over those that something keeps out of force."""

    priority: int
    eligible: int
    total: int
    next_priority: int

    def __str__(self) -> str:
        if self.eligible == 1:
            return f"the only eligible entry of {self.total}"
        return f"strongest of {self.eligible} eligible entries: {_comparison(self.priority, self.next_priority)}"


@attrs.frozen
class WrappedBy:
    """It is in force beneath an entry that calls it."""

    source: Source

    def __str__(self) -> str:
        return f"wrapped by {self.source}, which calls it"


@attrs.frozen
class ShadowedBy:
    """An entry above it is in force and does not call it."""

    source: Source
    winner: int
    loser: int

    def __str__(self) -> str:
        return f"shadowed by {self.source}: {_comparison(self.winner, self.loser)}"


def _comparison(winner: int, loser: int) -> str:
    if winner != loser:
        return f"priority {winner} over {loser}"
    return f"registered later at the same priority {winner}"
