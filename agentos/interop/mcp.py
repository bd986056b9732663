"""MCP's shape of a list of tools, as plain dicts."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agentos.interop._provider_calls import ToolHost, ToolList, active_tools, provider_list
from agentos.interop._provider_schemas import object_schema
from agentos.model.principal import Principal
from agentos.schema.validation import to_plain_json
from agentos.tools.listing import ToolInfo
from agentos.tools.tool import Tool
from agentos.tools.wire_names import WireNames


def tools(host: ToolHost, principal: Principal | None = None) -> ToolList:
    """Return what *principal* is offered, as MCP lists tools.

    Items are kept for the next request: copy one before writing to it.
    """
    return provider_list(host, principal, "mcp", partial(_build, host))


def _build(host: ToolHost, infos: Sequence[ToolInfo], names: WireNames) -> ToolList:
    known = active_tools(host)
    return ToolList((_tool(info, names.to_wire[info.name], known.get(info.name)) for info in infos), names)


def _tool(info: ToolInfo, wire: str, tool: Tool | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": wire,
        "title": info.display_name,
        "description": info.description,
        "inputSchema": object_schema(info.input_schema),
        "annotations": _hints(info, tool),
    }
    if info.output_schema is not None and _is_object(info.output_schema):
        made["outputSchema"] = to_plain_json(info.output_schema)
    return made


def _is_object(schema: Mapping[str, Any]) -> bool:
    """Tell whether every output is an object: MCP's structured content is nothing else."""
    return schema.get("type") == "object"


def _hints(info: ToolInfo, tool: Tool | None) -> dict[str, bool]:
    """Return what the effect says. Nothing says whether a tool reaches the outside, so it counts as if it did."""
    reads = info.effect == "read"
    return {
        "readOnlyHint": reads,
        "destructiveHint": info.effect == "destructive",
        "idempotentHint": reads or (tool is not None and tool.idempotent),
        "openWorldHint": True,
    }
