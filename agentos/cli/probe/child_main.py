"""The child of `probe`: loads packs one after another and tells of each, one JSON object in each line.

Run as `python -m agentos.cli.probe.child_main` by `agentos.cli.probe.child_process`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from agentos import ExtensionManager
from agentos.access.lock import LockedPack
from agentos.cli.faults import faults_of_file
from agentos.cli.host_session import reason_of
from agentos.cli.layered_config import Config, kept_secrets, load_config
from agentos.cli.probe.child_process import serve_request
from agentos.cli.store_records import Records, is_there
from agentos.cli.terminal.output import plain
from agentos.errors import AgentOSError, StoreError
from agentos.model.descriptor import SecretRequirement
from agentos.model.extension_pack import ExtensionPack
from agentos.model.report import PackOutcome
from agentos.secrets.sources import SecretSources
from agentos.stacks.entry import Entry, EntryState
from agentos.stacks.registry import Registry
from agentos.store.locations import place_of
from agentos.tools.tool import as_tool

Tell = Callable[..., None]


async def probe(request: Mapping[str, Any], tell: Tell, mark: Callable[[], None] = lambda: None) -> None:
    """Load what *request* names, and tell how it went; *mark* is called when another pack may begin to print."""
    config = load_config(request["manifest"])
    locks = request.get("locks", False)
    store = request.get("store", config.manifest.store)
    memory, fault = (Records(None, mode="off"), None) if locks else await _open_memory(config, store)
    manager = _manager(config, memory)
    memory.pins.attach(manager)
    own: dict[str, Mapping[str, str]] = {}
    for index in request["indexes"]:
        entry = attrs.evolve(config.entries[index], required=False)
        mark()
        tell("start", index=index, key=entry.label)
        outcome = await manager.load(entry)
        tell("done", index=index, **_outcome(manager, outcome, entry.label, lint=request["lint"]))
        own |= {one.name: entry.options.get("secrets", {}) for one in manager.packs() if one.key == outcome.key}
    pins = await memory.pins.pending()
    pending = [{"tool": pin.tool, "state": pin.state, "reason": pin.message} for pin in pins]
    held = {pin.tool: pin.message for pin in pins}
    stacks = [
        await _stack_data(manager.secret_sources, own, manager.registry(kind), id)
        for kind in manager.kinds()
        for id in manager.registry(kind).ids()
    ]
    for stack in stacks:  # which command accepts a definition, the command says itself
        for one in stack["entries"]:
            if one["state"] == EntryState.GATED:
                one["reason"] = held.get(f"{one['pack']}:{stack['id']}", one["reason"])
    locked = _locked(manager) if locks else []
    tell("stacks", stacks=stacks, pending=pending, storeError=fault, locked=locked)
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
    return ExtensionManager(
        attrs.evolve(config.manifest, packs=(), mcp_servers={}),
        secrets=kept_secrets(),
        overrides=config.overrides,
        dotenv=config.manifest.settings.dotenv,
        persistence=memory.onlooker,
        masker=memory.masker,
    )


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


async def _stack_data(
    sources: SecretSources, own: Mapping[str, Mapping[str, str]], registry: Registry, id: str
) -> dict[str, Any]:
    """Tell of a stack; *own* has the secrets in packs' own options, by pack."""
    entries = [await _entry_data(sources, own.get(entry.source.pack, {}), entry) for entry in registry.stack(id)]
    return {"kind": registry.kind, "id": id, "entries": entries}


async def _entry_data(sources: SecretSources, own: Mapping[str, str], entry: Entry) -> dict[str, Any]:
    return {
        "pack": entry.source.pack,
        "version": entry.source.version,
        "origin": entry.source.origin,
        "priority": entry.priority,
        "state": str(entry.state),
        "reason": entry.reason,
        "wraps": entry.descriptor.wraps,
        "secrets": [await _secret_data(sources, own, one) for one in entry.descriptor.required_secrets],
        "rules": _access_rules(entry),
    }


def _access_rules(entry: Entry) -> list[str] | None:
    """Return what a principal needs to call a tool; None for anything but a tool."""
    tool: Any = as_tool(entry.payload) if entry.kind == "tool" else None
    return None if tool is None else [] if tool.is_public else list(tool.required_access)


async def _secret_data(
    sources: SecretSources, own: Mapping[str, str], requirement: SecretRequirement
) -> dict[str, Any]:
    """Say whether a secret is there and where it was found; never what it is."""
    await sources.fetch([requirement.id])
    found = sources.find(requirement.id, own)
    return {"id": requirement.id, "optional": requirement.optional, "origin": None if found is None else found[1]}


def main() -> None:
    """Answer the request on stdin."""
    serve_request(lambda request, writer: asyncio.run(probe(request, writer.tell, writer.mark)))


if __name__ == "__main__":
    main()
