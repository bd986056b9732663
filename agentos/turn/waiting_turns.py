"""Turns that wait for a person, kept in the store until somebody goes on with them, once."""

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from agentos.access.grants import session_id
from agentos.access.proposals import principal_data, stored_principal
from agentos.access.stored_results import result_from_text, result_to_text
from agentos.errors import StoreError
from agentos.interop._provider_calls import ModelCall, pending_ids, plain_data
from agentos.model.planning import Plan, PlanStep
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.store import Store
from agentos.store.rows import PlainSql, inserting
from agentos.turn.adapters.model_adapter import Api
from agentos.turn.turn_outcome import TurnError, TurnOptions

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_LIFE = 30 * 24 * 3600.0
"""For how many seconds a turn is kept that nobody goes on with."""
_HERE = 1_000
"""How many turns are remembered as they are, with their session's objects and whatever must not be written."""
_INSERT = inserting("turns", ("id", "state", "owner", "data", "created_at", "seal"))
_BY_ID = PlainSql("SELECT * FROM turns WHERE id = :id", locks=True)
_TAKE = PlainSql("UPDATE turns SET state = 'resumed', owner = :owner WHERE id = :id")
_DROP = PlainSql("DELETE FROM turns WHERE id = :id")
_FORGET = PlainSql("DELETE FROM turns WHERE created_at < :before")


@attrs.frozen(kw_only=True)
class WaitingTurn:
    """A turn as it is gone on with: the conversation up to its last calls, and what these came to so far."""

    id: str
    api: Api
    messages: list[Any] = attrs.field(repr=False)
    calls: tuple[ModelCall, ...]
    results: tuple[ToolResult, ...] = attrs.field(repr=False)
    earlier: tuple[ToolResult, ...] = attrs.field(repr=False)
    """The results of calls before those."""
    steps: int
    tokens: int | None
    principal: Principal | None
    session: Mapping[str, Any] | None = attrs.field(repr=False)
    options: TurnOptions
    plan: Plan | None = None

    @property
    def pending(self) -> tuple[str, ...]:
        """Return the proposals that it waits for."""
        return tuple(pending_ids(self.results))


class WaitingTurns:
    """Keeps turns that wait. Of all who want to go on with one, in whatever process, one does."""

    def __init__(self, store: Store, masker: Masker, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._masker = masker
        self._clock = clock
        self.logger = MaskingLogger("agentos.turns", masker)
        self._here: dict[str, WaitingTurn] = {}

    async def keep(self, turn: WaitingTurn) -> None:
        """Keep a turn, in the place of what was kept of it before."""
        self._here.pop(turn.id, None)
        while len(self._here) >= _HERE:
            del self._here[next(iter(self._here))]
        self._here[turn.id] = turn
        await self._store.open()
        now = float(self._clock())
        row = {"id": turn.id, "state": "waiting", "owner": None, "data": self._text(turn), "created_at": now}
        row["seal"] = self._store.seal(_sealed(row))

        def write(connection: "Connection") -> None:
            _FORGET.changes(connection, before=now - _LIFE)
            _DROP.changes(connection, id=turn.id)
            _INSERT.changes(connection, **row)

        await self._store.write(write)

    def _text(self, turn: WaitingTurn) -> str:
        """Return a turn as JSON; known secrets are masked in it, and are there only for whoever goes on in here."""
        data = self._masker.mask_data(_data(turn, session_id(turn.session, self._masker)))
        try:
            return json.dumps(data)
        except (TypeError, ValueError) as error:
            self.logger.warning("turn %s can be gone on with only in this process: %s", turn.id, error)
            return "null"

    async def take(self, id: str) -> WaitingTurn:
        """Return the turn of that id for going on with it; raise TurnError if it does not wait, or another has it."""
        row = await self._store.write(lambda connection: _BY_ID.one(connection, id=id))
        if row is None or not self._store.is_sealed(_sealed(row), row["seal"]):
            raise TurnError(f"there is no turn {str(id)[:64]!r} that waits; it was gone on with, or never waited")
        owner = row["owner"]
        if owner is not None and await self._store.is_alive(owner):
            raise TurnError(f"turn {id} is being gone on with already")

        def claim(connection: "Connection") -> bool:
            now = _BY_ID.one(connection, id=id)
            is_free = now is not None and now["owner"] == owner
            return is_free and _TAKE.changes(connection, id=id, owner=self._store.instance) == 1

        if not await self._store.write(claim):
            raise TurnError(f"turn {id} is being gone on with already")
        found = self._here.get(id)
        data = json.loads(row["data"])
        if found is None and data is None:
            raise TurnError(f"turn {id} could not be written down, and the host that had it ended")
        return found or _turn(id, data)

    async def drop(self, id: str) -> None:
        """Forget a turn that has ended."""
        self._here.pop(id, None)
        try:
            await self._store.write(lambda connection: _DROP.changes(connection, id=id))
        except StoreError as error:
            self.logger.warning("turn %s ended, and could not be taken out of the store: %s", id, error)


def _sealed(row: Mapping[str, Any]) -> str:
    return f"turn\n{row['id']}\n{row['created_at']!r}\n{row['data']}"


def _data(turn: WaitingTurn, session: str | None) -> dict[str, Any]:
    return {
        "api": turn.api,
        "messages": plain_data(turn.messages),
        "calls": [attrs.asdict(call) for call in turn.calls],
        "results": [(one.call_id, result_to_text(one)) for one in turn.results],
        "earlier": [(one.call_id, result_to_text(one)) for one in turn.earlier],
        "steps": turn.steps,
        "tokens": turn.tokens,
        "principal": None if turn.principal is None else principal_data(turn.principal),
        "session": session,
        "plan": None if turn.plan is None else attrs.asdict(turn.plan),
        "options": {**attrs.asdict(turn.options), "more": plain_data(turn.options.more)},
    }


def _turn(id: str, data: Mapping[str, Any]) -> WaitingTurn:
    principal = data["principal"]
    return WaitingTurn(
        id=id,
        api=data["api"],
        messages=data["messages"],
        calls=tuple(ModelCall(**call) for call in data["calls"]),
        results=_results(data["results"]),
        earlier=_results(data["earlier"]),
        steps=data["steps"],
        tokens=data["tokens"],
        principal=None if principal is None else stored_principal(principal),
        session=None if data["session"] is None else {"id": data["session"]},
        options=TurnOptions(**data["options"]),
        plan=_plan(data.get("plan")),
    )


def _plan(data: Mapping[str, Any] | None) -> Plan | None:
    return None if data is None else Plan(**{**data, "steps": [PlanStep(**step) for step in data["steps"]]})


def _results(rows: list[Any]) -> tuple[ToolResult, ...]:
    return tuple(attrs.evolve(result_from_text(text), call_id=call_id) for call_id, text in rows)
