"""Approvals: a person's side of calls that wait. What is approved is exactly what was proposed, and it runs once."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import attrs

from agentos.access.gate import Decision
from agentos.access.grants import is_text, name_of, session_id, writable
from agentos.access.principals import Present, Principals, narrower
from agentos.access.proposal_news import ProposalNews
from agentos.access.proposals import (
    FORGED,
    Proposal,
    ProposalError,
    Proposals,
    Stored,
    new_id,
    shadowed_by,
    stored_result,
)
from agentos.base.foreign import Border, settled, to_the_end
from agentos.calls.answers import Answer, Ask, ask_nobody
from agentos.calls.bindings import Bindings
from agentos.calls.executor import ToolExecutor
from agentos.calls.invocation import AccessServices, Invocation
from agentos.calls.proposal_recorder import ProposalRecorder
from agentos.calls.results import as_text
from agentos.calls.steps.guard import ask_about_call
from agentos.calls.steps.once import key_of
from agentos.errors import StoreError
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.secrets.masking import MaskingLogger
from agentos.store import Store
from agentos.tools.ready import ReadyTool
from agentos.tools.tool_context import Approval

T = TypeVar("T")

_ATTEMPTS = 3
"""How often a proposal is applied again, after hosts died on it."""
_SILENT = "no reason given"
_LOOK_EVERY = 1.0
"""After how many seconds it is looked for what others decided."""
_REMEMBERED = 1_000
"""Of how many proposals the session and the token are remembered: sessions are the host's objects."""


class Approvals:
    """Lists proposals, says what exactly would run, and takes a person's answer."""

    def __init__(
        self,
        proposals: Proposals,
        executor: ToolExecutor,
        access: AccessServices,
        *,
        store: Store,
        clock: Callable[[], float],
        ask: Ask = ask_nobody,
        principals: Principals | None = None,
    ) -> None:
        self._proposals = proposals
        self._executor = executor
        self._catalog = executor.catalog
        self._bindings = Bindings(executor.catalog, executor.services.plans, store.seal)
        self._results = executor.results
        self._access = access
        self._policy = access.policy
        self._store = store
        self._masker = masker = executor.services.masker
        self._clock = clock
        self._ask = ask
        self._logger = MaskingLogger("agentos.approvals", masker)
        self._present = Present(principals, self._logger)
        self._sessions: dict[str, Mapping[str, Any]] = {}
        self._tokens: dict[str, str] = {}
        """Of what waits, for whoever makes the same call again: the store has no more than their hashes."""
        self._asked: Counter[str] = Counter()
        """About which proposals somebody is being asked now."""
        self._resumed: dict[str, asyncio.Task[Any]] = {}
        self._left: dict[str, Stored] = {}
        """What was cut off, and may run again once its tool is there."""
        self._looked_back = False
        self._news = ProposalNews(proposals, executor.services.events, self._logger)
        self._watching: asyncio.Task[None] | None = None
        access.proposer = self

    # -- for people --------------------------------------------------------------------------------------------

    async def pending(self, principal: Principal | str | None = None) -> list[Proposal]:
        """Return the proposals that wait, oldest first; with *principal*, its own."""
        await self._look_back()
        whose = name_of(principal)
        waiting = await self._proposals.pending(whose) if whose is None or is_text(whose) else []
        await self._news.look()
        return waiting

    async def describe(self, id: str) -> Proposal:
        """Say what exactly would run: with which arguments, from which pack and version, and whom it shadows."""
        stored = await self._known(id)
        if not stored.is_genuine:
            raise ProposalError(f"proposal {stored.proposal.id}: {FORGED}")
        return stored.proposal

    async def approve(self, token_or_id: str, by: Principal | str | None = None) -> ToolResult:
        """Run what was proposed, now and once, and return its result.

        *by* is who approves: by default the proposer. Whatever is wrong is the result, of type ProposalInvalid.
        """
        return await self._approve(token_or_id, by)

    async def _approve(
        self, token_or_id: str, by: Principal | str | None, asking: Invocation | None = None
    ) -> ToolResult:
        try:
            await self._look_back()
            stored = await self._found(token_or_id)
            fault = self._proposals.fault(stored)
            if fault is not None or stored is None:
                return self._invalid(fault or "", stored, by)
            return await self._apply(stored, by, asking)
        except StoreError as error:
            self._logger.warning("a proposal could not be applied: %s", error)
            message = "nothing was done, because the store can't be used now; the host's log says why"
            return self._results.failure("Refused", message, {})

    async def edit(self, id: str, arguments: Mapping[str, Any], by: Principal | str | None = None) -> Proposal:
        """Replace a proposal by one with other *arguments*, checked and gated anew, with a token of its own."""
        stored = await self._waiting(id, by)
        if not isinstance(arguments, Mapping):
            raise ProposalError(f"arguments: expected a mapping, got {type(arguments).__name__}")
        old = stored.proposal
        reason = f"{old.reason} (edited)" if not old.parent else old.reason
        return await self._propose(await self._anew(stored, arguments, by), reason, replaces=old, by=name_of(by))

    async def ask_again(self, id: str, by: Principal | str | None = None) -> Proposal:
        """Propose an expired call once more, checked and gated anew, with a token of its own.

        Whoever waits for the expired one waits for this: `Proposal.parent` says which that is.
        """
        stored = await self._known(id)
        old = stored.proposal
        if old.state != "expired":
            raise ProposalError(f"proposal {old.id} has not expired and can't be asked again")
        if fault := self._proposals.fault_of_call(stored) or self._fault_of_approver(old, by):
            raise ProposalError(fault)
        call = await self._anew(stored, old.arguments or {}, by)
        return await self._propose(call, old.reason, replaces=old, renews=True, by=name_of(by))

    async def _anew(self, stored: Stored, arguments: Mapping[str, Any], by: Principal | str | None) -> Invocation:
        """Return the call of a proposal with *arguments*, checked as if it were made now."""
        old, who = stored.proposal, await self._as_now(stored, by)
        ready = self._catalog.find(old.tool)
        if ready is None or (fault := self._bindings.fault(ready, stored)) is not None:
            raise ProposalError(self._bindings.why_not_in_force(stored) if ready is None else str(fault))
        call = ToolCall(ready.tool.name, dict(arguments), id=old.call_id, idempotency_key=stored.idempotency_key)
        checked = self._executor.arguments(ready, call)
        if isinstance(checked, ToolResult):
            raise ProposalError(str(checked.error.message if checked.error else checked.content))
        invocation = self._invocation(ready, call, checked, who, self._session_of(stored))
        if fault := self._fault_of_call(invocation):
            raise ProposalError(fault)
        if (refusal := await ask_about_call(invocation)) is not None:
            raise ProposalError(refusal.content)
        return invocation

    def _invocation(
        self,
        ready: ReadyTool,
        call: ToolCall,
        arguments: dict[str, Any],
        principal: Principal,
        session: Mapping[str, Any],
    ) -> Invocation:
        invocation = self._executor.invocation(call, principal, session)
        invocation.ready, invocation.arguments = ready, arguments
        return invocation

    async def reject(self, id: str, reason: str, by: Principal | str | None = None) -> None:
        """Close a proposal without running it. The *reason* is for the record, and for whoever made the call."""
        if not isinstance(reason, str) or not reason.strip():
            raise ProposalError(f"reason: say in words why it must not run, got {reason!r:.40}")
        waiting = (await self._waiting(id, by)).proposal
        reason = self._masker.mask(reason.encode("utf-8", "replace").decode().replace("\0", "?"))
        if not await self._proposals.reject(waiting.id, reason, name_of(by) or waiting.principal.key):
            raise ProposalError(f"proposal {waiting.id} does not wait any more")
        self._forget(waiting.id)

    async def result(self, id: str) -> ToolResult | None:
        """Return what an applied proposal came to; None while there is no result, or no such proposal."""
        await self._look_back()
        stored = await self._found(id)
        task = None if stored is None else self._resumed.get(stored.proposal.id)
        if task is not None:
            await asyncio.wait([task])
            stored = await self._found(id)
        return None if stored is None else stored_result(stored)

    async def latest(self, id: str) -> Proposal:
        """Return the proposal that stands for *id* now: itself, or what took its place since."""
        return (await self._latest(id)).proposal

    async def _latest(self, id: str) -> Stored:
        stored = await self._known(id)
        while stored.proposal.state in ("rejected", "expired"):
            later = await self._proposals.successor(stored.proposal.id)
            if later is None:
                break
            stored = await self._known(later)
        return stored

    async def outcome(self, id: str) -> ToolResult | None:
        """Return what a call that waited came to, whoever decided; None while it waits or runs.

        Of one that was edited or asked again, it is what came of that. Who refused is told in words, and so is that
        nobody decided in time, or that nobody knows how it ended.
        """
        stored = await self._latest(id)
        if stored.proposal.state == "applying" and self._store.is_durable:
            await self._proposals.recover()  # whoever applies it may be gone
            stored = await self._known(stored.proposal.id)
        proposal = stored.proposal
        if proposal.state in ("proposed", "applying") or proposal.id in {*self._resumed, *self._left}:
            return stored_result(stored)  # of a forged one
        if stored.is_genuine and proposal.state == "rejected":
            return self._refused(proposal.id, proposal.note or _SILENT)
        if stored.is_genuine and proposal.state == "expired":
            until = proposal.expires_at.isoformat(timespec="seconds")
            return self._results.failure(
                "Refused", f"not run: nobody decided on it until {until}", {"proposal": proposal.id}
            )
        fault = self._proposals.fault(stored) or ""
        if (result := stored_result(stored)) is not None:
            return await self._told_of_edit(result, proposal)
        return self._results.failure("ProposalInvalid", fault, {"proposal": proposal.id})

    # -- for the gate ------------------------------------------------------------------------------------------

    async def propose(self, invocation: Invocation) -> ToolResult:
        """Ask for approval of a call: the result is the call's own if somebody answers at once.

        A call that rejoins is the same proposal as the same call that waits already.
        """
        try:
            reason = "" if invocation.decision is None else invocation.decision.reason
            earlier = await self._waiting_for(invocation) if invocation.rejoins else None
            proposal = earlier or await self._propose(invocation, reason)
        except (StoreError, ProposalError) as error:
            self._logger.warning("a proposal of %s could not be made: %s", invocation.ready.qualified_id, error)
            message = "the call needs approval, and no proposal could be made of it"
            detail = f": {error}" if isinstance(error, ProposalError) else "; the host's log says why"
            is_unavailable = {} if isinstance(error, ProposalError) else {"unavailable": True}
            return invocation.failure("Refused", message + detail, is_unavailable)
        await settled(invocation.tell("approval", None, {"proposal": proposal.id, "reason": proposal.reason})())
        try:
            with self.being_asked(proposal.id):
                answer = await self._ask_around(attrs.evolve(proposal, token=None))
        except asyncio.CancelledError:
            if earlier is None:  # nobody waits for the result: it must not run later
                await to_the_end(self._drop(proposal.id))
            raise
        result = None if answer is None else await self._answered(proposal, answer, invocation)
        if result is not None:
            return result
        return await self._decided_meanwhile(proposal.id) or self._required(invocation, proposal)

    @contextlib.contextmanager
    def being_asked(self, id: str) -> Iterator[None]:
        """Say that somebody is asked about a proposal: the same call is a new one until there is an answer, or none."""
        self._asked[id] += 1
        try:
            yield
        finally:
            self._asked[id] -= 1
            if not self._asked[id]:
                del self._asked[id]

    async def _waiting_for(self, invocation: Invocation) -> Proposal | None:
        """Return the proposal of an earlier call that waits, if this is the same call of the same tool."""
        await self._store.open()
        ready, key = invocation.ready, key_of(invocation)
        bound = (
            invocation.principal,
            session_id(invocation.session, self._masker),
            None if key is None else key.key,
            self._bindings.place(ready),
            ready.definition,
        )
        alike = await self._proposals.waiting_like(invocation.principal.key, ready.qualified_id, invocation.arguments)
        for one in alike:
            found = one.proposal
            binds = (found.principal, found.session, one.idempotency_key, one.entry_state, found.definition)
            if binds == bound and not self._asked[found.id]:
                return attrs.evolve(found, token=self._tokens.get(found.id))
        return None

    async def _decided_meanwhile(self, id: str) -> ToolResult | None:
        """Return what became of a proposal that somebody decided on while others were asked about it."""
        try:
            stored = await self._latest(id)
        except (StoreError, ProposalError) as error:
            self._logger.warning("whether proposal %s was decided on can't be read: %s", id, error)
            return None
        if stored.proposal.state == "rejected":
            return self._refused(id, stored.proposal.note or _SILENT)
        result = stored_result(stored)
        return None if result is None else await self._told_of_edit(result, stored.proposal)

    async def _told_of_edit(self, result: ToolResult, proposal: Proposal) -> ToolResult:
        """Return what a call came to, for whoever made it; if a person changed its arguments, `meta` has them."""
        if not await self._is_edited(proposal):
            return result
        return attrs.evolve(result, meta={**result.meta, "edited": self._masker.mask_data(proposal.arguments)})

    async def _is_edited(self, proposal: Proposal) -> bool:
        """Tell whether it took the place of one with other arguments, and not only of the same that had expired."""
        while proposal.parent is not None:
            before = await self._proposals.by_id(proposal.parent)
            if before is None or before.proposal.state == "rejected":
                return before is not None
            proposal = before.proposal
        return False

    def _refused(self, id: str, reason: str) -> ToolResult:
        message = f"a person refused the call: {reason}"
        return self._results.failure("Refused", message, {"proposal": id})

    def _required(self, invocation: Invocation, proposal: Proposal) -> ToolResult:
        until = proposal.expires_at.isoformat(timespec="seconds")
        message = (
            f"{proposal.reason}. It waits for approval as proposal {proposal.id} until {until}; do not repeat the call"
        )
        pending = pending_facts(proposal)
        result = invocation.failure("ApprovalRequired", message, {**pending, "token": proposal.token})
        return attrs.evolve(result, meta={**result.meta, "pending": pending})

    async def _ask_around(self, proposal: Proposal) -> Answer | None:
        """Tell whoever handles approvals; one who raises, or takes longer than the proposal lasts, has not answered."""
        with Border() as border:  # a handler is foreign code: without an answer the proposal waits
            async with asyncio.timeout(self._policy.proposal_ttl):
                answer = await self._ask(proposal)
        if border.error is not None:
            self._logger.error("asking about proposal %s failed", proposal.id, exc_info=border.error)
            return None
        if answer is None or (isinstance(answer, Answer) and answer.is_valid):
            return answer
        self._logger.error("proposal %s got an invalid answer", proposal.id)
        return None

    async def _drop(self, id: str) -> None:
        try:
            await self._proposals.reject(id, "the call was cancelled", None)
        except StoreError as error:
            self._logger.warning("proposal %s of a cancelled call could not be closed: %s", id, error)

    async def _answered(self, proposal: Proposal, answer: Answer, asking: Invocation) -> ToolResult | None:
        """Return what an answer comes to; None if it does not count: the proposal goes on waiting then."""
        try:
            if answer.decision == "reject":
                reason = str(answer.reason or "").strip() or _SILENT
                await self.reject(proposal.id, reason, answer.by)
                return self._refused(proposal.id, reason)
            if answer.decision == "edit":
                proposal = await self.edit(proposal.id, answer.arguments or {}, answer.by)
                return await self._told_of_edit(await self._approve(proposal.id, answer.by, asking), proposal)
            if fault := self._fault_of_approver(proposal, answer.by):
                raise ProposalError(fault)
            return await self._approve(proposal.id, answer.by, asking)
        except ProposalError as error:
            self._note_invalid(str(error), proposal, answer.by)
            self._logger.warning("an answer to proposal %s does not count: %s", proposal.id, error)
            return None

    async def _propose(
        self,
        invocation: Invocation,
        reason: str,
        *,
        replaces: Proposal | None = None,
        renews: bool = False,
        by: str | None = None,
    ) -> Proposal:
        preview = await self._preview(invocation)
        await self._store.open()
        now = datetime.fromtimestamp(self._clock(), UTC)
        ready, arguments = invocation.ready, invocation.arguments
        entry = ready.entry
        draft = Proposal(
            id=new_id(),
            tool=ready.qualified_id,
            arguments=arguments,
            preview=preview,
            principal=invocation.principal,
            effect=self._bindings.effect(ready),
            state="proposed",
            created_at=now,
            expires_at=now + timedelta(seconds=self._policy.proposal_ttl),
            reason=self._masker.mask(reason),
            shadows=shadowed_by(self._catalog.registry.stack(entry.id), entry),
            pack=entry.source.pack,
            version=entry.source.version,
            origin=entry.source.origin,
            definition=ready.definition,
            parent=None if replaces is None else replaces.id,
            session=session_id(invocation.session, self._masker),
            call_id=None if invocation.call.id is None else writable(str(invocation.call.id), self._masker),
            flags=tuple(self._masker.mask_data(dict(flag)) for flag in invocation.flags),
        )
        key = key_of(invocation)
        proposal = await self._proposals.add(
            draft,
            secret=self._masker.mask_data(arguments) != arguments,
            replaces=draft.parent,
            renews=renews,
            by=by or (None if replaces is None else replaces.principal.key),
            entry_state=self._bindings.place(ready),
            idempotency_key=None if key is None else key.key,
        )
        self._news.made(proposal)
        self.watch()
        if invocation.session:
            _remember(self._sessions, proposal.id, invocation.session)
        _remember(self._tokens, proposal.id, str(proposal.token))
        return proposal

    async def _preview(self, invocation: Invocation) -> Any:
        """Return what a dry run says, else the arguments: whoever approves must see something of what will run."""
        masked = self._masker.mask_data(invocation.arguments)
        shown = await self._executor.pipeline.preview(invocation)
        if shown is None:
            return masked
        if not shown.success:
            return {"arguments": masked, "dry_run_failed": shown.content}
        if size := shown.meta.get("output_dropped"):
            return {"arguments": masked, "note": f"the dry run said {size} characters, which is too much to keep"}
        return shown.output if shown.output is not None or shown.content != as_text(None) else masked

    def _forget(self, id: str) -> None:
        self._sessions.pop(id, None)
        self._tokens.pop(id, None)

    # -- applying ----------------------------------------------------------------------------------------------

    async def _apply(
        self, stored: Stored, by: Principal | str | None, asking: Invocation | None = None, *, again: bool = False
    ) -> ToolResult:
        """Check once more what may have changed since, and run exactly what was stored.

        *asking* is the call that waits for this answer, if one does.
        """
        proposal = stored.proposal
        try:
            if fault := self._fault_of_approver(proposal, by):
                raise ProposalError(fault)
            ready = self._catalog.find(proposal.tool)
            if ready is None or (fault := self._bindings.fault(ready, stored)) is not None:
                raise ProposalError(self._bindings.why_not_in_force(stored) if ready is None else str(fault))
            principal = await self._as_now(stored, by)
            if self._store.is_durable:
                await self._access.grants.refresh()
            arguments = dict(proposal.arguments or {})
            call = ToolCall(ready.tool.name, arguments, id=proposal.id, idempotency_key=stored.idempotency_key)
            invocation = self._invocation(ready, call, arguments, principal, self._session_of(stored))
            if fault := self._fault_of_call(invocation):
                raise ProposalError(fault)
        except ProposalError as error:
            return self._invalid(str(error), stored, by)
        invocation.approval = Approval(proposal.id, self._bindings.shown_beneath(ready))
        invocation.decision = Decision("run", "approved", f"proposal {proposal.id} was approved")
        if asking is not None:
            asking.approved_run, invocation.depth = invocation, asking.depth
        refuse = partial(self._invalid, stored=stored, by=by)
        return await self._run(invocation, ProposalRecorder(self._proposals, stored, refuse, name_of(by), again))

    async def _run(self, invocation: Invocation, recorder: ProposalRecorder) -> ToolResult:
        """Take an approved call through the steps that are left."""
        invocation.recorder = recorder
        pipeline, id = self._executor.pipeline, recorder.stored.proposal.id
        result = await pipeline.start_cancellable(invocation, pipeline.start_validated)
        if not recorder.is_claimed and result.meta.get("replayed"):
            await to_the_end(recorder.close(invocation, result))  # another call with the same key had run it
        if recorder.is_claimed:  # else it goes on waiting, in its session
            self._forget(id)
        return attrs.evolve(result, meta={**result.meta, "proposal": id})

    async def present(self, stored: Principal) -> Principal:
        """Return a principal that was written down with no more than it held then and holds now."""
        return await self._present.of(stored)

    async def _as_now(self, stored: Stored, by: Principal | str | None) -> Principal:
        """Return who the call runs for: the proposer, with no more than it held then, holds now, and holds as *by*."""
        return narrower(await self._present.of(stored.proposal.principal), by)

    def _fault_of_approver(self, proposal: Proposal, by: Principal | str | None) -> str | None:
        who = name_of(by)
        if who is None or who == proposal.principal.key or self._policy.allow_other_approver:
            return None
        return (
            f"the proposal is bound to {proposal.principal.key!r}, and {who!r} is somebody else; "
            "this host does not allow other approvers"
        )

    def _fault_of_call(self, invocation: Invocation) -> str | None:
        ready, principal = invocation.ready, invocation.principal
        missing = principal.missing(ready.tool)
        if missing:
            rules = ", ".join(missing)
            return f"{principal.key!r} does not hold the access any more that {ready.qualified_id} requires: {rules}"
        session = session_id(invocation.session, self._masker)
        return self._access.denials.of_call(ready, principal.key, session, invocation.arguments)

    def _session_of(self, stored: Stored) -> Mapping[str, Any]:
        kept = self._sessions.get(stored.proposal.id)
        if kept is not None:
            return kept
        return {} if stored.proposal.session is None else {"id": stored.proposal.session}

    # -- finding -----------------------------------------------------------------------------------------------

    async def _found(self, token_or_id: object) -> Stored | None:
        if not isinstance(token_or_id, str) or not is_text(token_or_id):
            return None
        found = await self._proposals.by_token(token_or_id) or await self._proposals.by_id(token_or_id)
        if found is not None and found.proposal.state == "expired":
            await self._proposals.expire()
            await self._news.look()
        return found

    async def _known(self, id: str) -> Stored:
        await self._look_back()
        stored = await self._found(id)
        if stored is None:
            named = self._masker.mask(str(id))[:64]
            raise ProposalError(f"there is no proposal {named!r}; `pending()` lists those that wait")
        return stored

    async def _waiting(self, id: str, by: Principal | str | None) -> Stored:
        """Return a proposal that *by* may edit or reject."""
        stored = await self._known(id)
        fault = self._proposals.fault(stored) or self._fault_of_approver(stored.proposal, by)
        if fault is not None:
            raise ProposalError(fault)
        return stored

    def _invalid(self, reason: str, stored: Stored | None = None, by: Principal | str | None = None) -> ToolResult:
        """Record why a proposal can't be applied, and return that as the result."""
        self._note_invalid(reason, None if stored is None else stored.proposal, by)
        return self._results.failure("ProposalInvalid", reason, {})

    def _note_invalid(self, reason: str, proposal: Proposal | None, by: Principal | str | None) -> None:
        facts = {} if proposal is None else {"proposal": proposal.id, "tool": proposal.tool}
        self._access.audit.note("decision", **facts, by=name_of(by), answer="refuse", step="proposal", reason=reason)

    # -- after a crash -----------------------------------------------------------------------------------------

    async def recover(self) -> list[Proposal]:
        """Find what was cut off when a host ended: it is `unknown` from now on.

        Where the tool is idempotent it is applied again, in the background; `result` waits for it.
        """
        cut_off = await self._cut_off()
        may_run = [one for one in cut_off if one.is_genuine and one.attempts < _ATTEMPTS]
        self._left = {one.proposal.id: one for one in may_run if one.proposal.id not in self._resumed}
        self.go_on()
        return [one.proposal for one in cut_off]

    def go_on(self) -> None:
        """Apply again, in the background, what was cut off and whose idempotent tool is there now."""
        for id, stored in list(self._left.items()):
            ready = self._catalog.find(stored.proposal.tool)
            if ready is not None:
                del self._left[id]
                if ready.tool.idempotent:
                    self._resume(stored)

    def _resume(self, stored: Stored) -> None:
        task = asyncio.ensure_future(self._apply(stored, stored.proposal.decided_by, again=True))
        self._resumed[stored.proposal.id] = task
        task.add_done_callback(lambda _: self._resumed.pop(stored.proposal.id, None))

    async def _look_back(self) -> None:
        if not self._looked_back:
            await self._cut_off()

    async def _cut_off(self) -> list[Stored]:
        self._looked_back = True
        return await self._proposals.recover() if self._store.is_durable else []

    # -- what others decided -----------------------------------------------------------------------------------

    def watch(self) -> None:
        """Look from time to time for what others decided and what expired, and tell those who listen.

        Others write to a store that lasts; in memory there is something to look for as long as something waits.
        """
        if self._watching is None or self._watching.done():
            self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while self._store.is_durable or self._news.is_awaited:
            await asyncio.sleep(_LOOK_EVERY)
            await self._news.look()

    async def settle(self) -> None:
        """Write down how proposals ended that could not be written down then."""
        await self._proposals.catch_up()

    async def close(self) -> None:
        """Stop what is being applied again in the background, and the watch for news."""
        self._left.clear()
        tasks = [*self._resumed.values(), *filter(None, [self._watching])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pending_facts(proposal: Proposal) -> dict[str, Any]:
    """Return what whoever made a call is told of its proposal; the token is for whoever may approve it."""
    return {
        "proposal_id": proposal.id,
        "expires_at": proposal.expires_at.isoformat(),
        "reason": proposal.reason,
    }


def _remember(kept: dict[str, T], id: str, value: T) -> None:
    while len(kept) >= _REMEMBERED:
        del kept[next(iter(kept))]
    kept[id] = value
