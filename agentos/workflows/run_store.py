"""Runs in the store: what they are, which host has them, and what they wait for.

A run is *owned* while a host works on it, and carries a fence: a number that grows whenever a host takes it. Whatever
a host writes about a run it writes only while both are still its own, so one that was slow, and was taken for dead,
writes nothing any more.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from agentos.store import Store
from agentos.store.rows import PlainSql, inserting

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_RUN = ("id", "workflow", "version", "run_key", "parent", "data", "state", "reason", "result", "ending", "wants")
_COLUMNS = (
    *_RUN,
    *("decisions", "owner", "fence", "segment", "deadline", "created_at", "updated_at", "seal"),
)
_INSERT = PlainSql(
    f"INSERT INTO workflow_runs ({', '.join(_COLUMNS)}) "  # noqa: S608 - our own names
    f"VALUES ({', '.join(':' + name for name in _COLUMNS)}) ON CONFLICT DO NOTHING"
)
_BY_ID = PlainSql("SELECT * FROM workflow_runs WHERE id = :id")
_BY_KEY = PlainSql("SELECT * FROM workflow_runs WHERE workflow = :workflow AND run_key = :key")
_LIST = PlainSql(
    "SELECT * FROM workflow_runs WHERE (:workflow = '' OR workflow = :workflow) "
    "AND (:state = '' OR state = :state) ORDER BY created_at DESC, id LIMIT :limit"
)
_CHILDREN = PlainSql(
    "SELECT id FROM workflow_runs WHERE parent = :id AND state NOT IN ('finished', 'failed', 'cancelled')"
)
_CLAIM = PlainSql(
    "UPDATE workflow_runs SET state = :state, owner = :owner, fence = fence + 1, segment = segment + 1, "
    "reason = NULL, updated_at = :now WHERE id = :id AND fence = :fence"
)
_IS_OURS = PlainSql("SELECT id FROM workflow_runs WHERE id = :id AND fence = :fence AND owner = :owner", locks=True)
_SETTLE = PlainSql(
    "UPDATE workflow_runs SET state = :state, owner = NULL, reason = :reason, result = :result, wants = :wants, "
    "updated_at = :now WHERE id = :id AND fence = :fence AND owner = :owner"
)
_END = PlainSql(
    "UPDATE workflow_runs SET ending = :ending, wants = NULL, state = :state, updated_at = :now "
    "WHERE id = :id AND fence = :fence AND owner = :owner"
)
_WANT = PlainSql(
    "UPDATE workflow_runs SET wants = :wants, updated_at = :now "
    "WHERE id = :id AND ending IS NULL AND state NOT IN ('finished', 'failed', 'cancelled')"
)
_PAUSE_IDLE = PlainSql(
    "UPDATE workflow_runs SET state = 'paused', wants = NULL, fence = fence + 1, updated_at = :now "
    "WHERE id = :id AND owner IS NULL AND ending IS NULL AND state IN ('queued', 'waiting', 'held')"
)
_REQUEUE = PlainSql(
    "UPDATE workflow_runs SET state = 'queued', wants = NULL, decisions = :decisions, reason = NULL, "
    "fence = fence + 1, updated_at = :now "
    "WHERE id = :id AND owner IS NULL AND state IN ('paused', 'held', 'unknown')"
)
_UNWANT = PlainSql("UPDATE workflow_runs SET wants = NULL WHERE id = :id AND wants = 'pause'")
_HOLD = PlainSql(
    "UPDATE workflow_runs SET state = 'held', reason = :reason, updated_at = :now "
    "WHERE id = :id AND fence = :fence AND owner IS NULL"
)
_RELEASE_DEAD = PlainSql(
    "UPDATE workflow_runs SET state = 'queued', owner = NULL, fence = fence + 1, updated_at = :now "
    "WHERE id = :id AND fence = :fence AND owner = :owner"
)
_WAITS = PlainSql("SELECT * FROM workflow_waits WHERE run = :run ORDER BY since, step")
_DROP_WAITS = PlainSql("DELETE FROM workflow_waits WHERE run = :run")
_PUT_WAIT = PlainSql(
    "INSERT INTO workflow_waits (run, step, name, kind, ref, due_at, since) "
    "VALUES (:run, :step, :name, :kind, :ref, :due_at, :since) "
    "ON CONFLICT (run, step) DO UPDATE SET kind = :kind, ref = :ref, due_at = :due_at"
)
_DUE = PlainSql("""
    SELECT id FROM workflow_runs WHERE state = 'queued' AND owner IS NULL
    UNION SELECT id FROM workflow_runs
        WHERE owner IS NULL AND wants = 'cancel' AND state IN ('waiting', 'paused', 'held', 'unknown')
    UNION SELECT id FROM workflow_runs
        WHERE owner IS NULL AND state = 'waiting' AND ending IS NULL AND deadline <= :now
    UNION SELECT w.run AS id FROM workflow_waits w JOIN workflow_runs r ON r.id = w.run
        WHERE w.due_at <= :now AND r.state = 'waiting'
    UNION SELECT s.run AS id FROM workflow_signals s JOIN workflow_waits w ON w.run = s.run AND w.ref = s.name
        JOIN workflow_runs r ON r.id = s.run
        WHERE s.taken_by IS NULL AND w.kind = 'signal' AND r.state = 'waiting'
    UNION SELECT w.run AS id FROM workflow_waits w JOIN workflow_runs c ON c.id = w.ref
        JOIN workflow_runs r ON r.id = w.run
        WHERE w.kind = 'workflow' AND r.state = 'waiting' AND c.state IN ('finished', 'failed', 'cancelled')
    UNION SELECT w.run AS id FROM workflow_waits w JOIN proposals p ON p.id = w.ref
        JOIN workflow_runs r ON r.id = w.run
        WHERE w.kind = 'proposal' AND r.state = 'waiting'
        AND (p.state NOT IN ('proposed', 'applying') OR (p.state = 'proposed' AND p.expires_at <= :now))
    LIMIT :limit
""")
_HELD = PlainSql("SELECT id, workflow, version, fence, reason, data, decisions FROM workflow_runs WHERE state = 'held'")
_OURS = PlainSql("SELECT id, wants, deadline FROM workflow_runs WHERE owner = :owner")
_OWNERS = PlainSql("SELECT DISTINCT owner FROM workflow_runs WHERE owner IS NOT NULL")
_OF_OWNER = PlainSql("SELECT id, fence, owner, segment FROM workflow_runs WHERE owner = :owner")
_BEAT = PlainSql(
    "INSERT INTO workflow_hosts (owner, beat) VALUES (:owner, 1) "
    "ON CONFLICT (owner) DO UPDATE SET beat = workflow_hosts.beat + 1"
)
_BEATS = PlainSql("SELECT owner, beat FROM workflow_hosts")
_DROP_HOST = PlainSql("DELETE FROM workflow_hosts WHERE owner = :owner")
_PUT_SIGNAL = inserting("workflow_signals", ("id", "run", "name", "value", "position", "taken_by", "seal"))
_LAST_SIGNAL = PlainSql(
    "SELECT MAX(position) AS position, SUM(CASE WHEN taken_by IS NULL THEN 1 ELSE 0 END) AS untaken "
    "FROM workflow_signals WHERE run = :run"
)
_TAKEN_SIGNAL = PlainSql("SELECT * FROM workflow_signals WHERE run = :run AND taken_by = :step")
_NEXT_SIGNAL = PlainSql(
    "SELECT * FROM workflow_signals WHERE run = :run AND name = :name AND taken_by IS NULL ORDER BY position LIMIT 1"
)
_TAKE_SIGNAL = PlainSql("UPDATE workflow_signals SET taken_by = :step WHERE id = :id AND taken_by IS NULL")
_PROPOSAL = PlainSql(
    "SELECT id FROM proposals WHERE principal = :principal AND idempotency_key = :key ORDER BY created_at, id"
)
_PUT_SCHEDULE = PlainSql(
    "INSERT INTO workflow_schedules (id, workflow, data, next_at, last_at, seal) "
    "VALUES (:id, :workflow, :data, :next_at, :last_at, :seal) ON CONFLICT (id) DO UPDATE SET "
    "workflow = :workflow, data = :data, next_at = :next_at, last_at = :last_at, seal = :seal"
)
_DROP_SCHEDULE = PlainSql("DELETE FROM workflow_schedules WHERE id = :id")
_SCHEDULES = PlainSql("SELECT * FROM workflow_schedules ORDER BY id")
_DUE_SCHEDULES = PlainSql("SELECT * FROM workflow_schedules WHERE next_at <= :now ORDER BY next_at LIMIT 100")
_MOVE_SCHEDULE = PlainSql(
    "UPDATE workflow_schedules SET next_at = :next_at, last_at = :last_at WHERE id = :id AND next_at = :before"
)


SIGNALS = 1_000
"""How many signals a run may have that it has not taken."""


@attrs.frozen(kw_only=True)
class Wait:
    """What a step waits for: a `proposal`, a `signal`, a `workflow`, a `sleep`, or another attempt (`retry`)."""

    step: str
    name: str
    kind: str
    ref: str | None = None
    due_at: float | None = None
    since: float = 0.0

    @property
    def reason(self) -> str:
        """Say what is waited for."""
        words = {"proposal": f"the proposal {self.ref}", "signal": f"the signal {self.ref!r}"}
        words |= {
            "workflow": f"the run {self.ref}",
            "sleep": "a time",
            "retry": "another attempt",
            "unknown": "a decision",
        }
        return f"{self.name} waits for {words[self.kind]}"


@attrs.frozen(kw_only=True)
class Claim:
    """A run that this host has: what it is, and the fence under which it is written."""

    id: str
    workflow: str
    version: str
    parent: str | None
    data: Mapping[str, Any] = attrs.field(repr=False)
    fence: int
    segment: int
    ending: Mapping[str, Any] | None
    wants: str | None
    decisions: Mapping[str, Any]
    deadline: float | None
    created_at: float
    waits: tuple[Wait, ...] = ()
    taken_from: str | None = None


class Fenced(BaseException):
    """The run is another host's now."""


class RunStore:
    """Reads and writes runs, for one host."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    @property
    def me(self) -> str:
        """Return by what name this host has runs."""
        return self._store.instance

    def now(self) -> float:
        """Return the time."""
        return float(self._clock())

    async def open(self) -> None:
        """Open the store."""
        await self._store.open()

    # -- runs --------------------------------------------------------------------------------------------------

    async def add(
        self,
        id: str,
        workflow: str,
        version: str,
        data: Mapping[str, Any],
        *,
        key: str | None = None,
        deadline: float | None = None,
        parent: "Claim | None" = None,
        taken: bool = False,
    ) -> tuple[dict[str, Any], bool]:
        """Add a run, as `queued` or taken by this host at once; return its row, and False if it was there already."""
        await self._store.open()
        now = self.now()
        row: dict[str, Any] = dict.fromkeys(_COLUMNS)
        row |= {"id": id, "workflow": workflow, "version": version, "run_key": key, "data": json.dumps(data)}
        row |= {"parent": None if parent is None else parent.id, "deadline": deadline}
        row |= {"state": "running", "owner": self.me, "fence": 1, "segment": 1} if taken else {}
        row = {"state": "queued", "fence": 0, "segment": 0, **{k: v for k, v in row.items() if v is not None}}
        row = {**dict.fromkeys(_COLUMNS), **row, "created_at": now, "updated_at": now}
        row["seal"] = self._store.seal(_sealed(row))

        def write(connection: "Connection") -> tuple[dict[str, Any], bool]:
            if parent is not None:
                self._insist(connection, parent)
            if _INSERT.changes(connection, **row) == 1:
                return row, True
            found = _BY_ID.one(connection, id=id) or _BY_KEY.one(connection, workflow=workflow, key=key)
            return dict(found or row), False

        return await self._store.write(write)

    async def get(self, id: str) -> dict[str, Any] | None:
        """Return the row of a run."""
        await self._store.open()
        return await self._store.read(lambda connection: _BY_ID.one(connection, id=id))

    async def list(self, workflow: str | None, state: str | None, limit: int) -> Sequence[dict[str, Any]]:
        """Return rows, the newest first."""
        await self._store.open()
        wanted = {"workflow": workflow or "", "state": state or "", "limit": limit}
        return await self._store.read(lambda connection: _LIST.all(connection, **wanted))

    async def waits(self, id: str) -> Sequence[Wait]:
        """Return what a run waits for."""
        rows = await self._store.read(lambda connection: _WAITS.all(connection, run=id))
        return [_wait(row) for row in rows]

    def is_genuine(self, row: Mapping[str, Any]) -> bool:
        """Tell whether nobody changed what a run is."""
        return self._store.is_sealed(_sealed(row), row["seal"])

    # -- taking ------------------------------------------------------------------------------------------------

    async def claim(self, id: str, *, fence: int, taken_from: str | None = None) -> Claim | None:
        """Take a run whose fence is still *fence*; None if another host was faster."""

        def take(connection: "Connection") -> Claim | None:
            row = _BY_ID.one(connection, id=id)
            if row is None or row["owner"] != taken_from or row["state"] in ("finished", "failed", "cancelled"):
                return None
            state = "cancelling" if _is_cancelling(row) else "running"
            values = {"id": id, "fence": fence, "owner": self.me, "now": self.now(), "state": state}
            if _CLAIM.changes(connection, **values) != 1:
                return None
            waits = tuple(_wait(one) for one in _WAITS.all(connection, run=id))
            return _claim({**row, "fence": fence + 1, "segment": row["segment"] + 1}, waits, taken_from)

        return await self._store.write(take)

    async def is_ours(self, claim: Claim) -> bool:
        """Tell whether this host still has the run."""
        values = {"id": claim.id, "fence": claim.fence, "owner": self.me}
        return await self._store.write(lambda connection: _IS_OURS.one(connection, **values)) is not None

    def insist_on(self, claim: Claim) -> Callable[["Connection"], bool]:
        """Return what tells, within a transaction, whether this host still has the run."""
        values = {"id": claim.id, "fence": claim.fence, "owner": self.me}
        return lambda connection: _IS_OURS.one(connection, **values) is not None

    def _insist(self, connection: "Connection", claim: Claim) -> None:
        if _IS_OURS.one(connection, id=claim.id, fence=claim.fence, owner=self.me) is None:
            raise Fenced

    async def settle(
        self,
        claim: Claim,
        state: str,
        *,
        reason: str | None = None,
        result: Mapping[str, Any] | None = None,
        wants: str | None = None,
        waits: Iterable[Wait] = (),
    ) -> bool:
        """Let a run go in a state, with what it waits for; False if it is not ours any more."""
        values = {"id": claim.id, "fence": claim.fence, "owner": self.me, "now": self.now()}
        text = None if result is None else json.dumps(result)
        kept = list(waits)

        def write(connection: "Connection") -> bool:
            if _SETTLE.changes(connection, **values, state=state, reason=reason, result=text, wants=wants) != 1:
                return False
            _DROP_WAITS.changes(connection, run=claim.id)
            for wait in kept:
                _PUT_WAIT.changes(connection, run=claim.id, **attrs.asdict(wait))
            return True

        return await self._store.write(write)

    async def end(self, claim: Claim, ending: Mapping[str, Any]) -> None:
        """Write down how a run is to end, before its steps are undone; raise Fenced if it is not ours any more."""
        state = "cancelling" if ending["state"] == "cancelled" else "running"
        values = {"id": claim.id, "fence": claim.fence, "owner": self.me, "now": self.now(), "state": state}
        if await self._store.write(lambda one: _END.changes(one, **values, ending=json.dumps(ending))) != 1:
            raise Fenced

    async def put_wait(self, claim: Claim, wait: Wait) -> None:
        """Write down that a step waits; raise Fenced if the run is not ours any more."""

        def write(connection: "Connection") -> None:
            self._insist(connection, claim)
            _PUT_WAIT.changes(connection, run=claim.id, **attrs.asdict(wait))

        await self._store.write(write)

    # -- wishes ------------------------------------------------------------------------------------------------

    async def want(self, id: str, wants: str) -> bool:
        """Ask whoever has a run to pause or to cancel it; False if it is over, or ends already."""
        values = {"id": id, "now": self.now()}

        def write(connection: "Connection") -> bool:
            if wants == "pause" and _PAUSE_IDLE.changes(connection, **values) == 1:
                return True
            return _WANT.changes(connection, **values, wants=wants) == 1

        return await self._store.write(write)

    async def requeue(self, id: str, decisions: Mapping[str, Any]) -> bool:
        """Let a run that stands go on; False if it does not stand."""
        values = {"id": id, "now": self.now(), "decisions": json.dumps(decisions)}

        def write(connection: "Connection") -> bool:
            if _REQUEUE.changes(connection, **values) == 1:
                return True
            return _UNWANT.changes(connection, id=id) == 1

        return await self._store.write(write)

    async def hold(self, id: str, fence: int, reason: str) -> bool:
        """Hold a run that no host has; False if it changed meanwhile."""
        values = {"id": id, "fence": fence, "reason": reason, "now": self.now()}
        return await self._store.write(lambda connection: _HOLD.changes(connection, **values)) == 1

    async def cancel_children(self, claim: Claim) -> None:
        """Ask for the end of the runs that a run started."""

        def write(connection: "Connection") -> None:
            self._insist(connection, claim)
            for row in _CHILDREN.all(connection, id=claim.id):
                _WANT.changes(connection, id=row["id"], wants="cancel", now=self.now())

        await self._store.write(write)

    # -- looking -----------------------------------------------------------------------------------------------

    async def due(self, limit: int) -> Sequence[str]:
        """Return the runs that can go on and that no host has."""
        rows = await self._store.read(lambda connection: _DUE.all(connection, now=self.now(), limit=limit))
        return [row["id"] for row in rows]

    async def held(self) -> Sequence[dict[str, Any]]:
        """Return the runs that are held."""
        return await self._store.read(_HELD.all)

    async def ours(self) -> Sequence[dict[str, Any]]:
        """Return the runs that this host has, with what is wanted of them."""
        return await self._store.read(lambda connection: _OURS.all(connection, owner=self.me))

    async def beat(self) -> None:
        """Show that this host lives."""
        await self._store.write(lambda connection: _BEAT.changes(connection, owner=self.me))

    async def leave(self) -> None:
        """Show that this host is gone."""
        await self._store.write(lambda connection: _DROP_HOST.changes(connection, owner=self.me))

    async def beats(self) -> Mapping[str, int]:
        """Return the heartbeats of all hosts that have runs, 0 where there was none; ours are left out."""

        def read(connection: "Connection") -> dict[str, int]:
            owners = {row["owner"]: 0 for row in _OWNERS.all(connection)}
            return owners | {row["owner"]: row["beat"] for row in _BEATS.all(connection)}

        return {owner: beat for owner, beat in (await self._store.read(read)).items() if owner != self.me}

    async def is_alive(self, owner: str) -> bool:
        """Tell whether the process of a host still holds its lock."""
        return await self._store.is_alive(owner)

    async def of_owner(self, owner: str) -> Sequence[dict[str, Any]]:
        """Return the runs that a host has."""
        return await self._store.read(lambda connection: _OF_OWNER.all(connection, owner=owner))

    async def forget_host(self, owner: str) -> None:
        """Take a host that is gone off the list."""
        await self._store.write(lambda connection: _DROP_HOST.changes(connection, owner=owner))

    async def proposals(self, principal: str, key: str) -> Sequence[str]:
        """Return the proposals that were made of a call, by its idempotency key."""
        values = {"principal": principal, "key": key}
        rows = await self._store.read(lambda connection: _PROPOSAL.all(connection, **values))
        return [row["id"] for row in rows]

    # -- signals -----------------------------------------------------------------------------------------------

    async def put_signal(self, run: str, name: str, value: Any) -> bool:
        """Keep a signal for a run; False if too many wait for it to take them."""
        await self._store.open()
        row = {"id": uuid.uuid4().hex, "run": run, "name": name, "value": json.dumps(value), "taken_by": None}
        row["seal"] = self._store.seal(_sealed_signal(row))

        def write(connection: "Connection") -> bool:
            last = _LAST_SIGNAL.one(connection, run=run) or {}
            if (last.get("untaken") or 0) >= SIGNALS:
                return False
            return _PUT_SIGNAL.changes(connection, **row, position=(last.get("position") or 0) + 1) == 1

        return await self._store.write(write)

    async def take_signal(self, claim: Claim, step: str, name: str) -> tuple[bool, Any]:
        """Return whether there is a signal for a step, and its value; it is taken for that step for good."""

        def take(connection: "Connection") -> dict[str, Any] | None:
            self._insist(connection, claim)
            found = _TAKEN_SIGNAL.one(connection, run=claim.id, step=step)
            if found is None and (found := _NEXT_SIGNAL.one(connection, run=claim.id, name=name)) is not None:
                _TAKE_SIGNAL.changes(connection, id=found["id"], step=step)
            return found

        row = await self._store.write(take)
        if row is None or not self._store.is_sealed(_sealed_signal(row), row["seal"]):
            return False, None
        return True, json.loads(row["value"])

    # -- schedules ---------------------------------------------------------------------------------------------

    async def put_schedule(self, id: str, workflow: str, data: Mapping[str, Any], next_at: float) -> None:
        """Keep a schedule in the place of what was kept of it before."""
        await self._store.open()
        row = {"id": id, "workflow": workflow, "data": json.dumps(data), "next_at": next_at, "last_at": None}
        row["seal"] = self._store.seal(_sealed_schedule(row))
        await self._store.write(lambda connection: _PUT_SCHEDULE.changes(connection, **row))

    async def drop_schedule(self, id: str) -> bool:
        """Forget a schedule; False if there is none."""
        await self._store.open()
        return await self._store.write(lambda connection: _DROP_SCHEDULE.changes(connection, id=id)) == 1

    async def schedules(self) -> Sequence[dict[str, Any]]:
        """Return the schedules that nobody changed outside of agentos."""
        await self._store.open()
        return self._genuine(await self._store.read(_SCHEDULES.all))

    async def due_schedules(self) -> Sequence[dict[str, Any]]:
        """Return the schedules whose time has come."""
        return self._genuine(await self._store.read(lambda one: _DUE_SCHEDULES.all(one, now=self.now())))

    def _genuine(self, rows: Iterable[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        return [row for row in rows if self._store.is_sealed(_sealed_schedule(row), row["seal"])]

    async def move_schedule(self, id: str, before: float, next_at: float, last_at: float | None) -> bool:
        """Set the next time of a schedule; False if another host did."""
        values = {"id": id, "before": before, "next_at": next_at, "last_at": last_at}
        return await self._store.write(lambda connection: _MOVE_SCHEDULE.changes(connection, **values)) == 1


def _claim(row: Mapping[str, Any], waits: tuple[Wait, ...], taken_from: str | None) -> Claim:
    names = ("id", "workflow", "version", "parent", "fence", "segment", "wants", "deadline", "created_at")
    return Claim(
        **{name: row[name] for name in names},
        data=json.loads(row["data"]),
        ending=None if row["ending"] is None else json.loads(row["ending"]),
        decisions={} if row["decisions"] is None else json.loads(row["decisions"]),
        waits=waits,
        taken_from=taken_from,
    )


def claim_of_new(row: Mapping[str, Any]) -> Claim:
    """Return the claim of a run that was added as taken."""
    return _claim(row, (), None)


def _is_cancelling(row: Mapping[str, Any]) -> bool:
    ending = None if row["ending"] is None else json.loads(row["ending"])["state"]
    return ending == "cancelled" or (ending is None and row["wants"] == "cancel")


def _wait(row: Mapping[str, Any]) -> Wait:
    return Wait(**{field.name: row[field.name] for field in attrs.fields(Wait)})


def _sealed(row: Mapping[str, Any]) -> str:
    return json.dumps(["workflow run", *(row[name] for name in ("id", "workflow", "version", "parent", "data"))])


def _sealed_signal(row: Mapping[str, Any]) -> str:
    return json.dumps(["workflow signal", *(row[name] for name in ("id", "run", "name", "value"))])


def _sealed_schedule(row: Mapping[str, Any]) -> str:
    return json.dumps(["workflow schedule", *(row[name] for name in ("id", "workflow", "data"))])
