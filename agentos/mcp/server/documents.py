"""Prompts and resources: what packs say about their tools, for people and models to read.

What a pack says is foreign text: it is quoted, bounded, and nothing in it is hidden.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import attrs

from agentos.mcp.server.served_host import ServedHost
from agentos.mcp.server.shown_tools import ShownTools
from agentos.mcp.server.wire_format import Item, as_json, clipped, encodable, visible
from agentos.model.principal import Principal
from agentos.schema.validation import to_plain_json
from agentos.stacks.entry import Entry
from agentos.tools.listing import ToolInfo
from agentos.tools.tool import Tool

INSTRUCTIONS = "instructions"
"""The prompt with everything that the offered tools say to a model."""
OWN_SCHEME = "agentos:"
PACKS, TOOLS = f"{OWN_SCHEME}//packs/", f"{OWN_SCHEME}//tools/"
PROMPT_LIMIT = 100_000
DOCUMENT_LIMIT = 200_000
_TEXT_LIMIT = 4_000
_SCHEMA_LIMIT = 20_000
_MARKDOWN = "text/markdown"
_MORE = "\nThere are more tools than can be shown here; each has an address of its own."

TEMPLATES: list[Item] = [
    {
        "uriTemplate": f"{PACKS}{{name}}",
        "name": "pack",
        "title": "A pack",
        "description": "What a pack is and which tools it brings.",
        "mimeType": _MARKDOWN,
    },
    {
        "uriTemplate": f"{TOOLS}{{name}}",
        "name": "tool",
        "title": "A tool",
        "description": "What a tool does, what it takes and what it returns.",
        "mimeType": _MARKDOWN,
    },
]


@attrs.frozen
class VisiblePack:
    """A pack as far as somebody may see it: with the tools that may be called."""

    name: str
    version: str | None
    description: str
    tools: tuple[ToolInfo, ...] = attrs.field(repr=False)

    @property
    def uri(self) -> str:
        """Return the address of the document about the pack."""
        return PACKS + quote(self.name, safe="")


class Documents:
    """Describes to a principal what it may call, and nothing else."""

    def __init__(self, host: ServedHost, shown_tools: ShownTools) -> None:
        self._host = host
        self._masker = host.extensions.masker
        self._shown = shown_tools

    # -- prompts -----------------------------------------------------------------------------------------------

    def prompts(self, who: Principal) -> list[Item]:
        """Return the prompts of toolsets and tools, each under its fully-qualified name, and the whole."""
        found = self._prompt_texts(who)
        if not found:
            return []
        whole = _prompt(INSTRUCTIONS, "Instructions", "Everything that the offered tools say about their use.")
        return [whole, *(_prompt(name, name, f"How {name} is to be used.") for name in found)]

    def prompt(self, name: str, who: Principal) -> Item | None:
        """Return the messages of a prompt; None if no prompt has that name."""
        found = self._prompt_texts(who)
        if name == INSTRUCTIONS and found:
            text = self._host.tools.system_prompt(who)
        elif name in found:
            text = "\n\n".join(found[name])
        else:
            return None
        masked = encodable(clipped(self._masker.mask(text), PROMPT_LIMIT))
        message = {"role": "user", "content": {"type": "text", "text": masked}}
        return {"messages": [message], "resultType": "complete"}

    def _prompt_texts(self, who: Principal) -> dict[str, dict[str, None]]:
        """Return what toolsets and tools say, by `pack:id`, in the order of the list."""
        texts: dict[str, dict[str, None]] = {}
        tools = self._shown.in_force().tools
        for info in self._host.tools.listed(who):
            tool = tools.get(info.name)
            for id, text in () if tool is None else _prompts_of(tool):
                texts.setdefault(f"{_owner(info)}:{id}", {})[text] = None
        return texts

    # -- resources ---------------------------------------------------------------------------------------------

    def resources(self, who: Principal) -> list[Item]:
        """Return the packs of which *who* may call something."""
        return [
            {
                "uri": pack.uri,
                "name": encodable(pack.name),
                "title": encodable(pack.name),
                "description": encodable(_plain(self._masker.mask(pack.description))) or f"{len(pack.tools)} tools",
                "mimeType": _MARKDOWN,
            }
            for pack in self._packs(who).values()
        ]

    def read(self, uri: str, who: Principal) -> Item | None:
        """Return the document at an address; None if nothing is there, or nothing that *who* may see."""
        text = self._text_at(uri, who)
        if text is None:
            return None
        masked = encodable(clipped(self._masker.mask(text), DOCUMENT_LIMIT))
        return {"contents": [{"uri": uri, "mimeType": _MARKDOWN, "text": masked}], "resultType": "complete"}

    def _text_at(self, uri: str, who: Principal) -> str | None:
        if uri.startswith(PACKS):
            pack = self._packs(who).get(unquote(uri.removeprefix(PACKS)))
            return None if pack is None else self._about_pack(pack)
        if uri.startswith(TOOLS):
            name = self._shown.tool_name(unquote(uri.removeprefix(TOOLS)))
            info = self._shown.callable_by(who).get(name)
            return None if info is None else "\n".join(self._about_tool(info, "#"))
        return None

    def _packs(self, who: Principal) -> dict[str, VisiblePack]:
        tools: dict[str, list[ToolInfo]] = {}
        for info in self._host.tools.listed(who):
            tools.setdefault(_owner(info), []).append(info)
        registry = self._host.extensions.registry("tool")
        made = ((name, infos, registry.get_active(infos[0].name)) for name, infos in tools.items())
        return {name: _pack(name, infos, entry) for name, infos, entry in made}

    def _about_pack(self, pack: VisiblePack) -> str:
        head = [f"# {visible(pack.name)}", "", f"Version: {visible(pack.version or 'none')}", ""]
        parts = ["\n".join([*head, *_quoted(self._masker.mask(pack.description))])]
        size = len(parts[0])
        for info in pack.tools:
            part = "\n".join(self._about_tool(info, "##"))
            size += len(part) + 1
            if size > DOCUMENT_LIMIT - len(_MORE):
                parts.append(_MORE)
                break
            parts.append(part)
        return "\n".join(parts)

    def _about_tool(self, info: ToolInfo, heading: str) -> list[str]:
        wire = self._shown.in_force().names.wire(info.name)
        lines = [f"{heading} {visible(wire)}", "", f"Effect: {info.effect}. Pack: {visible(_owner(info))}.", ""]
        lines += _quoted(self._masker.mask(info.description))
        lines += ["Takes:", "", *self._fenced(info.input_schema)]
        if info.output_schema is not None:
            lines += ["Returns:", "", *self._fenced(info.output_schema)]
        return lines

    def _fenced(self, schema: Mapping[str, Any]) -> list[str]:
        # No line of indented JSON begins with a fence, so nothing in it can end the block.
        shown = as_json(self._masker.mask_data(to_plain_json(schema)), indent=2)
        return ["```json", clipped(shown, _SCHEMA_LIMIT), "```", ""]


def _prompt(name: str, title: str, description: str) -> Item:
    return {"name": encodable(name), "title": encodable(title), "description": encodable(description)}


def _prompts_of(tool: Tool) -> Iterable[tuple[str, str]]:
    if tool.toolset is not None and tool.toolset.system_prompt.strip():
        yield tool.toolset.id, tool.toolset.system_prompt.strip()
    if tool.system_prompt and tool.system_prompt.strip():
        yield tool.name, tool.system_prompt.strip()


def _owner(info: ToolInfo) -> str:
    return info.fully_qualified_id.partition(":")[0]


def _pack(name: str, infos: Sequence[ToolInfo], entry: Entry | None) -> VisiblePack:
    # The slot is internal to stacks; what a host registers itself has no pack.
    owner = None if entry is None or entry._slot is None else entry._slot.owner  # noqa: SLF001 - see above
    described = getattr(getattr(owner, "pack", None), "description", "")
    version = None if entry is None else entry.source.version
    return VisiblePack(name, version, described if isinstance(described, str) else "", tuple(infos))


def _plain(text: str) -> str:
    return clipped(visible(" ".join(text.split())), _TEXT_LIMIT)


def _quoted(text: str) -> list[str]:
    """Return foreign text as a quotation: no line of it can pass for one of ours."""
    shown = clipped(visible(text.strip()), _TEXT_LIMIT)
    return [*(f"> {line}" for line in shown.split("\n")), ""] if shown else []
