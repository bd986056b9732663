"""A SQLite file, opened so that nothing but reading is possible."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agentos_pack_sql_query._child import RefusedError
from agentos_pack_sql_query._rows import Rows

_STEPS = 1_000
_SHARED, _ALONE = "mode=ro", "mode=ro&immutable=1"
_HEADER = 100
_WAL = b"\2\2"
"""What the header of a file in WAL mode has at 18, for writing and for reading."""
_SETTINGS = ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "cache_size=-8000")
_MASTERS = frozenset({"sqlite_master", "sqlite_schema"})
_RESERVED = "sqlite_"
"""How the names of SQLite's own tables begin: nobody else can give such a name."""
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
# All that compute and nothing that reaches outside: no load_extension, fts3_tokenizer, readfile, writefile, edit.
_COMPUTING = """
abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling changes char coalesce concat concat_ws cos cosh count
cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format glob
group_concat hex highlight ifnull iif instr json json_array json_array_length json_error_position json_extract
json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace
json_set json_type json_valid julianday lag last_value lead length like likelihood likely ln log log10 log2 lower ltrim
match max median min mod nth_value ntile nullif octet_length percent_rank pi pow power printf quote radians random
randomblob rank replace round row_number rtrim sign sin sinh snippet soundex sqrt sqlite_version strftime string_agg
substr substring subtype sum tan tanh time timediff total trim trunc typeof unhex unicode unistr unixepoch unlikely
upper zeroblob -> ->>
"""
FUNCTIONS = frozenset(_COMPUTING.split())
_LIMITS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1_000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


def query(request: dict[str, Any]) -> dict[str, Any]:
    """Run one SELECT and return its first rows."""
    return _leaving_nothing(_query, request)


def schema(request: dict[str, Any]) -> dict[str, Any]:
    """Return the tables and views, without those that SQLite and its indexes keep for themselves."""
    return _leaving_nothing(_schema, request)


def _query(request: dict[str, Any], mode: str) -> dict[str, Any]:
    with _opened(request, mode) as connection:
        guard = _Guard(connection)
        try:
            cursor = connection.execute(request["sql"], request["parameters"])
            if cursor.description is None:
                raise RefusedError("it returns no rows")
            rows = Rows(request["max_rows"], request["max_bytes"])
            rows.take(cursor)
        except sqlite3.Warning as error:
            raise RefusedError(str(error)) from None
        except sqlite3.ProgrammingError as error:
            if "one statement" in str(error):
                raise RefusedError(str(error)) from None
            raise
        except sqlite3.DatabaseError as error:
            raise _better(error, guard, request) from None
    columns = [column[0] for column in cursor.description]
    return {"columns": columns, "rows": rows.rows, "truncated": rows.truncated}


def _schema(request: dict[str, Any], mode: str) -> dict[str, Any]:
    with _opened(request, mode) as connection:
        found = connection.execute(
            "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view', 'virtual')"
            " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND (?1 = '' OR instr(lower(name), lower(?1)))"
            " ORDER BY name LIMIT ?2",
            (request["containing"], request["max_tables"] + 1),
        ).fetchall()
        tables = [_table(connection, name, kind, request["max_columns"]) for name, kind in found]
    return {"tables": tables[: request["max_tables"]], "truncated": len(tables) > request["max_tables"]}


def _table(connection: sqlite3.Connection, name: str, kind: str, most: int) -> dict[str, Any]:
    table: dict[str, Any] = {"name": name, "kind": kind, "columns": [], "references": [], "problem": None}
    try:
        columns = connection.execute(
            'SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 LIMIT ?', (name, most + 1)
        ).fetchall()
        keys = connection.execute('SELECT "from", "table", "to" FROM pragma_foreign_key_list(?) LIMIT ?', (name, most))
        table["references"] = [{"column": key[0], "table": key[1], "to": key[2]} for key in keys]
    except sqlite3.DatabaseError as error:  # such as a view of a table that is gone
        return {**table, "problem": str(error)[:200]}
    table["columns"] = [
        {"name": column, "type": type, "nullable": not notnull, "primary_key": bool(key)}
        for column, type, notnull, key in columns
    ]
    return table


def _leaving_nothing(read: Callable[[dict[str, Any], str], dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    """Read a file in WAL mode that nobody has open as one that can't change; if it does meanwhile, read it again.

    Else SQLite lays its log and its index beside such a file, even to read it, and leaves them there.
    """
    before = _at_rest(request["target"])
    if before is None:
        return read(request, _SHARED)
    try:
        found = read(request, _ALONE)
    except Exception:
        if _at_rest(request["target"]) == before:
            raise
    else:
        if _at_rest(request["target"]) == before:
            return found
    return read(request, _SHARED)


def _at_rest(path: str) -> tuple[object, ...] | None:
    """Return by what a change of the file can be seen; None if it is not in WAL mode, or has a log beside it."""
    real = Path(path).resolve()
    try:
        with real.open("rb") as file:
            header, status = file.read(_HEADER), os.fstat(file.fileno())
    except OSError:  # SQLite tells why, without the path
        return None
    if header[18:20] != _WAL or Path(f"{real}-wal").exists():
        return None
    return header, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def _opened(request: dict[str, Any], mode: str) -> Iterator[sqlite3.Connection]:
    """Open the file read-only, within limits of SQLite's own."""
    uri = f"file:{quote(request['target'])}?{mode}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=2.0)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, request["max_value_bytes"])
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        deadline = time.monotonic() + request["seconds"]
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        yield connection


class _Guard:
    """SQLite asks it about all that a statement would do; what is not known to be reading is denied."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        known = {str(name).lower() for (name,) in names} | _TABLE_FUNCTIONS
        self._tables = {name for name in known if not name.startswith(_RESERVED)}
        modules = connection.execute("SELECT name FROM pragma_module_list").fetchall()
        self._modules = {str(name).lower() for (name,) in modules} - _TABLE_FUNCTIONS
        self.denied: tuple[int, str] | None = None
        connection.set_authorizer(self._judge)

    def _judge(
        self, action: int, first: str | None, second: str | None, _database: str | None, _inside: str | None
    ) -> int:
        check = _ALLOWED.get(action)
        if check is not None and check(self, first or "", second or ""):
            return sqlite3.SQLITE_OK
        self.denied = self.denied or (action, first or second or "that")
        return sqlite3.SQLITE_DENY

    def may_read(self, table: str, column: str) -> bool:
        """Let tables of the file be read, and JSON taken apart; none that tells of SQLite itself.

        A name without a column may be that of a WITH, which is read if none of its columns is; SQLite's own tables are
        modules, or known by how their names begin. Of the catalog's rows the numbers may be read, which tell nothing:
        SQLite asks that itself where a virtual table declares its columns.
        """
        name = table.lower()
        if name in _MASTERS:
            return column == "ROWID"
        is_with = not column and name not in self._modules and not name.startswith(("pragma_", _RESERVED))
        return name in self._tables or is_with

    def may_call(self, _: str, function: str) -> bool:
        """Let functions be called that only compute."""
        return function.lower() in FUNCTIONS

    def may_declare(self, table: str, _column: str) -> bool:
        """Let virtual tables say what columns they have: SQLite asks that as a change of its catalog.

        The catalog of a file opened read-only can't be changed, and SQLite lets nobody try.
        """
        return table in _MASTERS

    def may_ask(self, pragma: str, value: str) -> bool:
        """Let full-text indexes look whether the file has changed."""
        return pragma == "data_version" and not value


def _freely(_guard: _Guard, _first: str, _second: str) -> bool:
    return True


_ALLOWED: dict[int, Callable[[_Guard, str, str], bool]] = {
    sqlite3.SQLITE_SELECT: _freely,
    sqlite3.SQLITE_RECURSIVE: _freely,
    sqlite3.SQLITE_READ: _Guard.may_read,
    sqlite3.SQLITE_FUNCTION: _Guard.may_call,
    sqlite3.SQLITE_UPDATE: _Guard.may_declare,
    sqlite3.SQLITE_PRAGMA: _Guard.may_ask,
}


def _better(error: sqlite3.DatabaseError, guard: _Guard, request: dict[str, Any]) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if guard.denied is not None:
        action, what = guard.denied
        is_clear = action in (sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
        return RefusedError(f"{what} may not be used", is_clear=is_clear)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or "may not be modified" in str(error):
        return RefusedError("the database is read-only")
    if code == sqlite3.SQLITE_INTERRUPT:
        return TimeoutError(f"it took longer than {request['seconds']:g} s; ask for less, or narrow it with WHERE")
    if code == sqlite3.SQLITE_TOOBIG:
        return ValueError(f"a value would have more than {request['max_value_bytes']:,} bytes; take a part of it")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM):
        return MemoryError()
    return error
