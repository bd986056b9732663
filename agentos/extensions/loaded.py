"""Which packs are loaded: by key, by name and by factory, so that no look-up is a search."""

from collections.abc import Iterator
from datetime import UTC, datetime

import attrs

from agentos.errors import PackLoadError, UnknownPackError
from agentos.loading.finder import FoundPack
from agentos.model.extension_pack import ExtensionPack
from agentos.model.manifest import PackEntry
from agentos.model.report import PackOutcome, PackRecord
from agentos.stacks.slot import Owner, Slot


@attrs.define(eq=False)
class LoadedPack(Owner):
    """A pack that is loaded, or ready to be."""

    key: str = attrs.field(kw_only=True)
    pack: ExtensionPack = attrs.field(kw_only=True)
    entry: PackEntry | None = attrs.field(kw_only=True)
    found: FoundPack = attrs.field(kw_only=True)
    loaded_at: datetime = attrs.field(kw_only=True, factory=lambda: datetime.now(UTC))

    def make_slots(self, sequence: int) -> None:
        """Make a slot for every descriptor; *sequence* is the pack's place in every tie."""
        self.sequence = sequence
        base = self.entry.priority if self.entry is not None else None
        self.slots = {Slot(descriptor, self, sequence, base): None for descriptor in self.pack.descriptors}

    def record(self) -> PackRecord:
        """Return what others may know of it."""
        return PackRecord(
            key=self.key,
            name=self.pack.name,
            version=self.pack.version,
            source=self.source,
            enabled=self.disabled is None,
            loaded_at=self.loaded_at,
            descriptors=[slot.key for slot in self.slots],
        )


def is_permitted(owner: Owner, permission: str) -> bool:
    """Tell whether *owner* has a permission: the host has all of them, a pack those of its manifest entry."""
    return not isinstance(owner, LoadedPack) or (owner.entry is not None and permission in owner.entry.permissions)


class LoadedPacks:
    """The loaded packs, in the order of their loading."""

    def __init__(self) -> None:
        self._by_key: dict[str, LoadedPack] = {}
        self._by_name: dict[str, LoadedPack] = {}
        self._by_factory: dict[int, list[LoadedPack]] = {}
        self._absent: dict[str, PackOutcome] = {}

    def __iter__(self) -> Iterator[LoadedPack]:
        return iter(list(self._by_key.values()))

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def get(self, key: str) -> LoadedPack | None:
        """Return the pack of that key."""
        return self._by_key.get(key)

    def named(self, name: str) -> LoadedPack | None:
        """Return the pack of that name."""
        return self._by_name.get(name)

    def find(self, key: str) -> LoadedPack:
        """Return the pack of that key, or of that name."""
        found = self._by_key.get(key) or self._by_name.get(key)
        if found is None:
            raise UnknownPackError(key, list(self._by_key))
        return found

    def has(self, entry: PackEntry) -> bool:
        """Tell whether what *entry* names is loaded: by its key, or by an equal entry if its key is not known yet."""
        if entry.key is not None:
            return entry.key in self._by_key
        return any(loaded.entry == entry for loaded in self._by_factory.get(id(entry.factory), ()))

    def add(self, loaded: LoadedPack, old: LoadedPack | None = None) -> None:
        """Note that a pack is loaded, in the place of *old* if given."""
        self._by_key[loaded.key] = loaded
        for name in (loaded.key, loaded.entry.label if loaded.entry is not None else loaded.key):
            self._absent.pop(name, None)
        if old is not None:
            self.remove(old)
        self._by_name[loaded.pack.name] = loaded
        if loaded.entry is not None and loaded.entry.factory is not None:
            self._by_factory.setdefault(id(loaded.entry.factory), []).append(loaded)

    def remove(self, loaded: LoadedPack) -> None:
        """Note that a pack is not loaded any more."""
        if self._by_key.get(loaded.key) is loaded:
            del self._by_key[loaded.key]
        if self._by_name.get(loaded.pack.name) is loaded:
            del self._by_name[loaded.pack.name]
        if loaded.entry is not None:
            alike = self._by_factory.get(id(loaded.entry.factory), [])
            if loaded in alike:
                alike.remove(loaded)
            if not alike:
                self._by_factory.pop(id(loaded.entry.factory), None)

    def note_absent(self, outcome: PackOutcome) -> None:
        """Note that a pack could not be loaded, or was passed over; one that is loaded all the same is not absent."""
        if outcome.key not in self._by_key:
            # Not its error, whose traceback would keep all that was made on the way.
            self._absent[outcome.key] = attrs.evolve(outcome, error=None)

    def absent(self) -> list[PackOutcome]:
        """Return what became of the packs that were named and are not loaded."""
        return list(self._absent.values())

    def name_taken(self, key: str, name: str, origin: str) -> PackLoadError:
        """Return the error of a pack whose name, or key, another one has."""
        other = self._by_name.get(name) or self._by_key[name]
        return PackLoadError(
            key,
            f"the name {name!r} is taken: one pack of that name comes from {origin}, "
            f"the loaded one from {other.source.origin} (key {other.key!r}); unload that one first",
            origin=origin,
        )
