"""Building a pack, ready to be installed: find it, run its factory, check it. Nothing is on a stack yet."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs

from agentos._version import __version__
from agentos.base.foreign import Border, is_a, to_the_end
from agentos.errors import AgentOSError, PackLoadError
from agentos.extensions.loaded import LoadedPack
from agentos.extensions.services import ServiceHub
from agentos.loading.finder import Finder, FoundPack
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.model.kind import kind_of
from agentos.model.manifest import PackEntry, fault_of_specifier
from agentos.model.pack_context import PackContext, Port, SecretReader
from agentos.model.source import HOST, Source
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.secrets.sources import SecretScope, SecretSources
from agentos.stacks.slot import Owner

_FACTORY_RUNS = 5


class PackBuilder:
    """Builds packs and the contexts they see."""

    def __init__(
        self,
        secrets: SecretSources,
        services: ServiceHub,
        masker: Masker,
        port: Callable[[Owner], Port],
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._secrets = secrets
        self._services = services
        self._masker = masker
        self._port = port
        self._finder = Finder()
        self._guard = guard

    async def build(self, entry: PackEntry, *, fresh: bool = False) -> LoadedPack:
        """Find what *entry* names and build its pack; every way this can fail is a PackLoadError without secrets."""
        hint = entry.label
        if entry.isolation != "inline":
            raise PackLoadError(hint, "asks for isolation 'process'; this version runs packs inline only")
        with Border() as border, self._guard():  # importing and making a pack runs foreign code
            found = self._finder.find(entry, fresh=fresh)
            return await self._build(entry, found, hint)
        raise self._load_error(hint, border.raised, entry.module)

    def _load_error(self, hint: str, error: BaseException, origin: str | None) -> PackLoadError:
        """Return *error* itself if it says without secrets why a pack could not be loaded, else one that does."""
        if is_a(error, PackLoadError) and self._masker.cleanse(error) is error:
            return error
        message = f"could not be made: {self._masker.describe(error)}{_way_out(error)}"
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
            made.context = self._context(entry, scope, source, self._port(made))
            self._check(made)
            declared = dict.fromkeys(need.id for one in pack.descriptors for need in one.required_secrets)
            if undeclared := scope.declare(pack.name, declared):
                names = ", ".join(repr(id) for id in undeclared)
                raise PackLoadError(
                    made.key,
                    f"its factory read {names}, which no descriptor declares; add it to required_secrets",
                    origin=found.origin,
                )
            await self._secrets.fetch(declared)
        except BaseException:
            found.revert()
            await to_the_end(self.dismiss(scope))
            raise
        return made

    async def dismiss(self, scope: SecretReader) -> list[Exception]:
        """Release what the owner of *scope* holds, and let it read nothing more. Returns what disposing raised."""
        raised = await self._services.release_all(scope)
        scope.close()
        return raised

    async def _run_factory(
        self, found: FoundPack, hint: str, context: PackContext, scope: SecretScope
    ) -> ExtensionPack:
        """Run the factory, and again when it asked for a secret that has to be awaited from the host's source."""
        for _ in range(_FACTORY_RUNS):
            with Border() as border:
                pack = await found.make(hint, context)
            if not (waiting := scope.unfetched()):
                if border.error is not None:
                    raise border.error
                return pack
            await self._secrets.fetch(waiting)
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

    async def declare(self, owner: Owner, descriptors: Iterable[Descriptor[Any]]) -> None:
        """Let *owner* read what *descriptors* declare."""
        ids = [need.id for descriptor in descriptors for need in descriptor.required_secrets]
        owner.scope.declare_more(ids)
        await self._secrets.fetch(ids)

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


def _way_out(error: BaseException) -> str:
    if is_a(error, ModuleNotFoundError) and error.name:
        return f". Install what provides {error.name!r}, or correct the name"
    return ""
