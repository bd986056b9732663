"""Dependencies as a graph."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def cycle_through(node: N, needs: Iterable[N], needs_of: Callable[[N], Iterable[N]]) -> list[N] | None:
    """Return the shortest cycle that *node* would be in if it depended on *needs*, from itself to itself; else None.

    *needs_of* says what any other node depends on.
    """
    came_from = dict.fromkeys(needs, node)
    waiting = deque(came_from)
    while waiting:
        one = waiting.popleft()
        if one == node:
            return _way_back(node, came_from)
        for need in needs_of(one):
            if need not in came_from:
                came_from[need] = one
                waiting.append(need)
    return None


def _way_back(node: N, came_from: dict[N, N]) -> list[N]:
    way = [node, came_from[node]]
    while way[-1] != node:
        way.append(came_from[way[-1]])
    return way[::-1]
