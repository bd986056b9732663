"""The audit log: every decision and call, in a hash chain that nobody can shorten, change or reorder unseen.

A record's hash covers its number, its text and the hash before it. The head of the chain is sealed with the store's
key, so that cutting records off at the end is found as well. Reads are written in batches; what may change something
is written before it runs.
"""

import asyncio
import contextlib
import functools
import hashlib
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import attrs

from agentos.access.shared_runs import SharedRun
from agentos.base.canonical import canonical
from agentos.errors import StoreError
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.store import Store
from agentos.store.rows import PlainSql, fetch_all, insert_all, insert_or_nothing, inserting

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

T = TypeVar("T")

GENESIS = "0" * 64
"""The hash before the first record."""
_BATCH = 1_000
_DELAY = 0.2
"""After how many seconds records of reads are written at the latest."""
_BUFFER = 10_000
"""How many records wait when the store can't be written; then the oldest are dropped, and that is recorded."""
ID_LIMIT = 200
"""How many characters of a caller's own names are recorded."""
_CROWDED = 8_000
"""How many records wait before a caller waits for them to be written."""
_MANY = 10
"""How many records are better inserted by one statement."""
_MEMORY = 50_000
"""How many records a log without a store keeps."""


@attrs.frozen
class AuditRecord:
    """One link of the chain. `data` is what was recorded: `event`, `tool`, `principal`, `decision`, `outcome`, ..."""

    seq: int
    at: datetime
    event: str
    data: Mapping[str, Any]
    prev: str
    hash: str


@attrs.frozen
class AuditHead:
    """Where the chain ends: to be kept elsewhere, if even a rolled back database must be noticed."""

    seq: int
    hash: str


@attrs.frozen
class AuditExtent:
    """From where to where the chain goes: what a signature covers."""

    first_seq: int
    first_prev: str
    seq: int
    hash: str


@attrs.frozen
class AuditVerdict:
    """What a verification found: fine, or the first link that is broken and how.

    Where the log could not be read to its end, for a reason that says nothing of the log itself (a full disk, a lock, a
    key that is gone), it is not `ok`, and `broken_at` is None.
    """

    ok: bool
    broken_at: int | None = None
    reason: str = ""
    records: int = 0

    def __bool__(self) -> bool:
        return self.ok


Read = tuple[str, str, Any, str | None]
"""What is noted of a call that only read: tool, principal, call id, and the type of its error."""


Link = tuple[str, str | None]
"""A record but for its place in the chain: its text, and the proposal or grant that it closes."""


_Note = tuple[float, str, Any, dict[str, Any] | Read]
"""A record that waits to be written: when, event, arguments, facts. Hashing and JSON are left for then."""


class Audit:
    """Appends to the chain, verifies it, and reads it back."""

    def __init__(
        self,
        store: Store,
        masker: Masker,
        *,
        with_arguments: bool = False,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._masker = masker
        self._with_arguments = with_arguments
        self._clock = clock
        self.after_batch: Callable[[], Awaitable[None]] | None = None
        """What is done while the store is at hand anyway."""
        self._logger = MaskingLogger("agentos.audit", masker)
        self._is_durable = store.is_durable
        self._enough = _BATCH if store.is_durable else _BUFFER // 2
        self._notes: deque[_Note] = deque()
        self._obliged: dict[int, bool] = {}
        """The notes that somebody waits for, by their identity, and whether they are still there to be written."""
        self._lost = 0
        self._is_closed = False
        self._shared_write = SharedRun(self._write_noted)
        self._is_writing = False
        self._is_failing = False
        self._is_marked = not store.is_durable
        self._has_appended = False
        self._last_head: dict[str, Any] = {}
        """The head that was sealed here last: as long as it is the one that is stored, its seal fits."""
        self._timer: asyncio.TimerHandle | None = None
        self._batches: set[asyncio.Task[None]] = set()

    # -- writing -----------------------------------------------------------------------------------------------

    def note(self, event: str, arguments: Any = None, **facts: Any) -> None:
        """Record something; it is written with the next batch, or by `commit`."""
        self._append_note((self._clock(), event, arguments, facts))

    def _append_note(self, note: _Note) -> None:
        self._notes.append(note)
        if len(self._notes) >= self._enough or (self._is_durable and self._timer is None):
            self._schedule()

    def note_read(self, read: Read, arguments: Any) -> bool:
        """Record a call that nobody had to be asked about; tell whether the caller should `catch_up`, so many wait."""
        notes = self._notes
        notes.append((self._clock(), "call", arguments, read))
        waiting = len(notes)
        if waiting >= self._enough or (self._is_durable and self._timer is None):
            self._schedule()
        return waiting >= _CROWDED

    async def catch_up(self) -> None:
        """Write what waits: calls that never let anybody else run would fill the buffer, and records would be lost."""
        if not (self._is_failing or self._is_closed):
            with contextlib.suppress(StoreError):
                await self._write()

    def _schedule(self) -> None:
        if self._is_closed:
            self._notes.clear()
            return
        self._drop_oldest()
        if len(self._notes) >= self._enough and not self._batches:
            self._start_batch()
        elif self._timer is None and self._is_durable:
            self._timer = asyncio.get_running_loop().call_later(_DELAY, self._start_batch)

    def _drop_oldest(self) -> None:
        while len(self._notes) > _BUFFER:
            dropped = id(self._notes.popleft())
            self._lost += 1
            if dropped in self._obliged:
                self._obliged[dropped] = False

    def _start_batch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        task = asyncio.ensure_future(self._write_batch())
        self._batches.add(task)
        task.add_done_callback(self._batches.discard)

    async def _write_batch(self) -> None:
        try:
            await self._write()
            if self.after_batch is not None:
                await self.after_batch()
        except StoreError as error:
            self._logger.warning("audit records of reads wait to be written: %s", error)

    async def record(self, event: str, arguments: Any = None, **facts: Any) -> None:
        """Record something and write it before this returns; raise StoreError if that can't be done."""
        note: _Note = (self._clock(), event, arguments, facts)
        self._obliged[id(note)] = True
        try:
            self._append_note(note)
            await self.commit()
            if not self._obliged[id(note)]:
                raise StoreError("so many records waited for the store that this one was dropped")
        finally:
            del self._obliged[id(note)]

    async def commit(self) -> None:
        """Write everything recorded so far; raise StoreError if that can't be done.

        A log without a store has nothing to write to: what was recorded is as safe as it gets.
        """
        if self._is_closed:
            raise StoreError("the audit log is closed, because the host was shut down")
        if self._is_durable:
            await self._write()

    async def _write(self) -> None:
        """Write what was noted until now, together with all who want that at the same time."""
        if self._notes or self._lost or self._is_writing:
            await self._shared_write()

    async def _write_noted(self) -> None:
        if not (self._is_marked and self._store.is_open):
            await self._mark()
        taken, lost = list(self._notes), self._lost
        if not (taken or lost):
            return
        self._notes.clear()
        self._lost = 0
        self._is_writing, is_written = True, False

        def written(_: None) -> None:
            nonlocal is_written
            is_written = True

        try:
            gap = [(self._clock(), "gap", None, {"lost": lost})] if lost else []
            links = [self._link(note) for note in (*gap, *taken)]
            await self._store.write(lambda connection: self.extend(connection, *links), written)
        finally:
            self._is_writing, self._is_failing = False, not is_written
            if not is_written:
                self._notes.extendleft(reversed(taken))
                self._lost += lost
                self._drop_oldest()

    async def write(self, function: "Callable[[Connection], T]", then: Callable[[T], None] | None = None) -> T:
        """Run a function that extends the log in a transaction of the store, after all that was noted before."""
        if self._notes:
            await self._write()
        if not self._is_marked:
            await self._mark()
        return await self._store.write(function, then)

    def link(self, event: str, arguments: Any = None, **facts: Any) -> Link:
        """Return a record that a transaction may `extend` the log by. The store must be open."""
        return self._link((self._clock(), event, arguments, facts))

    def _link(self, note: _Note) -> Link:
        return self._body(note), _closed(note)

    def is_closed(self, connection: "Connection", id: str) -> bool:
        """Tell whether the log says that a proposal or grant is over."""
        return _CLOSING_RECORD.one(connection, id=id) is not None

    def closed(self, connection: "Connection", ids: Collection[str]) -> frozenset[str]:
        """Return which proposals and grants of those *ids* the log says are over, whatever their rows say."""
        from sqlalchemy import select

        from agentos.store import schema

        if not ids:
            return frozenset()
        query = select(schema.audit.c.closes).where(schema.audit.c.closes.in_(ids)).distinct()
        return frozenset(connection.execute(query).scalars())

    def extend(self, connection: "Connection", *links: Link) -> None:
        """Append records within a transaction, of whoever's: all of it is written, or nothing."""
        head = self._locked_head(connection)
        seq, previous = head["seq"], head["hash"]
        rows = []
        for body, closes in links:
            seq += 1
            hash = record_hash(seq, previous, body)
            rows.append({"seq": seq, "prev": previous, "hash": hash, "body": body, "closes": closes})
            previous = hash
        _insert(connection, rows)
        self._has_appended = True
        head.update(seq=seq, hash=previous)
        if not self._is_durable:
            self._forget_oldest(connection, head)
        values = {**head, **self._sealed(head)}
        _UPDATE_HEAD.changes(connection, **values)
        self._last_head = {"id": 1, **values}

    def _locked_head(self, connection: "Connection") -> dict[str, Any]:
        """Return the head, locked until the transaction ends; the first one ever is made here."""
        row = _LOCKED_HEAD.one(connection)
        if row is None:
            self._begin_chain(connection)
            row = _LOCKED_HEAD.one(connection)  # ours, or that of a host that was faster
        if row is None:
            raise StoreError("the audit log has no head, and none can be made")
        if row != self._last_head and (fault := self._fault_of_head(row)):
            raise StoreError(f"the audit log can't be continued: {fault}")
        return {key: row[key] for key in ("first_seq", "first_prev", "seq", "hash")}

    def _begin_chain(self, connection: "Connection") -> None:
        from agentos.store import schema

        if connection.execute(schema.audit.select().limit(1)).first() is not None:
            raise StoreError("the audit log has records but no head; verify it before anything is added")
        first: dict[str, Any] = {"first_seq": 1, "first_prev": GENESIS, "seq": 0, "hash": GENESIS}
        statement = insert_or_nothing(connection, schema.audit_head)
        connection.execute(statement.values(id=1, **first, **self._sealed(first)))

    async def _mark(self) -> None:
        """Note beside the key that the log was begun, once it was: emptying the tables must not look like never."""
        await self._store.open()
        head = None if self._is_marked else await self._head()
        if head is None or self._fault_of_head(head) is not None or head["seq"] < head["first_seq"]:
            return
        first = await self._first_hash(head)
        self._is_marked = True
        try:
            if first is not None and self._store.mark() is None:
                self._store.set_mark(first, _moment(self._clock()))
            elif fault := self._fault_of_mark(first):
                self._logger.warning("%s", fault)
        except StoreError as error:
            self._logger.warning("%s", error)

    def _fault_of_mark(self, first: str | None) -> str | None:
        """Say how the log that begins with the hash *first*, or with nothing, differs from the one begun here."""
        try:
            mark = self._store.mark()
        except StoreError as error:
            return str(error)
        if mark is None or mark.first == first:
            return None
        return (
            f"the log that was begun here is not in this database: it was noted at {mark.at}, and since then the "
            "database was emptied, replaced, or restored from a backup of before. If that was meant, remove "
            f"{self._store.mark_shown}"
        )

    def _sealed(self, head: Mapping[str, Any]) -> dict[str, str]:
        return {"key_id": self._store.key_id, "signature": self._store.seal(_head_text(head))}

    def _fault_of_head(self, row: Mapping[str, Any]) -> str | None:
        if not (_are(int, row["first_seq"], row["seq"]) and _are(str, *(row[key] for key in _HEAD_TEXTS))):
            return "a value of its head is not of its type; somebody changed the head"
        if row["key_id"] != self._store.key_id:
            return (
                f"its head is sealed with another key ({row['key_id']}, ours is {self._store.key_id}); "
                "give the store that key"
            )
        if not self._store.is_sealed(_head_text(row), row["signature"]):
            return "the seal of its head does not fit; somebody changed the head"
        return None

    def _forget_oldest(self, connection: "Connection", head: dict[str, Any]) -> None:
        """Keep a log without a store within bounds."""
        from sqlalchemy import select

        from agentos.store import schema

        first = head["seq"] - _MEMORY + 1
        if first - head["first_seq"] < _MEMORY // 10:
            return
        before = select(schema.audit.c.hash).where(schema.audit.c.seq == first - 1)
        head["first_prev"] = connection.execute(before).scalar_one()
        head["first_seq"] = first
        connection.execute(schema.audit.delete().where(schema.audit.c.seq < first))

    def _body(self, note: _Note) -> str:
        at, event, arguments, facts = note
        body: dict[str, Any] = {"at": at, "event": event, **_facts(facts, self._masker)}
        if arguments is not None:
            body["arguments_hash"] = self._store.seal(canonical(arguments))
            if self._with_arguments:
                body["arguments"] = arguments
        return canonical(self._masker.mask_data(body))

    async def close(self) -> None:
        """Write what is left and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.gather(*self._batches, return_exceptions=True)
        try:
            await self.commit()
            if self._has_appended:
                await self._mark()
        finally:
            self._is_closed = True

    # -- reading -----------------------------------------------------------------------------------------------

    async def records(self, *, after: int = 0, limit: int | None = None) -> list[AuditRecord]:
        """Return records in their order, those after number *after*, at most *limit*."""
        await self._write()
        found: list[AuditRecord] = []
        async for row in self._rows(after):
            if limit is not None and len(found) >= limit:
                break
            found.append(_record(row))
        return found

    async def head(self) -> AuditHead:
        """Return where the chain ends now. Kept elsewhere, it lets `verify` notice a rolled back database."""
        await self._write()
        row = await self._head()
        return AuditHead(0, GENESIS) if row is None else AuditHead(row["seq"], row["hash"])

    async def extent(self) -> AuditExtent:
        """Return from where to where the chain goes now."""
        await self._write()
        row = await self._head()
        first: Mapping[str, Any] = {"first_seq": 1, "first_prev": GENESIS, "seq": 0, "hash": GENESIS}
        return AuditExtent(*((first if row is None else row)[key] for key in first))

    async def export(self, target: str | Path | IO[str], *, last: int | None = None) -> int:
        """Write every record as a line of JSON, up to number *last*, to a file or a stream; return how many."""
        await self._write()
        if not isinstance(target, str | Path):
            return await self._export(target, last)
        stream = await asyncio.to_thread(Path(target).open, "w", encoding="utf-8")
        try:
            return await self._export(stream, last)
        finally:
            stream.close()

    async def _export(self, stream: IO[str], last: int | None) -> int:
        count = 0
        async for row in self._rows(None):
            if last is not None and row["seq"] > last:
                break
            line = {"seq": row["seq"], "prev": row["prev"], "hash": row["hash"], "body": row["body"]}
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += 1
        return count

    async def verify(self, *, known: AuditHead | None = None) -> AuditVerdict:
        """Recompute the whole chain and name the first link that is broken.

        *known* is a head that was kept elsewhere: the chain must still go through it.
        """
        walk = _Walk(known)
        try:
            if self._notes or self._lost:
                await self._write()
        except StoreError as error:
            self._logger.warning("%s", error)
        try:
            fault = await self._fault(walk)
            while fault is not None and await self._has_forgotten(walk):
                walk = _Walk(known)
                fault = await self._fault(walk)
        except StoreError as error:
            if error.unavailable:
                return AuditVerdict(ok=False, reason=f"the log can't be read now: {error}", records=walk.count)
            fault = f"the log can't be read there: {error}"
        if fault is None:
            return AuditVerdict(ok=True, records=walk.count)
        return AuditVerdict(ok=False, broken_at=walk.last + 1, reason=fault, records=walk.count)

    async def fault_of_ends(self) -> str | None:
        """Say what is wrong with the head of the log or with its beginning, without a walk along it; None if nothing.

        Nothing is written for it.
        """
        head = await self._head()
        if head is None:
            return self._fault_of_mark(None) or await self._fault_of_silence()
        return self._fault_of_head(head) or self._fault_of_mark(await self._first_hash(head))

    async def _first_hash(self, head: Mapping[str, Any]) -> str | None:
        """Return the hash of the first record; None if there is none."""
        from sqlalchemy import select

        from agentos.store import schema

        query = select(schema.audit.c.hash).where(schema.audit.c.seq == head["first_seq"])
        return await self._store.read(lambda connection: connection.execute(query).scalar())

    async def _has_forgotten(self, walk: "_Walk") -> bool:
        """Tell whether a log without a store let its oldest records go while they were walked along."""
        head = None if self._is_durable else await self._head()
        return head is not None and self._fault_of_head(head) is None and head["first_seq"] > walk.beginning

    async def _fault(self, walk: "_Walk") -> str | None:
        """Walk along the chain, and return what is wrong where the walk ends."""
        head = await self._head()
        fault = "the head of the log is missing" if head is None else self._fault_of_head(head)
        if head is not None and fault is None:
            walk.begin(head)
        while True:
            async for row in self._rows(walk.last if walk.count else None):
                if (wrong := walk.step(row)) is not None:
                    return wrong
                if head is not None and fault is None and row["seq"] > head["seq"]:  # written since?
                    head = await self._head() or head
                    if row["seq"] > head["seq"]:
                        walk.back(row)
                        return f"record {row['seq']} stands after the end that the sealed head names"
            if head is None or fault is not None or walk.last >= head["seq"] or not walk.has_moved():
                break
        if head is None:
            is_due = walk.count or (walk.known is not None and walk.known.seq)
            return fault if is_due else self._fault_of_mark(None) or await self._fault_of_silence()
        return fault or walk.fault_of_end(head) or self._fault_of_beginning(walk)

    def _fault_of_beginning(self, walk: "_Walk") -> str | None:
        fault = self._fault_of_mark(walk.first)
        if fault is not None:
            walk.last = 0
        return fault

    async def _fault_of_silence(self) -> str | None:
        """Say what shows that a log without any record had some: each of these is written with a record."""
        from agentos.store import schema

        def is_filled(connection: "Connection", table: Any) -> bool:
            return connection.execute(table.select().limit(1)).first() is not None

        for table in (schema.proposals, schema.grants, schema.pins, schema.flags):
            if await self._store.read(functools.partial(is_filled, table=table)):
                return f"there are no records, but rows in the table {table.name}: the log was emptied"
        return None

    async def _head(self) -> Mapping[str, Any] | None:
        return await self._store.read(_HEAD.one)

    async def _rows(self, after: int | None) -> AsyncIterator[Mapping[str, Any]]:
        from agentos.store import schema

        columns = schema.audit.c
        while True:
            query = schema.audit.select().order_by(columns.seq).limit(_BATCH)
            if after is not None:
                query = query.where(columns.seq > after)
            rows = await self._store.read(functools.partial(fetch_all, query=query))
            for row in rows:
                yield row
            if len(rows) < _BATCH:
                return
            after = rows[-1]["seq"]


_HEAD = PlainSql("SELECT * FROM audit_head WHERE id = 1")
_LOCKED_HEAD = PlainSql("SELECT * FROM audit_head WHERE id = 1", locks=True)
_UPDATE_HEAD = PlainSql(
    "UPDATE audit_head SET first_seq = :first_seq, first_prev = :first_prev, seq = :seq, hash = :hash, "
    "key_id = :key_id, signature = :signature WHERE id = 1"
)
_INSERT_RECORD = inserting("audit", ("seq", "prev", "hash", "body", "closes"))
_CLOSING_RECORD = PlainSql("SELECT seq FROM audit WHERE closes = :id LIMIT 1")


def _insert(connection: "Connection", rows: list[dict[str, Any]]) -> None:
    from agentos.store import schema

    if len(rows) < _MANY:
        for row in rows:
            _INSERT_RECORD.changes(connection, **row)
    else:
        insert_all(connection, schema.audit, rows)


_CLOSING = {
    "proposal": "parent",
    "proposal:applying": "proposal",
    "proposal:rejected": "proposal",
    "grant:revoked": "grant",
    "decision": "grant",
}
"""Which fact of a record names a proposal that does not wait, or a grant that does not count any more, by its event."""
_CLOSERS = ('"event":"proposal', '"grant":"')
"""What stands in the text of every record that closes something."""


def _closed(note: _Note) -> str | None:
    """Return the proposal or grant that a record closes: it is found by that again, before it is used once more."""
    name = _CLOSING.get(note[1])
    return None if name is None or not isinstance(note[3], dict) else note[3].get(name)


def _closed_by(body: str) -> str | None:
    """Return the same from a record's text."""
    if not any(mark in body for mark in _CLOSERS):
        return None
    try:
        data = json.loads(body)
        return data.get(_CLOSING.get(data["event"], ""))  # type: ignore[no-any-return]  # JSON
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def shortened(name: str, masker: Masker) -> str:
    """Return a name that callers choose as the log keeps it: masked, then cut; half a value would be left."""
    return name if len(name) <= ID_LIMIT else masker.mask(name)[:ID_LIMIT]


def _facts(noted: dict[str, Any] | Read, masker: Masker) -> dict[str, Any]:
    if isinstance(noted, dict):
        return noted
    tool, principal, call_id, error = noted
    facts = {"tool": tool, "principal": principal, "answer": "run", "step": "default", "error": error}
    return facts if call_id is None else {**facts, "call_id": shortened(str(call_id), masker)}


class _Walk:
    """Where a verification is: after which record, with which hash, and how many it has seen."""

    def __init__(self, known: AuditHead | None) -> None:
        self.known = known
        self.last = 0
        self.count = 0
        self.has_begun = False
        self.beginning = 0
        """The number of the first record, as a sealed head said."""
        self.first: str | None = None
        """The hash of the first record."""
        self._previous = GENESIS
        self._marked = -1
        self._stray: int | None = None

    def begin(self, head: Mapping[str, Any]) -> None:
        """Begin where a sealed head says."""
        self.beginning = head["first_seq"]
        self.last, self._previous, self.has_begun = self.beginning - 1, head["first_prev"], True

    def step(self, row: Mapping[str, Any]) -> str | None:
        """Go on to *row*; say what is wrong with it instead."""
        if not (_are(int, row["seq"]) and _are(str, row["prev"], row["hash"], row["body"])):
            return "a value of a record is not of its type"
        if not self.has_begun:
            self.last, self._previous, self.has_begun = row["seq"] - 1, row["prev"], True
        if row["seq"] <= self.last and not self.count:
            self._stray = row["seq"]  # told at the end: if it was moved there, its place is the first broken link
            return None
        if fault := _fault_of_row(row, self.last, self._previous):
            return fault
        if self.known is not None and row["seq"] == self.known.seq and row["hash"] != self.known.hash:
            return f"record {row['seq']} is not the one that was known: the log was rewritten"
        self.last, self._previous = row["seq"], row["hash"]
        self.first = self.first or row["hash"]
        self.count += 1
        return None

    def back(self, row: Mapping[str, Any]) -> None:
        """Take the last step back."""
        self.last, self._previous = row["seq"] - 1, row["prev"]
        self.count -= 1

    def has_moved(self) -> bool:
        """Tell whether there was a step since this was last asked."""
        moved, self._marked = self.last != self._marked, self.last
        return moved

    def fault_of_end(self, head: Mapping[str, Any]) -> str | None:
        """Say what is wrong with where the walk ended."""
        last = self.last
        if last < head["seq"]:
            missing = f"record {last + 1} is" if head["seq"] == last + 1 else f"records {last + 1} to {head['seq']} are"
            return f"{missing} missing at the end: the sealed head says that there are {head['seq']}"
        if self._previous != head["hash"]:
            return "the last record is not the one that the sealed head names"
        if self.known is not None and self.known.seq > last:
            return f"the log ends at {last}, but record {self.known.seq} is known: it was rolled back"
        if self._stray is not None:
            return f"record {self._stray} stands before the beginning of the log"
        return None


_HEAD_TEXTS = ("first_prev", "hash", "key_id", "signature")


def _are(kind: type, *values: Any) -> bool:
    return all(type(value) is kind for value in values)


def record_hash(seq: int, previous: str, body: str) -> str:
    """Return the hash of a record, which covers the one before it."""
    return hashlib.sha256(f"{seq}\n{previous}\n{body}".encode()).hexdigest()


def _head_text(head: Mapping[str, Any]) -> str:
    return "\n".join(str(head[key]) for key in ("first_seq", "first_prev", "seq", "hash"))


def _fault_of_row(row: Mapping[str, Any], last: int, previous: str) -> str | None:
    if row["seq"] != last + 1:
        missing = f"record {last + 1} is" if row["seq"] == last + 2 else f"records {last + 1} to {row['seq'] - 1} are"
        return f"{missing} missing"
    if row["prev"] != previous:
        return f"record {row['seq']} does not follow the one before it"
    if row["hash"] != record_hash(row["seq"], row["prev"], row["body"]):
        return f"record {row['seq']} was changed: its hash does not fit its text"
    if (closed := _closed_by(row["body"])) is not None and row["closes"] != closed:
        return f"record {row['seq']} was changed: the proposal that it closes is not the one of its text"
    return None


def _record(row: Mapping[str, Any]) -> AuditRecord:
    data = json.loads(row["body"])
    at = datetime.fromtimestamp(data.pop("at"), UTC)
    return AuditRecord(row["seq"], at, data.pop("event"), data, row["prev"], row["hash"])
