"""Displays for the tools of a pack, said in one place."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.errors import ToolDefinitionError
from agentos.model.descriptor import Descriptor
from agentos.model.display import Display
from agentos.tools.tool import Tool, Toolset, as_tool


def with_displays(offered: Iterable[object], displays: Mapping[str, Display]) -> list[Any]:
    """Return what a pack offers, its tools shown as *displays* say by their names; a display for no tool is refused."""
    made = [_displayed(one, displays) for one in offered]
    names = {tool.name for one in made for tool in _tools_of(one)}
    if unknown := sorted(displays.keys() - names):
        known = f"the tools are {', '.join(sorted(names))}"
        raise ToolDefinitionError("with_displays", unknown[0], f"no tool of this name is offered; {known}")
    return made


def _displayed(one: Any, displays: Mapping[str, Display]) -> Any:
    if isinstance(one, Descriptor):
        return attrs.evolve(one, payload=_displayed(one.payload, displays)) if one.kind == "tool" else one
    if isinstance(one, Toolset):
        return attrs.evolve(one, tools=tuple(_displayed(tool, displays) for tool in one.tools))
    return attrs.evolve(one, display=displays[one.name]) if isinstance(one, Tool) and one.name in displays else one


def _tools_of(one: Any) -> Iterable[Tool]:
    if isinstance(one, Toolset):
        return one.tools
    tool = as_tool(one.payload if isinstance(one, Descriptor) else one)
    return () if tool is None else (tool,)
