"""An engine asks one kind of database. It is made for each call and keeps nothing."""

from typing import Protocol

from agentos_pack_sql_query.sources import Source
from agentos_pack_sql_query.values import Answer, Options, Schema


class Engine(Protocol):
    """What asks a database. Whatever is wrong with a query is a ValueError that begins with `sql:`."""

    async def query(self, sql: str, parameters: list[str | int | float | bool | None], limit: int) -> Answer:
        """Run one SELECT."""
        ...

    async def schema(self, containing: str, limit: int) -> Schema:
        """List tables and views whose name has *containing* in it."""
        ...


def engine_for(source: Source, options: Options) -> Engine:
    """Return the engine for *source*."""
    if source.dialect == "postgresql":
        from agentos_pack_sql_query._postgres import PostgresEngine

        return PostgresEngine(source, options)
    from agentos_pack_sql_query._files import FileEngine

    return FileEngine(source, options)
