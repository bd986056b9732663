"""Pins: a definition that a person accepted, explicitly or by letting it in first. One that changed has to wait."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from agentos.access.audit import Audit
from agentos.access.grants import name_of
from agentos.base.canonical import canonical, digest
from agentos.errors import AgentOSError, StoreError
from agentos.extensions.manager import ExtensionManager
from agentos.model.field_checks import did_you_mean
from agentos.model.kind import kind_of
from agentos.model.principal import Principal
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.slot import Slot
from agentos.store import Store
from agentos.store.rows import fetch_all, fetch_one
from agentos.tools.definition import body_of, changed_parts
from agentos.tools.tool import Tool

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from agentos.access.lock import Lock

BUILTIN = "builtin"
"""The owner of what the host's own code registers: nobody has to be asked about that."""
FOREIGN = "foreign"
"""The key of a descriptor's metadata that is true where its definition comes from elsewhere while the host runs, as
from a server that nobody vouches for: it is pinned whatever the mode."""


class PinError(AgentOSError, LookupError):
    """There is nothing of that id to accept."""


@attrs.frozen(kw_only=True)
class Pin:
    """A definition that waits for a person, or was accepted, and why."""

    tool: str
    state: Literal["new", "changed", "renamed", "accepted"]
    reason: str
    """What is to be said of it: `message`, and who has to accept it."""
    message: str = ""
    changes: tuple[str, ...] = ()
    definition: str
    accepted: str | None = None
    """The hash of the definition that was accepted before, if one was."""
    renamed_from: str | None = None
    data: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    before: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @property
    def fully_qualified_id(self) -> str:
        """Return the id that `accept` takes."""
        return self.tool


class _Sight:
    """What is known of one tool. What a fixed payload says is worked out when it is first needed."""

    __slots__ = ("_data", "_hash", "is_forged", "is_written", "kind", "payload", "pending", "renamed_from")

    def __init__(
        self, kind: str, payload: Any = None, data: Mapping[str, Any] | None = None, hash: str | None = None
    ) -> None:
        self.kind = kind
        self.payload = payload
        self._data = data
        self._hash = hash
        self.pending: Pin | None = None
        self.renamed_from: str | None = None
        self.is_written = hash is not None
        self.is_forged = False
        """What is stored of it was changed outside of agentos: nobody knows what was accepted."""

    @property
    def data(self) -> Mapping[str, Any] | None:
        """Return the accepted definition; None if none was accepted."""
        if self._data is None and self.payload is not None:
            self._data = kind_of(self.kind).definition(self.payload)
        return self._data

    @property
    def hash(self) -> str | None:
        """Return the hash of the accepted definition."""
        if self._hash is None and self.data is not None:
            self._hash = digest(self.data)
        return self._hash

    def is_untouched_by(self, payload: Any) -> bool:
        """Tell whether there is nothing to compare: the same object, of which no hash was ever taken."""
        return self.payload is payload and self._hash is None and self.pending is None


class Pins:
    """Notices definitions that are new or changed, and holds back those that a person has to accept."""

    def __init__(
        self,
        store: Store,
        audit: Audit,
        *,
        mode: str,
        lock: "Lock | None",
        masker: Masker,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._audit = audit
        self._mode = mode
        packs = () if lock is None or mode != "strict" else lock.packs
        self._locked = {f"{one.name}:{id}": agreed for one in packs for id, agreed in one.tools.items()}
        self._masker = masker
        self._logger = MaskingLogger("agentos.pins", masker)
        self._clock = clock
        self._known: dict[str, _Sight] = {}
        self._held: dict[str, _Sight] = {}
        self._of_owner: dict[str, list[str]] = {}
        self._fresh: list[str] = []
        self._seen: tuple[Any, ...] = ()
        """How many pins there were when they were last read, and the sum of their times: another if any changed."""
        self._superseded: dict[str, str] = {}
        """The kinds of what another host accepted otherwise than was known here, by their ids."""
        self._manager: ExtensionManager | None = None

    def attach(self, manager: ExtensionManager) -> None:
        """Say whose stacks these are."""
        self._manager = manager

    # -- for people --------------------------------------------------------------------------------------------

    async def pending(self) -> list[Pin]:
        """Return the definitions that wait to be accepted."""
        held = [sight.pending for id, sight in self._held.items() if self._is_offered(sight.kind, id)]
        return [self._looked_at(pin) for pin in held if pin is not None]

    def _looked_at(self, pin: Pin) -> Pin:
        """Say of a new definition whether it looks like one that was accepted under another name."""
        former = self._former_name(pin.tool, pin.data) if pin.state == "new" else None
        if former is None:
            return pin
        message = f"held back: the definition of {pin.tool} looks like {former} under a new name"
        reason = f"{message}; {_way_out(pin.tool)}"
        return attrs.evolve(pin, state="renamed", renamed_from=former, message=message, reason=reason)

    async def accept(self, fully_qualified_id: str, by: Principal | str | None = None) -> None:
        """Accept the definition that a tool has now; it takes its place on its stack at once."""
        if fully_qualified_id in self._locked:
            raise PinError(
                f"the lock file decides about {fully_qualified_id!r}; write it again to accept what is there"
            )
        waiting = {pin.tool: pin for pin in await self.pending()}
        pin = waiting.get(fully_qualified_id)
        if pin is None:
            hint = did_you_mean(str(fully_qualified_id), waiting)
            raise PinError(f"nothing of {fully_qualified_id!r} waits to be accepted{hint}")
        kind = self._known[fully_qualified_id].kind
        taken = _Sight(kind, data=pin.data, hash=pin.definition)
        taken.renamed_from = pin.renamed_from
        await self._write(fully_qualified_id, taken, by=name_of(by))
        self._know(fully_qualified_id, taken)
        self._held.pop(fully_qualified_id, None)
        if self._manager is not None:
            await self._manager.reconsider(kind, fully_qualified_id.partition(":")[2])

    async def accepted(self) -> list[Pin]:
        """Return the definitions that are accepted, by a person or at first sight."""
        return [
            Pin(
                tool=id,
                state="accepted",
                reason="accepted" if sight.renamed_from is None else f"accepted; was {sight.renamed_from}",
                definition=sight.hash or "",
                accepted=sight.hash,
                renamed_from=sight.renamed_from,
                data=self._masker.mask_data(sight.data),
            )
            for id, sight in self._known.items()
            if sight.data is not None
        ]

    def accepted_of(self, owner: str) -> dict[str, Mapping[str, Any]]:
        """Return the definitions of an owner's tools that are accepted, by id; none whose pin nobody vouches for."""
        known = {id: self._known[id] for id in self._of_owner.get(owner, ())}
        return {
            id.partition(":")[2]: one.data for id, one in known.items() if one.kind == "tool" and one.data is not None
        }

    # -- for the stacks ----------------------------------------------------------------------------------------

    def held_back(self, slot: Slot) -> str | None:
        """Say why a slot has to wait for a person; None if its definition is accepted, or is nobody's business."""
        descriptor, owner = slot.descriptor, slot.source.pack
        is_off = self._mode == "off" and descriptor.metadata.get(FOREIGN) is not True
        if is_off or owner == BUILTIN or not kind_of(descriptor.kind).has_definitions:
            return None
        id, payload = f"{owner}:{descriptor.id}", descriptor.payload
        sight = self._known.get(id)
        if sight is None:
            sight = self._know(id, _Sight(descriptor.kind))
            if self._mode != "strict":
                self._let_in(id, sight, payload)
                return None
        elif sight.is_untouched_by(payload):
            return None
        return self._judge(id, sight, payload)

    def _let_in(self, id: str, sight: _Sight, payload: Any) -> None:
        """Accept what is seen for the first time. What may change in place is read now, the rest when it matters."""
        if isinstance(payload, Tool):
            sight.payload = payload
        else:
            self._know(id, _Sight(sight.kind, data=kind_of(sight.kind).definition(payload)))
        self._fresh.append(id)

    def _judge(self, id: str, sight: _Sight, payload: Any) -> str | None:
        data = kind_of(sight.kind).definition(payload)
        if data is None:
            return None
        found, agreed = digest(data), self._locked.get(id)
        if found == (agreed or sight.hash):
            self._let_back_in(id, sight, payload, data)
            return None
        if agreed is not None:
            return self._hold(id, sight, data, "changed", "is not the one of the lock file")
        if sight.is_forged:
            return self._hold(
                id,
                sight,
                data,
                "changed",
                "is not known to be the one that was accepted: its pin was changed outside of agentos",
            )
        if sight.data is None:
            return self._hold(id, sight, data, "new", "is new, and new definitions are not let in")
        changes = changed_parts(sight.data, data)
        return self._hold(id, sight, data, "changed", f"changed since it was accepted ({', '.join(changes)})")

    def _let_back_in(self, id: str, sight: _Sight, payload: Any, data: Mapping[str, Any]) -> None:
        accepted = sight if sight.hash == digest(data) else self._know(id, _Sight(sight.kind, data=data))
        accepted.payload = payload if isinstance(payload, Tool) else None
        accepted.pending = None
        self._held.pop(id, None)
        if not accepted.is_written:
            self._fresh.append(id)

    def _know(self, id: str, sight: _Sight) -> _Sight:
        if id not in self._known:
            self._of_owner.setdefault(id.partition(":")[0], []).append(id)
        self._known[id] = sight
        return sight

    def _hold(self, id: str, sight: _Sight, data: Mapping[str, Any], state: Any, why: str) -> str:
        way_out = "write the lock file again to accept it" if id in self._locked else _way_out(id)
        message = f"held back: the definition of {id} {why}"
        reason = f"{message}; {way_out}"
        sight.pending = Pin(
            tool=id,
            state=state,
            reason=reason,
            message=message,
            changes=tuple(changed_parts(sight.data, data)) if sight.data else (),
            definition=digest(data),
            accepted=sight.hash,
            data=self._masker.mask_data(data),
            before=self._masker.mask_data(sight.data or {}),
        )
        if id not in self._held:
            self._logger.warning("%s", reason, extra={"held_back": id})
        self._held[id] = sight
        return reason

    def _is_offered(self, kind: str, id: str) -> bool:
        owner, _, name = id.partition(":")
        stack = [] if self._manager is None else self._manager.registry(kind).stack(name)
        return any(entry.source.pack == owner for entry in stack)

    def _former_name(self, id: str, data: Mapping[str, Any]) -> str | None:
        """Return the tool of the same owner that is gone and had the same definition but for its name."""
        body = body_of(data)
        for other in self._of_owner[id.partition(":")[0]]:
            sight = self._known[other]
            if other == id or sight.data is None or self._is_offered(sight.kind, other):
                continue
            if body_of(sight.data) == body:
                return other
        return None

    # -- what lasts --------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read what was accepted in earlier runs, and by other hosts meanwhile."""
        from sqlalchemy import func, select

        from agentos.store import schema

        pins = schema.pins
        state = select(func.count(), func.sum(pins.c.accepted_at)).select_from(pins)

        def read(connection: "Connection") -> tuple[tuple[Any, ...], list[dict[str, Any]]]:
            seen = tuple(connection.execute(state).one())
            return seen, [] if seen == self._seen else fetch_all(connection, pins.select())

        self._seen, rows = await self._store.read(read)
        for row in rows:
            self._take_in(row)

    def _take_in(self, row: Mapping[str, Any]) -> None:
        """Know what a stored pin says, unless more is known here: a first sight that is yet to be written."""
        id, data = row["tool"], self._genuine(row)
        known = self._known.get(id)
        if known is not None:
            is_fresh = known.hash is not None and not known.is_written
            if data is None or is_fresh or known.hash == row["definition"]:
                return
            self._held.pop(id, None)
            self._superseded[id] = row["kind"]
        sight = _Sight(str(row["kind"]), data=data, hash=None if data is None else row["definition"])
        sight.is_forged = data is None
        self._know(id, sight)

    async def refresh(self) -> None:
        """Read what other hosts accepted meanwhile, and decide again on what that is about."""
        if self._store.is_durable:
            await self.load()
            await self._reconsider()

    async def _reconsider(self) -> None:
        superseded, self._superseded = self._superseded, {}
        for id, kind in superseded.items():
            if self._manager is not None:
                await self._manager.reconsider(kind, id.partition(":")[2])

    def _genuine(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return a stored definition if agentos wrote it."""
        if not isinstance(row["seal"], str) or not self._store.is_sealed(_sealed_text(row), row["seal"]):
            return None
        data: Mapping[str, Any] = json.loads(row["data"])
        return data

    async def settled(self) -> None:
        """Write down what was accepted at first sight. What can't be written now is written with the next change."""
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, []
        try:
            for id in self._worth_writing(fresh):
                sight = self._known[id]
                if sight.data is not None and not sight.is_written:
                    sight.renamed_from = self._renamed(id, sight.data)
                    await self._write(id, sight, by=None, is_first_sight=id not in self._locked)
        except StoreError as error:
            self._fresh = [*fresh, *self._fresh]
            self._logger.warning("accepted definitions could not be written down: %s", error)
        await self._reconsider()

    def _worth_writing(self, fresh: list[str]) -> list[str]:
        """Return what must be looked at closely. Without a store that is only what may be a renamed tool."""
        if self._store.is_durable:
            return fresh
        count: dict[str, int] = {}
        for id in fresh:
            owner = id.partition(":")[0]
            count[owner] = count.get(owner, 0) + 1
        return [id for id in fresh if len(self._of_owner[owner := id.partition(":")[0]]) > count[owner]]

    def _renamed(self, id: str, data: Mapping[str, Any]) -> str | None:
        former = self._former_name(id, data)
        if former is not None:
            self._logger.warning("%s has the definition that %s was accepted with: it looks renamed", id, former)
        return former

    async def _write(self, id: str, sight: _Sight, *, by: str | None, is_first_sight: bool = False) -> None:
        from agentos.store import schema

        facts = {"tool": id, "definition": sight.hash, "by": by, "renamed_from": sight.renamed_from}
        if not self._store.is_durable:
            self._audit.note("pin", **facts)
            sight.is_written = True
            return
        row = {
            "tool": id,
            "kind": sight.kind,
            "definition": sight.hash,
            "data": canonical(self._masker.mask_data(sight.data)),
            "accepted_at": self._clock(),
            "accepted_by": by,
            "renamed_from": sight.renamed_from,
        }
        await self._store.open()
        row["seal"], link = self._store.seal(_sealed_text(row)), self._audit.link("pin", **facts)

        def replace(connection: "Connection") -> dict[str, Any] | None:
            if is_first_sight:
                found = fetch_one(connection, schema.pins.select().where(schema.pins.c.tool == id))
                if found is not None and self._genuine(found) and found["definition"] != row["definition"]:
                    return found
            connection.execute(schema.pins.delete().where(schema.pins.c.tool == id))
            connection.execute(schema.pins.insert(), row)
            self._audit.extend(connection, link)
            return None

        other = await self._audit.write(replace)
        if other is None:
            sight.is_written = True
            return
        self._know(id, _Sight(sight.kind))  # another host saw it first, and otherwise
        self._take_in(other)


def _sealed_text(row: Mapping[str, Any]) -> str:
    return "pin\n" + canonical([row[key] for key in ("tool", "kind", "definition", "data")])


def _way_out(id: str) -> str:
    return f"a person has to accept it with pins.accept({id!r})"
