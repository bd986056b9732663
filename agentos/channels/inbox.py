"""What came in. A message is taken once by its id, and answered in order within its conversation.

waiting → taken → done. A message that asked for an approval is `parked` until that is decided on, and others of its
conversation go before it. One that nobody may ask for is `unknown`, and one that could not be answered `failed`.
What it came to and its answer are written together, so there is one answer whatever happens to a host.
"""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from agentos.channels.outbox import Outbox
from agentos.channels.stored_messages import KEPT, message_data, message_of, next_position, sealed_text
from agentos.model.channels import ChannelMessage
from agentos.secrets.masking import Masker
from agentos.store import Store
from agentos.store.rows import PlainSql

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_TABLE = "channel_inbox"
_INSERT = PlainSql("""
    INSERT INTO channel_inbox
    (id, channel, message, conversation, sender, data, position, state, attempts, received_at, seal)
    VALUES
    (:id, :channel, :message, :conversation, :sender, :data, :position, :state, 0, :received_at, :seal)
    ON CONFLICT (channel, message) DO NOTHING
""")
_NEWEST = PlainSql("SELECT MAX(position) AS position FROM channel_inbox")
_FORGET = PlainSql("DELETE FROM channel_inbox WHERE received_at < :before AND state IN ('done', 'unknown', 'dropped')")
_HEADS = PlainSql("""
    SELECT id, channel, conversation, state, owner FROM channel_inbox one
    WHERE state IN ('waiting', 'taken') AND NOT EXISTS (
        SELECT 1 FROM channel_inbox other
        WHERE other.channel = one.channel AND other.conversation = one.conversation
        AND other.state IN ('waiting', 'taken')
        AND (other.position < one.position OR (other.position = one.position AND other.id < one.id))
    ) ORDER BY position
""")
_PARKED = PlainSql(
    "SELECT id, channel, conversation, state, owner, turn FROM channel_inbox WHERE state IN ('parked', 'resumed')"
)
_OPEN = PlainSql(
    """SELECT * FROM channel_inbox WHERE channel = :channel AND conversation = :conversation
    AND state IN ('waiting', 'taken') ORDER BY position, id""",
    locks=True,
)
_BY_ID = PlainSql("SELECT * FROM channel_inbox WHERE id = :id", locks=True)
_TAKE = PlainSql("UPDATE channel_inbox SET state = :state, owner = :owner, attempts = attempts + 1 WHERE id = :id")
_SETTLE = PlainSql(
    "UPDATE channel_inbox SET state = :state, owner = NULL, reason = :reason, turn = :turn "
    "WHERE id = :id AND owner = :owner AND state IN ('taken', 'resumed')"
)
_RELEASE = PlainSql(
    "UPDATE channel_inbox SET owner = NULL, attempts = attempts - 1, "
    "state = CASE WHEN state = 'taken' THEN 'waiting' ELSE 'parked' END "
    "WHERE id = :id AND owner = :owner AND state IN ('taken', 'resumed')"
)
_HISTORY = PlainSql("""
    SELECT question.id AS question_id, question.data AS question, question.seal AS question_seal,
    answer.id AS answer_id, answer.data AS answer, answer.seal AS answer_seal
    FROM channel_inbox question JOIN channel_outbox answer ON answer.answers = question.id
    WHERE question.channel = :channel AND question.conversation = :conversation AND question.sender = :sender
    AND question.state = 'done' ORDER BY answer.position DESC LIMIT :number
""")
_LETTERS = PlainSql("SELECT * FROM channel_inbox WHERE state = 'failed' ORDER BY position, id")
_RETRY = PlainSql(
    "UPDATE channel_inbox SET state = 'waiting', attempts = 0, reason = NULL WHERE id = :id AND state = 'failed'"
)
_DROP = PlainSql("UPDATE channel_inbox SET state = 'dropped' WHERE id = :id AND state = 'failed'")
_COUNTS = PlainSql("SELECT channel, state, COUNT(*) AS number FROM channel_inbox GROUP BY channel, state")


@attrs.frozen(kw_only=True)
class Taken:
    """A message that a host has taken to answer it."""

    id: str
    message: ChannelMessage
    attempts: int
    """How often hosts began to answer it, this time included."""
    turn: str | None = None
    """The turn to go on with, of one that was parked."""


@attrs.frozen(kw_only=True)
class WaitsFor:
    """The turn that a parked message waits for, and its proposals."""

    turn: str
    pending: Sequence[str]
    seal: str = ""


def _waits_for(row: Mapping[str, Any]) -> WaitsFor:
    """Return what a row waits for; what somebody changed in the store waits for nothing and has no seal."""
    try:
        said = json.loads(row["turn"])
        return WaitsFor(turn=str(said["turn"]), pending=[str(one) for one in said["pending"]], seal=str(said["seal"]))
    except (ValueError, TypeError, LookupError, RecursionError):
        return WaitsFor(turn="", pending=())


def _sealed_turn(id: str, turn: str) -> str:
    return f"channel turn\n{id}\n{turn}"


class Inbox:
    """Keeps what came in, and who answers it."""

    def __init__(self, store: Store, outbox: Outbox, masker: Masker, clock: Callable[[], float]) -> None:
        self._store = store
        self._outbox = outbox
        self._masker = masker
        self._clock = clock

    async def put(self, message: ChannelMessage, *, is_known: bool) -> bool:
        """Keep a message, without its text if its sender is not known; False if it was taken before."""
        await self._store.open()
        kept = message if is_known else attrs.evolve(message, text="", attachments=())
        now = float(self._clock())
        row: dict[str, Any] = {"id": uuid.uuid4().hex, "channel": message.channel}
        row |= {"conversation": message.conversation, "data": message_data(kept, self._masker)}
        row["seal"] = self._store.seal(sealed_text(_TABLE, row))
        row |= {"message": message.id, "sender": message.sender, "received_at": now}
        row["state"] = "waiting" if is_known else "unknown"

        def write(connection: "Connection") -> bool:
            _FORGET.changes(connection, before=now - KEPT)
            return _INSERT.changes(connection, **row, position=next_position(connection, _NEWEST)) == 1

        return await self._store.write(write)

    async def heads(self) -> list[dict[str, Any]]:
        """Return what is next in each conversation."""
        return await self._store.read(_HEADS.all)

    async def parked(self) -> list[tuple[dict[str, Any], WaitsFor]]:
        """Return what waits for an approval, with what exactly it waits for."""
        rows = await self._store.read(_PARKED.all)
        return [(row, _waits_for(row)) for row in rows]

    # -- taking ------------------------------------------------------------------------------------------------

    async def claim(self, head: Mapping[str, Any]) -> Taken | None:
        """Take a message to answer it, unless its owner is not the one of *head* any more, or it is not its turn."""
        place = {"channel": head["channel"], "conversation": head["conversation"]}

        def take(connection: "Connection") -> dict[str, Any] | None:
            rows = _OPEN.all(connection, **place)
            if not rows or (rows[0]["id"], rows[0]["owner"]) != (head["id"], head["owner"]):
                return None
            if any(one["state"] == "taken" for one in rows[1:]):
                return None
            _TAKE.changes(connection, id=head["id"], state="taken", owner=self._store.instance)
            return rows[0]

        return await self._taken(await self._store.write(take))

    async def claim_parked(self, head: Mapping[str, Any]) -> Taken | None:
        """Take a parked message to go on with it, unless another did."""

        def take(connection: "Connection") -> dict[str, Any] | None:
            row = _BY_ID.one(connection, id=head["id"])
            if row is None or (row["state"], row["owner"]) != (head["state"], head["owner"]):
                return None
            _TAKE.changes(connection, id=head["id"], state="resumed", owner=self._store.instance)
            return row

        return await self._taken(await self._store.write(take), is_parked=True)

    async def _taken(self, row: Mapping[str, Any] | None, *, is_parked: bool = False) -> Taken | None:
        if row is None:
            return None
        if not self._store.is_sealed(sealed_text(_TABLE, row), row["seal"]):
            await self.settle(row["id"], "failed", reason="it was changed in the store")
            return None
        waits_for = _waits_for(row) if is_parked or row["turn"] is not None else None
        if waits_for is not None and waits_for.seal != self._store.seal(_sealed_turn(row["id"], waits_for.turn)):
            await self.settle(row["id"], "failed", reason="it was changed in the store")
            return None
        turn = None if waits_for is None else waits_for.turn
        return Taken(id=row["id"], message=message_of(row), attempts=row["attempts"] + 1, turn=turn)

    async def settle(
        self,
        id: str,
        state: str,
        *,
        reply: ChannelMessage | None = None,
        reason: str | None = None,
        waits_for: WaitsFor | None = None,
    ) -> bool:
        """Say what a message came to, and add its reply, both or neither; False if it is not ours any more."""
        turn = None
        if waits_for is not None:
            sealed = attrs.evolve(waits_for, seal=self._store.seal(_sealed_turn(id, waits_for.turn)))
            turn = json.dumps(attrs.asdict(sealed))
        values = {"id": id, "state": state, "reason": reason, "turn": turn, "owner": self._store.instance}
        add = None if reply is None else self._outbox.adding(reply, answers=id)

        def write(connection: "Connection") -> bool:
            is_ours = _SETTLE.changes(connection, **values) == 1
            if is_ours and add is not None:
                add(connection)
            return is_ours

        return await self._store.write(write)

    async def release(self, id: str) -> None:
        """Let a message go that was not answered."""
        owner = self._store.instance
        await self._store.write(lambda connection: _RELEASE.changes(connection, id=id, owner=owner))

    async def history(self, message: ChannelMessage, number: int) -> list[tuple[str, str]]:
        """Return what the sender of *message* said there last and what was answered, in order."""
        place = {"channel": message.channel, "conversation": message.conversation, "sender": message.sender}
        rows = await self._store.read(lambda connection: _HISTORY.all(connection, **place, number=number))
        last = {row["question_id"]: row for row in rows[::-1]}.values()
        said = [[self._said(part, row, place) for part in ("question", "answer")] for row in last]
        return [(asked, answered) for asked, answered in said if asked is not None and answered is not None]

    def _said(self, part: str, row: Mapping[str, Any], place: Mapping[str, str]) -> str | None:
        """Return the text of a question or an answer; None if it was changed in the store."""
        one = {**place, "id": row[f"{part}_id"], "data": row[part]}
        table = _TABLE if part == "question" else "channel_outbox"
        is_ours = self._store.is_sealed(sealed_text(table, one), row[f"{part}_seal"])
        return str(json.loads(row[part])["text"]) if is_ours else None

    # -- for people --------------------------------------------------------------------------------------------

    async def letters(self) -> list[dict[str, Any]]:
        """Return what could not be answered."""
        return await self._store.read(_LETTERS.all)

    async def retry(self, id: str) -> bool:
        """Answer a dead letter again."""
        return await self._store.write(lambda connection: _RETRY.changes(connection, id=id)) == 1

    async def drop(self, id: str) -> bool:
        """Give a dead letter up."""
        return await self._store.write(lambda connection: _DROP.changes(connection, id=id)) == 1

    async def counts(self) -> list[dict[str, Any]]:
        """Return how many there are of each channel in each state."""
        return await self._store.read(_COUNTS.all)
