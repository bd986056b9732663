"""From a manifest entry to what makes the pack: a factory, a module's export, or a pack itself."""

from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any

import attrs

from agentos.base.foreign import call_with, settled
from agentos.errors import PackLoadError
from agentos.loading.entry_points import GROUP, PackEntryPoint, PackEntryPoints
from agentos.loading.modules import LoadedModule, is_path, load_name, load_path
from agentos.model.extension_pack import ExtensionPack
from agentos.model.field_checks import did_you_mean
from agentos.model.manifest import PackEntry
from agentos.model.pack_context import PackContext

EXPORTS = ("create_extension_pack", "pack")


async def _nothing() -> None:
    """Have nothing to end."""


@attrs.frozen
class FoundPack:
    """What makes a pack, where it was found, and how to forget its modules or put back those they replaced.

    What runs for it beside the host is ended by `rest` until it is activated, and by `close` for good.
    """

    maker: Any
    origin: str
    discard: Callable[[], None] = lambda: None
    revert: Callable[[], None] = lambda: None
    rest: Callable[[], Coroutine[Any, Any, None]] = attrs.field(default=_nothing, kw_only=True)
    close: Callable[[], Coroutine[Any, Any, None]] = attrs.field(default=_nothing, kw_only=True)

    async def make(self, key: str, context: PackContext) -> ExtensionPack:
        """Make the pack; a factory gets *context* if it takes a parameter, and may be async."""
        if isinstance(self.maker, ExtensionPack):
            return self.maker
        pack = await settled(call_with(self.maker, context))
        if not isinstance(pack, ExtensionPack):
            raise PackLoadError(
                key,
                f"its factory returned {type(pack).__name__}; expected an ExtensionPack",
                origin=self.origin,
            )
        return pack


class Finder:
    """Finds what an entry names."""

    def __init__(self) -> None:
        self._announcements = PackEntryPoints()

    def find(self, entry: PackEntry, *, fresh: bool = False) -> FoundPack:
        """Return what makes *entry*'s pack; *fresh* imports its modules anew."""
        if entry.factory is not None:
            return FoundPack(entry.factory, "factory")
        if entry.module is not None:
            return self._in_module(entry.module, entry, fresh=fresh)
        return self._in_package(str(entry.package), fresh=fresh)

    def _in_module(self, name: str, entry: PackEntry, *, fresh: bool) -> FoundPack:
        loaded = load_path(name, entry.base_path) if is_path(name) else load_name(name, fresh=fresh)
        return _exported(name, loaded.module, loaded)

    def _in_package(self, name: str, *, fresh: bool) -> FoundPack:
        announced = self._announcements.find_one(name, name)
        if announced is not None:
            return _announced(announced, fresh=fresh)
        try:
            loaded = load_name(name, fresh=fresh)
        except ModuleNotFoundError as error:
            if error.name != name.partition(".")[0] and error.name != name:
                raise
        else:
            return _exported(name, loaded.module, loaded)
        hint = self._announcements.hint(name)
        raise PackLoadError(
            name, f"no entry point in the group {GROUP!r} and no importable package has this name{hint}"
        )


def _announced(announced: PackEntryPoint, *, fresh: bool) -> FoundPack:
    loaded = attrs.evolve(load_name(announced.module, fresh=fresh), origin=announced.distribution)
    target: Any = loaded.module
    try:
        for part in filter(None, announced.attribute.split(".")):
            target = getattr(target, part)
    except AttributeError:
        loaded.revert()
        raise
    if isinstance(target, ModuleType):
        return _exported(announced.name, target, loaded)
    if callable(target) or isinstance(target, ExtensionPack):
        return FoundPack(target, loaded.origin, loaded.discard, loaded.revert)
    loaded.revert()
    raise PackLoadError(
        announced.name,
        f"the entry point {announced.value!r} names a {type(target).__name__}; "
        "expected a module, a factory or an ExtensionPack",
        origin=loaded.origin,
    )


def _exported(name: str, module: ModuleType, loaded: LoadedModule) -> FoundPack:
    factory = getattr(module, EXPORTS[0], None)
    if callable(factory):
        return FoundPack(factory, loaded.origin, loaded.discard, loaded.revert)
    pack = getattr(module, EXPORTS[1], None)
    if isinstance(pack, ExtensionPack):
        return FoundPack(pack, loaded.origin, loaded.discard, loaded.revert)
    loaded.revert()
    public = [export for export in vars(module) if not export.startswith("_")]
    hint = did_you_mean(EXPORTS[0], public)
    raise PackLoadError(
        name,
        f"expected the module to export create_extension_pack (a function) or pack (an ExtensionPack){hint}",
        origin=loaded.origin,
    )
