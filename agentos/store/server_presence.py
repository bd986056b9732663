"""That a host runs, told by a lock in a session of its own with PostgreSQL."""

import asyncio
import contextlib
import functools
import hashlib
import threading
import time
from collections.abc import Callable
from typing import Any

from agentos.base.foreign import to_the_end
from agentos.errors import StoreError
from agentos.store.alive import HELD, close_share
from agentos.store.failures import in_our_words
from agentos.store.locations import StorePlace
from agentos.store.transactions import StoreThreads, Transaction, Worker

_GOODBYE = 2.0
"""For how many seconds a server may take to release a lock."""
_AGAIN = (0.05, 5.0)
"""After how many seconds a lock that was lost is taken again: at first, and at the most."""


class ServerPresence:
    """An advisory lock in a PostgreSQL session of our own, which asks for the locks of others as well."""

    def __init__(self, connect: Callable[[], Any], place: StorePlace, instance: str) -> None:
        self._number = lock_number(instance)
        self._released = threading.Event()
        self._thread = StoreThreads(functools.partial(_SessionWorker, connect, place, self._released.is_set), 1)
        self._session: Any = None
        self._is_held = self._is_watched = False
        self._turn = asyncio.Lock()
        self._regaining: asyncio.Task[None] | None = None

    async def renew(self) -> None:
        """Take our lock, in a new session if the last one was lost."""
        if not (self._is_held and self._is_watched):
            await to_the_end(self._hold())

    async def _hold(self) -> None:
        self._is_held = await self._ask(functools.partial(_SessionWorker.hold, number=self._number))

    async def _ask(self, question: "Callable[[_SessionWorker], bool]") -> bool:
        """Have *question* answered in our session. While it is idle, the event loop watches it for its end."""
        async with self._turn:
            self._unwatch()
            worker, answer = await self._thread.run(Transaction(lambda worker: (worker, question(worker))))
            self._watch(worker.session)
        return answer

    def _watch(self, session: Any) -> None:
        self._session = session
        HELD.add(self)
        with contextlib.suppress(NotImplementedError):  # an event loop that can't: then every use makes sure
            asyncio.get_running_loop().add_reader(session.fileno(), self._lost)
            self._is_watched = True

    def _unwatch(self) -> None:
        if self._is_watched:
            asyncio.get_running_loop().remove_reader(self._session.fileno())
            self._is_watched = False

    def _lost(self) -> None:
        """Take the lock again at once, in a new session: until then others take this host for dead."""
        self._unwatch()
        if not self._released.is_set():
            self._regaining = self._regaining or asyncio.ensure_future(self._regain())

    async def _regain(self) -> None:
        pause = _AGAIN[0]
        while not self._released.is_set():
            with contextlib.suppress(StoreError):  # the server is away: whoever needs it now is told so by itself
                await self._hold()
                if self._is_held:
                    break
            await asyncio.sleep(pause)
            pause = min(2 * pause, _AGAIN[1])
        self._regaining = None

    async def is_alive(self, instance: str) -> bool:
        """Try the lock of that host, shared and for one statement: nobody else who looks is in the way."""
        await self.renew()
        return not await to_the_end(self._ask(functools.partial(_SessionWorker.is_free, number=lock_number(instance))))

    def leave_to_parent(self) -> None:
        """Close a forked process's share of the connection."""
        close_share(self._session)

    async def release(self) -> None:
        """End the session, and with it the lock."""
        self._released.set()
        if self._regaining is not None:
            self._regaining.cancel()
            await asyncio.wait([self._regaining])
        self._unwatch()
        await self._thread.close()


class _SessionWorker(Worker):
    """A thread's session with a server, which holds a lock as long as it lasts."""

    def __init__(self, connect: Callable[[], Any], place: StorePlace, is_released: Callable[[], bool]) -> None:
        self._connect = connect
        self._place = place
        self._is_released = is_released
        self._is_held = False
        self.session: Any = None

    def run(self, transactions: list[Transaction[Any]]) -> None:
        """Answer what is asked, one after the other."""
        for one in transactions:
            if one.take():
                one.run(self)
            if one.error is not None:
                one.error = in_our_words(one.error, self._place, reaching=True)

    def hold(self, number: int) -> bool:
        """Tell whether we have the lock, after making sure of the session, or beginning another."""
        if self.session is not None and not self._answers():
            self.close()
        if self.session is None:
            self.session = self._connect()
            self.session.is_given_up = self._is_released
        # Not waited for: a lost session that the server has not given up yet still holds it for us.
        self._is_held = self._is_held or self._first("SELECT pg_try_advisory_lock(%s)", number)
        return self._is_held

    def is_free(self, number: int) -> bool:
        """Tell whether nobody holds a lock."""
        return self._first("SELECT pg_try_advisory_xact_lock_shared(%s)", number)

    def _answers(self) -> bool:
        try:
            return self._first("SELECT %s > 0", 1)
        except Exception:  # noqa: BLE001 - however the loss of a session shows
            return False

    def _first(self, sql: str, number: int) -> bool:
        found: bool = self.session.execute(sql, (number,)).fetchone()[0]
        return found

    def close(self) -> None:
        """End the session; the server is told to release the lock, so that it does so before this returns."""
        session, self.session, self._is_held = self.session, None, False
        if session is not None:
            deadline = time.monotonic() + _GOODBYE
            session.is_given_up = lambda: time.monotonic() > deadline
            with contextlib.suppress(Exception):  # it may be lost, and the lock with it
                session.execute("SELECT pg_advisory_unlock_all()")
            session.close()


def lock_number(instance: str) -> int:
    """Return the number by which PostgreSQL knows the lock of a host."""
    digest = hashlib.sha256(b"agentos host " + instance.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
