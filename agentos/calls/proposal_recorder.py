"""The record of an approved call: its proposal."""

from collections.abc import Callable

import attrs

from agentos.access.proposals import Proposals, Stored
from agentos.calls.invocation import Invocation
from agentos.model.tool_call import ToolResult


@attrs.define
class ProposalRecorder:
    """Records an approved call: its proposal is claimed before it begins, and says afterwards what became of it."""

    proposals: Proposals
    stored: Stored
    refuse: Callable[[str], ToolResult]
    """Make the result of a call that came too late."""
    by: str | None
    again: bool
    """It was cut off before, by the end of a host."""
    is_claimed: bool = False
    """The proposal is ours to apply."""

    async def begin(self, invocation: Invocation) -> ToolResult | None:  # noqa: ARG002 - a recorder's signature
        """Take the proposal; say so if somebody else was first."""
        by = self.by or self.stored.proposal.principal.key
        self.is_claimed = await self.proposals.claim(self.stored, by, again=self.again)
        if self.is_claimed:
            return None
        return self.refuse("the proposal was used already, or expired in this moment")

    async def end(self, invocation: Invocation, result: ToolResult) -> None:  # noqa: ARG002 - a recorder's signature
        """Write down what became of it."""
        if self.is_claimed:
            await self.proposals.finish(self.stored, result)

    async def close(self, invocation: Invocation, result: ToolResult) -> None:
        """Write down what became of it elsewhere."""
        if await self.begin(invocation) is None:
            await self.end(invocation, result)
