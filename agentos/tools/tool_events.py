"""What tools tell: calls that begin and end, progress, parts of content, and changes of what is offered."""

from typing import ClassVar

import attrs

from agentos.extensions.event import Event


@attrs.frozen(kw_only=True)
class ToolEvent(Event):
    """Something happened in a call."""

    tool: str
    """The fully-qualified id."""
    call_id: str | None
    principal: str


@attrs.frozen(kw_only=True)
class ToolStarted(ToolEvent):
    """A call passed every check and runs."""

    type: ClassVar[str] = "tool:started"


@attrs.frozen(kw_only=True)
class ToolProgress(ToolEvent):
    """How far a call is."""

    type: ClassVar[str] = "tool:progress"
    done: float
    total: float | None
    message: str


@attrs.frozen(kw_only=True)
class ToolContent(ToolEvent):
    """A part of the result, before the whole is there."""

    type: ClassVar[str] = "tool:content"
    content: str


@attrs.frozen(kw_only=True)
class ToolApproval(ToolEvent):
    """A call waits for a person: its proposal was made."""

    type: ClassVar[str] = "tool:approval"
    proposal: str
    reason: str


@attrs.frozen(kw_only=True)
class ToolFinished(ToolEvent):
    """A call ended in its one result. `error` is the type of its error, if it failed."""

    type: ClassVar[str] = "tool:finished"
    success: bool
    error: str | None
    seconds: float


@attrs.frozen(kw_only=True)
class ToolsChanged(Event):
    """What is offered changed: once for every change, with the whole difference, by tool names."""

    type: ClassVar[str] = "tools:changed"
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
