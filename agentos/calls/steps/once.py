"""Whether the call ran before: one with an idempotency key runs once, and a repeat gets the first result."""

from collections.abc import Awaitable

from agentos.access.grants import writable
from agentos.access.idempotency import Conflict, Key
from agentos.base.foreign import to_the_end
from agentos.calls.invocation import Invocation, Next
from agentos.calls.snapshots import snapshot
from agentos.calls.steps.record import store_unwritable
from agentos.errors import StoreError
from agentos.model.tool_call import ToolResult


def once(invocation: Invocation, next: Next) -> Awaitable[ToolResult]:
    """Run a call once for its idempotency key, if it has one."""
    key = key_of(invocation)
    return next(invocation) if key is None else _once(invocation, next, key)


async def _once(invocation: Invocation, next: Next, key: Key) -> ToolResult:
    access, tool, approval = invocation.services.access, invocation.ready.tool, invocation.approval
    may_repeat = tool.idempotent or tool.effect == "read"
    proposal = None if approval is None else approval.proposal
    try:
        earlier = await access.idempotency.begin(
            key, invocation.arguments, may_repeat=may_repeat, proposal=proposal, only_if=invocation.only_if
        )
    except StoreError as error:
        return store_unwritable(invocation, error)
    if isinstance(earlier, Conflict):
        said = {"unknown": earlier.is_unknown, "lost": earlier.is_lost}
        return invocation.failure("Refused", earlier.reason, {name: True for name, is_so in said.items() if is_so})
    if earlier is not None:
        invocation.is_recorded = True
        access.audit.note("call", snapshot(invocation.arguments), **invocation.facts(), replayed=True)
        return earlier
    result: ToolResult | None = None
    with access.recording.use():
        try:
            result = await next(invocation)
        finally:
            ended = invocation.failure("Cancelled", "the caller was cancelled") if result is None else result
            await to_the_end(_keep(invocation, key, ended if invocation.has_run else None))
    return result


def key_of(invocation: Invocation) -> Key | None:
    """Return what a repeat of the call is known by, if it said so."""
    key = invocation.call.idempotency_key
    if key is None:
        return None
    return Key(invocation.principal.key, invocation.ready.qualified_id, writable(key, invocation.services.masker))


async def _keep(invocation: Invocation, key: Key, ended: ToolResult | None) -> None:
    """Keep the result of a call that ran; forget the claim of one that did not."""
    idempotency = invocation.services.access.idempotency
    try:
        await (idempotency.give_up(key) if ended is None else idempotency.finish(key, ended))
    except StoreError as error:
        logger = invocation.services.logger
        logger.warning("the result of an idempotency key of %s could not be kept: %s", key.tool, error)
