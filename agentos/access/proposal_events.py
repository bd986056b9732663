"""What became of calls that wait for a person, told to observers: whoever decided, here or in another process."""

from typing import ClassVar

import attrs

from agentos.extensions.event import Event


@attrs.frozen(kw_only=True)
class ProposalEvent(Event):
    """Something became of a proposal. `by` is who decided, if somebody did."""

    proposal: str
    tool: str
    """The fully-qualified id."""
    principal: str
    session: str | None
    call_id: str | None
    by: str | None


@attrs.frozen(kw_only=True)
class ProposalApproved(ProposalEvent):
    """A person approved a call; it begins."""

    type: ClassVar[str] = "proposal:approved"


@attrs.frozen(kw_only=True)
class ProposalRejected(ProposalEvent):
    """A person refused a call, or whoever made it cancelled it."""

    type: ClassVar[str] = "proposal:rejected"
    reason: str


@attrs.frozen(kw_only=True)
class ProposalEdited(ProposalEvent):
    """A person changed a call's arguments: it waits as another proposal."""

    type: ClassVar[str] = "proposal:edited"
    replaced_by: str


@attrs.frozen(kw_only=True)
class ProposalExpired(ProposalEvent):
    """Nobody decided in time."""

    type: ClassVar[str] = "proposal:expired"


@attrs.frozen(kw_only=True)
class ProposalApplied(ProposalEvent):
    """An approved call ended. `state` is `applied`, `failed`, or `unknown` if its host ended before it did."""

    type: ClassVar[str] = "proposal:applied"
    state: str
