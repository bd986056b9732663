"""The incidents in a SQLite file: what is asked of it, and what is changed in it.

Each function works in the transaction that `Database.read`, `write` or `rehearse` gives it. A change takes effect only
on the version that it names, so that of two who decided on the same version one is told to look again.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from agentos_pack_common.sqlite import Database, like_pattern

from agentos_pack_incidents.values import (
    KINDS,
    SEVERITIES,
    STATUSES,
    Actor,
    Changed,
    Draft,
    Happening,
    Incident,
    IncidentError,
    Line,
    Lines,
    Purged,
    Question,
    StaleError,
)

MAX_INCIDENTS: Final = 100_000
MAX_TIMELINE: Final = 1_000

Row = dict[str, Any]


def _one_of(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_FIRST: Final = (
    f"""
    CREATE TABLE incidents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- a number is never given twice, not even after a purge
        version INTEGER NOT NULL DEFAULT 1,
        title TEXT NOT NULL,
        service TEXT NOT NULL,
        summary TEXT NOT NULL,
        severity TEXT NOT NULL CHECK (severity IN ({_one_of(SEVERITIES)})),
        status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ({_one_of(STATUSES)})),
        opened_at TEXT NOT NULL,
        opened_by TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        resolved_at TEXT,
        resolution TEXT
    )
    """,
    f"""
    CREATE TABLE timeline (
        incident INTEGER NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        at TEXT NOT NULL,
        by TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ({_one_of(KINDS)})),
        text TEXT NOT NULL,
        proposal TEXT,
        PRIMARY KEY (incident, number)
    )
    """,
    "CREATE INDEX incidents_by_status ON incidents (status)",
)


def open_book(path: Path | None) -> Database:
    """Return the database of incidents at *path* or in memory; `open` makes it and refuses foreign files."""
    return Database(path, application_id=0x494E4349, migrations=[_FIRST])


# -- reading -----------------------------------------------------------------------------------------------------


def search(db: sqlite3.Connection, question: Question) -> Lines:
    """Return the incidents that fit, the newest first."""
    where, values = _where(question)
    (total,) = db.execute(f"SELECT count(*) FROM incidents WHERE {where}", values).fetchone()  # noqa: S608 - our words
    columns = ", ".join(field.name for field in attrs.fields(Line))
    rows = _rows(
        db,
        f"SELECT {columns} FROM incidents WHERE {where} AND id < ? ORDER BY id DESC LIMIT ?",  # noqa: S608 - our words
        [*values, question.before or 2**62, question.limit + 1],
    )
    found = [Line(**row) for row in rows[: question.limit]]
    return Lines(incidents=found, total=total, truncated=len(rows) > len(found))


def _where(question: Question) -> tuple[str, list[Any]]:
    conditions, values = ["true"], list[Any]()
    if question.status == "unresolved":
        conditions.append("status <> 'resolved'")
    elif question.status != "any":
        conditions.append("status = ?")
        values.append(question.status)
    if question.severity is not None:
        conditions.append("severity = ?")
        values.append(question.severity)
    if question.text:
        conditions.append(r"(title || char(10) || service || char(10) || summary) LIKE ? ESCAPE '\'")
        values.append(like_pattern(question.text))
    return " AND ".join(conditions), values


def get(db: sqlite3.Connection, id: int, entries: int) -> Incident:
    """Return an incident with the last *entries* of its timeline."""
    row, total = find(db, id), _length(db, id)
    rows = _rows(
        db,
        "SELECT at, by, kind, text, proposal FROM timeline WHERE incident = ? AND number > ? ORDER BY number",
        [id, total - entries],
    )
    timeline = [Happening(**one) for one in rows]
    return Incident(**row, timeline=timeline, timeline_total=total, truncated=total > len(timeline))


def find(db: sqlite3.Connection, id: int) -> Row:
    """Return an incident as it stands in its table."""
    rows = _rows(db, "SELECT * FROM incidents WHERE id = ?", [id])
    if not rows:
        raise IncidentError(f"id: there is no incident {id}; incident_list shows those that there are")
    return rows[0]


def _rows(db: sqlite3.Connection, statement: str, values: Sequence[Any]) -> list[Row]:
    cursor = db.execute(statement, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _length(db: sqlite3.Connection, id: int) -> int:
    (length,) = db.execute("SELECT count(*) FROM timeline WHERE incident = ?", [id]).fetchone()
    return int(length)


# -- changing ----------------------------------------------------------------------------------------------------


def add(db: sqlite3.Connection, draft: Draft, actor: Actor) -> Changed:
    """Open an incident."""
    if db.execute("SELECT count(*) FROM incidents").fetchone()[0] >= MAX_INCIDENTS:
        raise IncidentError(f"there are {MAX_INCIDENTS:,} incidents, which is the limit; purge resolved ones first")
    fields = {**attrs.asdict(draft), "opened_at": actor.at, "updated_at": actor.at, "opened_by": actor.by}
    names, marks = ", ".join(fields), ", ".join("?" * len(fields))
    added = db.execute(f"INSERT INTO incidents ({names}) VALUES ({marks})", [*fields.values()])  # noqa: S608 - our words
    id = int(added.lastrowid or 0)
    changes = [f"severity: {draft.severity}"]
    _note(db, id, "opened", changes[0], actor)
    return _changed(find(db, id), changes)


def update(
    db: sqlite3.Connection, id: int, version: int, fields: Mapping[str, str], note: str, actor: Actor
) -> Changed:
    """Change *fields* of an incident that is still at *version*, and add *note* to its timeline."""
    row = _at(find(db, id), version)
    changes = [f"{name}: {row[name]} -> {value}" for name, value in fields.items() if row[name] != value]
    if not changes and not note:
        raise IncidentError(f"incident {id} is like that already; give a note, or a value that differs")
    reopens = row["status"] == "resolved" and "status" in fields
    wanted = {**fields, "resolved_at": None, "resolution": None} if reopens else fields
    text = "\n".join(filter(None, ["; ".join(changes), note]))
    return _change(db, row, wanted, ("reopened" if reopens else "updated", text), changes, actor)


def resolve(db: sqlite3.Connection, id: int, version: int, resolution: str, actor: Actor) -> Changed:
    """Close an incident that is still at *version*."""
    row = _at(find(db, id), version)
    if row["status"] == "resolved":
        raise IncidentError(f"incident {id} is resolved already; incident_update with a status reopens it")
    fields = {"status": "resolved", "resolved_at": actor.at, "resolution": resolution}
    changes = [f"status: {row['status']} -> resolved"]
    return _change(db, row, fields, ("resolved", resolution), changes, actor)


def purge(db: sqlite3.Connection, id: int, version: int) -> Purged:
    """Delete a resolved incident that is still at *version*, with its timeline."""
    row = _at(find(db, id), version)
    if row["status"] != "resolved":
        raise IncidentError(f"incident {id} is {row['status']}; only resolved incidents can be purged")
    gone = Purged(id=id, title=row["title"], timeline_total=_length(db, id))
    db.execute("DELETE FROM incidents WHERE id = ?", [id])
    return gone


def _at(row: Row, version: int) -> Row:
    """Return *row* if it is at *version*."""
    if row["version"] != version:
        raise StaleError(
            f"version: incident {row['id']} is at version {row['version']}, and this call was made for version "
            f"{version}; nothing was done. Read it again with incident_get and decide anew"
        )
    return row


def _change(
    db: sqlite3.Connection,
    row: Row,
    fields: Mapping[str, str | None],
    entry: tuple[str, str],
    changes: list[str],
    actor: Actor,
) -> Changed:
    assigned = "".join(f"{name} = ?, " for name in fields)
    db.execute(
        f"UPDATE incidents SET {assigned}updated_at = ?, version = version + 1 WHERE id = ?",  # noqa: S608 - our words
        [*fields.values(), actor.at, row["id"]],
    )
    _note(db, row["id"], *entry, actor)
    return _changed(find(db, row["id"]), changes)


def _note(db: sqlite3.Connection, id: int, kind: str, text: str, actor: Actor) -> None:
    number = _length(db, id) + 1
    if number > MAX_TIMELINE:
        raise IncidentError(f"incident {id} has {MAX_TIMELINE:,} timeline entries, the limit; go on in a new incident")
    db.execute(
        "INSERT INTO timeline (incident, number, at, by, kind, text, proposal) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [id, number, actor.at, actor.by, kind, text, actor.proposal],
    )


def _changed(row: Row, changes: list[str]) -> Changed:
    named = {field.name: row[field.name] for field in attrs.fields(Changed) if field.name != "changes"}
    return Changed(**named, changes=changes)
