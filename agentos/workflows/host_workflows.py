"""Workflows: what a host starts, looks at and decides on."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import attrs

from agentos.model.principal import Principal
from agentos.model.workflow import RunState, WorkflowRun

Missed = Literal["skip", "once", "all"]
"""What becomes of times that a schedule missed because no host was there."""
Decision = Literal["retry", "done", "fail"]


@attrs.frozen(kw_only=True)
class WorkflowSchedule:
    """A workflow that is started again and again."""

    id: str
    workflow: str
    cron: str
    timezone: str = "UTC"
    inputs: Mapping[str, Any] = attrs.field(factory=dict)
    missed: Missed = "once"
    principal: str | None = None
    next_at: datetime | None = None
    last_at: datetime | None = None


class Workflows:
    """`host.workflows`."""

    async def start(
        self,
        workflow: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        principal: Principal | str | None = None,
        key: str | None = None,
    ) -> WorkflowRun:
        """Start a run and return it, once it is stored.

        principal: who starts it. A workflow that declares a principal calls its tools as that one, within what the one
        who starts it may call if that is given; one that declares none calls them as the one given here. Without
        either it is refused: a run never has the rights of the host because nobody was named.
        key: the same workflow started again with the same key is the run that there is already.
        """
        raise NotImplementedError

    async def result(self, id: str) -> Any:
        """Wait until the run is over and return its output; raise WorkflowError if it failed or was cancelled."""
        raise NotImplementedError

    async def get(self, id: str) -> WorkflowRun:
        """Return the run as it is now, with its steps; raise WorkflowError if it is unknown."""
        raise NotImplementedError

    async def list(
        self, *, workflow: str | None = None, state: RunState | str | None = None, limit: int = 100
    ) -> list[WorkflowRun]:
        """Return runs, the newest first, without their steps."""
        raise NotImplementedError

    async def cancel(self, id: str, reason: str = "", *, by: Principal | str | None = None) -> WorkflowRun:
        """Stop a run and undo what it did, as far as its steps say how."""
        raise NotImplementedError

    async def pause(self, id: str) -> WorkflowRun:
        """Let no further step of a run begin, until `resume`."""
        raise NotImplementedError

    async def resume(
        self, id: str, *, unknown: Decision | None = None, output: Any = None, by: Principal | str | None = None
    ) -> WorkflowRun:
        """Go on with a run that is paused, held or unknown.

        unknown: what is decided of a step whose end is unknown: `retry` it, take it for `done` with *output*, or `fail`
        the step.
        """
        raise NotImplementedError

    async def signal(self, id: str, name: str, value: Any = None) -> None:
        """Give a run a value that it waits for, or will wait for, with `flow.wait_for`."""
        raise NotImplementedError

    async def schedule(
        self,
        id: str,
        workflow: str,
        cron: str,
        *,
        timezone: str = "UTC",
        inputs: Mapping[str, Any] | None = None,
        missed: Missed = "once",
        principal: Principal | str | None = None,
    ) -> WorkflowSchedule:
        """Start a workflow by the clock; a schedule of that id is replaced.

        cron: five fields, in *timezone*. missed: whether times that passed while no host was there are skipped, made up
        for once, or all of them (at most 100).
        """
        raise NotImplementedError

    async def unschedule(self, id: str) -> None:
        """Start nothing more by that schedule."""
        raise NotImplementedError

    async def schedules(self) -> Sequence[WorkflowSchedule]:
        """Return the schedules."""
        raise NotImplementedError
