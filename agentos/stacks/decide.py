"""Who is active on a stack, and why: one pure function.

Everything else in agentos only changes the facts that go in here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from agentos.model.descriptor import Descriptor
from agentos.model.kind import kind_of
from agentos.model.overrides import OverrideLayers
from agentos.model.source import Source
from agentos.stacks.entry import EntryState

ONLY = "the only entry"


@attrs.frozen(eq=False)
class Offer:
    """A descriptor with its place in the order: what `decide` ranks.

    `base_priority` is what the manifest entry says. `owner` is whatever the facts need to know an offer by.
    """

    descriptor: Descriptor[Any]
    source: Source
    sequence: int
    base_priority: int | None = None
    owner: Any = attrs.field(default=None, repr=False)


def _nothing(offer: Offer) -> None:
    """Say nothing of *offer*."""


def _no_secrets_missing(offer: Offer) -> Sequence[str]:  # noqa: ARG001 - the signature is the contract
    return ()


def _ask_gate(offer: Offer) -> str | None:
    gate = offer.descriptor.gate
    return None if gate is None else gate()


@attrs.frozen
class Facts:
    """All that decides besides the offers themselves, as of one moment."""

    overrides: OverrideLayers = attrs.field(factory=OverrideLayers)
    missing_secrets: Callable[[Offer], Sequence[str]] = _no_secrets_missing
    pack_disabled: Callable[[Offer], str | None] = _nothing
    held_back: Callable[[Offer], str | None] = _nothing
    shut: Callable[[Offer], str | None] = _ask_gate
    failure: Callable[[Offer], str | None] = _nothing
    secret_hint: Callable[[str], str] = repr


@attrs.frozen(eq=False)
class Verdict:
    """What an offer is on its stack, and why."""

    offer: Offer
    priority: int
    state: EntryState
    reason: str
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)


def decide(offers: Iterable[Offer], facts: Facts) -> list[Verdict]:
    """Rank *offers* strongest first and say of each what it is and why.

    Those in force, the active one and what it wraps, stand one after another: a chain.
    """
    judged = sorted((_judge(offer, facts) for offer in offers), key=_rank, reverse=True)
    if len(judged) == 1:
        return judged
    eligible = [verdict for verdict in judged if verdict.state is EntryState.ACTIVE]
    final: dict[int, Verdict] = {}
    above: Verdict | None = None
    for verdict in eligible:
        if above is None:
            above = final[id(verdict)] = _changed(verdict, EntryState.ACTIVE, _why_active(verdict, eligible, judged))
        elif above.offer.descriptor.wraps:
            reason = f"wrapped by {above.offer.source}, which calls it"
            above = final[id(verdict)] = _changed(verdict, EntryState.WRAPPED, reason)
        else:
            final[id(verdict)] = _changed(verdict, EntryState.SHADOWED, _why_shadowed(verdict, above))
    return [final.get(id(verdict), verdict) for verdict in judged]


def _changed(verdict: Verdict, state: EntryState, reason: str) -> Verdict:
    return Verdict(verdict.offer, verdict.priority, state, reason, verdict.options)


def _rank(verdict: Verdict) -> tuple[int, int]:
    """Return the one total order: higher priority first; at equal priority, the later registration first."""
    return (verdict.priority, verdict.offer.sequence)


def _judge(offer: Offer, facts: Facts) -> Verdict:
    """Say what keeps *offer* from being in force; one that nothing keeps back is active until outranked."""
    descriptor = offer.descriptor
    said = facts.overrides.resolve(descriptor.kind, descriptor.id, offer.source.pack)
    state, reason = EntryState.ACTIVE, ONLY
    if (off := facts.pack_disabled(offer)) is not None:
        state, reason = EntryState.DISABLED, off
    elif said.enabled is False:
        state, reason = EntryState.DISABLED, f"disabled by {said.enabled_by}"
    elif said.enabled is None and not descriptor.enabled_by_default:
        state, reason = (
            EntryState.DISABLED,
            "disabled by default; an override with enabled = true turns it on",
        )
    elif not kind_of(descriptor.kind).is_bound(descriptor.payload):
        state, reason = EntryState.UNBOUND, "declared, but no handler is bound to it yet"
    elif (waits := facts.held_back(offer)) is not None:
        state, reason = EntryState.GATED, waits
    elif missing := facts.missing_secrets(offer):
        state, reason = EntryState.GATED, _why_gated(missing, facts)
    elif descriptor.gate is not None and (shut := facts.shut(offer)) is not None:
        state, reason = EntryState.GATED, shut
    elif (failure := facts.failure(offer)) is not None:
        state, reason = EntryState.FAILED, failure
    return Verdict(offer, _priority(offer, said.priority), state, reason, said.options)


def _priority(offer: Offer, override: int | None) -> int:
    for given in (override, offer.descriptor.priority, offer.base_priority):
        if given is not None:
            return given
    return 0


def _why_gated(missing: Sequence[str], facts: Facts) -> str:
    noun = "secret" if len(missing) == 1 else "secrets"
    return f"missing {noun} {', '.join(facts.secret_hint(id) for id in missing)}"


def _why_active(winner: Verdict, eligible: Sequence[Verdict], judged: Sequence[Verdict]) -> str:
    if len(eligible) == 1:
        return f"the only eligible entry of {len(judged)}"
    return f"strongest of {len(eligible)} eligible entries: {_comparison(winner, eligible[1])}"


def _why_shadowed(loser: Verdict, winner: Verdict) -> str:
    return f"shadowed by {winner.offer.source}: {_comparison(winner, loser)}"


def _comparison(winner: Verdict, loser: Verdict) -> str:
    if winner.priority != loser.priority:
        return f"priority {winner.priority} over {loser.priority}"
    return f"registered later at the same priority {winner.priority}"
