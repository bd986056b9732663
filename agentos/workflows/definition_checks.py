"""What is wrong with a definition, all of it at once, before anything of it runs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import attrs

from agentos.base.spelling import did_you_mean
from agentos.errors import Problem, ToolDefinitionError, WorkflowError
from agentos.model.parsing import show_path
from agentos.model.workflow_definition import ACTIONS, ROOTS, Task, WorkflowDefinition
from agentos.schema.explain import TO_OPERATORS, explain
from agentos.schema.validation import BadArguments, Checker, compile_schema
from agentos.schema.work import TooMuchWorkError
from agentos.workflows.conditions import BadConditionError, parse_condition, references_of
from agentos.workflows.schema_paths import fault_of_path
from agentos.workflows.task_order import above, cycles_in, needs_of
from agentos.workflows.task_references import BadPlace, Path, Reference, ReferencePlace, filled, places_in

RUN_FIELDS = ("id", "workflow", "version", "principal", "time", "date")
"""What `${run.x}` may name."""
TASK_FIELDS = ("output", "content", "state", "error")
"""What `${task.x}` may name: what the task returned, what a model would read of it, how it ended, and what failed."""
_SURE = frozenset({"required", "additionalProperties", "type", "propertyNames", "minItems", "maxItems"})
"""What is known to be wrong with a value although parts of it are not there yet."""
_COUNTS_FOR = {"retry": ("tool", "executor"), "timeout": ("tool", "executor"), "undo": ("tool", "executor", "workflow")}
_APPROVAL = {
    "type": "object",
    "properties": {"by": {"type": "string"}, "at": {"type": "string"}, "proposal": {"type": "string"}},
    "additionalProperties": False,
}
_ERROR = {
    "type": "object",
    "properties": {"type": {"type": "string"}, "message": {"type": "string"}, "details": {"type": "object"}},
    "additionalProperties": False,
}
_TEXT = {"type": "string"}


class KnownTool(Protocol):
    """What is known of a tool: a Tool or a ToolInfo has it."""

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its arguments."""
        ...

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """Return the JSON Schema of its output, if it has one."""
        ...


@attrs.frozen(kw_only=True)
class Surroundings:
    """What a definition may name, in the host that is to run it."""

    tool: Callable[[str], KnownTool | None]
    """Returns the tool of a name, as calls name it; None if there is none for the workflow's principal."""
    tool_names: Callable[[], Iterable[str]] = tuple
    """Returns the names of all tools, to say which was probably meant."""
    executors: Collection[str] = ()
    workflows: Mapping[str, Mapping[str, Any] | None] = attrs.field(factory=dict)
    """The JSON Schema of each workflow's inputs, by its id; None if that is not known, as of functions."""
    principals: Collection[str] | None = None
    """The ids of the manifest's principals; None: not known."""


def problems_of(definition: WorkflowDefinition, surroundings: Surroundings | None = None) -> list[Problem]:
    """List what is wrong with *definition*: by itself, and in its *surroundings* if they are given."""
    return list(dict.fromkeys(_Examination(definition, surroundings).problems()))


def problems_of_inputs(definition: WorkflowDefinition, inputs: Mapping[str, Any]) -> list[Problem]:
    """List what is wrong with the *inputs* that a definition is to be started with."""
    try:
        completed_inputs(definition, inputs)
    except BadArguments as error:
        return list(error.problems) or [Problem("inputs", str(error))]
    return []


def completed_inputs(definition: WorkflowDefinition, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return *inputs* with the defaults of the definition filled in; raise BadArguments if they do not fit."""
    try:
        return Checker(definition.inputs, f"the inputs of {definition.id}").arguments(inputs)
    except BadArguments as error:
        at = [Problem(f"inputs{one.path.removeprefix('$')}", one.message) for one in error.problems]
        raise BadArguments(str(error), at) from None


def inputs_to_start(
    definition: WorkflowDefinition, inputs: Mapping[str, Any], surroundings: Surroundings
) -> dict[str, Any]:
    """Return the inputs to start a definition with, defaults filled in; raise WorkflowError with every problem."""
    problems = problems_of(definition, surroundings)
    completed: dict[str, Any] = {}
    try:
        completed = completed_inputs(definition, inputs)
    except BadArguments as error:
        problems += error.problems or [Problem("inputs", str(error))]
    except ToolDefinitionError:
        pass  # its inputs are no schema, which is told already
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        message = f"workflow {definition.id!r} can't be started, {count}:\n{lines}"
        raise WorkflowError(message, type="InvalidWorkflow", problems=problems)
    return completed


class _Examination:
    """One look at one definition."""

    def __init__(self, definition: WorkflowDefinition, surroundings: Surroundings | None) -> None:
        self.definition = definition
        self.around = surroundings
        self.tasks = {task.id: task for task in definition.tasks}
        self.needs = needs_of(definition.tasks)

    def problems(self) -> Iterator[Problem]:
        yield from self._of_the_whole()
        ids = [task.id for task in self.definition.tasks]
        for index, task in enumerate(self.definition.tasks):
            if task.id in ids[:index]:
                yield Problem(f"tasks[{index}].id", f"{task.id!r} stands twice; each task has an id of its own")
            yield from self._of_task(task, ("tasks", index))
        for cycle in cycles_in(self.needs):
            way = " -> ".join(cycle)
            index = ids.index(cycle[0])
            yield Problem(f"tasks[{index}]", f"waits for itself: {way}; leave one of them out of `needs` or references")
        yield from self._of_references(self.definition.output, ("output",))

    def _of_the_whole(self) -> Iterator[Problem]:
        definition = self.definition
        if not definition.tasks:
            yield Problem("tasks", "expected at least one task")
        if definition.inputs.get("type") != "object":
            yield Problem("inputs", "expected a JSON Schema with type 'object'")
        if fault := _fault_of_schema(definition.inputs):
            yield Problem("inputs", fault)
        known = None if self.around is None else self.around.principals
        if known is not None and definition.principal is not None and definition.principal not in known:
            hint = did_you_mean(definition.principal, known)
            yield Problem("principal", f"there is no principal {definition.principal!r}{hint}")

    # -- a task ----------------------------------------------------------------------------------------------------

    def _of_task(self, task: Task, path: Path) -> Iterator[Problem]:
        if len(task.actions) != 1:
            got = " and ".join(task.actions) or "none"
            yield Problem(show_path(path), f"expected exactly one of {', '.join(ACTIONS)}; got {got}")
        for index, need in enumerate(task.needs):
            if need not in self.tasks:
                hint = did_you_mean(need, self.tasks)
                yield Problem(show_path((*path, "needs", index)), f"there is no task {need!r}{hint}")
        for field, actions in _COUNTS_FOR.items():
            if getattr(task, field) is not None and task.actions and not {*actions} & {*task.actions}:
                message = f"counts only for a task with {' or '.join(actions)}"
                yield Problem(show_path((*path, field)), message)
        yield from self._of_when(task, (*path, "when"))
        for name in ("human", "arguments"):
            yield from self._of_references(getattr(task, name), (*path, name))
        if task.undo is not None:
            done = {task.id, *above(task.id, self.needs)}
            yield from self._of_references(task.undo.arguments, (*path, "undo", "arguments"), done)
        if self.around is not None:
            yield from self._of_action(task, path, self.around)

    def _of_when(self, task: Task, path: Path) -> Iterator[Problem]:
        if task.when is None:
            return
        try:
            found = list(references_of(parse_condition(task.when)))
        except BadConditionError as error:
            yield Problem(show_path(path), str(error))
            return
        for reference in found:
            if fault := self._fault_of(reference):
                yield Problem(show_path(path), f"${{{reference}}}: {fault}")

    def _of_references(self, value: Any, path: Path, done: Collection[str] | None = None) -> Iterator[Problem]:
        """Check the references in *value*; if it is given, only tasks that are *done* by then may be named."""
        for place in places_in(value, path):
            if isinstance(place, BadPlace):
                yield Problem(show_path(place.path), place.message)
                continue
            for reference in place.references:
                fault = self._fault_of(reference)
                if fault is None and done is not None and reference.root not in (*done, *ROOTS):
                    fault = f"{reference.root!r} may not be over by then; name it in `needs`"
                if fault:
                    yield Problem(show_path(place.path), f"${{{reference}}}: {fault}")

    def _fault_of(self, reference: Reference) -> str | None:
        """Say what keeps a reference from naming something."""
        root, path = reference.root, reference.path
        if root == "inputs":
            return fault_of_path(dict(self.definition.inputs), path, Reference(root))
        known = RUN_FIELDS if root == "run" else TASK_FIELDS
        if root != "run" and root not in self.tasks:
            return f"there is no task {root!r}{did_you_mean(root, [*self.tasks, *ROOTS])}"
        if not path or path[0] not in known:
            shown = ", ".join(f"{root}.{name}" for name in known)
            return f"expected one of {shown}"
        schema = _TEXT if root == "run" else self._schema_of(self.tasks[root], str(path[0]))
        return None if schema is None else fault_of_path(schema, path[1:], Reference(root, path[:1]))

    def _schema_of(self, task: Task, field: str) -> Mapping[str, Any] | None:
        """Return the schema of what `${task.field}` is; None if it is not known."""
        if field != "output":
            return _ERROR if field == "error" else _TEXT
        if task.actions == ["human"]:
            return _APPROVAL
        if task.actions != ["tool"] or self.around is None:
            return None
        tool = self.around.tool(str(task.tool))
        return None if tool is None or tool.output_schema is None else dict(tool.output_schema)

    # -- what a task names -----------------------------------------------------------------------------------------

    def _of_action(self, task: Task, path: Path, around: Surroundings) -> Iterator[Problem]:
        if task.tool is not None:
            yield from _of_tool(task.tool, task.arguments, path, around)
        if task.undo is not None:
            yield from _of_tool(task.undo.tool, task.undo.arguments, (*path, "undo"), around)
        if task.executor is not None and task.executor not in around.executors:
            hint = did_you_mean(task.executor, around.executors)
            yield Problem(show_path((*path, "executor")), f"no workflow-executor {task.executor!r} is active{hint}")
        if task.workflow is None:
            return
        if task.workflow not in around.workflows:
            hint = did_you_mean(task.workflow, around.workflows)
            yield Problem(show_path((*path, "workflow")), f"no workflow {task.workflow!r} is active{hint}")
        elif (schema := around.workflows[task.workflow]) is not None:
            yield from _of_arguments(schema, task.arguments, (*path, "arguments"))


def _fault_of_schema(schema: Mapping[str, Any]) -> str | None:
    try:
        compile_schema(schema, "it")
    except ToolDefinitionError as error:
        return str(error)
    return None


def _of_tool(name: str, arguments: Mapping[str, Any], path: Path, around: Surroundings) -> Iterator[Problem]:
    tool = around.tool(name)
    if tool is None:
        hint = did_you_mean(name, around.tool_names())
        yield Problem(show_path((*path, "tool")), f"no tool {name!r} is there for the workflow's principal{hint}")
        return
    yield from _of_arguments(tool.input_schema, arguments, (*path, "arguments"))


# -- arguments, as far as they are known -------------------------------------------------------------------------------


def _of_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Check *arguments* against a schema as far as they are literal: what a reference stands for is not known yet."""
    places = list(places_in(arguments))
    if any(isinstance(place, BadPlace) for place in places):
        return  # which is told as what it is
    try:
        validator = compile_schema(schema, "it")
    except ToolDefinitionError:
        return  # a tool's own trouble
    wholes = [place.path for place in places if isinstance(place, ReferencePlace) and place.is_whole]
    texts = [place.path for place in places if isinstance(place, ReferencePlace) and not place.is_whole]
    literal = filled(arguments, lambda _: "")
    try:
        for error in validator.iter_errors(literal):
            if _is_sure(error, wholes, texts):
                for problem in explain(error, validator.schema, voice=TO_OPERATORS):
                    yield Problem(_joined(path, problem.path), problem.message)
    except TooMuchWorkError as error:
        yield Problem(show_path(path), str(error))


def _is_sure(error: Any, wholes: list[Path], texts: list[Path]) -> bool:
    """Tell whether something is wrong whatever the references stand for."""
    at, kind = tuple(error.instance_path), error.kind.name
    if any(at[: len(whole)] == whole for whole in wholes):
        return False
    if at in texts:
        return bool(kind == "type")
    has_references = any(place[: len(at)] == at for place in (*wholes, *texts))
    return kind in _SURE or not has_references


def _joined(path: Path, inner: str) -> str:
    head = show_path(path)
    return head + (inner if inner.startswith("[") or not inner else f".{inner}")
