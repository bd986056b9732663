"""Tools and results in MCP's shape, as plain dicts: the SDK checks them against the version that a client speaks."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from agentos.interop._provider_calls import PENDING, is_failure
from agentos.interop._provider_schemas import object_schema
from agentos.interop.mcp import effect_hints
from agentos.model.tool_call import ToolResult
from agentos.schema.validation import compile_schema, to_plain_json
from agentos.tools.listing import ToolInfo
from agentos.tools.tool import Tool
from agentos.tools.wire_names import made_up_names

Item = dict[str, Any]

DESCRIPTION_LIMIT = 20_000
"""How many characters of a tool's description a client is given."""
_TITLE_LIMIT = 200
_VALID_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")

# -- text ----------------------------------------------------------------------------------------------------------


def encodable(text: str) -> str:
    """Return *text* without what has no UTF-8 form: half a surrogate pair would end a connection."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def encodable_data(data: Any) -> Any:
    """Return JSON *data* with every string encodable, keys included."""
    if type(data) is str:
        return encodable(data)
    if type(data) is dict:
        return {encodable(key): encodable_data(value) for key, value in data.items()}
    if type(data) is list:
        return [encodable_data(value) for value in data]
    return data


def visible(text: str) -> str:
    """Return *text* with characters that can't be seen written out: what a person reads is all there is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char in "\n\t" or not _is_hidden(char) else f"\\u{ord(char):04x}" for char in text)


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN


def clipped(text: str, limit: int) -> str:
    """Return *text*, or as much of it as *limit* allows with a note of how much is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [cut: {limit} of {len(text)} characters are shown]"


def as_json(data: Any, indent: int | None = None) -> str:
    """Return *data* as JSON text that people can read and that hides nothing."""
    return visible(json.dumps(data, ensure_ascii=False, indent=indent, default=str))


# -- names ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class ClientToolNames:
    """The names of tools whose own name MCP does not allow, or that a tool of the server has already."""

    to_wire: dict[str, str] = attrs.field(factory=dict)
    from_wire: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, names: Iterable[str], reserved: Iterable[str] = (), aliases: Iterable[str] = ()) -> "ClientToolNames":
        """Make up a name for each that needs one, and none of *aliases*; every other keeps its own.

        What is *reserved* is nobody's.
        """
        known, taken = list(names), frozenset(reserved)
        misfits = [name for name in known if not _VALID_NAME.fullmatch(name) or name in taken]
        to_wire = made_up_names(misfits, taken.union(known, aliases)) if misfits else {}
        return cls(to_wire, {wire: name for name, wire in to_wire.items()})

    def wire(self, name: str) -> str:
        """Return the name that a client knows a tool by."""
        return self.to_wire.get(name, name)


# -- tools ---------------------------------------------------------------------------------------------------------

_items: "WeakKeyDictionary[Tool, dict[tuple[str, str, bool, bool], Item]]" = WeakKeyDictionary()
_never_null: "WeakKeyDictionary[Tool, bool]" = WeakKeyDictionary()


def tool_item(info: ToolInfo, tool: Tool, wire: str, *, is_modern: bool, may_wait: bool = False) -> Item:
    """Return a tool as a list shows it; made once for each tool and era, and not to be written to.

    One whose calls may wait for a person shows no output schema: a client would refuse the answer that it waits.
    """
    kept = _items.get(tool)
    if kept is None:
        kept = _items[tool] = {}
    key = (wire, info.display_name, is_modern, may_wait)
    item = kept.get(key)
    if item is None:
        item = kept[key] = _make_item(info, tool, wire, is_modern=is_modern, may_wait=may_wait)
    return item


def _make_item(info: ToolInfo, tool: Tool, wire: str, *, is_modern: bool, may_wait: bool) -> Item:
    item: Item = {
        "name": wire,
        "title": encodable(info.display_name),
        "description": encodable(clipped(info.description, DESCRIPTION_LIMIT)),
        "inputSchema": encodable_data(object_schema(info.input_schema)),
        "annotations": {**_servers_own_hints(tool), **effect_hints(info.effect, is_idempotent=tool.idempotent)},
    }
    if not may_wait and (output := shown_output_schema(tool, is_modern=is_modern)) is not None:
        item["outputSchema"] = encodable_data(to_plain_json(output))
    return item


def _servers_own_hints(tool: Tool) -> Item:
    """Return what a bridged server says of its tool in annotations, but for what it does: that is `effect_hints`."""
    said = getattr(tool, "server_annotations", None)
    said = said if isinstance(said, dict) else {}
    kept: Item = {"openWorldHint": said["openWorldHint"]} if type(said.get("openWorldHint")) is bool else {}
    if isinstance(title := said.get("title"), str) and title.strip():
        kept["title"] = encodable(clipped(visible(title), _TITLE_LIMIT))
    return kept


def shown_output_schema(tool: Tool, *, is_modern: bool) -> Mapping[str, Any] | None:
    """Return the output schema that clients of an era see, and get structured content for.

    Up to 2025-11-25 that is an object, always. Since 2026-07-28 it is any value but null, which the SDK leaves out.
    """
    schema = tool.output_schema
    if schema is None or schema.get("type") == "object":
        return schema
    return schema if is_modern and _is_never_null(tool) else None


def _is_never_null(tool: Tool) -> bool:
    known = _never_null.get(tool)
    if known is None:
        validator = compile_schema(tool.output_schema, f"the output schema of tool {tool.name!r}", formats=False)
        known = _never_null[tool] = not validator.is_valid(None)
    return known


# -- results -------------------------------------------------------------------------------------------------------


def call_result(result: ToolResult, tool: Tool | None, *, is_modern: bool) -> Item:
    """Return a result in the form of the protocol: what the model reads, and its output as structured content.

    `state`, `meta` and an error's `details` stay here: they are for hosts, and may hold a token. Of a call that waits
    for a person `_meta` says as what and until when. That is no error, which models would try again, unless the client
    was shown an output schema for *tool*: it would refuse anything else without structured content.
    """
    made: Item = {
        "content": [{"type": "text", "text": encodable(_text_for_model(result))}],
        "isError": is_failure(result),
        "resultType": "complete",
    }
    if result.pending is not None:
        made["_meta"] = {PENDING: encodable_data(dict(result.pending))}
        made["isError"] = tool is not None and shown_output_schema(tool, is_modern=is_modern) is not None
    if type(result.output) is dict:
        made["structuredContent"] = encodable_data(result.output)
    elif result.success and tool is not None and shown_output_schema(tool, is_modern=is_modern) is not None:
        if result.output is None:
            made["isError"] = True  # a client that knows the schema would refuse a success without its output
        else:
            made["structuredContent"] = encodable_data(result.output)
    return made


def _text_for_model(result: ToolResult) -> str:
    """Return what a model reads. Where the output is missing it says first that the call is done.

    The result may have to be marked as an error, and nobody shall make the call again for that.
    """
    size = result.meta.get("output_dropped")
    if not result.success or size is None:
        return result.content
    return (
        "The call succeeded and took effect; do not make it again. "
        f"Only its output, of {size} characters, was too large to be given whole.\n{result.content}"
    )
