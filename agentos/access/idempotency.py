"""Calls that carry an idempotency key run once: a repeat gets the first result, also in another process."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from agentos.access.stored_results import result_from_text, result_to_text
from agentos.base.canonical import canonical
from agentos.base.foreign import to_the_end
from agentos.errors import StoreError
from agentos.model.tool_call import ToolResult
from agentos.store import Store
from agentos.store.rows import changes_one, fetch_one, insert_or_nothing

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

T = TypeVar("T")

KEEP = 24 * 3600.0
"""For how many seconds a key is remembered."""
KEY_LIMIT = 200
_POLL = (0.02, 0.5)
_UNSEALED = (
    "what is kept for this idempotency key has no seal of this store: somebody changed it; whether the first call took "
    "effect is unknown. Use a new key for a new call"
)
_CUT_OFF = "the first call with this key was cut off; whether it took effect is unknown"
_LOST = "nothing was done: what the call belongs to is another host's now"
_OTHER = "the idempotency key was used with other arguments; use a new key for a new call"
_SEALED = (
    *("principal", "tool", "key", "arguments_hash", "state", "owner", "proposal", "result"),
    *("created_at", "finished_at"),
)


@attrs.frozen
class Key:
    """What a repeat is known by: the caller's own key, of one principal, for one tool."""

    principal: str
    tool: str
    key: str


@attrs.frozen
class Conflict:
    """Why a repeat can't have a result."""

    reason: str
    is_unknown: bool = False
    """Whether the first call took effect is unknown."""
    is_lost: bool = False
    """`only_if` said no."""


class Idempotency:
    """Remembers who runs a key, and with what result it ended."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._here: dict[Key, asyncio.Event] = {}
        self._claims: dict[Key, dict[str, Any]] = {}
        """The rows of the calls that run here, as they were written."""
        self._unsaved: dict[Key, tuple[dict[str, Any], ToolResult | None]] = {}
        """The rows of calls that ended here and could not be written then, with the results; None: it did not run."""
        self._swept = 0.0

    async def state(self, key: Key) -> str | None:
        """Return whether the first call of *key* is `running` or `done`; None if there was none."""
        await self._store.open()
        row = await self._store.read(lambda connection: _row(connection, key))
        return None if row is None else str(row["state"])

    async def begin(
        self,
        key: Key,
        arguments: Mapping[str, Any],
        *,
        may_repeat: bool,
        proposal: str | None = None,
        only_if: "Callable[[Connection], bool] | None" = None,
    ) -> ToolResult | Conflict | None:
        """Claim *key* and return None, or return what the first call of it came to, waiting for it if it runs.

        *may_repeat* says that the tool may run again where nobody knows whether it ran: its host died. *proposal* is
        the one that is applied; a claim for it that a dead host left did not run, or the proposal would be used.
        *only_if* is asked in the transaction that claims: what it says no to is not claimed, and does not run.
        """
        await self._store.open()
        fingerprint = self._fingerprint(arguments)
        pause = _POLL[0]
        while True:
            if key in self._unsaved and (kept := await self._caught_up(key)) is not None:
                return kept if self._unsaved[key][0]["arguments_hash"] == fingerprint else Conflict(_OTHER)
            row = await self._claimed(key, fingerprint, proposal, only_if)
            if isinstance(row, Conflict):
                return row
            if row is None:
                return None
            if not self._is_sealed(row):
                return Conflict(_UNSEALED)
            if row["arguments_hash"] != fingerprint:
                return Conflict(_OTHER)
            if row["state"] == "done":
                return result_from_text(row["result"], replayed=True)
            if not await self._store.is_alive(row["owner"]):
                if not may_repeat and (proposal is None or row["proposal"] != proposal):
                    return Conflict(_CUT_OFF, is_unknown=True)
                if await self._taken_over(key, row):
                    return None
                continue
            pause = await self._wait(key, pause)

    async def find(self, key: Key, arguments: Mapping[str, Any]) -> ToolResult | None:
        """Return the result of the first call of *key*, if it has ended and had the same arguments."""
        await self._store.open()
        row = await self._store.read(lambda connection: _row(connection, key))
        if row is None or row["state"] != "done" or row["arguments_hash"] != self._fingerprint(arguments):
            return None
        if not self._is_sealed(row):
            return None
        return result_from_text(row["result"], replayed=True)

    async def finish(self, key: Key, result: ToolResult) -> None:
        """Remember the result of the call that claimed *key*, and tell who waits for it."""
        await self._end(key, result)

    async def give_up(self, key: Key) -> None:
        """Forget a claim whose call did not run."""
        await self._end(key, None)

    async def _end(self, key: Key, result: ToolResult | None) -> None:
        claim = self._claims.pop(key)
        try:
            await self._write_end(key, claim, result)
        except StoreError:
            self._unsaved[key] = claim, result  # a repeat here still gets it, and it is written when that can be done
            raise
        finally:
            self._wake(key)

    async def _write_end(self, key: Key, claim: Mapping[str, Any], result: ToolResult | None) -> None:
        """Write how the call of *claim* ended; not over what another host, which took us for dead, made of it."""
        from agentos.store import schema

        table = schema.idempotency
        ours = (*_is(key), table.c.state == "running", table.c.owner == claim["owner"])
        statement: Any = table.delete().where(*ours)
        if result is not None:
            values = {"state": "done", "result": result_to_text(result), "finished_at": float(self._clock())}
            statement = table.update().where(*ours).values(**self._resealed(claim, values))
        await self._store.write(lambda connection: changes_one(connection, statement))

    async def catch_up(self) -> None:
        """Write how calls ended that could not be written down then, if that can be done now."""
        for key, (claim, result) in list(self._unsaved.items()):
            try:
                await self._write_end(key, claim, result)
            except StoreError:
                return
            self._unsaved.pop(key, None)

    async def _caught_up(self, key: Key) -> ToolResult | None:
        """Write how the last call of *key* ended; return its result if that still can't be done."""
        claim, result = self._unsaved[key]
        try:
            await self._write_end(key, claim, result)
        except StoreError:
            if result is None:
                raise
            return attrs.evolve(result, meta={**result.meta, "replayed": True})
        self._unsaved.pop(key, None)
        return None

    async def _claimed(
        self,
        key: Key,
        fingerprint: str,
        proposal: str | None,
        only_if: "Callable[[Connection], bool] | None",
    ) -> Mapping[str, Any] | Conflict | None:
        """Claim *key*; a caller who is cancelled meanwhile leaves no claim behind."""
        claim = asyncio.ensure_future(self._claim(key, fingerprint, proposal, only_if))
        try:
            row = await to_the_end(_awaited(claim))
        except asyncio.CancelledError:
            if claim.exception() is None and claim.result() is None:
                await to_the_end(self.give_up(key))
            raise
        if row is None:
            self._here[key] = asyncio.Event()
        return row

    async def _taken_over(self, key: Key, row: Mapping[str, Any]) -> bool:
        taking = asyncio.ensure_future(self._take_over(key, row))
        try:
            taken = await to_the_end(_awaited(taking))
        except asyncio.CancelledError:
            if taking.exception() is None and taking.result():
                await to_the_end(self.give_up(key))
            raise
        if taken:
            self._here[key] = asyncio.Event()
        return taken

    async def _claim(
        self,
        key: Key,
        fingerprint: str,
        proposal: str | None,
        only_if: "Callable[[Connection], bool] | None",
    ) -> Mapping[str, Any] | Conflict | None:
        """Write *key* in as ours and return None; return its row if it is there already."""
        from agentos.store import schema

        now = self._clock()
        claim, is_sweeping = self._new(key, fingerprint, proposal, now), now - self._swept >= KEEP / 100

        def insert(connection: "Connection") -> Mapping[str, Any] | Conflict | None:
            if only_if is not None and not only_if(connection):
                return Conflict(_LOST, is_lost=True)
            if is_sweeping:
                _sweep(connection, now)
            row = _row(connection, key)
            if row is None and not changes_one(
                connection, insert_or_nothing(connection, schema.idempotency).values(**claim)
            ):
                row = _row(connection, key)
            return row

        row = await self._store.write(insert)
        self._swept = now if is_sweeping else self._swept
        if row is None:
            self._claims[key] = claim
        return row

    def _new(self, key: Key, fingerprint: str, proposal: str | None, now: float) -> dict[str, Any]:
        row: dict[str, Any] = {
            **attrs.asdict(key),
            "arguments_hash": fingerprint,
            "state": "running",
            "owner": self._store.instance,
            "proposal": proposal,
            "result": None,
            "created_at": float(now),
            "finished_at": None,
        }
        return {**row, "seal": self._store.seal(_sealed_text(row))}

    async def _take_over(self, key: Key, row: Mapping[str, Any]) -> bool:
        from agentos.store import schema

        table, values = schema.idempotency, self._resealed(row, {"owner": self._store.instance})
        statement = table.update().where(*_is(key), table.c.state == "running", table.c.owner == row["owner"])
        statement = statement.values(**values)
        taken = await self._store.write(lambda connection: changes_one(connection, statement))
        if taken:
            self._claims[key] = {**row, **values}
        return taken

    def _resealed(self, row: Mapping[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        """Return *values* for a row that is ours, with the seal that it has then."""
        return {**values, "seal": self._store.seal(_sealed_text({**row, **values}))}

    def _is_sealed(self, row: Mapping[str, Any]) -> bool:
        return self._store.is_sealed(_sealed_text(row), row["seal"])

    async def _wait(self, key: Key, pause: float) -> float:
        """Wait for the call that runs: to its end if it runs here, else for a moment. Return the next pause."""
        here = self._here.get(key)
        if here is not None:
            await here.wait()
        else:
            await asyncio.sleep(pause)
        return min(pause * 2, _POLL[1])

    def _wake(self, key: Key) -> None:
        event = self._here.pop(key, None)
        if event is not None:
            event.set()

    def _fingerprint(self, arguments: Mapping[str, Any]) -> str:
        return self._store.seal(canonical(arguments))


def _sealed_text(row: Mapping[str, Any]) -> str:
    return "idempotency\n" + canonical([row[name] for name in _SEALED])


async def _awaited(task: "asyncio.Future[T]") -> T:
    return await task


def _is(key: Key) -> tuple[Any, ...]:
    from agentos.store import schema

    columns = schema.idempotency.c
    return (columns.principal == key.principal, columns.tool == key.tool, columns.key == key.key)


def _row(connection: "Connection", key: Key) -> Mapping[str, Any] | None:
    from agentos.store import schema

    return fetch_one(connection, schema.idempotency.select().where(*_is(key)))


def _sweep(connection: "Connection", now: float) -> None:
    """Forget keys that are old."""
    from agentos.store import schema

    columns = schema.idempotency.c
    ended = (columns.state == "done") & (columns.created_at < now - KEEP)
    lost = columns.created_at < now - 30 * KEEP
    connection.execute(schema.idempotency.delete().where(ended | lost))
