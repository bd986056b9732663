"""Whether what a tool's display names is there: in its arguments, and in its output."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentos.schema.references import resolved
from agentos.tools.tool import Tool

_DEPTH = 16
_OBJECT_WORDS = ("properties", "additionalProperties", "patternProperties")
_LIST_WORDS = ("items", "prefixItems")


def faults_of_display(tool: Tool) -> Iterator[str]:
    """Name each argument and each part of the output that is in no schema. What a schema leaves open may be there.

    A dry run has no schema: of a tool with one, fields may be what that returns.
    """
    display = tool.display
    if display is None:
        return
    for root, path in display.places:
        schema = tool.input_schema if root == "args" else tool.output_schema
        if schema is not None and not is_possible(schema, path):
            yield f"{{{root}.{'.'.join(path)}}}, which no {'argument is' if root == 'args' else 'output has'}"
    if tool.output_schema is None or tool.dry_run is not None:
        return
    for field in display.fields:
        if not is_possible(tool.output_schema, display.steps(field)):
            yield f"the field {field}, which is not in the output schema"


def is_possible(schema: Mapping[str, Any], steps: Sequence[str]) -> bool:
    """Tell whether a value that fits *schema* may have something at *steps*, of names and `[]`."""
    return _may_have(schema, schema, tuple(steps), 0)


def _may_have(schema: Any, root: Mapping[str, Any], steps: tuple[str, ...], depth: int) -> bool:
    if schema is False:
        return False
    if schema is True or not steps or depth > _DEPTH:
        return True
    found = resolved(schema, root)
    options = [one for word in ("anyOf", "oneOf", "allOf") for one in found.get(word, ())]
    if any(_may_have(one, root, steps, depth + 1) for one in options):
        return True
    is_list = steps[0] == "[]" or (steps[0].isdecimal() and steps[0] not in found.get("properties", {}))
    inners = _items(found) if is_list else _members(found, steps[0])
    if inners is None:
        return not options
    return any(_may_have(one, root, steps[1:], depth + 1) for one in inners)


def _members(schema: Mapping[str, Any], name: str) -> list[Any] | None:
    """Return the schemas of a member; None if nothing is said of members."""
    if not _is_of(schema, "object"):
        return []
    if name in schema.get("properties", {}):
        return [schema["properties"][name]]
    if not any(word in schema for word in _OBJECT_WORDS):
        return None
    return [schema.get("additionalProperties", True), *schema.get("patternProperties", {}).values()]


def _items(schema: Mapping[str, Any]) -> list[Any] | None:
    if not _is_of(schema, "array"):
        return []
    if not any(word in schema for word in _LIST_WORDS):
        return None
    return [*schema.get("prefixItems", ()), schema.get("items", True)]


def _is_of(schema: Mapping[str, Any], kind: str) -> bool:
    kinds = schema.get("type", kind)
    return kind == kinds or (isinstance(kinds, list) and kind in kinds)
