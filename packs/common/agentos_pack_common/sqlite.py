"""SQLite for packs: opened with care, migrated, one writer with readers beside it, nothing left behind.

Database      a file, or a database in memory, used from an event loop
StorageError  what can go wrong, in words for people and models
storable, quoted_terms, like_pattern   text on its way into a statement

Work runs in threads that are there as long as the database is open. The work of a caller that is cancelled is
interrupted and rolled back. No message names more of a path than the file's own name.
"""

import asyncio
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

READERS = 4
"""How many statements read a file side by side."""
PATIENCE = 5.0
"""For how many seconds a change waits for another process that is writing."""
GRACE = 5.0
"""For how many seconds closing waits for work that was told to stop."""

_GLANCE = 0.1
_STEPS = 1_000
_SETTINGS = ("foreign_keys=ON", "trusted_schema=OFF", "secure_delete=ON", "synchronous=FULL", "temp_store=MEMORY")


class StorageError(ValueError):
    """A database that can't be used, or not right now; the message says why and what to do."""


class Stop:
    """Tells work in a thread that nobody waits for it any more, or that its time is up."""

    __slots__ = ("_deadline", "asked")

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self.asked = False

    @property
    def is_late(self) -> bool:
        """Tell whether the time is up."""
        return time.monotonic() > self._deadline

    def __call__(self) -> bool:
        """Tell whether the work should end: the form that SQLite's progress handler takes."""
        return self.asked or self.is_late


# -- the database ------------------------------------------------------------------------------------------------


class Database:
    """A SQLite file that belongs to one pack, or a database in memory (*path* None).

    *application_id* marks the file as the pack's own; a file of somebody else is left alone. *migrations* are lists of
    statements, one list for each version; the file's `user_version` says how many have run. *seconds* is how long one
    piece of work may take, *max_bytes* how large the file may grow.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        application_id: int,
        migrations: Sequence[Sequence[str]],
        create: bool = True,
        max_bytes: int = 1 << 30,
        seconds: float = 10.0,
    ) -> None:
        self.path = None if path is None else path.expanduser()
        self._application_id = application_id
        self._migrations = migrations
        self._create = create
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._threads: ThreadPoolExecutor | None = None
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._under_way: dict[asyncio.Future[Any], Stop] = {}
        self._lock = threading.Lock()
        self._write_turn = asyncio.Semaphore(1)
        self._read_turn = self._write_turn if path is None else asyncio.Semaphore(READERS)

    @property
    def name(self) -> str:
        """Return what messages call it."""
        return "the database in memory" if self.path is None else f"the database {self.path.name!r}"

    @property
    def is_open(self) -> bool:
        """Tell whether it can be used."""
        return self._writer is not None

    @property
    def is_durable(self) -> bool:
        """Tell whether what is written outlives the process."""
        return self.path is not None

    # -- opening and closing -----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open the database, make or migrate its tables. Raise StorageError, and leave nothing open, if that fails."""
        if self.is_open:
            return
        self._threads = ThreadPoolExecutor(READERS + 1, thread_name_prefix="agentos-sqlite")
        try:
            await self._wait_for(self._start(self._open))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Interrupt what is under way, and close every connection. A database in memory is gone."""
        with self._lock:
            writer, self._writer = self._writer, None
        for stop in self._under_way.values():
            stop.asked = True
        stuck = (await asyncio.wait(list(self._under_way), timeout=GRACE))[1] if self._under_way else ()
        with self._lock:
            idle, self._idle = self._idle, []
        if writer is not None and not stuck:
            idle.append(writer)
        elif writer is not None:  # in use by a thread that does not end: closed when it does
            asyncio.gather(*stuck, return_exceptions=True).add_done_callback(lambda _: writer.close())
        if idle:
            await self._wait_for(self._start(lambda _: _close_all(idle)))
        if self._threads is not None:
            self._threads.shutdown(wait=not stuck)
            self._threads = None

    def _start(self, work: Callable[[Stop], T]) -> "asyncio.Future[T]":
        """Start *work* in a thread."""
        stop = Stop(self._seconds)
        future = asyncio.get_running_loop().run_in_executor(self._threads, work, stop)
        self._under_way[future] = stop
        future.add_done_callback(self._note_end)
        return future

    async def _wait_for(self, future: "asyncio.Future[T]") -> T:
        """Wait for work that was started. If the caller is cancelled, that comes out when the work has ended."""
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if (stop := self._under_way.get(future)) is not None:
                stop.asked = True
                await asyncio.wait([future], timeout=GRACE)
            raise

    def _note_end(self, future: "asyncio.Future[Any]") -> None:
        del self._under_way[future]
        if not future.cancelled():
            future.exception()  # seen: whoever waits gets it raised, and nobody need wait

    def _open(self, stop: Stop) -> None:
        if self.path is not None:
            _check_file(self.path, self.name, create=self._create)
        with self._store_errors(stop):
            connection = self._connect()
            try:
                self._check_owner(connection)
                if self.path is not None:
                    _patiently(connection, "PRAGMA journal_mode=WAL", stop)
                self._migrate(connection, stop)
            except BaseException:
                connection.close()
                raise
        with self._lock:
            self._writer = connection

    def _connect(self, *, writes: bool = True) -> sqlite3.Connection:
        """Open a connection. No isolation level: sqlite3 must not begin transactions by itself."""
        target = ":memory:" if self.path is None else str(self.path)
        connection = sqlite3.connect(target, isolation_level=None, timeout=_GLANCE, check_same_thread=False)
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            (page_size,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count={max(1, self._max_bytes // page_size)}")
            connection.execute(f"PRAGMA query_only={'OFF' if writes else 'ON'}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_owner(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that has tables of somebody else, or of a later version."""
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        if tables and owner != self._application_id:
            raise StorageError(f"{self.name} belongs to another program; give the path of a file of its own")
        self._check_version(connection)

    def _check_version(self, connection: sqlite3.Connection) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > len(self._migrations):
            raise StorageError(
                f"{self.name} has version {version}, but this pack knows {len(self._migrations)}; install a newer pack"
            )
        return version

    def _migrate(self, connection: sqlite3.Connection, stop: Stop) -> None:
        """Run the migrations that are missing, each process waiting for the others."""
        if self._check_version(connection) == len(self._migrations):
            return
        _patiently(connection, "BEGIN IMMEDIATE", stop)
        try:
            for migration in self._migrations[self._check_version(connection) :]:
                for statement in migration:
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id={self._application_id}")
            connection.execute(f"PRAGMA user_version={len(self._migrations)}")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise

    # -- work --------------------------------------------------------------------------------------------------

    async def read(self, work: Work[T]) -> T:
        """Run *work* in one read transaction; it can't change anything."""
        return await self._use(self._read_turn, lambda stop: self._reading(work, stop))

    async def write(self, work: Work[T]) -> T:
        """Run *work* in one write transaction: all of it is kept, or nothing if it raises or is cancelled."""
        return await self._use(self._write_turn, lambda stop: self._writing(work, stop, keep=True))

    async def rehearse(self, work: Work[T]) -> T:
        """Run *work* as `write` does, return what it returns, and keep nothing of it."""
        return await self._use(self._write_turn, lambda stop: self._writing(work, stop, keep=False))

    async def _use(self, turn: asyncio.Semaphore, work: Callable[[Stop], T]) -> T:
        await turn.acquire()
        future: asyncio.Future[T] | None = None
        try:
            if not self.is_open:
                raise StorageError(f"{self.name} is closed")
            future = self._start(work)
        finally:
            if future is None:
                turn.release()
        # Only when the thread is done: a caller that gave up must not hand its connection to the next.
        future.add_done_callback(lambda _: turn.release())
        return await self._wait_for(future)

    def _reading(self, work: Work[T], stop: Stop) -> T:
        with self._store_errors(stop), self._reader() as connection:
            connection.execute("PRAGMA query_only=ON")
            try:
                return _in_transaction(connection, work, stop, begin="BEGIN", keep=False)
            finally:
                if self.path is None:
                    connection.execute("PRAGMA query_only=OFF")

    def _writing(self, work: Work[T], stop: Stop, *, keep: bool) -> T:
        with self._store_errors(stop):
            return _in_transaction(self._open_writer(), work, stop, begin="BEGIN IMMEDIATE", keep=keep)

    def _open_writer(self) -> sqlite3.Connection:
        writer = self._writer
        if writer is None:
            raise StorageError(f"{self.name} is closed")
        return writer

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to read with; in memory there is only one for everything."""
        if self.path is None:
            yield self._open_writer()
            return
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect(writes=False)
        try:
            yield connection
        finally:
            with self._lock:
                keeps = self._writer is not None
                if keeps:
                    self._idle.append(connection)
            if not keeps:
                connection.close()

    @contextmanager
    def _store_errors(self, stop: Stop) -> Iterator[None]:
        """Put what SQLite says into words; constraints and mistakes in statements are the pack's own business."""
        try:
            yield
        except sqlite3.Error as error:
            if (words := self._error_message(error, stop)) is None:
                raise
            raise StorageError(f"{self.name} {words}") from None

    def _error_message(self, error: sqlite3.Error, stop: Stop) -> str | None:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            return f"took longer than {self._seconds:g} s; ask for less" if stop.is_late else "was told to stop"
        if code == sqlite3.SQLITE_FULL:
            return f"is full: it may have {self._max_bytes:,} bytes, or the disk has no more; delete something first"
        if "no such module: fts5" in str(error):
            return "needs FTS5, which this Python's SQLite lacks; use a Python whose SQLite has it"
        return _WORDS.get(code)


_WORDS = {
    sqlite3.SQLITE_BUSY: "is busy: another process is writing; try again",
    sqlite3.SQLITE_LOCKED: "is busy: another process is writing; try again",
    sqlite3.SQLITE_READONLY: "can't be written; give this user the right to, and to its folder",
    sqlite3.SQLITE_CANTOPEN: "can't be opened; see that its folder exists and that this user may use it",
    sqlite3.SQLITE_PERM: "can't be opened; see that this user may use it",
    sqlite3.SQLITE_NOTADB: "is no SQLite database; give the path of one, or of a file that does not exist yet",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup",
    sqlite3.SQLITE_IOERR: "can't be read or written: the disk reports an error",
    sqlite3.SQLITE_TOOBIG: "takes no value as large as that; make it shorter",
}


def _check_file(path: Path, name: str, *, create: bool) -> None:
    """See that the file is one, and make it, for its owner alone, if it may be made."""
    try:
        if not path.exists():
            if not create:
                raise StorageError(f"{name} does not exist; create it, or correct the path")
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
        if not stat.S_ISREG(path.stat().st_mode):
            raise StorageError(f"{name} is no regular file; give the path of one")
    except OSError as error:
        raise StorageError(f"{name} can't be opened: {error.strerror}; correct the path or its rights") from None


def _close_all(connections: Iterable[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def _in_transaction(connection: sqlite3.Connection, work: Work[T], stop: Stop, *, begin: str, keep: bool) -> T:
    connection.set_progress_handler(stop, _STEPS)
    try:
        _patiently(connection, begin, stop)
        outcome = work(connection)
        if keep:
            _commit(connection, stop)
        return outcome
    finally:
        connection.set_progress_handler(None, 0)
        connection.rollback()


def _commit(connection: sqlite3.Connection, stop: Stop) -> None:
    if not connection.in_transaction:  # a full disk: SQLite itself rolled back, and what followed stood alone
        raise sqlite3.OperationalError("the transaction was rolled back")
    if stop.asked:
        raise StorageError("the change was taken back: its caller had gone")
    connection.execute("COMMIT")


def _patiently(connection: sqlite3.Connection, statement: str, stop: Stop) -> None:
    """Run a statement that needs a lock, and wait for the lock; not longer than whoever asked for it waits."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute(statement).close()
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not is_busy or stop.asked or time.monotonic() > deadline:
                raise
        else:
            return


# -- text --------------------------------------------------------------------------------------------------------


def storable(text: str, place: str) -> str:
    """Return *text* if SQLite can keep it as it is: no NUL, no half of a character."""
    if "\0" in text:
        raise ValueError(f"{place}: has a NUL character; leave it out")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{place}: has half a character at {error.start + 1}; send whole Unicode text") from None
    return text


def quoted_terms(text: str, *, limit: int = 16) -> list[str]:
    """Return the words of *text*, each quoted, so that FTS5 takes it as a word and never as its syntax."""
    plain = text.replace("\0", " ").encode("utf-8", "replace").decode()
    words = dict.fromkeys(word for word in plain.split() if any(char.isalnum() for char in word))
    return ['"' + word.replace('"', '""') + '"' for word in list(words)[:limit]]


def like_pattern(text: str) -> str:
    r"""Return a pattern for `LIKE ... ESCAPE '\'` that finds *text* anywhere, as it is."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
