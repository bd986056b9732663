"""What a manager has, as plain values: every stack, what waits for a person, and what is wrong."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.access.pins import Pin
from agentos.checks.probed import ProbedPack, ProbeReport, report_of
from agentos.extensions.manager import ExtensionManager
from agentos.model.trouble import Trouble
from agentos.secrets.sources import DeclaredSecret
from agentos.stacks.entry import Entry, EntryState
from agentos.tools.tool import as_tool


def snapshot(manager: ExtensionManager, pins: Iterable[Pin], unmatched: Iterable[Trouble]) -> ProbeReport:
    """Return what *manager* has now, as a report."""
    told = described(manager, pins, unmatched)
    absent = [ProbedPack(index=-1, key=one.key, status=one.status, reason=one.reason) for one in manager.absent()]
    loaded = [
        ProbedPack(index=index, key=one.key, status="loaded", pack=one.name, version=one.version)
        for index, one in enumerate(manager.packs())
    ]
    return report_of([*absent, *loaded], told)


def described(manager: ExtensionManager, pins: Iterable[Pin], unmatched: Iterable[Trouble]) -> dict[str, Any]:
    """Tell of every stack, of the definitions that wait (*pins*), and of what is wrong, as JSON."""
    waiting = list(pins)
    held = {pin.tool: pin.message for pin in waiting}
    return {
        "stacks": [_stack(manager, held, kind, id) for kind in manager.kinds() for id in manager.registry(kind).ids()],
        "pending": [{"tool": pin.tool, "state": pin.state, "reason": pin.message} for pin in waiting],
        "troubles": [attrs.asdict(one) for one in manager.pack_troubles()],
        "unmatched": [attrs.asdict(one) for one in unmatched],
    }


def _stack(manager: ExtensionManager, held: Mapping[str, str], kind: str, id: str) -> dict[str, Any]:
    """Tell of a stack; *held* says why definitions wait."""
    shown = manager.explain(kind, id)
    entries = [_entry(manager, entry) for entry in shown.entries]
    for one in entries:  # which command accepts a definition, whoever shows this says itself
        if one["state"] == EntryState.GATED:
            one["reason"] = held.get(f"{one['pack']}:{id}", one["reason"])
    return {"kind": kind, "id": id, "entries": entries, "troubles": [attrs.asdict(one) for one in shown.troubles]}


def _entry(manager: ExtensionManager, entry: Entry) -> dict[str, Any]:
    return {
        "pack": entry.source.pack,
        "version": entry.source.version,
        "origin": entry.source.origin,
        "priority": entry.priority,
        "state": str(entry.state),
        "reason": entry.reason,
        "wraps": entry.descriptor.wraps,
        "secrets": list(map(_secret, manager.secrets_of(entry))),
        "rules": _access_rules(entry),
    }


def _access_rules(entry: Entry) -> list[str] | None:
    """Return what a principal needs to call a tool; None for anything but a tool."""
    tool: Any = as_tool(entry.payload) if entry.kind == "tool" else None
    return None if tool is None else [] if tool.is_public else list(tool.required_access)


def _secret(one: DeclaredSecret) -> dict[str, Any]:
    """Say whether a secret is there and where it was found, and what is known of it; never what it is."""
    return {
        "id": one.requirement.id,
        "optional": one.requirement.optional,
        "origin": one.origin,
        "definition": None if one.definition is None else attrs.asdict(one.definition),
    }
