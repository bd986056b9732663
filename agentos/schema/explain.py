"""Saying what is wrong with a value: where, what was expected, what came, and the nearest name.

One explainer for arguments, outputs and files; a `Voice` says to whom it speaks.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from agentos.base.spelling import did_you_mean
from agentos.errors import Problem
from agentos.schema.references import resolved, schema_at

PROBLEM_LIMIT = 8
_SHOWN = 80
_LISTED = 20
_NAMED = 5
UNFINISHED = "unfinished"
"""The kind of an error that was not found in time: its place is as far as the search came."""
_CHOICES = ("type", "const", "enum", "falseSchema")

_NOUNS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_KINDS = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list", dict: "an object"}
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


@attrs.frozen(kw_only=True)
class Voice:
    """How problems are told."""

    nouns: Mapping[str, str] = attrs.field(default=_NOUNS)
    """What each type of JSON Schema is called."""
    kinds: Mapping[type, str] = attrs.field(default=_KINDS)
    """What each type of Python is called."""
    known: str = "Known"
    plain_key: re.Pattern[str] = re.compile(rf"[^\W\d]\w{{0,{_SHOWN - 1}}}")
    quote: Callable[[str], str] = lambda key: clip(json.dumps(key))
    names_missing: bool = True
    """Whether a missing key is told at its own place, with what is expected there."""
    quotes_values: bool = True

    def path(self, parts: Iterable[str | int], root: str = "") -> str:
        """Write a path: `$.items[0].name` from the root `$`, `packs[2].options` from none."""
        text = root
        for part in parts:
            if isinstance(part, int):
                text += f"[{part}]"
            elif self.plain_key.fullmatch(part):
                text += f".{part}" if text else part
            else:
                text += f"[{self.quote(part)}]"
        return text

    def noun(self, value: Any) -> str:
        """Name what kind of value this is."""
        if value is None:
            return "null"
        if not self.quotes_values and isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return self.kinds.get(type(value), f"a {type(value).__name__}")


TO_CALLERS = Voice()
"""Of arguments and outputs, in the words of JSON."""
TO_OPERATORS = Voice(
    nouns={**_NOUNS, "integer": "an int", "object": "a mapping"},
    kinds={**_KINDS, int: "an int", float: "a float", dict: "a mapping"},
    known="Known keys",
    plain_key=re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*"),
    quote=repr,
    names_missing=False,
    quotes_values=False,
)
"""Of files, in the words of whoever writes TOML, YAML or Python. A value is never quoted: one may be a secret."""


def problems_of(validator: Any, schema: Any, instance: Any, root: str = "$") -> list[Problem]:
    """List what is wrong with *instance*, the first few problems, each with its path."""
    errors = errors_of(validator, instance)
    found = (problem for error in errors for problem in explain(error, schema, root))
    return list(dict.fromkeys(itertools.islice(found, PROBLEM_LIMIT * 4)))[:PROBLEM_LIMIT]


def explain(error: Any, schema: Any, root: str = "", voice: Voice = TO_CALLERS) -> Iterator[Problem]:
    """Say what an error of the validator of *schema* means: mostly one problem, of unknown keys one for each."""
    path, kind = list(error.instance_path), error.kind
    place = voice.path(path, root)
    holder = schema_at(schema, list(error.schema_path)[:-1])
    match kind.name:
        case "additionalProperties" | "unevaluatedProperties":
            known = list(holder.get("properties", {}))
            for name in kind.unexpected if voice is TO_OPERATORS else kind.unexpected[:PROBLEM_LIMIT]:
                yield Problem(voice.path([*path, name], root), _unknown(name, known, voice))
        case "required" if voice.names_missing:
            wanted = holder.get("properties", {}).get(kind.property, {})
            message = f"missing; expected {_wanted(wanted, schema, voice)}"
            yield Problem(voice.path([*path, kind.property], root), message)
        case "required":
            yield Problem(place, f"expected the key {kind.property!r}")
        case "oneOf" if names := _alternatives(holder.get("oneOf")):
            if isinstance(error.instance, dict):  # what else it is, is told by its type
                has = [name for name in names if name in error.instance]
                yield Problem(place, f"expected exactly one of {', '.join(names)}; got {' and '.join(has) or 'none'}")
        case "oneOf" if len(fitting := _fitting(kind)) > 1:
            options = holder.get("oneOf")
            shapes = " and ".join(_shape(options, index, schema) for index in fitting[:_NAMED])
            total = len(options) if isinstance(options, list) else len(fitting)
            yield Problem(place, f"expected what fits exactly one of {total} shapes; this fits {shapes}")
        case "anyOf" | "oneOf" if inner := meant(kind):
            note = _nearest_note(kind, holder.get(kind.name))
            for one in inner:
                for problem in explain(one, schema, root, voice):
                    is_told = one.kind.name in ("anyOf", "oneOf")
                    yield problem if is_told else Problem(problem.path, f"{problem.message}{note}")
        case name if name == UNFINISHED:
            yield Problem(place, "something in here does not fit; to find it takes too much work, so send less at once")
        case "propertyNames":
            name = clip(json.dumps(getattr(kind.error, "instance", None)))
            yield Problem(place, f"expected keys of another form, got the key {name}")
        case _:
            told = voice.quotes_values or kind.name == "type"
            got = f", got {_shown(error.instance, voice)}" if told else ""
            yield Problem(place, f"expected {_expectation(error, holder, schema, voice)}{got}")


def _unknown(name: str, known: Sequence[str], voice: Voice) -> str:
    listing = f" {voice.known}: {', '.join(known)}" if known else " None is known"
    return f"unknown key{did_you_mean(name[:_SHOWN], known) or '.'}{listing}"


def _alternatives(options: Any) -> list[str]:
    """Return the keys of which exactly one is expected, if that is all that the options say."""
    options = options if isinstance(options, list) else []
    plain = all(isinstance(option, dict) and option.keys() == {"required"} for option in options)
    return [name for option in options for name in option["required"]] if plain else []


def errors_of(validator: Any, instance: Any) -> list[Any]:
    """List the first errors that a bounded validator finds."""
    return list(itertools.islice(validator.iter_errors(instance), PROBLEM_LIMIT * 4))


def _fitting(kind: Any) -> list[int]:
    """Return which options of a union a value fits."""
    return [index for index, errors in enumerate(getattr(kind, "context", None) or ()) if not list(errors)]


def _shape(options: Any, index: int, schema: Any) -> str:
    """Name an option of a union, and the keys that it needs."""
    option = options[index] if isinstance(options, list) and index < len(options) else {}
    required = resolved(option, schema).get("required")
    keys = [one for one in required if isinstance(one, str)] if isinstance(required, list) else []
    needs = f" (which needs {clip(', '.join(keys))})" if keys else ""
    return f"{_shape_name(option, index)}{needs}"


def _shape_name(option: Any, index: int) -> str:
    said = option if isinstance(option, dict) else {}
    name = said.get("title") or str(said.get("$ref", "")).rpartition("/")[2]
    return clip(str(name)) if name else f"number {index + 1}"


def _nearest_note(kind: Any, options: Any) -> str:
    """Say which option of a union a problem is of, if others of its type were possible."""
    context = kind.context
    index, others = nearest(context), sum(not _is_of_another_type(one, _depth(context)) for one in context) - 1
    if index is None or not others or not isinstance(options, list):
        return ""
    return f" (of the nearest of {len(options)} shapes, {_shape_name(options[index], index)})"


def meant(kind: Any) -> list[Any]:
    """Return the errors of the option of a union that a value came nearest to, if it is of the type of any."""
    options = [list(errors) for errors in getattr(kind, "context", None) or ()]
    index = nearest(options)
    return [] if index is None else options[index]


def nearest(options: Sequence[Sequence[Any]]) -> int | None:
    """Return which option of a union a value came nearest to; None if it is of another type than all of them.

    Of those of its type it is the one with the fewest other constants, and then with the fewest errors.
    """
    depth = _depth(options)
    ranks = [(_faults(errors), index) for index, errors in enumerate(options) if not _is_of_another_type(errors, depth)]
    return min(ranks)[1] if ranks else None


def _depth(options: Sequence[Sequence[Any]]) -> int:
    return min((len(error.instance_path) for errors in options for error in errors), default=0)


def _is_of_another_type(errors: Sequence[Any], depth: int) -> bool:
    return any(error.kind.name in _CHOICES and len(error.instance_path) == depth for error in errors)


def _faults(errors: Sequence[Any]) -> tuple[int, int]:
    constants = sum(error.kind.name in ("const", "enum") for error in errors)
    return constants, sum(len(getattr(error.kind, "unexpected", ())) or 1 for error in errors)


def _expectation(error: Any, holder: Mapping[str, Any], schema: Any, voice: Voice) -> str:
    kind = error.kind
    if kind.name == "minLength" and kind.limit == 1:
        return "a string that is not empty"
    if kind.name in _LIMITS:
        return _LIMITS[kind.name].format(kind.limit)
    match kind.name:
        case "type":
            return _types(list(kind.types) if voice is TO_CALLERS else holder.get("type", ""), voice)
        case "enum":
            texts = [one for one in kind.options if isinstance(one, str)]
            hint = did_you_mean(error.instance[:_SHOWN], texts) if isinstance(error.instance, str) else ""
            return f"one of {_listed(list(kind.options))}{hint}"
        case "const":
            return clip(json.dumps(kind.expected_value, ensure_ascii=False))
        case "pattern":
            return f"text that fits the pattern {kind.pattern}"
        case "not" if holder.get("not") == {"pattern": "\\n"}:
            return "text on one line"
        case "format":
            return f"text of the format {kind.format}"
        case "multipleOf":
            return f"a multiple of {kind.multiple_of}"
        case "uniqueItems":
            return "no item twice"
        case "anyOf" | "oneOf":
            return _either(holder.get(kind.name), schema, voice)
        case name:
            return f"a value that satisfies {name}"


def _types(names: str | list[str], voice: Voice) -> str:
    return " or ".join(voice.nouns.get(one, str(one)) for one in ([names] if isinstance(names, str) else names))


def _either(options: Any, schema: Any, voice: Voice) -> str:
    options = options if isinstance(options, list) else []
    words = dict.fromkeys(_wanted(option, schema, voice) for option in options)
    return " or ".join(words) if words else "one of the allowed shapes"


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(json.dumps(one, ensure_ascii=False) for one in values[:_LISTED])
    return f"{shown}, …" if len(values) > _LISTED else shown


def _wanted(schema: Any, root: Any, voice: Voice) -> str:
    schema = resolved(schema, root)
    if isinstance(schema.get("enum"), list):
        return f"one of {_listed(schema['enum'])}"
    if "const" in schema:
        return clip(json.dumps(schema["const"], ensure_ascii=False))
    kind = schema.get("type")
    if isinstance(kind, str | list):
        return _types(kind, voice)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return _either(schema[keyword], root, voice)
    return "a value"


def noun_of(value: Any) -> str:
    """Name what kind of JSON value this is."""
    return TO_CALLERS.noun(value)


def _shown(value: Any, voice: Voice) -> str:
    if voice.quotes_values and isinstance(value, str | int | float):
        return f"{voice.noun(value)} {clip(json.dumps(value, ensure_ascii=False))}"
    return voice.noun(value)


def show_path(parts: Iterable[str | int], root: str = "$") -> str:
    """Write a path the way JSON paths are written: `$.items[0].name`."""
    return TO_CALLERS.path(parts, root)


def clip(text: str) -> str:
    """Return *text*, or the beginning of it if it is long."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
