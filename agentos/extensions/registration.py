"""Single descriptors: pushed by hand, or registered by running code as one owner."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs

from agentos.base.foreign import to_the_end
from agentos.base.locks import Change, current_raised
from agentos.errors import AgentOSError, DescriptorError, NotPermittedError, PackLoadError
from agentos.extensions.activation import Keys, StackActivator, keys_of
from agentos.extensions.builder import PackBuilder
from agentos.extensions.loaded import LoadedPack, is_permitted
from agentos.extensions.persistence import Persistence
from agentos.extensions.registries import Registries
from agentos.model.descriptor import Descriptor
from agentos.model.field_checks import fault_of_owner
from agentos.model.kind import as_descriptors, kind_of
from agentos.model.pack_context import Bus, Port
from agentos.model.source import Source
from agentos.stacks.entry import Entry
from agentos.stacks.slot import Key, Owner, Slot


@attrs.frozen(kw_only=True)
class Registration:
    """Puts single descriptors on their stacks and takes them off, by the same rules as whole packs."""

    _activator: StackActivator
    _registries: Registries
    _builder: PackBuilder
    _persistence: Persistence
    _changing: Callable[[], AbstractAsyncContextManager[Change]]
    _sequences: Iterator[int]
    _require_open: Callable[[], None]
    _guests: dict[str, Owner] = attrs.field(factory=dict)
    """The owners that have a name and are no packs: each until what it brought is gone."""

    def accepted(self, owner: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the definitions of an owner's tools that were accepted in earlier runs, by id."""
        return self._persistence.accepted(owner)

    async def register(self, offered: object, source: Source | None) -> Entry:
        """Push a descriptor by hand; raise HookError and leave nothing if its activation fails."""
        (descriptor,) = as_descriptors(offered)
        kind_of(descriptor.kind).check(descriptor)
        (slot,) = await self._bring(self._builder.host_owner(source), descriptor.kind, [descriptor], {descriptor.id})
        return self._registries.view(slot)

    async def remove(self, choose: Callable[[], Collection[Slot]]) -> int:
        """Take off what *choose* says when it is this change's turn; return how many were there."""
        return await self._remove(lambda: keys_of(choose()), choose)

    async def unregister(self, key: Key) -> bool:
        """Take the slot off that is active on a stack; False if there is none."""
        return await self._remove(lambda: [key], lambda: [slot] if (slot := self._activator.active(key)) else []) > 0

    async def _remove(self, keys: Keys, choose: Callable[[], Iterable[Slot]]) -> int:
        gone: list[Slot] = []

        def alter() -> None:
            gone.extend(slot for slot in choose() if slot.is_stacked)
            self.take_off(gone)

        async with self._changing() as change:
            try:
                await self._activator.carry_out(change, keys, alter)
            finally:
                await self._let_go(dict.fromkeys(slot.owner for slot in gone))
        return len(gone)

    def guest(self, name: str) -> Owner:
        """Return the owner of that name that is no pack."""
        if name not in self._guests:
            self._guests[name] = self._builder.host_owner(Source(name, origin="host"))
        return self._guests[name]

    async def _let_go(self, owners: Iterable[Owner]) -> None:
        """Dismiss those that are no packs and have nothing on a stack, nor bring anything just now."""
        gone = [owner for owner in owners if not (owner.slots or owner.bringing or owner.closed or _is_pack(owner))]
        for owner in gone:
            owner.closed = True
            if self._guests.get(owner.source.pack) is owner:
                del self._guests[owner.source.pack]
        if gone:
            await to_the_end(self._dismiss(gone))

    async def _dismiss(self, owners: Iterable[Owner]) -> None:
        for owner in owners:
            current_raised().extend(await self._builder.dismiss(owner.scope))

    async def end(self, owners: Iterable[Owner]) -> None:
        """Dismiss those that are no packs: what they had is out of force."""
        for owner in owners:
            owner.slots.clear()
        await self._let_go(owners)

    def all_entries(self, kind: str) -> list[Entry]:
        """Return everything that stands on the stacks of *kind*."""
        registry = self._registries.registry(kind)
        return [entry for id in registry.ids() for entry in registry.stack(id)]

    def port(self, owner: Owner) -> Port:
        """Return what *owner* registers descriptors with."""
        return _OwnersPort(self, owner.source, lambda: owner)

    def guest_port(self, name: str) -> Port:
        """Return what the owner of that name that is no pack registers descriptors with."""
        if fault := fault_of_owner(name):
            raise DescriptorError(f"owner: {fault}")
        return _OwnersPort(self, self.guest(name).source, lambda: self.guest(name))

    def bus(self, owner: Owner) -> Bus:
        """Return the bus as *owner* uses it."""
        if self._builder.bus is None:
            raise AgentOSError("context.bus is what an AgentOS has; a manager alone has none")
        return self._builder.bus.handle(owner.scope, owner.source.pack)

    async def exchange(
        self, owner: Owner, kind: str, add: Sequence[Descriptor[Any]], drop: Iterable[str] = ()
    ) -> list[Entry]:
        """Put *add* on their stacks for *owner* and take *drop* off, all at once or not at all."""
        self._require_open()
        if owner.closed and not add:
            return []  # it has nothing any more
        _require_loaded(owner)
        ids = [descriptor.id for descriptor in add]
        if len(set(ids)) < len(ids):
            raise DescriptorError(f"{owner.source.pack!r} gave the same id twice: {', '.join(sorted(ids))}")
        for descriptor in add:
            kind_of(descriptor.kind).check(descriptor)
        return [self._registries.view(slot) for slot in await self._bring(owner, kind, add, {*drop, *ids})]

    async def _bring(self, owner: Owner, kind: str, add: Sequence[Descriptor[Any]], ids: set[str]) -> list[Slot]:
        """Exchange what *owner* has; one that is no pack and has nothing in the end is dismissed."""
        owner.bringing += 1
        async with self._changing() as change:
            try:
                await self._persistence.ready()
                await self._builder.declare(owner, add)
                return await self._exchange(change, owner, kind, add, ids)
            finally:
                owner.bringing -= 1
                await self._let_go([owner])

    async def refresh(self, owner: Owner, kind: str, ids: Collection[str] | None) -> None:
        """Ask the gates of what *owner* has on stacks of *kind* again; None means all of it."""
        self._require_open()
        async with self._changing() as change:
            await self._activator.reconsider(
                change,
                lambda: [slot for slot in owner.slots if slot.key[0] == kind and (ids is None or slot.key[1] in ids)],
            )

    def entries(self, owner: Owner, kind: str) -> list[Entry]:
        """Return what *owner* has on the stacks of *kind*."""
        return [self._registries.view(slot) for slot in owner.slots if slot.key[0] == kind]

    async def _exchange(
        self, change: Change, owner: Owner, kind: str, add: Sequence[Descriptor[Any]], ids: set[str]
    ) -> list[Slot]:
        new: list[Slot] = []
        old: list[Slot] = []
        stacked: list[Slot] = []

        def alter() -> Collection[Slot]:
            if add:
                _require_loaded(owner)
            standing = {slot.key: slot for slot in owner.slots}
            old.extend(slot for key, slot in standing.items() if key[0] == kind and key[1] in ids)
            new.extend(self._slot(descriptor, owner, standing.get(descriptor.key)) for descriptor in add)
            stacked.extend(slot for slot in old if slot.is_stacked)
            self.take_off(old)
            self._put_on(new)
            return set(new)

        def undo() -> None:
            # What was exchanged again meanwhile, or whose owner was closed, is somebody else's doing and stays so.
            lost = {slot.key for slot in new if slot not in owner.slots}
            self.take_off(new)
            lost.update(slot.key for slot in owner.slots)
            back = [] if owner.closed else [slot for slot in old if slot.key not in lost]
            owner.slots.update(dict.fromkeys(back))
            self._put_on(slot for slot in back if slot in stacked)

        await self._activator.attempt(change, lambda: [(kind, id) for id in sorted(ids)], alter, undo)
        return new

    def _slot(self, descriptor: Descriptor[Any], owner: Owner, place: Slot | None) -> Slot:
        """Return a slot for *descriptor*: with the rank of the one it replaces, else the newest."""
        if place is not None:
            return Slot(descriptor, owner, place.sequence, place.base_priority)
        return Slot(descriptor, owner, next(self._sequences))

    def _put_on(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self._registries.push(slot)
            slot.owner.slots[slot] = None

    def take_off(self, slots: Iterable[Slot]) -> None:
        """Take slots off their stacks and from their owners."""
        for slot in slots:
            self._registries.pull(slot)
            slot.owner.slots.pop(slot, None)


def _is_pack(owner: Owner) -> bool:
    return isinstance(owner, LoadedPack)


def _require_loaded(owner: Owner) -> None:
    if owner.closed:
        raise PackLoadError(owner.source.pack, "is not loaded any more and can't register anything")


@attrs.frozen
class _OwnersPort:
    """What one owner registers descriptors with."""

    _registration: Registration
    source: Source
    _find: Callable[[], Owner]

    def entries(self, kind: str) -> list[Entry]:
        return self._registration.entries(self._find(), kind)

    def all_entries(self, kind: str) -> list[Entry]:
        return self._registration.all_entries(kind)

    def accepted(self) -> Mapping[str, Mapping[str, Any]]:
        return self._registration.accepted(self.source.pack)

    async def exchange(self, kind: str, add: Sequence[Descriptor[Any]], drop: Iterable[str] = ()) -> list[Entry]:
        return await self._registration.exchange(self._find(), kind, add, drop)

    async def refresh(self, kind: str, ids: Collection[str] | None = None) -> None:
        await self._registration.refresh(self._find(), kind, ids)

    def require(self, permission: str) -> None:
        owner = self._find()
        if not is_permitted(owner, permission):
            raise NotPermittedError(self.source.pack, permission)

    @property
    def bus(self) -> Bus:
        return self._registration.bus(self._find())
