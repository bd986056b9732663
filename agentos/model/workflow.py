"""How a function becomes a workflow, and what a run of one is."""

import inspect
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeVar

import attrs

from agentos.errors import DescriptorError
from agentos.model.field_checks import fault_of_name, frozen_mapping
from agentos.model.guarding import fault_of_seconds

WORKFLOW_MARK = "__workflow__"
"""The attribute that a function gets by `@workflow`."""
_VERSION = re.compile(r"[\w.+-]{1,64}")

F = TypeVar("F", bound=Callable[..., Any])


class RunState(StrEnum):
    """How far a run is."""

    QUEUED = "queued"
    """It was started, and no host has begun with it."""
    RUNNING = "running"
    WAITING = "waiting"
    """For a person, a signal, a time or another run; no task is held meanwhile."""
    PAUSED = "paused"
    """Until `resume`."""
    HELD = "held"
    """No host has the workflow in the version that the run began with; it goes on when one does."""
    UNKNOWN = "unknown"
    """Whether a tool that must not run twice took effect is unknown; a person decides with `resume`."""
    CANCELLING = "cancelling"
    """Steps are being undone, because it was cancelled."""
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Tell whether nothing will happen any more."""
        return self in _OVER


_OVER = frozenset({RunState.FINISHED, RunState.FAILED, RunState.CANCELLED})

StepState = Literal["running", "waiting", "done", "failed", "skipped", "unknown"]
StepKind = Literal["call", "step", "execute", "sleep", "approve", "signal", "workflow", "skip", "undo", "now"]


@attrs.frozen(kw_only=True)
class StepRecord:
    """One step of a run, as far as it is recorded."""

    key: str
    """Its place in the run, such as `2` or, within a gather, `2.0.1`: the same in every attempt to run it."""
    name: str
    kind: StepKind
    state: StepState
    tool: str | None = None
    output: Any = attrs.field(default=None, repr=False)
    error: Mapping[str, Any] | None = None
    """What went wrong: `type`, `message` and `details`."""
    reason: str | None = None
    """Why it waits, or was skipped."""
    proposal: str | None = None
    """The id of the proposal that it waits for, or waited for."""
    attempts: int = 1
    started_at: datetime | None = None
    ended_at: datetime | None = None


@attrs.frozen(kw_only=True)
class WorkflowRun:
    """A run of a workflow, as it was when it was read."""

    id: str
    workflow: str
    version: str
    state: RunState
    inputs: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)
    output: Any = attrs.field(default=None, repr=False)
    error: Mapping[str, Any] | None = None
    """What went wrong: `type`, `message` and, where it was a step, `step`."""
    steps: tuple[StepRecord, ...] = attrs.field(default=(), repr=False)
    """In the order in which they began. `workflows.list` leaves them out."""
    reason: str | None = None
    """Why it is in this state: what it waits for, why it is held, or what is unknown."""
    principal: str | None = None
    """The key of whom its tools are called for."""
    started_by: str | None = None
    """The key of who started it."""
    key: str | None = None
    parent: str | None = None
    """The id of the run that started it, if one did."""
    created_at: datetime | None = None
    updated_at: datetime | None = None


@attrs.frozen(kw_only=True)
class WorkflowSettings:
    """What a workflow says of itself."""

    version: str = "1"
    principal: str | None = None
    """The id of the principal of the manifest that its tools are called for; None: who starts it says which."""
    timeout: float | None = None
    """After how many seconds since its start a run fails, waiting included; None: never."""
    name: str | None = None
    """Its id; None: the function's own name."""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.version, str) or not _VERSION.fullmatch(self.version):
            raise DescriptorError(
                f"@workflow: version: expected a text such as '1' of at most 64 letters, digits, dots and dashes, "
                f"got {self.version!r}"
            )
        for field in ("principal", "name"):
            value = getattr(self, field)
            if value is not None and (fault := fault_of_name(value)):
                raise DescriptorError(f"@workflow: {field}: {fault}")
        if self.timeout is not None and (fault := fault_of_seconds(self.timeout)):
            raise DescriptorError(f"@workflow: timeout: {fault}")


def workflow(
    *, version: str = "1", principal: str | None = None, timeout: float | None = None, name: str | None = None
) -> Callable[[F], F]:
    """Make a workflow of an async function, which goes into a pack's `descriptors` as it is; its name is the id.

    It is called with a `Flow` and, by name, with the inputs. It must be deterministic: what lasts, takes effect, or
    depends on anything but the inputs goes through the flow. Change *version* whenever its steps change: runs of
    another version go on with that one where it is registered, and are held where it is not.
    principal: the id of the principal of the manifest (`[principals.x]`) that its tools are called for. Without one,
    whoever starts a run has to say: see `host.workflows.start`.
    """
    settings = WorkflowSettings(version=version, principal=principal, timeout=timeout, name=name)

    def mark(function: F) -> F:
        if not inspect.iscoroutinefunction(function):
            shown = getattr(function, "__qualname__", repr(function))
            raise DescriptorError(f"@workflow: {shown}: expected an async function, whose first parameter is the flow")
        setattr(function, WORKFLOW_MARK, settings)
        return function

    return mark


def workflow_settings(payload: Any) -> WorkflowSettings | None:
    """Return what a function with `@workflow` says of itself; None of anything else."""
    said = getattr(payload, WORKFLOW_MARK, None)
    return said if isinstance(said, WorkflowSettings) else None
