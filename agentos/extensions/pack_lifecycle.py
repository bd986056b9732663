"""Packs come and go whole: loading, unloading, reloading, disabling and enabling them."""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import attrs

from agentos.base.foreign import to_the_end
from agentos.base.locks import Change, ChangeLocks, current_raised
from agentos.errors import AgentOSError, HookError, PackLoadError
from agentos.extensions.activation import StackActivator, keys_of
from agentos.extensions.builder import PackBuilder
from agentos.extensions.events import EventBus, PackFailed, PackLoaded, PackSkipped, PackUnloaded
from agentos.extensions.loaded import LoadedPack, LoadedPacks
from agentos.extensions.persistence import Persistence
from agentos.extensions.registration import Registration
from agentos.extensions.registries import Registries
from agentos.model.extension_pack import ExtensionPack
from agentos.model.manifest import PackEntry
from agentos.model.report import PackOutcome, PackRecord
from agentos.model.source import Source
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.slot import Slot

_DISABLED = "its pack is disabled; enable it to bring it back"


@attrs.frozen(kw_only=True)
class PackLifecycle:
    """Changes one pack at a time, whole or not at all."""

    packs: LoadedPacks
    _locks: ChangeLocks
    _activator: StackActivator
    _registries: Registries
    _registration: Registration
    _builder: PackBuilder
    _persistence: Persistence
    _events: EventBus
    _masker: Masker
    _logger: MaskingLogger
    _changing: Callable[[], AbstractAsyncContextManager[Change]]
    _sequences: Iterator[int]

    # -- loading -----------------------------------------------------------------------------------------------

    async def load(self, entry: PackEntry) -> PackOutcome:
        """Load what *entry* names; a failure is an outcome."""
        async with self._changing() as change:
            await self._persistence.ready()
            return await self._load(change, entry)

    async def _load(self, change: Change, entry: PackEntry) -> PackOutcome:
        hint = entry.label
        if not entry.enabled:
            self.packs.note_absent(outcome := self._skipped(hint, "disabled"))
            return outcome
        lock = f"pack {entry.key}" if entry.key else f"factory {id(entry.factory)}"
        if await self._locks.acquire(change, [lock]) or self.packs.has(entry):
            return self._skipped(hint, "already_loaded")
        built: LoadedPack | None = None
        try:
            await self._persistence.admit(entry)
            built = await self._builder.build(entry)
            async with self._whole(change, built):
                if not await self._locks.acquire(change, [f"pack {built.key}"]) and built.key not in self.packs:
                    return await self._install(change, built)
            await to_the_end(self._withdraw(change, built))
            if entry.key is None and (self.packs.get(built.key) or built).entry != entry:
                raise self.packs.name_taken(built.key, built.pack.name, built.source.origin)
            return self._skipped(built.key, "already_loaded", built.pack.name)
        except AgentOSError as error:
            return self.failed(built.key if built else hint, built.source if built else None, error)

    async def adopt(self, pack: ExtensionPack, options: Mapping[str, Any], priority: int | None) -> PackOutcome:
        """Load a pack that the host made itself."""
        async with self._changing() as change:
            await self._persistence.ready()
            return await self._adopt(change, pack, options, priority)

    async def _adopt(
        self, change: Change, pack: ExtensionPack, options: Mapping[str, Any], priority: int | None
    ) -> PackOutcome:
        refused = await self._locks.acquire(change, [f"pack {pack.name}"])
        known = self.packs.get(pack.name)
        if refused or (known is not None and known.pack is pack):
            return self._skipped(pack.name, "already_loaded", pack.name)
        try:
            if known is not None:
                raise self.packs.name_taken(pack.name, pack.name, "host")
            built = await self._builder.adopt(pack, options, priority)
            async with self._whole(change, built):
                return await self._install(change, built)
        except AgentOSError as error:
            return self.failed(pack.name, Source(pack.name, pack.version, None, "host"), error)

    async def _install(self, change: Change, new: LoadedPack, old: LoadedPack | None = None) -> PackOutcome:
        """Activate a pack that is built, in place of *old* if given: whole or not at all."""
        await self._lock_name(change, new, old)
        new.make_slots(old.sequence if old else next(self._sequences))
        new.disabled = old.disabled if old else self._persistence.disabled(new.key)
        if new.disabled is None:
            await self._run_hook("on_activate", new)
            new.order = self._activator.take_order()
        else:
            await new.found.rest()
        await self._bring_in(change, new, old)
        self.packs.add(new, old)
        self._events.post(PackLoaded(key=new.key, pack=new.pack.name, version=new.pack.version, source=new.source))
        return PackOutcome("loaded", new.key, new.pack.name, warnings=self._warn(new))

    def _warn(self, new: LoadedPack) -> tuple[str, ...]:
        """Log and return what somebody should look at, though it keeps no pack from being loaded."""
        warnings = self._builder.rivals(new.pack.name)
        for warning in warnings:
            self._logger.warning("pack %r: %s", new.pack.name, warning)
        return warnings

    async def _lock_name(self, change: Change, new: LoadedPack, old: LoadedPack | None) -> None:
        name = new.pack.name
        if await self._locks.acquire(change, [f"name {name}"]):
            raise PackLoadError(new.key, f"a pack named {name!r} is being loaded further up")
        taken = self.packs.named(name)
        if taken is not None and taken is not old:
            raise self.packs.name_taken(new.key, name, new.source.origin)

    async def _bring_in(self, change: Change, new: LoadedPack, old: LoadedPack | None) -> None:
        """Put a pack's descriptors on their stacks and take those of *old* off: what each of them has by then."""
        standing = {} if old is None else old.slots
        offered: list[Slot] = []
        taken: list[Slot] = []

        def alter() -> Collection[Slot]:
            # Its hook may have exchanged some of what it declares: those slots are on their stacks, or gone.
            offered.extend(slot for slot in new.slots if not slot.is_stacked)
            taken.extend(standing)
            self._exchange(taken, offered)
            return set(offered)

        def undo() -> None:
            self._exchange(offered, [slot for slot in taken if slot in standing and not slot.is_stacked])

        await self._activator.attempt(change, lambda: keys_of((*new.slots, *standing)), alter, undo)
        for slot in taken:
            if not slot.is_stacked:
                standing.pop(slot, None)

    def _exchange(self, old: Collection[Slot], new: Collection[Slot]) -> None:
        for slot in old:
            self._registries.pull(slot)
        for slot in new:
            self._registries.push(slot)

    @asynccontextmanager
    async def _whole(self, change: Change, built: LoadedPack) -> AsyncIterator[None]:
        """Forget a pack again that did not get in."""
        try:
            yield
        except BaseException:
            await to_the_end(self._withdraw(change, built))
            raise

    async def _withdraw(self, change: Change, built: LoadedPack) -> None:
        """Forget a pack that did not get in, with whatever its hooks had registered by then."""
        await self._take_off(change, built)
        if built.order:
            await self._deactivate(built)
        built.found.revert()
        await built.found.close()
        await self._builder.dismiss(built.scope)

    async def _take_off(self, change: Change, loaded: LoadedPack) -> None:
        """Let a pack bring nothing more, and take off what it has."""
        loaded.closed = True
        await self._activator.carry_out(
            change,
            lambda: keys_of(slot for slot in loaded.slots if slot.is_stacked),
            lambda: self._registration.take_off(list(loaded.slots)),
        )

    async def _run_hook(self, name: str, loaded: LoadedPack) -> None:
        hook = getattr(loaded.pack, name)
        await self._activator.run_hook(f"{name} of pack {loaded.pack.name!r}", hook, loaded.context)

    async def _deactivate(self, loaded: LoadedPack) -> HookError | None:
        """Run a pack's on_deactivate; what it raises is reported and changes nothing. It hears nothing any more."""
        await self._builder.silence(loaded.scope)
        try:
            await self._run_hook("on_deactivate", loaded)
        except HookError as error:
            current_raised().append(error)
            self._logger.warning("%s", error)
            return error
        return None

    # -- unloading, reloading, switching -----------------------------------------------------------------------

    async def unload(self, key: str) -> list[Exception]:
        """Take a pack off, after what it shadowed is active again. Returns what its hooks raised."""
        self.packs.find(key)
        async with self._changing() as change:
            loaded = await self._lock(change, key)
            await to_the_end(self._unload(change, loaded))
            return change.raised

    async def _unload(self, change: Change, loaded: LoadedPack) -> None:
        await self._take_off(change, loaded)
        await self.end(loaded)

    async def end(self, loaded: LoadedPack) -> None:
        """Run the last hook of a pack whose descriptors are out of force, and forget it."""
        self.packs.remove(loaded)
        error = await self._deactivate(loaded) if loaded.disabled is None else None
        await loaded.found.close()
        current_raised().extend(await self._builder.dismiss(loaded.scope))
        loaded.found.discard()
        pack = loaded.pack
        self._events.post(
            PackUnloaded(key=loaded.key, pack=pack.name, version=pack.version, source=loaded.source, error=error)
        )

    async def reload(self, key: str) -> PackOutcome:
        """Build a pack anew from its source and put it in the old one's place. If that fails, the old one runs on."""
        self.packs.find(key)
        async with self._changing() as change:
            old = await self._lock(change, key)
            if old.entry is None or isinstance(old.entry.factory, ExtensionPack):
                raise PackLoadError(
                    old.key,
                    "was given as an object and has no source to reload; unload it and load the new one",
                )
            outcome = await self._reload(change, old, old.entry)
        if outcome.error is not None and old.entry.required:
            raise outcome.error
        return outcome

    async def _reload(self, change: Change, old: LoadedPack, entry: PackEntry) -> PackOutcome:
        try:
            await self._persistence.admit(entry)
            new = await self._builder.build(entry, fresh=True)
            new.key = old.key
            async with self._whole(change, new):
                outcome = await self._install(change, new, old)
        except AgentOSError as error:
            return self.failed(old.key, old.source, error)
        await to_the_end(self._unload(change, old))
        return outcome

    async def disable(self, key: str) -> PackRecord:
        """Take all of a pack's descriptors out of force; it stays loaded. Overrides can't bring them back."""
        self.packs.find(key)
        async with self._changing() as change:
            loaded = await self._lock(change, key)
            try:
                await to_the_end(self._persistence.switched(loaded.key, enabled=False))
                if loaded.disabled is None:
                    await to_the_end(self._disable(change, loaded))
            finally:
                await to_the_end(self._remember(loaded))
        return loaded.record()

    async def _disable(self, change: Change, loaded: LoadedPack) -> None:
        await self._judge_again(change, loaded, _DISABLED)
        await self._deactivate(loaded)

    async def _judge_again(self, change: Change, loaded: LoadedPack, disabled: str | None) -> None:
        await self._activator.carry_out(
            change, lambda: keys_of(loaded.slots), lambda: self._set_disabled(loaded, disabled)
        )

    def _set_disabled(self, loaded: LoadedPack, disabled: str | None) -> None:
        loaded.disabled = disabled
        self._registries.judge_again(loaded.slots)

    async def enable(self, key: str) -> PackRecord:
        """Bring a disabled pack back, whole or not at all; what had failed in an enabled one is tried again."""
        self.packs.find(key)
        async with self._changing() as change:
            loaded = await self._lock(change, key)
            try:
                await to_the_end(self._persistence.switched(loaded.key, enabled=True))
                if loaded.disabled is None:
                    await self._judge_again(change, loaded, None)
                else:
                    await self._try_to_enable(change, loaded)
            finally:
                await to_the_end(self._remember(loaded))
        return loaded.record()

    async def _remember(self, loaded: LoadedPack) -> None:
        """Have it remembered whether a pack is enabled, as it is now."""
        await self._persistence.switched(loaded.key, enabled=loaded.disabled is None)

    async def _try_to_enable(self, change: Change, loaded: LoadedPack) -> None:
        try:
            await self._enable(change, loaded)
        except HookError as error:
            self.failed(loaded.key, loaded.source, error)
            raise

    async def _enable(self, change: Change, loaded: LoadedPack) -> None:
        await self._run_hook("on_activate", loaded)
        loaded.order = self._activator.take_order()

        def alter() -> Collection[Slot]:
            self._set_disabled(loaded, None)
            return set(loaded.slots)

        def undo() -> None:
            self._set_disabled(loaded, _DISABLED)

        try:
            await self._activator.attempt(change, lambda: keys_of(loaded.slots), alter, undo)
        except BaseException:
            await to_the_end(self._deactivate(loaded))
            raise

    async def _lock(self, change: Change, key: str) -> LoadedPack:
        """Lock the pack that *key* means when it is this change's turn."""
        loaded = None
        while loaded is not (found := self.packs.find(key)):
            loaded = found
            if await self._locks.acquire(change, [f"pack {loaded.key}", f"name {loaded.pack.name}"]):
                raise PackLoadError(loaded.key, "is being changed further up; a hook can't change its own pack")
        return loaded

    # -- outcomes ----------------------------------------------------------------------------------------------

    def _skipped(self, key: str, reason: str, pack: str | None = None) -> PackOutcome:
        self._events.post(PackSkipped(key=key, pack=pack, reason=reason))
        return PackOutcome("skipped", key, pack, reason)

    def failed(self, key: str, source: Source | None, error: Exception) -> PackOutcome:
        """Log and tell that a pack could not be loaded or enabled; return the outcome."""
        pack = source.pack if source else None
        version = source.version if source else None
        if not isinstance(error, PackLoadError):
            wrapped = PackLoadError(key, self._masker.mask(str(error)))
            wrapped.__cause__ = self._masker.cleanse(error)
            error = wrapped
        self._logger.warning("%s", error, extra={"failed_pack": key})
        self._events.post(
            PackFailed(key=key, pack=pack, version=version, error=error, reason=str(error), source=source)
        )
        outcome = PackOutcome("failed", key, pack, str(error), error)
        self.packs.note_absent(outcome)
        return outcome
