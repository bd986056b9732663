"""Rows as plain dicts, whether a statement changed one, and compiled statements for what every call needs."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Executable, Table
    from sqlalchemy.engine import Connection


class CompiledStatement:
    """A statement that is compiled once for each kind of database, and then run by the driver itself.

    SQLAlchemy takes several times as long as SQLite to run a small statement. *make* returns the statement, whose
    parameters are `bindparam`s; *columns* are those that an INSERT or UPDATE without values sets.
    """

    def __init__(self, make: "Callable[[], Executable]", columns: Sequence[str] | None = None) -> None:
        self._make = make
        self._columns = columns
        self._compiled: dict[str, tuple[str, Sequence[str] | None, dict[str, Any]]] = {}

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
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            statement: Any = self._make()
            compiled = statement.compile(dialect=dialect, column_keys=self._columns)
            found = self._compiled[dialect.name] = str(compiled), compiled.positiontup, compiled.params
        text, order, constants = found
        given = {**constants, **values}
        driver: Any = connection.connection.dbapi_connection
        return driver.execute(text, given if order is None else [given[name] for name in order])


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
