"""Which tool is meant, and whether it exists for the caller."""

from collections.abc import Awaitable

from agentos.calls.invocation import Invocation, Next, answered
from agentos.model.tool_call import ToolResult


def find(invocation: Invocation, next: Next) -> Awaitable[ToolResult]:
    """Find the tool of a name, an alias or a `pack:tool`; what a persona leaves out does not exist for the caller."""
    ready = invocation.services.catalog.find(invocation.call.name)
    if ready is None:
        return answered(_refused(invocation, "there is no such tool"))
    if invocation.principal.bounds and not invocation.principal.reaches(ready.tool, ready.qualified_id):
        return answered(_refused(invocation, f"the persona of this turn leaves {ready.qualified_id} out"))
    invocation.ready = ready
    return next(invocation)


async def find_again(invocation: Invocation, next: Next) -> ToolResult:
    """Begin anew with what answers to the name now, if what was found went out of force before it could run."""
    return await found_again(invocation, await next(invocation))


async def found_again(invocation: Invocation, result: ToolResult) -> ToolResult:
    """Return the result of a call; if its tool was gone and another answers to its name now, that one's."""
    if not invocation.is_gone or not invocation.searches_left or invocation.ended_by is not None:
        return result
    if invocation.services.catalog.find(invocation.call.name) in (None, invocation.ready):
        return result
    invocation.searches_left -= 1
    invocation.begin_anew()
    return await invocation.services.start(invocation)


def authorize(invocation: Invocation, next: Next) -> Awaitable[ToolResult]:
    """Let only those on who may call the tool: for others it does not exist."""
    tool, principal = invocation.ready.tool, invocation.principal
    if principal.may_call(tool):
        return next(invocation)
    reason = f"{invocation.ready.qualified_id} requires {', '.join(principal.missing(tool))}"
    return answered(_refused(invocation, reason))


def unknown(invocation: Invocation) -> ToolResult:
    """Return what is said of an unknown name: also to a caller who may not call the tool."""
    services, name, principal = invocation.services, invocation.call.name, invocation.principal
    error = services.catalog.why_not(name, services.known_names(principal), principal)
    return services.results.failure(error.type, error.message, {}, error.details)


def _refused(invocation: Invocation, reason: str) -> ToolResult:
    invocation.services.note_refusal(invocation.call.name, invocation.principal, "access", reason)
    return unknown(invocation)
