"""What is written down of a call: that it begins, before it may change something, and how it ended."""

import asyncio

import attrs

from agentos.access.audit import Audit
from agentos.access.grants import Grants
from agentos.base.foreign import ended, to_the_end
from agentos.calls.invocation import Invocation, Next, Recorder
from agentos.calls.snapshots import snapshot
from agentos.errors import StoreError
from agentos.model.tool_call import ToolResult


async def note(invocation: Invocation, next: Next) -> ToolResult:
    """Note how a call ended that only reads: it is written down soon, with others."""
    access, ready, call_id = invocation.services.access, invocation.ready, invocation.call.id
    kept = snapshot(invocation.arguments)
    error: str | None = "Cancelled"
    # Between its end and its record a call waits for listeners, if there are any.
    recording = access.recording.enter() if invocation.services.events.is_heard else None
    try:
        result = await next(invocation)
        error = None if result.error is None else result.error.type
    finally:
        is_crowded = access.audit.note_read((ready.qualified_id, invocation.principal.key, call_id, error), kept)
        if recording is not None:
            access.recording.leave(recording)
    if is_crowded:
        await access.audit.catch_up()
    return result


async def record(invocation: Invocation, next: Next) -> ToolResult:
    """Write down that a call begins, then how it ended. What can't be written down before it begins does not run."""
    with invocation.services.access.recording.use():
        return await _recorded(invocation, next, invocation.recorder or invocation.services.access.recorder)


async def _recorded(invocation: Invocation, next: Next, recorder: Recorder) -> ToolResult:
    catalog, ready = invocation.services.catalog, invocation.ready
    if not catalog.is_in_force(ready):
        return _gone(invocation)
    begun, cancelled = await ended(recorder.begin(invocation))
    if cancelled is not None:
        if _is_begun(begun):
            await to_the_end(_end(invocation, recorder, _cancelled(invocation)))
        raise cancelled
    try:
        refusal = begun.result()
    except StoreError as error:
        return store_unwritable(invocation, error)
    if refusal is not None:
        return refusal
    try:
        result = await next(invocation) if catalog.is_in_force(ready) else _gone(invocation)
    except asyncio.CancelledError:
        await to_the_end(_end(invocation, recorder, _cancelled(invocation)))
        raise
    await to_the_end(_end(invocation, recorder, result))
    return result


def _is_begun(beginning: asyncio.Task[ToolResult | None]) -> bool:
    """Tell whether a call was written down as begun: its end has to be, too."""
    return not beginning.cancelled() and beginning.exception() is None and beginning.result() is None


async def _end(invocation: Invocation, recorder: Recorder, result: ToolResult) -> None:
    """Write down how a call ended. It has run, so a record that can't be written takes nothing back."""
    invocation.is_recorded = True
    try:
        await recorder.end(invocation, result)
    except StoreError as error:
        invocation.services.logger.warning("a call has run, but how it ended could not be written down: %s", error)


def _gone(invocation: Invocation) -> ToolResult:
    message = f"the tool {invocation.ready.qualified_id} went out of force before the call could run"
    return invocation.failure("UnknownTool", message)


def _cancelled(invocation: Invocation) -> ToolResult:
    return invocation.failure("Cancelled", "the caller was cancelled")


def store_unwritable(invocation: Invocation, error: StoreError) -> ToolResult:
    """Return the result of a call that could not be written down and therefore did not run."""
    invocation.services.logger.warning("a call of %s was refused: %s", invocation.ready.qualified_id, error)
    reason = "the store can't be written"
    invocation.services.note("decision", **invocation.facts(), answer="refuse", step="audit", reason=reason)
    message = "nothing was done, because the audit log can't be written now; the host's log says why"
    return invocation.failure("Refused", message, {"unavailable": True})


@attrs.frozen
class AuditRecorder:
    """Records calls in the audit log: those that may change something before they begin, others soon after."""

    _audit: Audit
    _grants: Grants

    async def begin(self, invocation: Invocation) -> ToolResult | None:
        """Record the decision, and take a grant that counts once."""
        grant, kept = invocation.grant, snapshot(invocation.arguments)
        facts = {**invocation.facts(), **_decision_of(invocation)}
        if grant is not None and grant.decision == "once":
            if await self._grants.take(grant, kept, **facts):
                return None
            invocation.is_grant_used_up = True
            return invocation.failure("Refused", f"{grant} was used up")
        if invocation.ready.tool.effect != "read":
            await self._audit.record("decision", kept, **facts)
        return None

    async def end(self, invocation: Invocation, result: ToolResult) -> None:
        """Record how the call ended."""
        step = _decision_of(invocation)["step"]
        error = result.error.type if result.error else None
        facts = {**invocation.facts(), "answer": "run", "step": step, "success": result.success, "error": error}
        if invocation.ready.tool.effect != "read":
            await self._audit.record("call", snapshot(invocation.arguments), **facts)
        else:
            self._audit.note("call", snapshot(invocation.arguments), **facts)


def _decision_of(invocation: Invocation) -> dict[str, str]:
    return {} if invocation.decision is None else attrs.asdict(invocation.decision)
