"""Running a task: how it starts, and what becomes of it when its tool has answered.

A task that names no tool is marked as running, and whoever does it says when it is done. If it names one, the tool is
called between two transactions: the first marks the task as running, the second keeps what came of the call. If the
second never comes, because the call was cut off or the process died, the task stays running. Nobody knows then whether
the tool has done its work, so it is not called again before somebody has looked and said so with task_edit.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import attrs
from agentos_pack_common import clip, plain

from agentos import ToolError, ToolResult
from agentos_pack_tasks.arguments import Target
from agentos_pack_tasks.records import Row, at_version, find, waiting, write
from agentos_pack_tasks.values import Actor, BlockedError, Ran, TaskError, UnknownTaskError

MAX_RESULT: Final = 16_000
MAX_PROBLEM: Final = 2_000
_UNTOUCHED: Final = frozenset(
    {
        *("UnknownTool", "InvalidArguments", "HandlerMissing", "BudgetExceeded", "Refused", "DefinitionChanged"),
        *("ProposalInvalid", "GuardrailBlocked", "AccessDenied"),
    }
)
"""Errors of calls that never reached their tool."""


@attrs.frozen(kw_only=True)
class Started:
    """A task that is running, and what to call for it."""

    ran: Ran
    run: int
    tool: str | None = None
    arguments: dict[str, Any] | None = None


def start(db: sqlite3.Connection, id: int, version: int, actor: Actor) -> Started:
    """Mark a task as running, if it is still at *version* and may be run."""
    row = at_version(find(db, id, actor), version)
    _check_startable(row, actor)
    waits_for = waiting(db, id)
    if waits_for:
        raise BlockedError(id, "run", waits_for)
    fields = {"status": "running", "started_at": actor.at, "problem": None, "runs": row["runs"] + 1}
    write(db, id, fields, actor)
    return Started(
        ran=Ran(id=id, version=version + 1, title=row["title"], status="running", called=row["tool"]),
        run=row["runs"] + 1,
        tool=row["tool"],
        arguments=None if row["arguments"] is None else json.loads(row["arguments"]),
    )


def any_without_tool(db: sqlite3.Connection, targets: Sequence[Target], actor: Actor) -> bool:
    """Tell whether there is a task among *targets* that names no tool."""
    for one in targets:
        try:
            if find(db, one.id, actor)["tool"] is None:
                return True
        except UnknownTaskError:
            continue
    return False


def _check_startable(row: Row, actor: Actor) -> None:
    id = row["id"]
    if row["status"] == "done":
        raise TaskError(f"task {id} is done already; task_edit with status open lets it be run again")
    if row["status"] == "running":
        raise TaskError(f"task {id} is running since {row['started_at']}: {_why_running(row)}")
    if row["tool"] is not None and row["owner"] != actor.owner:
        raise TaskError(
            f"task {id} belongs to {row['owner']} and would call {row['tool']} with your rights; its owner has to run "
            "it, or take the tool out with task_edit"
        )


def _why_running(row: Row) -> str:
    settle = "task_edit with status done or open settles it"
    if row["tool"] is None:
        return f"do the work; {settle}"
    if row["proposal"] is not None:
        return (
            f"its call of {row['tool']} waits for approval as proposal {row['proposal']}; when that is over, {settle}"
        )
    return f"its call of {row['tool']} has not come back; if that call is over, see what it has done, then {settle}"


# -- what the tool answered --------------------------------------------------------------------------------------


def settle(db: sqlite3.Connection, started: Started, answer: ToolResult, actor: Actor) -> Ran:
    """Keep what came of the call: done, open again after a failure, or still running while a person is asked."""
    fields = _outcome(answer, actor)
    try:
        row = find(db, started.ran.id, actor)
    except UnknownTaskError:
        row = None
    if row is None or row["status"] != "running" or row["runs"] != started.run:
        return attrs.evolve(started.ran, **_fields(row or {}), **_fields(fields, _OUTCOME), kept=False)
    write(db, row["id"], fields, actor)
    return attrs.evolve(started.ran, **_fields({**row, **fields, "version": row["version"] + 1}, (*_TASK, *_OUTCOME)))


_TASK: Final = ("version", "title", "status")
_OUTCOME: Final = ("result", "result_truncated", "problem", "proposal")


def _fields(row: Row, names: Sequence[str] = _TASK) -> Row:
    shown = {name: row[name] for name in names if name in row}
    return {**shown, "result_truncated": bool(row["result_truncated"])} if "result_truncated" in shown else shown


def _outcome(answer: ToolResult, actor: Actor) -> Row:
    error = answer.error
    if error is None:
        result = clip(plain(answer.content), MAX_RESULT)
        return {"status": "done", "done_at": actor.at, "result": result.text, "result_truncated": result.truncated}
    if error.type == "ApprovalRequired":
        return {"proposal": str(error.details.get("proposal_id"))[:MAX_PROBLEM]}
    problem = clip(plain(f"{error.type}: {error.message}"), MAX_PROBLEM).text
    return {"status": "open", "started_at": None, "problem": problem}


def answered(ran: Ran, answer: ToolResult) -> ToolResult:
    """Return what running a task came to, with the error of its tool if that failed or waits."""
    output = attrs.asdict(ran)
    if answer.error is None:
        return ToolResult.ok(output)
    error = answer.error
    message = f"{ran.called}, called for task {ran.id}: {error.message.rstrip('. ')}. {_what_now(ran, error)}"
    details = dict(error.details) if error.type == "ApprovalRequired" else {}
    return ToolResult(
        success=False,
        output=output,
        content=f"{error.type}: {message}",
        error=ToolError(error.type, message, {**details, "task": ran.id, "version": ran.version}),
    )


def _what_now(ran: Ran, error: ToolError) -> str:
    if not ran.kept:
        return "The task was changed meanwhile and does not have this."
    if error.type == "ApprovalRequired":
        return (
            "The task stays running. When the proposal has run, task_edit with status done and a result ends the task; "
            "if it was rejected, status open."
        )
    if error.type in _UNTOUCHED:
        return "Nothing was done, and the task is open again."
    return "The task is open again; the tool may have done a part of its work, so look before you run it again."
