"""What a task is, what the tools return, and what they refuse."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

import attrs

from agentos import Principal

Status = Literal["open", "running", "done"]
Asked = Literal["unfinished", "open", "running", "done", "any"]

STATUSES: Final[tuple[str, ...]] = get_args(Status)
_NAMED: Final = 10


def listed(ids: Iterable[object]) -> str:
    """Name the first of *ids*, and say how many more there are."""
    names = [str(id) for id in ids]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


# -- what is refused ---------------------------------------------------------------------------------------------


class TaskError(ValueError):
    """A call that can't be done; the message says why, and what to do."""


class UnknownTaskError(TaskError):
    """A task that is not there, or not for who asks."""

    def __init__(self, id: int, place: str = "id") -> None:
        super().__init__(f"{place}: there is no task {id}; task_list shows those that there are")
        self.id = id


class StaleError(TaskError):
    """A change that was made for a version that is not the present one."""


class CycleError(TaskError):
    """Tasks that would wait for each other; `cycle` begins and ends with the same one."""

    def __init__(self, cycle: Sequence[object], place: str = "depends_on") -> None:
        way = " -> ".join(map(str, cycle))
        super().__init__(f"{place}: this would make a cycle, {way}, in which no task can be run; leave one of them out")
        self.cycle = tuple(cycle)


class BlockedError(TaskError):
    """A task that waits for others; `waits_for` has their numbers."""

    def __init__(self, id: int, what: str, waits_for: Sequence[int]) -> None:
        super().__init__(
            f"task {id} can't be {what} while what it depends on is not done: {listed(waits_for)}; finish that first, "
            "or take it out of depends_on with task_edit"
        )
        self.waits_for = tuple(waits_for)


class NeededError(TaskError):
    """A task that others depend on; `needed_by` has their numbers."""

    def __init__(self, message: str, needed_by: Sequence[int]) -> None:
        super().__init__(message)
        self.needed_by = tuple(needed_by)


# -- who asks, and for what --------------------------------------------------------------------------------------


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@attrs.frozen
class Actor:
    """Who does something, and when. The system principal sees the tasks of everybody."""

    owner: str
    sees_all: bool = False
    at: str = attrs.field(factory=_now)

    @classmethod
    def of(cls, principal: Principal) -> "Actor":
        """Return who *principal* is: a user and a service may have the same id."""
        return cls(f"{principal.kind}:{principal.id}", sees_all=principal.kind == "system")


@attrs.frozen(kw_only=True)
class Question:
    """Which tasks to list."""

    status: Asked = "any"
    ready_only: bool = False
    text: str = ""
    after: int = 0
    limit: int = 20


# -- what the tools return ---------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Line:
    """A task in one line. `waits_for` are the dependencies that are not done; `ready` tells that it can be run."""

    id: int
    version: int
    title: str
    status: Status
    ready: bool
    waits_for: list[int]
    tool: str | None
    owner: str
    updated_at: str


@attrs.frozen(kw_only=True)
class Lines:
    """Tasks, the oldest first. `total` counts all that fit the question, also those that are not shown."""

    tasks: list[Line]
    total: int
    truncated: bool


@attrs.frozen(kw_only=True)
class Neighbour:
    """A task that another one depends on, or that depends on it."""

    id: int
    title: str
    status: Status


@attrs.frozen(kw_only=True)
class Task:
    """A task.

    `result` is what came of it, cut if `result_truncated`; `problem` is why its last run failed. `proposal` is the
    approval that the call of its tool waits for. `truncated` tells that not all of `needed_by` are shown.
    """

    id: int
    version: int
    title: str
    notes: str
    status: Status
    ready: bool
    depends_on: list[Neighbour]
    needed_by: list[Neighbour]
    needed_by_total: int
    truncated: bool
    tool: str | None
    arguments: dict[str, Any] | None
    result: str | None
    result_truncated: bool
    problem: str | None
    proposal: str | None
    runs: int
    owner: str
    created_at: str
    updated_at: str
    started_at: str | None
    done_at: str | None


@attrs.frozen(kw_only=True)
class Changed:
    """What a change came to. The next change of the task names this version."""

    id: int
    version: int
    title: str
    status: Status
    ready: bool
    changes: list[str]


@attrs.frozen(kw_only=True)
class Deleted:
    """A task that is gone for good."""

    id: int
    title: str


@attrs.frozen(kw_only=True)
class Ran:
    """What running a task came to.

    `called` is the tool that was called, None if the task names none. `kept` is False if the task was changed while
    its tool ran, so that what came of it is only here.
    """

    id: int
    version: int
    title: str
    status: Status
    called: str | None
    result: str | None = None
    result_truncated: bool = False
    problem: str | None = None
    proposal: str | None = None
    kept: bool = True


@attrs.frozen(kw_only=True)
class Preview:
    """What a call would do: in one sentence, and in detail."""

    would: str
    details: list[str]
