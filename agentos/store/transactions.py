"""Transactions: plain functions of a connection, each carried to a thread that owns one, and back, in one hop.

What a transaction does is known when it starts, so the event loop waits for none of its statements. A thread that
writes a file takes all that wait at the same moment into one commit.
"""

import asyncio
import contextlib
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from agentos.base.foreign import to_the_end
from agentos.errors import StoreError
from agentos.store.alive import Presence
from agentos.store.failures import UNDONE, heard, in_our_words
from agentos.store.locations import StorePlace

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

T = TypeVar("T")
Then = Callable[[Any], None]

Hear = Callable[[str], Awaitable[None]]
"""Takes in a notification of a host."""


class Listening(Protocol):
    """Hears what hosts of a database tell one another."""

    async def start(self) -> None:
        """Begin; return when that is done, or failed for the first time. It is tried again until `close`."""
        ...

    async def close(self) -> None:
        """Hear nothing more."""
        ...


POOL = 5
"""How many connections there are at most."""
GLANCE = 0.1
"""After how many seconds a thread that waits for a database looks whether anybody still waits for the thread."""


class Transaction(Generic[T]):
    """A function on its way to a thread and back: begun there once, or dropped by its caller before."""

    __slots__ = (
        *("_future", "_is_over", "_loop", "_taken", "_then"),
        *("error", "function", "is_given_up", "result", "writes"),
    )

    def __init__(self, function: Callable[[Any], T], *, writes: bool = False, then: Then | None = None) -> None:
        self.function = function
        self.writes = writes
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_given_up = False
        """Whether the caller was cancelled."""
        self._then = then
        self._taken = threading.Lock()
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self._future = self._loop.create_future()

    # -- in the event loop -------------------------------------------------------------------------------------

    async def ended(self) -> T:
        """Return the result. A caller that is cancelled drops the function; once it was begun, it waits for the end."""
        cancelled = None
        while not self._is_over:
            try:
                await self._future
            except asyncio.CancelledError as error:
                self.is_given_up = True
                if self.take():
                    self._then = None
                    raise
                cancelled = error
                self._future = self._loop.create_future()
        if cancelled is not None:
            raise cancelled
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[no-any-return]  # what the function returned

    def finish(self) -> None:
        """Let the caller go on."""
        self._is_over = True
        if self._then is not None and self.error is None:
            self._then(self.result)
        if not self._future.done():
            self._future.set_result(None)

    # -- in the thread -----------------------------------------------------------------------------------------

    def take(self) -> bool:
        """Tell whether this is yet to be begun, and let it be so no more: of the thread and the caller, one gets it."""
        return self._taken.acquire(blocking=False)

    def run(self, connection: Any) -> None:
        """Call the function; keep what it returns or raises."""
        self.error = None
        try:
            self.result = self.function(connection)
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            self.error = error

    def tell(self, transactions: "Sequence[Transaction[Any]]") -> None:
        """Have *transactions* finished by the event loop that all of them come from, if it still runs."""
        with contextlib.suppress(RuntimeError):  # it was closed without a word
            self._loop.call_soon_threadsafe(_finish, transactions)


def _finish(transactions: "Sequence[Transaction[Any]]") -> None:
    for one in transactions:
        one.finish()


class Worker(ABC):
    """What a thread does with the transactions that it is given, and with which connection."""

    @abstractmethod
    def run(self, transactions: "list[Transaction[Any]]") -> None:
        """Run those that still wait, and give each its result or its error. Raise nothing."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


Waiting = queue.SimpleQueue[Transaction[Any] | None]
"""What waits for a thread; None tells one thread to end."""


class StoreThreads:
    """Up to *limit* threads, started when they are needed, that serve transactions in the order these came."""

    def __init__(self, make_worker: Callable[[], Worker], limit: int, *, group: int = 1) -> None:
        self._make_worker = make_worker
        self._limit = limit
        self._group = group
        self._waiting: Waiting = queue.SimpleQueue()
        self._started: list[tuple[threading.Thread, Transaction[None]]] = []
        self._under_way = 0
        self._is_closed = False
        # Its threads know the queue alone, so they end when this is dropped. Those of a program that ends just stop.
        weakref.finalize(self, _stop, self._waiting, limit).atexit = False

    async def run(self, transaction: Transaction[T]) -> T:
        """Have *transaction* run, and return its result."""
        if self._is_closed:
            raise StoreError("the store was closed meanwhile")
        self._under_way += 1
        try:
            if len(self._started) < min(self._under_way, self._limit):
                self._start()
            self._waiting.put(transaction)
            return await transaction.ended()
        finally:
            self._under_way -= 1

    def _start(self) -> None:
        end: Transaction[None] = Transaction(lambda worker: worker.close())
        given = (self._waiting, self._make_worker(), self._group, end)
        thread = threading.Thread(target=_serve, args=given, name="agentos-store", daemon=True)
        thread.start()
        self._started.append((thread, end))

    async def close(self) -> None:
        """Let the threads do what they were given, and end them."""
        self._is_closed = True
        await to_the_end(self._close())

    async def _close(self) -> None:
        _stop(self._waiting, len(self._started))
        for thread, end in self._started:
            await end.ended()
            thread.join()
        self._started.clear()


def _stop(waiting: Waiting, threads: int) -> None:
    for _ in range(threads):
        waiting.put(None)


def _serve(waiting: Waiting, worker: Worker, group: int, end: Transaction[None]) -> None:
    """Be a thread: run what waits, until told to end."""
    while _serve_next(waiting, worker, group):
        pass
    end.run(worker)
    end.tell([end])


def _serve_next(waiting: Waiting, worker: Worker, group: int) -> bool:
    """Run what waits next, and with it up to *group* in all that wait by then. Keeps nothing of them afterwards."""
    first = waiting.get()
    if first is None:
        return False
    taken = [first]
    with contextlib.suppress(queue.Empty):
        while len(taken) < group:
            one = waiting.get_nowait()
            if one is None:
                waiting.put(None)
                break
            taken.append(one)
    worker.run(taken)
    first.tell(taken)
    return True


class SqlWorker(Worker):
    """Runs functions of a SQLAlchemy connection, each in a transaction of its own, or several in a shared one."""

    def __init__(self, place: StorePlace, engine: "Engine") -> None:
        self._place = place
        self._engine = engine
        self._connection: Connection | None = None
        self._driver: Any = None

    @property
    def connection(self) -> "Connection":
        """The connection of this thread, made when it is first needed."""
        if self._connection is None:
            self._connection = self._engine.connect()
            self._driver = self._connection.connection.dbapi_connection
        return self._connection

    @property
    def driver(self) -> Any:
        """The driver's own connection, which begins and commits: SQLAlchemy takes it for one long transaction."""
        return self._driver if self._connection is not None else self.connection.connection.dbapi_connection

    @abstractmethod
    def begin(self, transactions: "list[Transaction[Any]]") -> None:
        """Begin a transaction, to read or to write as those want who wait for it; give up if nobody does any more."""

    @abstractmethod
    def is_undone(self) -> bool:
        """Tell whether the database rolled back by itself, as some do after an error."""

    def run(self, transactions: "list[Transaction[Any]]") -> None:
        """Run one alone and several together; if those can't be committed together, each alone."""
        if not self._begins(transactions):
            return
        taken = [one for one in transactions if one.take()]
        if len(taken) == 1:
            self._run_alone(taken[0])
        elif not self._runs_together(taken):
            for one in taken:
                if self._begins([one]):
                    self._run_alone(one)

    def _begins(self, transactions: "list[Transaction[Any]]") -> bool:
        try:
            self.begin(transactions)
        except Exception as error:  # noqa: BLE001 - whatever a driver raises
            self.close()
            for one in transactions:
                one.error = in_our_words(error, self._place, reaching=True)
            return False
        return True

    def _run_alone(self, one: "Transaction[Any]") -> None:
        self._call(one)
        try:
            if one.error is None:
                self._commit()
                return
        except Exception as error:  # noqa: BLE001 - whatever a driver raises
            one.error = in_our_words(error, self._place, reaching=True)
        self._roll_back()

    def _runs_together(self, group: "list[Transaction[Any]]") -> bool:
        """Run all of them in the transaction that was begun, each undone by itself if it fails; False: none is kept."""
        try:
            for one in group:
                self.driver.execute("SAVEPOINT one")
                self._call(one)
                if one.error is not None:
                    self.driver.execute("ROLLBACK TO one")
                self.driver.execute("RELEASE one")
            self._commit()
        except Exception:  # noqa: BLE001 - whatever a driver raises; who is at fault is found when each runs alone
            self._roll_back()
            return False
        return True

    def _call(self, one: "Transaction[Any]") -> None:
        connection = self.connection
        _THREAD.is_calling = True
        one.run(connection)
        _THREAD.is_calling = False
        books = connection.get_transaction()
        if books is not None and not books.is_active:
            connection.rollback()
        if one.error is not None:
            one.error = in_our_words(one.error, self._place)

    def _commit(self) -> None:
        if self.connection.invalidated or self.is_undone():
            raise StoreError(f"the store at {self._place.shown}: {UNDONE}")
        self.driver.commit()

    def _roll_back(self) -> None:
        try:
            self.driver.rollback()
        except Exception:  # noqa: BLE001 - a connection that is lost: the database rolls back
            self.close()

    def close(self) -> None:
        """Close the connection; the next transaction makes another."""
        connection, self._connection, self._driver = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it may be lost
                connection.close()


class Database(ABC):
    """A database that is open: who writes it, and who reads it."""

    def __init__(self, place: StorePlace, writers: StoreThreads, readers: StoreThreads) -> None:
        self.place = place
        self._writers = writers
        self._readers = readers

    async def write(self, function: "Callable[[Connection], T]", then: Then | None = None) -> T:
        """Run *function* in a transaction and return what it returns, once that is committed. See `Store.write`."""
        return await self._writers.run(Transaction(function, writes=True, then=then))

    async def read(self, function: "Callable[[Connection], T]") -> T:
        """Run *function* in a transaction that only reads."""
        return await self._readers.run(Transaction(function))

    async def close(self) -> None:
        """Close every connection."""
        await self._readers.close()
        await self._writers.close()

    @abstractmethod
    def lock(self, connection: "Connection") -> None:
        """Keep every other process from changing the tables until the transaction ends."""

    @abstractmethod
    def presence(self, instance: str) -> Presence:
        """Return what shows to others that the host *instance* runs."""

    def listening(self, hear: Hear, tell_lost: Callable[[StoreError], None]) -> "Listening | None":  # noqa: ARG002 - as told
        """Return what hears notifications of other hosts; None if this database has none."""
        return None


def make_engine(url: str, connect: Callable[[], Any], **options: Any) -> "Engine":
    """Return an engine that makes connections for threads that keep them, and leaves transactions to those."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    engine = create_engine(url, creator=connect, poolclass=NullPool, hide_parameters=True, **options)
    for name in ("do_commit", "do_rollback"):
        setattr(engine.dialect, name, _refuse_to_functions)
    event.listen(engine, "handle_error", heard, retval=True)
    return engine


_THREAD = threading.local()
"""Whether a function is being called, in a thread of the store."""


def _refuse_to_functions(_: Any) -> None:
    """Neither commit nor roll back: the thread does that, by the driver itself."""
    if getattr(_THREAD, "is_calling", False):
        raise StoreError("a function that is given to the store must not commit or roll back")
