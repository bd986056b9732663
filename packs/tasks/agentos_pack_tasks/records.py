"""The tasks in a SQLite database: what is asked of it, and what is changed in it.

Each function works in the transaction that `Database.read`, `write` or `rehearse` gives it. A task that belongs to
somebody else is not there, except for the system principal. A change takes effect only on the version that it names.
Dependencies stay among the tasks of one owner.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from agentos_pack_common.sqlite import Database, like_pattern

from agentos_pack_tasks.arguments import MAX_NEEDS, Edit, New, as_json, line, prose, tool_name
from agentos_pack_tasks.graph import cycle_through
from agentos_pack_tasks.values import (
    STATUSES,
    Actor,
    BlockedError,
    Changed,
    CycleError,
    Deleted,
    Line,
    Lines,
    NeededError,
    Neighbour,
    Question,
    StaleError,
    Task,
    TaskError,
    UnknownTaskError,
    listed,
)

MAX_SHOWN: Final = 50
_STATUSES: Final = ", ".join(f"'{status}'" for status in STATUSES)

Row = dict[str, Any]

_FIRST: Final = (
    f"""
    CREATE TABLE tasks (
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- a number is never given twice, not even after a deletion
        version INTEGER NOT NULL DEFAULT 1,
        owner TEXT NOT NULL,
        title TEXT NOT NULL,
        notes TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ({_STATUSES})),
        tool TEXT,
        arguments TEXT CHECK ((tool IS NULL) = (arguments IS NULL)),
        result TEXT,
        result_truncated INTEGER NOT NULL DEFAULT 0,
        problem TEXT,
        proposal TEXT,
        runs INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        started_at TEXT,
        done_at TEXT
    )
    """,
    "CREATE INDEX tasks_by_owner ON tasks (owner, status)",
    """
    CREATE TABLE dependencies (
        task INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
        needs INTEGER NOT NULL REFERENCES tasks (id) ON DELETE RESTRICT,
        PRIMARY KEY (task, needs),
        CHECK (task <> needs)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX dependencies_by_needs ON dependencies (needs)",
)


def open_book(path: Path | None) -> Database:
    """Return the database of tasks at *path*, None for one in memory; its `open` makes what is missing."""
    return Database(path, application_id=0x5441534B, migrations=[_FIRST])


# -- reading -----------------------------------------------------------------------------------------------------

_WAITING: Final = (
    "SELECT needed.id FROM dependencies JOIN tasks AS needed ON needed.id = dependencies.needs "
    "WHERE dependencies.task = {task} AND needed.status <> 'done'"
)


def search(db: sqlite3.Connection, question: Question, actor: Actor) -> Lines:
    """Return the tasks that fit, the oldest first."""
    where, values = _where(question, actor)
    (total,) = db.execute(f"SELECT count(*) FROM tasks WHERE {where}", values).fetchone()  # noqa: S608 - our words
    rows = _rows(
        db,
        f"SELECT * FROM tasks WHERE {where} AND id > ? ORDER BY id LIMIT ?",  # noqa: S608 - our words
        [*values, question.after, question.limit + 1],
    )
    found = [_line(db, row) for row in rows[: question.limit]]
    return Lines(tasks=found, total=total, truncated=len(rows) > len(found))


def _where(question: Question, actor: Actor) -> tuple[str, list[Any]]:
    conditions, values = ["true"], list[Any]()
    if not actor.sees_all:
        conditions.append("owner = ?")
        values.append(actor.owner)
    if question.status == "unfinished":
        conditions.append("status <> 'done'")
    elif question.status != "any":
        conditions.append("status = ?")
        values.append(question.status)
    if question.ready_only:
        conditions.append(f"status = 'open' AND NOT EXISTS ({_WAITING.format(task='tasks.id')})")
    if question.text:
        conditions.append(r"(title || char(10) || notes) LIKE ? ESCAPE '\'")
        values.append(like_pattern(question.text))
    return " AND ".join(conditions), values


def _line(db: sqlite3.Connection, row: Row) -> Line:
    waits_for = waiting(db, row["id"])
    named = {field.name: row[field.name] for field in attrs.fields(Line) if field.name in row}
    return Line(**named, waits_for=waits_for, ready=row["status"] == "open" and not waits_for)


def get(db: sqlite3.Connection, id: int, actor: Actor) -> Task:
    """Return a task with its neighbours."""
    row = find(db, id, actor)
    needs, needed_by = neighbours(db, needs_of(db, id)), dependents(db, id)
    shown = neighbours(db, needed_by[:MAX_SHOWN])
    known = {
        **row,
        "arguments": None if row["arguments"] is None else json.loads(row["arguments"]),
        "result_truncated": bool(row["result_truncated"]),
    }
    return Task(
        **known,
        ready=row["status"] == "open" and all(need.status == "done" for need in needs),
        depends_on=needs,
        needed_by=shown,
        needed_by_total=len(needed_by),
        truncated=len(needed_by) > len(shown),
    )


def find(db: sqlite3.Connection, id: int, actor: Actor, place: str = "id") -> Row:
    """Return a task as it stands in its table, if it is there for *actor*."""
    rows = _rows(db, "SELECT * FROM tasks WHERE id = ?", [id])
    if not rows or not (actor.sees_all or rows[0]["owner"] == actor.owner):
        raise UnknownTaskError(id, place)
    return rows[0]


def at_version(row: Row, version: int) -> Row:
    """Return *row* if it is at *version*."""
    if row["version"] != version:
        raise StaleError(
            f"version: task {row['id']} is at version {row['version']}, and this call was made for version {version}; "
            "nothing was done. Read it again with task_view and decide anew"
        )
    return row


def needs_of(db: sqlite3.Connection, id: int) -> list[int]:
    """Return the numbers of what a task depends on."""
    return [need for (need,) in db.execute("SELECT needs FROM dependencies WHERE task = ? ORDER BY needs", [id])]


def dependents(db: sqlite3.Connection, id: int, *, started: bool = False) -> list[int]:
    """Return the numbers of what depends on a task; of those, on request, only what is running or done."""
    narrowed = "AND (SELECT status FROM tasks WHERE id = task) <> 'open' " if started else ""
    statement = f"SELECT task FROM dependencies WHERE needs = ? {narrowed}ORDER BY task"  # noqa: S608 - our words
    return [task for (task,) in db.execute(statement, [id])]


def waiting(db: sqlite3.Connection, id: int) -> list[int]:
    """Return the numbers of what a task depends on and what is not done."""
    return [need for (need,) in db.execute(f"{_WAITING.format(task='?')} ORDER BY needed.id", [id])]


def neighbours(db: sqlite3.Connection, ids: Sequence[int]) -> list[Neighbour]:
    """Return tasks by their numbers."""
    rows = [_rows(db, "SELECT id, title, status FROM tasks WHERE id = ?", [id])[0] for id in ids]
    return [Neighbour(**row) for row in rows]


def _rows(db: sqlite3.Connection, statement: str, values: Sequence[Any]) -> list[Row]:
    cursor = db.execute(statement, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


# -- creating ----------------------------------------------------------------------------------------------------


def add(db: sqlite3.Connection, new: New, actor: Actor, max_tasks: int, needs: Sequence[int] = ()) -> Changed:
    """Create a task, which depends also on *needs*."""
    (count,) = db.execute("SELECT count(*) FROM tasks WHERE owner = ?", [actor.owner]).fetchone()
    if count >= max_tasks:
        raise TaskError(f"you have {count:,} tasks, which is the limit; delete some that are done first")
    if new.arguments is not None and new.tool is None:
        raise TaskError("arguments: there is no tool to call with them; name one in `tool`, or leave them out")
    fields = {
        "owner": actor.owner,
        "title": line(new.title, "title"),
        "notes": prose(new.notes),
        "tool": None if new.tool is None else tool_name(new.tool),
        "arguments": None if new.tool is None else as_json(new.arguments or {}),
        "created_at": actor.at,
        "updated_at": actor.at,
    }
    names, marks = ", ".join(fields), ", ".join("?" * len(fields))
    added = db.execute(f"INSERT INTO tasks ({names}) VALUES ({marks})", [*fields.values()])  # noqa: S608 - our words
    id = int(added.lastrowid or 0)
    _set_needs(db, id, _checked_needs(db, id, actor.owner, [*new.depends_on, *needs], actor))
    return changed(db, id, [])


def _checked_needs(db: sqlite3.Connection, id: int, owner: str, needs: Sequence[int], actor: Actor) -> list[int]:
    """Return the numbers of what a task is to depend on, each once, if it may."""
    distinct = sorted(set(needs))
    if len(distinct) > MAX_NEEDS:
        raise TaskError(f"depends_on: {len(distinct)} tasks; at most {MAX_NEEDS}, so put a task between them")
    for need in distinct:
        whose = find(db, need, actor, "depends_on")["owner"]
        if whose != owner:
            raise TaskError(f"depends_on: task {need} is of {whose}, and a task of {owner} depends on none but its own")
    cycle = cycle_through(id, distinct, lambda one: needs_of(db, one))
    if cycle is not None:
        raise CycleError(cycle)
    return distinct


def _set_needs(db: sqlite3.Connection, id: int, needs: Sequence[int]) -> None:
    db.execute("DELETE FROM dependencies WHERE task = ?", [id])
    db.executemany("INSERT INTO dependencies (task, needs) VALUES (?, ?)", [(id, need) for need in needs])


def changed(db: sqlite3.Connection, id: int, changes: list[str]) -> Changed:
    """Return what a task is after a change."""
    (row,) = _rows(db, "SELECT id, version, title, status FROM tasks WHERE id = ?", [id])
    return Changed(**row, ready=row["status"] == "open" and not waiting(db, id), changes=changes)


# -- editing -----------------------------------------------------------------------------------------------------

_UNSTARTED: Final[Mapping[str, Any]] = {
    "result": None,
    "result_truncated": 0,
    "problem": None,
    "proposal": None,
    "started_at": None,
    "done_at": None,
}


def edit(db: sqlite3.Connection, wanted: Edit, actor: Actor) -> Changed:
    """Change a task that is still at the version that the change names."""
    row = at_version(find(db, wanted.id, actor), wanted.version)
    fields = {**_with_edits(row, wanted), **_called(row, wanted), **_status(row, wanted, actor)}
    fields = {name: value for name, value in fields.items() if row[name] != value}
    changes = _changes(row, fields)
    if wanted.depends_on is not None:
        old, new = needs_of(db, row["id"]), _checked_needs(db, row["id"], row["owner"], wanted.depends_on, actor)
        _set_needs(db, row["id"], new)
        changes += [f"depends on: {listed(old) or 'nothing'} -> {listed(new) or 'nothing'}"] * (old != new)
    if not changes:
        raise TaskError(f"task {row['id']} is like that already; give a value that differs")
    write(db, row["id"], fields, actor)
    _check_order(db, row, fields)
    return changed(db, row["id"], changes)


def _with_edits(row: Row, wanted: Edit) -> Row:
    """Return the texts that a change gives."""
    given: Row = {}
    if wanted.title is not None:
        given["title"] = line(wanted.title, "title")
    if wanted.notes is not None:
        given["notes"] = prose(wanted.notes)
    if wanted.result is not None:
        if (wanted.status or row["status"]) != "done":
            raise TaskError("result: only a task that is done has one; give it with status done")
        given |= {"result": prose(wanted.result), "result_truncated": 0}
    return given


def _called(row: Row, wanted: Edit) -> Row:
    """Return the tool and its arguments, if a change gives either."""
    if wanted.tool is None and wanted.arguments is None:
        return {}
    status = wanted.status or row["status"]
    if status != "open":
        raise TaskError(f"tool: task {row['id']} is {status}; what it calls can be changed only while it is open")
    tool = row["tool"] if wanted.tool is None else (wanted.tool and tool_name(wanted.tool)) or None
    if tool is None and wanted.arguments is not None:
        raise TaskError("arguments: there is no tool to call with them; name one in `tool`, or leave them out")
    kept = row["arguments"] if wanted.arguments is None else as_json(wanted.arguments)
    return {"tool": tool, "arguments": None if tool is None else kept or "{}"}


def _status(row: Row, wanted: Edit, actor: Actor) -> Row:
    """Return what a change of the status brings with it."""
    if wanted.status is None or wanted.status == row["status"]:
        return {}
    if wanted.status == "open":
        return {"status": "open", **_UNSTARTED}
    return {"status": "done", "done_at": actor.at, "problem": None, "proposal": None}


def _changes(row: Row, fields: Row) -> list[str]:
    told = [f"title: {row['title']!r} -> {fields['title']!r}"] if "title" in fields else []
    told += [
        f"{name}: {row[name] or 'none'} -> {fields[name] or 'none'}" for name in ("status", "tool") if name in fields
    ]
    long = [name for name in ("notes", "arguments", "result") if fields.get(name) is not None]
    return told + [f"{name}: {len(fields[name]):,} characters instead of {len(row[name] or ''):,}" for name in long]


def _check_order(db: sqlite3.Connection, before: Row, fields: Row) -> None:
    """Refuse a change after which something is running or done while what it depends on is not done."""
    id, status = before["id"], str(fields.get("status", before["status"]))
    waits_for = waiting(db, id)
    if status != "open" and waits_for:
        raise BlockedError(id, status, waits_for)
    started = dependents(db, id, started=True)
    if status != "done" and started:
        message = (
            f"task {id} can't be opened again while what depends on it has been started: {listed(started)}; open that "
            "first"
        )
        raise NeededError(message, started)


def write(db: sqlite3.Connection, id: int, fields: Mapping[str, Any], actor: Actor) -> None:
    """Write *fields* of a task, which then has the next version."""
    assigned = "".join(f"{name} = ?, " for name in fields)
    db.execute(
        f"UPDATE tasks SET {assigned}updated_at = ?, version = version + 1 WHERE id = ?",  # noqa: S608 - our words
        [*fields.values(), actor.at, id],
    )


# -- deleting ----------------------------------------------------------------------------------------------------


def delete(db: sqlite3.Connection, id: int, version: int, actor: Actor) -> Deleted:
    """Delete a task that is still at *version*, and that no other depends on."""
    row = at_version(find(db, id, actor), version)
    if row["status"] == "running":
        raise TaskError(f"task {id} is running; set it to open or done with task_edit before it is deleted")
    needed_by = dependents(db, id)
    if needed_by:
        message = (
            f"task {id} stays while other tasks depend on it: {listed(needed_by)}; take it out of their depends_on "
            "with task_edit, or delete all of them together with task_delete_many"
        )
        raise NeededError(message, needed_by)
    db.execute("DELETE FROM tasks WHERE id = ?", [id])
    return Deleted(id=id, title=row["title"])
