"""The shared database: PostgreSQL by psycopg, with a few threads."""

import functools
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import psycopg

from agentos.errors import StoreError
from agentos.store.alive import Presence
from agentos.store.locations import StorePlace
from agentos.store.server_listening import ServerListening
from agentos.store.server_presence import ServerPresence
from agentos.store.transactions import POOL, Database, Hear, SqlWorker, StoreThreads, Transaction, make_engine

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection as SqlConnection
    from sqlalchemy.engine import Engine

_CONNECT_LIMIT = 10
_STATEMENT_LIMIT = 30.0
_MIGRATION_LOCK = 0x6167656E746F73
"""The number of the advisory lock under which tables are changed."""


class PostgresDatabase(Database):
    """A database on a PostgreSQL server. Writers go side by side; the server keeps them apart."""

    def __init__(self, place: StorePlace) -> None:
        # libpq reads the URL itself: it knows its own options, and no other library then holds the password.
        self._connect = functools.partial(connect, place.dsn)
        threads = StoreThreads(functools.partial(PostgresWorker, place, _engine(self._connect)), POOL)
        super().__init__(place, threads, threads)

    def lock(self, connection: "SqlConnection") -> None:
        """Take a lock that ends with the transaction."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")

    def presence(self, instance: str) -> Presence:
        """Return a lock in a session of its own."""
        return ServerPresence(self._connect, self.place, instance)

    def listening(self, hear: Hear, tell_lost: Callable[[StoreError], None]) -> ServerListening:
        """Return a session of its own that listens."""
        return ServerListening(self._connect, self.place, hear, tell_lost)


def _never() -> bool:
    return False


class PostgresConnection(psycopg.Connection[Any]):
    """A connection whose server has a limited time to answer, and no longer than anybody waits for the answer."""

    is_given_up: Callable[[], bool] = staticmethod(_never)

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Wait for an answer; close the connection instead of waiting too long."""
        return super().wait(self._within_limits(gen), *arguments, **options)

    def _within_limits(self, gen: "Generator[Any, Any, Any]") -> "Generator[Any, Any, Any]":
        deadline = time.monotonic() + _STATEMENT_LIMIT
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and (time.monotonic() > deadline or self.is_given_up()):
                    self.close()
                    raise psycopg.OperationalError("it did not answer in time")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


def connect(dsn: str | None) -> PostgresConnection:
    """Connect to a server. What begins and ends transactions is said in SQL, by who knows when."""
    session = PostgresConnection.connect(dsn or "", autocommit=True, connect_timeout=_CONNECT_LIMIT)
    session.adapters.register_dumper(list, _ListDumper)
    return session


class _ListDumper(psycopg.adapt.Dumper):
    """Refuses lists: our columns have none, and PostgreSQL would take one for a text."""

    def dump(self, obj: Any) -> Any:  # noqa: ARG002 - the signature is the contract
        """Raise what psycopg raises for other values that no column has."""
        raise psycopg.DataError("a list")


def _engine(connect: Callable[[], PostgresConnection]) -> "Engine":
    return make_engine("postgresql+psycopg://", connect, use_native_hstore=False)


class PostgresWorker(SqlWorker):
    """A thread's connection to PostgreSQL."""

    def run(self, transactions: "list[Transaction[Any]]") -> None:
        """Run one, as long as anybody waits for it."""
        super().run(transactions)
        if self._connection is not None:
            self.driver.is_given_up = _never

    def begin(self, transactions: "list[Transaction[Any]]") -> None:
        """Begin; in a new connection, if the last one was lost meanwhile."""
        was_connected = self._connection is not None
        try:
            self._begin(*transactions)
        except psycopg.OperationalError:
            if not was_connected or transactions[0].is_given_up:
                raise
            self.close()
            self._begin(*transactions)

    def _begin(self, one: "Transaction[Any]") -> None:
        driver: PostgresConnection = self.driver
        driver.is_given_up = lambda: one.is_given_up
        driver.execute(f"BEGIN ISOLATION LEVEL READ COMMITTED READ {'WRITE' if one.writes else 'ONLY'}")

    def is_undone(self) -> bool:
        """Tell whether the server will roll back even if it is told to commit, or is lost."""
        return self.driver.info.transaction_status is not psycopg.pq.TransactionStatus.INTRANS
