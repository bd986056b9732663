"""Who may be in force on a stack, and who is: pure functions of slots and facts.

Everything else in agentos only changes the facts that go in here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from agentos.model.descriptor import Descriptor
from agentos.model.kind import kind_of
from agentos.model.overrides import OverrideLayers, Resolved
from agentos.stacks.entry import EntryState
from agentos.stacks.reasons import HOLLOW, ONLY, ShadowedBy, Strongest, WrappedBy
from agentos.stacks.slot import Obstacle, Slot


def _hold_nothing_back(slot: Slot) -> None:
    """Let *slot* pass."""


def _ask_gate(descriptor: Descriptor[Any]) -> str | None:
    return None if descriptor.gate is None else descriptor.gate()


@attrs.frozen
class Facts:
    """All that decides besides the slots themselves, as of one moment."""

    overrides: OverrideLayers = attrs.field(factory=OverrideLayers)
    held_back: Callable[[Slot], str | None] = _hold_nothing_back
    shut: Callable[[Descriptor[Any]], str | None] = _ask_gate


class Judgement(NamedTuple):
    """What is said of one slot without a look at the others: how it ranks, and what keeps it out of force."""

    priority: int
    obstacle: Obstacle | None
    options: Mapping[str, Any] | None


def judge(slot: Slot, facts: Facts) -> Judgement:
    """Say how *slot* ranks and what keeps it out of force; without an obstacle it is eligible."""
    descriptor = slot.descriptor
    said = facts.overrides.resolve(descriptor.kind, descriptor.id, slot.owner.source.pack)
    return Judgement(_priority(slot, said), _obstacle(slot, facts, said), said.options or None)


def _priority(slot: Slot, said: Resolved) -> int:
    for given in (said.priority, slot.descriptor.priority, slot.base_priority):
        if given is not None:
            return given
    return 0


def _obstacle(slot: Slot, facts: Facts, said: Resolved) -> Obstacle | None:
    """Return the first of the things that keep a slot out of force, in the order in which they count."""
    descriptor = slot.descriptor
    if slot.owner.disabled is not None:
        return Obstacle(EntryState.DISABLED, slot.owner.disabled)
    if said.enabled is False:
        return Obstacle(EntryState.DISABLED, f"disabled by {said.enabled_by}")
    if said.enabled is None and not descriptor.enabled_by_default:
        return Obstacle(EntryState.DISABLED, "disabled by default; an override with enabled = true turns it on")
    if not kind_of(descriptor.kind).is_bound(descriptor.payload):
        return Obstacle(EntryState.UNBOUND, "declared, but no handler is bound to it yet")
    if (waits := facts.held_back(slot)) is not None:
        return Obstacle(EntryState.GATED, waits)
    if descriptor.required_secrets and (missing := missing_secrets(slot)):
        return Obstacle(EntryState.GATED, _why_gated(slot, missing))
    if descriptor.gate is not None and (shut := facts.shut(descriptor)) is not None:
        return Obstacle(EntryState.GATED, shut)
    if slot.failure is not None:
        return Obstacle(EntryState.FAILED, str(slot.failure))
    return None


def missing_secrets(slot: Slot) -> list[str]:
    """Return the secrets that gate *slot*."""
    required = slot.descriptor.required_secrets
    return [secret.id for secret in required if not secret.optional and not slot.owner.scope.has(secret.id)]


def _why_gated(slot: Slot, missing: Sequence[str]) -> str:
    noun = "secret" if len(missing) == 1 else "secrets"
    return f"missing {noun} {', '.join(map(slot.owner.scope.hint, missing))}"


def choose(eligible: Sequence[Slot]) -> tuple[Slot, ...]:
    """Return who is to be in force of *eligible*, which stand weakest first: the strongest, and what it wraps.

    That is nobody where all of them wrap: there is nothing that the last one could call.
    """
    chosen = []
    for slot in reversed(eligible):
        chosen.append(slot)
        if not slot.descriptor.wraps:
            return tuple(chosen)
    return ()


def standing(slot: Slot, in_force: Sequence[Slot], eligible: Sequence[Slot], total: int) -> tuple[EntryState, object]:
    """Return what *slot* is on a stack of *total* slots, and why: text, or what writes it when asked."""
    if slot.obstacle is not None:
        return slot.obstacle
    if not in_force:
        return EntryState.GATED, HOLLOW
    if slot is in_force[0]:
        if total == 1:
            return EntryState.ACTIVE, ONLY
        beaten = eligible[-2] if len(eligible) > 1 else slot
        return EntryState.ACTIVE, Strongest(slot.priority, len(eligible), total, beaten.priority)
    if slot in in_force:
        return EntryState.WRAPPED, WrappedBy(in_force[in_force.index(slot) - 1].source)
    last = in_force[-1]
    return EntryState.SHADOWED, ShadowedBy(last.source, last.priority, slot.priority)
