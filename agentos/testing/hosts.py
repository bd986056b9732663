"""Hosts in memory, what they tell, and fakes on top of their stacks."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import attrs

from agentos import (
    AgentOS,
    Descriptor,
    Entry,
    Event,
    ExtensionManager,
    ExtensionManifest,
    ExtensionPack,
    PackEntry,
    Tool,
    ToolCall,
    ToolResult,
)
from agentos.base.foreign import to_the_end
from agentos.model.kind import as_descriptors, is_offered
from agentos.testing._pack_sources import as_entry
from agentos.tools.tool import Toolset, as_tool

LOOSE = "tests"
"""What the pack is called that tools are put into which were given without one."""


@asynccontextmanager
async def make_host(
    *packs: Any,
    secrets: Any = None,
    overrides: Any = None,
    clock: Callable[[], float] = time.time,
    mode: Any = "auto",
    budget: Any = None,
    options: Mapping[str, Any] | None = None,
    strict: bool = True,
    **more: Any,
) -> AsyncIterator[AgentOS]:
    """Give a host in memory, with *packs* loaded in their order, and shut it down at the end of the block.

    A pack is an ExtensionPack, a factory, a module or an import name, the name of an entry point, a path, an entry of a
    manifest, or a Tool, Toolset or Descriptor: those go into one pack called `tests`. *options* are for the packs that
    are no entries. One that can't be loaded raises, unless *strict* is False. Nothing is asked about (mode "auto"), no
    call is too many, no definition is held back, and nothing is written. Other keywords are those of AgentOS.
    """
    manifest = ExtensionManifest(packs=_entries(packs, options or {}))
    host = AgentOS(
        extension_manifest=manifest,
        extension_secrets=secrets,
        extension_overrides=overrides,
        clock=clock,
        mode=mode,
        budget=budget,
        **{"pins": "off", **more},
    )
    try:
        await host.initialize(strict=strict)
        yield host
    finally:
        await to_the_end(host.shutdown())
        host.tools.executor.threads.close()


def call_tools(
    packs: Any, *calls: tuple[str, Mapping[str, Any] | str | None] | ToolCall, **settings: Any
) -> list[ToolResult]:
    """Load *packs*, one or several, make *calls* one after another, and return their results: for tests that are sync.

    A call is `(name, arguments)`, or a ToolCall. Other keywords are those of `make_host`.
    """

    async def run() -> list[ToolResult]:
        given = packs if isinstance(packs, list | tuple) else [packs]
        async with make_host(*given, **settings) as host:
            return [await host.tools.process_tool_call(_as_call(call)) for call in calls]

    return asyncio.run(run())


def _as_call(call: Any) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    if not isinstance(call, tuple | list):
        raise TypeError(f"expected a call as (name, arguments) or as a ToolCall, got {call!r:.80}")
    return ToolCall(*call)


def _entries(packs: Sequence[Any], options: Mapping[str, Any]) -> list[PackEntry]:
    """Return the packs as entries; what came without a pack is in one, at the place of the first of it."""
    loose = [one for one in packs if _is_loose(one)]
    entries = [as_entry(one, options) for one in packs if not _is_loose(one)]
    if loose:
        descriptors = [descriptor for one in loose for descriptor in as_descriptors(one)]
        place = [_is_loose(one) for one in packs].index(True)
        entries.insert(place, PackEntry(factory=ExtensionPack(LOOSE, "0", descriptors), options=options))
    return entries


def _is_loose(value: Any) -> bool:
    if isinstance(value, Tool | Toolset | Descriptor):
        return True
    return not isinstance(value, str | Path | ExtensionPack | PackEntry | Mapping) and is_offered(value)


# -- events ------------------------------------------------------------------------------------------------------------


class Events(list[Any]):
    """Events in the order in which they were emitted."""

    @property
    def types(self) -> list[str]:
        """Return what kinds of events there were, each as often as it was emitted."""
        return [event.type for event in self]

    def of(self, *types: str) -> "Events":
        """Return the events of these types."""
        return Events(event for event in self if event.type in types)


@contextmanager
def capture_events(source: AgentOS | ExtensionManager) -> Iterator[Events]:
    """Give a list to which every event of a host or manager is added until the end of the block."""
    manager = _manager_of(source)
    events = Events()

    def listener(event: Event) -> None:
        events.append(event)

    manager.on(listener)
    try:
        yield events
    finally:
        manager.off(listener)


def _manager_of(source: Any) -> ExtensionManager:
    manager = getattr(source, "extensions", source)
    if not isinstance(manager, ExtensionManager):
        raise TypeError(f"expected an AgentOS or an ExtensionManager, got {type(source).__name__}")
    return manager


# -- fakes of what stands on a stack -----------------------------------------------------------------------------------


@asynccontextmanager
async def overriding(source: AgentOS | ExtensionManager, kind: str, id: str, payload: Any) -> AsyncIterator[Entry]:
    """Put *payload* on top of the stack of (*kind*, *id*), and take it off at the end of the block, whatever happens.

    For a tool, *payload* may be a Tool, whatever its name, or a function `(args, context)` that takes the place of
    the one that is in force: its schema, effect and access stay.
    """
    manager = _manager_of(source)
    stack = manager.registry(kind).stack(id)
    above = max((entry.priority for entry in stack), default=0) + 1
    descriptor = Descriptor(kind, id, _stand_in(id, payload, stack) if kind == "tool" else payload, above)
    entry = await manager.registry(kind).register(descriptor)
    try:
        active = manager.registry(kind).get_active(id)
        if active is None or active.descriptor is not descriptor:
            raise AssertionError(f"the fake is not in force:\n{manager.explain(kind, id)}")
        yield active
    finally:
        await to_the_end(manager.registry(kind).remove(entry))


def _stand_in(id: str, payload: Any, stack: Sequence[Entry]) -> Any:
    tool = as_tool(payload)
    if tool is not None:
        return attrs.evolve(tool, name=id, aliases=()) if tool.name != id else payload
    beneath = next((found for entry in stack if (found := as_tool(entry.payload)) is not None), None)
    if beneath is None:
        raise LookupError(f"there is no tool {id!r} whose place a function could take; give a Tool")
    return beneath.bind(payload)
