"""The embedded database: aiosqlite with one hop between threads for each statement, and none left half done.

aiosqlite hops to its thread for a cursor, for the statement, for its rows and for closing the cursor, and a cancelled
task leaves its statement running there. Here a statement is one hop, a BEGIN rides with the first statement, and a
cancellation comes out when the statement has ended: the connection is in a known state and can be used again.
"""

import asyncio
import contextlib
import functools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import aiosqlite
from aiosqlite.core import _STOP_RUNNING_SENTINEL

from agentos.base.foreign import to_the_end
from agentos.errors import StoreError
from agentos.store.alive import AlonePresence, FilePresence, Presence
from agentos.store.connections import POOL, Database, driver_connection, make_engine
from agentos.store.failures import UNDONE, told
from agentos.store.locations import Place

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection as SyncConnection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

PATIENCE = 30.0
"""For how many seconds a statement waits for another process to release the database."""
_GLANCE = 0.1
"""After how many seconds of that wait it looks whether its task was cancelled."""
_WRITE = "BEGIN IMMEDIATE"
_READ = "BEGIN"


class SqliteDatabase(Database):
    """A SQLite file, or a database in memory. One writer at a time; readers of a file do not wait for it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        if place.path is not None:
            _make_file(place.path)
        self._engine = self._readers = _engine(place.path)
        alone = asyncio.Lock()
        self._turns = {True: alone, False: alone if place.path is None else asyncio.Semaphore(POOL - 1)}

    async def _connected(self, *, writes: bool) -> "AsyncConnection":
        connection = await super()._connected(writes=writes)
        driver_connection(connection).due = _WRITE if writes else _READ
        return connection

    async def settle_in(self) -> None:
        """Let readers and a writer work side by side. The file remembers it, so it must be ours."""
        connection = await self._connected(writes=True)
        try:
            with told(self.place, reaching=True):
                await driver_connection(connection).use_wal()
        finally:
            await connection.close()

    def lock(self, connection: "SyncConnection") -> None:
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
        raise StoreError(
            f"the store at {path} can't be opened: {error.strerror}. Give a path to a file, in a folder that this user "
            "may write"
        ) from None


def _engine(path: Path | None) -> "AsyncEngine":
    from sqlalchemy.pool import AsyncAdaptedQueuePool, StaticPool

    pool: dict[str, Any] = {"poolclass": StaticPool}
    if path is not None:
        pool = {"poolclass": AsyncAdaptedQueuePool, "pool_size": POOL, "max_overflow": -1}
    connect = functools.partial(_connect, ":memory:" if path is None else str(path))
    return make_engine("sqlite+aiosqlite://", connect, **pool)


async def _connect(path: str) -> "Connection":
    connection = Connection(path)
    try:
        await to_the_end(connection.connect())
    except asyncio.CancelledError:
        await to_the_end(connection.close())
        raise
    return connection


class Connection(aiosqlite.Connection):
    """A connection and its thread. `due` is the BEGIN that the next statement takes along."""

    def __init__(self, path: str) -> None:
        # No isolation level: sqlite3 must not begin transactions by itself; that is done here.
        connect = functools.partial(
            sqlite3.connect, path, isolation_level=None, timeout=PATIENCE, check_same_thread=False
        )
        super().__init__(connect, iter_chunk_size=64)
        self._thread.daemon = True
        self.due: str | None = None
        self._has_begun = False
        self._given_up = threading.Event()

    def __del__(self) -> None:
        """Stop the thread of a connection that was dropped; that is in order when a program just ends.

        Nobody is told when that is done: whoever would be may have ended first.
        """
        if self._connection is not None:
            self._tx.put_nowait((None, functools.partial(_close_and_stop, self._connection)))

    async def close(self) -> None:
        """Close the database; the thread, which has nothing left to do, is over then."""
        await super().close()
        if self._thread.is_alive():
            self._thread.join(_GLANCE)

    async def connect(self) -> None:
        """Open the database. What is set here does not change the file."""
        await self
        try:
            await self._execute(self._set_up)
        except BaseException:
            await self.close()
            raise

    def _set_up(self) -> None:
        for setting in ("synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
            self._conn.execute(f"PRAGMA {setting}").close()
        self._conn.execute("SELECT count(*) FROM sqlite_master").close()  # is it a database at all?

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run *fn* in the thread. A cancellation is raised when the thread is done with it."""
        self._given_up.clear()
        # In a list, because the thread remembers its last job: it must not keep a dropped connection alive. And in a
        # function without a telling name, because aiosqlite logs what it runs, parameters included.
        job = [functools.partial(fn, *args, **kwargs)]
        try:
            return await super()._execute(lambda: _run_last(job))  # type: ignore[no-untyped-call]
        except asyncio.CancelledError:
            self._given_up.set()
            await self._thread_done()
            raise

    async def _thread_done(self) -> None:
        """Wait until the thread has done all it was asked to, however often this task is cancelled meanwhile."""
        done = threading.Event()
        while not done.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await to_the_end(super()._execute(done.set))  # type: ignore[no-untyped-call]

    def cursor(self) -> "Cursor":  # type: ignore[override]
        """Return a cursor that needs no thread before it has a statement."""
        return Cursor(self)

    async def commit(self) -> None:
        """Commit, if anything was begun."""
        self.due = None
        if self._has_begun:
            await self._execute(self._commit)

    async def rollback(self) -> None:
        """Roll back, if anything was begun."""
        self.due = None
        if self._has_begun:
            await self._execute(self._rollback)

    async def do(self, statement: Callable[[sqlite3.Connection], None]) -> None:
        """Run *statement* in the thread, and before it the BEGIN that is due."""
        await self._execute(self._do, statement)

    async def use_wal(self) -> None:
        """Switch to a write-ahead log, which several processes may want to do at once."""
        self.due = None
        await self._execute(self._use_wal)

    # -- in the thread -----------------------------------------------------------------------------------------

    def _do(self, statement: Callable[[sqlite3.Connection], None]) -> None:
        if self.due is not None:
            self._begin(self.due)
            self.due, self._has_begun = None, True
        elif self._has_begun:
            self._check_not_undone()
        statement(self._conn)

    def _begin(self, due: str) -> None:
        if due == _WRITE:
            self._conn.execute("PRAGMA query_only=OFF")
            self._patiently(due)
        else:
            self._conn.execute("PRAGMA query_only=ON")
            self._conn.execute(due)

    def _use_wal(self) -> None:
        self._conn.execute("PRAGMA query_only=OFF")
        self._patiently("PRAGMA journal_mode=WAL")

    def _patiently(self, sql: str) -> None:
        """Run *sql*, which needs a lock, and wait for the lock; not longer than the task that asked for it."""
        self._conn.execute(f"PRAGMA busy_timeout={_GLANCE * 1000:.0f}")
        try:
            deadline = time.monotonic() + PATIENCE
            while not self._did(sql, deadline):
                pass
        finally:
            self._conn.execute(f"PRAGMA busy_timeout={PATIENCE * 1000:.0f}")

    def _did(self, sql: str, deadline: float) -> bool:
        try:
            self._conn.execute(sql).close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or self._given_up.is_set():
                raise
            if time.monotonic() > deadline:
                raise
            return False
        return True

    def _check_not_undone(self) -> None:
        """Refuse to go on after SQLite itself rolled back (a full disk): what follows would be committed singly."""
        if not self._conn.in_transaction:
            raise sqlite3.OperationalError(UNDONE)

    def _commit(self) -> None:
        try:
            self._check_not_undone()
            self._conn.commit()
        except sqlite3.Error:
            self._rollback()
            raise
        self._has_begun = False

    def _rollback(self) -> None:
        self._conn.rollback()
        self._has_begun = False


def _close_and_stop(connection: sqlite3.Connection) -> object:
    with contextlib.suppress(sqlite3.Error):
        connection.close()
    return _STOP_RUNNING_SENTINEL


def _run_last(jobs: list[functools.partial[Any]]) -> Any:
    return jobs.pop()()


class Cursor:
    """A statement and its rows, which are all fetched in the thread at once."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run one statement."""
        await self._connection.do(lambda db: self._take(db.execute(sql, parameters)))

    async def executemany(self, sql: str, parameters: Sequence[Sequence[Any]]) -> None:
        """Run one statement for each of several sets of parameters."""
        await self._connection.do(lambda db: self._take(db.executemany(sql, parameters)))

    def _take(self, done: sqlite3.Cursor) -> None:
        self.description, self.lastrowid = done.description, done.lastrowid
        self._rows = done.fetchall() if done.description else []
        self.rowcount = done.rowcount
        done.close()

    async def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        rows, self._rows = self._rows, []
        return rows

    async def fetchmany(self, size: int = 1) -> list[Any]:
        """Return the next rows."""
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    async def fetchone(self) -> Any:
        """Return the next row."""
        return self._rows.pop(0) if self._rows else None

    async def close(self) -> None:
        """Forget the rows."""
        self._rows = []
