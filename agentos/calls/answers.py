"""What somebody who is told of a proposal says to it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, get_args

import attrs

from agentos.access.proposals import Proposal
from agentos.model.principal import Principal

_Word = Literal["approve", "reject", "edit"]


@attrs.frozen
class Answer:
    """What somebody who was told of a proposal says to it."""

    decision: _Word
    reason: str = ""
    arguments: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    by: Principal | str | None = None

    @classmethod
    def approve(cls, by: Principal | str | None = None) -> "Answer":
        """Say that it may run."""
        return cls("approve", by=by)

    @classmethod
    def reject(cls, reason: str, by: Principal | str | None = None) -> "Answer":
        """Say that it must not run, and why."""
        return cls("reject", reason, by=by)

    @classmethod
    def edit(cls, arguments: Mapping[str, Any], by: Principal | str | None = None) -> "Answer":
        """Say that it may run with other arguments."""
        return cls("edit", arguments=arguments, by=by)

    @property
    def is_valid(self) -> bool:
        """Tell whether it says one of the three things that can be said."""
        return self.decision in get_args(_Word)


Ask = Callable[[Proposal], Awaitable[Answer | None]]
"""Tells whoever handles approvals of a proposal; returns the answer, if there is one."""


async def ask_nobody(proposal: Proposal) -> Answer | None:  # noqa: ARG001 - the signature is the contract
    """Answer nothing: the proposal waits."""
    return None
