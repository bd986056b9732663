"""SQLite and DuckDB files: each call in a process of its own, which ends when its time or memory is used up."""

import contextlib
import importlib.util
import json
import math
import sys
from pathlib import Path
from typing import Any

from agentos_pack_common import Limits, plain, run_process

from agentos_pack_sql_query._rows import quoted
from agentos_pack_sql_query.sources import Source
from agentos_pack_sql_query.values import Answer, Column, Options, Reference, Schema, Table

MAX_COLUMNS = 200
_MEGABYTE = 1 << 20
_START_SECONDS = {"sqlite": 2.0, "duckdb": 6.0}
"""What a process may take beyond the time of the query: to start, to load files, to write its reply."""
_OVERHEAD = {"sqlite": 128, "duckdb": 1_280, "classify": 256}
"""Megabytes of addresses that the process itself takes, which is more than it uses."""
_TEMPORARY = 512
_PARSER_SECONDS = 5.0
_LONGEST_WORD = 16
_NO_QUERIES = frozenset(
    {
        *("ALTER", "ANALYZE", "ATTACH", "BEGIN", "CALL", "COMMIT", "COPY", "CREATE", "DELETE", "DETACH", "DO", "DROP"),
        *("EXPORT", "GRANT", "IMPORT", "INSERT", "INSTALL", "LOAD", "LOCK", "MERGE", "PRAGMA", "REINDEX", "RELEASE"),
        *("REPLACE", "RESET", "REVOKE", "ROLLBACK", "SAVEPOINT", "SET", "TRUNCATE", "UPDATE", "VACUUM"),
    }
)
_FOLDER = str(Path(__file__).resolve().parents[1])
_RUN = "import sys; sys.path.append({folder!r}); from agentos_pack_sql_query._child import main; main()"


class FileEngine:
    """Asks a SQLite or DuckDB file, or files that DuckDB reads."""

    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options
        if source.dialect == "duckdb" and importlib.util.find_spec("duckdb") is None:
            raise ValueError("duckdb is not installed; install agentos-pack-sql-query[duckdb]")

    async def query(self, sql: str, parameters: list[str | int | float | bool | None], limit: int) -> Answer:
        """Run one SELECT."""
        asked = {"sql": sql, "parameters": parameters, "max_rows": limit, "max_bytes": self._options.max_bytes}
        reply = await self._ask("query", asked)
        if "refused" in reply:
            kind = None if reply["is_clear"] else await classify(sql, self._source.dialect)
            raise ValueError(f"sql: {refusal(kind, reply['refused'])}")
        found = _ok(reply, "sql")
        return Answer(
            columns=[plain(name) for name in found["columns"]],
            rows=found["rows"],
            row_count=len(found["rows"]),
            truncated=found["truncated"],
            dialect=self._source.dialect,
        )

    async def schema(self, containing: str, limit: int) -> Schema:
        """List tables and views."""
        asked = {"containing": containing, "max_tables": limit, "max_columns": MAX_COLUMNS}
        found = _ok(await self._ask("schema", asked), "database")
        return schema_of(self._source.dialect, "?", found, self._options.max_bytes)

    async def _ask(self, action: str, asked: dict[str, Any]) -> dict[str, Any]:
        options, dialect = self._options, self._source.dialect
        request = {
            "action": action,
            "dialect": dialect,
            "target": self._source.target,
            "files": self._source.files,
            "seconds": options.timeout_seconds,
            "max_value_bytes": options.max_value_bytes,
            "memory_megabytes": options.memory_megabytes,
            "paths": _folders("duckdb") if dialect == "duckdb" else [],
            **asked,
        }
        memory = options.memory_megabytes + _OVERHEAD[dialect]
        return await _run(request, options.timeout_seconds + _START_SECONDS[dialect], memory, options.timeout_seconds)


async def classify(sql: str, dialect: str) -> str | None:
    """Say what kind of statement *sql* is, such as "a DELETE"; None if nobody knows."""
    if (word := only_word(sql)) is not None:
        return f"{'an' if word[0] in 'AEIOU' else 'a'} {word}"
    request = {"action": "classify", "dialect": dialect, "sql": sql, "paths": _folders("sqlglot")}
    try:  # in a process too: a parser can be kept busy
        reply = await _run(request, _PARSER_SECONDS, _OVERHEAD["classify"], _PARSER_SECONDS)
    except ValueError:
        return None
    kind = reply.get("ok")
    return plain(kind) if isinstance(kind, str) else None


def only_word(sql: str) -> str | None:
    """Return the word that a single statement begins with, if that alone tells that it is no query."""
    text = sql.lstrip()
    while text.startswith(("--", "/*")):
        text = text.partition("\n" if text.startswith("--") else "*/")[2].lstrip()
    word = text[: _LONGEST_WORD + 1].split(maxsplit=1)[:1]
    first = word[0].upper().rstrip(";") if word else ""
    return first if first in _NO_QUERIES and ";" not in text.rstrip("; \n") else None


def refusal(kind: str | None, reason: str) -> str:
    """Return the message about a statement that is not a query, or is one that may not run."""
    if kind is not None:
        return f"this is {kind}; only a single SELECT is allowed, and nothing can be changed"
    return f"refused: {plain(reason)}; only a single SELECT on the tables of sql_schema is allowed"


async def _run(request: dict[str, Any], seconds: float, megabytes: int, told: float) -> dict[str, Any]:
    """Send one request to a process of its own and return its reply."""
    argv = [sys.executable, "-I", "-S", "-c", _RUN.format(folder=_FOLDER)]
    limits = Limits(
        seconds=seconds,
        cpu_seconds=2 * math.ceil(seconds),
        memory_bytes=megabytes * _MEGABYTE,
        file_bytes=_TEMPORARY * _MEGABYTE,
        output_bytes=20_000_000,
    )
    result = await run_process(argv, stdin=json.dumps(request).encode(), limits=limits)
    if result.timed_out or result.signal == "SIGXCPU":
        raise ValueError(f"sql: it took longer than {told:g} s; ask for less, or narrow it with WHERE")
    if result.exit_code != 0 or result.truncated:
        raise ValueError("sql: it needs more memory than it may have; ask for less")
    return _read(result.stdout)


def _read(said: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        reply = json.loads(said)
        if isinstance(reply, dict):
            return reply
    raise ValueError("sql: the process that asks the database gave no reply that can be read; try again")


def _ok(reply: dict[str, Any], place: str) -> dict[str, Any]:
    if "ok" not in reply:
        raise ValueError(f"{place}: {plain(str(reply.get('error') or reply.get('refused')))}")
    found: dict[str, Any] = reply["ok"]
    return found


def _folders(package: str) -> list[str]:
    """Return the folder that a package is imported from, without importing it."""
    found = importlib.util.find_spec(package)
    return [] if found is None or found.origin is None else [str(Path(found.origin).resolve().parents[1])]


def schema_of(dialect: str, placeholder: str, found: dict[str, Any], max_bytes: int) -> Schema:
    """Return a schema, as many tables of it as fit."""
    tables: list[Table] = []
    truncated = found["truncated"]
    for raw in found["tables"]:
        max_bytes -= len(json.dumps(raw))
        if max_bytes < 0:
            return Schema(dialect=dialect, placeholder=placeholder, tables=tables, truncated=True)
        truncated = truncated or len(raw["columns"]) > MAX_COLUMNS
        tables.append(_table(raw))
    return Schema(dialect=dialect, placeholder=placeholder, tables=tables, truncated=truncated)


def _table(raw: dict[str, Any]) -> Table:
    return Table(
        name=plain(raw["name"]),
        quoted=raw.get("quoted") or quoted(raw["name"]),
        kind=raw["kind"],
        columns=[_column(column) for column in raw["columns"][:MAX_COLUMNS]],
        references=[Reference(**reference) for reference in raw["references"]],
        problem=None if raw["problem"] is None else plain(raw["problem"]),
    )


def _column(raw: dict[str, Any]) -> Column:
    return Column(
        name=plain(raw["name"]),
        quoted=quoted(raw["name"]),
        type=plain(raw["type"]),
        nullable=raw["nullable"],
        primary_key=raw["primary_key"],
    )
