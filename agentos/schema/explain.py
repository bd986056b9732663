"""Saying what is wrong with a value: where, what was expected, what came, and the nearest name."""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from agentos.model.field_checks import did_you_mean
from agentos.schema.defaults import pointed

PROBLEM_LIMIT = 8
_SHOWN = 80
_LISTED = 20
_LARGE = 5_000

_NOUNS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


@attrs.frozen
class Problem:
    """One thing wrong with an argument: where, and what was expected instead of what came."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def problems_of(validator: Any, schema: Any, instance: Any, root: str = "$") -> list[Problem]:
    """List what is wrong with *instance*, the first few problems, each with its path."""
    errors = errors_of(validator, instance)
    found = (problem for error in errors for problem in _explain(error, schema, root))
    return list(dict.fromkeys(itertools.islice(found, PROBLEM_LIMIT * 4)))[:PROBLEM_LIMIT]


def _explain(error: Any, schema: Any, root: str) -> Iterator[Problem]:
    path, kind = list(error.instance_path), error.kind
    match kind.name:
        case "additionalProperties" | "unevaluatedProperties":
            known = list(_schema_at(schema, list(error.schema_path)[:-1]).get("properties", {}))
            for name in itertools.islice(kind.unexpected, PROBLEM_LIMIT):
                yield Problem(show_path([*path, name], root), _unknown(name, known))
        case "required":
            wanted = _schema_at(schema, list(error.schema_path)[:-1]).get("properties", {}).get(kind.property, {})
            yield Problem(show_path([*path, kind.property], root), f"missing; expected {_wanted(wanted, schema)}")
        case "anyOf" | "oneOf" if inner := meant(kind):
            yield from (problem for one in inner for problem in _explain(one, schema, root))
        case "propertyNames":
            name = getattr(kind.error, "instance", None)
            yield Problem(
                show_path(path, root), f"expected keys of another form, got the key {_clip(json.dumps(name))}"
            )
        case _:
            yield Problem(
                show_path(path, root), f"expected {_expectation(error, schema)}, got {_shown(error.instance)}"
            )


def _unknown(name: str, known: Sequence[str]) -> str:
    hint = did_you_mean(name[:_SHOWN], known)
    listing = f" Known: {', '.join(known)}" if known else " None is known"
    return f"unknown key{hint or '.'}{listing}"


def errors_of(validator: Any, instance: Any) -> list[Any]:
    """List what the validator finds. Of a very large instance only the first: it makes all or one."""
    if not _is_large(instance):
        return list(itertools.islice(validator.iter_errors(instance), PROBLEM_LIMIT * 4))
    import jsonschema_rs

    try:
        validator.validate(instance)
    except jsonschema_rs.ValidationError as error:
        return [error]
    return []


def _is_large(instance: Any) -> bool:
    waiting, seen = [instance] if type(instance) in (dict, list) else [], 0
    while waiting and seen <= _LARGE:
        inner = waiting.pop()
        seen += len(inner)
        waiting += [one for one in (inner.values() if type(inner) is dict else inner) if type(one) in (dict, list)]
    return seen > _LARGE


def meant(kind: Any) -> list[Any]:
    """Return the errors of the one option of a union that a value was meant for, if that can be told.

    Options of another type are out; of several objects, those whose constants say something else.
    """
    options = [list(errors) for errors in getattr(kind, "context", None) or ()]
    depth = min((len(error.instance_path) for errors in options for error in errors), default=0)
    fitting = [errors for errors in options if not any(_is_of_another_type(error, depth) for error in errors)]
    if len(fitting) > 1:
        fitting = [errors for errors in fitting if not any(error.kind.name in ("const", "enum") for error in errors)]
    return fitting[0] if len(fitting) == 1 else []


def _is_of_another_type(error: Any, depth: int) -> bool:
    return error.kind.name in ("type", "const", "enum") and len(error.instance_path) == depth


def _options(error: Any, schema: Any) -> list[dict[str, Any]]:
    holder = _schema_at(schema, list(error.schema_path)[:-1])
    keyword = str(list(error.schema_path)[-1])
    options = holder.get(keyword)
    return [_resolved(option, schema) for option in options] if isinstance(options, list) else []


def _expectation(error: Any, schema: Any) -> str:
    kind = error.kind
    if kind.name in _LIMITS:
        return _LIMITS[kind.name].format(kind.limit)
    match kind.name:
        case "type":
            return " or ".join(_NOUNS.get(name, name) for name in kind.types)
        case "enum":
            texts = [one for one in kind.options if isinstance(one, str)]
            hint = did_you_mean(error.instance[:_SHOWN], texts) if isinstance(error.instance, str) else ""
            return f"one of {_listed(list(kind.options))}{hint}"
        case "const":
            return _clip(json.dumps(kind.expected_value, ensure_ascii=False))
        case "pattern":
            return f"text that fits the pattern {kind.pattern}"
        case "format":
            return f"text of the format {kind.format}"
        case "multipleOf":
            return f"a multiple of {kind.multiple_of}"
        case "uniqueItems":
            return "no item twice"
        case "anyOf" | "oneOf":
            return _either(_options(error, schema), schema)
        case name:
            return f"a value that satisfies {name}"


def _either(options: Sequence[dict[str, Any]], schema: Any) -> str:
    words = list(dict.fromkeys(_wanted(option, schema) for option in options))
    return " or ".join(words) if words else "one of the allowed shapes"


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(json.dumps(one, ensure_ascii=False) for one in values[:_LISTED])
    return f"{shown}, …" if len(values) > _LISTED else shown


def _resolved(schema: Any, root: Any) -> dict[str, Any]:
    """Follow a local reference, a few steps at the most."""
    for _ in range(8):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        schema = pointed(root, schema["$ref"])
    return schema if isinstance(schema, dict) else {}


def _schema_at(schema: Any, path: Sequence[str | int]) -> dict[str, Any]:
    """Return the part of *schema* at *path*, through local references."""
    node: Any = schema
    for part in path:
        if part == "$ref" and isinstance(node, dict):
            node = pointed(schema, str(node.get("$ref", "")))
        elif isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and isinstance(part, int):
            node = node[part] if part < len(node) else None
        else:
            return {}
    return _resolved(node, schema)


def _wanted(schema: Any, root: Any) -> str:
    schema = _resolved(schema, root)
    if isinstance(schema.get("enum"), list):
        return f"one of {_listed(schema['enum'])}"
    if "const" in schema:
        return _clip(json.dumps(schema["const"], ensure_ascii=False))
    kind = schema.get("type")
    if isinstance(kind, str):
        return _NOUNS.get(kind, kind)
    if isinstance(kind, list):
        return " or ".join(_NOUNS.get(one, str(one)) for one in kind)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return _either([_resolved(option, root) for option in schema[keyword]], root)
    return "a value"


def show_path(parts: Sequence[str | int], root: str = "$") -> str:
    """Write a path the way JSON paths are written: `$.items[0].name`."""
    text = root
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if part.isidentifier() and len(part) <= _SHOWN else f"[{_clip(json.dumps(part))}]"
    return text


def noun_of(value: Any) -> str:
    """Name what kind of JSON value this is."""
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str | int | float):
        return f"{noun_of(value)} {_clip(json.dumps(value, ensure_ascii=False))}"
    return noun_of(value)


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


clip = _clip
