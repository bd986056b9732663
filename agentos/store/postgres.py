"""The shared database: PostgreSQL by asyncpg."""

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import asyncpg  # type: ignore[import-untyped]

from agentos.base.foreign import to_the_end
from agentos.store.alive import Presence, ServerPresence
from agentos.store.connections import POOL, Database, make_engine
from agentos.store.failures import UNDONE, told
from agentos.store.locations import Place

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection as SyncConnection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncTransaction

_CONNECT_LIMIT = 10.0
_STATEMENT_LIMIT = 30.0
_MIGRATION_LOCK = 0x6167656E746F73
"""The number of the advisory lock under which tables are changed."""


class PostgresDatabase(Database):
    """A database on a PostgreSQL server. Writers go side by side; the server keeps them apart."""

    def __init__(self, place: Place) -> None:
        self.place = place
        # asyncpg reads the URL itself: it knows libpq's options, and no other library then holds the password.
        self._connect = functools.partial(
            asyncpg.connect,
            place.dsn,
            timeout=_CONNECT_LIMIT,
            command_timeout=_STATEMENT_LIMIT,
            connection_class=Connection,
        )
        self._engine = _engine(self._connect)
        self._readers = self._engine.execution_options(postgresql_readonly=True)
        turns = asyncio.Semaphore(POOL)
        self._turns = {True: turns, False: turns}

    async def _connected(self, *, writes: bool) -> "AsyncConnection":
        connection = (self._engine if writes else self._readers).connect()
        try:
            with told(self.place, reaching=True):
                await to_the_end(connection.start())
        except asyncio.CancelledError:
            if connection.sync_connection is not None:
                await to_the_end(connection.close())
            raise
        return connection

    async def _commit(self, transaction: "AsyncTransaction") -> None:
        await to_the_end(transaction.commit())

    async def _undo(self, connection: "AsyncConnection", error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):  # a statement may still run: not to be waited for
            await connection.invalidate()
        await super()._undo(connection, error)

    async def settle_in(self) -> None:
        """Do nothing: a server is set up by those who run it."""

    def lock(self, connection: "SyncConnection") -> None:
        """Take a lock that ends with the transaction."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")

    def presence(self, instance: str) -> Presence:
        """Return a lock in a session of its own."""
        return ServerPresence(self._connect, self.place, instance)


class Connection(asyncpg.Connection):  # type: ignore[misc]
    """A connection whose COMMIT says so if the server rolled back instead, as it does after an error."""

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109 - asyncpg's
        """Run *query* and return what the server says of it."""
        status: str = await super().execute(query, *args, timeout=timeout)
        if status == "ROLLBACK" and query.startswith("COMMIT"):
            raise asyncpg.InFailedSQLTransactionError(UNDONE)
        return status


def _engine(connect: Any) -> "AsyncEngine":
    from sqlalchemy import event
    from sqlalchemy.pool import AsyncAdaptedQueuePool

    engine = make_engine(
        "postgresql+asyncpg://",
        connect,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=POOL,
        max_overflow=-1,
        isolation_level="READ COMMITTED",
    )
    event.listen(engine.sync_engine, "checkout", _replace_closed)
    return engine


def _replace_closed(dbapi_connection: Any, *_: Any) -> None:
    """Have a connection that the server closed meanwhile replaced before it is used."""
    from sqlalchemy.exc import DisconnectionError

    if dbapi_connection.driver_connection.is_closed():
        raise DisconnectionError
