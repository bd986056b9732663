"""What is loaded: packs of any number and size, with payloads that cost nothing."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from agentos import Descriptor, ExtensionManager, ExtensionManifest, ExtensionPack, PackEntry

KIND = "benchmark"
GROUP = "agentos.packs"


def payload() -> None:
    """Do nothing."""


async def hook(context: Any) -> None:
    """Do nothing, when an entry comes into force."""


def ids_of(pack: int, count: int) -> list[str]:
    return [f"p{pack}-{index}" for index in range(count)]


def make_pack(name: str, ids: Iterable[str], **fields: Any) -> ExtensionPack:
    return ExtensionPack(name, "1.0", [Descriptor(KIND, id, payload, **fields) for id in ids])


def factory_of(name: str, ids: Iterable[str], **fields: Any) -> Callable[[], ExtensionPack]:
    """Return a plain function, as packs export one; a partial would have its signature inspected at each load."""

    def create_extension_pack() -> ExtensionPack:
        return make_pack(name, ids, **fields)

    return create_extension_pack


def factories(packs: int, descriptors: int, **fields: Any) -> Iterator[Callable[[], ExtensionPack]]:
    for pack in range(packs):
        yield factory_of(f"pack{pack}", ids_of(pack, descriptors), **fields)


def manifest_of(makers: Iterable[Any], *, named: bool = True) -> ExtensionManifest:
    """Return a manifest of factories or packs; *named* gives each entry an identifier, its key before it is made."""
    return ExtensionManifest(
        [PackEntry(factory=maker, identifier=f"pack{number}" if named else None) for number, maker in enumerate(makers)]
    )


async def load_all(manifest: ExtensionManifest) -> ExtensionManager:
    """Return a manager that has loaded every pack of *manifest*; a benchmark of failures would be worthless."""
    manager = ExtensionManager(manifest)
    report = await manager.load_manifest()
    report.raise_on_failure()
    if len(report.loaded) != len(manifest.packs):
        raise RuntimeError(f"only {len(report.loaded)} of {len(manifest.packs)} packs were loaded")
    return manager


_MODULE = """\
from benchmarks._packs import ids_of, make_pack

def create_extension_pack():
    return make_pack("installed{number}", ids_of({number}, {descriptors}))
"""


def install(folder: Path, packs: int, descriptors: int) -> None:
    """Make *folder* look as if *packs* distributions were installed there, each announcing one pack."""
    for number in range(packs):
        info = folder / f"installed{number}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: installed{number}\nVersion: 1.0\n")
        module = f"installed{number}:create_extension_pack"
        (info / "entry_points.txt").write_text(f"[{GROUP}]\ninstalled{number} = {module}\n")
        (folder / f"installed{number}.py").write_text(_MODULE.format(number=number, descriptors=descriptors))
