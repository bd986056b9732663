"""A stack: the slots that one kind and id has, who is in force among them, and what readers see of it."""

from bisect import bisect_left, insort
from collections.abc import Sequence

import attrs

from agentos.stacks.decide import Judgement, standing
from agentos.stacks.entry import Entry, EntryState
from agentos.stacks.rank import Ranked, rank
from agentos.stacks.reasons import ShadowedBy
from agentos.stacks.slot import Slot


class Stack:
    """Slots by rank, the weakest first, in two lists: those that are eligible, and those that something keeps out.

    `active` and `entries()` are what readers see. They change when the manager says `switch`, each in one step.
    """

    __slots__ = ("_shown", "_unshown", "activated", "active", "eligible", "in_force", "kept_out", "plan")

    def __init__(self) -> None:
        self.eligible: list[Slot] = []
        self.kept_out: list[Slot] | None = None
        self.plan: tuple[Slot, ...] | None = None
        """Who is to be in force, strongest first; None when that has to be chosen again."""
        self.in_force: tuple[Slot, ...] = ()
        self.activated: tuple[Slot, ...] = ()
        """What was activated since the last switch."""
        self.active: Entry | None = None
        self._shown: list[Entry] = []
        self._unshown: dict[Slot, None] | None = None

    def __len__(self) -> int:
        return len(self.eligible) + len(self.kept_out or ())

    def slots(self) -> list[Slot]:
        """Return the slots on this stack."""
        return [*self.eligible, *(self.kept_out or ())]

    # -- changing ----------------------------------------------------------------------------------------------

    def place(self, slot: Slot, judged: Judgement) -> None:
        """Put *slot* where *judged* says, from wherever on this stack it was."""
        if slot.is_stacked:
            self.take(slot)
        slot.priority, slot.obstacle, slot.options = judged.priority, judged.obstacle, judged.options
        slot.is_stacked = True
        insort(self._list_of(slot), slot, key=rank)
        self._note(slot)

    def take(self, slot: Slot) -> None:
        """Take *slot* off."""
        slots = self._list_of(slot)
        at = _position(slots, slot)
        if at is not None:
            del slots[at]
        slot.is_stacked = False
        self._note(slot)

    def _list_of(self, slot: Slot) -> list[Slot]:
        if slot.obstacle is None:
            return self.eligible
        if self.kept_out is None:
            self.kept_out = []
        return self.kept_out

    def _note(self, slot: Slot) -> None:
        self._unshown = self._unshown or {}
        self._unshown[slot] = None
        self.plan = None

    def is_new(self, slot: Slot) -> bool:
        """Tell whether *slot* was placed since the last switch."""
        return self._unshown is not None and slot in self._unshown

    def withdrawn_in_use(self) -> list[Slot]:
        """Return what is used and was taken off, or kept out, since the last switch."""
        return [slot for slot in self._unshown or () if slot.is_used and (slot.obstacle or not slot.is_stacked)]

    # -- showing -----------------------------------------------------------------------------------------------

    def switch(self) -> list[tuple[Slot, Entry | None]]:
        """Show readers that those of the plan are in force.

        Return the slots whose entries are new, strongest first, each with the entry that it had before.
        """
        planned = self.plan or ()
        # Where nobody was in force, or is now, what wraps nothing waits for something to wrap: all of it is told anew.
        hollow = () if self.in_force and planned else self.eligible
        touched = dict.fromkeys((*(self._unshown or ()), *self.in_force, *planned, *hollow))
        self.in_force, self.activated, self._unshown = planned, (), None
        total = len(self)
        old = [slot.entry for slot in touched if slot.entry is not None]
        renewed: list[tuple[Slot, Entry | None]] = []
        for slot in touched:
            if slot.is_stacked:
                renewed.append((slot, slot.entry))
                slot.entry = slot.view_as(*standing(slot, planned, self.eligible, total))
        if len(renewed) > 1:
            renewed.sort(key=lambda pair: rank(pair[0]), reverse=True)
        self._replace(old, [slot.view() for slot, _ in renewed])
        self.active = planned[0].entry if planned else None
        return renewed

    def _replace(self, old: Sequence[Entry], new: Sequence[Entry]) -> None:
        """Show *new*, strongest first, in the place of *old*; a reader in another thread sees all of it or nothing."""
        if not self._shown:
            self._shown = [*reversed(new)]
            return
        weakest = min((rank(one) for one in (*old, *new)), default=rank(self._shown[-1]))
        low = bisect_left(self._shown, weakest, key=rank)
        tail = self._shown[low:]
        for entry in old:
            if (at := _position(tail, entry)) is not None:
                del tail[at]
        for entry in new:
            insort(tail, entry, key=rank)
        if low:
            self._shown[low:] = tail
        else:
            self._shown = tail

    @property
    def is_shown(self) -> bool:
        """Tell whether readers see anything of it."""
        return bool(self._shown)

    def hide(self) -> None:
        """Show readers nothing any more."""
        self.in_force, self.active, self._shown = (), None, []

    def entries(self) -> list[Entry]:
        """Return what readers see, strongest first."""
        shown = self._shown[:]
        winner = next((entry for entry in shown if entry.state.in_force), None)
        return [_up_to_date(entry, winner) for entry in reversed(shown)]

    def view(self, slot: Slot) -> Entry:
        """Return the entry of *slot* as readers see it now."""
        winner = self.in_force[-1].entry if self.in_force else None
        return _up_to_date(slot.view(), winner)


def _position(ranked: Sequence[Ranked], one: Ranked) -> int | None:
    """Return where *one* stands, if it does. Two rank alike while a pack is reloaded, whose hook binds what it has."""
    at = bisect_left(ranked, rank(one), key=rank)
    while at < len(ranked) and ranked[at] is not one:
        at = at + 1 if rank(ranked[at]) == rank(one) else len(ranked)
    return at if at < len(ranked) else None


def _up_to_date(entry: Entry, winner: Entry | None) -> Entry:
    """Return *entry*; one that is shadowed and was made when somebody else shadowed it, with the reason of now."""
    if entry.state is not EntryState.SHADOWED or winner is None:
        return entry
    reason = ShadowedBy(winner.source, winner.priority, entry.priority)
    is_current = entry._reason == reason  # noqa: SLF001 - an entry is this package's own
    return entry if is_current else attrs.evolve(entry, reason=reason)
