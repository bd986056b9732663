"""What a list of tools tells about each."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from agentos.model.display import Display
from agentos.stacks.entry import Entry, EntryState
from agentos.tools.tool import Access, Effect, Tool

SourceKind = Literal["builtin", "extension", "mcp"]


@attrs.frozen
class ToolInfo:
    """A tool as lists show it."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = attrs.field(repr=False)
    output_schema: Mapping[str, Any] | None = attrs.field(repr=False)
    effect: Effect
    required_access: Access
    """The rules that a principal needs to call it, or PUBLIC."""
    display_name: str
    category: str | None
    source: SourceKind
    fully_qualified_id: str
    aliases: tuple[str, ...]
    state: EntryState
    display: Display | None = attrs.field(default=None, repr=False)
    """How people are shown its calls, where its author says."""


def info_of(entry: Entry, tool: Tool) -> ToolInfo:
    """Return what a list tells of *tool* on its stack."""
    return ToolInfo(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        effect=tool.effect,
        required_access=tool.required_access,
        display_name=tool.display_name or tool.name.replace("_", " ").strip().capitalize(),
        category=tool.category,
        source=source_kind(entry.source.pack),
        fully_qualified_id=f"{entry.source.pack}:{tool.name}",
        aliases=tool.aliases,
        state=entry.state,
        display=tool.display,
    )


def source_kind(owner: str) -> SourceKind:
    """Return where an owner's tools come from."""
    if owner == "builtin":
        return "builtin"
    return "mcp" if owner.startswith("mcp/") else "extension"
