"""What a guardrail is given, and what it is asked about."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, Protocol

from agentos.model.guarding import GuardedCall, Stage
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.payloads.foreign_job import ForeignJob
from agentos.payloads.payload_context import PayloadContext
from agentos.stacks.entry import Entry

CallTool = Callable[["GuardContext", str, Any], Awaitable[ToolResult]]
"""Runs a call that a guardrail makes."""


class AskedGuard(Protocol):
    """The guardrail that is asked, as far as its context needs it."""

    @property
    def id(self) -> str:
        """Return its id."""
        ...

    @property
    def pack(self) -> str:
        """Return the pack that brought it."""
        ...

    @property
    def entry(self) -> Entry:
        """Return its entry."""
        ...

    @property
    def call_tool(self) -> CallTool:
        """Return what runs the calls that it makes."""
        ...


asked_within: ContextVar["GuardContext | None"] = ContextVar("agentos_asked_guard", default=None)
"""The guardrail that is being asked in this task or thread."""


class UnusableReplacementError(ValueError):
    """A replacement that can't be put in the place of what a guardrail was asked about."""


class GuardSubject:
    """What guardrails are asked about: a text, unless a subclass says otherwise."""

    __slots__ = ("depth", "is_final", "preceding", "principal", "session", "stage", "value")
    noun: ClassVar[str] = "text"

    def __init__(self, stage: Stage, value: Any, principal: Principal, session: Mapping[str, Any]) -> None:
        self.stage = stage
        self.value = value
        self.principal = principal
        self.session = session
        self.depth = 0
        self.preceding = ""
        self.is_final = True

    @property
    def tool(self) -> str | None:
        """Return the fully-qualified id of the tool that is called."""
        return None

    @property
    def call_id(self) -> str | None:
        """Return the caller's own name for the call."""
        return None

    def guarded_call(self) -> GuardedCall | None:
        """Return the call that this is about."""
        return None

    def shown(self, context: "GuardContext") -> Any:  # noqa: ARG002 - a text is the same for all
        """Return what one guardrail sees."""
        return self.value

    def taken(self, replacement: Any) -> Any:
        """Return what a replacement comes to; raise UnusableReplacementError if it can't be used."""
        if not isinstance(replacement, str):
            raise UnusableReplacementError(f"expected a text, got {type(replacement).__name__}")
        return str(replacement)


class GuardContext(PayloadContext):
    """What a guardrail is given with what it is asked about."""

    __slots__ = ("_call", "_subject", "guard")

    above: "GuardContext | None" = None
    """The guardrail that made the call that this one is asked about."""
    is_open = False
    """It is being asked, and may make calls: a task that it leaves behind calls as anybody."""
    job: "ForeignJob | None" = None
    """What runs it, if that is a thread."""

    def __init__(self, guard: AskedGuard, subject: GuardSubject) -> None:
        self.guard = guard
        self._subject = subject
        self._call: GuardedCall | None = None

    @property
    def _entry(self) -> Entry:  # type: ignore[override]
        return self.guard.entry

    @property
    def principal(self) -> Principal:
        """Return for whom it is asked."""
        return self._subject.principal

    @property
    def session(self) -> Mapping[str, Any]:
        """Return the session of the caller."""
        return self._subject.session

    @property
    def stage(self) -> Stage:
        """Return at which stage it is asked."""
        return self._subject.stage

    @property
    def call(self) -> GuardedCall | None:
        """Return the call that it is asked about; None for a text."""
        if self._call is None:
            self._call = self._subject.guarded_call()
        return self._call

    def show(self, call: GuardedCall) -> None:
        """Have this as the call that it is asked about."""
        self._call = call

    @property
    def preceding(self) -> str:
        """Return what of a stream was let out before, as far as it is kept: the last 4,096 characters."""
        return self._subject.preceding

    @property
    def is_final(self) -> bool:
        """Tell whether this is all: False while more of a stream may come."""
        return self._subject.is_final

    def call_tool(self, name: str, arguments: Any = None) -> Any:
        """Call a tool as the principal of this guardrail's pack; the call is not guarded by this guardrail.

        Await it in an async guardrail. A sync one, which runs in a thread, gets the result itself.
        """
        call = self.guard.call_tool(self, name, arguments)
        if self.job is None:
            return call
        with self.job.waiting():
            return asyncio.run_coroutine_threadsafe(_awaited(call), self.job.future.get_loop()).result()

    def chain(self) -> list[AskedGuard]:
        """Return the guardrails that are being asked within one another, this one last; none that has ended."""
        above = [] if self.above is None else self.above.chain()
        return [*above, self.guard] if self.is_open else above


class WaitingGuardContext(GuardContext):
    """The same for one that may wait for something, such as a call that it makes."""

    __slots__ = ("above", "is_open", "job")

    def __init__(self, guard: AskedGuard, subject: GuardSubject, above: GuardContext | None) -> None:
        super().__init__(guard, subject)
        self.above = above
        self.is_open = True
        self.job = None


async def _awaited(call: Awaitable[ToolResult]) -> ToolResult:
    return await call
