"""Input schemas as providers take them: an object at the root, with its properties in plain sight."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from agentos.schema.references import pointed
from agentos.schema.validation import to_plain_json

_ANY = ("anyOf", "oneOf")
_REFUSED_AT_ROOT = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const")


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of *schema* that says it is an object, which arguments always are."""
    plain: dict[str, Any] = to_plain_json(schema)
    return {**plain, "type": "object"}


def flat_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of *schema* without what providers refuse at its root.

    One schema that they refuse would cost the whole request, with every tool in it. So alternatives at the root are
    laid over one another: the model sees every property, and our own validation says what does not go together.
    """
    made = object_schema(schema)
    if "properties" in made and not any(keyword in made for keyword in _REFUSED_AT_ROOT):
        return made
    properties: dict[str, Any] = {}
    required = set(made.get("required", ()))
    for keyword, branches in _branches(made):
        for branch in branches:
            properties = {**branch.get("properties", {}), **properties}
        demands = [set(branch.get("required", ())) for branch in branches]
        required |= set.intersection(*demands) if keyword in _ANY else set.union(*demands)
    flat = {keyword: value for keyword, value in made.items() if keyword not in _REFUSED_AT_ROOT}
    flat["properties"] = {**properties, **made.get("properties", {})}
    if len(required) > len(made.get("required", ())):
        flat["required"] = sorted(required)
    return flat


def _branches(root: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for keyword in ("$ref", "allOf", *_ANY):
        if keyword in root:
            given = [{"$ref": root["$ref"]}] if keyword == "$ref" else root[keyword]
            found = [branch for branch in (follow_reference(one, root) for one in given) if isinstance(branch, dict)]
            if found:
                yield keyword, found


def follow_reference(schema: Any, root: dict[str, Any]) -> Any:
    """Return what a local reference leads to; what is no reference is itself, and a dead or endless one is None."""
    seen: set[str] = set()
    while isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str):
        if reference in seen:
            return None
        seen.add(reference)
        schema = pointed(root, reference)
    return schema


def decode_pointer(part: str) -> str:
    """Return the key that a part of a reference stands for."""
    return unquote(part).replace("~1", "/").replace("~0", "~")


def encode_pointer(key: str) -> str:
    """Return how a reference says *key*."""
    return quote(key.replace("~", "~0").replace("/", "~1"), safe="", errors="replace")
