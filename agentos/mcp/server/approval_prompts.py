"""Ask the person at the client to approve a call that waits for approval.

In the era of sessions the server asks while the call waits. In the era without, the result says what is asked, and the
client answers by calling again: then the stored proposal is applied, and no new one is made.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Literal

import anyio
import attrs
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agentos.access.proposals import Proposal, ProposalError
from agentos.calls.approvals import pending_facts
from agentos.interop._provider_calls import answer_text
from agentos.mcp.server.client_calls import ClientCalls
from agentos.mcp.server.client_questions import ClientQuestions, can_elicit
from agentos.mcp.server.served_host import ServedHost
from agentos.mcp.server.shown_tools import is_modern
from agentos.mcp.server.wire_format import as_json, clipped, visible
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.secrets.masking import MaskingLogger

Context = ServerRequestContext[Any, Any]

DATA_LIMIT = 8_000
"""How many characters of arguments or of a preview a person is shown."""
REASON_LIMIT = 500
_KEY = "approval"

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve: run exactly this, once. reject: do not run it.",
            "enum": ["approve", "reject"],
        },
        "reason": {
            "type": "string",
            "title": "Reason",
            "description": "Why, if it is rejected.",
            "maxLength": REASON_LIMIT,
        },
    },
    "required": ["decision"],
}


@attrs.frozen
class _PersonDecision:
    """What a person decided; None if the question was dismissed or could not be asked."""

    decision: Literal["approve", "reject"] | None
    reason: str = ""


def approval_question(proposal: Proposal, host: ServedHost) -> str:
    """Return a text that says exactly what will run."""
    arguments = host.extensions.masker.mask_data(dict(proposal.arguments or {}))
    version = f" {proposal.version}" if proposal.version else ""
    lines = [
        "A call waits for your approval.",
        f"Tool: {proposal.tool} ({proposal.effect})",
        f"Pack: {proposal.pack}{version}, from {proposal.origin}",
        f"Why it asks: {proposal.reason}",
        *(f"Flagged: {warning}" for warning in proposal.flagged),
    ]
    if proposal.shadows:
        lines.append(f"It stands in front of: {', '.join(proposal.shadows)}")
    lines.append(f"Arguments: {_readable(arguments)}")
    if proposal.preview != arguments:
        lines.append(f"Preview: {_readable(proposal.preview)}")
    lines.append(f"It can be approved until {proposal.expires_at.isoformat(timespec='seconds')}.")
    return visible("\n".join(lines))


def _readable(data: Any) -> str:
    text = as_json(data, indent=2)
    if len(text) <= DATA_LIMIT:
        return text
    return f"{clipped(text, DATA_LIMIT)} Reject it unless you know the rest."


class ApprovalPrompts:
    """Asks the person at a client about proposals, and carries out the decision."""

    def __init__(
        self,
        host: ServedHost,
        calls: ClientCalls,
        questions: ClientQuestions,
        logger: MaskingLogger,
        *,
        has_tools: bool,
    ) -> None:
        self._host = host
        self._calls = calls
        self._questions = questions
        self._logger = logger
        self._has_tools = has_tools

    async def ask_or_wait(
        self, ctx: Context, result: ToolResult, who: Principal
    ) -> ToolResult | types.InputRequiredResult:
        """Return the result of a call that needs approval: what a person decided, or that it waits."""
        proposal = await self._proposal_of(result, who)
        if proposal is None or not can_elicit(ctx):
            return self._waiting_result(result, proposal)
        if is_modern(ctx):
            return self._input_required(proposal)
        return await self._carry_out(ctx, proposal, await self._ask(ctx, proposal, who), who, result)

    async def resume(
        self, ctx: Context, params: types.CallToolRequestParams, who: Principal
    ) -> ToolResult | types.InputRequiredResult:
        """Return the result of a repeated call. Its state was sealed by this server, for this principal and call."""
        id = _proposal_id_in(params.request_state)
        proposal = await self._find_own(id, who)
        if proposal is None:
            return ToolResult.fail("ProposalInvalid", "the proposal no longer exists; make the call again")
        decision = _decision_in(params.input_responses)
        if decision is not None:
            return await self._carry_out(ctx, proposal, decision, who, _unanswered(proposal))
        if proposal.state == "proposed" and can_elicit(ctx):
            return self._input_required(proposal)
        return await self._left_undecided(proposal, who, _unanswered(proposal))

    async def apply(self, ctx: Context, id: str, who: Principal) -> ToolResult:
        """Run what was proposed, for a client that may want its progress and may cancel it."""
        return await self._calls.run(ctx, id, self._host.approvals.approve(id, by=who))

    async def reject(self, id: str, reason: str, who: Principal) -> ToolResult | None:
        """Close a proposal; None if that was done, else what is wrong."""
        try:
            await self._host.approvals.reject(id, _reason(reason), by=who)
        except ProposalError as error:
            return ToolResult.fail("ProposalInvalid", str(error))
        return None

    # -- questions ---------------------------------------------------------------------------------------------

    async def _proposal_of(self, result: ToolResult, who: Principal) -> Proposal | None:
        id = result.error.details.get("proposal_id") if result.error is not None else None
        proposal = await self._find_own(id, who)
        return proposal if proposal is not None and proposal.state == "proposed" else None

    async def _find_own(self, id: Any, who: Principal) -> Proposal | None:
        """Return a proposal of *who*: the id is untrusted, and a token is not accepted as one."""
        try:
            proposal = await self._host.approvals.describe(id)
        except ProposalError:
            return None
        return proposal if proposal.principal.key == who.key and proposal.id == id else None

    def _input_required(self, proposal: Proposal) -> types.InputRequiredResult:
        request = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=approval_question(proposal, self._host), requested_schema=FORM)
        )
        return types.InputRequiredResult(
            input_requests={_KEY: request}, request_state=json.dumps({"proposal": proposal.id})
        )

    async def _ask(self, ctx: Context, proposal: Proposal, who: Principal) -> _PersonDecision:
        """Ask while the call waits, until the proposal expires. A client that can't be reached leaves it undecided."""
        lasts = (proposal.expires_at - proposal.created_at).total_seconds()
        answer = None
        with anyio.move_on_after(lasts):
            try:
                message = approval_question(proposal, self._host)
                with self._host.approvals.being_asked(proposal.id):
                    answer = await ctx.session.elicit_form(message, FORM, related_request_id=ctx.request_id)
            except (MCPError, ValidationError) as error:
                self._logger.info("a client could not be asked about proposal %s: %s", proposal.id, error)
            except asyncio.CancelledError:  # nobody waits for the result: it must not run later
                with anyio.CancelScope(shield=True):
                    await self.reject(proposal.id, "its call was cancelled while somebody was asked", who)
                raise
        return _PersonDecision(None) if answer is None else _decision_of_form(answer)

    # -- answers -----------------------------------------------------------------------------------------------

    async def _carry_out(
        self, ctx: Context, proposal: Proposal, decision: _PersonDecision, who: Principal, result: ToolResult
    ) -> ToolResult | types.InputRequiredResult:
        if decision.decision == "approve":
            return await self._questions.run(ctx, proposal.id, self._host.approvals.approve(proposal.id, by=who))
        if decision.decision == "reject":
            fault = await self.reject(proposal.id, decision.reason, who)
            return fault or ToolResult.fail("Refused", f"a person refused the call: {_reason(decision.reason)}")
        return await self._left_undecided(proposal, who, result)

    async def _left_undecided(self, proposal: Proposal, who: Principal, result: ToolResult) -> ToolResult:
        """Return the result of a call that was not decided here; it may be decided elsewhere, or expired."""
        now = await self._find_own(proposal.id, who)
        if now is None or now.state == "proposed":
            return self._waiting_result(result, now)
        message = f"nobody decided here, and the proposal is {now.state} by now"
        return ToolResult.fail("ProposalInvalid", message)

    def _waiting_result(self, result: ToolResult, proposal: Proposal | None) -> ToolResult:
        """Return the result of a call that waits, with how it can be approved; of a proposal that is not, an error."""
        if proposal is None:
            content = f"{result.content.rstrip('. ')}. A person approves it at the host."
            return attrs.evolve(result, content=content, output=None, meta={})
        if self._has_tools:
            way = (
                f'Ask the user; if they agree, `proposals_apply` with the id "{proposal.id}" runs it, '
                "or a person approves it at the host."
            )
        else:
            way = f"A person approves it at the host, by the id {proposal.id}."
        waiting = attrs.evolve(result, meta={"pending": pending_facts(proposal)}, output=None)
        return attrs.evolve(waiting, content=f"{answer_text(waiting).rstrip('. ')}. {way}")


def _reason(text: str) -> str:
    return clipped(text.strip(), REASON_LIMIT) or "no reason given"


def _unanswered(proposal: Proposal) -> ToolResult:
    until = proposal.expires_at.isoformat(timespec="seconds")
    message = f"nobody decided; it waits for approval as proposal {proposal.id} until {until}"
    return ToolResult.fail("ApprovalRequired", message)


def _proposal_id_in(state: str | None) -> str | None:
    """Return the proposal that a state names; its seal was checked before."""
    try:
        named = json.loads(state or "")
    except ValueError:
        return None
    found = named.get("proposal") if isinstance(named, dict) else None
    return found if isinstance(found, str) else None


def _decision_in(responses: Mapping[str, Any] | None) -> _PersonDecision | None:
    """Return the decision in the client's answers; None if it is missing."""
    answer = (responses or {}).get(_KEY)
    return _decision_of_form(answer) if isinstance(answer, types.ElicitResult) else None


def _decision_of_form(answer: types.ElicitResult) -> _PersonDecision:
    """Return what a form says. One that was dismissed, or says neither, leaves the question open."""
    content = answer.content or {}
    decision = content.get("decision")
    if answer.action == "accept" and decision == "approve":
        return _PersonDecision("approve")
    if answer.action == "decline" or (answer.action == "accept" and decision == "reject"):
        reason = content.get("reason")
        return _PersonDecision("reject", reason if isinstance(reason, str) else "")
    return _PersonDecision(None)
