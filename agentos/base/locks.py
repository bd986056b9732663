"""Who is changing what: locks on stacks, packs and services that can't deadlock.

A change locks everything it touches at once, so two changes that touch different things run side by side and two
that touch the same thing run one after the other. A hook may start a change of its own; that change is a child of
the one whose hook it is. A child that would have to wait for its own ancestor, or for somebody who waits for that
ancestor, is refused the lock instead of being left waiting for ever, and the caller decides what that means.
"""

import asyncio
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

_current: ContextVar["Change | None"] = ContextVar("agentos_change", default=None)


class Change:
    """One change under way, and the one whose hook started it."""

    __slots__ = ("held", "open", "parent", "raised")

    def __init__(self, parent: "Change | None") -> None:
        self.parent = parent
        self.held: set[Hashable] = set()
        self.open = True
        self.raised: list[Exception] = []
        """What hooks raised on the way that could not stop the change."""

    def descends_from(self, other: "Change | None") -> bool:
        """Tell whether this is *other*, or was started in a hook of it or of a descendant."""
        change: Change | None = self
        while change is not None and change is not other:
            change = change.parent
        return change is other

    def lineage(self) -> Iterator["Change"]:
        """Yield this change and its ancestors that are still under way."""
        change: Change | None = self
        while change is not None:
            if change.open:
                yield change
            change = change.parent


def current_change() -> Change | None:
    """Return the change in whose hook this runs, if it is still under way."""
    change = _current.get()
    return None if change is None else next(change.lineage(), None)


def current_raised() -> list[Exception]:
    """Return where the change that is under way here collects what could not stop it."""
    change = current_change()
    return [] if change is None else change.raised


class _Waiter(NamedTuple):
    change: Change
    keys: frozenset[Hashable]
    granted: "asyncio.Future[None]"


class ChangeLocks:
    """Hands out locks: all of a change's keys or none, first come first served."""

    def __init__(self) -> None:
        self._holders: dict[Hashable, Change] = {}
        self._waiters: list[_Waiter] = []
        self._under_way = 0
        self._idlers: list[asyncio.Future[None]] = []

    @contextmanager
    def change(self) -> Iterator[Change]:
        """Open a change, a child of the one in whose hook this runs. What it still holds at the end is released."""
        change = Change(_current.get())
        token = _current.set(change)
        self._under_way += 1
        try:
            yield change
        finally:
            _current.reset(token)
            change.open, change.raised = False, []  # a task that was started within may live on, and knows the change
            self._under_way -= 1
            self.release(change, change.held)

    def is_nested(self) -> bool:
        """Tell whether this runs inside a hook of a change that is still under way."""
        return current_change() is not None

    async def idle(self) -> None:
        """Wait until no change is under way."""
        while self._under_way:
            done = asyncio.get_running_loop().create_future()
            self._idlers.append(done)
            await done

    async def acquire(self, change: Change, keys: Iterable[Hashable]) -> frozenset[Hashable]:
        """Lock *keys* for *change*, and return those that it can't have without a deadlock.

        One that is cancelled may hold them all the same: the end of the change releases them.
        """
        wanted = frozenset(keys) - change.held
        if not self._waiters and self._is_free(wanted):
            self._grant(change, wanted)
            return frozenset()
        refused = self._refused(change, wanted)
        wanted -= refused
        if self._is_free(wanted) and (self._holds_anything(change) or not self._is_queued_for(wanted)):
            self._grant(change, wanted)
            return refused
        waiter = _Waiter(change, wanted, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter in self._waiters:  # else it was granted in the same turn of the loop, and is held
                self._waiters.remove(waiter)
                self._serve()
            raise
        return refused

    def release(self, change: Change, keys: Iterable[Hashable]) -> None:
        """Give *keys* back, and serve whoever waited for them."""
        for key in list(keys):
            if self._holders.get(key) is change:
                del self._holders[key]
            change.held.discard(key)
        self._serve()

    def _grant(self, change: Change, keys: frozenset[Hashable]) -> None:
        for key in keys:
            self._holders[key] = change
        change.held |= keys

    def _serve(self) -> None:
        spoken_for: set[Hashable] = set()
        for waiter in list(self._waiters):
            if waiter.granted.done():  # cancelled, and about to leave the queue
                continue
            may_pass = self._holds_anything(waiter.change) or spoken_for.isdisjoint(waiter.keys)
            if may_pass and self._is_free(waiter.keys):
                self._waiters.remove(waiter)
                self._grant(waiter.change, waiter.keys)
                waiter.granted.set_result(None)
            else:
                spoken_for |= waiter.keys
        if not self._under_way:
            for idler in self._idlers:
                if not idler.done():
                    idler.set_result(None)
            self._idlers.clear()

    def _is_free(self, keys: frozenset[Hashable]) -> bool:
        return self._holders.keys().isdisjoint(keys)

    def _is_queued_for(self, keys: frozenset[Hashable]) -> bool:
        return any(not waiter.keys.isdisjoint(keys) for waiter in self._waiters)

    def _holds_anything(self, change: Change) -> bool:
        """Tell whether waiting behind the queue could make somebody in it wait for this very change."""
        return any(one.held for one in change.lineage())

    def _refused(self, change: Change, keys: frozenset[Hashable]) -> frozenset[Hashable]:
        if not self._holders.keys() & keys:
            return frozenset()
        family = set(change.lineage())
        return frozenset(key for key in keys if self._waits_for(self._holders.get(key), family, set()))

    def _waits_for(self, holder: Change | None, family: set[Change], seen: set[Change]) -> bool:
        """Tell whether *holder* can end only after somebody of *family* has."""
        if holder is None or holder in seen:
            return False
        if holder in family:
            return True
        seen.add(holder)
        return any(
            self._waits_for(self._holders.get(key), family, seen)
            for waiter in self._waiters
            if holder in waiter.change.lineage()
            for key in waiter.keys
        )
