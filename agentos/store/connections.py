"""Transactions on a database that is open, in turn."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from agentos.base.foreign import to_the_end
from agentos.store.alive import Presence
from agentos.store.failures import heard, told
from agentos.store.locations import Place

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncTransaction

POOL = 5
"""How many connections there are at most."""


class Database(ABC):
    """A pool of connections, and who may use one now.

    The turns, not the pool, bound the connections: waiting for a turn is fair, and a cancelled waiter leaves no trace.
    """

    place: Place
    _engine: "AsyncEngine"
    _readers: "AsyncEngine"
    """The same pool, with other options."""
    _turns: Mapping[bool, asyncio.Lock | asyncio.Semaphore]

    def begin(self) -> "AbstractAsyncContextManager[AsyncConnection]":
        """Return a transaction that writes."""
        return self.transaction(writes=True)

    def read(self) -> "AbstractAsyncContextManager[AsyncConnection]":
        """Return a transaction that only reads."""
        return self.transaction(writes=False)

    @asynccontextmanager
    async def transaction(self, *, writes: bool) -> "AsyncIterator[AsyncConnection]":
        """Commit what the block does, or roll it back if the block raises or is cancelled."""
        with told(self.place):
            async with self._turns[writes]:
                connection = await self._connected(writes=writes)
                try:
                    transaction = await connection.begin().start(is_ctxmanager=True)
                    yield connection
                    if transaction.is_active:
                        await self._commit(transaction)
                except BaseException as error:
                    # To the end: half a rollback, by a task that is cancelled twice, is a connection nobody can use.
                    await to_the_end(self._undo(connection, error))
                    raise
                await connection.close()

    async def _connected(self, *, writes: bool) -> "AsyncConnection":
        with told(self.place, reaching=True):
            return await (self._engine if writes else self._readers).connect().start()

    async def _commit(self, transaction: "AsyncTransaction") -> None:
        await transaction.commit()

    async def _undo(self, connection: "AsyncConnection", error: BaseException) -> None:  # noqa: ARG002 - for others
        await connection.close()

    @abstractmethod
    async def settle_in(self) -> None:
        """Do what a database needs once, after it proved to be ours."""

    @abstractmethod
    def lock(self, connection: "Connection") -> None:
        """Keep every other process from changing the tables until the transaction ends."""

    @abstractmethod
    def presence(self, instance: str) -> Presence:
        """Return what shows to others that the host *instance* runs."""

    async def dispose(self) -> None:
        """Close every connection."""
        await to_the_end(self._engine.dispose())


def make_engine(url: str, connect: Callable[[], Any], **options: Any) -> "AsyncEngine":
    """Return an engine whose errors tell no parameters."""
    from sqlalchemy import event
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url, async_creator=connect, hide_parameters=True, **options)
    event.listen(engine.sync_engine, "handle_error", heard, retval=True)
    return engine


def driver_connection(connection: "AsyncConnection") -> Any:
    """Return the driver's own connection beneath *connection*."""
    return connection.sync_connection.connection.driver_connection  # type: ignore[union-attr]
