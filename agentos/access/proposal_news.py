"""News of proposals: the store is compared with what was told last, so it does not matter which process decided."""

import asyncio
from collections.abc import Iterator
from typing import Any

from agentos.access.proposal_events import (
    ProposalApplied,
    ProposalApproved,
    ProposalEdited,
    ProposalEvent,
    ProposalExpired,
    ProposalRejected,
)
from agentos.access.proposals import Proposal, Proposals
from agentos.errors import StoreError
from agentos.extensions.events import EventBus
from agentos.secrets.masking import MaskingLogger

_ENDED = 10_000
"""Of how many proposals it is remembered that their end was told."""


class ProposalNews:
    """Posts an event for every step that a proposal took since it was looked at last."""

    def __init__(self, proposals: Proposals, events: EventBus, logger: MaskingLogger) -> None:
        self._proposals = proposals
        self._events = events
        self._logger = logger
        self._turn = asyncio.Lock()
        self._waiting: dict[str, str] = {}
        """The proposals that wait or are being applied, by id, and the state of each that was told."""
        self._ended: dict[str, None] = {}
        proposals.after_move = self.look

    @property
    def is_awaited(self) -> bool:
        """Tell whether somebody listens, and something waits."""
        return self._events.is_heard and bool(self._waiting)

    def made(self, proposal: Proposal) -> None:
        """Note that a proposal was made here."""
        self._waiting[proposal.id] = proposal.state

    async def look(self, moved: str | None = None) -> None:
        """Tell what became of proposals; *moved* is one that took a step here."""
        if not self._events.is_heard:
            self._waiting.clear()
            return
        try:
            await self._proposals.expire()
            async with self._turn:  # two who look at once would tell the same
                await self._compare(moved)
        except StoreError as error:
            self._logger.warning("what became of proposals can't be read: %s", error)
        await self._events.deliver()

    async def _compare(self, moved: str | None) -> None:
        now = await self._proposals.unsettled()
        told = {**({} if moved is None else {moved: "proposed"}), **self._waiting}
        for id, before in told.items():
            if id not in self._ended and now.get(id, "") != before:
                await self._tell(id, before)
        self._waiting = now

    async def _tell(self, id: str, before: str) -> None:
        stored = await self._proposals.by_id(id)
        if stored is None or not stored.is_genuine:
            return
        replaced_by = await self._proposals.successor(id) if stored.proposal.state == "rejected" else None
        for event in _steps(stored.proposal, before, replaced_by):
            self._events.post(event)
        if stored.proposal.state not in ("proposed", "applying"):
            self._ended[id] = None
            while len(self._ended) > _ENDED:
                del self._ended[next(iter(self._ended))]


def _steps(proposal: Proposal, before: str, replaced_by: str | None) -> Iterator[ProposalEvent]:
    """Yield an event for each step from the state *before* to that of now."""
    facts: dict[str, Any] = {
        "proposal": proposal.id,
        "tool": proposal.tool,
        "principal": proposal.principal.key,
        "session": proposal.session,
        "call_id": proposal.call_id,
        "by": proposal.decided_by,
    }
    state = proposal.state
    if state == "expired":
        yield ProposalExpired(**facts)
    elif state == "rejected" and replaced_by is not None:
        yield ProposalEdited(**facts, replaced_by=replaced_by)
    elif state == "rejected":
        yield ProposalRejected(**facts, reason=proposal.note or "")
    elif state != "proposed" and before == "proposed":
        yield ProposalApproved(**facts)
    if state in ("applied", "failed", "unknown"):
        yield ProposalApplied(**facts, state=state)
