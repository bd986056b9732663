"""ExtensionManager: loads packs, keeps stacks, and is the only one who changes either."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from agentos.base.foreign import Border, to_the_end
from agentos.base.locks import Change, ChangeLocks
from agentos.errors import AgentOSError, HookError, ManagerClosedError
from agentos.extensions.activation import StackActivator, keys_of
from agentos.extensions.builder import BusHub, PackBuilder
from agentos.extensions.deferral import DeferredActivation, deferred_activations, deferred_ends
from agentos.extensions.events import EventBus, Listener, OverrideChanged, SecretChanged
from agentos.extensions.loaded import LoadedPack, LoadedPacks
from agentos.extensions.pack_lifecycle import PackLifecycle
from agentos.extensions.persistence import NoPersistence, Persistence
from agentos.extensions.registration import Registration
from agentos.extensions.registries import Registries, Watcher
from agentos.extensions.services import ServiceHub, Services
from agentos.extensions.troubles import LoadedTroubles
from agentos.loading.finder import FoundPack
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.model.manifest import ExtensionManifest, ManifestSource, PackEntry, as_manifest
from agentos.model.overrides import GROUPS, Override, OverrideLayers, Overrides, as_override, as_overrides
from agentos.model.pack_context import Port
from agentos.model.report import LoadReport, PackOutcome, PackRecord, load_failures
from agentos.model.source import Source
from agentos.model.trouble import Trouble
from agentos.secrets.catalog import SecretCatalog, as_catalog
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.secrets.sources import DeclaredSecret, SecretSources, Vault
from agentos.stacks.decide import Facts, missing_secrets
from agentos.stacks.entry import Entry, Explanation
from agentos.stacks.registry import Registry
from agentos.stacks.slot import Key, Owner, Slot


class ExtensionManager:
    """Loads packs from a manifest and keeps their descriptors on stacks.

    One event loop owns a manager; reads of its registries are safe from any thread.
    """

    def __init__(
        self,
        manifest: ManifestSource | None = None,
        *,
        secrets: Mapping[str, str] | Vault | None = None,
        overrides: Overrides | Mapping[str, Any] | str | Path | None = None,
        catalog: SecretCatalog | Mapping[str, Any] | str | Path | None = None,
        dotenv: str | Path | None = None,
        hook_timeout: float | None = 60.0,
        drain_timeout: float = 30.0,
        persistence: Persistence | None = None,
        masker: Masker | None = None,
        pack_guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._persistence: Persistence = persistence or NoPersistence()
        self.manifest = as_manifest(manifest)
        self.report: LoadReport | None = None
        self.masker = masker or Masker()
        self._logger = MaskingLogger("agentos", self.masker)
        self.secret_sources = SecretSources(secrets, catalog=as_catalog(catalog), dotenv=dotenv, masker=self.masker)
        self._layers = OverrideLayers(host=as_overrides(overrides), manifest=self.manifest.overrides)
        self._facts = self._gather_facts()
        self._locks = ChangeLocks()
        self._events = EventBus(self._logger)
        self._hub = ServiceHub(self._locks, self.masker, self._logger)
        self._builder = PackBuilder(
            self.secret_sources, self._hub, self.masker, self._port_of, pack_guard, lambda: self._layers
        )
        self._registries = Registries(self, self.secret_sources, lambda: self._facts)
        self._activator = StackActivator(
            locks=self._locks,
            events=self._events,
            masker=self.masker,
            logger=self._logger,
            registries=self._registries,
            hook_timeout=hook_timeout,
            drain_timeout=drain_timeout,
        )
        shared: dict[str, Any] = {
            "activator": self._activator,
            "registries": self._registries,
            "builder": self._builder,
            "persistence": self._persistence,
            "changing": self._changing,
            "sequences": itertools.count(1),
        }
        self._registration = Registration(**shared, require_open=self._require_open)
        self._packs = LoadedPacks()
        self._troubles = LoadedTroubles(self._registries, self._packs, self.masker)
        self._lifecycle = PackLifecycle(
            **shared,
            locks=self._locks,
            packs=self._packs,
            registration=self._registration,
            events=self._events,
            masker=self.masker,
            logger=self._logger,
        )
        self._closed = False
        self._ended = asyncio.Event()
        self.services: Services = self._hub.handle(self, "host")

    async def __aenter__(self) -> Self:
        try:
            await self.load_manifest()
        except BaseException:
            await to_the_end(self.shutdown())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await to_the_end(self.shutdown())

    # -- reading -----------------------------------------------------------------------------------------------

    def registry(self, kind: str) -> Registry:
        """Return the registry of *kind*; any string is a kind."""
        return self._registries.registry(kind)

    def kinds(self) -> list[str]:
        """Return the kinds that have a stack, in the order in which they first had one."""
        return self._registries.kinds()

    def packs(self) -> list[PackRecord]:
        """Return the loaded packs, in the order of their loading."""
        return [loaded.record() for loaded in self._packs]

    def explain(self, kind: str, id: str) -> Explanation:
        """Say of every entry on a stack what it is and why, strongest first; *id* may be one pack's, as `pack:id`.

        Of what nobody offers it says which name is near, and which packs were not loaded and may offer it.
        """
        return self._troubles.explanation(GROUPS.get(kind, kind), id)

    def absent(self) -> list[PackOutcome]:
        """Return what became of the packs that were to be loaded and are not: those that failed or are disabled."""
        return self._packs.absent()

    def unmatched_overrides(self) -> list[Trouble]:
        """Return a trouble for every override that is about nothing that is there."""
        return self._troubles.of_overrides(self._layers)

    @property
    def perhaps_elsewhere(self) -> str:
        """Say, where something is missing, which packs may offer it that are not loaded, or not whole."""
        return self._troubles.perhaps_elsewhere()

    def pack_troubles(self) -> list[Trouble]:
        """Return what loaded packs find wrong with themselves."""
        return self._troubles.of_packs()

    def on(self, listener: Listener) -> Listener:
        """Call *listener*, sync or async, with every event. Returns it, so it decorates too."""
        return self._events.on(listener)

    def off(self, listener: Listener) -> None:
        """Stop calling *listener*."""
        self._events.off(listener)

    # -- loading -----------------------------------------------------------------------------------------------

    async def load_manifest(self, *, strict: bool = False) -> LoadReport:
        """Load every entry of the manifest in order, and report each.

        A failing entry that is required, or any when *strict*, unloads what this call had loaded and raises an
        ExceptionGroup of PackLoadErrors.
        """
        if self.manifest.mcp_servers:
            names = ", ".join(self.manifest.mcp_servers)
            self._logger.warning("mcpServers (%s) become packs of an AgentOS; a manager alone leaves them out", names)
        outcomes: list[PackOutcome] = []
        deferred: list[tuple[int, DeferredActivation]] = []
        try:
            for number, entry in enumerate(self.manifest.packs):
                outcome, later = await self._begin_load(entry)
                outcomes.append(outcome)
                deferred += [(number, one) for one in later]
            await self._finish_loads(outcomes, deferred)
        except BaseException:
            await to_the_end(self._take_back(outcomes))
            raise
        unmatched = self.unmatched_overrides()
        for trouble in unmatched:
            self._logger.warning("%s", trouble)
        self.report = LoadReport(outcomes, [*unmatched, *self.pack_troubles()])
        fatal = [
            outcome.error
            for entry, outcome in zip(self.manifest.packs, outcomes, strict=True)
            if outcome.error is not None and (strict or entry.required)
        ]
        if fatal:
            await to_the_end(self._take_back(outcomes))
            raise load_failures("packs that the manifest requires could not be loaded", fatal)
        return self.report

    async def _begin_load(self, entry: PackEntry) -> tuple[PackOutcome, list[DeferredActivation]]:
        """Load one entry but for what its activation put off."""
        self._require_open()
        with deferred_activations() as deferred:
            outcome = await self._lifecycle.load(entry)
        return outcome, deferred if outcome.status == "loaded" else []

    async def _finish_loads(self, outcomes: list[PackOutcome], deferred: list[tuple[int, DeferredActivation]]) -> None:
        """Wait for all that was put off at once, then finish each in order; a pack that fails there goes."""
        await asyncio.gather(*(activation.wait() for _, activation in deferred))
        for number, activation in deferred:
            loaded = self._packs.get(outcomes[number].key)
            if loaded is None:
                continue
            try:
                await self._activator.run_hook(activation.where, activation.finish, loaded.context)
            except HookError as error:
                await to_the_end(self.unload(loaded.key))
                outcomes[number] = self._lifecycle.failed(loaded.key, loaded.source, error)
            else:
                for slot in itertools.islice(loaded.slots, len(loaded.pack.descriptors)):
                    if slot.order:
                        slot.order = self._activator.take_order()  # its activation is over only now

    async def _take_back(self, outcomes: Iterable[PackOutcome]) -> None:
        for outcome in reversed(list(outcomes)):
            if outcome.status == "loaded" and outcome.key in self._packs and not self._closed:
                await self.unload(outcome.key)

    async def load(self, entry: PackEntry | Mapping[str, Any]) -> PackOutcome:
        """Load one pack. A failure is an outcome, unless the entry is required: then it is raised."""
        entry = ExtensionManifest(packs=[entry]).packs[0]
        self._require_open()
        outcome = await self._lifecycle.load(entry)
        if outcome.error is not None and entry.required:
            raise outcome.error
        return outcome

    async def load_pack(
        self, pack: ExtensionPack, *, options: Mapping[str, Any] | None = None, priority: int | None = None
    ) -> PackOutcome:
        """Load a pack that the host made itself. It has no source, so it can't be reloaded."""
        if not isinstance(pack, ExtensionPack):
            raise TypeError(f"load_pack takes an ExtensionPack, got {type(pack).__name__}; load() takes an entry")
        self._require_open()
        return await self._lifecycle.adopt(pack, options or {}, priority)

    async def unload(self, key: str) -> list[Exception]:
        """Take a pack off, after what it shadowed is active again. Returns what its hooks raised."""
        self._require_open()
        return await self._lifecycle.unload(key)

    async def reload(self, key: str) -> PackOutcome:
        """Make a pack anew from its source and put it in the old one's place. If that fails, the old one runs on."""
        self._require_open()
        return await self._lifecycle.reload(key)

    async def disable(self, key: str) -> PackRecord:
        """Take all of a pack's descriptors out of force; it stays loaded. Overrides can't bring them back."""
        self._require_open()
        return await self._lifecycle.disable(key)

    async def enable(self, key: str) -> PackRecord:
        """Bring a disabled pack back, whole or not at all; what had failed in an enabled one is tried again."""
        self._require_open()
        return await self._lifecycle.enable(key)

    async def refresh_packs(self) -> list[PackRecord]:
        """Enable and disable packs as was decided elsewhere, by the command or another host; return those switched."""
        self._require_open()
        switched = []
        for key in sorted(await self._persistence.reread()):
            loaded, is_enabled = self._packs.get(key), self._persistence.disabled(key) is None
            if loaded is not None and is_enabled != (loaded.disabled is None):
                switched.append(await (self.enable(key) if is_enabled else self.disable(key)))
        return switched

    # -- overrides and secrets ---------------------------------------------------------------------------------

    async def set_override(self, kind: str, id: str, override: Override | Mapping[str, Any] | None) -> Trouble | None:
        """Set an override for this run, by `id` or `pack:id`; None takes it away.

        Return what is wrong with it: one that is about nothing that is there counts for what comes later. OptionsError
        says if it gives an entry options that its pack does not have; then nothing is changed.
        """
        self._require_open()
        kind = GROUPS.get(kind, kind)
        value = None if override is None else as_override(override, kind, id)
        trouble: Trouble | None = None
        if value is not None:
            only = OverrideLayers(runtime=Overrides({kind: {id: value}}))
            self._check_options(only, [(kind, id)])

        def alter() -> None:
            nonlocal trouble
            runtime = self._layers.runtime.with_one(kind, id, value)
            self._set_layers(attrs.evolve(self._layers, runtime=runtime), [(kind, id)])
            trouble = self._tell_override(kind, id, value)

        async with self._changing() as change:
            await self._activator.carry_out(change, lambda: _keys_of(kind, id), alter)
        return trouble

    async def replace_overrides(self, *, host: Overrides, manifest: Overrides) -> list[tuple[str, str]]:
        """Put others in the place of the host's overrides and the manifest's; return those that are not as before."""
        self._require_open()
        changed = list(dict.fromkeys([*_changes(self._layers.host, host), *_changes(self._layers.manifest, manifest)]))
        self._check_options(OverrideLayers(host=host, manifest=manifest), changed)

        def alter() -> None:
            self._set_layers(attrs.evolve(self._layers, host=host, manifest=manifest), changed)
            for kind, id in changed:
                self._tell_override(kind, id, host.of(kind).get(id) or manifest.of(kind).get(id))

        async with self._changing() as change:
            keys = [key for kind, id in changed for key in _keys_of(kind, id)]
            await self._activator.carry_out(change, lambda: keys, alter)
        return changed

    def _tell_override(self, kind: str, id: str, override: Override | None) -> Trouble | None:
        """Tell that an override is another one now; one that is about nothing is told of, returned, and counts."""
        trouble = None if override is None else self._troubles.of_override(kind, id)
        if trouble is not None:
            self._logger.warning("%s", trouble)
        self._events.post(OverrideChanged(kind=kind, id=id, override=override, trouble=trouble))
        return trouble

    def _check_options(self, layers: OverrideLayers, changed: Iterable[Key]) -> None:
        """Raise OptionsError if what *changed* in *layers* gives entries options that their packs do not have."""
        for kind, id in changed:
            for slot in self._slots_meant(kind, id):
                self._builder.check_overrides(slot.owner, [slot.descriptor], layers)

    def _slots_meant(self, kind: str, id: str) -> list[Slot]:
        """Return the slots that an override key means."""
        slots = [slot for key in _keys_of(kind, id) for slot in self._registries.slots(key)]
        return [one for one in slots if id in (one.key[1], f"{one.source.pack}:{one.key[1]}")]

    def _set_layers(self, layers: OverrideLayers, changed: Iterable[Key]) -> None:
        """Let *layers* count, which differ in *changed*, and judge what they are about again."""
        self._layers = layers
        self._facts = self._gather_facts()
        for kind, id in changed:
            self._registries.judge_again(self._slots_meant(kind, id))

    async def set_secret(self, id: str, value: str | None) -> None:
        """Set a secret for this run; None takes it away, and the sources below count again."""
        self._require_open()
        async with self._changing() as change:
            await self._regate(change, [id], lambda: self.secret_sources.set(id, value))

    async def refresh_secrets(self) -> list[str]:
        """Ask the host's source and read `.env` again; return the ids whose value changed."""
        self._require_open()
        ids = self._registries.secrets()
        async with self._changing() as change:
            self.secret_sources.read_dotenv()
            try:
                await self.secret_sources.fetch(ids, again=True)
            finally:  # what has come by now is read by packs, so it counts
                changed = await to_the_end(self._regate(change, ids))
        return changed

    async def reconsider(self, kind: str, id: str) -> None:
        """Decide on one stack again, because what is remembered about it changed."""
        self._require_open()
        async with self._changing() as change:
            await self._activator.reconsider(change, lambda: self._registries.slots((kind, id)))

    async def _regate(
        self, change: Change, ids: Collection[str], alter: Callable[[], None] = lambda: None
    ) -> list[str]:
        """Alter secrets, note which have another value, and judge again what they gate: all in one step, or nothing."""
        changed: list[str] = []

        def count() -> None:
            alter()
            changed.extend(id for id in ids if self.secret_sources.has_changed(id))
            for id in changed:
                self._events.post(SecretChanged(id=id))
            self._registries.judge_again(self._registries.gated_by(ids))

        await self._activator.carry_out(change, lambda: keys_of(self._registries.gated_by(ids)), count)
        return changed

    # -- single descriptors: what registries and running code ask for -------------------------------------------

    async def register(self, descriptor: Descriptor[Any], *, source: Source | None = None) -> Entry:
        """Push a descriptor by hand; raise HookError and leave nothing if its activation fails."""
        self._require_open()
        return await self._registration.register(descriptor, source)

    async def unregister(self, kind: str, id: str) -> bool:
        """Take the entry off that is active when its turn comes; False if there is none."""
        self._require_open()
        return await self._registration.unregister((kind, id))

    async def remove(self, entry: Entry) -> bool:
        """Take one entry off its stack; False if it is not there any more."""
        self._require_open()
        slot: Slot | None = entry._slot  # noqa: SLF001 - the slot is our own
        return slot is not None and await self._registration.remove(lambda: [slot]) > 0

    async def clear(self, kind: str) -> None:
        """Take everything of *kind* off its stacks, activating nothing."""
        self._require_open()

        def choose() -> list[Slot]:
            stacks = [stack for key, stack in self._registries.all().items() if key[0] == kind]
            return [slot for stack in stacks for slot in stack.slots()]

        await self._registration.remove(choose)

    def _port_of(self, owner: Owner) -> Port:
        return self._registration.port(owner)

    def port(self, owner: str) -> Port:
        """Return what code registers things with as *owner*: a loaded pack, or a name of the host's."""
        loaded = self._packs.named(owner)
        return self._registration.guest_port(owner) if loaded is None else self._registration.port(loaded)

    # -- the end -----------------------------------------------------------------------------------------------

    async def shutdown(self) -> list[Exception]:
        """Deactivate everything in reverse order, whatever raises on the way; return what raised."""
        if self._locks.is_nested():
            raise AgentOSError("shutdown can't be called from a hook: it would wait for that hook")
        if self._closed:
            await self._ended.wait()
            return []
        self._closed = True
        return await to_the_end(self._shut_down())

    async def _shut_down(self) -> list[Exception]:
        try:
            await self._locks.idle()
            async with self._changing() as change:
                await self._end(change)
                return change.raised
        finally:
            self._ended.set()

    async def _end(self, change: Change) -> None:
        """Undo every activation, descriptors' and packs', the last one first; then let everybody go."""
        owners = dict.fromkeys(slot.owner for stack in self._registries.all().values() for slot in stack.slots())
        leaving = self._activator.withdraw()
        undone: list[Slot | LoadedPack] = [*leaving, *self._packs]
        with deferred_ends() as waits:
            try:
                for one in sorted(undone, key=_place_in_undoing, reverse=True):
                    if isinstance(one, Slot):
                        await self._activator.retire({one: leaving[one]})
                    else:
                        await self._lifecycle.end(one)
            finally:
                ended = await asyncio.gather(*(wait() for wait in waits), return_exceptions=True)
        change.raised += [error for error in ended if isinstance(error, Exception)]
        await self._registration.end(owners)
        self._hub.close()
        change.raised += await self._hub.release_all(self)

    # -- small parts -------------------------------------------------------------------------------------------

    def _gather_facts(self) -> Facts:
        return Facts(
            overrides=self._layers,
            held_back=self._persistence.held_back,
            shut=self._shut,
        )

    def _shut(self, descriptor: Descriptor[Any]) -> str | None:
        """Ask a descriptor's own gate. One that raises is shut, and says so."""
        with Border() as border:  # a gate is foreign code: it fails into a reason
            reason = None if descriptor.gate is None else descriptor.gate()
            return None if reason is None else self.masker.mask(str(reason))
        return f"its gate raised {self.masker.describe(border.raised)}"

    def isolate_by(self, find: Callable[[PackEntry], FoundPack]) -> None:
        """Let *find* say what makes the packs whose entries ask for a process of their own. For the layers above."""
        self._builder.isolate = find

    def carry_by(self, bus: BusHub) -> None:
        """Let *bus* carry messages between packs. For the layers above."""
        self._builder.bus = bus

    def watch(self, watcher: Watcher) -> None:
        """Call *watcher* with the stacks of every switch, at the moment of the switch. For the layers above."""
        self._registries.watch(watcher)

    def held_back(self, entry: Entry) -> str | None:
        """Say why an entry waits for a person; None if it does not."""
        slot = entry._slot  # noqa: SLF001 - the slot is our own
        return None if slot is None else self._persistence.held_back(slot)

    def shut(self, entry: Entry) -> str | None:
        """Say why the own gate of an entry that is gated keeps it out of force; None if that is not what does."""
        slot = entry._slot  # noqa: SLF001 - the slot is our own
        if slot is None or entry.descriptor.gate is None or missing_secrets(slot):
            return None
        return self._shut(entry.descriptor) or "it is just coming back; try again"

    def secrets_of(self, entry: Entry) -> list[DeclaredSecret]:
        """Say of the secrets that an entry declares what is known of each, and where its value was found."""
        slot = entry._slot  # noqa: SLF001 - the slot is our own
        return [] if slot is None else list(map(slot.owner.scope.look_up, entry.descriptor.required_secrets))

    def options_of(self, key: str) -> Mapping[str, Any] | None:
        """Return the JSON Schema of the options that a loaded pack declares; None if it declares nothing of them."""
        declared = self._packs.find(key).options
        return None if declared is None else declared.schema

    def loaded(self) -> list[tuple[PackRecord, PackEntry | None]]:
        """Return the loaded packs with the entries they came from, in the order of their loading."""
        return [(loaded.record(), loaded.entry) for loaded in self._packs]

    @property
    def logger(self) -> MaskingLogger:
        """Return the logger that masks what is secret here."""
        return self._logger

    @property
    def events(self) -> EventBus:
        """Return the bus that carries events; the layers above post theirs to it."""
        return self._events

    def _require_open(self) -> None:
        if self._closed:
            raise ManagerClosedError

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[Change]:
        """Open a change. However it ends, what it did is written down and told."""
        change: Change | None = None
        try:
            with self._locks.change() as change:
                yield change
        finally:
            await self._persistence.settled()
            await self._events.deliver(change)


def _changes(before: Overrides, now: Overrides) -> Iterator[tuple[str, str]]:
    """Yield kind and key of every override that is another one than before, or gone, or new."""
    for kind in dict.fromkeys([*before.by_kind, *now.by_kind]):
        old, new = before.of(kind), now.of(kind)
        yield from ((kind, key) for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key))


def _keys_of(kind: str, id: str) -> list[Key]:
    """Return the stacks that an override key can mean: `a:b` is the id `a:b`, or pack a's `b`."""
    return list(dict.fromkeys([(kind, id), (kind, id.partition(":")[2] or id)]))


def _place_in_undoing(one: Slot | LoadedPack) -> tuple[bool, int]:
    """Say when something is undone: first what is used without being in force, then what was activated last."""
    return isinstance(one, Slot) and not one.order, one.order
