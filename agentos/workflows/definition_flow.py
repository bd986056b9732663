"""A definition as a function over a Flow: workflows as data run the way that those as code do.

Every task is one branch of one `gather`. It waits for the tasks that it needs, and then does one step, which has the
task's id as its name. So a task begins as soon as it can, and the steps are in the same places in every attempt.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agentos.errors import StepFailedError
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.model.workflow_definition import Task, UndoCall, WorkflowDefinition
from agentos.workflows.conditions import BadConditionError, holds, parse_condition
from agentos.workflows.flow import Flow
from agentos.workflows.task_order import handled_of, last_of, references_of_when, waiting_of
from agentos.workflows.task_references import BadReferenceError, Reference, filled, places_in, read

SUCCEEDED, FAILED, SKIPPED = "succeeded", "failed", "skipped"
"""What `${task.state}` is."""
_TIMES = ("time", "date")


async def run_definition(definition: WorkflowDefinition, flow: Flow, inputs: Mapping[str, Any]) -> Any:
    """Do the tasks of *definition* by *flow* and return its output; raise StepFailedError if it failed.

    It fails if a task failed whose state no other task asks for, once all have ended.
    """
    run = _DefinitionRun(definition, flow, inputs)
    if _names_the_time(definition):
        now = await flow.now()
        run.scope["run"] |= {"time": now.isoformat(timespec="seconds"), "date": now.date().isoformat()}
    await flow.gather(*(run.branch(task) for task in definition.tasks))
    return run.output()


def _names_the_time(definition: WorkflowDefinition) -> bool:
    """Tell whether something in a definition names the time of the run, which is a step to be recorded."""
    texts = [(task.human, task.arguments, task.undo and task.undo.arguments) for task in definition.tasks]
    places = places_in([*texts, definition.output])
    named = [one for place in places for one in getattr(place, "references", ())]
    named += [one for task in definition.tasks for one in references_of_when(task)]
    return any(one.root == "run" and one.path[:1] and one.path[0] in _TIMES for one in named)


class _Skipped(Exception):  # noqa: N818 - no error, and caught where it is raised
    """A task that is not done; the message says why."""


class _DefinitionRun:
    """One run of one definition, as far as it is."""

    def __init__(self, definition: WorkflowDefinition, flow: Flow, inputs: Mapping[str, Any]) -> None:
        self._definition = definition
        self._flow = flow
        self._ended = {task.id: flow.milestone() for task in definition.tasks}
        self._stopped: dict[str, BaseException] = {}
        known = {"id": flow.id, "workflow": flow.workflow, "version": flow.version, "principal": flow.principal}
        self.scope: dict[str, Any] = {"inputs": inputs, "run": known}

    async def branch(self, task: Task) -> None:
        """Do one task, once those that it needs have ended."""
        try:
            for need in waiting_of(task).needs:
                await self._ended[need].reached()
                if (stopped := self._stopped.get(need)) is not None:
                    raise stopped  # the run stops here for a while, or for good: the task has neither failed nor begun
            self.scope[task.id] = await self._outcome(task)
        except BaseException as error:
            self._stopped[task.id] = error
            raise
        finally:
            self._ended[task.id].reach()

    async def _outcome(self, task: Task) -> dict[str, Any]:
        """Do a task and return what references to it name."""
        try:
            self._see_whether_to_skip(task)
            return await self._done(task)
        except _Skipped as skipped:
            await self._flow.skipped(task.id, str(skipped))
            return _outcome(SKIPPED)
        except StepFailedError as error:
            return _outcome(FAILED, error={"type": error.type, "message": error.message, "details": error.details})

    def _see_whether_to_skip(self, task: Task) -> None:
        waiting = waiting_of(task)
        for need in waiting.needs:
            state = self.scope[need]["state"]
            if state != SUCCEEDED and need not in waiting.asked:
                raise _Skipped(f"the task {need!r}, which it needs, {'failed' if state == FAILED else 'was skipped'}")

    async def _done(self, task: Task) -> dict[str, Any]:
        try:
            if task.when is not None and not holds(parse_condition(task.when), self.scope):
                raise _Skipped(f"its condition does not hold: {task.when}")
            arguments = filled(task.arguments, self._look_up)
            text = filled(task.human, self._look_up)
        except (BadReferenceError, BadConditionError) as error:
            # Recorded as the step that failed, so that the run shows it.
            await self._flow.step(_raise, type(error).__name__, str(error), name=task.id)
            raise AssertionError("unreachable") from None
        return await self._act(task, arguments, text)

    async def _act(self, task: Task, arguments: dict[str, Any], text: str | None) -> dict[str, Any]:
        flow, undo = self._flow, self._undo(task)
        settings: dict[str, Any] = {"retry": task.retry, "timeout": task.timeout, "undo": undo, "name": task.id}
        if task.tool is not None:
            result = await flow.call(task.tool, arguments, **settings)
            return _outcome(SUCCEEDED, result.output, content=result.content)
        if task.executor is not None:
            return _outcome(SUCCEEDED, await flow.execute(task.executor, task, arguments, **settings))
        if task.workflow is not None:
            return _outcome(SUCCEEDED, await flow.run(task.workflow, arguments, undo=undo, name=task.id))
        approval = await flow.approve(str(text), details=arguments or None, name=task.id)
        return _outcome(SUCCEEDED, dict(approval))

    def _undo(self, task: Task) -> Callable[[Any], ToolCall | None] | None:
        undo = task.undo
        return None if undo is None else lambda result: self._undoing(task, undo, result)

    def _undoing(self, task: Task, undo: UndoCall, result: Any) -> ToolCall:
        output = result.output if isinstance(result, ToolResult) else result
        content = result.content if isinstance(result, ToolResult) else None
        scope = {**self.scope, task.id: _outcome(SUCCEEDED, output, content=content)}
        return ToolCall(undo.tool, filled(undo.arguments, lambda reference: read(scope, reference)))

    def _look_up(self, reference: Reference) -> Any:
        return read(self.scope, reference)

    # -- the end -----------------------------------------------------------------------------------------------------

    def output(self) -> Any:
        """Return what the run returns; raise StepFailedError if it failed."""
        handled = handled_of(self._definition.tasks)
        failed = [one.id for one in self._definition.tasks if self.scope[one.id]["state"] == FAILED]
        if final := [id for id in failed if id not in handled]:
            error = self.scope[final[0]]["error"]
            more = f" (and so did {', '.join(final[1:])})" if len(final) > 1 else ""
            message = f"the task {final[0]!r} failed: {error['message']}{more}"
            raise StepFailedError(final[0], error["type"], message, error["details"])
        if self._definition.output is None:
            return {id: self.scope[id]["output"] for id in last_of(self._definition.tasks)}
        return self._filled_output()

    def _filled_output(self) -> Any:
        try:
            return filled(self._definition.output, self._of_what_was_done)
        except BadReferenceError as error:
            raise StepFailedError("output", type(error).__name__, f"output: {error}") from None

    def _of_what_was_done(self, reference: Reference) -> Any:
        """Return what a reference of the output names: null of a task that was not done."""
        held = self.scope.get(reference.root)
        is_task = reference.root in self._ended
        if is_task and held is not None and held["state"] != SUCCEEDED and reference.path[:1] != ("state",):
            return held["error"] if reference.path == ("error",) else None
        return read(self.scope, reference)


def _outcome(
    state: str, output: Any = None, *, content: str | None = None, error: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {"state": state, "output": output, "content": content, "error": error}


_REFUSALS: Mapping[str, type[Exception]] = {
    "BadReferenceError": BadReferenceError,
    "BadConditionError": BadConditionError,
}


async def _raise(kind: str, message: str) -> None:
    raise _REFUSALS[kind](message)
