"""The workers of a host: packs in processes of their own."""

import asyncio
from collections.abc import Callable, Sequence
from weakref import WeakSet

from agentos.errors import PackLoadError, UnknownPackError
from agentos.extensions.manager import ExtensionManager
from agentos.loading.finder import FoundPack
from agentos.loading.pack_files import files_of
from agentos.model.extension_pack import ExtensionPack
from agentos.model.isolation import WorkerInfo
from agentos.model.manifest import PackEntry
from agentos.processes.supervision import SupervisionRules
from agentos.store import Store
from agentos.workers.kept_declarations import KeptDeclarations
from agentos.workers.launching import launch_plan
from agentos.workers.worker import PackWorker, WorkerSurroundings
from agentos.workers.worker_events import WorkerEvent

_MOMENT = 1.0


class Workers:
    """Lists the workers of a host, restarts them, and has what they said last."""

    def __init__(
        self,
        manager: ExtensionManager,
        store: Store,
        clock: Callable[[], float],
        rules: SupervisionRules | None = None,
    ) -> None:
        self._manager = manager
        self._kept = KeptDeclarations(store)
        self._clock = clock
        self.rules = rules or SupervisionRules()
        """How much is put up with by workers that are loaded from now on."""
        self._all: dict[PackWorker, None] = {}
        self._gone: WeakSet[PackWorker] = WeakSet()
        manager.watch(self._note_switch)

    def list(self) -> list[WorkerInfo]:
        """Return what is known of every worker, in the order in which their packs were loaded."""
        return [worker.info() for worker in self._all]

    async def restart(self, pack: str) -> None:
        """End the worker of *pack* and mount it anew, whatever was held against it; WorkerDiedError if it fails."""
        await self._find(pack).restart()

    def logs(self, pack: str) -> Sequence[str]:
        """Return the last lines that the worker of *pack* printed or logged, masked."""
        return self._find(pack).log.lines()

    def _find(self, pack: str) -> PackWorker:
        for worker in reversed(self._all):
            if pack in (worker.name, worker.entry.label):
                return worker
        raise UnknownPackError(pack, [worker.name for worker in self._all])

    async def ended(self) -> None:
        """Return when all that happened to workers is told, or after a moment."""
        if self._gone or self._all:
            await asyncio.wait(
                [asyncio.ensure_future(one.told()) for one in (*self._gone, *self._all)], timeout=_MOMENT
            )

    # -- for the manager -----------------------------------------------------------------------------------------------

    def found(self, entry: PackEntry) -> FoundPack:
        """Return what makes the pack of *entry* in a process of its own."""
        origin = _origin(entry)
        worker = PackWorker(entry, self._surroundings(entry))
        self._all[worker] = None

        async def close() -> None:
            self._all.pop(worker, None)
            self._gone.add(worker)
            await worker.leave()

        return FoundPack(worker.make, origin, rest=worker.stop, close=close)

    def _surroundings(self, entry: PackEntry) -> WorkerSurroundings:
        mask = self._manager.masker.mask

        def report(text: str) -> None:
            self._manager.logger.info("pack %r: %s", entry.label, text)

        return WorkerSurroundings(
            plan=lambda: launch_plan(entry, report=report, mask=mask),
            clock=self._clock,
            rules=self.rules,
            mask=mask,
            tell=self._tell,
            refresh=self._refresh,
            recall=lambda: self._kept.find(entry),
            remember=lambda declared: self._kept.keep(entry, declared),
        )

    def _note_switch(self, _: object) -> None:
        for worker in self._all:
            worker.note_switch()

    async def _tell(self, event: WorkerEvent) -> None:
        self._manager.events.post(event)
        await self._manager.events.deliver()

    async def _refresh(self, pack: ExtensionPack) -> None:
        if any(record.name == pack.name for record in self._manager.packs()):
            port = self._manager.port(pack.name)
            for kind in dict.fromkeys(one.kind for one in pack.descriptors):
                await port.refresh(kind)


def _origin(entry: PackEntry) -> str:
    """Say where a pack comes from; one that is only in an environment of its own is known there."""
    try:
        files = files_of(entry)
    except PackLoadError:
        if entry.python is None and not entry.requirements:
            raise
        return entry.label
    return "factory" if files is None else files.origin
