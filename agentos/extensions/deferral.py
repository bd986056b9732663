"""What hooks begin and only wait for: while a manifest is loaded, and at the end, all such waits are made together."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs

from agentos.base.locks import current_change

Wait = Callable[[], Awaitable[object]]


@attrs.frozen
class DeferredActivation:
    """The second half of an activation that waits for somebody else.

    *wait* is awaited beside those of others; *finish* then runs in the order of loading, and fails its pack by raising.
    """

    where: str
    wait: Wait
    finish: Wait


_activations: ContextVar[list[DeferredActivation] | None] = ContextVar("agentos_deferred_activations", default=None)
_ends: ContextVar[list[Wait] | None] = ContextVar("agentos_deferred_ends", default=None)


def defer_activation(activation: DeferredActivation) -> bool:
    """Leave *activation* to the load of a manifest in which this hook runs; False if it runs in none, or in a part.

    What a hook loads by itself it may want to use at once.
    """
    deferred, change = _activations.get(), current_change()
    if deferred is None or change is None or change.parent is not None:
        return False
    deferred.append(activation)
    return True


def defer_end(wait: Wait) -> bool:
    """Leave to a shutdown what a deactivation has begun and only waits for: all such waits are made together.

    False if the hook that asks runs in no shutdown; it waits by itself then.
    """
    deferred = _ends.get()
    if deferred is None:
        return False
    deferred.append(wait)
    return True


@contextmanager
def deferred_activations() -> Iterator[list[DeferredActivation]]:
    """Collect what activations defer in the block."""
    deferred: list[DeferredActivation] = []
    token = _activations.set(deferred)
    try:
        yield deferred
    finally:
        _activations.reset(token)


@contextmanager
def deferred_ends() -> Iterator[list[Wait]]:
    """Collect what deactivations defer in the block."""
    deferred: list[Wait] = []
    token = _ends.set(deferred)
    try:
        yield deferred
    finally:
        _ends.reset(token)
