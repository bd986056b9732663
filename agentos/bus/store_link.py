"""Messages to and from the other hosts of a PostgreSQL store: in notifications, and large ones in a table.

A message is sealed with the store's key: whoever can reach the database, and has no key, can't speak for a host. Each
host numbers its messages, so one that is told again is heard once.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from agentos.base.foreign import to_the_end
from agentos.errors import StoreError
from agentos.secrets.masking import MaskingLogger
from agentos.store import Store
from agentos.store.rows import PlainSql

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from agentos.store.transactions import Listening

KEPT = 300.0
"""For how many seconds a large message is kept for those who read it."""
_BATCH_SIZE = 1_000_000
"""How many characters are written at once, if there is more than one message."""
_SENDERS = 1_000
"""Of how many hosts it is remembered what was heard last."""
_SEAL = 64
_ROW = "row "
_NOW = "extract(epoch from now())"
_INSERT = PlainSql(f"INSERT INTO bus_messages (id, body, created_at) VALUES (:id, :body, {_NOW})")  # noqa: S608 - our own
_FIND = PlainSql("SELECT body FROM bus_messages WHERE id = :id")
_FORGET = PlainSql(f"DELETE FROM bus_messages WHERE created_at < {_NOW} - :kept")  # noqa: S608 - our own


@attrs.define(eq=False)
class _Outgoing:
    number: int
    topic: str
    text: str
    is_over: bool = False
    error: StoreError | None = None


class StoreLink:
    """Tells other hosts what is published here, and *arrived* what is published there, each in its order."""

    def __init__(self, store: Store, arrived: Callable[[str, str], None], logger: MaskingLogger) -> None:
        self._store = store
        self._arrived = arrived
        self._logger = logger
        self._number = 0
        self._waiting: list[_Outgoing] = []
        self._turn = asyncio.Lock()
        self._listening: Listening | None = None
        self._newest: dict[str, int] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._sweeping: asyncio.Task[None] | None = None

    # -- out ---------------------------------------------------------------------------------------------------

    async def send(self, topic: str, text: str) -> None:
        """Tell other hosts; return when that is certain. Those that wait at the same moment share a commit."""
        self._number += 1
        one = _Outgoing(self._number, topic, text)
        self._waiting.append(one)
        try:
            async with self._turn:
                if not one.is_over:
                    await to_the_end(self._send(self._batch()))
        finally:
            with contextlib.suppress(ValueError):
                self._waiting.remove(one)
        if one.error is not None:
            raise one.error

    def _batch(self) -> list[_Outgoing]:
        """Return what is next, in order."""
        size, count = 0, 0
        for one in self._waiting:
            size += len(one.text)
            if count and size > _BATCH_SIZE:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    async def _send(self, batch: list[_Outgoing]) -> None:
        try:
            await self._store.open()
            notices = [(f"{self._store.instance}-{one.number}", self._sealed(one)) for one in batch]
            if await self._store.write(lambda connection: _tell(connection, notices)):
                self._sweep_later()
        except StoreError as error:
            for one in batch:
                one.error = error
        for one in batch:
            one.is_over = True

    def _sealed(self, one: _Outgoing) -> str:
        said = json.dumps([self._store.instance, one.number, one.topic]) + "\n" + one.text
        return self._store.seal(f"bus {said}") + said

    # -- in ----------------------------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Hear other hosts from now on; return when that began, or failed for the first time and is tried again."""
        if self._listening is None:
            self._listening = await self._store.listening(self._hear, self._lost)
            await self._sweep()
        if self._listening is not None:
            await self._listening.start()

    def _lost(self, error: StoreError) -> None:
        self._logger.warning("the bus does not hear other hosts until the store can be reached again: %s", error)

    async def _hear(self, said: str) -> None:
        """Take in a notification. One of our own was heard here when it was published."""
        if said.startswith(_ROW):
            id = said.removeprefix(_ROW)
            if id.startswith(self._store.instance):
                return
            said = await self._fetched(id)
        head, _, text = said[_SEAL:].partition("\n")
        if said and self._store.is_sealed(f"bus {said[_SEAL:]}", said[:_SEAL]):
            sender, number, topic = json.loads(head)
            if sender != self._store.instance and number > self._newest.get(sender, 0):
                self._note(sender, number)
                self._arrived(topic, text)

    def _note(self, sender: str, number: int) -> None:
        self._newest.pop(sender, None)
        self._newest[sender] = number
        if len(self._newest) > _SENDERS:
            del self._newest[next(iter(self._newest))]

    async def _fetched(self, id: str) -> str:
        """Return a large message; nothing if it can't be had any more."""
        try:
            row = await self._store.read(lambda connection: _FIND.one(connection, id=id))
        except StoreError as error:
            self._logger.warning("a large message of another host could not be read and is lost: %s", error)
            return ""
        return "" if row is None else str(row["body"])

    # -- what is left of large ones ----------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(KEPT + 1, self._sweep_now)

    def _sweep_now(self) -> None:
        self._sweeper = None
        self._sweeping = asyncio.ensure_future(self._sweep())

    async def _sweep(self) -> None:
        with contextlib.suppress(StoreError):  # whoever sends a large one next does it
            await self._store.write(_forget)

    async def close(self) -> None:
        """Hear nothing more."""
        listening, self._listening = self._listening, None
        if listening is not None:
            await listening.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if self._sweeping is not None:
            await asyncio.wait([self._sweeping])


def _tell(connection: "Connection", notices: list[tuple[str, str]]) -> bool:
    """Notify of each; tell whether there is a large one, which stands in the table."""
    from agentos.store.server_listening import NOTICE_LIMIT, notify

    has_large = False
    for id, said in notices:
        if len(said) > NOTICE_LIMIT:
            has_large = True
            _INSERT.changes(connection, id=id, body=said)
            notify(connection, f"{_ROW}{id}")
        else:
            notify(connection, said)
    if has_large:
        _forget(connection)
    return has_large


def _forget(connection: "Connection") -> None:
    _FORGET.changes(connection, kept=KEPT)
