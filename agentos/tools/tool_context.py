"""What a tool is given with its arguments."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from agentos.model.pack_context import PackLogger, SharedServices
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.tools.tool import Tool

if TYPE_CHECKING:
    from agentos.tools.ready import Prepared


class Door(Protocol):
    """Where a tool's own calls go, and what it tells while it runs."""

    async def call_from(self, context: "ToolContext", name: str, arguments: Any) -> ToolResult:
        """Run a call that a tool makes."""
        ...

    async def below_from(self, context: "ToolContext", arguments: Any) -> ToolResult:
        """Run the tool beneath the one that asks."""
        ...

    def tell(self, context: "ToolContext", kind: str, told: Mapping[str, Any]) -> "Callable[[], Any]":
        """Post an event of the call; return what delivers it."""
        ...


@attrs.frozen
class Approval:
    """What a person approved: a proposal, and the tools beneath, by id and definition, that it showed."""

    proposal: str
    beneath: frozenset[tuple[str, str]] = frozenset()


class _Told:
    """Something already told; awaiting it waits until listeners have heard it."""

    __slots__ = ("_deliver",)

    def __init__(self, deliver: Callable[[], Any]) -> None:
        self._deliver = deliver

    def __await__(self) -> Generator[Any, None, None]:
        coroutine = self._deliver()
        if coroutine is not None:
            yield from coroutine.__await__()


class ToolContext:
    """What a tool is given: for whom it runs, with what, and how to reach the rest of the house."""

    __slots__ = ("_approval", "_door", "_loop", "_prepared", "cancelled", "depth", "principal", "session", "tool_call")

    def __init__(
        self,
        door: Door,
        prepared: "Prepared",
        principal: Principal,
        tool_call: ToolCall,
        session: Mapping[str, Any],
        depth: int = 0,
    ) -> None:
        self._door = door
        self._prepared = prepared
        self._loop: asyncio.AbstractEventLoop | None = None
        self.principal = principal
        self.tool_call = tool_call
        self.session = session
        self.depth = depth
        self._approval: Approval | None = None
        self.cancelled = False
        """True when nobody waits for the result any more. A sync tool that takes long looks at it."""

    @property
    def approved(self) -> str | None:
        """Return the id of the proposal by which a person approved this very call."""
        return None if self._approval is None else self._approval.proposal

    @property
    def tool(self) -> Tool:
        """Return the tool that runs."""
        return self._prepared.tool

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the pack's options, with those of overrides merged in."""
        return self._prepared.entry.options

    @property
    def services(self) -> SharedServices:
        """Return the pack's shared services."""
        return self._prepared.owner.context.services

    @property
    def logger(self) -> PackLogger:
        """Return the pack's logger; known secret values are masked in what it writes."""
        return self._prepared.owner.context.logger

    def secret(self, id: str) -> str | None:
        """Return a secret that the pack's descriptors declare, or None if it is missing."""
        return self._prepared.owner.scope.read(id)

    def mask(self, text: str) -> str:
        """Return *text* without any known secret value: for foreign text that is cut, since half a value goes unseen.

        What a tool returns or raises is masked anyway, whole.
        """
        return self._prepared.owner.scope.mask(text)

    def report_progress(self, done: float, total: float | None = None, message: str = "") -> _Told:
        """Tell the host how far the call is. Await it on the event loop; from a thread just call it."""
        told = {"done": done, "total": total, "message": message}
        return _Told(self._door.tell(self, "progress", told))

    def send_content(self, text: str) -> _Told:
        """Tell the host a part of the result before the whole is there."""
        return _Told(self._door.tell(self, "content", {"content": text}))

    def call(self, name: str, arguments: Any = None) -> Any:
        """Call another tool for the same principal, through the same pipeline.

        Await it in an async tool. A sync tool, which runs in a thread, gets the result itself.
        """
        return self._result(self._door.call_from(self, name, arguments))

    def below(self, arguments: Any = None) -> Any:
        """Call the tool beneath this one on its stack, looked up now, through the same checks: as `call`."""
        return self._result(self._door.below_from(self, arguments))

    def _result(self, call: Coroutine[Any, Any, ToolResult]) -> Any:
        if self._loop is None:
            return call
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    def __repr__(self) -> str:
        return f"<ToolContext {self._prepared.qualified_id} for {self.principal.id}>"
