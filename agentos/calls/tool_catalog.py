"""The tools of a registry: which are offered, and which one a name, an alias or a `pack:tool` means."""

import itertools
from collections.abc import Callable, Collection, Iterator
from typing import Protocol, cast

from agentos.extensions.events import EventBus
from agentos.model.field_checks import did_you_mean
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolError
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.entry import Entry, EntryState
from agentos.stacks.rank import rank
from agentos.stacks.registry import Registry
from agentos.tools.listing import ToolInfo, info_of
from agentos.tools.ready import ReadyTool
from agentos.tools.tool import Tool, as_tool, inheriting, takes_nothing
from agentos.tools.tool_events import ToolsChanged

DEFAULT_TIMEOUT = 300.0
"""For how many seconds a tool may run that names no limit of its own."""
_NAMES_SEARCHED = 2_000
_NAME_SHOWN = 100


class StackManager(Protocol):
    """The part of the manager that a catalog needs."""

    masker: Masker

    @property
    def events(self) -> EventBus:
        """Return the bus of events."""
        ...

    def registry(self, kind: str) -> Registry:
        """Return the stacks of a kind."""
        ...

    def watch(self, watcher: Callable[[Collection[tuple[str, str]]], None]) -> None:
        """Call *watcher* with the stacks of every switch."""
        ...

    def held_back(self, entry: Entry) -> str | None:
        """Say why an entry waits for a person."""
        ...

    def shut(self, entry: Entry) -> str | None:
        """Say why an entry's own gate keeps it out of force."""
        ...


class ToolCatalog:
    """Knows the tools of a registry, each made ready for calls when it is first asked for."""

    def __init__(self, registry: Registry, *, default_timeout: float | None = DEFAULT_TIMEOUT) -> None:
        self.registry = registry
        self.manager = cast("StackManager", registry.writer)
        self._logger = MaskingLogger("agentos.tools", self.manager.masker)
        self.default_timeout = default_timeout
        self._ready: dict[str, ReadyTool] = {}
        self._wrapped: dict[tuple[str, int], ReadyTool] = {}
        self._aliases: dict[str, str] = {}
        self._warned: set[str] = set()
        self._offered: dict[str, tuple[Entry, Tool]] = {}
        self._listed: tuple[int, list[ToolInfo]] | None = None
        self._note([(registry.kind, id) for id in registry.ids()])
        self.manager.watch(self._note_switch)

    def infos(self) -> list[ToolInfo]:
        """Return every tool that can be called, in the order of first registration; kept until something changes."""
        if self._listed is None or self._listed[0] != self.registry.version:
            infos = [info_of(entry, tool) for entry, tool in self.offered()]
            self._listed = (self.registry.version, infos)
        return list(self._listed[1])

    def offered(self) -> Iterator[tuple[Entry, Tool]]:
        """Yield the active tools."""
        for entry in self.registry.list_active():
            if (known := self._offered.get(entry.id)) is not None and not known[1].is_hidden:
                yield known

    def get_tool(self, name: str) -> Tool | None:
        """Return the tool that a call of *name* would run, or None."""
        found = self.find(name)
        return found.tool if found is not None else None

    def find(self, name: str) -> ReadyTool | None:
        """Return the tool in force for a name, an alias or a `pack:tool`, made ready for calls."""
        try:
            ready = self._ready.get(name)
        except TypeError:  # not even a string
            return None
        if ready is not None:
            return ready
        if (known := self._offered.get(name)) is None:
            return self._find_otherwise(name)
        ready = self._ready[name] = ReadyTool(*known, self.default_timeout)
        return ready

    def _find_otherwise(self, name: str) -> ReadyTool | None:
        if not isinstance(name, str):
            return None
        if ":" in name:
            entry = next((one for one in self._named(name) if self._answers(one)), None)
            return None if entry is None else self.ready_of(entry)
        target = self._aliases.get(name)
        if target is None:
            return None
        if name not in self._warned:
            self._warned.add(name)
            self._logger.warning("the tool name %r is an alias of %r; use that", name, target)
        return self.find(target)

    def _named(self, name: str) -> Iterator[Entry]:
        """Yield what a `pack:tool` names, the strongest first."""
        owner, _, id = name.partition(":")
        return (entry for entry in self.registry.stack(id) if entry.source.pack == owner)

    def _answers(self, entry: Entry) -> bool:
        """Tell whether a call that names an entry by its fully-qualified id runs it: what is only shadowed, too."""
        return entry.state.in_force or (entry.state is EntryState.SHADOWED and self._why_out_of_reach(entry) is None)

    def _why_out_of_reach(self, entry: Entry) -> str | None:
        """Say why a shadowed entry can't be called by its fully-qualified id either; None if it can.

        What stands above it to protect it, or what it needs to have happened first, counts for such a call as well.
        """
        if entry.descriptor.wraps:
            return "it calls the tool beneath it, and that is not in force while this one is shadowed"
        if entry.descriptor.on_activate is not None:
            return "it is made ready when it comes into force, and it is shadowed"
        above = (one for one in self.registry.stack(entry.id) if rank(one) > rank(entry))
        if any(one.descriptor.wraps and _is_eligible(one) for one in above):
            return "a tool above it wraps those beneath, and is not to be bypassed"
        return None

    def ready_of(self, entry: Entry) -> ReadyTool | None:
        """Return an entry that is active, wrapped, or shadowed and within reach, made ready for calls."""
        if entry.state is EntryState.ACTIVE:
            return self.find(entry.id)
        entry = entry._slot.view()  # noqa: SLF001 - our own; why it is shadowed may be told anew for every reader
        key = (entry.id, entry.sequence)
        ready = self._wrapped.get(key)
        if ready is None or ready.entry is not entry:
            tool = self._tool_of(entry)
            if tool is None:
                return None
            ready = self._wrapped[key] = ReadyTool(entry, tool, self.default_timeout)
        return ready

    def why_not(self, name: object, known: Collection[str], principal: Principal) -> ToolError:
        """Return the error that a call of *name*, which found no tool, ends in."""
        if isinstance(name, str):
            for entry in self.registry.stack(name.partition(":")[2] or name):
                if _may_call(principal, entry) and (reason := self._why_idle(entry)) is not None:
                    return reason
            if (refusal := self.why_unreached(name, principal)) is not None:
                return ToolError("UnknownTool", refusal)
        shown = name[:_NAME_SHOWN] if isinstance(name, str) else type(name).__name__
        hint = did_you_mean(shown, itertools.islice(known, _NAMES_SEARCHED))
        return ToolError("UnknownTool", f"there is no tool called {shown!r}{hint}")

    def _why_idle(self, entry: Entry) -> ToolError | None:
        if entry.state is EntryState.UNBOUND:
            message = f"the tool {entry.id!r} is declared, but no handler is bound to it yet; try again later"
            return ToolError("HandlerMissing", message)
        if entry.state is EntryState.GATED and (reason := self.manager.held_back(entry)) is not None:
            return ToolError("DefinitionChanged", reason)
        if entry.state is EntryState.GATED and (reason := self.manager.shut(entry)) is not None:
            return ToolError("WorkerDied", reason, {"may_have_run": False})
        return None

    def why_unreached(self, name: str, principal: Principal) -> str | None:
        """Say why the `pack:tool` of a shadowed tool that *principal* may call does not reach it; None if it does."""
        for entry in self._named(name):
            if entry.state is EntryState.SHADOWED and _may_call(principal, entry):
                reason = self._why_out_of_reach(entry)
                return None if reason is None else f"{name} can't be called by its full id: {reason}"
        return None

    # -- stacks ------------------------------------------------------------------------------------------------

    def is_in_force(self, ready: ReadyTool) -> bool:
        """Tell whether what was found is still what stands on its stack: it may have gone while somebody thought."""
        if self._ready.get(ready.entry.id) is ready:
            return True
        stack = self.registry.stack(ready.entry.id)
        entry = next((one for one in stack if one._slot is ready.slot), None)  # noqa: SLF001 - our own
        if entry is None or entry.state.in_force:
            return entry is not None
        return ready.entry.state is EntryState.SHADOWED and self._answers(entry)

    def beneath(self, ready: ReadyTool) -> ReadyTool | None:
        """Return the next tool in force beneath one, as the stack is now."""
        return next(self._beneath(ready.entry), None)

    def chain(self, ready: ReadyTool) -> list[ReadyTool]:
        """Return the tools in force beneath one, the strongest first: what it may call as `below`."""
        return list(self._beneath(ready.entry)) if ready.entry.descriptor.wraps else []

    def _beneath(self, entry: Entry) -> Iterator[ReadyTool]:
        for other in self.registry.stack(entry.id):
            if rank(other) < rank(entry) and other.state.in_force and (ready := self.ready_of(other)) is not None:
                yield ready

    def forget_steps(self) -> None:
        """Have the steps of every tool chosen again: what takes part in calls changed."""
        for ready in [*self._ready.values(), *self._wrapped.values()]:
            ready.plan = ready.handler = ready.plain_handler = None
            ready.plain_version = -1

    # -- changes -----------------------------------------------------------------------------------------------

    def _note_switch(self, keys: Collection[tuple[str, str]]) -> None:
        added, removed, changed = self._note(keys)
        if added or removed or changed:
            self.manager.events.post(ToolsChanged(added=tuple(added), removed=tuple(removed), changed=tuple(changed)))

    def _note(self, keys: Collection[tuple[str, str]]) -> tuple[list[str], list[str], list[str]]:
        """Look again at the stacks that changed: what is offered, and which aliases count."""
        added: list[str] = []
        removed: list[str] = []
        changed: list[str] = []
        for kind, id in keys:
            if kind != self.registry.kind:
                continue
            before = self._offered.pop(id, None)
            self._drop_stale(id, before[1].aliases if before else ())
            now = self._look(id)
            if now is not None:
                self._offered[id] = now
                for alias in now[1].aliases:
                    self._aliases.setdefault(alias, id)
            if _is_hidden(now or before):
                continue
            if before is None or now is None:
                (added if now else removed).extend([id] if before or now else [])
            elif before[0].descriptor is not now[0].descriptor:
                changed.append(id)
        return added, removed, changed

    def _look(self, id: str) -> tuple[Entry, Tool] | None:
        entry = self.registry.get_active(id)
        tool = self._tool_of(entry) if entry is not None else None
        return None if entry is None or tool is None else (entry, tool)

    def _tool_of(self, entry: Entry) -> Tool | None:
        """Return the tool of an entry; a wrapper without parameters of its own takes what the tool beneath takes."""
        tool = as_tool(entry.payload)
        if tool is None or not entry.descriptor.wraps or not takes_nothing(tool):
            return tool
        beneath = next(self._beneath(entry), None)
        return tool if beneath is None else inheriting(tool, beneath.tool)

    def _drop_stale(self, id: str, aliases: Collection[str]) -> None:
        self._ready.pop(id, None)
        for alias in aliases:
            if self._aliases.get(alias) == id:
                del self._aliases[alias]
        if self._wrapped:
            standing = {entry.sequence for entry in self.registry.stack(id)}
            mine = {key: ready for key, ready in self._wrapped.items() if key[0] == id}
            for key, ready in mine.items():
                if key[1] not in standing or ready.tool.inherits:
                    del self._wrapped[key]


def _is_hidden(offered: tuple[Entry, Tool] | None) -> bool:
    return offered is not None and offered[1].is_hidden


def _may_call(principal: Principal, entry: Entry) -> bool:
    tool = as_tool(entry.payload)
    if tool is None or not principal.may_call(tool):
        return False
    return principal.reaches(tool, f"{entry.source.pack}:{tool.name}")


def _is_eligible(entry: Entry) -> bool:
    return entry.state.in_force or entry.state is EntryState.SHADOWED
