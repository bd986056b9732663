"""Building a pack, ready to be installed: find it, run its factory, check it. Nothing is on a stack yet."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import attrs

from agentos._version import __version__
from agentos.base.foreign import Border, is_a, to_the_end
from agentos.errors import AgentOSError, OptionsError, PackLoadError, Problem
from agentos.extensions.loaded import LoadedPack
from agentos.extensions.services import ServiceHub
from agentos.loading.finder import Finder, FoundPack
from agentos.model.declared_options import as_pack_options
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.model.field_checks import frozen_mapping
from agentos.model.kind import kind_of
from agentos.model.manifest import PackEntry, fault_of_specifier
from agentos.model.overrides import OverrideLayers
from agentos.model.pack_context import Bus, PackContext, Port, SecretReader
from agentos.model.source import HOST, Source
from agentos.secrets.known_secrets import needs_of
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.secrets.sources import SecretScope, SecretSources
from agentos.stacks.slot import Owner

_FACTORY_RUNS = 5


class BusHub(Protocol):
    """Carries messages between packs."""

    def handle(self, owner: object, name: str) -> Bus:
        """Return the view of one owner; *owner* is what subscriptions belong to, *name* what is told."""
        ...

    async def release_all(self, owner: object) -> None:
        """End all of *owner*'s subscriptions."""
        ...


class PackBuilder:
    """Builds packs and the contexts they see."""

    def __init__(
        self,
        secrets: SecretSources,
        services: ServiceHub,
        masker: Masker,
        port: Callable[[Owner], Port],
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
        overrides: Callable[[], OverrideLayers] = OverrideLayers,
    ) -> None:
        self._secrets = secrets
        self._services = services
        self._masker = masker
        self._port = port
        self._finder = Finder()
        self._guard = guard
        self._overrides = overrides
        self.isolate: Callable[[PackEntry], FoundPack] | None = None
        """Finds what makes a pack in a process of its own, where there is somebody who does."""
        self.bus: BusHub | None = None
        """What carries messages between packs, where there is somebody who does."""

    async def build(self, entry: PackEntry, *, fresh: bool = False) -> LoadedPack:
        """Find what *entry* names and build its pack; every way this can fail is a PackLoadError without secrets."""
        hint = entry.label
        with Border() as border, self._guard():  # importing and making a pack runs foreign code
            found = self._find(entry, fresh=fresh)
            return await self._build(entry, found, hint)
        raise self._load_error(hint, border.raised, entry.module)

    def _find(self, entry: PackEntry, *, fresh: bool) -> FoundPack:
        if entry.isolation == "inline":
            return self._finder.find(entry, fresh=fresh)
        if self.isolate is None:
            raise PackLoadError(entry.label, "asks for isolation 'process', which an AgentOS has; a manager has not")
        return self.isolate(entry)

    def _load_error(self, hint: str, error: BaseException, origin: str | None) -> PackLoadError:
        """Return *error* itself if it says without secrets why a pack could not be loaded, else one that does."""
        if is_a(error, PackLoadError) and self._masker.cleanse(error) is error:
            return error
        why = str(error) if is_a(error, OptionsError) else f"could not be made: {self._masker.describe(error)}"
        message = self._masker.mask(f"{why}{_way_out(error)}")
        made = PackLoadError(hint, message, origin=origin)
        made.__cause__ = self._masker.cleanse(error)
        return made

    async def adopt(self, pack: ExtensionPack, options: Mapping[str, Any], priority: int | None) -> LoadedPack:
        """Take a pack that a host made itself."""
        entry = PackEntry(factory=pack, options=options, priority=priority)
        with Border() as border:  # what is in it may have methods of its own
            return await self._build(entry, FoundPack(pack, "host"), pack.name)
        if is_a(border.raised, AgentOSError):
            raise border.raised
        raise self._load_error(pack.name, border.raised, "host")

    async def _build(self, entry: PackEntry, found: FoundPack, hint: str) -> LoadedPack:
        own = entry.options.get("secrets", {})
        scope = SecretScope(hint, self._secrets, own)
        context = self._context(entry, scope, Source(hint, None, entry.identifier, found.origin))
        try:
            pack = await self._run_factory(found, hint, context, scope)
            if pack.name == "builtin":
                raise PackLoadError(hint, "the name 'builtin' belongs to the host's own tools; call the pack otherwise")
            source = Source(pack.name, pack.version, entry.identifier, found.origin)
            made = LoadedPack(
                source=source,
                scope=scope,
                context=context,
                key=entry.key or pack.name,
                pack=pack,
                entry=entry,
                found=found,
            )
            made.options = as_pack_options(pack.options)
            made.context = self._context(entry, scope, source, self._port(made))
            self._check(made)
            made.context = _with_defaults(made)
            needs = list(needs_of(pack.descriptors))
            if undeclared := scope.declare(pack.name, needs):
                names = ", ".join(repr(id) for id in undeclared)
                raise PackLoadError(
                    made.key,
                    f"its factory read {names}, which no descriptor declares; add it to required_secrets",
                    origin=found.origin,
                )
            await self._secrets.fetch(dict.fromkeys(need.id for need in needs))
        except BaseException:
            found.revert()
            await to_the_end(self._abandon(found, scope))
            raise
        return made

    async def _abandon(self, found: FoundPack, scope: SecretReader) -> None:
        try:
            await found.close()
        finally:
            await self.dismiss(scope)

    def rivals(self, pack: str) -> tuple[str, ...]:
        """Say which variables *pack* takes for one secret, and somebody else for another."""
        return tuple(self._secrets.known.rivals().get(pack, ()))

    async def dismiss(self, scope: SecretReader) -> list[Exception]:
        """Release what the owner of *scope* holds, and let it read nothing more. Returns what disposing raised."""
        await self.silence(scope)
        raised = await self._services.release_all(scope)
        scope.close()
        return raised

    async def silence(self, scope: SecretReader) -> None:
        """Let the owner of *scope* hear nothing more of what is published."""
        if self.bus is not None:
            await self.bus.release_all(scope)

    async def _run_factory(
        self, found: FoundPack, hint: str, context: PackContext, scope: SecretScope
    ) -> ExtensionPack:
        """Run the factory, and again when it asked for a secret that could not be found before it ran.

        Such a secret has to be awaited from the host's source, or is in a variable that only the pack itself names.
        """
        for _ in range(_FACTORY_RUNS):
            with Border() as border:
                pack = await found.make(hint, context)
            if waiting := scope.unfetched():
                await self._secrets.fetch(waiting)
            elif border.error is not None:
                raise border.error
            elif not scope.describe(pack.name, needs_of(pack.descriptors)):
                return pack
        return await found.make(hint, context)

    def _context(
        self, entry: PackEntry | None, scope: SecretScope, source: Source, port: Port | None = None
    ) -> PackContext:
        """Return what a pack sees: its options but for its secrets, and things in its own name."""
        if entry is not None and "secrets" in entry.options:
            options = {name: value for name, value in entry.options.items() if name != "secrets"}
            entry = attrs.evolve(entry, options=options)
        return PackContext(
            options={} if entry is None else entry.options,
            services=self._services.handle(scope, source.pack),
            logger=MaskingLogger(f"agentos.packs.{source.pack}", self._masker),
            manifest_entry=entry,
            source=source,
            secrets=scope,
            port=port,
        )

    def _check(self, made: LoadedPack) -> None:
        for problem in _problems(made):
            raise PackLoadError(made.key, problem, origin=made.source.origin)
        for descriptor in made.pack.descriptors:
            kind_of(descriptor.kind).check(descriptor)
        if made.options is not None:
            if problems := made.options.problems(made.context.options):
                raise OptionsError(problems)
            self.check_overrides(made, made.pack.descriptors, self._overrides())

    def check_overrides(self, owner: Owner, descriptors: Iterable[Descriptor[Any]], layers: OverrideLayers) -> None:
        """Raise OptionsError if overrides give *descriptors* options that their *owner* does not have."""
        if owner.options is None:
            return
        problems: list[Problem] = []
        for one in descriptors:
            said = owner.options.spelled(owner.context.options)
            for place, options in layers.options_for(one.kind, one.id, owner.source.pack):
                given = owner.options.spelled(options)
                rest = {name: value for name, value in said.items() if name not in given}
                problems += owner.options.problems({**rest, **options}, place)
                said |= given
        if problems:
            raise OptionsError(list(dict.fromkeys(problems)))

    async def declare(self, owner: Owner, descriptors: Iterable[Descriptor[Any]]) -> None:
        """Let *owner* read what *descriptors* declare; refuse them if overrides give them options that it has not."""
        descriptors = list(descriptors)
        self.check_overrides(owner, descriptors, self._overrides())
        needs = list(needs_of(descriptors))
        owner.scope.declare_more(needs)
        await self._secrets.fetch(need.id for need in needs)

    def host_owner(self, source: Source | None = None) -> Owner:
        """Return an owner that is no pack: the host, or code that it lets register things."""
        source = source or HOST
        scope = SecretScope(source.pack, self._secrets, {})
        scope.declare(source.pack, ())
        owner = Owner(source=source, scope=scope, context=self._context(None, scope, source))
        owner.context = self._context(None, scope, source, self._port(owner))
        return owner


def _problems(made: LoadedPack) -> Iterator[str]:
    pack, entry = made.pack, made.entry
    if entry is not None and entry.version is not None:
        from packaging.specifiers import SpecifierSet

        if pack.version is None:
            yield f"the manifest asks for version {entry.version}, but the pack has none"
        elif not SpecifierSet(entry.version).contains(pack.version, prereleases=True):
            yield f"the manifest asks for version {entry.version}, but the pack is {pack.version}"
    if pack.requires_agentos is not None:
        from packaging.specifiers import SpecifierSet

        if fault := fault_of_specifier(pack.requires_agentos):
            yield f"requires_agentos: {fault}"
        elif not SpecifierSet(pack.requires_agentos).contains(__version__, prereleases=True):
            yield f"it requires agentos {pack.requires_agentos}, but this is agentos {__version__}"
    keys = Counter(descriptor.key for descriptor in pack.descriptors)
    for (kind, id), count in keys.items() if len(keys) < len(pack.descriptors) else ():
        if count > 1:
            yield f"it has two descriptors for {kind}:{id}; a pack has one entry on a stack"


def _with_defaults(made: LoadedPack) -> PackContext:
    """Return what a pack sees once its options are known to be good: those that nobody gave have their defaults."""
    if made.options is None:
        return made.context
    return attrs.evolve(made.context, options=frozen_mapping(made.options.filled(made.context.options)))


def _way_out(error: BaseException) -> str:
    if is_a(error, ModuleNotFoundError) and error.name:
        return f". Install what provides {error.name!r}, or correct the name"
    return ""
