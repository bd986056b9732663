"""Arguments and outputs against JSON Schema 2020-12: compiled once, checked fast, refused readably."""

import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from agentos.errors import ToolDefinitionError
from agentos.model._checks import did_you_mean

ARGUMENTS_LIMIT = 1_000_000
"""How many characters of JSON text a call may bring."""
_PROBLEM_LIMIT = 8
_SHOWN = 80
_DEPTH = 64

_NOUNS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


@attrs.frozen
class Problem:
    """One thing wrong with an argument: where, and what was expected instead of what came."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class BadArguments(ValueError):  # noqa: N818 - becomes a result, never leaves as an exception
    """Arguments that can't be used; `problems` says why."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


def compile_schema(schema: Any, where: str, *, formats: bool = True) -> Any:
    """Return the validator of *schema*. The one place where a validator is made: it never fetches a reference."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(to_plain_json(schema), validate_formats=formats, offline=True)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        reason = str(error).splitlines()[0]
        raise ToolDefinitionError(
            where, "", f"no usable JSON Schema (2020-12, no remote references): {reason}"
        ) from None


def to_plain_json(value: Any, depth: int = 0) -> Any:
    """Copy mappings and sequences into the dicts and lists that the validator takes; refuse what is not JSON."""
    kind = type(value)
    if kind in (str, int, bool, type(None)):
        return value
    if depth > _DEPTH:
        raise ValueError(f"nested deeper than {_DEPTH} levels")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"expected strings as keys, got {type(key).__name__}")  # noqa: TRY004 - one error for what is not JSON
        return {str(key): to_plain_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_json(item, depth + 1) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not JSON")
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    raise ValueError(f"a {type(value).__name__} is not JSON")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


class Checker:
    """Turns what a caller sent into arguments that fit one tool's schema, or says what is wrong with it."""

    __slots__ = ("_coerce", "_fill", "_is_valid", "_schema", "_validator")

    def __init__(self, schema: Mapping[str, Any], where: str, *, coerce: bool = False) -> None:
        self._schema = to_plain_json(schema)
        self._validator = compile_schema(self._schema, where)
        self._is_valid = self._validator.is_valid
        self._fill = _filler(self._schema, self._schema)
        self._coerce = coerce

    def arguments(self, raw: str | bytes | Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the arguments, defaults filled in; raise BadArguments with every problem."""
        if type(raw) is str:
            arguments = _parse(raw)
        elif raw is None:
            arguments = {}
        else:
            arguments = _copied(raw)
        if not self._is_valid(arguments):
            arguments = self._rescued(arguments)
        if self._fill is not None:
            self._fill(arguments)
        return arguments

    def _rescued(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Coerce, where the tool allows it, what does not fit; raise if it still does not."""
        if self._coerce:
            arguments = copy.deepcopy(arguments)
            for error in list(self._validator.iter_errors(arguments)):
                _coerce_at(arguments, list(error.instance_path), error.kind)
            if self._is_valid(arguments):
                return arguments
        raise BadArguments("the arguments do not fit", problems_of(self._validator, self._schema, arguments))


def _parse(text: str) -> dict[str, Any]:
    if len(text) > ARGUMENTS_LIMIT:
        raise BadArguments(f"expected at most {ARGUMENTS_LIMIT} characters of JSON, got {len(text)}")
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise BadArguments(_why_not_json(text, error)) from None
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"expected a JSON object: {str(error) or 'nested too deep'}") from None
    if type(value) is not dict:
        raise BadArguments(f'expected a JSON object such as {{"name": ...}}, got {_noun_of(value)}')
    return value


def _why_not_json(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip():
        return "expected a JSON object, got an empty text; send {} for no arguments"
    rest = text[error.pos :].strip()
    if not rest or error.msg.startswith("Unterminated"):
        return f"the JSON is cut off at character {len(text)}; send the whole object"
    return (
        f"not JSON: {error.msg} at character {error.pos}, near {_clip(text[max(0, error.pos - 10) : error.pos + 20])}"
    )


def _copied(raw: Any) -> dict[str, Any]:
    if isinstance(raw, bytes | bytearray):
        try:
            return _parse(raw.decode("utf-8"))
        except UnicodeDecodeError:
            raise BadArguments("expected JSON in UTF-8") from None
    if not isinstance(raw, Mapping):
        raise BadArguments(f"expected JSON text or a mapping, got {type(raw).__name__}")
    try:
        plain: dict[str, Any] = to_plain_json(raw)
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"expected JSON values: {error}") from None
    return plain


# -- defaults ----------------------------------------------------------------------------------------------------

Filler = Callable[[Any], None]


def _filler(schema: Any, root: Any, refs: tuple[str, ...] = ()) -> Filler | None:
    """Return what fills in the defaults of *schema*, or None if it has none."""
    if not isinstance(schema, dict):
        return None
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference in refs:  # recursive: defaults inside are looked up when an instance goes that deep
            return _later(reference, root)
        return _filler(_pointed(root, reference), root, (*refs, reference))
    here: list[tuple[str, Any]] = []
    inside: list[tuple[str, Filler]] = []
    for name, inner in schema.get("properties", {}).items():
        if isinstance(inner, dict) and "default" in inner:
            here.append((name, inner["default"]))
        if (filler := _filler(inner, root, refs)) is not None:
            inside.append((name, filler))
    items = _filler(schema.get("items"), root, refs)
    if not here and not inside and items is None:
        return None
    return _fill_with(here, inside, items)


def _fill_with(here: list[tuple[str, Any]], inside: list[tuple[str, Filler]], items: Filler | None) -> Filler:
    def fill(value: Any) -> None:
        if type(value) is dict:
            for name, default in here:
                if name not in value:
                    value[name] = copy.deepcopy(default) if type(default) in (dict, list) else default
            for name, filler in inside:
                if name in value:
                    filler(value[name])
        elif items is not None and type(value) is list:
            for item in value:
                items(item)

    return fill


def _later(reference: str, root: Any) -> Filler:
    def fill(value: Any) -> None:
        if type(value) in (dict, list) and (filler := _filler(_pointed(root, reference), root, (reference,))):
            filler(value)

    return fill


def _pointed(root: Any, reference: str) -> Any:
    """Return what a local reference points to; anything else is the validator's business."""
    if not reference.startswith("#"):
        return None
    node = root
    for part in filter(None, reference[1:].split("/")):
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
    return node


# -- coercion ----------------------------------------------------------------------------------------------------


def _coerce_at(arguments: Any, path: list[str | int], kind: Any) -> None:
    if kind.name != "type" or not path:
        return
    holder = arguments
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = _coerced(holder[path[-1]], kind.types)


def _coerced(value: Any, types: Sequence[str]) -> Any:
    """Return *value* as the type it was obviously meant to be, else unchanged."""
    if isinstance(value, str):
        try:
            parsed = _decoder.decode(
                value.strip().lower() if value.strip().lower() in ("true", "false", "null") else value
            )
        except ValueError:
            return value
        return parsed if any(_is_a(parsed, name) for name in types) else value
    if "string" in types and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value


def _is_a(value: Any, name: str) -> bool:
    expected: dict[str, Any] = {
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "array": list,
        "object": dict,
        "null": type(None),
    }
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, expected.get(name, ()))


# -- saying what is wrong ----------------------------------------------------------------------------------------


def problems_of(validator: Any, schema: Any, instance: Any, root: str = "$") -> list[Problem]:
    """List what is wrong with *instance*, the first few problems, each with its path."""
    found: list[Problem] = []
    for error in validator.iter_errors(instance):
        found.extend(_explain(error, schema, root))
        if len(found) >= _PROBLEM_LIMIT:
            break
    return list(dict.fromkeys(found))[:_PROBLEM_LIMIT]


def _explain(error: Any, schema: Any, root: str) -> Iterator[Problem]:
    path = list(error.instance_path)
    kind = error.kind
    if kind.name == "additionalProperties":
        known = list(_schema_at(schema, list(error.schema_path)[:-1]).get("properties", {}))
        for name in kind.unexpected:
            hint = did_you_mean(name, known)
            listing = f" Known: {', '.join(known)}" if known else " None is known"
            yield Problem(show_path([*path, name], root), f"unknown key{hint or '.'}{listing}")
    elif kind.name == "required":
        wanted = _schema_at(schema, list(error.schema_path)[:-1]).get("properties", {}).get(kind.property, {})
        yield Problem(show_path([*path, kind.property], root), f"missing; expected {_wanted(wanted)}")
    else:
        yield Problem(show_path(path, root), f"expected {_expectation(error)}, got {_shown(error.instance)}")


def _expectation(error: Any) -> str:
    kind = error.kind
    match kind.name:
        case "type":
            return " or ".join(_NOUNS.get(name, name) for name in kind.types)
        case "enum":
            options = list(kind.options)
            hint = (
                did_you_mean(error.instance, [one for one in options if isinstance(one, str)])
                if isinstance(error.instance, str)
                else ""
            )
            return f"one of {', '.join(json.dumps(one, ensure_ascii=False) for one in options[:20])}{hint}"
        case "const":
            return json.dumps(kind.expected_value, ensure_ascii=False)
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            words = {
                "minimum": "at least",
                "maximum": "at most",
                "exclusiveMinimum": "more than",
                "exclusiveMaximum": "less than",
            }
            return f"{words[kind.name]} {kind.limit}"
        case "minLength" | "maxLength":
            return f"{'at least' if kind.name == 'minLength' else 'at most'} {kind.limit} characters"
        case "minItems" | "maxItems":
            return f"{'at least' if kind.name == 'minItems' else 'at most'} {kind.limit} items"
        case "pattern":
            return f"text that fits the pattern {kind.pattern}"
        case "format":
            return f"text of the format {kind.format}"
        case "multipleOf":
            return f"a multiple of {kind.multiple_of}"
        case "uniqueItems":
            return "no item twice"
        case "anyOf" | "oneOf":
            return "one of the allowed shapes"
        case name:
            return f"a value that satisfies {name}"


def _schema_at(schema: Any, path: Sequence[str | int]) -> dict[str, Any]:
    """Return the part of *schema* at *path*, through local references."""
    node: Any = schema
    for part in path:
        if part == "$ref" and isinstance(node, dict):
            node = _pointed(schema, str(node.get("$ref", "")))
        elif isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and isinstance(part, int):
            node = node[part] if part < len(node) else None
        else:
            return {}
    if isinstance(node, dict) and isinstance(node.get("$ref"), str):
        node = _pointed(schema, node["$ref"])
    return node if isinstance(node, dict) else {}


def _wanted(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "a value"
    if "enum" in schema:
        return f"one of {', '.join(json.dumps(one, ensure_ascii=False) for one in schema['enum'][:20])}"
    kind = schema.get("type")
    if isinstance(kind, str):
        return _NOUNS.get(kind, kind)
    if isinstance(kind, list):
        return " or ".join(_NOUNS.get(one, str(one)) for one in kind)
    return "a value"


def show_path(parts: Sequence[str | int], root: str = "$") -> str:
    """Write a path the way JSON paths are written: `$.items[0].name`."""
    text = root
    for part in parts:
        text += (
            f"[{part}]" if isinstance(part, int) else (f".{part}" if part.isidentifier() else f"[{json.dumps(part)}]")
        )
    return text


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | bool) or value is None:
        return f"{_noun_of(value)} {_clip(json.dumps(value, ensure_ascii=False))}" if value is not None else "null"
    return _noun_of(value)


def _noun_of(value: Any) -> str:
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
