"""What is measured in a process of its own: `python -m benchmarks._children <name> <arguments>` prints one number."""

import asyncio
import gc
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentos import PackEntry
from agentos.model.manifest import ExtensionManifest
from benchmarks import _packs

PER_PACK = 10
STATM = Path("/proc/self/statm")
"""Where Linux tells how much memory is resident."""


def _hold(what: str, descriptors: int) -> Any:
    """Make that many descriptors and return what keeps them: a dict by id, or a manager that loaded them."""
    makers = _packs.factories(descriptors // PER_PACK, PER_PACK)
    if what == "manager":
        return asyncio.run(_packs.load_all(_packs.manifest_of(makers)))
    return {one.id: one for make in makers for one in make().descriptors}


def traced(what: str, descriptors: str) -> float:
    """Return the bytes that Python's allocator handed out per descriptor and that are still held."""
    _hold(what, PER_PACK)  # what is made once stays out of the count
    gc.collect()
    tracemalloc.start()
    held = _hold(what, int(descriptors))
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    del held
    return size / int(descriptors)


def resident(what: str, descriptors: str) -> float:
    """Return the bytes per descriptor by which the resident memory of the process grew."""
    _hold(what, PER_PACK)
    gc.collect()
    before = _resident_bytes()
    held = _hold(what, int(descriptors))
    gc.collect()
    after = _resident_bytes()
    del held
    return (after - before) / int(descriptors)


def _resident_bytes() -> int:
    # Not ru_maxrss: a child starts with its parent's peak, and growth below that does not show.
    pages = int(STATM.read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def installed(who: str, folder: str, packs: str) -> float:
    """Return the CPU time to find, import and make the packs that are installed in *folder*; ours loads them too."""
    sys.path.insert(0, folder)
    names = [f"installed{number}" for number in range(int(packs))]
    load = _LOADERS[who](names)
    began = time.process_time_ns()
    count = load()
    taken = (time.process_time_ns() - began) / 1e9
    if count != len(names):
        raise RuntimeError(f"only {count} of {len(names)} packs were loaded")
    return taken


def _agentos(names: list[str]) -> Callable[[], int]:
    manifest = ExtensionManifest([PackEntry(package=name) for name in names])
    return lambda: len(asyncio.run(_packs.load_all(manifest)).packs())


def _agentos_factories(names: list[str]) -> Callable[[], int]:
    manifest = _packs.manifest_of(_packs.factories(len(names), PER_PACK), named=False)
    return lambda: len(asyncio.run(_packs.load_all(manifest)).packs())


def _stevedore_named(names: list[str]) -> Callable[[], int]:
    from stevedore import NamedExtensionManager

    return lambda: len(NamedExtensionManager(_packs.GROUP, names, invoke_on_load=True).extensions)


def _stevedore_enabled(names: list[str]) -> Callable[[], int]:
    from stevedore import EnabledExtensionManager

    wanted = frozenset(names)

    def is_wanted(extension: Any) -> bool:
        return extension.name in wanted

    return lambda: len(EnabledExtensionManager(_packs.GROUP, is_wanted, invoke_on_load=True).extensions)


_LOADERS = {
    "agentos": _agentos,
    "factories": _agentos_factories,
    "named": _stevedore_named,
    "enabled": _stevedore_enabled,
}
_TASKS = {"traced": traced, "resident": resident, "installed": installed}

if __name__ == "__main__":
    print(_TASKS[sys.argv[1]](*sys.argv[2:]))
