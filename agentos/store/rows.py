"""Rows as plain dicts, and whether a statement changed one."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Executable, Table
    from sqlalchemy.ext.asyncio import AsyncConnection

_MANY = 10


async def fetch_all(connection: "AsyncConnection", query: "Executable") -> list[dict[str, Any]]:
    """Return every row of *query*."""
    return [dict(row) for row in (await connection.execute(query)).mappings()]


async def fetch_one(connection: "AsyncConnection", query: "Executable") -> dict[str, Any] | None:
    """Return the first row of *query*; None if there is none."""
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else dict(row)


def insert_or_nothing(connection: "AsyncConnection", table: "Table") -> Any:
    """Return an INSERT that does nothing where the row exists: two processes may try at once."""
    from importlib import import_module

    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")  # the others are slow to import
    return dialect.insert(table).on_conflict_do_nothing()


async def insert_all(connection: "AsyncConnection", table: "Table", rows: "Sequence[Mapping[str, Any]]") -> None:
    """Insert rows of the same columns.

    SQLite gets many of them in one statement, as JSON: with one statement for each, its thread and the event loop's
    hand the interpreter's lock to and fro at every row, which costs several times as much as the rows.
    """
    if connection.dialect.name != "sqlite" or len(rows) < _MANY:
        await connection.execute(table.insert(), rows)
        return
    names = list(rows[0])
    values = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(names)))
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {values} FROM json_each(?)"  # noqa: S608 - our own names
    listed = json.dumps([[row[name] for name in names] for row in rows], separators=(",", ":"))
    await connection.exec_driver_sql(statement, (listed,))


async def changes_one(connection: "AsyncConnection", statement: "Executable") -> bool:
    """Carry out an INSERT, UPDATE or DELETE and tell whether it changed exactly one row."""
    result: Any = await connection.execute(statement)
    return bool(result.rowcount == 1)
