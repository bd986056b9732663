"""What a test means by a pack: an object, a factory, a name, a path, a distribution's folder."""

import importlib
import importlib.util
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos import ExtensionManifest, ExtensionPack, PackEntry, PackLoadError
from agentos.loading.entry_points import GROUP
from agentos.loading.modules import is_path
from agentos.model.manifest import PERMISSIONS


def as_entry(pack: Any, options: Mapping[str, Any] | None = None) -> PackEntry:
    """Return the entry of a manifest that names *pack*; an entry keeps its own options beside *options*."""
    options = dict(options or {})
    fields: dict[str, Any] = {"options": options, "permissions": PERMISSIONS}
    if isinstance(pack, Mapping):
        pack = ExtensionManifest(packs=[pack]).packs[0]
    if isinstance(pack, PackEntry):
        return attrs.evolve(pack, options={**options, **pack.options}) if options else pack
    if _is_place(pack):
        return _of_path(Path(pack).absolute(), fields)
    if isinstance(pack, str):
        return PackEntry(package=pack, **fields)
    if isinstance(pack, ExtensionPack) or callable(pack):
        return PackEntry(factory=pack, **fields)
    if (name := getattr(pack, "__name__", None)) and hasattr(pack, "__spec__"):
        return PackEntry(module=name, **fields)
    raise TypeError(f"expected a pack, a factory, a module, a name or a path, got {type(pack).__name__}")


def _is_place(pack: Any) -> bool:
    if not isinstance(pack, str):
        return isinstance(pack, Path)
    return is_path(pack) or any(Path(pack, name).is_file() for name in ("__init__.py", "pyproject.toml"))


def folder_named(pack: Any) -> Path | None:
    """Return the folder that *pack* names, as a path; None if it is no folder, or named otherwise."""
    return Path(pack).absolute() if _is_place(pack) and Path(pack).is_dir() else None


def _of_path(path: Path, fields: Mapping[str, Any]) -> PackEntry:
    """Return the entry of a file, of a package's folder, or of a distribution's folder."""
    project = path / "pyproject.toml"
    if (path / "__init__.py").is_file() or not project.is_file():
        return PackEntry(module=str(path), **fields)
    announced = tomllib.loads(project.read_text("utf-8")).get("project", {}).get("entry-points", {}).get(GROUP, {})
    if len(announced) != 1:
        names = ", ".join(announced) or "none"
        raise PackLoadError(str(path), f"expected one entry point in the group {GROUP!r}, found {names}; name a module")
    module, _, attribute = next(iter(announced.values())).partition(":")
    _make_importable(module.strip().partition(".")[0], path)
    if not attribute:
        return PackEntry(module=module.strip(), **fields)
    found: Any = importlib.import_module(module.strip())
    for part in attribute.strip().split("."):
        found = getattr(found, part)
    return PackEntry(factory=found, **fields)


def _make_importable(module: str, project: Path) -> None:
    """Put a distribution's folder on the import path, unless its module is found already."""
    if importlib.util.find_spec(module) is not None:
        return
    for folder in (project, project / "src"):
        if (folder / module).is_dir() or (folder / f"{module}.py").is_file():
            sys.path.insert(0, str(folder))
            importlib.invalidate_caches()
            return
