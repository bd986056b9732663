"""The embedded database: one thread that writes, and readers that do not wait for it."""

import functools
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentos.base.full_disks import is_full, reason, way_out
from agentos.errors import StoreError
from agentos.store.alive import AlonePresence, FilePresence, Presence
from agentos.store.failures import UNDONE
from agentos.store.locations import StorePlace
from agentos.store.transactions import GLANCE, POOL, Database, SqlWorker, StoreThreads, Transaction, make_engine

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

PATIENCE = 30.0
"""For how many seconds a transaction waits for another process to release the database."""
_GROUP = 100
"""How many transactions share a commit at most."""


class SqliteDatabase(Database):
    """A SQLite file, or a database in memory, which has one connection for all."""

    def __init__(self, place: StorePlace) -> None:
        if place.path is not None:
            _make_file(place.path)
        make_worker = functools.partial(SqliteWorker, place, _engine(place.path))
        writers = StoreThreads(make_worker, 1, group=_GROUP if place.is_durable else 1)
        super().__init__(place, writers, StoreThreads(make_worker, POOL - 1) if place.is_durable else writers)

    def lock(self, connection: "Connection") -> None:
        """Do nothing: a transaction that writes has the database for itself."""

    def presence(self, instance: str) -> Presence:
        """Return a locked file beside the database."""
        path = self.place.path
        return AlonePresence() if path is None else FilePresence(path.with_name(path.name + ".hosts"), instance)


def _make_file(path: Path) -> None:
    """Make the file for its owner alone; SQLite gives the files beside it the same mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        way = way_out(error, "Give a path to a file, in a folder that this user may write")
        said = f"the store at {path} can't be opened: {reason(error)}. {way}"
        raise StoreError(said, unavailable=True, full_disk=is_full(error)) from None


def _engine(path: Path | None) -> "Engine":
    from sqlalchemy import event

    engine = make_engine("sqlite://", functools.partial(_connect, ":memory:" if path is None else str(path)))
    event.listen(engine, "before_cursor_execute", _refuse_undone)
    return engine


def _connect(path: str) -> sqlite3.Connection:
    """Open the database. What is set here does not change the file."""
    # No isolation level: sqlite3 must not begin transactions by itself.
    connection = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)
    try:
        for setting in ("synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {setting}").close()
        connection.execute("SELECT count(*) FROM sqlite_master").close()  # is it a database at all?
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_undone(_: Any, cursor: sqlite3.Cursor, *__: Any) -> None:
    """Refuse a statement after SQLite itself rolled back (a full disk): it would be committed singly."""
    if not cursor.connection.in_transaction:
        raise sqlite3.OperationalError(UNDONE)


class SqliteWorker(SqlWorker):
    """A thread's connection to SQLite."""

    _may_write: bool | None = None

    def begin(self, transactions: "list[Transaction[Any]]") -> None:
        """Begin; to write, wait for the lock."""
        writes = transactions[0].writes
        if self._connection is None:
            self._may_write = None
        if self._may_write is not writes:
            self._prepare(transactions, writes=writes)
        if writes:
            self._patiently("BEGIN IMMEDIATE", transactions)
        else:
            self.driver.execute("BEGIN")

    def _prepare(self, transactions: "list[Transaction[Any]]", *, writes: bool) -> None:
        self.driver.execute(f"PRAGMA query_only={'OFF' if writes else 'ON'}")
        if writes and self._place.is_durable:
            # Who waits for a lock looks up from time to time: see `_patiently`.
            self.driver.execute(f"PRAGMA busy_timeout={GLANCE * 1000:.0f}")
            # Readers and a writer then work side by side. The file remembers it, so it must have proved to be ours.
            self._patiently("PRAGMA journal_mode=WAL", transactions)
        self._may_write = writes

    def _patiently(self, sql: str, transactions: "list[Transaction[Any]]") -> None:
        """Run *sql*, which needs a lock, and wait for the lock; not longer than anybody waits for us."""
        deadline = time.monotonic() + PATIENCE
        while not _is_done(self.driver, sql):
            if time.monotonic() > deadline or all(one.is_given_up for one in transactions):
                self.driver.execute(sql)
                return

    def is_undone(self) -> bool:
        """Tell whether there is no transaction any more."""
        return not self.driver.in_transaction


def _is_done(connection: sqlite3.Connection, sql: str) -> bool:
    """Run *sql*; False if the database is locked."""
    try:
        connection.execute(sql)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
