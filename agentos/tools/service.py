"""ToolsService: running code registers, replaces and takes back tools, as one owner."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import attrs

from agentos.errors import ToolDefinitionError
from agentos.model.descriptor import Descriptor
from agentos.model.field_checks import did_you_mean
from agentos.model.kind import as_descriptors
from agentos.model.pack_context import Port
from agentos.stacks.entry import Entry
from agentos.tools.listing import ToolInfo, info_of
from agentos.tools.tool import as_tool, required_tool

PERMISSION = "tools:register"
Handler = Callable[[Any, Any], Any]


class ToolsService:
    """Tools of one owner, on the same stacks as everybody's.

    The same owner and id replaces that one entry; another owner's stacks. A pack needs the permission
    `tools:register`, given in its manifest entry.
    """

    def __init__(self, port: Port) -> None:
        self._port = port

    @property
    def owner(self) -> str:
        """Return the name under which the tools are registered."""
        return self._port.source.pack

    async def register_tool(self, tool: Any, handler: Handler | None = None) -> ToolInfo:
        """Register a tool, or bind *handler* to one. *tool* may be the id of a tool that this owner declared.

        Without any handler the tool is declared only: listed as unbound, not offered, and a call says HandlerMissing.
        """
        self._port.require(PERMISSION)
        declared = self._declared(tool) if isinstance(tool, str) else _descriptor(tool)
        made = required_tool(declared.payload, "ToolsService", "tool")
        if handler is not None:
            made = made.bind(handler)
        (entry,) = await self._port.exchange("tool", [attrs.evolve(declared, payload=made)])
        return info_of(entry, made)

    async def unregister_tool(self, id: str) -> bool:
        """Take this owner's tool off; False if it has none of that id."""
        self._port.require(PERMISSION)
        if not any(entry.id == id for entry in self._port.entries("tool")):
            return False
        await self._port.exchange("tool", [], [id])
        return True

    def list_tools(self) -> list[ToolInfo]:
        """Return the tools of every owner (built in, of packs, of MCP servers), in force or not, each with its state.

        They come in the order in which their ids were first registered; of one id the strongest comes first.
        """
        return _infos(self._port.all_entries("tool"))

    def own_tools(self) -> list[ToolInfo]:
        """Return this owner's tools, in force or not, each with its state."""
        return _infos(self._port.entries("tool"))

    def accepted(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the definitions of this owner's tools that were accepted in earlier runs, by id: see `pins`."""
        return self._port.accepted()

    async def sync(self, tools: Iterable[Any]) -> list[ToolInfo]:
        """Make *tools* this owner's whole set, at once or not at all; what did not change is not touched.

        A tool may come as a descriptor, with a gate, secrets or a priority of its own.
        """
        self._port.require(PERMISSION)
        given = [_descriptor(tool) for tool in tools]
        wanted = {descriptor.id: descriptor for descriptor in given}
        if len(wanted) < len(given):
            twice = [id for id in wanted if sum(descriptor.id == id for descriptor in given) > 1]
            raise ToolDefinitionError("ToolsService.sync", "tools", f"given twice: {', '.join(twice)}")
        standing = {entry.id: entry.descriptor for entry in self._port.entries("tool")}
        add = [descriptor for id, descriptor in wanted.items() if not _is_same(standing.get(id), descriptor)]
        drop = [id for id in standing if id not in wanted]
        if add or drop:
            await self._port.exchange("tool", add, drop)
        return self.own_tools()

    async def refresh(self, ids: Collection[str] | None = None) -> None:
        """Ask the gates of this owner's tools again: of *ids*, or of all."""
        await self._port.refresh("tool", ids)

    def _declared(self, id: str) -> Descriptor[Any]:
        mine: dict[str, Descriptor[Any]] = {entry.id: entry.descriptor for entry in self._port.entries("tool")}
        if id not in mine or as_tool(mine[id].payload) is None:
            raise ToolDefinitionError(
                f"tool {id!r}", "", f"{self.owner!r} has declared no such tool{did_you_mean(id, mine)}"
            )
        return mine[id]


def _infos(entries: Iterable[Entry]) -> list[ToolInfo]:
    pairs = ((entry, as_tool(entry.payload)) for entry in entries)
    return [info_of(entry, tool) for entry, tool in pairs if tool is not None]


def _descriptor(value: Any) -> Descriptor[Any]:
    is_one = isinstance(value, Descriptor) and value.kind == "tool"
    descriptors = as_descriptors(value if is_one else required_tool(value, "ToolsService", "tool"))
    return descriptors[0]


def _is_same(standing: Descriptor[Any] | None, given: Descriptor[Any]) -> bool:
    """Tell whether *given* says the same of the same tool as what stands."""
    if standing is None or standing is given:
        return standing is given
    said = [field.name for field in attrs.fields(Descriptor) if field.name != "payload"]
    return standing.payload is given.payload and all(getattr(standing, one) == getattr(given, one) for one in said)
