"""What is wrong with what is loaded: overrides that are about nothing, and what packs find wrong with themselves."""

from collections.abc import Iterator

import attrs

from agentos.base.foreign import Border
from agentos.base.spelling import did_you_mean, nearest
from agentos.extensions.loaded import LoadedPack, LoadedPacks, is_permitted
from agentos.extensions.registries import Registries
from agentos.model.kind import kind_of
from agentos.model.overrides import GROUPS, OverrideLayers
from agentos.model.trouble import SelfCheck, Trouble
from agentos.secrets.masking import Masker
from agentos.stacks.entry import Entry, Explanation

CURE = "correct it, or take it out"
"""What to do about a name that matches nothing."""


@attrs.frozen
class LoadedTroubles:
    """Looks at what is loaded, and says what is wrong with it."""

    _registries: Registries
    _packs: LoadedPacks
    _masker: Masker

    # -- overrides ---------------------------------------------------------------------------------------------

    def of_overrides(self, layers: OverrideLayers) -> list[Trouble]:
        """Return a trouble for every override that is about nothing."""
        said = [
            (kind, key)
            for layer in (layers.runtime, layers.host, layers.manifest)
            for kind, group in layer.by_kind.items()
            for key in group
        ]
        return [trouble for one in dict.fromkeys(said) if (trouble := self.of_override(*one)) is not None]

    def of_override(self, kind: str, key: str) -> Trouble | None:
        """Say that an override, by `id` or `pack:id`, is about nothing; None if it is about something."""
        if self._is_named(kind, key):
            return None
        kinds = self._registries.kinds()
        if kind in kinds or kind in GROUPS.values():
            meant = did_you_mean(key, self._names(kind))
        else:
            meant = did_you_mean(kind, [*kinds, *GROUPS])
        message = f"the override {key!r} of {kind} is about nothing that is there{meant}"
        return Trouble("warning", "overrides", message + self.perhaps_elsewhere(), CURE)

    def perhaps_elsewhere(self) -> str:
        """Name the packs that may offer what is missing, not loaded or not whole; nothing if there are none."""
        broken = [one.key for one in self._packs if any(trouble.level == "error" for trouble in self._of_pack(one))]
        lacking = [*(one.key for one in self._packs.absent()), *broken]
        return f"; what is not loaded, or not whole, may offer it: {', '.join(lacking)}" if lacking else ""

    def _is_named(self, kind: str, key: str) -> bool:
        pack, _, id = key.partition(":")
        return bool(self._registries.slots((kind, key))) or any(
            slot.source.pack == pack for slot in self._registries.slots((kind, id))
        )

    def _names(self, kind: str) -> list[str]:
        registry = self._registries.registry(kind)
        entries = [entry for id in registry.ids() for entry in registry.stack(id)]
        return list(dict.fromkeys([one for entry in entries for one in (entry.id, f"{entry.pack}:{entry.id}")]))

    # -- packs -------------------------------------------------------------------------------------------------

    def of_packs(self) -> list[Trouble]:
        """Return what loaded packs, and what they have in force, find wrong with themselves."""
        return [trouble for loaded in self._packs for trouble in self._of_pack(loaded)]

    def _of_pack(self, loaded: LoadedPack) -> Iterator[Trouble]:
        if loaded.disabled is not None:
            return
        if loaded.pack.check is not None:
            yield from self._asked(f"pack {loaded.key}", loaded.pack.check)
        for slot in list(loaded.slots):
            if slot.descriptor.check is not None or kind_of(slot.descriptor.kind).asks_permission:
                yield from self._of_entry(self._registries.view(slot))

    def _of_entry(self, entry: Entry) -> list[Trouble]:
        if not entry.state.in_force:
            return []
        about, check = f"{entry.kind}:{entry.id}", entry.descriptor.check
        return [*_unpermitted(about, entry), *([] if check is None else self._asked(about, check))]

    def _asked(self, about: str, check: SelfCheck) -> list[Trouble]:
        """Ask what is wrong. A check that raises, or that returns something else, is a trouble itself."""
        with Border() as border:  # a check is foreign code: it fails into a trouble
            return [self._masked(one) for one in check()]
        fault = f"its check raised {self._masker.describe(border.raised)}"
        return [Trouble("error", about, fault, "mend the check, then look again")]

    def _masked(self, trouble: Trouble) -> Trouble:
        if not isinstance(trouble, Trouble):
            raise TypeError(f"expected a Trouble, got {type(trouble).__name__}")
        mask = self._masker.mask
        return attrs.evolve(trouble, about=mask(trouble.about), message=mask(trouble.message), cure=mask(trouble.cure))

    # -- explaining --------------------------------------------------------------------------------------------

    def explanation(self, kind: str, id: str) -> Explanation:
        """Say of every entry on a stack what it is and why; of what nobody offers, what is near and what is lacking.

        *id* may name one pack's entry, as `pack:id`.
        """
        registry = self._registries.registry(kind)
        pack, _, rest = id.partition(":")
        if not registry.stack(id) and any(entry.pack == pack for entry in registry.stack(rest)):
            id = rest
        if entries := registry.stack(id):
            troubles = [trouble for entry in entries for trouble in self._of_entry(entry)]
            return Explanation(kind, id, registry.get_active(id), entries, troubles=troubles)
        lacking = [one for one in self.of_packs() if one.level == "error"]
        near = nearest(id, self._names(kind)) or self._near_elsewhere(kind, id)
        return Explanation(kind, id, None, [], near, self._packs.absent(), lacking)

    def _near_elsewhere(self, kind: str, id: str) -> str | None:
        """Return the name with its kind that was probably meant, where the kind is unknown."""
        kinds = self._registries.kinds()
        if kind in kinds:
            return None
        return nearest(
            f"{kind}:{id}", [f"{one}:{name}" for one in kinds for name in self._registries.registry(one).ids()]
        )


def _unpermitted(about: str, entry: Entry) -> Iterator[Trouble]:
    """Say that an entry asks for a permission that its pack lacks."""
    wanted = kind_of(entry.kind).permission(entry.descriptor)
    if wanted is not None and not is_permitted(entry._slot.owner, wanted):  # noqa: SLF001 - the slot is our own
        message = f"it asks for the permission {wanted!r}, which {entry.pack} lacks; it goes on without it"
        cure = f"add {wanted!r} to `permissions` of the manifest entry of {entry.pack}, if you want that"
        yield Trouble("warning", about, message, cure)
