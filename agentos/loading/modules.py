"""Modules of packs: found by dotted name or by path, and made anew when a pack is reloaded."""

import importlib
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import attrs

_numbers = itertools.count(1)


def _past_the_cache(loader: SourceLoader) -> SourceLoader:
    """Let *loader* compile the source as it is now. Cached bytecode is as old as its time stamp: whole seconds.

    A loader that can't tell how old a source is neither reads nor writes bytecode, whoever made its class: a host may
    have import hooks of its own.
    """

    def path_stats(path: str) -> NoReturn:
        raise OSError(f"{path} is always compiled")

    loader.path_stats = path_stats  # type: ignore[method-assign]
    return loader


class _FreshFinder(MetaPathFinder):
    """Finds the modules of packs past every cache, for as long as their pack is loaded."""

    def __init__(self) -> None:
        self.roots: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not any(fullname == root or fullname.startswith(f"{root}.") for root in self.roots):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceLoader):
            _past_the_cache(spec.loader)
        return spec


_finder = _FreshFinder()


@attrs.frozen
class LoadedModule:
    """A module of a pack; how to forget it with its pack, and how to put back what it replaced."""

    module: ModuleType
    origin: str
    discard: Callable[[], None] = lambda: None
    revert: Callable[[], None] = lambda: None


def is_path(name: str) -> bool:
    """Tell a path from a dotted name."""
    return name.endswith(".py") or "/" in name or os.sep in name


def locate(name: str, base: Path | None) -> tuple[Path, Path]:
    """Return the place that *name* means, seen from *base*, and the file that is run of it."""
    path = Path(os.path.normpath((base or Path.cwd()) / Path(name).expanduser()))
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        wanted = "a folder with an __init__.py" if path.is_dir() else "a .py file or a folder"
        raise ModuleNotFoundError(f"expected {wanted} at {path}")
    return path, file


def load_path(name: str, base: Path | None) -> LoadedModule:
    """Execute the file or package folder at *name*, as a module of a name of its own."""
    path, file = locate(name, base)
    root = f"_agentos_pack_{next(_numbers)}_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}"
    locations = [str(path)] if path.is_dir() else None
    loader = _past_the_cache(SourceFileLoader(root, str(file)))
    spec = importlib.util.spec_from_file_location(root, file, loader=loader, submodule_search_locations=locations)
    if spec is None:  # can't happen with a loader given; the import system's types allow it
        raise ImportError(f"{file} can't be imported")
    module = importlib.util.module_from_spec(spec)

    def discard() -> None:
        _finder.roots.discard(root)
        _take_out(root)

    _watch(root)
    sys.modules[root] = module
    try:
        loader.exec_module(module)
    except BaseException:
        discard()
        raise
    return LoadedModule(module, str(file), discard, discard)


def load_name(name: str, *, fresh: bool = False) -> LoadedModule:
    """Import the module called *name*; *fresh* makes it and its submodules anew, or leaves all as it was."""
    if not fresh:
        module = importlib.import_module(name)
        return LoadedModule(module, _origin_of(module))
    _watch(name)
    kept = _take_out(name)

    def revert() -> None:
        _take_out(name)
        _put_back(name, kept)

    try:
        module = importlib.import_module(name)
    except BaseException:
        revert()
        raise
    return LoadedModule(module, _origin_of(module), revert=revert)


def _watch(root: str) -> None:
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.roots.add(root)
    importlib.invalidate_caches()


def _take_out(root: str) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == root or name.startswith(f"{root}.")]
    return {name: sys.modules.pop(name) for name in names}


def _put_back(root: str, kept: dict[str, ModuleType]) -> None:
    """Restore modules, and the attribute by which a parent package knows the first of them."""
    sys.modules.update(kept)
    parent, _, child = root.rpartition(".")
    if parent in sys.modules and root in kept:
        setattr(sys.modules[parent], child, kept[root])


def _origin_of(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or module.__name__
