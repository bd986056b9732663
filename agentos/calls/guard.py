"""The guard: what stands between a call whose arguments are good and the tool that runs.

For a tool that nobody needs to be asked about, the answer is worked out once and kept; its calls pay for a look at the
budget and a line in the audit log.
"""

import asyncio
from collections.abc import Coroutine, Hashable, Mapping
from time import monotonic
from typing import Any

import attrs

from agentos.access.audit import ID_LIMIT
from agentos.access.denials import Denials
from agentos.access.gate import Decision, Question, decide
from agentos.access.grants import Grant, Grants, session_id
from agentos.access.policy import Policy
from agentos.base.foreign import FOREIGN, let_cancellation_pass, settled
from agentos.calls.approvals import Approvals
from agentos.calls.runner import Progress, Runner, facts_of, outcome_of, snapshot
from agentos.errors import StoreError
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.rules.intervention import InterventionRule, policy_of
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.tools.ready import Prepared
from agentos.tools.tool import INTERVENTIONS, Tool
from agentos.tools.tool_context import ToolContext

_INTERVENTION_LIMIT = 30.0
"""For how many seconds a tool's own function may think about whether to ask."""


@attrs.frozen(eq=False)
class _Course:
    """What is known of every call of one tool, as long as no grant changes."""

    version: int
    is_plain: bool
    """Nothing about the call can make the answer other than to run it."""


class Guard:
    """Decides on calls and has them run, asked about, or refused. Every decision is recorded."""

    def __init__(
        self,
        runner: Runner,
        approvals: Approvals,
        denials: Denials,
        *,
        grants: Grants,
        policy: Policy,
        masker: Masker,
        is_shared: bool,
    ) -> None:
        self._runner = runner
        self._executor = runner.executor
        self._budgets = runner.budgets
        self._asks = runner.budgets.asking()
        """Asking has accounts of its own: who approves a call later must not lack the slot that its asking took."""
        self._audit = runner.audit
        self._approvals = approvals
        self._denials = denials
        self._grants = grants
        self._policy = policy
        self._masker = masker
        self._logger = MaskingLogger("agentos.access", masker)
        self._is_shared = is_shared
        self._slow: dict[str, list[tuple[asyncio.Task[ToolResult], Progress]]] = {}
        """The calls that are thought about, asked about or written down, by their ids: they can be cancelled."""

    def attach(self, door: Any) -> None:
        """Say where the calls go that approved tools make themselves."""
        self._approvals.door = door

    def denies(self, tool: Tool, qualified_id: str, principal: Principal | None = None) -> str | None:
        """Say what denies every call of a tool to *principal*, or to everybody: it need not be offered then."""
        return self._denials.bar(tool, qualified_id, None if principal is None else principal.key)

    def barring(self, principal: Principal) -> Hashable:
        """Return what besides its rules decides what *principal* is offered: a list is good as long as this is."""
        return self._grants.barring(principal.key)

    def denial(self, prepared: Prepared, principal: Principal, arguments: Mapping[str, Any]) -> str | None:
        """Say what denies a call, outside of any session."""
        return self._denials.of_call(prepared, principal.key, None, arguments)

    def note_preview(self, prepared: Prepared, principal: Principal, arguments: Mapping[str, Any]) -> None:
        """Record that somebody had a look at what a call would do."""
        self._audit.note("preview", snapshot(arguments), tool=prepared.qualified_id, principal=principal.key)

    def note_refusal(self, tool: str, principal: Principal, step: str, reason: str) -> None:
        """Record a call that did not get as far as the gate."""
        named = str(tool)[:ID_LIMIT]
        self._audit.note("decision", tool=named, principal=principal.key, answer="refuse", step=step, reason=reason)

    # -- calls -------------------------------------------------------------------------------------------------

    async def run(
        self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext, *, has_looked: bool = False
    ) -> ToolResult:
        """Run the call, ask about it, or refuse it."""
        course = prepared.course
        if course is None or course.version != self._grants.version:
            course = self._set_course(prepared)
        if not course.is_plain or context.tool_call.idempotency_key is not None:
            return await self._run_slowly(prepared, arguments, context)
        if self._is_shared and not has_looked and monotonic() > self._grants.fresh_until:
            return await self._look_and_run(prepared, arguments, context)
        who, tool, budgets = context.principal.key, prepared.qualified_id, self._budgets
        refusal = budgets.reserve(who, tool, prepared.tool.cost)
        if refusal is not None:
            return self._runner.over_budget(prepared, context, refusal)
        kept = snapshot(arguments)
        error: str | None = "Cancelled"
        # Between its end and its record a call waits for listeners, if there are any.
        recording = self._runner.recording.enter() if self._executor.is_heard else None
        try:
            result = await self._executor.run(prepared, arguments, context)
            error = None if result.error is None else result.error.type
        finally:
            if budgets.counts_running:
                budgets.release(who, tool)
            is_crowded = self._audit.note_read((tool, who, context.tool_call.id, error), kept)
            if recording is not None:
                self._runner.recording.leave(recording)
        if is_crowded:
            await self._audit.catch_up()
        return result

    async def _look_and_run(self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Look first what other hosts on the same store have forbidden meanwhile."""
        try:
            await self._grants.look()
        except asyncio.CancelledError:
            self._note_cancelled(prepared, arguments, context)
            raise
        if not self._executor.is_in_force(prepared):
            return await self._run_slowly(prepared, arguments, context)
        return await self.run(prepared, arguments, context, has_looked=True)

    def _note_cancelled(self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext) -> None:
        self._audit.note("call", snapshot(arguments), **facts_of(prepared, context), error="Cancelled")

    def _set_course(self, prepared: Prepared) -> _Course:
        tool = prepared.tool
        is_plain = (
            tool.effect == "read"
            and tool.intervention in (None, "never")
            and self._denials.of_tool(prepared) is None
            and not self._grants.mentions(prepared)
        )
        course = prepared.course = _Course(self._grants.version, is_plain)
        return course

    async def _run_slowly(self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        fault = self._runner.fault_of_key(prepared, context)
        if fault is not None:
            self.note_refusal(prepared.qualified_id, context.principal, "arguments", "the idempotency key is none")
            return fault
        progress, call_id = Progress(), context.tool_call.id
        try:
            running = self._run_carefully(prepared, arguments, context, progress)
            return await (running if call_id is None else self._run_as(call_id, running, progress))
        except asyncio.CancelledError:
            if not progress.is_recorded:
                self._note_cancelled(prepared, arguments, context)
            me = asyncio.current_task()
            if call_id is None or me is None or me.cancelling():
                raise
            how = "while it ran" if progress.ran else "before it ran"
            return self._executor.funnel.failure("Cancelled", f"the call was cancelled {how}", prepared.meta)

    async def _run_as(self, call_id: str, running: Coroutine[Any, Any, ToolResult], progress: Progress) -> ToolResult:
        """Run a call in a task that `cancel` finds by the call's id."""
        task = asyncio.ensure_future(running)
        place = (task, progress)
        self._slow.setdefault(call_id, []).append(place)
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._slow[call_id].remove(place)
            if not self._slow[call_id]:
                del self._slow[call_id]

    async def _run_carefully(
        self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext, progress: Progress
    ) -> ToolResult:
        try:
            if self._is_shared:
                await self._grants.refresh()
            earlier = await self._earlier(prepared, arguments, context)
        except StoreError as error:
            self._logger.warning("a call of %s was refused: %s", prepared.qualified_id, error)
            message = "nothing was done, because the store can't be read now; the host's log says why"
            return self._executor.funnel.failure("Refused", message, prepared.meta)
        policy, why = await self._policy_of(prepared, arguments, context)
        decision, grant = self._decide(prepared, arguments, context, policy, why)
        if decision.answer == "refuse":
            return self._refused(prepared, arguments, context, decision)
        if decision.answer == "ask":
            if earlier is not None:
                return earlier
            return await self._asked(prepared, arguments, context, decision, progress)
        return await self._run_decided(prepared, arguments, context, decision, grant, progress)

    def _decide(
        self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext, policy: Any, why: str
    ) -> tuple[Decision, Grant | None]:
        who, session = context.principal, session_id(context.session, self._masker)
        grant = self._grants.allowing(prepared, who.key, session, arguments)
        question = Question(
            tool=prepared.qualified_id,
            effect=prepared.tool.effect,
            missing_access=who.missing(prepared.tool),
            denial=self._denials.of_call(prepared, who.key, session, arguments),
            policy=policy,
            policy_reason=why,
            grant=None if grant is None else str(grant),
            mode=self._policy.mode,
        )
        decision = decide(question)
        approval = context._approval  # noqa: SLF001 - given by us alone
        was_shown = approval is not None and (prepared.qualified_id, prepared.definition) in approval.beneath
        if decision.answer != "run" and was_shown and decision.step not in ("access", "denials"):
            reason = f"{prepared.qualified_id} runs beneath the tool that proposal {context.approved} approved"
            return Decision("run", "approved", reason), None
        return decision, grant if decision.step == "grants" else None

    async def _policy_of(self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext) -> tuple[Any, str]:
        """Resolve the tool's intervention for these arguments. A function that fails counts as `always`."""
        said = prepared.tool.intervention
        if said is None or isinstance(said, str):
            return said, "its author says so" if said else ""
        if isinstance(said, tuple) and all(isinstance(rule, InterventionRule) for rule in said):
            return policy_of(said, arguments)
        limit = prepared.tool.timeout or _INTERVENTION_LIMIT
        try:
            async with asyncio.timeout(limit):
                answer = await settled(said(snapshot(arguments), context))
            answer = answer if answer is None else str.__str__(answer)
        except FOREIGN as error:  # a pack's own function
            let_cancellation_pass(error)
            self._logger.exception("the intervention of %s raised", prepared.qualified_id)
            return "always", "its own check failed"
        if answer is None:
            return None, ""  # no opinion on this call: as if the tool had none at all
        if answer in INTERVENTIONS:
            return answer, "its own check says so"
        return "always", "its own check gave no known answer"

    def _refused(
        self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext, decision: Decision
    ) -> ToolResult:
        self._audit.note("decision", snapshot(arguments), **facts_of(prepared, context), **attrs.asdict(decision))
        details = {"step": decision.step}
        return self._executor.funnel.failure("Refused", decision.reason, prepared.meta, details)

    async def _asked(
        self,
        prepared: Prepared,
        arguments: dict[str, Any],
        context: ToolContext,
        decision: Decision,
        progress: Progress,
    ) -> ToolResult:
        """Have a proposal made of the call."""
        refusal = self._asks.reserve(context.principal.key, prepared.qualified_id, prepared.tool.cost)
        if refusal is not None:
            return self._runner.over_budget(prepared, context, refusal)
        return await self._approvals.propose(prepared, arguments, context, decision, progress)

    async def _earlier(self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext) -> ToolResult | None:
        """Return the result of an earlier call with the same idempotency key: nobody is asked about a repeat."""
        key = self._runner.key_of(prepared, context)
        return None if key is None else await self._runner.idempotency.find(key, arguments)

    def cancel(self, call_id: str) -> bool:
        """Cancel the calls of that id that do not run yet, or run as somebody approved them; False if there is none."""
        found = [task for task, progress in self._slow.get(call_id, ()) if progress.runs_as != call_id]
        for task in found:
            task.cancel()
        return bool(found)

    async def _run_decided(
        self,
        prepared: Prepared,
        arguments: dict[str, Any],
        context: ToolContext,
        decision: Decision,
        grant: Grant | None,
        progress: Progress,
    ) -> ToolResult:
        """Run a call that may run; one that may change something is on record before it does."""
        facts, kept = facts_of(prepared, context), snapshot(arguments)
        must_be_written = prepared.tool.effect != "read"
        was_taken = True

        async def begin() -> ToolResult | None:
            nonlocal was_taken
            if grant is not None and grant.decision == "once":
                was_taken = await self._grants.take(grant, kept, **facts, **attrs.asdict(decision))
                used_up = self._executor.funnel.failure("Refused", f"{grant} was used up", prepared.meta)
                return None if was_taken else used_up
            if must_be_written:
                await self._audit.record("decision", kept, **facts, **attrs.asdict(decision))
            return None

        async def end(result: ToolResult) -> None:
            facts_of_end = {**facts, "answer": "run", "step": decision.step, **outcome_of(result)}
            if must_be_written:
                await self._audit.record("call", kept, **facts_of_end)
            else:
                self._audit.note("call", kept, **facts_of_end)

        result = await self._runner.run(prepared, arguments, context, begin, end, progress)
        if was_taken:
            return result
        return await self._run_carefully(prepared, arguments, context, progress)  # another call was first: ask again
