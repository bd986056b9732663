"""What is to be sent. A message is sent again only while it is certain that it was not.

waiting → sending → sent, or back to waiting with a later time, or `dead` after too many attempts. A message whose
sending has no known end, since its answer was lost or its host ended, is `uncertain`: nobody sends it by itself.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from agentos.channels.stored_messages import KEPT, message_data, message_of, next_position, sealed_text
from agentos.model.channels import ChannelMessage
from agentos.secrets.masking import Masker
from agentos.store import Store
from agentos.store.rows import PlainSql, inserting

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_TABLE = "channel_outbox"
_COLUMNS = ("id", "channel", "conversation", "answers", "data", "position", "state", "attempts", "due_at")
_INSERT = inserting(_TABLE, (*_COLUMNS, "created_at", "seal"))
_NEWEST = PlainSql("SELECT MAX(position) AS position FROM channel_outbox")
_FORGET = PlainSql("DELETE FROM channel_outbox WHERE created_at < :before AND state IN ('sent', 'dropped')")
_HEADS = PlainSql("""
    SELECT id, channel, conversation, state, owner, due_at FROM channel_outbox one
    WHERE state IN ('waiting', 'sending') AND NOT EXISTS (
        SELECT 1 FROM channel_outbox other
        WHERE other.channel = one.channel AND other.conversation = one.conversation
        AND other.state IN ('waiting', 'sending')
        AND (other.position < one.position OR (other.position = one.position AND other.id < one.id))
    ) ORDER BY position
""")
_OPEN = PlainSql(
    """SELECT * FROM channel_outbox WHERE channel = :channel AND conversation = :conversation
    AND state IN ('waiting', 'sending') ORDER BY position, id""",
    locks=True,
)
_TAKE = PlainSql(
    "UPDATE channel_outbox SET state = 'sending', owner = :owner, attempts = attempts + 1 "
    "WHERE id = :id AND state = 'waiting'"
)
_SETTLE = PlainSql(
    "UPDATE channel_outbox SET state = :state, owner = NULL, reason = :reason, receipt = :receipt, due_at = :due_at "
    "WHERE id = :id AND state = 'sending' AND owner = :owner"
)
_LETTERS = PlainSql("SELECT * FROM channel_outbox WHERE state IN ('dead', 'uncertain') ORDER BY position, id")
_RETRY = PlainSql(
    "UPDATE channel_outbox SET state = 'waiting', attempts = 0, due_at = :now, reason = NULL "
    "WHERE id = :id AND state IN ('dead', 'uncertain')"
)
_HURRY = PlainSql(
    "UPDATE channel_outbox SET due_at = :now "
    "WHERE channel = :channel AND conversation = :conversation AND state = 'waiting' AND due_at > :now"
)
_DROP = PlainSql("UPDATE channel_outbox SET state = 'dropped' WHERE id = :id AND state IN ('dead', 'uncertain')")
_COUNTS = PlainSql("SELECT channel, state, COUNT(*) AS number FROM channel_outbox GROUP BY channel, state")


@attrs.frozen(kw_only=True)
class ToSend:
    """A message that a host has taken to send it."""

    id: str
    message: ChannelMessage
    attempts: int
    """How often it was tried, this time included."""


class Outbox:
    """Keeps what is to be sent."""

    def __init__(self, store: Store, masker: Masker, clock: Callable[[], float]) -> None:
        self._store = store
        self._masker = masker
        self._clock = clock

    async def put(self, message: ChannelMessage) -> str:
        """Keep a message that is to be sent; return the id that it has here."""
        await self._store.open()
        write = self.adding(message)
        return await self._store.write(write)

    def adding(self, message: ChannelMessage, answers: str | None = None) -> "Callable[[Connection], str]":
        """Return what adds a message in a transaction; *answers* is the row of the inbox that it answers."""
        now = float(self._clock())
        row: dict[str, Any] = {"id": uuid.uuid4().hex, "channel": message.channel}
        row |= {"conversation": message.conversation, "data": message_data(message, self._masker)}
        row["seal"] = self._store.seal(sealed_text(_TABLE, row))
        row |= {"answers": answers, "state": "waiting", "attempts": 0, "due_at": now, "created_at": now}

        def write(connection: "Connection") -> str:
            _FORGET.changes(connection, before=now - KEPT)
            _INSERT.changes(connection, **row, position=next_position(connection, _NEWEST))
            return str(row["id"])

        return write

    async def heads(self) -> list[dict[str, Any]]:
        """Return what is next in each conversation."""
        return await self._store.read(_HEADS.all)

    async def claim(self, head: Mapping[str, Any]) -> ToSend | None:
        """Take a message to send it; None if another was faster, or it is not its turn."""
        place = {"channel": head["channel"], "conversation": head["conversation"]}

        def take(connection: "Connection") -> dict[str, Any] | None:
            rows = _OPEN.all(connection, **place)
            is_next = rows and rows[0]["id"] == head["id"] and all(one["state"] == "waiting" for one in rows)
            if not is_next or _TAKE.changes(connection, id=head["id"], owner=self._store.instance) != 1:
                return None
            return rows[0]

        row = await self._store.write(take)
        if row is None:
            return None
        if not self._store.is_sealed(sealed_text(_TABLE, row), row["seal"]):
            await self.settle(row["id"], "dead", reason="it was changed in the store")
            return None
        return ToSend(id=row["id"], message=message_of(row), attempts=row["attempts"] + 1)

    async def settle(
        self,
        id: str,
        state: str,
        *,
        reason: str | None = None,
        receipt: str | None = None,
        seconds: float = 0.0,
        owner: str | None = None,
    ) -> bool:
        """Say how sending ended; *owner* is the host that did it, by default this one. False if it was settled."""
        values: dict[str, Any] = {"id": id, "state": state, "reason": reason, "receipt": receipt}
        values |= {"due_at": float(self._clock()) + seconds, "owner": owner or self._store.instance}
        return await self._store.write(lambda connection: _SETTLE.changes(connection, **values)) == 1

    async def hurry(self, channel: str, conversation: str) -> bool:
        """Have what waits for a conversation sent now; False if nothing waits."""
        values = {"channel": channel, "conversation": conversation, "now": float(self._clock())}
        return await self._store.write(lambda connection: _HURRY.changes(connection, **values)) > 0

    # -- for people --------------------------------------------------------------------------------------------

    async def letters(self) -> list[dict[str, Any]]:
        """Return what could not be sent, or nobody knows of."""
        return await self._store.read(_LETTERS.all)

    async def retry(self, id: str) -> bool:
        """Send a dead letter again."""
        now = float(self._clock())
        return await self._store.write(lambda connection: _RETRY.changes(connection, id=id, now=now)) == 1

    async def drop(self, id: str) -> bool:
        """Give a dead letter up."""
        return await self._store.write(lambda connection: _DROP.changes(connection, id=id)) == 1

    async def counts(self) -> list[dict[str, Any]]:
        """Return how many there are of each channel in each state."""
        return await self._store.read(_COUNTS.all)
