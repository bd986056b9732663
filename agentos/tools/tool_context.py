"""What a tool is given with its arguments."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from agentos.model.pack_context import Bus, PackLogger, SharedServices
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.tools.tool import Tool

if TYPE_CHECKING:
    from agentos.tools.ready import ReadyTool


@attrs.frozen
class Approval:
    """What a person approved: a proposal, and the tools beneath that it showed."""

    proposal: str
    is_shown: Callable[["ReadyTool"], bool] = attrs.field(eq=False, repr=False)
    """Tell whether a tool beneath is as it was when the proposal was approved."""


class CallUnderWay(Protocol):
    """The part of a call under way that its tool may use."""

    call: ToolCall
    principal: Principal
    session: Mapping[str, Any]
    depth: int
    arguments: dict[str, Any]
    ready: "ReadyTool"
    approval: Approval | None
    is_cancelled: bool

    async def call_nested(self, name: str, arguments: Any) -> ToolResult:
        """Run a call that the tool makes."""
        ...

    async def call_below(self, arguments: Any) -> ToolResult:
        """Run the tool beneath this one."""
        ...

    def wait_in_thread(self, call: Coroutine[Any, Any, ToolResult], loop: asyncio.AbstractEventLoop) -> ToolResult:
        """Run a call that the tool makes from its thread, and wait for it there."""
        ...

    def tell(self, kind: str, loop: asyncio.AbstractEventLoop | None, said: Mapping[str, Any]) -> Callable[[], Any]:
        """Post an event of the call; return what delivers it."""
        ...


class _Notice:
    """Something already posted; awaiting it waits until listeners have heard it."""

    __slots__ = ("_deliver",)

    def __init__(self, deliver: Callable[[], Any]) -> None:
        self._deliver = deliver

    def __await__(self) -> Generator[Any, None, None]:
        coroutine = self._deliver()
        if coroutine is not None:
            yield from coroutine.__await__()


class ToolContext:
    """What a tool is given: for whom it runs, with what, and how to reach other tools and listeners."""

    __slots__ = ("_call", "_loop", "session")

    def __init__(self, call: CallUnderWay) -> None:
        self._call = call
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that the call belongs to, while the tool runs in a thread."""
        self.session = call.session

    @property
    def principal(self) -> Principal:
        """Return who the call is made for."""
        return self._call.principal

    @property
    def tool_call(self) -> ToolCall:
        """Return the call as it was made."""
        return self._call.call

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what the tool is called with, checked and with defaults filled in."""
        return dict(self._call.arguments)

    @property
    def depth(self) -> int:
        """Return how many tools called one another before this one."""
        return self._call.depth

    @property
    def cancelled(self) -> bool:
        """Tell whether nobody waits for the result any more. A sync tool that takes long looks at it."""
        return self._call.is_cancelled

    @property
    def approved(self) -> str | None:
        """Return the id of the proposal by which a person approved this very call."""
        approval = self._call.approval
        return None if approval is None else approval.proposal

    @property
    def tool(self) -> Tool:
        """Return the tool that runs."""
        return self._call.ready.tool

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the pack's options, with those of overrides merged in."""
        return self._call.ready.entry.options

    @property
    def services(self) -> SharedServices:
        """Return the pack's shared services."""
        return self._call.ready.owner.context.services

    @property
    def bus(self) -> Bus:
        """Return the bus, as the pack uses it: for async tools."""
        return self._call.ready.owner.context.bus

    @property
    def logger(self) -> PackLogger:
        """Return the pack's logger; known secret values are masked in what it writes."""
        return self._call.ready.owner.context.logger

    def secret(self, id: str) -> str | None:
        """Return a secret that the pack's descriptors declare, or None if it is missing."""
        return self._call.ready.owner.scope.read(id)

    def mask(self, text: str) -> str:
        """Return *text* without any known secret value: for foreign text that is cut, since half a value goes unseen.

        What a tool returns or raises is masked anyway, whole.
        """
        return self._call.ready.owner.scope.mask(text)

    def report_progress(self, done: float, total: float | None = None, message: str = "") -> _Notice:
        """Tell the host how far the call is. Await it on the event loop; from a thread just call it."""
        return self._tell("progress", {"done": done, "total": total, "message": message})

    def send_content(self, text: str) -> _Notice:
        """Tell the host a part of the result before the whole is there."""
        return self._tell("content", {"content": text})

    def _tell(self, kind: str, said: Mapping[str, Any]) -> _Notice:
        return _Notice(self._call.tell(kind, self._loop, said))

    def call(self, name: str, arguments: Any = None) -> Any:
        """Call another tool for the same principal, through the same steps.

        Await it in an async tool. A sync tool, which runs in a thread, gets the result itself.
        """
        return self._result(self._call.call_nested(name, arguments))

    def below(self, arguments: Any = None) -> Any:
        """Call the tool beneath this one on its stack, looked up now, through the same steps: as `call`.

        A tool that takes what the one beneath takes hands its own arguments on, unless it says others.
        """
        return self._result(self._call.call_below(arguments))

    def _result(self, call: Coroutine[Any, Any, ToolResult]) -> Any:
        return call if self._loop is None else self._call.wait_in_thread(call, self._loop)

    def __repr__(self) -> str:
        return f"<ToolContext {self._call.ready.qualified_id} for {self._call.principal.id}>"
