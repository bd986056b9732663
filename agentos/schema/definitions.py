"""Schemas inside of schemas: walking through them, and the names of definitions."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from agentos.schema.build import Json

ANNOTATIONS = frozenset({"description", "default", "title", "examples", "deprecated"})
_SUBSCHEMAS = frozenset({"items", "additionalProperties", "propertyNames", "prefixItems", "anyOf", "oneOf", "allOf"})


def mapped(schema: Json, change: Callable[[Json], Json]) -> Json:
    """Return a copy of *schema* with *change* done to the schemas in it."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(each) for each in value]
        return change(value) if isinstance(value, dict) else value

    copy = {word: changed(value) if word in _SUBSCHEMAS else value for word, value in schema.items()}
    for word in ("properties", "patternProperties"):
        if word in schema:
            copy[word] = {name: changed(inner) for name, inner in schema[word].items()}
    return copy


def subschemas(schema: Json) -> list[Json]:
    """Return the schemas directly inside of *schema*."""
    found: list[Json] = []

    def note(inner: Json) -> Json:
        found.append(inner)
        return inner

    mapped(schema, note)
    return found


def adopted(schema: Json, refs: Mapping[str, str]) -> Json:
    """Return a copy of a foreign *schema* that refers to our definitions, closed and without titles as ours are."""
    copy = mapped(schema, lambda inner: adopted(inner, refs))
    for word in ("title", "discriminator"):
        copy.pop(word, None)
    if "$ref" in copy:
        copy["$ref"] = refs.get(copy["$ref"], copy["$ref"])
    if "properties" in copy:
        copy.setdefault("additionalProperties", False)
    return copy


def name_of(origin: Any, args: Iterable[Any]) -> str:
    """Return the name of a generic class with its arguments."""
    words = (arg.__name__ if isinstance(arg, type) and not get_args(arg) else str(arg) for arg in args)
    text = "_".join([origin.__name__, *(re.sub(r"[\w.<>]+\.", "", word) for word in words)])
    return re.sub(r"\W+", "_", text).strip("_")


def distinct_names(entries: Iterable[Any]) -> dict[str, str]:
    """Give every definition a name of its own."""
    names: dict[str, str] = {}
    for entry in entries:
        name, count = entry.name, 1
        while name in names.values():
            count += 1
            name = f"{entry.name}_{count}"
        names[entry.ref] = name
    return names
