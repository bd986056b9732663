"""The entries of a manifest as they are written, found by the names that people use. Nothing is imported for it."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import attrs

from agentos.cli.app import App, Fail, completing
from agentos.cli.manifest_edit.edits import Keys
from agentos.model.field_checks import did_you_mean
from agentos.model.parsing import read_file

if TYPE_CHECKING:
    from agentos.loading.entry_points import PackEntryPoint


@attrs.frozen
class ManifestEntry:
    """An entry in the file: its key, where it stands, and what it says."""

    key: str
    at: Keys
    said: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def is_server(self) -> bool:
        """Tell an MCP server from a pack."""
        return self.at[0] == "mcpServers"

    @property
    def is_enabled(self) -> bool:
        """Tell whether the file lets it load."""
        return self.said.get("enabled", self.said.get("disabled") is not True) is not False

    @property
    def source(self) -> str:
        """Say where it comes from, as written."""
        if self.is_server:
            place = self.said.get("command") or str(self.said.get("url", "")).partition("?")[0]
            return f"server {place}"
        kind = next((kind for kind in ("module", "package") if kind in self.said), "factory")
        return f"{kind} {self.said.get(kind, '')}"

    def names(self) -> set[str]:
        """Return what people may call it, besides its key."""
        names = {str(self.said[kind]) for kind in ("module", "package") if kind in self.said}
        names |= {str(self.at[-1])} if self.is_server else set()
        short = {_stem(name).removeprefix("agentos_pack_") for name in names}
        return names | {_stem(name) for name in names} | short | {name.replace("_", "-") for name in short}


def _stem(name: str) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.stem if path.suffix == ".py" or "/" in name else name.rpartition(".")[2]


def entries_in(path: Path) -> list[ManifestEntry]:
    """Return every entry of the manifest at *path* that has a name, whatever else is wrong with the file."""
    data = read_file(path)
    return list(_written(data)) if isinstance(data, dict) else []


def _written(data: Mapping[str, Any]) -> Iterator[ManifestEntry]:
    packs, servers = data.get("packs"), data.get("mcpServers")
    for index, said in enumerate(packs if isinstance(packs, list) else ()):
        if isinstance(said, dict):
            key = said.get("identifier") or said.get("package") or said.get("module") or f"packs[{index}]"
            yield ManifestEntry(str(key), ("packs", index), said)
    for name, said in (servers if isinstance(servers, dict) else {}).items():
        if isinstance(said, dict):
            yield ManifestEntry(f"mcp/{name}", ("mcpServers", name), said)


def find_entries(path: Path, name: str, others: Iterable[str] = ()) -> list[ManifestEntry]:
    """Return the entries that *name* means: by key, else by another name; fail with the nearest ones if none is.

    *others* are names that would do as well, though they are not in the manifest.
    """
    entries = entries_in(path)
    found = [one for one in entries if one.key == name] or [one for one in entries if name in one.names()]
    if not found:
        known = [one.key for one in entries]
        hint = did_you_mean(name, {*known, *others, *(short for one in entries for short in one.names())})
        raise Fail(
            f"no pack {name!r} in {path.name}{hint}",
            hint=f"there are {', '.join(known)}" if known else "it has no packs",
        )
    if len({one.key for one in found}) > 1:
        raise Fail(f"{name!r} may mean {' or '.join(one.key for one in found)}", code=2, hint="use one of these")
    return found


def announced() -> "list[PackEntryPoint]":
    """Return the packs that installed distributions announce, sorted by name; none of them is imported."""
    from agentos.loading.entry_points import PackEntryPoints

    installed = PackEntryPoints()
    return [one for name in installed.names() for one in installed.find(name)]


def find_announced(name: str) -> "PackEntryPoint | None":
    """Return the installed pack that *name* means: by its own name, its module or its distribution, or shortly."""
    for one in announced():
        names = {one.name, one.module, one.distribution.partition(" ")[0]}
        if name in names | ManifestEntry("", ("packs", 0), {"package": one.name, "module": one.module}).names():
            return one
    return None


def is_in_manifest(app: App, name: str) -> bool:
    """Tell whether there is a manifest, and a pack in it that *name* means."""
    path = app.find_manifest()
    return path is not None and any(name in (one.key, *one.names()) for one in entries_in(path))


def _keys(app: App) -> list[str]:
    path = app.find_manifest()
    return [] if path is None else [one.key for one in entries_in(path)]


def _keys_and_installed(app: App) -> list[str]:
    return list(dict.fromkeys([*_keys(app), *(one.name for one in announced())]))


complete_pack = completing(_keys)
"""Completes the key of a pack in the manifest."""
complete_any_pack = completing(_keys_and_installed)
"""Completes the key of a pack in the manifest, or the name of one that is installed."""
complete_new_pack = completing(lambda app: sorted({one.name for one in announced()} - set(_keys(app))))
"""Completes the name of a pack that is installed and not in the manifest."""
