"""References inside of one schema: what they point to."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

_HOPS = 8


def pointed(root: Any, reference: str) -> Any:
    """Return what a local reference points to, by pointer or anchor; anything else is the validator's business."""
    if not reference.startswith("#"):
        return None
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        return _anchored(root, pointer)
    return at_path(root, [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]])


def pointer_text(path: Sequence[str | int]) -> str:
    """Write a path as the pointer of a reference: `#/properties/a~1b`."""
    return "#" + "".join(f"/{quote(str(part).replace('~', '~0').replace('/', '~1'), safe='~')}" for part in path)


def at_path(value: Any, path: Sequence[str | int]) -> Any:
    """Return what stands at *path* inside of *value*; None if nothing does."""
    for part in path:
        if isinstance(value, list) and str(part).isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return None
    return value


def _anchored(root: Any, name: str) -> Any:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("$anchor") == name:
                return node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return None


def resolved(schema: Any, root: Any) -> dict[str, Any]:
    """Follow local references, a few steps at the most; empty if they lead to no schema of keywords."""
    for _ in range(_HOPS):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        schema = pointed(root, schema["$ref"])
    return schema if isinstance(schema, dict) else {}


def schema_at(root: Any, path: Sequence[str | int]) -> dict[str, Any]:
    """Return the part of a schema at *path*, through local references."""
    node = root
    for part in path:
        is_reference = part == "$ref" and isinstance(node, dict)
        node = pointed(root, str(node.get("$ref", ""))) if is_reference else at_path(node, [part])
    return resolved(node, root)
