"""The kind `hitl-handler`: asked about a call that waits for approval, and may answer for a person.

A payload is a function, or an object with a method `on_proposal`: sync or async, called with the Proposal; a sync one
in a thread, as sync tools are. It returns an Answer, or None to leave the proposal waiting for somebody else. The
active handler of every id is asked, in the order of first registration, until one answers. One that raises has not
answered.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentos.base.foreign import Border, is_a, settled, type_name
from agentos.calls.threads import NO_OUTCOME, Outcome, ThreadJob, ToolThreads
from agentos.errors import DescriptorError
from agentos.model.crossing import Crossing, RemotePayload
from agentos.model.descriptor import Descriptor
from agentos.model.kind import Kind, declare_own_kind
from agentos.secrets.masking import MaskingLogger

if TYPE_CHECKING:
    from agentos.access.proposals import Proposal
    from agentos.calls.answers import Answer
    from agentos.extensions.manager import ExtensionManager


def _callback(payload: Any) -> "Callable[[Proposal], Any] | None":
    method = getattr(payload, "on_proposal", None)
    found = method if method is not None else payload
    return found if callable(found) and not isinstance(found, type) else None


def _check(descriptor: Descriptor[Any]) -> None:
    if _callback(descriptor.payload) is None:
        raise DescriptorError(
            f"hitl-handler {descriptor.id!r}: expected a function of a proposal, or an object with on_proposal, "
            f"got {type(descriptor.payload).__name__}"
        )


class ProposalHandlers:
    """Asks the handlers in force about a proposal."""

    def __init__(self, manager: "ExtensionManager") -> None:
        self._registry = manager.registry(HITL_HANDLER.name)
        self._threads = ToolThreads()
        self._logger = MaskingLogger("agentos.approvals", manager.masker)

    async def ask(self, proposal: "Proposal") -> "Answer | None":
        """Return the first answer; None if nobody has one."""
        for active in self._registry.list_active():
            with self._registry.using(active.id) as entry:
                answer = None if entry is None else await self._ask_one(entry.payload, active.id, proposal)
            if answer is not None:
                return answer
        return None

    async def _ask_one(self, payload: Any, id: str, proposal: "Proposal") -> "Answer | None":
        from agentos.calls.answers import Answer

        answer: Any = None
        with Border() as border:  # a handler is foreign code; without its answer the proposal waits
            callback = _callback(payload)
            answer, border.error = NO_OUTCOME if callback is None else await self._call(callback, proposal)
        if border.error is not None:
            self._logger.error("hitl-handler %r raised on proposal %s", id, proposal.id, exc_info=border.error)
            return None
        if answer is None or is_a(answer, Answer):
            return answer
        self._logger.error("hitl-handler %r answered with a %s; expected an Answer", id, type_name(answer))
        return None

    async def _call(self, callback: "Callable[[Proposal], Any]", proposal: "Proposal") -> Outcome:
        if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(getattr(callback, "__call__", None)):  # noqa: B004 - its kind
            return await callback(proposal), None
        job = ThreadJob(lambda: callback(proposal))
        self._threads.start(job)
        try:
            answer, error = await job.future
        except asyncio.CancelledError:
            self._threads.abandon(job)
            raise
        return await settled(answer), error


_CROSSING = Crossing(
    describe=lambda _: {},
    functions=lambda payload: {"on_proposal": getattr(payload, "on_proposal", payload)},
    proxy=lambda _, functions: RemotePayload(functions),
)

HITL_HANDLER = declare_own_kind(
    Kind(
        "hitl-handler",
        check=_check,
        reader="the approvals, about every call that waits for one",
        crossing=_CROSSING,
    )
)
