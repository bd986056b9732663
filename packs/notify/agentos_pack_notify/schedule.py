"""Messages that wait for their time. They lie in a SQLite file and go out once, also after a restart.

A message is taken before it is sent, by one process only. One that was taken when its process died is `unknown`: it may
have arrived, and is not sent again; so is one that no answer came to in time. One that was refused is tried again,
later and later, and then `failed`.
"""

import asyncio
import contextlib
import secrets
import sqlite3
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
from agentos_pack_common.sqlite import Database, StorageError, storable

from agentos_pack_notify.targets import UncertainError

MAX_WAITING = 1_000
MAX_KEPT = 2_000
"""How many messages that are over are kept to be looked at."""
LOOK_AGAIN = 3_600.0
"""After how many seconds the clock is looked at again at the latest: it may have been set, or the machine slept."""
LEASE = 300.0
"""For how many seconds a message that is being sent is left to whoever took it; longer than any delivery may take."""
_BACKOFF = (60.0, 300.0, 1_800.0)
_PATIENCE = 5.0
_CUT_OFF = "was cut off while it was being sent; it may have arrived"

_FIRST = (
    """CREATE TABLE message (
        id TEXT PRIMARY KEY, principal TEXT NOT NULL, target TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL,
        due REAL NOT NULL, next REAL NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX message_by_next ON message (state, next)",
)

Deliver = Callable[[str, str, str], Awaitable[None]]


@attrs.frozen(kw_only=True)
class Message:
    """A message that waits, or what became of it.

    `state` is waiting, sending, sent, failed, cancelled, or unknown: cut off or not answered, it may have arrived.
    """

    id: str
    target: str
    title: str
    due: str
    state: str
    attempts: int
    reason: str


class Schedule:
    """Takes messages for later, and sends them when their time has come, for as long as it runs."""

    def __init__(
        self,
        path: Path | None,
        deliver: Deliver,
        *,
        attempts: int = 4,
        warn: Callable[..., object] = lambda *_: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = Database(path, application_id=0x4E4F5446, migrations=[_FIRST])
        self._deliver = deliver
        self._attempts = attempts
        self._warn = warn
        self._clock = clock
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the file, and begin to send."""
        await self._database.open()
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="agentos-notify-schedule")

    async def stop(self) -> None:
        """Stop sending, and close the file. What is being sent now has a moment to end."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._database.close()

    # -- what the tools do -----------------------------------------------------------------------------------------

    async def add(self, principal: str, target: str, title: str, body: str, due: datetime) -> Message:
        """Keep a message until *due*."""
        row = (secrets.token_hex(6), principal, target, title, body, due.timestamp(), due.timestamp())

        def work(connection: sqlite3.Connection) -> Message:
            (waiting,) = connection.execute("SELECT count(*) FROM message WHERE state = 'waiting'").fetchone()
            if waiting >= MAX_WAITING:
                raise ValueError(f"{MAX_WAITING:,} messages are waiting already; cancel some first")
            connection.execute(
                "INSERT INTO message (id, principal, target, title, body, due, next, state)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting')",
                row,
            )
            return _message(connection, row[0])

        message = await self._database.write(work)
        self._changed.set()
        return message

    async def waiting(self, principal: str, *, everybody: bool, limit: int) -> tuple[list[Message], int]:
        """Return messages that are not over, soonest first, and how many there are."""

        def work(connection: sqlite3.Connection) -> tuple[list[Message], int]:
            owner = (everybody, principal)
            (total,) = connection.execute(f"SELECT count(*) FROM message WHERE {_OPEN}", owner).fetchone()  # noqa: S608
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM message WHERE {_OPEN} ORDER BY next, id LIMIT ?",  # noqa: S608 - our own words
                (*owner, limit),
            )
            return [_as_message(row) for row in rows], total

        return await self._database.read(work)

    async def find(self, id: str, principal: str, *, everybody: bool) -> Message:
        """Return a message of *principal*; those of others are not known to it."""
        return await self._database.read(lambda connection: _owned(connection, id, principal, everybody=everybody))

    async def cancel(self, id: str, principal: str, *, everybody: bool) -> Message:
        """Cancel a message that is still waiting."""

        def work(connection: sqlite3.Connection) -> Message:
            message = _owned(connection, id, principal, everybody=everybody)
            if message.state != "waiting":
                raise ValueError(f"id: the message {id} is {message.state}; only one that is waiting can be cancelled")
            connection.execute("UPDATE message SET state = 'cancelled' WHERE id = ?", (id,))
            return _message(connection, id)

        return await self._database.write(work)

    # -- sending ---------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            pause = _PATIENCE
            try:
                await self.send_due()
                pause = await self._pause()
            except StorageError as error:
                self._warn("the schedule can't be read: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()

    async def _pause(self) -> float:
        (soonest,) = await self._database.read(lambda connection: connection.execute(_SOONEST).fetchone())
        if soonest is None:
            return LOOK_AGAIN
        return min(LOOK_AGAIN, max(0.0, float(soonest) - self._clock()))

    async def send_due(self) -> int:
        """Send what is due, one after another, and return how many were tried."""
        tried = 0
        await self._database.write(self._give_up_cut_off)
        while (taken := await self._database.write(self._take)) is not None:
            tried += 1
            await self._send(*taken)
        return tried

    def _give_up_cut_off(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            "UPDATE message SET state = 'unknown', reason = ? WHERE state = 'sending' AND next <= ?",
            (_CUT_OFF, self._clock()),
        )

    def _take(self, connection: sqlite3.Connection) -> tuple[str, str, str, str, int] | None:
        """Take the next message that is due: whoever updates it first has it."""
        row = connection.execute(
            "UPDATE message SET state = 'sending', next = ?, attempts = attempts + 1 WHERE id ="
            " (SELECT id FROM message WHERE state = 'waiting' AND next <= ? ORDER BY next, id LIMIT 1)"
            " RETURNING id, target, title, body, attempts",
            (self._clock() + LEASE, self._clock()),
        ).fetchone()
        return None if row is None else (row[0], row[1], row[2], row[3], row[4])

    async def _send(self, id: str, target: str, title: str, body: str, attempt: int) -> None:
        try:
            await self._deliver(target, title, body)
        except asyncio.CancelledError:
            await self._note(id, "unknown", _CUT_OFF)
            raise
        except Exception as error:  # noqa: BLE001 - whatever the reason, the message is not lost
            reason = str(error) if isinstance(error, ValueError) else f"raised {type(error).__name__}"
            self._warn("scheduled message %s: %s", id, reason)
            if isinstance(error, UncertainError):
                await self._note(id, "unknown", reason)
            elif attempt >= self._attempts:
                await self._note(id, "failed", reason)
            else:
                await self._note(id, "waiting", reason, _BACKOFF[min(attempt, len(_BACKOFF)) - 1])
        else:
            await self._note(id, "sent", "")

    async def _note(self, id: str, state: str, reason: str, pause: float = 0.0) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE message SET state = ?, reason = ?, next = ? WHERE id = ?",
                (state, reason, self._clock() + pause, id),
            )
            connection.execute(
                "DELETE FROM message WHERE state NOT IN ('waiting', 'sending') AND id NOT IN"
                " (SELECT id FROM message WHERE state NOT IN ('waiting', 'sending') ORDER BY next DESC LIMIT ?)",
                (MAX_KEPT,),
            )

        await self._database.write(work)


_COLUMNS = "id, target, title, due, state, attempts, reason"
_SOONEST = "SELECT min(next) FROM message WHERE state IN ('waiting', 'sending')"
_OPEN = "state IN ('waiting', 'sending') AND (? OR principal = ?)"


def _as_message(row: tuple[Any, ...]) -> Message:
    id, target, title, due, state, attempts, reason = row
    return Message(
        id=id,
        target=target,
        title=title,
        due=datetime.fromtimestamp(due, UTC).isoformat(),
        state=state,
        attempts=attempts,
        reason=reason,
    )


def _message(connection: sqlite3.Connection, id: str) -> Message:
    row = connection.execute(f"SELECT {_COLUMNS} FROM message WHERE id = ?", (id,)).fetchone()  # noqa: S608 - our own names
    return _as_message(row)


def _owned(connection: sqlite3.Connection, id: str, principal: str, *, everybody: bool) -> Message:
    row = connection.execute("SELECT principal FROM message WHERE id = ?", (storable(id, "id"),)).fetchone()
    if row is None or not (everybody or row[0] == principal):
        raise ValueError(f"id: no message {id!r}; notify_scheduled lists those that wait")
    return _message(connection, id)
