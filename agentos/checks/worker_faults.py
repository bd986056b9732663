"""What may be wrong with packs in processes of their own: their Python, environment, confinement, and how they do."""

import asyncio
from collections.abc import Iterable, Iterator
from shlex import quote

from agentos.errors import PackLoadError
from agentos.model.isolation import WorkerInfo, WorkerState
from agentos.model.manifest import ExtensionManifest, PackEntry
from agentos.model.trouble import Trouble


def faults_of_entries(manifest: ExtensionManifest) -> Iterator[Trouble]:
    """Yield what keeps workers of *manifest* from being started here."""
    for entry in manifest.packs:
        if entry.enabled and entry.isolation == "process":
            yield from asyncio.run(_faults_of(entry))


async def _faults_of(entry: PackEntry) -> list[Trouble]:
    from agentos.workers.confinement import missing_for
    from agentos.workers.environments import Environments
    from agentos.workers.interpreters import check_packages, interpreter_for

    about, found = f"worker {entry.label}", list[Trouble]()
    confine = entry.worker.confine
    lack = confine and missing_for(network=confine.network, limits_writing=confine.write is not None)
    if lack:
        cure = "run it where the system can, or take confine out and know that nothing confines it"
        found.append(Trouble("error", about, f"it can't be confined here: {lack}", cure))
    try:
        base = await interpreter_for(entry)
        if not entry.requirements:
            check_packages(entry, base)
        elif Environments().found_for(entry, base) is None:
            message = f"its environment for {', '.join(entry.requirements)} is not made yet"
            cure = f"start it once while packages can be installed: agentos packs show --probe {quote(entry.label)}"
            found.append(Trouble("warning", about, message, cure))
    except PackLoadError as error:
        found.append(Trouble("error", about, error.message, "correct python in its entry, or install that interpreter"))
    return found


def faults_of_running(workers: Iterable[WorkerInfo]) -> Iterator[Trouble]:
    """Yield which workers are degraded, and which died of late."""
    for one in workers:
        if one.state == WorkerState.DEGRADED:
            cure = f"agentos workers logs {quote(one.pack)} says what it said last; mend it, then restart it"
            yield Trouble("error", f"worker {one.pack}", f"it is degraded: {one.reason}", cure)
        elif one.strikes:
            times = "" if one.strikes == 1 else f" {one.strikes} times of late"
            cure = f"agentos workers logs {quote(one.pack)} says what it said last"
            yield Trouble("warning", f"worker {one.pack}", f"it died{times}: {one.reason}", cure)
