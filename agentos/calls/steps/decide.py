"""Whether the call runs, is asked about, or is refused."""

import asyncio
from collections.abc import Awaitable
from time import monotonic
from typing import Any

import attrs

from agentos.access.gate import Decision, Question
from agentos.access.gate import decide as decide_on
from agentos.access.grants import Grant, session_id
from agentos.base.foreign import Border, settled
from agentos.calls.invocation import Invocation, Next
from agentos.calls.snapshots import snapshot
from agentos.calls.steps.once import key_of
from agentos.calls.steps.reserve_budget import over_budget
from agentos.errors import StoreError
from agentos.model.tool_call import ToolResult
from agentos.rules.intervention import InterventionRule, policy_of
from agentos.tools.tool import INTERVENTIONS

_INTERVENTION_LIMIT = 30.0
"""For how many seconds a tool's own function may think about whether to ask."""


def see_new_denials(invocation: Invocation, next: Next) -> Awaitable[ToolResult]:
    """See now and then what other hosts on the same store have forbidden: for calls that nobody decides on."""
    return next(invocation) if monotonic() <= invocation.services.access.grants.fresh_until else _seen(invocation, next)


async def _seen(invocation: Invocation, next: Next) -> ToolResult:
    ready, grants = invocation.ready, invocation.services.access.grants
    try:
        await grants.look()
    except asyncio.CancelledError:
        note_cancelled(invocation)
        raise
    is_as_before = ready.plain_version == grants.version and invocation.services.catalog.is_in_force(ready)
    return await (next if is_as_before else invocation.services.start_validated)(invocation)


async def decide(invocation: Invocation, next: Next) -> ToolResult:
    """Have the gate decide, unless a person did."""
    if invocation.decision is not None:
        return await next(invocation)
    try:
        while True:
            result = await _decided(invocation, next)
            if not invocation.is_grant_used_up:
                return result
            invocation.is_grant_used_up = False  # another call was first: decide without that grant
    except asyncio.CancelledError:
        if not invocation.itself_or_approved.is_recorded:
            note_cancelled(invocation)
        raise


async def _decided(invocation: Invocation, next: Next) -> ToolResult:
    try:
        if invocation.services.access.is_shared:
            await invocation.services.access.grants.refresh()
        earlier = await _earlier(invocation)
    except StoreError as error:
        invocation.services.logger.warning("a call of %s was refused: %s", invocation.ready.qualified_id, error)
        message = "nothing was done, because the store can't be read now; the host's log says why"
        return invocation.failure("Refused", message, {"unavailable": True})
    policy, why = await _policy(invocation)
    decision, invocation.grant = _decision(invocation, policy, why)
    invocation.decision = decision
    if decision.answer == "refuse":
        invocation.services.note(
            "decision", snapshot(invocation.arguments), **invocation.facts(), **attrs.asdict(decision)
        )
        return invocation.failure("Refused", decision.reason, {"step": decision.step})
    if decision.answer == "ask":
        return await _asked(invocation) if earlier is None else earlier
    return await next(invocation)


async def why_not_run(invocation: Invocation) -> str | None:
    """Say why the gate would not let a call run as it is now, without asking or refusing; None if it would."""
    decision, grant = _decision(invocation, *await _policy(invocation))
    if decision.answer == "run" and (grant is None or grant.decision != "once"):
        return None
    return decision.reason


async def _earlier(invocation: Invocation) -> ToolResult | None:
    """Return the result of an earlier call with the same idempotency key: nobody is asked about a repeat."""
    key = key_of(invocation)
    return None if key is None else await invocation.services.access.idempotency.find(key, invocation.arguments)


async def _asked(invocation: Invocation) -> ToolResult:
    access, ready = invocation.services.access, invocation.ready
    budgets = access.asking_budgets.of(ready.tool.effect)
    refusal = budgets.reserve(invocation.account, ready.qualified_id, ready.tool.cost)
    return await access.proposer.propose(invocation) if refusal is None else over_budget(invocation, refusal)


def _decision(invocation: Invocation, policy: Any, why: str) -> tuple[Decision, Grant | None]:
    access, ready, principal = invocation.services.access, invocation.ready, invocation.principal
    session = session_id(invocation.session, invocation.services.masker)
    grant = access.grants.allowing(ready, principal.key, session, invocation.arguments)
    question = Question(
        tool=ready.qualified_id,
        effect=ready.tool.effect,
        missing_access=principal.missing(ready.tool),
        denial=access.denials.of_call(ready, principal.key, session, invocation.arguments),
        policy=policy,
        policy_reason=why,
        grant=None if grant is None else str(grant),
        mode=access.policy.mode,
    )
    decision, approval = decide_on(question), invocation.approval
    was_shown = approval is not None and approval.is_shown(ready)
    if approval is not None and was_shown and decision.answer != "run" and decision.step not in ("access", "denials"):
        reason = f"{ready.qualified_id} runs beneath the tool that proposal {approval.proposal} approved"
        return Decision("run", "approved", reason), None
    return decision, grant if decision.step == "grants" else None


async def _policy(invocation: Invocation) -> tuple[Any, str]:
    """Resolve the tool's intervention for these arguments. A function that fails counts as `always`."""
    tool = invocation.ready.tool
    intervention = tool.intervention
    if intervention is None or isinstance(intervention, str):
        return intervention, "its author says so" if intervention else ""
    if isinstance(intervention, tuple) and all(isinstance(rule, InterventionRule) for rule in intervention):
        return policy_of(intervention, invocation.arguments)
    with Border() as border:  # a pack's own function
        async with asyncio.timeout(tool.timeout or _INTERVENTION_LIMIT):
            answer = await settled(intervention(snapshot(invocation.arguments), invocation.context))
        answer = answer if answer is None else str.__str__(answer)
    if border.error is not None:
        name = invocation.ready.qualified_id
        invocation.services.logger.error("the intervention of %s raised", name, exc_info=border.error)
        return "always", "its own check failed"
    if answer is None:
        return None, ""  # no opinion on this call: as if the tool had none at all
    if answer in INTERVENTIONS:
        return answer, "its own check says so"
    return "always", "its own check gave no known answer"


def note_cancelled(invocation: Invocation) -> None:
    """Record a call that was cancelled before a later step could record it."""
    invocation.services.note("call", snapshot(invocation.arguments), **invocation.facts(), error="Cancelled")
