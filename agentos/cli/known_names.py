"""What packs and servers of a manifest offered when they were last loaded: completion is there at once by it.

Every command that loads packs remembers what they offer, in a file for each manifest in the data folder. To complete a
name nothing is loaded but a pack whose files, or whose manifest, changed since; a server is never started for it.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from agentos.base.atomic_files import replace_file
from agentos.cli.app import App, completing
from agentos.cli.manifest_entries import ManifestEntry, entries_in
from agentos.loading.modules import is_path

if TYPE_CHECKING:
    from agentos.checks.probed import ProbeReport
    from agentos.cli.layered_config import Config
    from agentos.host import AgentOS

_PATIENCE = 5.0
"""For how many seconds one pack may be loading while somebody waits for a completion."""

Offer = tuple[str, str, str]
"""A kind, an id, and the pack that offers it."""


@attrs.frozen
class KnownEntry:
    """What an entry of the manifest offered, and when it began to be loaded."""

    at: float
    offers: list[Offer]

    @classmethod
    def parse(cls, said: Any) -> "KnownEntry | None":
        """Read an entry of the file; None if it is damaged."""
        try:
            return cls(float(said["at"]), [(str(kind), str(id), str(pack)) for kind, id, pack in said["offers"]])
        except (KeyError, TypeError, ValueError):
            return None


class NamesFile:
    """The file of one manifest: by the key of an entry, what is known of it."""

    def __init__(self, manifest: Path) -> None:
        from agentos.store.locations import data_folder

        self._manifest = manifest
        name = hashlib.sha256(str(manifest.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self.path = data_folder() / "names" / f"{name}.json"

    def read(self) -> dict[str, KnownEntry]:
        """Return what is known; nothing where the file is missing or damaged."""
        with contextlib.suppress(OSError, ValueError):
            data = json.loads(self.path.read_bytes())
            said = {key: KnownEntry.parse(one) for key, one in data.items()} if isinstance(data, dict) else {}
            return {key: one for key, one in said.items() if one is not None}
        return {}

    def update(self, new: Mapping[str, KnownEntry], modules: Mapping[str, str | None]) -> None:
        """Note what is known anew. *modules* has every entry of the manifest, and the module that it names."""
        known = {key: one for key, one in self.read().items() if key in modules}
        if all(self._says(known.get(key), one, modules.get(key)) for key, one in new.items()):
            return
        data = {key: attrs.asdict(one) for key, one in {**known, **new}.items()}
        with contextlib.suppress(OSError):  # a convenience: nothing is lost without it
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self.path, json.dumps(data).encode(), private=True)

    def _says(self, known: KnownEntry | None, one: KnownEntry, module: str | None) -> bool:
        return known is not None and known.offers == one.offers and self.is_fresh(known, module)

    def is_fresh(self, known: KnownEntry, module: str | None) -> bool:
        """Tell whether neither the manifest changed since nor the files of a module that is named by its path."""
        return all(_changed_at(one) < known.at for one in (self._manifest, *_files(self._manifest.parent, module)))


def _files(folder: Path, module: str | None) -> list[Path]:
    if not isinstance(module, str) or not is_path(module):
        return []
    place = folder / Path(module).expanduser()
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


# -- remembering -------------------------------------------------------------------------------------------------------


def remember_host(config: "Config", host: "AgentOS", began: float) -> None:
    """Remember what a host loaded that *began* to do so at a time."""
    manager = host.extensions
    stacks = ((kind, id) for kind in manager.kinds() for id in manager.registry(kind).ids())
    offers = [(kind, id, one.source.pack) for kind, id in stacks for one in manager.registry(kind).stack(id)]
    _remember(config, {one.key: one.name for one in manager.packs()}, offers, began)


def remember_probe(config: "Config", report: "ProbeReport", began: float) -> None:
    """Remember what packs offered in a process of their own. What could not be loaded offers nothing."""
    offers = [(stack.kind, stack.id, entry.pack) for stack in report.stacks for entry in stack.entries]
    _remember(config, {one.key: one.pack for one in report.packs if one.status != "skipped"}, offers, began)


def _remember(config: "Config", packs: Mapping[str, str | None], offers: Iterable[Offer], began: float) -> None:
    """Remember what each pack offers; *packs* has their names by the keys of their entries."""
    found = sorted(set(offers))
    new = {key: KnownEntry(began, [one for one in found if one[2] == name]) for key, name in packs.items()}
    NamesFile(config.path).update(new, {entry.label: entry.module for entry in config.entries})


# -- recalling ---------------------------------------------------------------------------------------------------------


def offers_of(app: App) -> list[Offer]:
    """Return what the enabled packs and servers of the manifest offer; packs that changed are loaded to find out."""
    path = app.find_manifest()
    if path is None:
        return []
    file, entries = NamesFile(path), [one for one in entries_in(path) if one.is_enabled]
    if not _is_all_fresh(file, entries):
        _load_again(path)
    known = file.read()
    return [offer for one in entries if one.key in known for offer in known[one.key].offers]


def _is_all_fresh(file: NamesFile, entries: Iterable[ManifestEntry]) -> bool:
    known = file.read()
    return all(
        one.is_server or (one.key in known and file.is_fresh(known[one.key], one.said.get("module"))) for one in entries
    )


def _load_again(path: Path) -> None:
    """Load the packs of the manifest in a process of their own, and no server."""
    from agentos.cli.layered_config import load_config
    from agentos.cli.probe.isolated_load import probe

    config, began = load_config(path), time.time()
    remember_probe(config, probe(config, _PATIENCE, only=range(len(config.manifest.packs))), began)


# -- completing --------------------------------------------------------------------------------------------------------


def _tools(offers: Iterable[Offer]) -> Iterator[str]:
    for kind, id, pack in offers:
        if kind == "tool":
            yield from (id, f"{pack}:{id}")


def _names(offers: Iterable[Offer]) -> Iterator[str]:
    for kind, id, _ in offers:
        yield from (f"{kind}:{id}", *([id] if kind == "tool" else []))


def _completing_offers(
    names: Callable[[Iterable[Offer]], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    return completing(lambda app: sorted(set(names(offers_of(app)))))


complete_tool = _completing_offers(_tools)
"""Completes the name of a tool, or pack:name."""
complete_qualified_tool = _completing_offers(
    lambda offers: (f"{pack}:{id}" for kind, id, pack in offers if kind == "tool")
)
"""Completes pack:name of a tool."""
complete_name = _completing_offers(_names)
"""Completes kind:id, or the name of a tool."""
complete_kind = _completing_offers(lambda offers: (kind for kind, _, _ in offers))
"""Completes a kind of which something is offered."""
