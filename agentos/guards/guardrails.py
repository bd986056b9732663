"""Guardrails: asks those in force about a text, a call or a result, and says what their answers come to."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Any

import attrs

from agentos.base.foreign import Border, is_a, let_outside_pass, type_name
from agentos.errors import RequiredGuardrailError
from agentos.extensions.events import EventBus
from agentos.guards.active_guards import ActiveGuard, ActiveGuards, GuardSet
from agentos.guards.guard_context import (
    CallTool,
    GuardContext,
    GuardSubject,
    UnusableReplacementError,
    WaitingGuardContext,
    asked_within,
)
from agentos.guards.guard_events import EVENTS
from agentos.guards.guarded_stream import GuardedStream
from agentos.model.bounded_data import foreign_data_within
from agentos.model.guarding import GuardAction, GuardOutcome, GuardRow, GuardVerdict, Stage
from agentos.model.principal import SYSTEM, Principal
from agentos.payloads.foreign_job import ForeignJob, Threads, took_too_long
from agentos.secrets.masked_stream import MaskedStream
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.registry import Registry

FAILED = "GuardFailed"
MISSING = "RequiredGuardMissing"
_DEPTH = 2
"""How many guardrails may be asked within one another, by the calls they make."""
_ALLOW, _FLAG, _SANITIZE, _BLOCK = GuardAction.ALLOW, GuardAction.FLAG, GuardAction.SANITIZE, GuardAction.BLOCK
_REASON_LIMIT, _CODE_LIMIT = 10_000, 200
"""How many characters are kept of what a guardrail says."""
_NO_SESSION: Mapping[str, Any] = {}


@attrs.define(eq=False)
class GuardFindings:
    """What the guardrails said of one subject. A guardrail that had nothing to say has a row only for a text."""

    value: Any = attrs.field(repr=False)
    rows: list[GuardRow] = attrs.field(factory=list)

    @property
    def action(self) -> GuardAction:
        """Return the strongest answer."""
        return max((row.verdict.action for row in self.rows), key=lambda action: action.severity, default=_ALLOW)

    @property
    def blocking(self) -> GuardRow | None:
        """Return the first guardrail that blocks."""
        return next((row for row in self.rows if row.verdict.action is _BLOCK), None)

    def flags(self, stage: Stage) -> tuple[dict[str, Any], ...]:
        """Return what was found strange, for whoever decides."""
        flagged = [row for row in self.rows if row.verdict.action is _FLAG]
        return tuple(_said(row, stage) for row in flagged)


def _said(row: GuardRow, stage: Stage) -> dict[str, Any]:
    verdict = row.verdict
    return {"guard": row.id, "code": verdict.code, "reason": verdict.reason, "stage": stage}


class Guardrails:
    """Asks the guardrails in force. Whatever one of them does, there is an answer: without one, nothing passes."""

    def __init__(
        self,
        registry: Registry,
        *,
        events: EventBus,
        masker: Masker,
        threads: Threads,
        note: Callable[..., None],
        call_tool: CallTool,
    ) -> None:
        self._active = ActiveGuards(registry, (), call_tool)
        self._events = events
        self._masker = masker
        self._logger = MaskingLogger("agentos.guardrails", masker)
        self._threads = threads
        self._note = note

    # -- for hosts ---------------------------------------------------------------------------------------------

    async def check_input(
        self, text: str, principal: Principal | None = None, session: Mapping[str, Any] | None = None
    ) -> GuardOutcome:
        """Ask about what a user says. Never raises for a guardrail."""
        return await self._check("input", text, principal, session)

    async def check_output(
        self, text: str, principal: Principal | None = None, session: Mapping[str, Any] | None = None
    ) -> GuardOutcome:
        """Ask about what a model says. Never raises for a guardrail."""
        return await self._check("output", text, principal, session)

    def stream(
        self,
        chunks: AsyncIterable[str] | Iterable[str],
        principal: Principal | None = None,
        session: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[str]:
        """Let what a model says out as it comes, but for the last characters; raise GuardrailBlockedError on a BLOCK.

        What leaves was seen by every guardrail on `output`, together with what follows it, as far as they ask for.
        Known secrets are masked in it: a word leaves when it is whole.
        """
        subject = self._subject("output", "", principal, session)
        return self._masked_parts(GuardedStream(self, subject).parts(chunks))

    async def _masked_parts(self, parts: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
        stream = MaskedStream(self._masker)
        async with aclosing(parts):
            async for part in parts:
                if text := stream.feed(part):
                    yield text
        if text := stream.rest():
            yield text

    async def _check(self, stage: Stage, text: str, principal: Any, session: Any) -> GuardOutcome:
        if not isinstance(text, str):
            raise TypeError(f"text: expected a string, got {type(text).__name__}")
        subject = self._subject(stage, text, principal, session)
        found = await self.judge(self.for_text(stage), subject, is_whole=True)
        await self.tell(found.rows, subject)
        is_blocked = found.blocking is not None
        if stage == "output":
            found.value = self._masked(found.value)
        return GuardOutcome(found.action, "" if is_blocked else found.value, tuple(found.rows))

    def _subject(self, stage: Stage, text: str, principal: Any, session: Any) -> GuardSubject:
        if principal is not None and type(principal) is not Principal:
            raise TypeError(f"principal: expected a Principal, got {type(principal).__name__}")
        return GuardSubject(stage, text, principal or SYSTEM, _NO_SESSION if session is None else session)

    # -- who is asked ------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """Return the kind of the stacks that guardrails stand on."""
        return self._active.registry.kind

    def require(self, ids: Iterable[str]) -> None:
        """Refuse every call and text while one of *ids* is not in force."""
        self._active = ActiveGuards(self._active.registry, ids, self._active.call_tool)

    def check_required(self) -> None:
        """Raise RequiredGuardrailError if a required guardrail is not in force."""
        registry = self._active.registry
        if missing := self._active.missing():
            raise RequiredGuardrailError({id: _why_missing(registry, id) for id in missing})

    def for_text(self, stage: Stage) -> GuardSet:
        """Return who is asked about a text."""
        return self._active.for_text(stage)

    def for_tool(self, stage: Stage, tool: Any, qualified_id: str) -> GuardSet:
        """Return who is asked about calls of a tool, or about their results."""
        return self._active.for_tool(stage, tool, qualified_id)

    # -- asking ------------------------------------------------------------------------------------------------

    async def judge(self, guards: GuardSet, subject: GuardSubject, *, is_whole: bool = False) -> GuardFindings:
        """Ask *guards*: those that sanitize one after another, then the others side by side on what became of it.

        With *is_whole* there is a row for each guardrail that was asked.
        """
        above = asked_within.get()
        if above is not None:
            chain = above.chain()
            guards = guards.without(chain)
            if len(chain) > _DEPTH:
                return _refused(subject, chain[-1].id, FAILED, "guardrails call tools too deep")
        if guards.missing:
            return _refused(
                subject, guards.missing[0], MISSING, f"the required guardrail {guards.missing[0]!r} is not in force"
            )
        if guards.is_quick:
            return GuardFindings(subject.value, await self._ask_quickly(guards.others, subject, is_whole=is_whole))
        found, deadline = GuardFindings(subject.value), perf_counter() + guards.timeout
        for guard in guards.sanitizers:
            verdict, seconds = await self._asked(guard, subject, above, deadline)
            if verdict is not None and verdict.action is _SANITIZE:
                found.value = subject.value = verdict.replacement
            _add(found, guard, verdict, seconds, is_whole=is_whole)
            if verdict is not None and verdict.action is _BLOCK:
                return found
        await self._ask_others(guards.others, subject, above, deadline, found, is_whole=is_whole)
        return found

    async def _ask_quickly(
        self, guards: Sequence[ActiveGuard], subject: GuardSubject, *, is_whole: bool
    ) -> list[GuardRow]:
        """Ask those of which none sanitizes or waits: as `_asked_at_once`, written out since every call pays for it."""
        rows: list[GuardRow] = []
        began = perf_counter()
        for guard in guards:
            error = None
            answer: Any = None
            try:
                context = GuardContext(guard, subject)
                answer = await guard.function(subject.shown(context), context)
            except BaseException as raised:  # noqa: BLE001 - a guardrail is foreign code
                let_outside_pass(raised)
                error = raised
            ended = perf_counter()
            seconds, began = ended - began, ended
            if answer is not None or error is not None or is_whole or seconds > guard.timeout:
                verdict = self._verdict(guard, subject, answer, error, seconds)
                if verdict is not None or is_whole:
                    rows.append(GuardRow(guard.id, guard.pack, verdict or GuardVerdict.allow(), seconds))
        return rows

    async def _ask_others(
        self,
        guards: Sequence[ActiveGuard],
        subject: GuardSubject,
        above: GuardContext | None,
        deadline: float,
        found: GuardFindings,
        *,
        is_whole: bool,
    ) -> None:
        """Ask side by side: all that wait for something begin before the first is waited for."""
        jobs = {guard: self._begin(guard, subject, above, deadline) for guard in guards if not guard.never_waits}
        try:
            for guard in guards:
                if not guard.never_waits:
                    verdict, seconds = await self._awaited(guard, subject, *jobs[guard])
                else:
                    verdict, seconds = await self._asked_at_once(guard, subject)
                if verdict is not None or is_whole:
                    _add(found, guard, verdict, seconds, is_whole=is_whole)
        except BaseException:  # the caller was cancelled: nobody waits for an answer
            for _, job, _ in jobs.values():
                job.give_up(asyncio.CancelledError())
            raise

    async def _asked(
        self, guard: ActiveGuard, subject: GuardSubject, above: GuardContext | None, deadline: float
    ) -> tuple[GuardVerdict | None, float]:
        if guard.never_waits:
            return await self._asked_at_once(guard, subject)
        return await self._awaited(guard, subject, *self._begin(guard, subject, above, deadline))

    async def _asked_at_once(self, guard: ActiveGuard, subject: GuardSubject) -> tuple[GuardVerdict | None, float]:
        """Ask one that waits for nothing, here and now: it needs no task, and can't call anything meanwhile."""
        answer, error, began = None, None, perf_counter()
        try:
            context = GuardContext(guard, subject)
            answer = await guard.function(subject.shown(context), context)
        except BaseException as raised:  # noqa: BLE001 - a guardrail is foreign code
            let_outside_pass(raised)
            error = raised
        seconds = perf_counter() - began
        if answer is None and error is None and seconds <= guard.timeout:
            return None, seconds
        return self._verdict(guard, subject, answer, error, seconds), seconds

    def _begin(
        self, guard: ActiveGuard, subject: GuardSubject, above: GuardContext | None, deadline: float
    ) -> tuple[WaitingGuardContext, ForeignJob, float]:
        context, began = WaitingGuardContext(guard, subject, above), perf_counter()
        shown = subject.shown(context)
        job = ForeignJob(
            lambda: guard.function(shown, context),
            is_async=guard.is_async,
            seconds=min(guard.settings.timeout, deadline - began),
            threads=self._threads,
            users=guard.users,
            depth=subject.depth,
        )
        if not guard.is_async:
            context.job = job
        token = asked_within.set(context)  # what begins now has it
        try:
            job.start()
        finally:
            asked_within.reset(token)
        return context, job, began

    async def _awaited(
        self, guard: ActiveGuard, subject: GuardSubject, context: WaitingGuardContext, job: ForeignJob, began: float
    ) -> tuple[GuardVerdict | None, float]:
        try:
            answer, error = await job.outcome()
        finally:
            context.is_open = False
        seconds = job.ended_at - began
        return self._verdict(guard, subject, answer, error, seconds), seconds

    def _verdict(
        self, guard: ActiveGuard, subject: GuardSubject, answer: Any, error: BaseException | None, seconds: float
    ) -> GuardVerdict | None:
        """Return what an answer counts as; None for one that finds nothing."""
        if error is not None:
            if took_too_long(error):
                return self._failed(guard, f"gave no answer within {guard.settings.timeout} s")
            return self._failed(guard, f"raised {type_name(error)}", error)
        if seconds > guard.settings.timeout:
            return self._failed(guard, f"took longer than {guard.settings.timeout} s")
        if answer is None:
            return None
        if type(answer) is not GuardVerdict:
            return self._failed(guard, f"answered with a {type_name(answer)}; expected a GuardVerdict or None")
        if answer.action is _ALLOW:
            return None
        with Border() as border:  # a replacement, and what is said of it, may have parts with code of their own
            verdict: GuardVerdict = self._said(answer)
            if verdict.action is not _SANITIZE:
                return verdict
            if not guard.settings.sanitizes:
                return attrs.evolve(verdict, action=_FLAG, replacement=None)
            return attrs.evolve(verdict, replacement=self._masked(subject.taken(verdict.replacement)))
        what = "gave a replacement that can't be used"
        if is_a(border.raised, UnusableReplacementError):
            return self._failed(guard, f"{what}: {border.raised}")
        return self._failed(guard, f"{what}: it raised {type_name(border.raised)}", border.raised)

    def _said(self, verdict: GuardVerdict) -> GuardVerdict:
        """Return a verdict with known secrets masked in what it says, and then as much of that as is kept."""
        mask = self._masker.mask
        return attrs.evolve(
            verdict,
            reason=mask(verdict.reason)[:_REASON_LIMIT],
            code=verdict.code and mask(verdict.code)[:_CODE_LIMIT],
            details=foreign_data_within(self._masker.mask_data(verdict.details), "details"),
        )

    def _masked(self, replacement: Any) -> Any:
        """Return a replacement with known secrets masked, if it is a text; results are masked where they are made."""
        return self._masker.mask(replacement) if type(replacement) is str else replacement

    def _failed(self, guard: ActiveGuard, what: str, error: BaseException | None = None) -> GuardVerdict:
        """Return what a guardrail that gave no answer counts as."""
        self._logger.warning("guardrail %s:%s %s", guard.pack, guard.id, what, exc_info=error)
        action = _BLOCK if guard.settings.on_failure == "block" else _FLAG
        return GuardVerdict(action, f"the guardrail {guard.id!r} {what}", FAILED)

    # -- telling -----------------------------------------------------------------------------------------------

    async def tell(self, rows: Iterable[GuardRow], subject: GuardSubject) -> None:
        """Record what was found, and tell listeners: which guardrail, its code and the stage, never the text."""
        noteworthy = [row for row in rows if row.verdict.action is not _ALLOW]
        for row in noteworthy:
            self._record(row, subject)
        if noteworthy and self._events.is_heard:
            await self._events.deliver()

    def _record(self, row: GuardRow, subject: GuardSubject) -> None:
        verdict, principal = row.verdict, subject.principal.key
        facts = {} if subject.tool is None else {"tool": subject.tool}
        self._note(
            "guardrail",
            guard=f"{row.pack}:{row.id}" if row.pack else row.id,
            answer=str(verdict.action),
            code=verdict.code,
            stage=subject.stage,
            principal=principal,
            **facts,
        )
        if self._events.is_heard:
            event = EVENTS[verdict.action]
            self._events.post(
                event(
                    guard=row.id,
                    pack=row.pack,
                    stage=subject.stage,
                    code=verdict.code,
                    reason=self._masker.mask(verdict.reason),
                    principal=principal,
                    tool=subject.tool,
                    call_id=subject.call_id,
                )
            )


def _add(
    found: GuardFindings, guard: ActiveGuard, verdict: GuardVerdict | None, seconds: float, *, is_whole: bool
) -> None:
    if verdict is not None or is_whole:
        found.rows.append(GuardRow(guard.id, guard.pack, verdict or GuardVerdict.allow(), seconds))


def _refused(subject: GuardSubject, guard: str, code: str, reason: str) -> GuardFindings:
    return GuardFindings(subject.value, [GuardRow(guard, "", GuardVerdict.block(reason, code), 0.0)])


def _why_missing(registry: Registry, id: str) -> str:
    entries = registry.stack(id)
    return f"{entries[0].state}: {entries[0].reason}" if entries else "no loaded pack offers it"
