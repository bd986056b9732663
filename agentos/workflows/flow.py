"""Flow: what a workflow does by it lasts, and is done once."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from agentos.model.tool_call import ToolCall, ToolResult
from agentos.model.workflow_definition import Retry
from agentos.secrets.masking import MaskingLogger

Undo = ToolCall | Callable[[Any], ToolCall | None] | None
"""The call that undoes a step, or a function of the step's result that returns it."""


class Flow(ABC):
    """One run, for the function of its workflow.

    Every method but `gather` is one step: it runs once, what it came to is recorded, and a run that goes on after its
    host died gets what was recorded. Steps of one branch have a fixed order; side by side they go by `gather` alone.
    What a step gives and gets is JSON.

    A step that fails raises StepFailedError, with the type of the error as `type`. `undo` of each step that was done
    is called, the last one first, if the run fails or is cancelled.
    """

    id: str
    """The run's id."""
    workflow: str
    version: str
    principal: str
    """The key of the principal that tools are called for."""
    logger: MaskingLogger

    @abstractmethod
    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        retry: Retry | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - recorded, and counted over restarts
        undo: Undo = None,
        name: str | None = None,
    ) -> ToolResult:
        """Call a tool by the one door, as the workflow's principal, and return its result, which is a success.

        A call that needs approval waits for it, without holding anything. One that is refused by a person raises
        StepFailedError of type `Refused`. A call that was cut off is made again if its tool is idempotent or only
        reads; else the run stops as `unknown` and a person decides.
        timeout: how many seconds an attempt may take; a tool that must not run twice is not tried again after that.
        """

    @abstractmethod
    async def step(
        self,
        function: Callable[..., Any],
        *args: Any,
        retry: Retry | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - recorded, and counted over restarts
        undo: Undo = None,
        name: str | None = None,
    ) -> Any:
        """Call *function*, sync or async, with *args* and return what it returned, which is JSON.

        It may run again if the host dies before its end is recorded.
        """

    @abstractmethod
    async def execute(
        self,
        executor: str,
        task: Any,
        inputs: Mapping[str, Any] | None = None,
        *,
        retry: Retry | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - recorded, and counted over restarts
        undo: Undo = None,
        name: str | None = None,
    ) -> Any:
        """Have the workflow-executor of an id execute *task*, and return what it returned, which is JSON."""

    @abstractmethod
    async def gather(self, *steps: Awaitable[Any], return_exceptions: bool = False) -> list[Any]:
        """Do steps, or coroutines that have steps, side by side and return what they returned, in their order.

        Without *return_exceptions* the first error is raised once all of them have ended.
        """

    @abstractmethod
    async def sleep(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0, name: str | None = None
    ) -> None:
        """Go on after a time, counted from when this was first reached."""

    @abstractmethod
    async def approve(
        self, text: str, *, details: Mapping[str, Any] | None = None, name: str | None = None
    ) -> Mapping[str, Any]:
        """Ask a person, by a proposal in the inbox of all others, and go on once it is approved.

        Returns `{"by", "at", "proposal"}`. Raises StepFailedError of type `Refused` if it is rejected.
        """

    @abstractmethod
    async def wait_for(
        self,
        signal: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - recorded, and counted over restarts
        name: str | None = None,
    ) -> Any:
        """Return the value of the next signal of that name: see `host.workflows.signal`. Each is taken once.

        Raises StepFailedError of type `Timeout` if none came within *timeout* seconds.
        """

    @abstractmethod
    async def run(
        self, workflow: str, inputs: Mapping[str, Any] | None = None, *, undo: Undo = None, name: str | None = None
    ) -> Any:
        """Start another workflow as a run of its own and return its output, once it is finished.

        It has the principal that it declares, and this run's without. Cancelling this run cancels it.
        """

    @abstractmethod
    async def now(self) -> datetime:
        """Return the time, the same whenever this is reached again."""

    @abstractmethod
    async def skipped(self, name: str, reason: str) -> None:
        """Record that something was not done, and why."""

    @abstractmethod
    def milestone(self) -> "Milestone":
        """Return what branches of a `gather` wait for that have to come after another branch. It is not recorded."""


class Milestone(ABC):
    """Reached by one branch of a run, and waited for by others, which take nothing meanwhile."""

    @abstractmethod
    def reach(self) -> None:
        """Let those go on that wait, and whoever comes later."""

    @abstractmethod
    async def reached(self) -> None:
        """Go on once it is reached."""
