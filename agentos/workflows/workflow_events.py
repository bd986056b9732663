"""What runs of workflows tell whoever runs the host."""

from typing import ClassVar

import attrs

from agentos.extensions.event import Event


@attrs.frozen(kw_only=True)
class WorkflowEvent(Event):
    """Something that happened to a run."""

    run: str
    workflow: str
    version: str


@attrs.frozen(kw_only=True)
class WorkflowStarted(WorkflowEvent):
    """A run was started."""

    type: ClassVar[str] = "workflow:started"
    started_by: str | None = None


@attrs.frozen(kw_only=True)
class WorkflowStepEnded(WorkflowEvent):
    """A step was recorded: `done`, `failed` or `skipped`."""

    type: ClassVar[str] = "workflow:step"
    step: str
    name: str
    kind: str
    state: str
    error: str | None = None


@attrs.frozen(kw_only=True)
class WorkflowWaiting(WorkflowEvent):
    """A run waits for a person, a signal, a time or another run."""

    type: ClassVar[str] = "workflow:waiting"
    reason: str


@attrs.frozen(kw_only=True)
class WorkflowFinished(WorkflowEvent):
    """A run came to its end."""

    type: ClassVar[str] = "workflow:finished"


@attrs.frozen(kw_only=True)
class WorkflowFailed(WorkflowEvent):
    """A run failed; what it did is undone as far as its steps say how."""

    type: ClassVar[str] = "workflow:failed"
    error: str
    message: str


@attrs.frozen(kw_only=True)
class WorkflowCancelled(WorkflowEvent):
    """A run was cancelled, and what it did undone as far as its steps say how."""

    type: ClassVar[str] = "workflow:cancelled"
    reason: str


@attrs.frozen(kw_only=True)
class WorkflowPaused(WorkflowEvent):
    """A run begins no further step until it is resumed."""

    type: ClassVar[str] = "workflow:paused"


@attrs.frozen(kw_only=True)
class WorkflowResumed(WorkflowEvent):
    """A run goes on, by somebody's decision."""

    type: ClassVar[str] = "workflow:resumed"


@attrs.frozen(kw_only=True)
class WorkflowTakenOver(WorkflowEvent):
    """A run goes on here, because the host that ran it is gone."""

    type: ClassVar[str] = "workflow:taken_over"
    owner: str


@attrs.frozen(kw_only=True)
class WorkflowHeld(WorkflowEvent):
    """A run waits for its workflow in the version that it began with."""

    type: ClassVar[str] = "workflow:held"
    reason: str


@attrs.frozen(kw_only=True)
class WorkflowUnknown(WorkflowEvent):
    """Whether a step took effect is unknown, and a person has to decide."""

    type: ClassVar[str] = "workflow:unknown"
    step: str
    reason: str
