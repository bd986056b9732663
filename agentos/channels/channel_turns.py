"""Answers by a turn with a model, and decisions on calls that wait, told in the channel by their principal."""

import re
from collections.abc import Mapping
from typing import Any

import attrs

from agentos.access.grants import session_id
from agentos.access.proposals import Proposal, ProposalError
from agentos.base.extras import import_extra
from agentos.channels.inbox import Inbox, WaitsFor
from agentos.errors import ChannelError
from agentos.model.channels import ChannelMessage, ChannelSettings
from agentos.model.principal import Principal
from agentos.turn.turn_outcome import Turn

_DECISION = re.compile(r"\s*(approve|reject)\s+([0-9a-f]{4,32})(?:[\s:,]+(.*))?\s*", re.IGNORECASE | re.DOTALL)
_SHORT_ID = 8
_SHOWN = 500
_REASON = "refused in the channel"


@attrs.frozen(kw_only=True)
class ChannelAnswer:
    """What a message came to: a reply, if there is one, and what it waits for, if it does."""

    reply: ChannelMessage | None = None
    waits_for: WaitsFor | None = None


class ChannelTurns:
    """Answers messages by turns, with the model and the persona that the manifest says."""

    def __init__(self, host: Any, inbox: Inbox, settings: Mapping[str, ChannelSettings]) -> None:
        self._host = host
        self._inbox = inbox
        self._settings = settings
        self._clients: dict[str, Any] = {}

    async def answer(self, message: ChannelMessage, principal: Principal) -> ChannelAnswer:
        """Ask the model, with what the sender said there before."""
        said = self._settings[message.channel]
        messages = [
            {"role": role, "content": text}
            for pair in await self._inbox.history(message, said.history)
            for role, text in zip(("user", "assistant"), pair, strict=True)
        ]
        words = "\n".join([message.text, *(one.in_words() for one in message.attachments)])
        turn = await self._host.turn(
            self._client(message.channel),
            [*messages, {"role": "user", "content": words}],
            model=said.model,
            persona=said.persona,
            principal=principal,
            session=message.session,
        )
        return await self._answered(message, turn)

    async def resume(self, message: ChannelMessage, turn: str) -> ChannelAnswer:
        """Go on with a turn whose calls were decided on."""
        resumed = await self._host.resume(turn, self._client(message.channel), session=message.session)
        return await self._answered(message, resumed)

    async def _answered(self, message: ChannelMessage, turn: Turn) -> ChannelAnswer:
        if turn.stopped_by != "approval" or turn.id is None:
            text = turn.content.strip() or f"No answer came of it ({turn.stopped_by})."
            return ChannelAnswer(reply=reply_to(message, text))
        is_asked = self._settings[message.channel].approvals
        proposals = [await self._host.approvals.latest(id) for id in turn.pending]
        asked = "\n\n".join([turn.content.strip(), *(_question(one, is_asked=is_asked) for one in proposals)])
        waits_for = WaitsFor(turn=turn.id, pending=turn.pending)
        return ChannelAnswer(reply=reply_to(message, asked.strip()), waits_for=waits_for)

    async def is_decided(self, waits_for: WaitsFor) -> bool:
        """Tell whether all that a turn waits for was decided on."""
        outcomes = [await self._host.approvals.outcome(id) for id in waits_for.pending]
        return all(one is not None for one in outcomes)

    # -- decisions ---------------------------------------------------------------------------------------------

    async def decide(self, message: ChannelMessage, principal: Principal) -> str | None:
        """Decide on a call of this sender, if the message says so and may; return what is answered, else None."""
        found = _DECISION.fullmatch(message.text)
        if found is None or not self._settings[message.channel].approvals:
            return None
        verb, short, reason = found[1].lower(), found[2].lower(), (found[3] or "").strip()
        session = session_id(message.session, self._host.extensions.masker)
        waiting: list[Proposal] = await self._host.approvals.pending(principal)
        meant = [one.id for one in waiting if one.id.startswith(short) and one.session == session]
        if len(meant) != 1:
            return f"Nothing that waits for you here is called {short}."
        return await self._carry_out(verb, meant[0], reason, principal)

    async def _carry_out(self, verb: str, id: str, reason: str, principal: Principal) -> str:
        if verb == "approve":
            result = await self._host.approvals.approve(id, by=principal)
            return "Approved." if result.success else f"Approved, but it failed: {result.content}"
        try:
            await self._host.approvals.reject(id, reason or _REASON, by=principal)
        except ProposalError as error:
            return f"It was not rejected: {error}."
        return "Rejected."

    # -- the endpoint ------------------------------------------------------------------------------------------

    def _client(self, channel: str) -> Any:
        if channel not in self._clients:
            self._clients[channel] = self._made_client(channel)
        return self._clients[channel]

    def _made_client(self, channel: str) -> Any:
        said = self._settings[channel]
        openai = import_extra("openai", "openai")
        found = self._host.extensions.secret_sources.find(said.key, {})
        if found is None and said.base_url is None:
            raise ChannelError(f"channel {channel}: the secret {said.key!r} for the model's endpoint has no value")
        return openai.AsyncOpenAI(api_key="none" if found is None else found[0], base_url=said.base_url)

    async def close(self) -> None:
        """Close the clients."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()


def reply_to(message: ChannelMessage, text: str) -> ChannelMessage:
    """Return *text* as the answer to a message."""
    return ChannelMessage(channel=message.channel, conversation=message.conversation, text=text, reply_to=message.id)


def _question(proposal: Proposal, *, is_asked: bool) -> str:
    short, preview = proposal.id[:_SHORT_ID], str(proposal.preview)
    what = f"{proposal.tool} ({proposal.effect}): {preview[:_SHOWN]}{'...' if len(preview) > _SHOWN else ''}"
    flagged = "".join(f"\nFlagged: {warning}" for warning in proposal.flagged)
    how = f"Answer `approve {short}` or `reject {short}`." if is_asked else "It waits for approval."
    return f"{what}{flagged}\n{how}"
