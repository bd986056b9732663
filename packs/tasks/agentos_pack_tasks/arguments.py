"""What the tools take: the types of their parameters, and how texts and JSON are made fit to be kept."""

import json
from typing import Annotated, Any, Final, Literal

import attrs
from agentos_pack_common import plain

from agentos import Schema
from agentos_pack_tasks.values import TaskError

MAX_TITLE: Final = 200
MAX_NOTES: Final = 4_000
MAX_NEEDS: Final = 50
MAX_BATCH: Final = 50
MAX_TOOL: Final = 200
MAX_ARGUMENTS: Final = 8_000
MAX_KEY: Final = 40
LARGEST: Final = 2**53 - 1
_DEEPEST: Final = 16

_NUMBER = Schema(minimum=1, maximum=LARGEST)
_OBJECT = Schema(type=["object", "null"], additionalProperties={"description": "Any JSON value"}, maxProperties=50)
_Numbers = Annotated[list[Annotated[int, _NUMBER]], Schema(maxItems=MAX_NEEDS)]

Id = Annotated[int, "The task's number, as task_list shows it", _NUMBER]
Version = Annotated[int, "The version that you read; if the task is at another one, nothing is done", _NUMBER]

Title = Annotated[str, "What is to be done, in one line", Schema(minLength=1, maxLength=MAX_TITLE)]
Notes = Annotated[str, "What else is to be known: background, how to tell that it is done", Schema(maxLength=MAX_NOTES)]
Needs = Annotated[_Numbers, "Numbers of tasks that have to be done before this one can be run"]
ToolName = Annotated[
    str | None,
    "The tool that task_run calls to do the task, by its name; leave it out if the task is done by other means",
    Schema(minLength=1, maxLength=MAX_TOOL),
]
Arguments = Annotated[Any, "The object of arguments that the tool is called with; leave it out without a tool", _OBJECT]
_Key = Annotated[str, Schema(minLength=1, maxLength=MAX_KEY)]

NewTitle = Annotated[
    str | None, "The new title, in one line; null leaves the old one", Schema(minLength=1, maxLength=MAX_TITLE)
]
NewNotes = Annotated[
    str | None,
    "New notes instead of the old ones; null leaves them, empty text deletes them",
    Schema(maxLength=MAX_NOTES),
]
NewStatus = Annotated[
    Literal["open", "done"] | None,
    "done: the work has been done, which is only written down; open: it is to be done again, and its result is taken "
    "out; null leaves it. To start a task use task_run",
]
NewResult = Annotated[
    str | None, "What came of a task that is done, or becomes so by this call", Schema(maxLength=MAX_NOTES)
]
NewNeeds = Annotated[_Numbers | None, "The numbers of all tasks that it depends on from now on; null leaves them"]
NewTool = Annotated[
    str | None,
    "The tool for task_run to call from now on; null leaves it, empty text takes it out with its arguments",
    Schema(maxLength=MAX_TOOL),
]
NewArguments = Annotated[Any, "Arguments for the tool instead of the old ones; null leaves them", _OBJECT]


@attrs.frozen(kw_only=True)
class New:
    """A task that is not created yet."""

    title: Title
    notes: Notes = ""
    depends_on: Needs = attrs.field(factory=list)
    tool: ToolName = None
    arguments: Arguments = None


@attrs.frozen(kw_only=True)
class Member(New):
    """One of several tasks that are created together, and may depend on each other."""

    key: Annotated[_Key | None, "A name of yours for this task, by which others in this call can depend on it"] = None
    depends_on_keys: Annotated[
        list[_Key], "Keys of tasks in this call that have to be done before this one", Schema(maxItems=MAX_BATCH)
    ] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class Edit:
    """A change of one task; what is None stays as it is."""

    id: Id
    version: Version
    title: NewTitle = None
    notes: NewNotes = None
    status: NewStatus = None
    result: NewResult = None
    depends_on: NewNeeds = None
    tool: NewTool = None
    arguments: NewArguments = None


@attrs.frozen
class Target:
    """One task, at a version."""

    id: Id
    version: Version


# -- made fit to be kept -----------------------------------------------------------------------------------------


def line(text: str, place: str) -> str:
    """Return *text* in one line, without what can't be seen; refuse what is nothing then."""
    shown = " ".join(plain(text).split())
    if not shown:
        raise TaskError(f"{place}: expected text that can be seen, got none; say it in words")
    return shown


def prose(text: str) -> str:
    """Return *text* without what can't be seen."""
    return plain(text).strip()


def tool_name(name: str) -> str:
    """Return *name* if a tool can have it."""
    if not name or plain(name) != name or any(char.isspace() for char in name):
        raise TaskError("tool: expected the name of a tool as it is listed, without spaces; leave it out for none")
    return name


def as_json(arguments: Any) -> str:
    """Return arguments of a tool as JSON; refuse what is too long, too deep or no text."""
    if _depth(arguments) > _DEEPEST:
        raise TaskError(f"arguments: nested deeper than {_DEEPEST} levels; give the tool something flatter")
    text = json.dumps(arguments, ensure_ascii=False)
    if len(text) > MAX_ARGUMENTS:
        raise TaskError(f"arguments: {len(text):,} characters of JSON; at most {MAX_ARGUMENTS:,} are kept")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TaskError("arguments: has half a character; send whole Unicode text") from None
    return text


def _depth(value: Any) -> int:
    layer, depth = [value], 0
    while layer and depth <= _DEEPEST:
        layer = [inner for one in layer for inner in _inside(one)]
        depth += 1
    return depth


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def shown_json(text: str) -> str:
    """Return JSON for people: as it is, but with escapes if there is anything in it that can't be seen."""
    return text if plain(text) == text else json.dumps(json.loads(text))
