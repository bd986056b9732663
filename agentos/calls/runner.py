"""Running a call that was decided on: within its budget, once for its key, and never without a record."""

import asyncio
import copy
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from agentos.access.audit import ID_LIMIT, Audit
from agentos.access.budgets import Budgets, Refusal
from agentos.access.grants import is_text, writable
from agentos.access.idempotency import KEY_LIMIT, Conflict, Idempotency, Key
from agentos.base.foreign import ended, to_the_end
from agentos.calls.executor import ToolExecutor
from agentos.errors import StoreError
from agentos.model.tool_call import ToolResult
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.in_use import Users
from agentos.tools.ready import Prepared
from agentos.tools.tool_context import ToolContext

Begin = Callable[[], Coroutine[Any, Any, ToolResult | None]]
End = Callable[[ToolResult], Coroutine[Any, Any, None]]

_SCALARS = frozenset({str, int, float, bool, type(None)})


def snapshot(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of arguments that a tool can't change: they are hashed after it ran."""
    for value in arguments.values():
        if type(value) not in _SCALARS:
            return copy.deepcopy(dict(arguments))
    return dict(arguments)


def outcome_of(result: ToolResult) -> dict[str, Any]:
    """Return what the audit log says of a result."""
    return {"success": result.success, "error": result.error.type if result.error else None}


def facts_of(prepared: Prepared, context: ToolContext) -> dict[str, Any]:
    """Return who called what, for the audit log."""
    call_id = context.tool_call.id
    facts = {"tool": prepared.qualified_id, "principal": context.principal.key}
    return facts if call_id is None else {**facts, "call_id": str(call_id)[:ID_LIMIT]}


def _is_begun(beginning: asyncio.Task[ToolResult | None]) -> bool:
    """Tell whether a call was written down as begun: its end has to be, too."""
    return not beginning.cancelled() and beginning.exception() is None and beginning.result() is None


class Progress:
    """How far a call got: whether its tool ran, by which id the executor knows it, and whether its end is recorded."""

    __slots__ = ("is_recorded", "ran", "runs_as")

    def __init__(self) -> None:
        self.ran = False
        self.runs_as: str | None = None
        self.is_recorded = False


class Runner:
    """The steps between a decision and a result: budget, idempotency, record, run, record."""

    def __init__(
        self, executor: ToolExecutor, budgets: Budgets, idempotency: Idempotency, audit: Audit, masker: Masker
    ) -> None:
        self.executor = executor
        self.budgets = budgets
        self.idempotency = idempotency
        self.audit = audit
        self.recording = Users()
        """The calls whose end is not on record yet."""
        self._masker = masker
        self._logger = MaskingLogger("agentos.access", masker)

    def over_budget(self, prepared: Prepared, context: ToolContext, refusal: Refusal) -> ToolResult:
        """Return the result of a call that has no slot."""
        facts = facts_of(prepared, context)
        self.audit.note("decision", **facts, answer="refuse", step="budget", reason=refusal.reason)
        details = {} if refusal.retry_after is None else {"retry_after": round(refusal.retry_after, 3)}
        return self.executor.funnel.failure("BudgetExceeded", refusal.reason, prepared.meta, details)

    async def run(
        self,
        prepared: Prepared,
        arguments: dict[str, Any],
        context: ToolContext,
        begin: Begin,
        end: End,
        progress: Progress,
    ) -> ToolResult:
        """Run a call. *begin* writes down that it starts, or says why it must not; *end* writes down how it ended."""
        who, tool = context.principal.key, prepared.qualified_id
        cost, at = prepared.tool.cost, self.budgets.now()
        refusal = self.budgets.reserve(who, tool, cost, at)
        if refusal is not None:
            return self.over_budget(prepared, context, refusal)
        try:
            return await self._run_once(prepared, arguments, context, begin, end, progress)
        finally:
            if progress.ran:
                self.budgets.release(who, tool)
            else:
                self.budgets.refund(who, tool, cost, at)

    def key_of(self, prepared: Prepared, context: ToolContext) -> Key | None:
        """Return what a repeat of the call is known by, if it said so."""
        key = context.tool_call.idempotency_key
        if key is None:
            return None
        return Key(context.principal.key, prepared.qualified_id, writable(key, self._masker))

    def fault_of_key(self, prepared: Prepared, context: ToolContext) -> ToolResult | None:
        """Return the result of a call whose idempotency key is none."""
        key = context.tool_call.idempotency_key
        if key is None or (isinstance(key, str) and 0 < len(key) <= KEY_LIMIT and is_text(key)):
            return None
        message = f"idempotency_key: expected text of 1 to {KEY_LIMIT} characters"
        return self.executor.funnel.failure("InvalidArguments", message, prepared.meta)

    async def _run_once(
        self,
        prepared: Prepared,
        arguments: dict[str, Any],
        context: ToolContext,
        begin: Begin,
        end: End,
        progress: Progress,
    ) -> ToolResult:
        """Run a call, once for its key."""
        key = self.key_of(prepared, context)
        if key is None:
            with self.recording.use():
                return await self._run_recorded(prepared, arguments, context, begin, end, progress)
        may_repeat = prepared.tool.idempotent or prepared.tool.effect == "read"
        try:
            earlier = await self.idempotency.begin(key, arguments, may_repeat=may_repeat, proposal=context.approved)
        except StoreError as error:
            return self._unwritable(prepared, context, error)
        if isinstance(earlier, Conflict):
            return self.executor.funnel.failure("Refused", earlier.reason, prepared.meta)
        if earlier is not None:
            progress.is_recorded = True
            self.audit.note("call", snapshot(arguments), **facts_of(prepared, context), replayed=True)
            return earlier
        result: ToolResult | None = None
        with self.recording.use():
            try:
                result = await self._run_recorded(prepared, arguments, context, begin, end, progress)
            finally:
                ended = self._cancelled(prepared) if result is None else result
                await to_the_end(self._settle_key(key, ended if progress.ran else None))
        return result

    async def _settle_key(self, key: Key, ended: ToolResult | None) -> None:
        """Keep the result of a call that ran; forget the claim of one that did not."""
        try:
            if ended is not None:
                await self.idempotency.finish(key, ended)
            else:
                await self.idempotency.give_up(key)
        except StoreError as error:
            self._logger.warning("the result of an idempotency key of %s could not be kept: %s", key.tool, error)

    async def _run_recorded(
        self,
        prepared: Prepared,
        arguments: dict[str, Any],
        context: ToolContext,
        begin: Begin,
        end: End,
        progress: Progress,
    ) -> ToolResult:
        if not self.executor.is_in_force(prepared):
            return self._gone(prepared)
        begun, cancelled = await ended(begin())
        if cancelled is not None:
            if _is_begun(begun):
                await to_the_end(self._ended(end, self._cancelled(prepared), progress))
            raise cancelled
        try:
            refusal = begun.result()
            if refusal is not None:
                return refusal
            if self.executor.is_in_force(prepared):
                progress.ran, progress.runs_as = True, context.tool_call.id
                result = await self.executor.run(prepared, arguments, context)
            else:
                result = self._gone(prepared)
        except StoreError as error:
            return self._unwritable(prepared, context, error)
        except asyncio.CancelledError:
            await to_the_end(self._ended(end, self._cancelled(prepared), progress))
            raise
        await to_the_end(self._ended(end, result, progress))
        return result

    def _gone(self, prepared: Prepared) -> ToolResult:
        message = f"the tool {prepared.qualified_id} went out of force before the call could run"
        return self.executor.funnel.failure("UnknownTool", message, prepared.meta)

    async def _ended(self, end: End, result: ToolResult, progress: Progress) -> None:
        """Write down how a call ended. It has run, so a record that can't be written takes nothing back."""
        progress.is_recorded = True
        try:
            await end(result)
        except StoreError as error:
            self._logger.warning("a call has run, but how it ended could not be written down: %s", error)

    def _cancelled(self, prepared: Prepared) -> ToolResult:
        return self.executor.funnel.failure("Cancelled", "the caller was cancelled", prepared.meta)

    def _unwritable(self, prepared: Prepared, context: ToolContext, error: StoreError) -> ToolResult:
        self._logger.warning("a call of %s was refused: %s", prepared.qualified_id, error)
        facts = facts_of(prepared, context)
        self.audit.note("decision", **facts, answer="refuse", step="audit", reason="the store can't be written")
        message = "nothing was done, because the audit log can't be written now; the host's log says why"
        return self.executor.funnel.failure("Refused", message, prepared.meta)
