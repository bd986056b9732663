"""PostgreSQL, by asyncpg: a transaction that only reads, and a time limit that the server keeps.

The server makes JSON of each row, so that rows of any type come as text whose size is known before it is sent. A query
stands in parentheses, where only a query can stand: everything else is a syntax error.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from agentos_pack_common import plain

from agentos_pack_sql_query._files import MAX_COLUMNS, classify, refusal, schema_of
from agentos_pack_sql_query._rows import Rows, quoted
from agentos_pack_sql_query.sources import Source
from agentos_pack_sql_query.values import Answer, Options, Schema

if TYPE_CHECKING:
    import asyncpg  # type: ignore[import-untyped]

_CONNECT_SECONDS = 10.0
_CHUNK = 100
_END = re.compile(r"[\s;]+\Z")
_NOT_A_QUERY = ("42601", "25006", "42P13", "0A000")
"""Codes of what can't stand in parentheses, or would write."""
_POWERS = """
SELECT count(*) FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER') AND (rolsuper OR rolreplication OR rolname
IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend'))
"""
"""Roles that the user has, or can take on from within a SELECT: `set_config('role', ...)` is a function."""

_ROWS = """
SELECT CASE WHEN octet_length(j) <= {most} THEN j END, octet_length(j)
FROM (SELECT row_to_json(q)::text AS j FROM (
{sql}
) AS q LIMIT {limit}) AS s
"""
_TABLES = """
SELECT n.nspname, c.relname, c.relkind::text, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp%'
  AND has_table_privilege(c.oid, 'SELECT') AND ($1 = '' OR strpos(lower(c.relname), lower($1)) > 0)
ORDER BY 1, 2 LIMIT $2
"""
_COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
  coalesce(a.attnum = ANY (k.conkey), false) AS primary_key
FROM pg_attribute a LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum LIMIT $2
"""
_REFERENCES = """
SELECT a.attname AS column, k.confrelid::regclass::text AS table, b.attname AS to
FROM pg_constraint k
CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS u(here, there)
JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.here
JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = u.there
WHERE k.conrelid = $1 AND k.contype = 'f' ORDER BY 1 LIMIT $2
"""
_KINDS = {"r": "table", "p": "table", "v": "view", "m": "materialized view", "f": "foreign table"}


class PostgresEngine:
    """Asks a PostgreSQL database."""

    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options

    async def query(self, sql: str, parameters: list[str | int | float | bool | None], limit: int) -> Answer:
        """Run one SELECT."""
        import asyncpg

        text = _END.sub("", sql)
        async with self._reading() as connection:
            try:
                return await self._rows(connection, text, parameters, limit)
            except asyncpg.QueryCanceledError:
                raise ValueError(
                    f"sql: it took longer than {self._options.timeout_seconds:g} s; ask for less"
                ) from None
            except asyncpg.PostgresError as error:
                kind = await classify(sql, "postgresql") if error.sqlstate in _NOT_A_QUERY else None
                said = plain(str(error))[:500]
                raise ValueError(f"sql: {said if kind is None else refusal(kind, said)}") from None
            except (asyncpg.InterfaceError, OverflowError, TypeError) as error:
                raise ValueError(f"parameters: {plain(str(error))[:300]}") from None

    async def _rows(self, connection: "asyncpg.Connection[Any]", sql: str, parameters: list[Any], limit: int) -> Answer:
        most = min(self._options.max_bytes, self._options.max_value_bytes)
        columns = [attribute.name for attribute in (await connection.prepare(sql)).get_attributes()]
        statement = await connection.prepare(_ROWS.format(sql=sql, limit=limit + 1, most=most))
        rows = Rows(limit, self._options.max_bytes)
        async for row, size in self._fetched(connection, await statement.cursor(*parameters)):
            if row is None:
                raise ValueError(f"sql: a row has {size:,} bytes; at most {most:,} are returned, so take a part of it")
            if not rows.take([_values(row)]):
                break
        return Answer(
            columns=[plain(name) for name in columns],
            rows=rows.rows,
            row_count=len(rows.rows),
            truncated=rows.truncated,
            dialect="postgresql",
        )

    async def _fetched(self, connection: "asyncpg.Connection[Any]", cursor: Any) -> AsyncIterator[Any]:
        """Fetch in parts. Each after the first is given what is left of the time: a query can switch its limit off."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._options.timeout_seconds
        while part := await cursor.fetch(_CHUNK):
            for row in part:
                yield row
            left = max(1, int((end - clock()) * 1_000))
            await connection.execute(f"SET LOCAL statement_timeout = {left}")

    async def schema(self, containing: str, limit: int) -> Schema:
        """List tables and views that may be read, of every schema."""
        async with self._reading() as connection:
            found = await connection.fetch(_TABLES, containing, limit + 1)
            tables = [await _table(connection, row) for row in found[:limit]]
        shown = {"tables": tables, "truncated": len(found) > limit}
        return schema_of("postgresql", "$1", shown, self._options.max_bytes)

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """Connect for one transaction, which is taken back in the end whatever happened in it."""
        connection = await self._connect()
        try:
            transaction = connection.transaction(readonly=True)
            await transaction.start()
            await _check_power(connection)
            yield connection
            await transaction.rollback()
        finally:
            connection.terminate()

    async def _connect(self) -> "asyncpg.Connection[Any]":
        try:
            import asyncpg
        except ImportError:
            raise ValueError("asyncpg is not installed; install agentos-pack-sql-query[postgres]") from None
        limit = str(int(self._options.timeout_seconds * 1_000))
        settings = {
            "application_name": "agentos sql-query",
            "default_transaction_read_only": "on",
            "statement_timeout": limit,
            "lock_timeout": limit,
            "idle_in_transaction_session_timeout": "60000",
        }
        try:
            return await asyncpg.connect(
                self._source.target, timeout=_CONNECT_SECONDS, statement_cache_size=0, server_settings=settings
            )
        except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise ValueError(f"db.url: the database can't be reached ({_reason(error)})") from None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object whose names may come twice, as those of columns may."""


def _values(row: str) -> list[Any]:
    """Return the values of a row, all of them whatever its columns are called."""
    return [_plain(value) for _, value in json.loads(row, object_pairs_hook=_Pairs, parse_float=Decimal)]


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {name: _plain(inner) for name, inner in value}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


async def _check_power(connection: "asyncpg.Connection[Any]") -> None:
    """Refuse a user who could read files, start programs or end sessions on the server from within a SELECT."""
    if await connection.fetchval(_POWERS):
        raise ValueError("db.url: its user may do anything on the server; give one who may only read the tables")


async def _table(connection: "asyncpg.Connection[Any]", row: Any) -> dict[str, Any]:
    schema, name, kind, oid = row
    columns = await connection.fetch(_COLUMNS, oid, MAX_COLUMNS + 1)
    references = await connection.fetch(_REFERENCES, oid, MAX_COLUMNS)
    return {
        "name": name if schema == "public" else f"{schema}.{name}",
        "quoted": quoted(name) if schema == "public" else f"{quoted(schema)}.{quoted(name)}",
        "kind": _KINDS[kind],
        "columns": [dict(column) for column in columns],
        "references": [dict(reference) for reference in references],
        "problem": None,
    }


def _reason(error: BaseException) -> str:
    """Say why a connection failed, in words that hold no address, name or password."""
    name = type(error).__name__
    words = {
        "InvalidPasswordError": "the password is wrong",
        "InvalidAuthorizationSpecificationError": "the user may not connect",
        "InvalidCatalogNameError": "there is no such database",
        "ConnectionRefusedError": "nobody answers at its address",
        "gaierror": "its host is not known",
        "TimeoutError": "it does not answer",
    }
    return words.get(name, name)
