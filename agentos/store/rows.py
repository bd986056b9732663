"""Rows as plain dicts, whether a statement changed one, and plain SQL for what every call needs."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Executable, Table
    from sqlalchemy.engine import Connection


class PlainSql:
    """A statement that every database understands, run by the driver itself; its parameters are written `:name`.

    For what every call needs: SQLAlchemy takes several times as long as SQLite to run a small statement. With *locks*
    the rows that it finds are kept from others until the transaction ends.
    """

    def __init__(self, text: str, *, locks: bool = False) -> None:
        named = re.sub(r":(\w+)", r"%(\1)s", text)
        self._texts = {"sqlite": text, "postgresql": f"{named} FOR UPDATE" if locks else named}

    def all(self, connection: "Connection", **values: Any) -> list[dict[str, Any]]:
        """Return every row."""
        cursor = self._run(connection, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def one(self, connection: "Connection", **values: Any) -> dict[str, Any] | None:
        """Return the first row; None if there is none."""
        rows = self.all(connection, **values)
        return rows[0] if rows else None

    def changes(self, connection: "Connection", **values: Any) -> int:
        """Return how many rows it changes."""
        count: int = self._run(connection, values).rowcount
        return count

    def _run(self, connection: "Connection", values: dict[str, Any]) -> Any:
        driver: Any = connection.connection.dbapi_connection
        return driver.execute(self._texts[connection.dialect.name], values)


def inserting(table: str, columns: Sequence[str]) -> PlainSql:
    """Return what inserts a row with those columns."""
    values = ", ".join(f":{name}" for name in columns)
    return PlainSql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})")  # noqa: S608 - our own names


def fetch_all(connection: "Connection", query: "Executable") -> list[dict[str, Any]]:
    """Return every row of *query*."""
    return [dict(row) for row in connection.execute(query).mappings()]


def fetch_one(connection: "Connection", query: "Executable") -> dict[str, Any] | None:
    """Return the first row of *query*; None if there is none."""
    row = connection.execute(query).mappings().first()
    return None if row is None else dict(row)


def insert_or_nothing(connection: "Connection", table: "Table") -> Any:
    """Return an INSERT that does nothing where the row exists: two processes may try at once."""
    from importlib import import_module

    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")  # the others are slow to import
    return dialect.insert(table).on_conflict_do_nothing()


def insert_all(connection: "Connection", table: "Table", rows: "Sequence[Mapping[str, Any]]") -> None:
    """Insert rows of the same columns.

    SQLite gets many of them in one statement, as JSON: with one statement for each, its thread and the event loop's
    hand the interpreter's lock to and fro at every row, which costs several times as much as the rows.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(table.insert(), rows)
        return
    names = list(rows[0])
    values = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(names)))
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {values} FROM json_each(?)"  # noqa: S608 - our own names
    listed = json.dumps([[row[name] for name in names] for row in rows], separators=(",", ":"))
    connection.exec_driver_sql(statement, (listed,))


def changes_one(connection: "Connection", statement: "Executable") -> bool:
    """Carry out an INSERT, UPDATE or DELETE and tell whether it changed exactly one row."""
    # Not every driver's count of an INSERT is kept unasked.
    result: Any = connection.execute(statement, execution_options={"preserve_rowcount": True})
    return bool(result.rowcount == 1)
