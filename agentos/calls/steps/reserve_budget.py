"""Whether the caller may do so much: a slot is taken before the call runs, and given back if it did not."""

from collections.abc import Awaitable

from agentos.access.budgets import Budgets, Refusal
from agentos.calls.invocation import Invocation, Next, answered
from agentos.model.tool_call import ToolResult


def reserve_budget(invocation: Invocation, next: Next) -> Awaitable[ToolResult]:
    """Take a slot of each budget, or end the call."""
    ready = invocation.ready
    budgets = invocation.services.access.budgets.of(ready.tool.effect)
    keeps_slot = invocation.decision is None and not budgets.counts_running  # nobody had to decide: it does run
    at = None if keeps_slot else budgets.now()
    refusal = budgets.reserve(invocation.account, ready.qualified_id, ready.tool.cost, at)
    if refusal is not None:
        return answered(over_budget(invocation, refusal))
    return next(invocation) if at is None else _given_back(invocation, next, budgets, at)


async def _given_back(invocation: Invocation, next: Next, budgets: Budgets, at: float) -> ToolResult:
    try:
        return await next(invocation)
    finally:
        who, ready = invocation.account, invocation.ready
        if invocation.has_run:
            budgets.release(who, ready.qualified_id)
        else:
            budgets.refund(who, ready.qualified_id, ready.tool.cost, at)


def over_budget(invocation: Invocation, refusal: Refusal) -> ToolResult:
    """Return the result of a call that has no slot."""
    reason = str(refusal)
    invocation.services.note("decision", **invocation.facts(), answer="refuse", step="budget", reason=reason)
    details = {} if refusal.retry_after is None else {"retry_after": round(refusal.retry_after, 3)}
    return invocation.failure("BudgetExceeded", reason, {**details, "setting": refusal.setting})
