"""What hosts on one PostgreSQL tell one another: NOTIFY in any transaction, LISTEN in a session of its own."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentos.errors import StoreError
from agentos.processes.backoff import Backoff
from agentos.store.alive import HELD, close_share
from agentos.store.failures import in_our_words
from agentos.store.locations import StorePlace
from agentos.store.rows import PlainSql
from agentos.store.transactions import Hear, StoreThreads, Transaction, Worker

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

NOTICE_LIMIT = 7_900
"""How many bytes a notification has at most: PostgreSQL takes fewer than 8,000."""
_FIRST, _LONGEST, _JITTER = 0.05, 5.0, 0.2
_LOOK_EVERY = 0.5
"""After how many seconds an event loop looks that can't watch a socket."""
_NAME = "'agentos_' || md5(current_schema())"
"""What our notifications are called: stores in one database, in schemas of their own, do not hear each other."""
_NOTIFY = PlainSql(f"SELECT pg_notify({_NAME}, :said)")


def notify(connection: "Connection", said: str) -> None:
    """Tell all hosts *said*, ASCII of up to NOTICE_LIMIT characters, when the transaction is committed."""
    _NOTIFY.all(connection, said=said)


class ServerListening:
    """Hears the notifications of all hosts, in their order; connects again when the server was lost."""

    def __init__(
        self, connect: Callable[[], Any], place: StorePlace, hear: Hear, tell_lost: Callable[[StoreError], None]
    ) -> None:
        self._hear = hear
        self._tell_lost = tell_lost
        self._released = threading.Event()
        self._thread = StoreThreads(functools.partial(_ListeningWorker, connect, place, self._released.is_set), 1)
        self._session: Any = None
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        """It began, or could not at first."""

    async def start(self) -> None:
        """Begin; return when that is done, or failed for the first time. It is tried again until `close`."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen())
        await self._tried.wait()

    async def _listen(self) -> None:
        backoff = Backoff(_FIRST, _LONGEST, _JITTER)
        while True:
            try:
                await self._listen_once(backoff)
            except StoreError as error:
                if backoff.attempts == 0:
                    self._tell_lost(error)
                self._tried.set()
            await asyncio.sleep(backoff.next())

    async def _listen_once(self, backoff: Backoff) -> None:
        """Listen until the server is lost."""
        self._session = await self._thread.run(Transaction(_ListeningWorker.begin))
        HELD.add(self)
        backoff.reset()
        self._tried.set()
        while True:
            for said in await self._thread.run(Transaction(_ListeningWorker.take)):
                await self._hear(said)
            await _readable(self._session)

    def leave_to_parent(self) -> None:
        """Close a forked process's share of the connection."""
        close_share(self._session)

    async def close(self) -> None:
        """End the session."""
        self._released.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._thread.close()


async def _readable(session: Any) -> None:
    """Wait until there is something to read for *session*, or its end."""
    loop = asyncio.get_running_loop()
    is_readable = loop.create_future()
    number = session.fileno()
    try:
        loop.add_reader(number, _set, is_readable)
    except NotImplementedError:  # an event loop that can't
        await asyncio.sleep(_LOOK_EVERY)
        return
    try:
        await is_readable
    finally:
        loop.remove_reader(number)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class _ListeningWorker(Worker):
    """A thread's session with a server, which listens as long as it lasts."""

    def __init__(self, connect: Callable[[], Any], place: StorePlace, is_released: Callable[[], bool]) -> None:
        self._connect = connect
        self._place = place
        self._is_released = is_released
        self._session: Any = None
        self._heard: list[str] = []

    def run(self, transactions: list[Transaction[Any]]) -> None:
        """Do what is asked, one after the other."""
        for one in transactions:
            if one.take():
                one.run(self)
            if one.error is not None:
                one.error = in_our_words(one.error, self._place, reaching=True)

    def begin(self) -> Any:
        """Listen in a new session, and return it."""
        self.close()
        self._session = self._connect()
        self._session.is_given_up = self._is_released
        self._session.add_notify_handler(lambda one: self._heard.append(one.payload))
        name = self._session.execute(f"SELECT {_NAME}").fetchone()[0]
        self._session.execute(f'LISTEN "{name}"')
        return self._session

    def take(self) -> list[str]:
        """Return what was heard since the last time, without waiting for more; raise if the session is lost."""
        self._session.pgconn.consume_input()
        while (one := self._session.pgconn.notifies()) is not None:
            self._heard.append(one.extra.decode("utf-8", "replace"))
        heard, self._heard = self._heard, []
        return heard

    def close(self) -> None:
        """End the session."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception):  # it may be lost
                session.close()
