"""What guardrails say of a call before it is decided on, and of its result before anybody has it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import attrs

from agentos.calls.invocation import Invocation, Next
from agentos.calls.steps.check_output import fitting_result
from agentos.calls.steps.decide import note_cancelled
from agentos.guards.guard_context import GuardContext, GuardSubject, UnusableReplacementError
from agentos.guards.guardrails import GuardFindings
from agentos.model.guarding import GuardAction, GuardedCall, GuardRow, copied_json
from agentos.model.tool_call import ToolError, ToolResult
from agentos.schema.validation import BadArguments


class _CallSubject(GuardSubject):
    """A call: what a replacement has to be is new arguments, which are validated again."""

    __slots__ = ("_invocation", "_last")

    def __init__(self, invocation: Invocation, value: Any, stage: Any = "tool_call") -> None:
        super().__init__(stage, value, invocation.principal, invocation.session)
        self._invocation = invocation
        self._last: GuardedCall | None = None
        self.depth = invocation.depth

    @property
    def tool(self) -> str | None:
        return self._invocation.ready.qualified_id

    @property
    def call_id(self) -> str | None:
        return self._invocation.call.id

    def guarded_call(self) -> GuardedCall:
        return self._guarded(self.value)

    def _guarded(self, arguments: Mapping[str, Any]) -> GuardedCall:
        ready = self._invocation.ready
        return GuardedCall(ready.qualified_id, ready.tool.name, arguments, ready.tool.effect)

    def shown(self, context: GuardContext) -> Any:
        """Return the call; those that are asked one after another may share what none of them has touched."""
        if context.is_open:
            return context.call
        last = self._last
        if last is None or not last.is_untouched(self.value):
            last = self._last = self._guarded(self.value)
        context.show(last)
        return last

    def taken(self, replacement: Any) -> Any:
        if not isinstance(replacement, Mapping):
            raise UnusableReplacementError(f"expected arguments as a mapping, got {type(replacement).__name__}")
        try:
            return self._invocation.ready.checker.arguments(dict(replacement))
        except BadArguments as error:
            raise UnusableReplacementError("the arguments do not fit the tool's schema") from error


class _ResultSubject(_CallSubject):
    """A result: a ToolResult takes its place, or a text that leaves nothing of what it was."""

    __slots__ = ()

    def guarded_call(self) -> GuardedCall:
        return self._guarded(self._invocation.arguments)

    def shown(self, context: GuardContext) -> Any:  # noqa: ARG002 - as the base has it
        result: ToolResult = self.value
        if result.output.__class__ in _MUTABLE or result.state.__class__ in _MUTABLE:
            return attrs.evolve(result, output=copied_json(result.output), state=copied_json(result.state))
        return result

    def taken(self, replacement: Any) -> Any:
        if isinstance(replacement, ToolResult):
            return fitting_result(self._invocation, replacement)
        if not isinstance(replacement, str):
            raise UnusableReplacementError(f"expected a ToolResult or a text, got {type(replacement).__name__}")
        return fitting_result(self._invocation, _with_text(self.value, replacement))


_MUTABLE = (dict, list)


def _with_text(result: ToolResult, text: str) -> ToolResult:
    """Return a result that says *text* and has nothing of the old one but whether it was a success."""
    text = text if text.strip() else "(a guardrail removed the result)"
    error = None if result.error is None else ToolError(result.error.type, text)
    return ToolResult(success=result.success, content=text, error=error, stop=result.stop)


# -- before it is decided on -------------------------------------------------------------------------------------------


async def guard_call(invocation: Invocation, next: Next) -> ToolResult:
    """Ask the guardrails about the call; whoever decides about it is asked about what they made of it."""
    if not invocation.is_guarded:
        try:
            refusal = await ask_about_call(invocation)
        except asyncio.CancelledError:
            note_cancelled(invocation)
            raise
        if refusal is not None:
            return refusal
    return await next(invocation)


async def ask_about_call(invocation: Invocation) -> ToolResult | None:
    """Ask the guardrails about a call: return why it must not run, if that is so, else it has what they made of it."""
    services = invocation.services
    guards = services.plans.of(invocation.ready).call_guards
    subject = _CallSubject(invocation, invocation.arguments)
    found = await services.plans.guardrails.judge(guards, subject)
    if not found.rows:
        invocation.is_guarded = True
        return None
    await services.plans.guardrails.tell(found.rows, subject)
    if (row := found.blocking) is not None:
        services.note_refusal(invocation.ready.qualified_id, invocation.principal, "guardrail", _code(row))
        return invocation.failure("GuardrailBlocked", f"nothing was done: {_why(row)}", _details(row, "tool_call"))
    if found.value != invocation.arguments:
        if invocation.recorder is not None:
            return _not_as_approved(invocation, found)
        invocation.arguments = found.value
    invocation.flags, invocation.is_guarded = found.flags("tool_call"), True
    return None


def _not_as_approved(invocation: Invocation, found: GuardFindings) -> ToolResult:
    """Return the result of an approved call that a guardrail would change now: that is not what was approved."""
    row = next(row for row in found.rows if row.verdict.action is GuardAction.SANITIZE)
    reason = f"the guardrail {row.id!r} would change the arguments that were approved; make the call again"
    services, tool = invocation.services, invocation.ready.qualified_id
    services.note_refusal(tool, invocation.principal, "proposal", reason)
    return invocation.failure("ProposalInvalid", reason)


def _why(row: GuardRow) -> str:
    return row.verdict.reason or f"the guardrail {row.id!r} blocks it"


def _code(row: GuardRow) -> str:
    return f"{row.id}: {row.verdict.code or 'blocked'}"


def _details(row: GuardRow, stage: str) -> dict[str, Any]:
    return {"guard": row.id, "code": row.verdict.code, "reason": row.verdict.reason, "stage": stage}


# -- before anybody has it ---------------------------------------------------------------------------------------------


async def guard_result(invocation: Invocation, next: Next) -> ToolResult:
    """Ask the guardrails about the result of a call that ran; what its tool told meanwhile has waited for them."""
    result = invocation.result
    if result is not None and (invocation.has_run or invocation.is_answered):
        invocation.result = await ask_about_result(invocation, result)
        await _tell_held_content(invocation, is_as_told=invocation.result is result)
    return await next(invocation)


async def ask_about_result(invocation: Invocation, result: ToolResult) -> ToolResult:
    """Return what the guardrails make of a result: itself, a replacement, or an error that has nothing of it."""
    guardrails = invocation.services.plans.guardrails
    guards, subject = (
        invocation.services.plans.of(invocation.ready).result_guards,
        _ResultSubject(invocation, result, "tool_result"),
    )
    found = await guardrails.judge(guards, subject)
    if not found.rows:
        return result
    await guardrails.tell(found.rows, subject)
    if (row := found.blocking) is None:
        made: ToolResult = found.value
        return made
    did = "the tool did run" if invocation.has_run else "the call was answered"
    message = f"{did}, but its result was blocked: {_why(row)}"
    return invocation.failure("GuardrailBlocked", message, _details(row, "tool_result"))


async def _tell_held_content(invocation: Invocation, *, is_as_told: bool) -> None:
    """Tell listeners the parts of a result that waited; none of one that was blocked or replaced."""
    held, invocation.held_content = invocation.held_content, []
    events = invocation.services.events
    for event in held if is_as_told else ():
        events.post(event)
    if held:
        await events.deliver()
