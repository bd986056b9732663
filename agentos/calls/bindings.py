"""What a proposal is bound to: its tool as it was, and the tools on its stack that take part."""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import attrs

from agentos.access.proposals import Stored
from agentos.base.canonical import canonical, digest
from agentos.calls.call_plans import CallPlans
from agentos.calls.tool_catalog import ToolCatalog
from agentos.model.extension_pack import ExtensionPack
from agentos.payloads.payload_context import owner_of
from agentos.secrets.masking import safe_repr
from agentos.stacks.entry import Entry, EntryState
from agentos.tools.ready import ReadyTool
from agentos.tools.tool import EFFECTS

_AGAIN = "make the call again to propose it as it is now"
_DEPTH = 64


@attrs.frozen
class BoundTool:
    """What of one tool counts: who it is, what it says of itself, where it came from and which options reach it.

    `origin` and `options` are seals: the store keeps nothing of what they were made from.
    """

    id: str
    definition: str
    version: str | None
    origin: str
    options: str

    def differences(self, now: "BoundTool") -> list[str]:
        """Name what is not as it was, in words."""
        version = f"version ({self.version or 'none'} then, {now.version or 'none'} now)"
        words = {"definition": "definition", "version": version, "origin": "origin", "options": "options"}
        return [word for name, word in words.items() if getattr(self, name) != getattr(now, name)]


@attrs.frozen
class Bindings:
    """Says what of a tool a proposal is bound to, and how the tool differs from that later."""

    catalog: ToolCatalog
    plans: CallPlans
    seal: Callable[[str], str]
    """Make a keyed hash of a text, with the key of the store."""

    def fault(self, ready: ReadyTool, stored: Stored) -> str | None:
        """Say how the tool, or one that takes part, differs from what was proposed; None if all is as it was."""
        state, kept = _parsed(stored.entry_state)
        if state != ready.entry.state:
            return self.why_not_in_force(stored)
        if kept is None:
            return f"it was proposed by an earlier version of agentos, which kept less of what it is for; {_AGAIN}"
        return _difference(stored.proposal.tool, kept, self._chain(ready))

    def place(self, ready: ReadyTool) -> str:
        """Return what is kept of a tool: its state on its stack, and the tools that take part, the strongest first.

        Those are the tools in force there; of a call that names a shadowed tool it is that one alone.
        """
        return f"{ready.entry.state} {canonical([attrs.astuple(one) for one in self._chain(ready)])}"

    def _chain(self, ready: ReadyTool) -> list[BoundTool]:
        if ready.entry.state is EntryState.SHADOWED:
            return self._with_middleware(ready)
        standing = [entry for entry in self.catalog.registry.stack(ready.entry.id) if entry.state.in_force]
        # The tool itself as it was found: its options may be others by now.
        found = [ready if entry._slot is ready.slot else self.catalog.ready_of(entry) for entry in standing]  # noqa: SLF001 - our own
        return [bound for one in found if one is not None for bound in self._with_middleware(one)]

    def _with_middleware(self, ready: ReadyTool) -> list[BoundTool]:
        """Return a tool and what runs around it."""

        def sealed(value: Any) -> str:
            return self.seal(canonical(value))

        around = [
            _bound_entry(one.entry, f"{one.qualified_id} around it", "", sealed)
            for one in self.plans.of(ready).middleware
        ]
        return [_bound(ready, sealed), *around]

    def shown_beneath(self, ready: ReadyTool) -> Callable[[ReadyTool], bool]:
        """Return what tells whether a tool is one that *ready* wraps now: who approved *ready* was shown those."""
        shown = {_bound(one, digest) for one in self.catalog.chain(ready)}
        return lambda one: _bound(one, digest) in shown

    def effect(self, ready: ReadyTool) -> str:
        """Return the strongest effect of a tool and of what it wraps: that is what a person approves."""
        tools = [ready.tool, *(one.tool for one in self.catalog.chain(ready))]
        return max((tool.effect for tool in tools), key=EFFECTS.index)

    def why_not_in_force(self, stored: Stored) -> str:
        """Say that the tool is not what it was on its stack when it was proposed."""
        proposal = stored.proposal
        name = proposal.tool.partition(":")[2]
        active = self.catalog.registry.get_active(name)
        now = f"; {active.source.pack}:{name} is active now" if active is not None else ""
        state = _parsed(stored.entry_state)[0]
        return f"the tool {proposal.tool}, which was {state} then, is not so any more{now}; {_AGAIN}"


def _parsed(kept: str) -> tuple[str, list[BoundTool] | None]:
    """Return a tool's state and who took part; None for that in what earlier versions kept."""
    state, _, chain = kept.partition(" ")
    return state, [BoundTool(*one) for one in json.loads(chain)] if chain.startswith("[") else None


def _difference(tool: str, then: Sequence[BoundTool], now: Sequence[BoundTool]) -> str | None:
    before, after = [one.id for one in then], [one.id for one in now]
    if before != after:
        what = f"who takes part in a call of {tool} ({' over '.join(before)} then, {' over '.join(after)} now)"
        return f"{what} changed since this was proposed; {_AGAIN}"
    changed = [
        f"the {' and the '.join(parts)} of {one.id}"
        for one, other in zip(then, now, strict=True)
        if (parts := one.differences(other))
    ]
    return f"{'; '.join(changed)} changed since this was proposed; {_AGAIN}" if changed else None


# -- where from, and with which options --------------------------------------------------------------------------------


def _bound(ready: ReadyTool, sealed: Callable[[Any], str]) -> BoundTool:
    return _bound_entry(ready.entry, ready.qualified_id, ready.definition, sealed)


def _bound_entry(entry: Entry, id: str, definition: str, sealed: Callable[[Any], str]) -> BoundTool:
    return BoundTool(
        id,
        definition,
        entry.source.version,
        sealed(["origin", *_origin(entry)]),
        sealed(["options", _plain(entry.options)]),
    )


def _origin(standing: Entry) -> list[Any]:
    """Return where an entry's pack came from, as the manifest says it: hosts on one store have folders of their own."""
    source, entry = standing.source, owner_of(standing).context.manifest_entry
    if entry is None:
        return [source.origin, source.identifier]
    origin = None if Path(source.origin).is_absolute() else source.origin
    factory = None if isinstance(entry.factory, ExtensionPack) else entry.factory
    maker = _plain(getattr(factory, "bound_to", factory))
    return [origin, source.identifier, entry.module, entry.package, maker]


def _plain(value: Any, around: tuple[int, ...] = ()) -> Any:
    """Return JSON that is the same for equal values, also in another process, as far as they can be told apart.

    *around* are the objects that this one is part of.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if id(value) in around or len(around) > _DEPTH:
        return {"object": id(value)}
    inside = (*around, id(value))
    if isinstance(value, Mapping):
        return {"map": sorted(canonical([_plain(key, inside), _plain(item, inside)]) for key, item in value.items())}
    if isinstance(value, list | tuple):
        return [_plain(item, inside) for item in value]
    if isinstance(value, AbstractSet):
        return {"set": sorted(canonical(_plain(item, inside)) for item in value)}
    if isinstance(value, functools.partial):
        return {"partial": [_plain(part, inside) for part in (value.func, value.args, value.keywords)]}
    if isinstance(name := getattr(value, "__qualname__", None), str):
        return {"name": [getattr(value, "__module__", None), name, _plain(getattr(value, "__self__", None), inside)]}
    return {"shown": [type(value).__module__, type(value).__qualname__, safe_repr(value)]}
