"""Workflows as data: what a manifest and Python say alike."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.base.canonical import digest
from agentos.errors import ManifestError, Problem
from agentos.model.field_checks import fault_of_name, frozen_mapping
from agentos.model.guarding import fault_of_seconds
from agentos.model.parsing import camel, check, plain, structure
from agentos.schema.validation import to_plain_json

ACTIONS = ("tool", "executor", "workflow", "human")
"""The fields of a task of which exactly one says what is done."""
ROOTS = ("inputs", "run")
"""What references may begin with besides the id of a task."""
TASK_LIMIT = 500
"""How many tasks a workflow has at most."""
_TASK_ID = re.compile(r"[^\W\d][\w-]{0,63}")
_VERSION = re.compile(r"[\w.+-]{1,64}")
_OPENERS = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf"})


_MOST_ATTEMPTS = 1_000


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _number(value: Any) -> Any:
    """Return a whole number as a float, so that 60 and 60.0 are one definition."""
    return float(value) if type(value) is int and abs(value) < 2**53 else value


def _check_attempts(_: Any, field: "attrs.Attribute[int]", value: object) -> None:
    if type(value) is not int or not 1 <= value <= _MOST_ATTEMPTS:
        raise ValueError(f"Retry.{field.name}: expected a whole number from 1 to {_MOST_ATTEMPTS:,}, got {value!r}")


def _check_number(_: Any, field: "attrs.Attribute[float]", value: object) -> None:
    lowest = 1 if field.name == "backoff" else 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or value < lowest:  # type: ignore[operator]  # it is a number
        raise ValueError(f"Retry.{field.name}: expected a number that is at least {lowest}, got {value!r}")


@attrs.frozen
class Retry:
    """How often a step that failed is tried again, and after how long."""

    attempts: int = attrs.field(default=3, validator=_check_attempts)
    """How often it is tried in all."""
    delay: float = attrs.field(default=1.0, converter=_number, validator=_check_number)
    """For how many seconds it waits before the second attempt."""
    backoff: float = attrs.field(default=2.0, converter=_number, validator=_check_number)
    """By how much each wait is longer than the one before."""
    max_delay: float = attrs.field(default=300.0, converter=_number, validator=_check_number)
    """How many seconds it waits at the most."""
    not_on: tuple[str, ...] = attrs.field(default=(), converter=_names)
    """Types of errors that are final. What was refused, denied or not valid is never tried again anyway."""

    def wait(self, attempt: int) -> float:
        """Return for how many seconds it waits after an *attempt*, the first of which is 1."""
        return min(self.max_delay, self.delay * self.backoff ** min(attempt - 1, 64))


def _refused(what: str, problems: Iterable[tuple[str, str | None]]) -> None:
    """Raise ManifestError with every fault there is, by its field."""
    if found := [Problem(field, fault) for field, fault in problems if fault]:
        raise ManifestError(what, found)


def _fault_of_text(value: object, expected: str) -> str | None:
    if value is None or (isinstance(value, str) and value.strip()):
        return None
    return f"expected {expected}, got {value!r:.40}"


def _fault_of_json(value: object) -> str | None:
    try:
        to_plain_json(value)
    except (ValueError, RecursionError) as error:
        return f"expected JSON: {error}"
    return None


def _retry(value: Any) -> Any:
    return Retry(**value) if isinstance(value, Mapping) else value


@attrs.frozen
class UndoCall:
    """The call that takes a task back, if the run fails or is cancelled after it."""

    tool: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)
    """What the tool is called with; references may name the task's own output."""

    def __attrs_post_init__(self) -> None:
        _refused("UndoCall", [("tool", fault_of_name(self.tool)), ("arguments", _fault_of_json(self.arguments))])


def _undo(value: Any) -> Any:
    return UndoCall(**value) if isinstance(value, Mapping) else value


@attrs.frozen
class Task:
    """One task of a workflow: a tool, an executor, another workflow or a person does it.

    It begins when every task that it needs has ended, and is skipped if one of them did not succeed: unless `when` asks
    for the state of that one.
    """

    id: str
    tool: str | None = attrs.field(default=None, kw_only=True)
    """The tool that is called."""
    executor: str | None = attrs.field(default=None, kw_only=True)
    """The workflow-executor that executes it."""
    workflow: str | None = attrs.field(default=None, kw_only=True)
    """The workflow that is run."""
    human: str | None = attrs.field(default=None, kw_only=True)
    """What a person is asked; references in it are filled in."""
    arguments: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, kw_only=True, repr=False)
    """What it is done with: arguments, inputs, or the details that a person is shown. References are filled in."""
    needs: tuple[str, ...] = attrs.field(default=(), converter=_names, kw_only=True)
    """The tasks that have to end before it, besides those that its references name."""
    when: str | None = attrs.field(default=None, kw_only=True)
    """The condition without which it is skipped."""
    retry: Retry | None = attrs.field(default=None, converter=_retry, kw_only=True)
    """How often it is tried again; None: a failure is final."""
    timeout: float | None = attrs.field(default=None, converter=_number, kw_only=True)
    """How many seconds an attempt may take."""
    undo: UndoCall | None = attrs.field(default=None, converter=_undo, kw_only=True)
    """What takes it back."""
    description: str = attrs.field(default="", kw_only=True)
    """What people are told of it."""

    def __attrs_post_init__(self) -> None:
        is_id = isinstance(self.id, str) and _TASK_ID.fullmatch(self.id) and self.id not in ROOTS
        expected = f"expected at most 64 letters, digits, '_' and '-', none of {', '.join(ROOTS)}"
        seconds = None if self.timeout is None else fault_of_seconds(self.timeout)
        _refused(
            f"Task {self.id!r:.80}",
            [
                ("id", None if is_id else f"{expected}; it begins with a letter or '_'"),
                *((name, _fault_of_text(getattr(self, name), "a name")) for name in ACTIONS[:-1]),
                ("human", _fault_of_text(self.human, "what a person is asked")),
                ("when", _fault_of_text(self.when, "a condition")),
                ("retry", None if isinstance(self.retry, Retry | None) else "expected a Retry"),
                ("undo", None if isinstance(self.undo, UndoCall | None) else "expected an UndoCall"),
                ("arguments", _fault_of_json(self.arguments)),
                ("timeout", seconds),
                ("description", None if isinstance(self.description, str) else "expected a text"),
                *((f"needs[{index}]", fault_of_name(one)) for index, one in enumerate(self.needs)),
            ],
        )

    @property
    def actions(self) -> list[str]:
        """Return the fields that say what is done; one, unless the task is wrong."""
        return [name for name in ACTIONS if getattr(self, name) is not None]


def _tasks(value: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(value, str | Mapping):
        raise ManifestError("WorkflowDefinition", [Problem("tasks", "expected a list of tasks")])
    return tuple(Task(**one) if isinstance(one, Mapping) else one for one in value)


def _schema(value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Close a schema of inputs that does not say what else there may be; without one there are no inputs."""
    schema = {"type": "object", **({"properties": {}} if value is None else frozen_mapping(value))}
    if "properties" in schema and not _OPENERS & schema.keys():
        schema["additionalProperties"] = False
    return frozen_mapping(schema)


@attrs.frozen
class WorkflowDefinition:
    """A workflow as data.

    That its tasks fit together, and that what they name is there, is checked before it is started, all at once:
    `definition_checks.problems_of`.
    """

    id: str
    version: str
    tasks: tuple[Task, ...] = attrs.field(converter=_tasks)
    description: str = attrs.field(default="", kw_only=True)
    inputs: Mapping[str, Any] = attrs.field(default=None, converter=_schema, kw_only=True, repr=False)
    """The JSON Schema of its inputs, an object; None: it takes none."""
    output: Any = attrs.field(default=None, kw_only=True, repr=False)
    """What it returns, with references; None: the outputs of the tasks that no other needs, by their ids."""
    principal: str | None = attrs.field(default=None, kw_only=True)
    """The id of the principal of the manifest that its tools are called for; None: who starts it says which."""
    timeout: float | None = attrs.field(default=None, converter=_number, kw_only=True)
    """After how many seconds since its start a run fails, waiting included; None: never."""

    def __attrs_post_init__(self) -> None:
        is_version = isinstance(self.version, str) and _VERSION.fullmatch(self.version)
        are_tasks = [
            (f"tasks[{index}]", None if isinstance(one, Task) else f"expected a Task, got {type(one).__name__}")
            for index, one in enumerate(self.tasks)
        ]
        _refused(
            f"WorkflowDefinition {self.id!r:.80}",
            [
                ("id", fault_of_name(self.id)),
                ("version", None if is_version else "expected a text of at most 64 letters, digits, '.', '+' and '-'"),
                ("tasks", None if len(self.tasks) <= TASK_LIMIT else f"expected at most {TASK_LIMIT}"),
                *are_tasks,
                ("inputs", _fault_of_json(self.inputs)),
                ("output", _fault_of_json(self.output)),
                ("description", None if isinstance(self.description, str) else "expected a text"),
                ("principal", None if self.principal is None else fault_of_name(self.principal)),
                ("timeout", None if self.timeout is None else fault_of_seconds(self.timeout)),
            ],
        )

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, id: str | None = None, origin: str = "workflow"
    ) -> "WorkflowDefinition":
        """Take a mapping in the spelling of the files; raise ManifestError with every mistake.

        *id* is the key under which it stands in a manifest; else the mapping has it. *origin* names it in errors.
        """
        given = plain(data, origin)
        if not isinstance(given, dict):
            raise ManifestError(origin, [Problem("", f"expected a mapping, got {type(given).__name__}")])
        rest = given if id is not None else {key: value for key, value in given.items() if key != "id"}
        name = given.get("id") if id is None else id
        if fault := fault_of_name(name):
            raise ManifestError(origin, [Problem("id", fault)])
        if problems := [*_problems_of_shape(rest), *problems_of_workflow(str(name), rest)]:
            raise ManifestError(origin, problems)
        return structure_workflow(str(name), rest)

    def to_dict(self) -> dict[str, Any]:
        """Return it in the spelling of the files, without what was left to its default."""
        said: dict[str, Any] = _plain_fields(self, WorkflowDefinition)
        said["inputs"] = _thawed(self.inputs)
        return {**said, "tasks": [_plain_fields(task, Task) for task in self.tasks]}

    @property
    def digest(self) -> str:
        """Return what tells this definition from any other, whatever its version says."""
        return digest(self.to_dict())


def _plain_fields(value: Any, cls: type[Any]) -> dict[str, Any]:
    """Return the fields of a value that say something, named as in files."""
    said = {}
    for field in attrs.fields(cls):
        given = getattr(value, field.name)
        if given not in (None, (), "") and given != {}:
            said[camel(field.name)] = _plain_fields(given, type(given)) if attrs.has(type(given)) else _thawed(given)
    return said


def _thawed(value: Any) -> Any:
    """Return plain JSON of frozen mappings and tuples."""
    if isinstance(value, Mapping):
        return {key: _thawed(item) for key, item in value.items()}
    return [_thawed(item) for item in value] if isinstance(value, list | tuple) else value


# -- in files ----------------------------------------------------------------------------------------------------------


def _problems_of_shape(data: Any) -> list[Problem]:
    """List what the schema of manifests says of one workflow, each with its path within it."""
    found = check({"workflows": {_ANY: data}}, "manifest")
    return [Problem(one.path.removeprefix(f"workflows.{_ANY}").removeprefix("."), one.message) for one in found]


_ANY = "any"


def problems_of_workflow(id: str, data: Any) -> list[Problem]:
    """List what a schema can't say of a workflow in a file, in whatever has the right shape."""
    if _problems_of_shape(data):
        return []  # the schema's own problems are told by whoever applies it
    try:
        structure_workflow(id, data)
    except ManifestError as error:
        return list(error.problems)
    return []


def structure_workflow(id: str, data: Mapping[str, Any]) -> WorkflowDefinition:
    """Make a definition of what a file says, once that was checked."""
    tasks: list[Task] = []
    problems: list[Problem] = []
    for index, raw in enumerate(data["tasks"]):
        try:
            tasks.append(structure(raw, Task, id, ("tasks", index)))
        except ManifestError as error:
            problems += error.problems
    if problems:
        raise ManifestError(id, problems)
    fields = {camel(field.name): field.name for field in attrs.fields(WorkflowDefinition)}
    return WorkflowDefinition(**{fields[key]: value for key, value in data.items()} | {"id": id, "tasks": tasks})
