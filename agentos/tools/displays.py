"""Displays for the tools of a pack, said in one place."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.model.descriptor import Descriptor
from agentos.model.display import Display
from agentos.tools.tool import Tool, Toolset


def with_displays(offered: Iterable[object], displays: Mapping[str, Display]) -> list[Any]:
    """Return what a pack offers, its tools shown as *displays* say by their names.

    A display for no tool counts for nothing: which tools a pack offers may depend on its options.
    """
    return [_displayed(one, displays) for one in offered]


def _displayed(one: Any, displays: Mapping[str, Display]) -> Any:
    if isinstance(one, Descriptor):
        return attrs.evolve(one, payload=_displayed(one.payload, displays)) if one.kind == "tool" else one
    if isinstance(one, Toolset):
        return attrs.evolve(one, tools=tuple(_displayed(tool, displays) for tool in one.tools))
    return attrs.evolve(one, display=displays[one.name]) if isinstance(one, Tool) and one.name in displays else one
