"""Single descriptors: pushed by hand, or registered by running code as one owner."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import attrs

from agentos.base.claims import Change, Claims
from agentos.errors import DescriptorError, NotPermittedError, PackLoadError
from agentos.extensions.activation import Key, Seat, Settler
from agentos.extensions.builder import LoadedPack, Member, PackMaker
from agentos.extensions.persistence import Keeper
from agentos.extensions.registries import Board
from agentos.model.descriptor import Descriptor
from agentos.model.field_checks import fault_of_owner
from agentos.model.kind import as_descriptors, kind_of
from agentos.model.pack_context import Port
from agentos.model.source import Source
from agentos.stacks.entry import Entry


@attrs.frozen(kw_only=True)
class Registrar:
    """Puts single descriptors on their stacks and takes them off, by the same rules as whole packs."""

    _claims: Claims
    _settler: Settler
    _board: Board
    _maker: PackMaker
    _keeper: Keeper
    _tell: Callable[[Change], Awaitable[None]]
    _sequences: Iterator[int]
    _require_open: Callable[[], None]
    _guests: dict[str, Member] = attrs.field(factory=dict)

    async def register(self, offered: object, source: Source | None) -> Entry:
        """Push a descriptor by hand; raise HookError and leave nothing if its activation fails."""
        (descriptor,) = as_descriptors(offered)
        kind_of(descriptor.kind).check(descriptor)
        await self._keeper.ready()
        member = self._maker.host_member(source)
        try:
            with self._claims.change() as change:
                await self._maker.declare(member, [descriptor])
                (seat,) = await self._exchange(change, member, descriptor.kind, [descriptor], {descriptor.id})
        finally:
            await self._tell(change)
        return seat.place()

    async def remove(self, seats: Collection[Seat]) -> int:
        """Take seats off their stacks; return how many were still there."""
        return await self._remove([seat.key for seat in seats], lambda: seats)

    async def unregister(self, key: Key) -> bool:
        """Take the seat off that is active on a stack; False if there is none."""
        return await self._remove([key], lambda: [seat] if (seat := self._settler.active(key)) else []) > 0

    async def _remove(self, keys: Iterable[Key], choose: Callable[[], Iterable[Seat]]) -> int:
        """Take off what *choose* says when it is this change's turn."""
        gone: list[Seat] = []

        def alter() -> None:
            for seat in choose():
                if seat in self._settler.seats(seat.key):
                    self._board.pull(self._settler, seat)
                    seat.owner.seats.remove(seat)
                    gone.append(seat)

        with self._claims.change() as change:
            await self._settler.carry_out(change, keys, alter)
            for owner in {seat.owner for seat in gone}:
                if not owner.seats and not isinstance(owner, LoadedPack) and owner not in self._guests.values():
                    await self._maker.dismiss(owner.scope)
        await self._tell(change)
        return len(gone)

    def guest(self, owner: str) -> Member:
        """Return the owner of that name that is no pack."""
        if owner not in self._guests:
            if fault := fault_of_owner(owner):
                raise DescriptorError(f"owner: {fault}")
            self._guests[owner] = self._maker.host_member(Source(owner, origin="host"))
        return self._guests[owner]

    def all_entries(self, kind: str) -> list[Entry]:
        """Return everything that stands on the stacks of *kind*."""
        registry = self._board.registry(kind)
        return [entry for id in registry.ids() for entry in registry.stack(id)]

    def port(self, member: Member) -> Port:
        """Return *member*'s door to the stacks."""
        return _Port(self, member)

    async def exchange(
        self, member: Member, kind: str, add: Sequence[Descriptor[Any]], drop: Iterable[str] = ()
    ) -> list[Entry]:
        """Put *add* on their stacks for *member* and take *drop* off, all at once or not at all."""
        self._require_open()
        if member.closed:
            raise PackLoadError(member.source.pack, "is not loaded any more and can't register anything")
        ids = [descriptor.id for descriptor in add]
        if len(set(ids)) < len(ids):
            raise DescriptorError(f"{member.source.pack!r} gave the same id twice: {', '.join(sorted(ids))}")
        for descriptor in add:
            kind_of(descriptor.kind).check(descriptor)
        await self._keeper.ready()
        try:
            with self._claims.change() as change:
                await self._maker.declare(member, add)
                new = await self._exchange(change, member, kind, add, {*drop, *ids})
        finally:
            await self._tell(change)
        return [seat.place() for seat in new]

    async def refresh(self, member: Member, kind: str, ids: Collection[str] | None) -> None:
        """Ask the gates of what *member* has on stacks of *kind* again; None means all of it."""
        self._require_open()
        with self._claims.change() as change:
            mine = [seat for seat in member.seats if seat.key[0] == kind and (ids is None or seat.key[1] in ids)]
            await self._settler.reconsider(change, mine)
        await self._tell(change)

    async def _exchange(
        self, change: Change, member: Member, kind: str, add: Sequence[Descriptor[Any]], ids: set[str]
    ) -> list[Seat]:
        new: list[Seat] = []
        old: list[Seat] = []

        def alter() -> Collection[Seat]:
            standing = {seat.key: seat for seat in member.seats}
            old.extend(seat for seat in member.seats if seat.key[0] == kind and seat.key[1] in ids)
            new.extend(self._seat(descriptor, member, standing.get(descriptor.key)) for descriptor in add)
            self._replace(member, old, new)
            return set(new)

        keys = [(kind, id) for id in sorted(ids)]
        await self._settler.attempt(change, keys, alter, lambda: self._replace(member, new, old))
        return new

    def _seat(self, descriptor: Descriptor[Any], member: Member, place: Seat | None) -> Seat:
        """Return a seat for *descriptor*: in the place of the one it replaces, else the newest."""
        if place is not None:
            return Seat(descriptor, member, place.offer.sequence, place.offer.base_priority)
        return Seat(descriptor, member, next(self._sequences))

    def _replace(self, member: Member, old: Iterable[Seat], new: Iterable[Seat]) -> None:
        for seat in old:
            self._board.pull(self._settler, seat)
            member.seats.remove(seat)
        for seat in new:
            self._board.push(self._settler, seat)
            member.seats.append(seat)


@attrs.frozen
class _Port:
    """One owner's door to the stacks."""

    _registrar: Registrar
    _member: Member

    @property
    def source(self) -> Source:
        return self._member.source

    def entries(self, kind: str) -> list[Entry]:
        return [seat.place() for seat in self._member.seats if seat.key[0] == kind]

    def all_entries(self, kind: str) -> list[Entry]:
        return self._registrar.all_entries(kind)

    async def exchange(self, kind: str, add: Sequence[Descriptor[Any]], drop: Iterable[str] = ()) -> list[Entry]:
        return await self._registrar.exchange(self._member, kind, add, drop)

    async def refresh(self, kind: str, ids: Collection[str] | None = None) -> None:
        await self._registrar.refresh(self._member, kind, ids)

    def require(self, permission: str) -> None:
        if isinstance(self._member, LoadedPack):
            entry = self._member.entry
            if entry is None or permission not in entry.permissions:
                raise NotPermittedError(self._member.source.pack, permission)
