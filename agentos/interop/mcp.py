"""MCP's shape of a list of tools, as plain dicts."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from agentos.interop._provider_calls import ToolHost, ToolList, active_tools, provider_list
from agentos.interop._provider_schemas import object_schema
from agentos.model.principal import Principal
from agentos.schema.validation import to_plain_json
from agentos.tools.listing import ToolInfo
from agentos.tools.tool import Effect, Tool
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
    hints = effect_hints(info.effect, is_idempotent=tool is not None and tool.idempotent)
    made: dict[str, Any] = {
        "name": wire,
        "title": info.display_name,
        "description": info.description,
        "inputSchema": object_schema(info.input_schema),
        "annotations": {**hints, "openWorldHint": True},
    }
    if info.output_schema is not None and info.output_schema.get("type") == "object":  # nothing else is structured
        made["outputSchema"] = to_plain_json(info.output_schema)
    return made


def effect_hints(effect: Effect, *, is_idempotent: bool = False) -> dict[str, bool]:
    """Return an effect as MCP's annotations. No effect says whether a tool reaches the outside, so nothing is said."""
    reads = effect == "read"
    return {
        "readOnlyHint": reads,
        "destructiveHint": effect == "destructive",
        "idempotentHint": reads or is_idempotent,
    }
