"""The child of `probe`: loads packs one after another and tells of each, one JSON object in each line.

Run as `python -m agentos.cli.probe.child_main` by `agentos.cli.probe.child_process`.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from agentos import ExtensionManager
from agentos.access.lock import LockedPack
from agentos.checks.faults import faults_of_file
from agentos.checks.snapshot import described
from agentos.checks.unmatched import NamedThings, unmatched
from agentos.cli.host_session import reason_of
from agentos.cli.layered_config import Config, kept_secrets, load_config
from agentos.cli.probe.child_process import serve_request
from agentos.cli.store_records import Records, is_there
from agentos.cli.terminal.output import plain
from agentos.errors import AgentOSError, StoreError
from agentos.kinds.persona import persona_entries
from agentos.kinds.workflow import workflow_entries
from agentos.model.declared_options import option_rows
from agentos.model.extension_pack import ExtensionPack
from agentos.model.report import PackOutcome
from agentos.stacks.entry import Entry
from agentos.store import Store
from agentos.store.locations import place_of

Tell = Callable[..., None]


async def probe(request: Mapping[str, Any], tell: Tell, mark: Callable[[], None] = lambda: None) -> None:
    """Load what *request* names, and tell how it went; *mark* is called when another pack may begin to print."""
    config = load_config(request["manifest"])
    locks = request.get("locks", False)
    store = request.get("store", config.manifest.store)
    memory, fault = (Records(None, mode="off"), None) if locks else await _open_memory(config, store)
    manager = _manager(config, memory)
    memory.pins.attach(manager)
    for index in request["indexes"]:
        entry = attrs.evolve(config.entries[index], required=False)
        mark()
        tell("start", index=index, key=entry.label)
        outcome = await manager.load(entry)
        tell("done", index=index, **_outcome(manager, outcome, entry.label, lint=request["lint"]))
    settings = config.manifest.settings
    for entry in [*persona_entries(settings.personas), *workflow_entries(settings.workflows)]:
        await manager.load(entry)
    granted = await memory.grants.list() if fault is None and not locks and is_there(store) else []
    named = NamedThings(
        deny=settings.deny,
        grants=granted,
        principals=settings.principals,
        required_guardrails=settings.required_guardrails,
    )
    told = described(manager, await memory.pins.pending(), unmatched(manager, named))
    locked = _locked(manager) if locks else []
    tell("stacks", **told, storeError=fault, locked=locked)
    await manager.shutdown()
    await memory.close()


async def _open_memory(config: Config, location: str | None) -> tuple[Records, str | None]:
    """Return what the store at *location* remembers. One that can't be used is told of, and one in memory steps in."""
    settings = config.manifest.settings
    try:
        from agentos.access.lock import Lock

        lock = None if settings.lock is None else Lock.read(settings.lock)
        for fault, _ in faults_of_file(place_of(location).path):
            raise StoreError(fault)  # not waited for: others may hold it for long
        memory = Records(location if is_there(location) else None, mode=settings.pins, lock=lock)
        await memory.onlooker.ready()
    except AgentOSError as error:
        unknown = "; which packs were disabled there is not known"
        told = f"store: {error}{unknown}" if isinstance(error, StoreError) else f"lock: {error}"
        return Records(None), told
    return memory, None


def _locked(manager: ExtensionManager) -> list[dict[str, Any]]:
    """Return what a lock file says of the packs that are loaded."""
    from agentos.access.lock_making import lock_of

    registries = [manager.registry(kind) for kind in manager.kinds()]
    lock = lock_of(manager.loaded(), [one for each in registries for id in each.ids() for one in each.stack(id)])
    fields = [field.name for field in attrs.fields(LockedPack)]
    return [{name: plain(getattr(pack, name)) for name in fields} for pack in lock.packs]


def _manager(config: Config, memory: Records) -> ExtensionManager:
    """Return a manager without a host. What packs in processes of their own declare is asked anew, and kept nowhere."""
    manager = ExtensionManager(
        attrs.evolve(config.manifest, packs=(), mcp_servers={}),
        secrets=kept_secrets(),
        overrides=config.overrides,
        dotenv=config.manifest.settings.dotenv,
        persistence=memory.onlooker,
        masker=memory.masker,
    )
    manager.isolate_by(lambda entry: _workers(manager).found(entry))
    return manager


def _workers(manager: ExtensionManager) -> Any:
    from agentos.workers.workers import Workers

    return Workers(manager, Store(None), time.monotonic)


def _outcome(manager: ExtensionManager, outcome: PackOutcome, label: str, *, lint: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"key": outcome.key or label, "status": outcome.status, "reason": reason_of(outcome)}
    record = next((one for one in manager.packs() if one.key == outcome.key), None)
    if outcome.status != "loaded" or record is None:
        return told
    entries = [
        entry
        for kind, id in record.descriptors
        for entry in manager.registry(kind).stack(id)
        if entry.source.pack == record.name
    ]
    return {
        **told,
        "pack": record.name,
        "version": record.version,
        "origin": record.source.origin,
        "offers": [_offered(entry) for entry in entries],
        "options": list(option_rows(manager.options_of(record.key) or {})),
        "warnings": list(outcome.warnings),
        "findings": _findings(record.name, record.version, entries) if lint else [],
    }


def _offered(entry: Entry) -> dict[str, Any]:
    payload = entry.payload if entry.kind == "tool" else None
    description = str(getattr(payload, "description", None) or "")
    return {
        "kind": entry.kind,
        "id": entry.id,
        "effect": getattr(payload, "effect", None),
        "description": description.partition("\n")[0][:200],
        "secrets": [requirement.id for requirement in entry.descriptor.required_secrets],
    }


def _findings(name: str, version: str | None, entries: Iterable[Entry]) -> list[dict[str, str]]:
    from agentos.tools.lint.findings import lint_pack

    made = ExtensionPack(name, version, [entry.descriptor for entry in entries])
    return [attrs.asdict(finding) for finding in lint_pack(made)]


def main() -> None:
    """Answer the request on stdin."""
    serve_request(lambda request, writer: asyncio.run(probe(request, writer.tell, writer.mark)))


if __name__ == "__main__":
    main()
