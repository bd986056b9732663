"""ExtensionManager: loads packs, keeps stacks, and is the only one who changes either."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from agentos.base.claims import Change, Claims, current_change, current_raised
from agentos.base.foreign import to_the_end
from agentos.errors import (
    AgentOSError,
    HookError,
    ManagerClosedError,
    PackLoadError,
)
from agentos.extensions.activation import Key, Seat, Settler, failure, missing_secrets
from agentos.extensions.builder import LoadedPack, Member, PackMaker
from agentos.extensions.events import (
    EventBus,
    Listener,
    OverrideChanged,
    PackFailed,
    PackLoaded,
    PackSkipped,
    PackUnloaded,
    SecretChanged,
)
from agentos.extensions.loaded import Books
from agentos.extensions.persistence import Keeper, NoKeeper
from agentos.extensions.registration import Registrar
from agentos.extensions.registries import Board, Watcher
from agentos.extensions.services import ServiceHub, Services
from agentos.model.descriptor import Descriptor
from agentos.model.manifest import ExtensionManifest, PackEntry, as_manifest
from agentos.model.overrides import GROUPS, Override, OverrideLayers, Overrides, as_override, as_overrides
from agentos.model.pack import ExtensionPack
from agentos.model.pack_context import Port
from agentos.model.report import LoadReport, PackOutcome, PackRecord
from agentos.model.source import Source
from agentos.secrets.catalog import SecretCatalog, as_catalog
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.secrets.sources import SecretSources, Vault
from agentos.stacks.decide import Facts, Offer
from agentos.stacks.entry import Entry, Explanation
from agentos.stacks.registry import Registry

_DISABLED = "its pack is disabled; enable it to bring it back"


@attrs.frozen
class Arrival:
    """The second half of an activation that waits for somebody else: while a manifest is loaded, all wait together.

    *wait* is awaited beside those of others; *settle* then runs in the order of loading, and fails its pack by raising.
    """

    where: str
    wait: Callable[[], Awaitable[object]]
    settle: Callable[[], Awaitable[object]]


Wait = Callable[[], Awaitable[object]]

_arrivals: ContextVar[list[Arrival] | None] = ContextVar("agentos_arrivals", default=None)
_departures: ContextVar[list[Wait] | None] = ContextVar("agentos_departures", default=None)


def put_off(arrival: Arrival) -> bool:
    """Leave *arrival* to the load of a manifest in which this hook runs; False if it runs in none, or in a part of it.

    What a hook loads by itself it may want to use at once.
    """
    arrivals, change = _arrivals.get(), current_change()
    if arrivals is None or change is None or change.parent is not None:
        return False
    arrivals.append(arrival)
    return True


def put_off_end(wait: Wait) -> bool:
    """Leave to a shutdown what a deactivation has begun and only waits for: all such waits are made together.

    False if the hook that asks runs in no shutdown; it waits by itself then.
    """
    departures = _departures.get()
    if departures is None:
        return False
    departures.append(wait)
    return True


class ExtensionManager:
    """Loads packs from a manifest and keeps their descriptors on stacks.

    One event loop owns a manager; reads of its registries are safe from any thread.
    """

    def __init__(
        self,
        manifest: ExtensionManifest | Mapping[str, Any] | str | Path | None = None,
        *,
        secrets: Mapping[str, str] | Vault | None = None,
        overrides: Overrides | Mapping[str, Any] | str | Path | None = None,
        catalog: SecretCatalog | Mapping[str, Any] | str | Path | None = None,
        dotenv: str | Path | None = None,
        hook_timeout: float | None = 60.0,
        drain_timeout: float = 30.0,
        keeper: Keeper | None = None,
        masker: Masker | None = None,
        pack_guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._keeper: Keeper = keeper or NoKeeper()
        self.manifest = as_manifest(manifest)
        self.report: LoadReport | None = None
        self.masker = masker or Masker()
        self._logger = MaskingLogger("agentos", self.masker)
        known = None if catalog is None else as_catalog(catalog)
        self._secrets = SecretSources(secrets, catalog=known, dotenv=dotenv, masker=self.masker)
        self._layers = OverrideLayers(host=as_overrides(overrides), manifest=self.manifest.overrides)
        self._facts = self._gather_facts()
        self._claims = Claims()
        self._events = EventBus(self._logger)
        self._hub = ServiceHub(self._claims, self.masker, self._logger)
        self._maker = PackMaker(self._secrets, self._hub, self.masker, self._port_of, pack_guard)
        self._board = Board(self, self._secrets)
        self._settler = Settler(
            claims=self._claims,
            events=self._events,
            masker=self.masker,
            logger=self._logger,
            facts=lambda: self._facts,
            publish=self._board.publish,
            switched=self._board.note_switch,
            hook_timeout=hook_timeout,
            drain_timeout=drain_timeout,
        )
        self._sequences = itertools.count(1)
        self._books = Books()
        self._registrar = Registrar(
            claims=self._claims,
            settler=self._settler,
            board=self._board,
            maker=self._maker,
            keeper=self._keeper,
            tell=self._tell,
            sequences=self._sequences,
            require_open=self._require_open,
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
        return self._board.registry(kind)

    def kinds(self) -> list[str]:
        """Return the kinds that have a stack, in the order in which they first had one."""
        return self._board.kinds()

    def packs(self) -> list[PackRecord]:
        """Return the loaded packs, in the order of their loading."""
        return [loaded.record() for loaded in self._books]

    def explain(self, kind: str, id: str) -> Explanation:
        """Say of every entry on a stack what it is and why, strongest first."""
        registry = self.registry(GROUPS.get(kind, kind))
        return Explanation(registry.kind, id, registry.get_active(id), registry.stack(id))

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
        arrivals: list[tuple[int, Arrival]] = []
        try:
            for number, entry in enumerate(self.manifest.packs):
                outcome, later = await self._begin_load(entry)
                outcomes.append(outcome)
                arrivals += [(number, one) for one in later]
            await self._finish_loads(outcomes, arrivals)
        except BaseException:
            await to_the_end(self._take_back(outcomes))
            raise
        self.report = LoadReport(outcomes)
        fatal = [
            outcome.error
            for entry, outcome in zip(self.manifest.packs, outcomes, strict=True)
            if outcome.error is not None and (strict or entry.required)
        ]
        if fatal:
            await to_the_end(self._take_back(outcomes))
            raise ExceptionGroup("packs that the manifest requires could not be loaded", fatal)
        return self.report

    async def _begin_load(self, entry: PackEntry) -> tuple[PackOutcome, list[Arrival]]:
        """Load one entry but for what its activation put off."""
        later: list[Arrival] = []
        token = _arrivals.set(later)
        try:
            outcome = await self._load_one(entry)
        finally:
            _arrivals.reset(token)
        return outcome, later if outcome.status == "loaded" else []

    async def _finish_loads(self, outcomes: list[PackOutcome], arrivals: list[tuple[int, Arrival]]) -> None:
        """Wait for all that was put off at once, then settle it in order; a pack that fails there goes."""
        await asyncio.gather(*(arrival.wait() for _, arrival in arrivals))
        for number, arrival in arrivals:
            loaded = self._books.get(outcomes[number].key)
            if loaded is None:
                continue
            try:
                await self._settler.run_hook(arrival.where, arrival.settle, loaded.context)
            except HookError as error:
                await to_the_end(self.unload(loaded.key))
                outcomes[number] = self._failed(loaded.key, loaded.source, error)
            else:
                for seat in loaded.seats[: len(loaded.pack.descriptors)]:
                    seat.order = self._settler.take_order()  # its activation is over only now

    async def _take_back(self, outcomes: Iterable[PackOutcome]) -> None:
        for outcome in reversed(list(outcomes)):
            if outcome.status == "loaded" and outcome.key in self._books:
                await self.unload(outcome.key)

    async def load(self, entry: PackEntry | Mapping[str, Any]) -> PackOutcome:
        """Load one pack. A failure is an outcome, unless the entry is required: then it is raised."""
        entry = ExtensionManifest(packs=[entry]).packs[0]
        outcome = await self._load_one(entry)
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
        await self._keeper.ready()
        with self._claims.change() as change:
            outcome = await self._load_adopted(change, pack, options or {}, priority)
        await self._tell(change)
        return outcome

    async def _load_adopted(
        self, change: Change, pack: ExtensionPack, options: Mapping[str, Any], priority: int | None
    ) -> PackOutcome:
        refused = await self._claims.acquire(change, [("pack", pack.name)])
        known = self._books.get(pack.name)
        if refused or (known is not None and known.pack is pack):
            return self._skipped(pack.name, "already_loaded", pack.name)
        try:
            if known is not None:
                raise self._books.taken(pack.name, pack.name, "host")
            made = await self._maker.adopt(pack, options, priority)
            return await self._install(change, made)
        except (PackLoadError, AgentOSError) as error:
            return self._failed(pack.name, Source(pack.name, pack.version, None, "host"), error)

    async def _load_one(self, entry: PackEntry) -> PackOutcome:
        self._require_open()
        await self._keeper.ready()
        with self._claims.change() as change:
            outcome = await self._load_entry(change, entry)
        await self._tell(change)
        return outcome

    async def _load_entry(self, change: Change, entry: PackEntry) -> PackOutcome:
        hint = entry.label
        if not entry.enabled:
            return self._skipped(hint, "disabled")
        claim = ("pack", entry.key) if entry.key else ("factory", id(entry.factory))
        if await self._claims.acquire(change, [claim]) or self._books.has(entry):
            return self._skipped(hint, "already_loaded")
        made: LoadedPack | None = None
        try:
            await self._keeper.admit(entry)
            made = await self._maker.make(entry)
            if await self._claims.acquire(change, [("pack", made.key)]) or made.key in self._books:
                await self._withdraw(made)
                if entry.key is None and (self._books.get(made.key) or made).entry != entry:
                    raise self._books.taken(made.key, made.pack.name, made.source.origin)
                return self._skipped(made.key, "already_loaded", made.pack.name)
            return await self._install(change, made)
        except AgentOSError as error:
            return self._failed(made.key if made else hint, made.source if made else None, error)

    async def _install(self, change: Change, made: LoadedPack, old: LoadedPack | None = None) -> PackOutcome:
        """Activate a pack that is ready, in place of *old* if given: whole or not at all."""
        try:
            await self._claim_name(change, made, old)
            made.take_seats(old.sequence if old else next(self._sequences))
            made.disabled = old.disabled if old else self._keeper.disabled(made.key)
            await self._bring_in(change, made, old)
        except BaseException:
            await to_the_end(self._withdraw(made))
            raise
        self._books.enter(made, old)
        self._events.post(PackLoaded(key=made.key, pack=made.pack.name, version=made.pack.version, source=made.source))
        return PackOutcome("loaded", made.key, made.pack.name)

    async def _claim_name(self, change: Change, made: LoadedPack, old: LoadedPack | None) -> None:
        name = made.pack.name
        if await self._claims.acquire(change, [("name", name)]):
            raise PackLoadError(made.key, f"a pack named {name!r} is being loaded further up")
        taken = self._books.named(name)
        if taken is not None and taken is not old:
            raise self._books.taken(made.key, name, made.source.origin)

    async def _bring_in(self, change: Change, made: LoadedPack, old: LoadedPack | None) -> None:
        """Run the pack's own hook, then put its descriptors on their stacks; undo both if either fails."""
        declared = list(made.seats)
        leaving = list(old.seats) if old else []

        def alter() -> Collection[Seat]:
            for seat in leaving:
                self._pull(seat)
            for seat in offered:
                self._push(seat)
            return set(offered)

        def undo() -> None:
            for seat in offered:
                self._pull(seat)
            for seat in leaving:
                self._push(seat)

        if made.disabled is None:
            await self._run_pack_hook("on_activate", made)
            made.order = self._settler.take_order()
        # Its hook may have bound or taken back some of what it declares: those seats are on their stacks, or gone.
        offered = [seat for seat in declared if seat in made.seats]
        try:
            keys = [seat.key for seat in (*offered, *leaving)]
            await self._settler.attempt(change, keys, alter, undo)
        except BaseException:
            if made.disabled is None:
                await to_the_end(self._retire_pack(made))
            raise

    async def _run_pack_hook(self, name: str, made: LoadedPack) -> None:
        await self._settler.run_hook(f"{name} of pack {made.pack.name!r}", getattr(made.pack, name), made.context)

    async def _retire_pack(self, loaded: LoadedPack) -> HookError | None:
        """Run a pack's on_deactivate; what it raises is reported and changes nothing."""
        try:
            await self._run_pack_hook("on_deactivate", loaded)
        except HookError as error:
            current_raised().append(error)
            self._logger.warning("%s", error)
            return error
        return None

    async def _withdraw(self, made: LoadedPack) -> None:
        """Forget a pack that did not get in, with whatever its hooks had registered by then."""
        made.closed = True
        await self._registrar.remove([seat for seat in made.seats if seat in self._settler.seats(seat.key)])
        made.found.revert()
        await self._maker.dismiss(made.scope)

    # -- unloading, reloading, switching -----------------------------------------------------------------------

    async def unload(self, key: str) -> list[Exception]:
        """Take a pack off, after what it shadowed is active again. Returns what its hooks raised."""
        self._require_open()
        self._books.find(key)
        with self._claims.change() as change:
            loaded = await self._hold(change, key)
            raised = await to_the_end(self._unload(change, loaded))
        await self._tell(change)
        return raised

    async def _unload(self, change: Change, loaded: LoadedPack) -> list[Exception]:
        def alter() -> None:
            for seat in loaded.seats:
                self._pull(seat)

        await self._settler.carry_out(change, [seat.key for seat in loaded.seats], alter)
        self._books.strike(loaded)
        await self._let_go(loaded)
        return change.raised

    async def _let_go(self, loaded: LoadedPack) -> None:
        """Run the last hook of a pack whose descriptors are out of force, and forget it."""
        loaded.closed = True
        error = await self._retire_pack(loaded) if loaded.disabled is None else None
        current_raised().extend(await self._maker.dismiss(loaded.scope))
        loaded.found.discard()
        pack = loaded.pack
        self._events.post(
            PackUnloaded(key=loaded.key, pack=pack.name, version=pack.version, source=loaded.source, error=error)
        )

    async def reload(self, key: str) -> PackOutcome:
        """Make a pack anew from its source and put it in the old one's place. If that fails, the old one runs on."""
        self._require_open()
        self._books.find(key)
        with self._claims.change() as change:
            old = await self._hold(change, key)
            if old.entry is None or isinstance(old.entry.factory, ExtensionPack):
                raise PackLoadError(
                    old.key,
                    "was given as an object and has no source to reload; unload it and load the new one",
                )
            outcome = await self._reload(change, old, old.entry)
        await self._tell(change)
        if outcome.error is not None and old.entry.required:
            raise outcome.error
        return outcome

    async def _reload(self, change: Change, old: LoadedPack, entry: PackEntry) -> PackOutcome:
        try:
            await self._keeper.admit(entry)
            made = await self._maker.make(entry, fresh=True)
            made.key = old.key
            outcome = await self._install(change, made, old)
        except AgentOSError as error:
            return self._failed(old.key, old.source, error)
        await to_the_end(self._let_go(old))
        return outcome

    async def disable(self, key: str) -> PackRecord:
        """Take all of a pack's descriptors out of force; it stays loaded. Overrides can't bring them back."""
        self._require_open()
        self._books.find(key)
        with self._claims.change() as change:
            loaded = await self._hold(change, key)
            try:
                await to_the_end(self._keeper.switched(loaded.key, enabled=False))
                if loaded.disabled is None:
                    await to_the_end(self._disable(change, loaded))
            finally:
                await to_the_end(self._remember(loaded))
        await self._tell(change)
        return loaded.record()

    async def _disable(self, change: Change, loaded: LoadedPack) -> None:
        await self._switch_pack(change, loaded, _DISABLED)
        await self._retire_pack(loaded)

    async def _switch_pack(self, change: Change, loaded: LoadedPack, disabled: str | None) -> None:
        def alter() -> None:
            loaded.disabled = disabled
            self._settler.touch(loaded.seats)

        await self._settler.carry_out(change, [seat.key for seat in loaded.seats], alter)

    async def enable(self, key: str) -> PackRecord:
        """Bring a disabled pack back, whole or not at all; what had failed in an enabled one is tried again."""
        self._require_open()
        self._books.find(key)
        try:
            with self._claims.change() as change:
                loaded = await self._hold(change, key)
                try:
                    await to_the_end(self._keeper.switched(loaded.key, enabled=True))
                    if loaded.disabled is None:
                        await self._switch_pack(change, loaded, None)
                    else:
                        await self._try_to_enable(change, loaded)
                finally:
                    await to_the_end(self._remember(loaded))
        finally:
            await self._tell(change)
        return loaded.record()

    async def refresh_packs(self) -> list[PackRecord]:
        """Enable and disable packs as was decided elsewhere, by the command or another host; return those switched."""
        self._require_open()
        switched = []
        for key in sorted(await self._keeper.reread()):
            loaded, is_enabled = self._books.get(key), self._keeper.disabled(key) is None
            if loaded is not None and is_enabled != (loaded.disabled is None):
                switched.append(await (self.enable(key) if is_enabled else self.disable(key)))
        return switched

    async def _remember(self, loaded: LoadedPack) -> None:
        """Have it remembered whether a pack is enabled, as it is now."""
        await self._keeper.switched(loaded.key, enabled=loaded.disabled is None)

    async def _try_to_enable(self, change: Change, loaded: LoadedPack) -> None:
        try:
            await self._enable(change, loaded)
        except HookError as error:
            self._failed(loaded.key, loaded.source, error)
            raise

    async def _enable(self, change: Change, loaded: LoadedPack) -> None:
        await self._run_pack_hook("on_activate", loaded)
        loaded.order = self._settler.take_order()

        def alter() -> Collection[Seat]:
            loaded.disabled = None
            self._settler.touch(loaded.seats)
            return set(loaded.seats)

        def undo() -> None:
            loaded.disabled = _DISABLED
            self._settler.touch(loaded.seats)

        try:
            await self._settler.attempt(change, [seat.key for seat in loaded.seats], alter, undo)
        except BaseException:
            await to_the_end(self._retire_pack(loaded))
            raise

    async def _hold(self, change: Change, key: str) -> LoadedPack:
        """Claim a loaded pack for a change of it."""
        loaded = self._books.find(key)
        if await self._claims.acquire(change, [("pack", loaded.key), ("name", loaded.pack.name)]):
            raise PackLoadError(loaded.key, "is being changed further up; a hook can't change its own pack")
        return self._books.find(key)

    # -- overrides and secrets ---------------------------------------------------------------------------------

    async def set_override(self, kind: str, id: str, override: Override | Mapping[str, Any] | None) -> None:
        """Set an override for this run, by `id` or `pack:id`; None takes it away."""
        self._require_open()
        kind = GROUPS.get(kind, kind)
        value = None if override is None else as_override(override, kind, id)

        def alter() -> None:
            self._layers = attrs.evolve(self._layers, runtime=self._layers.runtime.with_one(kind, id, value))
            self._facts = self._gather_facts()
            self._settler.touch(seat for seat in self._on_stacks(kind, id) if id in (seat.key[1], _qualified(seat)))

        with self._claims.change() as change:
            await self._settler.carry_out(change, self._keys_of(kind, id), alter)
            self._events.post(OverrideChanged(kind=kind, id=id, override=value))
        await self._tell(change)

    async def replace_overrides(self, *, host: Overrides, manifest: Overrides) -> list[tuple[str, str]]:
        """Put others in the place of the host's overrides and the manifest's; return those that are not as before."""
        self._require_open()
        new = attrs.evolve(self._layers, host=host, manifest=manifest)
        changed = list(dict.fromkeys([*_changes(self._layers.host, host), *_changes(self._layers.manifest, manifest)]))

        def alter() -> None:
            self._layers = attrs.evolve(self._layers, host=host, manifest=manifest)
            self._facts = self._gather_facts()
            for kind, id in changed:
                self._settler.touch(one for one in self._on_stacks(kind, id) if id in (one.key[1], _qualified(one)))

        with self._claims.change() as change:
            keys = [key for kind, id in changed for key in self._keys_of(kind, id)]
            await self._settler.carry_out(change, keys, alter)
            for kind, id in changed:
                said = new.host.of(kind).get(id) or new.manifest.of(kind).get(id)
                self._events.post(OverrideChanged(kind=kind, id=id, override=said))
        await self._tell(change)
        return changed

    def _keys_of(self, kind: str, id: str) -> list[Key]:
        """Return the stacks that an override key can mean: `a:b` is the id `a:b`, or pack a's `b`."""
        return list(dict.fromkeys([(kind, id), (kind, id.partition(":")[2] or id)]))

    def _on_stacks(self, kind: str, id: str) -> list[Seat]:
        return [seat for key in self._keys_of(kind, id) for seat in self._settler.seats(key)]

    async def set_secret(self, id: str, value: str | None) -> None:
        """Set a secret for this run; None takes it away, and the sources below count again."""
        self._require_open()
        with self._claims.change() as change:
            self._secrets.set(id, value)
            if self._secrets.has_changed(id):
                self._events.post(SecretChanged(id=id))
            await self._regate(change, [id])
        await self._tell(change)

    async def refresh_secrets(self) -> list[str]:
        """Ask the host's source and read `.env` again; return the ids whose value changed."""
        self._require_open()
        ids = self._board.secrets()
        with self._claims.change() as change:
            self._secrets.read_dotenv()
            await self._secrets.fetch(ids, again=True)
            changed = [id for id in ids if self._secrets.has_changed(id)]
            for id in changed:
                self._events.post(SecretChanged(id=id))
            await self._regate(change, ids)
        await self._tell(change)
        return changed

    async def reconsider(self, kind: str, id: str) -> None:
        """Decide on one stack again, because the keeper's mind about it changed."""
        self._require_open()
        with self._claims.change() as change:
            await self._settler.reconsider(change, self._settler.seats((kind, id)))
        await self._tell(change)

    async def _regate(self, change: Change, ids: Iterable[str]) -> None:
        await self._settler.reconsider(change, self._board.gated_by(ids))

    # -- single descriptors: what registries and running code ask for -------------------------------------------

    async def register(self, descriptor: Descriptor[Any], *, source: Source | None = None) -> Entry:
        """Push a descriptor by hand; raise HookError and leave nothing if its activation fails."""
        self._require_open()
        return await self._registrar.register(descriptor, source)

    async def unregister(self, kind: str, id: str) -> bool:
        """Take the entry off that is active when its turn comes; False if there is none."""
        self._require_open()
        return await self._registrar.unregister((kind, id))

    async def remove(self, entry: Entry) -> bool:
        """Take one entry off its stack; False if it is not there any more."""
        self._require_open()
        return await self._registrar.remove([entry._seat]) > 0  # noqa: SLF001 - the seat is the house's own

    async def clear(self, kind: str) -> None:
        """Take everything of *kind* off its stacks, activating nothing."""
        self._require_open()
        keys = [key for key in self._settler.all_keys() if key[0] == kind]
        await self._registrar.remove([seat for key in keys for seat in self._settler.seats(key)])

    def _port_of(self, member: Member) -> Port:
        return self._registrar.port(member)

    def port(self, owner: str) -> Port:
        """Return the door to the stacks for code that registers things as *owner*: a loaded pack, or a guest."""
        return self._registrar.port(self._books.named(owner) or self._registrar.guest(owner))

    # -- the end -----------------------------------------------------------------------------------------------

    async def shutdown(self) -> list[Exception]:
        """Deactivate everything in reverse order, whatever raises on the way; return what raised."""
        if self._claims.is_nested():
            raise AgentOSError("shutdown can't be called from a hook: it would wait for that hook")
        if self._closed:
            await self._ended.wait()
            return []
        self._closed = True
        try:
            await self._claims.idle()
            with self._claims.change() as change:
                await self._end(change)
            await self._tell(change)
        finally:
            self._ended.set()
        return change.raised

    async def _end(self, change: Change) -> None:
        """Undo every activation, descriptors' and packs', the last one first; then let everybody go."""
        leaving = self._settler.withdraw()
        seats = [seat for key in self._settler.all_keys() for seat in self._settler.seats(key)]
        undone: list[Seat | LoadedPack] = [*leaving, *self._books]
        departures: list[Wait] = []
        token = _departures.set(departures)
        try:
            for one in sorted(undone, key=lambda one: one.order, reverse=True):
                if isinstance(one, Seat):
                    await self._settler.retire({one: leaving[one]})
                else:
                    self._books.strike(one)
                    await self._let_go(one)
        finally:
            _departures.reset(token)
            ended = await asyncio.gather(*(wait() for wait in departures), return_exceptions=True)
        change.raised += [error for error in ended if isinstance(error, Exception)]
        for owner in dict.fromkeys(seat.owner for seat in seats if not isinstance(seat.owner, LoadedPack)):
            change.raised += await self._maker.dismiss(owner.scope)
        self._hub.close()
        change.raised += await self._hub.release_all(self)

    # -- small parts -------------------------------------------------------------------------------------------

    def _gather_facts(self) -> Facts:
        return Facts(
            overrides=self._layers,
            missing_secrets=missing_secrets,
            pack_disabled=_pack_disabled,
            held_back=self._keeper.held_back,
            shut=self._shut,
            failure=failure,
            secret_hint=self._hint,
        )

    def _shut(self, offer: Offer) -> str | None:
        """Ask an offer's own gate. One that raises is shut, and says so."""
        gate = offer.descriptor.gate
        try:
            reason = None if gate is None else gate()
        except Exception as error:  # noqa: BLE001 - a gate is foreign code: it fails into a reason
            return f"its gate raised {self.masker.describe(error)}"
        return None if reason is None else self.masker.mask(str(reason))

    def _hint(self, id: str) -> str:
        return self._secrets.catalog.hint(id)

    def watch(self, watcher: Watcher) -> None:
        """Call *watcher* with the stacks of every switch, at the moment of the switch. For the layers above."""
        self._board.watch(watcher)

    def held_back(self, entry: Entry) -> str | None:
        """Say why an entry waits for a person; None if it does not."""
        seat = entry._seat  # noqa: SLF001 - the seat is the house's own
        return None if seat is None else self._keeper.held_back(seat.offer)

    def shut(self, entry: Entry) -> str | None:
        """Say why the own gate of an entry that is gated keeps it out of force; None if that is not what does."""
        seat = entry._seat  # noqa: SLF001 - the seat is the house's own
        if seat is None or entry.descriptor.gate is None or missing_secrets(seat.offer):
            return None
        return self._shut(seat.offer) or "it is just coming back; try again"

    def loaded(self) -> list[tuple[PackRecord, PackEntry | None]]:
        """Return the loaded packs with the entries they came from, in the order of their loading."""
        return [(loaded.record(), loaded.entry) for loaded in self._books]

    @property
    def events(self) -> EventBus:
        """Return the bus that carries events; the layers above post theirs to it."""
        return self._events

    def _push(self, seat: Seat) -> None:
        self._board.push(self._settler, seat)

    def _pull(self, seat: Seat) -> None:
        self._board.pull(self._settler, seat)

    def _skipped(self, key: str, reason: str, pack: str | None = None) -> PackOutcome:
        self._events.post(PackSkipped(key=key, pack=pack, reason=reason))
        return PackOutcome("skipped", key, pack, reason)

    def _failed(self, key: str, source: Source | None, error: Exception) -> PackOutcome:
        pack = source.pack if source else None
        version = source.version if source else None
        if not isinstance(error, PackLoadError):
            wrapped = PackLoadError(key, self.masker.mask(str(error)))
            wrapped.__cause__ = self.masker.cleanse(error)
            error = wrapped
        self._logger.warning("%s", error, extra={"failed_pack": key})
        self._events.post(
            PackFailed(key=key, pack=pack, version=version, error=error, reason=str(error), source=source)
        )
        return PackOutcome("failed", key, pack, str(error), error)

    def _require_open(self) -> None:
        if self._closed:
            raise ManagerClosedError

    async def _tell(self, change: Change) -> None:
        await self._keeper.settled()
        await self._events.deliver(change)


def _pack_disabled(offer: Offer) -> str | None:
    seat: Seat = offer.owner
    disabled: str | None = seat.owner.disabled
    return disabled


def _changes(before: Overrides, now: Overrides) -> Iterator[tuple[str, str]]:
    """Yield kind and key of every override that is another one than before, or gone, or new."""
    for kind in dict.fromkeys([*before.by_kind, *now.by_kind]):
        old, new = before.of(kind), now.of(kind)
        yield from ((kind, key) for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key))


def _qualified(seat: Seat) -> str:
    return f"{seat.offer.source.pack}:{seat.key[1]}"
