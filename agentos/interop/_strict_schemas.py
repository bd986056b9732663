"""OpenAI's strict schemas, where a schema allows it, and the way back from their nulls.

A strict schema promises that whatever fits it fits the original too, once the nulls that stand for "not given" are
taken out again. A schema that can't keep that promise within OpenAI's subset is not made strict.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentos.interop._provider_schemas import decode_pointer, encode_pointer, follow_reference
from agentos.schema.references import pointed
from agentos.schema.validation import compile_schema, to_plain_json

DEPTH_LIMIT = 10
PROPERTY_LIMIT = 5_000
ENUM_LIMIT = 250
SIZE_LIMIT = 100_000

_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_LOOKAROUNDS = ("(?=", "(?!", "(?<=", "(?<!")
_NUMERIC = ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_KEPT = ("title", "description", "pattern", "format", "minItems", "maxItems", *_NUMERIC)
_NOTES = ("title", "description")
_UNSUPPORTED = {
    *("allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
    *("prefixItems", "unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems"),
    *("minLength", "maxLength", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor"),
}
_SHAPES = ("type", "enum", "const", "properties", "required", "additionalProperties", "items", *_KEPT[2:])
_NULL = {"type": "null"}


class NotStrictError(ValueError):
    """A schema that has no strict form; the message says why."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strict form of a tool's input schema; raise NotStrictError if it has none."""
    root = to_plain_json(schema)
    if not isinstance(root.get("properties"), dict) or root.get("type", "object") != "object":
        raise NotStrictError("the root is not an object with properties")
    return _StrictRewriter(root).rewrite()


class _StrictRewriter:
    """One schema being rewritten; definitions are rewritten when something refers to them."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._wanted: dict[str, None] = {}

    def rewrite(self) -> dict[str, Any]:
        body = {key: value for key, value in self._root.items() if key not in ("$defs", "definitions")}
        made = self._rewrite({"type": "object", **body})
        parts = [made]
        done: set[str] = set()
        while waiting := [reference for reference in self._wanted if reference not in done]:
            for reference in waiting:
                done.add(reference)
                _, home, name = reference.split("/")
                part = self._rewrite(pointed(self._root, reference))
                made.setdefault(home, {})[decode_pointer(name)] = part
                parts.append(part)
        _check_limits(made, parts)
        return made

    def _rewrite(self, schema: Any) -> dict[str, Any]:
        if not isinstance(schema, dict):
            raise NotStrictError("a schema that is true or false says nothing about a type")
        if found := _UNSUPPORTED & schema.keys():
            raise NotStrictError(f"{', '.join(sorted(found))} can't be expressed in a strict schema")
        if "$ref" in schema:
            return self._reference(schema)
        if "anyOf" in schema or "oneOf" in schema:
            return self._union(schema)
        return self._typed(schema)

    def _reference(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Keep a reference. What describes it stands beside an anyOf: nothing may stand beside a `$ref`."""
        _refuse_beside(schema, "$ref")
        reference = schema["$ref"]
        if reference != "#":
            if reference.count("/") != 2 or not reference.startswith(("#/$defs/", "#/definitions/")):  # noqa: PLR2004
                raise NotStrictError(f"the reference {reference} leads to no definition at the root")
            if not self._ends(schema, ()):
                raise NotStrictError(f"the reference {reference} leads nowhere, or back to itself")
            self._wanted.setdefault(reference)
        notes = {key: schema[key] for key in _NOTES if key in schema}
        return {**notes, "anyOf": [{"$ref": reference}]} if notes else {"$ref": reference}

    def _ends(self, schema: Any, followed: tuple[str, ...]) -> bool:
        """Tell whether every way from *schema*, by references and unions, leads to something that says a type."""
        if not isinstance(schema, dict):
            return False
        if isinstance(reference := schema.get("$ref"), str):
            return reference not in followed and self._ends(pointed(self._root, reference), (*followed, reference))
        branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        return all(self._ends(branch, followed) for branch in branches)

    def _union(self, schema: dict[str, Any]) -> dict[str, Any]:
        keyword = "anyOf" if "anyOf" in schema else "oneOf"
        _refuse_beside(schema, keyword)
        branches = schema[keyword]
        if keyword == "oneOf" and not _are_disjoint(
            [follow_reference(branch, self._root) for branch in branches], self._root
        ):
            raise NotStrictError("the branches of oneOf may overlap, and anyOf would allow that")
        notes = {key: schema[key] for key in _NOTES if key in schema}
        return {**notes, "anyOf": [self._rewrite(branch) for branch in branches]}

    def _typed(self, schema: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {"type": _type_of(schema)}
        made |= {key: schema[key] for key in (*_KEPT, "enum", "const") if key in schema}
        _check_text(schema)
        types = _types(made)
        if "object" in types:
            made |= self._members(schema)
        if "array" in types:
            made["items"] = self._rewrite(schema.get("items", True))
        return made

    def _members(self, schema: dict[str, Any]) -> dict[str, Any]:
        properties = schema.get("properties")
        required = schema.get("required", [])
        if not isinstance(properties, dict) or schema.get("additionalProperties", False) is not False:
            raise NotStrictError("an object is open")
        if unknown := [name for name in required if name not in properties]:
            raise NotStrictError(f"{', '.join(unknown)} is required, but no property")
        return {
            "properties": {
                name: self._rewrite(inner) if name in required else _nullable(self._rewrite(inner))
                for name, inner in properties.items()
            },
            "required": list(properties),
            "additionalProperties": False,
        }


def _refuse_beside(schema: dict[str, Any], keyword: str) -> None:
    others = [other for other in (*_SHAPES, "$ref", "anyOf", "oneOf") if other in schema and other != keyword]
    if others:
        raise NotStrictError(f"{', '.join(others)} stands beside {keyword}")


def _types(schema: dict[str, Any]) -> list[str]:
    given = schema.get("type", [])
    return [given] if isinstance(given, str) else given


def _type_of(schema: dict[str, Any]) -> str | list[str]:
    if "type" in schema:
        given: str | list[str] = schema["type"]
        return given
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else []
    types = list(dict.fromkeys(map(_type_name, values)))
    if not types:
        raise NotStrictError("a schema has no type")
    return types[0] if len(types) == 1 else types


def _type_name(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    if type(value) not in names:
        raise NotStrictError("enum and const hold texts, numbers, booleans and null")
    return names[type(value)]


def _check_text(schema: dict[str, Any]) -> None:
    for value in schema.get("enum", [schema.get("const")]):
        _type_name(value)
    if len(schema.get("enum", ())) > ENUM_LIMIT:
        raise NotStrictError(f"an enum has more than {ENUM_LIMIT} values")
    if "format" in schema and schema["format"] not in _FORMATS:
        raise NotStrictError(f"the format {schema['format']} is not known to strict schemas")
    if any(token in schema.get("pattern", "") for token in _LOOKAROUNDS):
        raise NotStrictError("a pattern looks around")


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Let null stand for a property that is not given."""
    if _takes_null(schema):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], _NULL]}
    if "type" in schema and "enum" not in schema and "const" not in schema:
        return {**schema, "type": [*_types(schema), "null"]}
    notes = {key: schema[key] for key in _NOTES if key in schema}
    return {**notes, "anyOf": [{key: value for key, value in schema.items() if key not in notes}, _NULL]}


def _takes_null(schema: dict[str, Any]) -> bool:
    if "anyOf" in schema:
        return any(_takes_null(branch) for branch in schema["anyOf"])
    allowed = schema["enum"] if "enum" in schema else [schema.get("const")]
    return "null" in _types(schema) and None in allowed


def _check_limits(rewrite: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    if len(json.dumps(rewrite)) > SIZE_LIMIT:
        raise NotStrictError(f"the schema has more than {SIZE_LIMIT} characters")
    for part in parts:
        depths = list(_object_depths(part, 0))
        if max(depths, default=0) > DEPTH_LIMIT or len(depths) > PROPERTY_LIMIT:
            raise NotStrictError(f"more than {DEPTH_LIMIT} levels or {PROPERTY_LIMIT} properties")


def _object_depths(schema: dict[str, Any], depth: int) -> Iterator[int]:
    """Yield the depth of every property."""
    for inner in schema.get("properties", {}).values():
        yield depth + 1
        yield from _object_depths(inner, depth + 1)
    for inner in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        yield from _object_depths(inner, depth)


# -- oneOf -------------------------------------------------------------------------------------------------------


def _are_disjoint(branches: list[Any], root: dict[str, Any]) -> bool:
    """Tell whether it is certain that no value fits two of *branches*: then oneOf and anyOf say the same."""
    if not all(isinstance(branch, dict) for branch in branches):
        return False
    pairs = ((one, two) for index, one in enumerate(branches) for two in branches[index + 1 :])
    return all(_differ(one, two, root) for one, two in pairs)


def _differ(one: dict[str, Any], two: dict[str, Any], root: dict[str, Any]) -> bool:
    kinds, others = _kinds(one), _kinds(two)
    if kinds and others and not kinds & others:
        return True
    values, other_values = _values(one), _values(two)
    if values is not None and other_values is not None:
        return not any(value == other for value in values for other in other_values)
    if kinds != {"object"} or others != {"object"}:
        return False
    return _demands_what_is_closed(one, two) or _demands_what_is_closed(two, one) or _tagged_apart(one, two, root)


def _kinds(schema: dict[str, Any]) -> set[str]:
    return {"number" if kind == "integer" else kind for kind in _types(schema)}


def _values(schema: Any) -> list[Any] | None:
    if not isinstance(schema, dict):
        return None
    return schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None


def _demands_what_is_closed(one: dict[str, Any], two: dict[str, Any]) -> bool:
    closed = two.get("additionalProperties") is False and "patternProperties" not in two
    return closed and any(name not in two.get("properties", {}) for name in one.get("required", ()))


def _tagged_apart(one: dict[str, Any], two: dict[str, Any], root: dict[str, Any]) -> bool:
    for name in set(one.get("required", ())) & set(two.get("required", ())):
        values = _values(follow_reference(one.get("properties", {}).get(name), root))
        others = _values(follow_reference(two.get("properties", {}).get(name), root))
        if values is not None and others is not None and not any(value in others for value in values):
            return True
    return False


# -- the way back ------------------------------------------------------------------------------------------------


class Restorer:
    """Takes out the nulls of arguments that a strict schema asked for and the original does not know."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._given = schema
        self._root: dict[str, Any] | None = None
        self._validators: dict[str, Any] = {}

    def __call__(self, arguments: Any) -> Any:
        """Return *arguments* as the original schema takes them; they are not changed themselves."""
        if self._root is None:
            self._root = to_plain_json(self._given)
        return self._restored(arguments, "#", self._root)

    def _restored(self, value: Any, place: str, schema: Any, followed: tuple[str, ...] = ()) -> Any:
        """Restore *value*; *followed* are the references that led from it back to it."""
        assert self._root is not None  # noqa: S101 - set by the only way in
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            place = schema["$ref"]
            if place in followed:
                return value
            schema, followed = pointed(self._root, place), (*followed, place)
        if not isinstance(schema, dict):
            return value
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._first_that_fits(value, f"{place}/{keyword}", schema[keyword], followed)
        if isinstance(value, dict):
            return dict(self._members(value, place, schema))
        if isinstance(value, list):
            return [self._restored(item, f"{place}/items", schema.get("items")) for item in value]
        return value

    def _first_that_fits(self, value: Any, place: str, branches: list[Any], followed: tuple[str, ...]) -> Any:
        for index, branch in enumerate(branches):
            restored = self._restored(value, f"{place}/{index}", branch, followed)
            if self._fits(restored, f"{place}/{index}"):
                return restored
        return value

    def _members(self, value: dict[str, Any], place: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        for name, item in value.items():
            inside = f"{place}/properties/{encode_pointer(name)}"
            if item is None and name in properties and name not in required and not self._fits(None, inside):
                continue
            yield name, self._restored(item, inside, properties.get(name))

    def _fits(self, value: Any, place: str) -> bool:
        """Tell whether *value* fits the part of the schema at *place*."""
        if place not in self._validators:
            home = "urn:agentos:original"
            rewrite = {"$defs": {"original": {**(self._root or {}), "$id": home}}, "$ref": f"{home}{place}"}
            self._validators[place] = compile_schema(rewrite, "a part of a strict schema")
        return bool(self._validators[place].is_valid(value))
