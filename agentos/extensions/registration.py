"""Single descriptors: pushed by hand, or registered by running code as one owner."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import attrs

from agentos.base.locks import Change, ChangeLocks
from agentos.errors import DescriptorError, NotPermittedError, PackLoadError
from agentos.extensions.activation import StackActivator
from agentos.extensions.builder import PackBuilder
from agentos.extensions.loaded import LoadedPack
from agentos.extensions.persistence import Persistence
from agentos.extensions.registries import Registries
from agentos.model.descriptor import Descriptor
from agentos.model.field_checks import fault_of_owner
from agentos.model.kind import as_descriptors, kind_of
from agentos.model.pack_context import Port
from agentos.model.source import Source
from agentos.stacks.entry import Entry
from agentos.stacks.slot import Key, Owner, Slot


@attrs.frozen(kw_only=True)
class Registration:
    """Puts single descriptors on their stacks and takes them off, by the same rules as whole packs."""

    _locks: ChangeLocks
    _activator: StackActivator
    _registries: Registries
    _builder: PackBuilder
    _persistence: Persistence
    _tell: Callable[[Change], Awaitable[None]]
    _sequences: Iterator[int]
    _require_open: Callable[[], None]
    _host_owners: dict[str, Owner] = attrs.field(factory=dict)

    async def register(self, offered: object, source: Source | None) -> Entry:
        """Push a descriptor by hand; raise HookError and leave nothing if its activation fails."""
        (descriptor,) = as_descriptors(offered)
        kind_of(descriptor.kind).check(descriptor)
        await self._persistence.ready()
        owner = self._builder.host_owner(source)
        try:
            with self._locks.change() as change:
                await self._builder.declare(owner, [descriptor])
                (slot,) = await self._exchange(change, owner, descriptor.kind, [descriptor], {descriptor.id})
        finally:
            await self._tell(change)
        return self._registries.view(slot)

    async def remove(self, slots: Collection[Slot]) -> int:
        """Take slots off their stacks; return how many were still there."""
        return await self._remove([slot.key for slot in slots], lambda: slots)

    async def unregister(self, key: Key) -> bool:
        """Take the slot off that is active on a stack; False if there is none."""
        return await self._remove([key], lambda: [slot] if (slot := self._activator.active(key)) else []) > 0

    async def _remove(self, keys: Iterable[Key], choose: Callable[[], Iterable[Slot]]) -> int:
        """Take off what *choose* says when it is this change's turn."""
        gone: list[Slot] = []

        def alter() -> None:
            gone.extend(slot for slot in choose() if slot.is_stacked)
            self._take_off(gone)

        with self._locks.change() as change:
            await self._activator.carry_out(change, keys, alter)
            for owner in {slot.owner for slot in gone}:
                if not owner.slots and not isinstance(owner, LoadedPack) and owner not in self._host_owners.values():
                    await self._builder.dismiss(owner.scope)
        await self._tell(change)
        return len(gone)

    def host_owner(self, name: str) -> Owner:
        """Return the owner of that name that is no pack."""
        if name not in self._host_owners:
            if fault := fault_of_owner(name):
                raise DescriptorError(f"owner: {fault}")
            self._host_owners[name] = self._builder.host_owner(Source(name, origin="host"))
        return self._host_owners[name]

    def all_entries(self, kind: str) -> list[Entry]:
        """Return everything that stands on the stacks of *kind*."""
        registry = self._registries.registry(kind)
        return [entry for id in registry.ids() for entry in registry.stack(id)]

    def port(self, owner: Owner) -> Port:
        """Return what *owner* registers descriptors with."""
        return _OwnersPort(self, owner)

    async def exchange(
        self, owner: Owner, kind: str, add: Sequence[Descriptor[Any]], drop: Iterable[str] = ()
    ) -> list[Entry]:
        """Put *add* on their stacks for *owner* and take *drop* off, all at once or not at all."""
        self._require_open()
        if owner.closed:
            raise PackLoadError(owner.source.pack, "is not loaded any more and can't register anything")
        ids = [descriptor.id for descriptor in add]
        if len(set(ids)) < len(ids):
            raise DescriptorError(f"{owner.source.pack!r} gave the same id twice: {', '.join(sorted(ids))}")
        for descriptor in add:
            kind_of(descriptor.kind).check(descriptor)
        await self._persistence.ready()
        try:
            with self._locks.change() as change:
                await self._builder.declare(owner, add)
                new = await self._exchange(change, owner, kind, add, {*drop, *ids})
        finally:
            await self._tell(change)
        return [self._registries.view(slot) for slot in new]

    async def refresh(self, owner: Owner, kind: str, ids: Collection[str] | None) -> None:
        """Ask the gates of what *owner* has on stacks of *kind* again; None means all of it."""
        self._require_open()
        with self._locks.change() as change:
            mine = [slot for slot in owner.slots if slot.key[0] == kind and (ids is None or slot.key[1] in ids)]
            await self._activator.reconsider(change, mine)
        await self._tell(change)

    def entries(self, owner: Owner, kind: str) -> list[Entry]:
        """Return what *owner* has on the stacks of *kind*."""
        return [self._registries.view(slot) for slot in owner.slots if slot.key[0] == kind]

    async def _exchange(
        self, change: Change, owner: Owner, kind: str, add: Sequence[Descriptor[Any]], ids: set[str]
    ) -> list[Slot]:
        new: list[Slot] = []
        old: list[Slot] = []

        def alter() -> Collection[Slot]:
            standing = {slot.key: slot for slot in owner.slots}
            old.extend(slot for key, slot in standing.items() if key[0] == kind and key[1] in ids)
            new.extend(self._slot(descriptor, owner, standing.get(descriptor.key)) for descriptor in add)
            self._replace(old, new)
            return set(new)

        keys = [(kind, id) for id in sorted(ids)]
        await self._activator.attempt(change, keys, alter, lambda: self._replace(new, old))
        return new

    def _slot(self, descriptor: Descriptor[Any], owner: Owner, place: Slot | None) -> Slot:
        """Return a slot for *descriptor*: with the rank of the one it replaces, else the newest."""
        if place is not None:
            return Slot(descriptor, owner, place.sequence, place.base_priority)
        return Slot(descriptor, owner, next(self._sequences))

    def _replace(self, old: Iterable[Slot], new: Iterable[Slot]) -> None:
        self._take_off(old)
        for slot in new:
            self._registries.push(slot)
            slot.owner.slots[slot] = None

    def _take_off(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self._registries.pull(slot)
            slot.owner.slots.pop(slot, None)


@attrs.frozen
class _OwnersPort:
    """What one owner registers descriptors with."""

    _registration: Registration
    _owner: Owner

    @property
    def source(self) -> Source:
        return self._owner.source

    def entries(self, kind: str) -> list[Entry]:
        return self._registration.entries(self._owner, kind)

    def all_entries(self, kind: str) -> list[Entry]:
        return self._registration.all_entries(kind)

    async def exchange(self, kind: str, add: Sequence[Descriptor[Any]], drop: Iterable[str] = ()) -> list[Entry]:
        return await self._registration.exchange(self._owner, kind, add, drop)

    async def refresh(self, kind: str, ids: Collection[str] | None = None) -> None:
        await self._registration.refresh(self._owner, kind, ids)

    def require(self, permission: str) -> None:
        if isinstance(self._owner, LoadedPack):
            entry = self._owner.entry
            if entry is None or permission not in entry.permissions:
                raise NotPermittedError(self._owner.source.pack, permission)
