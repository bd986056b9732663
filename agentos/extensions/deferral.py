"""What hooks begin and only wait for: while a manifest is loaded, and at the end, all such waits are made together."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs

from agentos.base.locks import current_change

Wait = Callable[[], Awaitable[object]]


@attrs.frozen
class Arrival:
    """The second half of an activation that waits for somebody else.

    *wait* is awaited beside those of others; *settle* then runs in the order of loading, and fails its pack by raising.
    """

    where: str
    wait: Wait
    settle: Wait


_arrivals: ContextVar[list[Arrival] | None] = ContextVar("agentos_arrivals", default=None)
_departures: ContextVar[list[Wait] | None] = ContextVar("agentos_departures", default=None)


def put_off(arrival: Arrival) -> bool:
    """Leave *arrival* to the load of a manifest in which this hook runs; False if it runs in none, or in a part of it.

    What a hook loads by itself it may want to use at once.
    """
    arrivals, change = _arrivals.get(), current_change()
    if arrivals is None or change is None or change.parent is not None:
        return False
    arrivals.append(arrival)
    return True


def put_off_end(wait: Wait) -> bool:
    """Leave to a shutdown what a deactivation has begun and only waits for: all such waits are made together.

    False if the hook that asks runs in no shutdown; it waits by itself then.
    """
    departures = _departures.get()
    if departures is None:
        return False
    departures.append(wait)
    return True


@contextmanager
def collecting_arrivals() -> Iterator[list[Arrival]]:
    """Collect what hooks put off in the block."""
    arrivals: list[Arrival] = []
    token = _arrivals.set(arrivals)
    try:
        yield arrivals
    finally:
        _arrivals.reset(token)


@contextmanager
def collecting_ends() -> Iterator[list[Wait]]:
    """Collect the waits that deactivations put off in the block."""
    departures: list[Wait] = []
    token = _departures.set(departures)
    try:
        yield departures
    finally:
        _departures.reset(token)
