"""Proposals: calls that wait for a person, each bound to what exactly will run, and taken once."""

import copy
import hashlib
import json
import secrets
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import attrs

from agentos.access.audit import Audit, Link
from agentos.access.stored_results import result_from_text, result_to_text
from agentos.base.canonical import canonical, in_order
from agentos.errors import AgentOSError, StoreError
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.model.tool_pattern import ToolBounds
from agentos.stacks.rank import rank
from agentos.store import Store
from agentos.store.rows import PlainSql, fetch_all, inserting

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

ProposalState = Literal["proposed", "applying", "applied", "failed", "unknown", "expired", "rejected"]
PENDING_LIMIT = 1_000
"""How many proposals of one principal wait at once."""
_MEMORY = 10_000
"""How many proposals a host without a store remembers after they were decided on."""
_SKEW = 60.0
"""By how many seconds the clocks of hosts that share a store may differ."""


class ProposalError(AgentOSError, ValueError):
    """A proposal that is not there, or can't be edited or rejected any more."""


@attrs.frozen(kw_only=True)
class Proposal:
    """A call that waits for a person, or what became of it.

    `tool` is fully qualified, `arguments` are the validated ones that will run, `preview` is what a dry run said, else
    the arguments. `shadows` are the tools that this one stands in front of. `token` is there once, when it is made.
    `session` is the id of the session and `call_id` the id that the caller gave the call, if there were any.
    """

    id: str
    token: str | None = attrs.field(default=None, repr=False)
    tool: str
    arguments: Mapping[str, Any] | None = attrs.field(repr=False)
    preview: Any = attrs.field(repr=False)
    principal: Principal
    effect: str
    state: ProposalState
    created_at: datetime
    expires_at: datetime
    reason: str
    shadows: tuple[str, ...] = ()
    pack: str
    version: str | None
    origin: str
    definition: str
    decided_at: datetime | None = None
    decided_by: str | None = None
    note: str | None = None
    parent: str | None = None
    """The proposal that this one took the place of: it was edited, or expired and was asked again."""
    session: str | None = None
    call_id: str | None = None
    flags: tuple[Mapping[str, Any], ...] = ()
    """What guardrails found strange about the call: of each its guard, code, reason and stage."""

    @property
    def flagged(self) -> tuple[str, ...]:
        """Return what guardrails found strange in words, for whoever is asked."""
        return tuple(f"{flag.get('guard')}: {flag.get('reason') or flag.get('code')}" for flag in self.flags)


@attrs.frozen(kw_only=True)
class Stored:
    """A proposal as it stands in the store, with what is nobody else's business."""

    proposal: Proposal
    arguments_hash: str
    entry_state: str
    idempotency_key: str | None
    is_genuine: bool
    attempts: int
    result: str | None


class Proposals:
    """Writes proposals and moves them from state to state, each step in one transaction with its audit record."""

    def __init__(self, store: Store, audit: Audit, clock: Callable[[], float]) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock
        self._made = 0
        """How many proposals were made since the oldest were last forgotten."""
        self._unwritten: dict[str, tuple[float, Mapping[str, Any]]] = {}
        """Arguments that hold a secret, and until when: never written, so they last no longer than this process."""
        self._unsaved: dict[str, tuple[Proposal, ToolResult]] = {}
        """What was applied here, and could not be written down yet."""
        self.after_move: Callable[[str], Awaitable[None]] | None = None
        """What is done when a proposal took a step here, which is written down then."""

    async def add(
        self,
        draft: Proposal,
        *,
        secret: bool,
        replaces: str | None = None,
        renews: bool = False,
        by: str | None = None,
        **bound: str | None,
    ) -> Proposal:
        """Write a new proposal and return it with its token, which is kept only as a hash.

        With *secret* the arguments stay in memory. *replaces* is the proposal that this one is an edit of, made by
        *by*: it is closed in the same step, if it still waits. With *renews* it expired, and is asked again once.
        """
        token = secrets.token_urlsafe(32)
        await self._store.open()
        row = self._row(draft, token, secret=secret, **bound)
        link = self._audit.link(
            "proposal",
            None if secret else draft.arguments,
            proposal=draft.id,
            tool=draft.tool,
            principal=draft.principal.key,
            answer="ask",
            reason=draft.reason,
            parent=replaces,
            **({} if replaces is None else {"by": by}),
        )

        def insert(connection: "Connection") -> None:
            self._check_room(connection, draft.principal.key)
            if replaces is not None and renews:
                self._check_expired(connection, replaces)
            elif replaces is not None:
                values = {"note": f"edited: replaced by {draft.id}", **self._decided(by)}
                if not self._move(connection, replaces, "proposed", "rejected", unexpired=True, **values):
                    raise ProposalError(f"proposal {replaces} does not wait any more and can't be edited")
            if not self._store.is_durable:
                self._forget_oldest(connection)
            _INSERT.changes(connection, **row)
            self._audit.extend(connection, link)

        await self._audit.write(insert)
        self._unwritten.pop(replaces or "", None)
        if secret:
            kept = copy.deepcopy(dict(draft.arguments or {}))
            self._unwritten[draft.id] = draft.expires_at.timestamp(), kept
        if replaces is not None and not renews:
            await self._tell_move(replaces)
        return attrs.evolve(draft, token=token, arguments=copy.deepcopy(draft.arguments))

    async def _tell_move(self, id: str) -> None:
        if self.after_move is not None:
            await self.after_move(id)

    def _check_expired(self, connection: "Connection", id: str) -> None:
        """Refuse to ask again about what did not expire, or was asked again already."""
        row = _BY_ID.one(connection, id=id)
        if row is None or row["state"] != "expired" or not self._vouched(row)[1]:
            raise ProposalError(f"proposal {id} has not expired and can't be asked again")
        if (later := _SUCCESSOR.one(connection, id=id)) is not None:
            raise ProposalError(f"proposal {id} was asked again already, as {later['id']}")

    def _forget_oldest(self, connection: "Connection") -> None:
        """Keep what lies in memory within bounds."""
        from sqlalchemy import select

        from agentos.store import schema

        self._made += 1
        if self._made < _MEMORY // 10:
            return
        self._made = 0
        columns = schema.proposals.c
        is_over = (columns.state == "proposed") & (columns.expires_at <= self._clock())
        decided = columns.state.not_in(("proposed", "applying")) | is_over
        newest = select(columns.id).where(decided).order_by(columns.created_at.desc()).limit(_MEMORY)
        connection.execute(schema.proposals.delete().where(decided, columns.id.not_in(newest)))

    def _check_room(self, connection: "Connection", principal: str) -> None:
        waiting = _WAITING.one(connection, principal=principal, now=self._clock())
        if waiting is None or waiting["waiting"] >= PENDING_LIMIT:
            raise ProposalError(f"{PENDING_LIMIT} proposals of {principal!r} wait already; decide on those first")

    def _row(self, draft: Proposal, token: str, *, secret: bool, **bound: str | None) -> dict[str, Any]:
        row = {
            "id": draft.id,
            "token_hash": hash_of(token),
            "principal": draft.principal.key,
            "principal_data": canonical(principal_data(draft.principal)),
            "tool": draft.tool,
            "arguments": None if secret else in_order(draft.arguments),
            "arguments_hash": self._store.seal(canonical(draft.arguments)),
            "definition": draft.definition,
            "preview": in_order(draft.preview),
            "effect": draft.effect,
            "reason": draft.reason,
            "shadows": canonical(draft.shadows),
            "pack": draft.pack,
            "version": draft.version,
            "origin": draft.origin,
            "parent": draft.parent,
            "flags": canonical(draft.flags) if draft.flags else None,
            "session_id": draft.session,
            "call_id": draft.call_id,
            "state": "proposed",
            "attempts": 0,
            "created_at": draft.created_at.timestamp(),
            "expires_at": draft.expires_at.timestamp(),
            **dict.fromkeys((*FATE, "owner")),
            **bound,
        }
        return {**row, "seal": self._store.seal(sealed_text(row))}

    def _decided(self, by: str | None) -> dict[str, Any]:
        return {"decided_at": float(self._clock()), "decided_by": by}

    # -- reading -----------------------------------------------------------------------------------------------

    async def by_id(self, id: str) -> Stored | None:
        """Return the proposal of that id."""
        return await self._one(lambda connection: _BY_ID.one(connection, id=id))

    async def by_token(self, token: str) -> Stored | None:
        """Return the proposal of that token."""
        hash = hash_of(token)
        return await self._one(lambda connection: _BY_TOKEN.one(connection, hash=hash))

    async def waiting_like(self, principal: str, tool: str, arguments: Mapping[str, Any]) -> list[Stored]:
        """Return what waits for the same call of a principal, and can be applied; oldest first."""
        same = {"principal": principal, "tool": tool, "hash": self._store.seal(canonical(arguments))}

        def find(connection: "Connection") -> list[dict[str, Any]]:
            rows = _LIKE.all(connection, **same, now=self._clock())
            return [row for row in rows if not self._audit.is_closed(connection, row["id"])]

        found = [self._stored(row) for row in await self._store.read(find)]
        return [one for one in found if self.fault(one) is None]

    async def _one(self, find: "Callable[[Connection], dict[str, Any] | None]") -> Stored | None:
        await self.catch_up()
        row = await self._store.read(find)
        return None if row is None else self._stored(row)

    async def pending(self, principal: str | None) -> list[Proposal]:
        """Return what waits, oldest first."""
        from agentos.store import schema

        await self.expire()
        columns = schema.proposals.c
        query = schema.proposals.select().where(columns.state == "proposed").order_by(columns.created_at, columns.id)
        if principal is not None:
            query = query.where(columns.principal == principal)
        rows = await self._store.read(lambda connection: fetch_all(connection, query))
        return [stored.proposal for stored in map(self._stored, rows) if stored.is_genuine]

    async def unsettled(self) -> dict[str, str]:
        """Return the state of each proposal that waits or is being applied, by its id."""
        rows = await self._store.read(_UNSETTLED.all)
        return {row["id"]: row["state"] for row in rows}

    async def successor(self, id: str) -> str | None:
        """Return the id of the proposal that took the place of another: an edit, or the same asked again."""
        row = await self._store.read(lambda connection: _SUCCESSOR.one(connection, id=id))
        return None if row is None else row["id"]

    def _stored(self, row: Mapping[str, Any]) -> Stored:
        row, is_genuine = self._vouched(row)
        state, result = self._fate(row)
        arguments = row["arguments"]
        return Stored(
            proposal=Proposal(
                id=row["id"],
                tool=row["tool"],
                arguments=self._kept(row["id"]) if arguments is None else json.loads(arguments),
                preview=json.loads(row["preview"]),
                principal=stored_principal(json.loads(row["principal_data"])),
                effect=row["effect"],
                state=state,
                created_at=_time(row["created_at"]),
                expires_at=_time(row["expires_at"]),
                reason=row["reason"],
                shadows=tuple(json.loads(row["shadows"])),
                pack=row["pack"],
                version=row["version"],
                origin=row["origin"],
                definition=row["definition"],
                decided_at=None if row["decided_at"] is None else _time(row["decided_at"]),
                decided_by=row["decided_by"],
                note=row["note"],
                parent=row["parent"],
                session=row["session_id"],
                call_id=row["call_id"],
                flags=tuple(json.loads(row["flags"] or "[]")),
            ),
            arguments_hash=row["arguments_hash"],
            entry_state=row["entry_state"],
            idempotency_key=row["idempotency_key"],
            is_genuine=is_genuine,
            attempts=row["attempts"],
            result=result,
        )

    def _kept(self, id: str) -> Mapping[str, Any] | None:
        """Return arguments that are not written; None if they are not known here, or not any more."""
        return copy.deepcopy(self._unwritten[id][1]) if id in self._unwritten else None

    def _vouched(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return *row* and whether its seal vouches for it; without what became of it, if not."""
        if self._store.is_sealed(sealed_text(row), row["seal"]):
            return dict(row), True
        return {**row, **dict.fromkeys(FATE), "note": FORGED}, False

    def _fate(self, row: Mapping[str, Any]) -> tuple[Any, str | None]:
        """Return the state and the result of a proposal, as they are now or will be once they can be written."""
        if row["id"] in self._unsaved:
            result = self._unsaved[row["id"]][1]
            return _ended(result), result_to_text(result)
        if row["state"] == "proposed" and row["expires_at"] <= self._clock():
            return "expired", row["result"]
        return row["state"], row["result"]

    def fault(self, stored: Stored | None) -> str | None:
        """Say why a proposal can't be applied, as far as it alone tells; None if it can."""
        if stored is None:
            return "there is no such proposal; the token or id is unknown"
        proposal = stored.proposal
        if proposal.state == "expired":
            return f"the proposal expired at {proposal.expires_at.isoformat(timespec='seconds')}; make the call again"
        if proposal.state != "proposed":
            return f"the proposal was used already: {_fate(proposal)}"
        return self.fault_of_call(stored)

    def fault_of_call(self, stored: Stored) -> str | None:
        """Say what is wrong with what would run, whatever became of the proposal."""
        proposal = stored.proposal
        if proposal.created_at.timestamp() > self._clock() + _SKEW:
            return "the proposal is from the future; this machine's clock went back"
        if proposal.arguments is None:
            return "the arguments held a secret and were not kept when the host ended; make the call again"
        if self._store.seal(canonical(proposal.arguments)) != stored.arguments_hash:
            return "the stored arguments are not the ones that were proposed"
        return None if stored.is_genuine else FORGED

    # -- from state to state -----------------------------------------------------------------------------------

    async def claim(self, stored: Stored, by: str | None, *, again: bool = False) -> bool:
        """Take a proposal for applying; False if somebody else, maybe in another process, was first."""
        await self._store.open()
        proposal, before = stored.proposal, "unknown" if again else "proposed"
        values = {**self._decided(by), "owner": self._store.instance, "attempts": stored.attempts + 1, "note": None}
        link = self._audit.link(
            "proposal:applying",
            None if proposal.id in self._unwritten else proposal.arguments,
            proposal=proposal.id,
            tool=proposal.tool,
            principal=proposal.principal.key,
            by=by,
        )

        def take(connection: "Connection") -> bool:
            if not again and self._audit.is_closed(connection, proposal.id):
                return False
            if not self._move(connection, proposal.id, before, "applying", unexpired=not again, **values):
                return False
            self._audit.extend(connection, link)
            return True

        is_taken = await self._audit.write(take)
        if is_taken:
            await self._tell_move(proposal.id)
        return is_taken

    async def finish(self, stored: Stored, result: ToolResult) -> None:
        """Write down how an applied proposal ended; where that can't be done, it is kept and tried again."""
        try:
            await self._finish(stored.proposal, result)
        except StoreError:
            self._unsaved[stored.proposal.id] = stored.proposal, result
            raise

    async def catch_up(self) -> None:
        """Write down what was applied and could not be written then, if that can be done now; forget what is over."""
        now = self._clock()
        for id in [id for id, (until, _) in self._unwritten.items() if until <= now]:
            del self._unwritten[id]
        for id, (proposal, result) in list(self._unsaved.items()):
            try:
                await self._finish(proposal, result, is_late=True)
            except StoreError:
                return
            self._unsaved.pop(id, None)

    async def _finish(self, proposal: Proposal, result: ToolResult, *, is_late: bool = False) -> None:
        state = _ended(result)
        # A host that took us for dead may have called it unknown meanwhile; it is known now.
        values: dict[str, Any] = {"owner": self._store.instance, "result": result_to_text(result), "note": None}
        link = self._audit.link(
            "proposal:" + state,
            proposal=proposal.id,
            tool=proposal.tool,
            principal=proposal.principal.key,
            outcome={"success": result.success, "error": result.error.type if result.error else None},
        )

        def end(connection: "Connection") -> None:
            moved = self._move(connection, proposal.id, "applying", state, **values) or self._move(
                connection, proposal.id, "unknown", state, **values
            )
            if moved or not is_late:  # else somebody else was faster
                self._audit.extend(connection, link)

        await self._audit.write(end)
        self._unwritten.pop(proposal.id, None)
        await self._tell_move(proposal.id)

    async def reject(self, id: str, reason: str, by: str | None) -> bool:
        """Close a proposal that waits; False if it does not wait any more."""
        await self._store.open()
        values = {"note": reason, **self._decided(by)}
        link = self._audit.link("proposal:rejected", proposal=id, by=by, reason=reason)
        moved = await self._close(id, "rejected", link, unexpired=True, **values)
        if moved:
            self._unwritten.pop(id, None)
            await self._tell_move(id)
        return moved

    async def _close(self, id: str, state: str, link: Link, **options: Any) -> bool:
        def close(connection: "Connection") -> bool:
            moved = self._move(connection, id, "proposed", state, **options)
            if moved:
                self._audit.extend(connection, link)
            return moved

        return await self._audit.write(close)

    async def expire(self) -> None:
        """Close what waited too long."""
        from agentos.store import schema

        columns = schema.proposals.c
        query = schema.proposals.select().where(columns.state == "proposed", columns.expires_at <= self._clock())
        rows = await self._store.read(lambda connection: fetch_all(connection, query))
        for id in [row["id"] for row in rows]:
            await self._close(id, "expired", self._audit.link("proposal:expired", proposal=id))
            self._unwritten.pop(id, None)

    async def recover(self) -> list[Stored]:
        """Find what was being applied by a host that is gone: nobody knows whether it took effect.

        What earlier hosts found so and did not get to is returned as well.
        """
        for row in await self._in_state("applying"):
            if not await self._store.is_alive(row["owner"]):
                await self._give_up(row)
        return [self._stored(row) for row in await self._in_state("unknown")]

    async def _in_state(self, state: str) -> list[dict[str, Any]]:
        from agentos.store import schema

        query = schema.proposals.select().where(schema.proposals.c.state == state)
        return await self._store.read(lambda connection: fetch_all(connection, query))

    async def _give_up(self, row: Mapping[str, Any]) -> None:
        note = "the host ended while this was being applied; whether it took effect is unknown"
        facts = {"proposal": row["id"], "tool": row["tool"], "principal": row["principal"]}
        link = self._audit.link("proposal:unknown", **facts)

        def give_up(connection: "Connection") -> None:
            if self._move(connection, row["id"], "applying", "unknown", owner=row["owner"], note=note):
                self._audit.extend(connection, link)

        await self._audit.write(give_up)

    def _move(
        self,
        connection: "Connection",
        id: str,
        before: str,
        after: str,
        *,
        unexpired: bool = False,
        **values: Any,
    ) -> bool:
        """Change the state if it still is *before*: of all that try, one does."""
        row = _BY_ID.one(connection, id=id)
        if row is None or row["state"] != before or (unexpired and row["expires_at"] <= self._clock()):
            return False
        if not self._vouched(row)[1]:
            return False  # changed outside of agentos: it must not get a seal of ours
        if before != "proposed" and after != "applying" and row["owner"] != values["owner"]:
            return False  # another host has it now
        changed = {**row, **values, "state": after}
        changed["seal"] = self._store.seal(sealed_text(changed))
        return _MOVE.changes(connection, **changed, before=before, vouched=row["seal"]) == 1


def new_id() -> str:
    """Return an id for a proposal."""
    return uuid.uuid4().hex


def hash_of(token: str) -> str:
    """Return what of a token is stored. It has 256 random bits, so a plain hash gives nothing away."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


FORGED = "the stored proposal was changed after it was made"
FATE = ("decided_at", "decided_by", "note", "result")
"""What became of a proposal."""
_SEALED = (
    *("id", "token_hash", "principal", "principal_data", "tool", "arguments_hash", "definition", "entry_state"),
    *("preview", "effect", "shadows", "pack", "version", "origin", "session_id", "idempotency_key", "parent"),
    *("created_at", "expires_at", "state", "attempts", "reason", "owner", *FATE),
)


_INSERT = inserting("proposals", (*_SEALED, "arguments", "flags", "call_id", "seal"))
_BY_ID = PlainSql("SELECT * FROM proposals WHERE id = :id")
_UNSETTLED = PlainSql("SELECT id, state FROM proposals WHERE state IN ('proposed', 'applying')")
_SUCCESSOR = PlainSql("SELECT id FROM proposals WHERE parent = :id ORDER BY created_at, id")
_BY_TOKEN = PlainSql("SELECT * FROM proposals WHERE token_hash = :hash")
_WAITING = PlainSql(
    "SELECT count(*) AS waiting FROM proposals "
    "WHERE principal = :principal AND state = 'proposed' AND expires_at > :now"
)
_LIKE = PlainSql(
    "SELECT * FROM proposals WHERE principal = :principal AND tool = :tool AND arguments_hash = :hash "
    "AND state = 'proposed' AND expires_at > :now ORDER BY created_at, id"
)
_MOVE = PlainSql(
    "UPDATE proposals SET state = :state, owner = :owner, attempts = :attempts, decided_at = :decided_at, "
    "decided_by = :decided_by, note = :note, result = :result, seal = :seal "
    "WHERE id = :id AND state = :before AND seal = :vouched"
)


def sealed_text(row: Mapping[str, Any]) -> str:
    """Return what of a row is sealed: all of it but the arguments, whose hash is.

    Rows without flags or a call's id may be older than these.
    """
    flags = [] if row["flags"] is None else [row["flags"]]
    call = [] if row["call_id"] is None else [{"call_id": row["call_id"]}]
    return "proposal\n" + canonical([*(row[key] for key in _SEALED), *flags, *call])


def _ended(result: ToolResult) -> ProposalState:
    return "applied" if result.success else "failed"


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _fate(proposal: Proposal) -> str:
    words = {
        "applying": "it is being applied",
        "applied": "it was applied",
        "failed": "it was applied, and the call failed",
        "unknown": "the host ended while it was applied, and whether it took effect is unknown",
        "rejected": f"it was rejected ({proposal.note})",
    }
    return words[proposal.state]


def principal_data(principal: Principal) -> dict[str, Any]:
    """Return a principal as it is written down."""
    scopes = None if principal.scopes is None else sorted(principal.scopes)
    data = {"id": principal.id, "kind": principal.kind, "access": sorted(principal.access), "scopes": scopes}
    return {**data, "bounds": [one.as_data() for one in principal.bounds]} if principal.bounds else data


def stored_principal(data: Mapping[str, Any]) -> Principal:
    """Return the principal that was written down."""
    bounds = tuple(ToolBounds(**one) for one in data.get("bounds", ()))
    return Principal(data["id"], data["kind"], frozenset(data["access"]), data["scopes"], bounds=bounds)


def shadowed_by(entries: Iterable[Any], mine: Any) -> tuple[str, ...]:
    """Name the entries that *mine* stands in front of on its stack."""
    beneath = [one for one in entries if rank(one) < rank(mine)]
    return tuple(f"{one.source.pack}:{one.id}" for one in beneath if one.state in ("shadowed", "wrapped"))


def stored_result(stored: Stored) -> ToolResult | None:
    """Return the result that a proposal came to, if it did; a failure if somebody changed what is stored."""
    if not stored.is_genuine:
        return attrs.evolve(ToolResult.fail("ProposalInvalid", FORGED), meta={"proposal": stored.proposal.id})
    return None if stored.result is None else result_from_text(stored.result, proposal=stored.proposal.id)
