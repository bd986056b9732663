"""The store: opened when it is needed, used by one event loop at a time, closed with it at the latest."""

import asyncio
import atexit
import contextlib
import hashlib
import hmac
import importlib.util
import uuid
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from agentos.base.full_disks import is_full, reason
from agentos.errors import StoreError
from agentos.store.locations import StorePlace, place_of
from agentos.store.marks import Mark, make_mark, mark_file, read_mark
from agentos.store.rows import PlainSql
from agentos.store.sealing_key import load_key

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from agentos.store.alive import Presence
    from agentos.store.transactions import Database, Hear, Listening

T = TypeVar("T")


class Store:
    """What must last: tables in a SQLite file, in PostgreSQL, or (with no location) in memory while it is open.

    *location* is a path, a URL or "default". *key* seals what is stored; without it the store finds or makes one.
    """

    def __init__(self, location: str | Path | None = None, *, key: bytes | str | None = None) -> None:
        self._place = place_of(location)
        self._given_key = key
        self._session: _OpenStore | None = None
        self._is_given_up = False
        self.instance = uuid.uuid4().hex

    def __repr__(self) -> str:
        return f"<Store at {self._place.shown}>"

    @property
    def place(self) -> StorePlace:
        """Return where it keeps its data."""
        return self._place

    @property
    def is_durable(self) -> bool:
        """Tell whether what is stored outlives the process."""
        return self._place.is_durable

    @property
    def is_open(self) -> bool:
        """Tell whether it can be used without being opened first."""
        return self._session is not None and self._session.is_open and not self._session.is_over

    # -- opening and closing -----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open the store and bring its tables up to date, unless that is done; raise StoreError if it can't be."""
        await self._opened()

    async def _opened(self) -> "_OpenStore":
        session = self._session_here()
        while session.is_ending:
            await session.end()
            session = self._session_here()
        await session.ready()
        return session

    def _session_here(self) -> "_OpenStore":
        """Return the session of the running event loop, begun now if there is none."""
        session = self._session
        if session is None or session.is_over:
            if self._is_given_up:
                raise StoreError(f"the store at {self._place.shown} is closed: the host is shut down; make a new one")
            session = self._session = _OpenStore(self._place, self.instance, self._given_key)
        elif session.loop is not asyncio.get_running_loop():
            raise StoreError(f"the store at {self._place.shown} is open in another event loop; close it there first")
        return session

    async def close(self) -> None:
        """Let transactions end and close the store. It may be opened again; what was in memory is gone then."""
        if self._session is not None and not self._session.is_over:
            await self._session_here().end()

    async def give_up(self) -> None:
        """Close the store for good: its host is shut down."""
        self._is_given_up = True
        await self.close()

    # -- transactions ------------------------------------------------------------------------------------------

    async def write(self, function: "Callable[[Connection], T]", then: "Callable[[T], None] | None" = None) -> T:
        """Run *function* in one transaction that writes, and return what it returns once that is committed.

        It runs in a thread of the store: it must neither commit nor change anything but the database, since it may be
        run again if it can't be committed with others. If it raises, what it did is rolled back; what the database has
        to say against it is raised as StoreError. A caller that is cancelled before it was begun drops it; later, the
        caller is told when it has ended, one way or the other. *then* is called in the event loop if it was committed.
        """
        session = await self._opened()
        return await session.use(session.database.write(function, then))

    async def read(self, function: "Callable[[Connection], T]") -> T:
        """Run *function* in one transaction that only reads; on durable stores it does not wait for those who write."""
        session = await self._opened()
        return await session.use(session.database.read(function))

    # -- sealing -----------------------------------------------------------------------------------------------

    def seal(self, text: str) -> str:
        """Return the seal of *text*, which only who has the store's key can make."""
        return hmac.digest(self._with_key.key, text.encode("utf-8", "surrogatepass"), "sha256").hex()

    def is_sealed(self, text: str, seal: str) -> bool:
        """Tell whether *seal* is the seal of *text*."""
        if not isinstance(seal, str):
            return False
        return hmac.compare_digest(self.seal(text).encode(), seal.encode("utf-8", "surrogatepass"))

    @property
    def key_id(self) -> str:
        """The key's name: which key it is, and nothing of it."""
        return self._with_key.key_id

    @property
    def _with_key(self) -> "_OpenStore":
        if self._session is None or not self._session.is_open:
            raise StoreError(f"the store at {self._place.shown} is not open, so its key is not known; open() it first")
        return self._session

    # -- the mark ----------------------------------------------------------------------------------------------

    def mark(self) -> Mark | None:
        """Return the mark that a log was begun here; None if there is none. Raise StoreError if it is not ours."""
        file = mark_file(self._place)
        mark = None if file is None else read_mark(file)
        if mark is not None and not self.is_sealed(mark.text, mark.seal):
            why = "was changed" if mark.key_id == self.key_id else "is sealed with another key"
            raise StoreError(
                f"{file}, which says that a log was begun here, {why}. Give the store that key, or restore the file; "
                "if this is meant to be a new log, remove it"
            )
        return mark

    def set_mark(self, first: str, at: str) -> None:
        """Note beside the key that a log was begun, with the hash of its first record; an earlier mark stays."""
        file = mark_file(self._place)
        if file is None:
            return
        mark = Mark(first=first, at=at, key_id=self.key_id)
        try:
            make_mark(file, attrs.evolve(mark, seal=self.seal(mark.text)))
        except OSError as error:
            said = f"that a log was begun can't be noted at {file}: {reason(error)}"
            raise StoreError(said, full_disk=is_full(error)) from None

    @property
    def mark_shown(self) -> str:
        """Return where the mark is, for people."""
        return str(mark_file(self._place))

    # -- other hosts -------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Tell whether hosts can tell one another something by it: it is on a server."""
        return self._place.dsn is not None

    async def listening(self, hear: "Hear", tell_lost: Callable[[StoreError], None]) -> "Listening | None":
        """Return what calls *hear* with the notifications of all hosts, one after the other, once it is started.

        *tell_lost* is told when the server is lost; whatever is notified until it is back is missed. None if there
        are none: the database is a file, or in memory.
        """
        return (await self._opened()).database.listening(hear, tell_lost)

    async def is_alive(self, instance: str) -> bool:
        """Tell whether the host with that instance id still runs."""
        if instance == self.instance:
            return True
        session = await self._opened()
        return await session.presence.is_alive(instance)


class _OpenStore:
    """The store from one opening to its closing: what is open, who uses it, and how it ends.

    Opening and closing are tasks of their own: many may wait for them, and one that is cancelled harms no other.
    """

    database: "Database"
    presence: "Presence"
    key: bytes
    key_id: str

    def __init__(self, place: StorePlace, instance: str, given_key: bytes | str | None) -> None:
        self.loop = asyncio.get_running_loop()
        self._keeper: AsyncGenerator[None, None] | None = None
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()
        self._ending: asyncio.Task[None] | None = None
        self._opening = self.loop.create_task(self._open(place, instance, given_key))
        self._opening.add_done_callback(_seen)

    @property
    def is_open(self) -> bool:
        """Tell whether it can be used."""
        return self._keeper is not None and self._ending is None

    @property
    def is_ending(self) -> bool:
        """Tell whether it is being closed."""
        return self._ending is not None

    @property
    def is_over(self) -> bool:
        """Tell whether there is nothing left to use or close: it ended, never opened, or went with its loop."""
        if self._opening.done() and self._keeper is None:
            return True
        return self.loop.is_closed() or (self._ending is not None and self._ending.done())

    async def _open(self, place: StorePlace, instance: str, given_key: bytes | str | None) -> None:
        from agentos.store.migrations import migrate

        async with AsyncExitStack() as undo:
            self.database = database_at(place)
            undo.push_async_callback(self.database.close)
            await migrate(self.database)
            # Asked before the key is looked for: who begins a store has made its key by then.
            is_begun = place.is_durable and await self._was_begun(place)
            self.key = load_key(given_key, place, is_begun=is_begun)
            self.key_id = hashlib.sha256(self.key).hexdigest()[:16]
            self.presence = self.database.presence(instance)
            undo.push_async_callback(self.presence.release)
            await self.presence.renew()
            keeper = _kept(undo.pop_all())
            await anext(keeper)
            self._keeper = keeper
            _kept_open.add(self)

    def let_go(self) -> None:
        """Drop what went with a loop that was closed."""
        if self.loop.is_closed():
            self._keeper = None

    async def _was_begun(self, place: StorePlace) -> bool:
        """Tell whether something in the store was sealed: its log has a head, or a mark says that it was begun."""
        file = mark_file(place)
        return (file is not None and file.is_file()) or await self.database.read(_has_head)

    async def ready(self) -> None:
        """Wait until it is open; see that others still know us for alive."""
        if self._keeper is None:
            await asyncio.shield(self._opening)
        await self.presence.renew()

    async def use(self, transaction: Coroutine[Any, Any, T]) -> T:
        """Keep it open for the transaction."""
        self._users += 1
        self._unused.clear()
        try:
            return await transaction
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def end(self) -> None:
        """Wait until nobody uses it, then close it."""
        with contextlib.suppress(StoreError):
            await asyncio.shield(self._opening)
        while self._users:
            await self._unused.wait()
        if self._keeper is not None:
            self._ending = self._ending or self.loop.create_task(self._keeper.aclose())
            await asyncio.shield(self._ending)


_ANY_HEAD = PlainSql("SELECT id FROM audit_head LIMIT 1")


def _has_head(connection: "Connection") -> bool:
    """Tell whether a log was begun in the database."""
    return _ANY_HEAD.one(connection) is not None


def database_at(place: StorePlace) -> "Database":
    """Return the database at *place*, which nothing was asked yet."""
    if place.dsn is None:
        from agentos.store.sqlite import SqliteDatabase

        return SqliteDatabase(place)
    if importlib.util.find_spec("psycopg") is None:
        way = "pip install 'agentos-host[postgres]'"
        raise StoreError(f"a store in PostgreSQL needs psycopg, which is not installed: {way}")
    from agentos.store.postgres import PostgresDatabase

    return PostgresDatabase(place)


async def _kept(undo: AsyncExitStack) -> AsyncGenerator[None, None]:
    """Close what is open when this generator is closed: by us, by the end of the event loop, or when it is dropped."""
    try:
        yield
    finally:
        await undo.aclose()


_kept_open: "weakref.WeakSet[_OpenStore]" = weakref.WeakSet()


@atexit.register
def _let_all_go() -> None:
    """Drop what a program forgot while Python is whole: a module that is cleared late would do so without asyncio."""
    for one in list(_kept_open):
        one.let_go()


def _seen(opening: "asyncio.Task[None]") -> None:
    """Look at the outcome even if nobody waits for it any more, so that it is not reported as lost."""
    if not opening.cancelled():
        opening.exception()
