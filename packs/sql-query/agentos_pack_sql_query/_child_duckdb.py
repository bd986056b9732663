"""A DuckDB file, or files of other kinds as its tables; all else outside is shut off before a query is seen."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from agentos_pack_sql_query._child import RefusedError
from agentos_pack_sql_query._rows import Rows, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CHUNK = 100
# DuckDB takes a process like this one for a terminal, and after two seconds would show how far it is.
_QUIET = ("enable_progress_bar = false",)
_SHUT = ("enable_external_access = false", "lock_configuration = true")
_READ_ONLY = "BEGIN TRANSACTION READ ONLY"
"""For tables in memory, which are loaded before: a WITH can hold a DELETE and is a SELECT all the same."""
_CONFIG = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # Else a table that does not exist is looked for among the variables of this very program.
    "python_enable_replacements": "false",
    # Else it is in the home of whoever runs this, and a query can ask where that is.
    "secret_directory": "none",
    "temp_directory": "",
    "threads": "2",
}


def query(request: dict[str, Any]) -> dict[str, Any]:
    """Run one SELECT and return its first rows."""
    import duckdb

    with _opened(request) as connection:
        try:
            statements = connection.extract_statements(request["sql"])
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise RefusedError("it is not a single SELECT")
            connection.execute(statements[0], request["parameters"] or None)
        except duckdb.PermissionException:
            raise RefusedError("it reaches for something outside the tables", is_clear=True) from None
        except duckdb.TransactionException:
            raise RefusedError("it writes") from None
        except duckdb.InterruptException:
            raise TimeoutError(f"it took longer than {request['seconds']:g} s; ask for less") from None
        rows = Rows(request["max_rows"], request["max_bytes"])
        columns = [column[0] for column in connection.description or ()]
        while (chunk := connection.fetchmany(_CHUNK)) and rows.take(chunk):
            pass
    return {"columns": columns, "rows": rows.rows, "truncated": rows.truncated}


def schema(request: dict[str, Any]) -> dict[str, Any]:
    """Return the tables and views of the database, and their columns."""
    with _opened(request) as connection:
        found = connection.execute(
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_catalog = current_database()"
            " AND table_schema = 'main' AND (?1 = '' OR contains(lower(table_name), lower(?1)))"
            " ORDER BY table_name LIMIT ?2",
            [request["containing"], request["max_tables"] + 1],
        ).fetchall()
        tables = [_table(connection, name, kind, request["max_columns"]) for name, kind in found]
    return {"tables": tables[: request["max_tables"]], "truncated": len(tables) > request["max_tables"]}


def _table(connection: "DuckDBPyConnection", name: str, kind: str, most: int) -> dict[str, Any]:
    columns = connection.execute(
        "SELECT column_name, data_type, is_nullable = 'YES' FROM information_schema.columns"
        " WHERE table_catalog = current_database() AND table_schema = 'main' AND table_name = ?1"
        " ORDER BY ordinal_position LIMIT ?2",
        [name, most + 1],
    ).fetchall()
    listed = [
        {"name": one, "type": type, "nullable": nullable, "primary_key": False} for one, type, nullable in columns
    ]
    kind = "view" if kind == "VIEW" else "table"
    return {"name": name, "kind": kind, "columns": listed, "references": [], "problem": None}


@contextmanager
def _opened(request: dict[str, Any]) -> Iterator["DuckDBPyConnection"]:
    """Open the database, load the files, and then shut everything else off."""
    import duckdb

    target, files = request["target"] or ":memory:", request["files"]
    config: dict[str, Any] = {**_CONFIG, "memory_limit": f"{request['memory_megabytes']}MB"}
    with closing(duckdb.connect(target, read_only=bool(request["target"]), config=config)) as connection:
        _set(connection, _QUIET)
        for name, (reader, path) in files.items():
            _load(connection, name, reader, path)
        _set(connection, _SHUT)
        connection.execute(_READ_ONLY)
        clock = threading.Timer(request["seconds"], connection.interrupt)
        clock.daemon = True
        clock.start()
        try:
            yield connection
        finally:
            clock.cancel()


def _set(connection: "DuckDBPyConnection", settings: Iterable[str]) -> None:
    for setting in settings:
        connection.execute(f"SET {setting}")


def _load(connection: "DuckDBPyConnection", name: str, reader: str, path: str) -> None:
    try:
        connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM {reader}(?)", [path])  # noqa: S608 - ours
    except Exception as error:  # noqa: BLE001 - DuckDB raises many kinds; each is told in its own words
        words = str(error).replace(path, "the file").partition("\n")[0][:200]
        raise ValueError(f"the file of table {name!r} can't be read: {words}") from None
