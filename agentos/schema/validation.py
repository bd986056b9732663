"""Arguments and outputs against JSON Schema 2020-12: compiled once, checked fast, refused readably."""

import copy
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentos.base.foreign import Border, is_a
from agentos.errors import Problem, ToolDefinitionError
from agentos.schema.bounded import BoundedValidator, unusable
from agentos.schema.defaults import FILLED_LIMIT, FillWork, filler_of
from agentos.schema.explain import clip, errors_of, meant, noun_of, problems_of, show_path
from agentos.schema.work import TooMuchWorkError

__all__ = [
    "ARGUMENTS_LIMIT",
    "BadArguments",
    "Checker",
    "Problem",
    "compile_schema",
    "problems_of",
    "show_path",
    "to_plain_json",
]

ARGUMENTS_LIMIT = 1_000_000
"""How many characters of JSON text a call may bring."""
_DEPTH = 64
_LARGEST_BITS = 14_000
"""Integers of more than 4,300 digits can't be written as text by Python."""
_LESS = "send less at once, or values nested less deep"
_HALF = "half of a surrogate pair is not Unicode text"
_CUT_OFF = re.compile(r"(t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\\(u[0-9a-fA-F]{0,3})?)")


class BadArguments(ValueError):  # noqa: N818 - becomes a result, never leaves as an exception
    """Arguments that can't be used; `problems` says why."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


def compile_schema(schema: Any, where: str, *, formats: bool = True) -> BoundedValidator:
    """Return the validator of *schema*. It never fetches a reference, and refuses what takes too much work."""
    return BoundedValidator(_plain_schema(schema, where), where, formats=formats)


def _plain_schema(schema: Any, where: str) -> Any:
    try:
        return to_plain_json(schema)
    except (ValueError, RecursionError) as error:
        raise unusable(where, error) from None


def to_plain_json(value: Any, depth: int = 0) -> Any:
    """Copy mappings and sequences into the dicts and lists that the validator takes; refuse what is not JSON."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _whole(value)
    if kind is int:
        return _bounded(value)
    if kind is bool or value is None:
        return value
    if depth > _DEPTH:
        raise ValueError(f"nested deeper than {_DEPTH} levels")
    if kind is dict or isinstance(value, Mapping):
        return {
            key if type(key) is str and key.isascii() else _key(key): item
            if type(item) is str and item.isascii()
            else to_plain_json(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [to_plain_json(item, depth + 1) for item in value]
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, str):
        return _whole(str.__str__(value))
    if isinstance(value, int):
        return _bounded(int(value))
    raise ValueError(f"a {type(value).__name__} is not JSON")


def _bounded(value: int) -> int:
    if value.bit_length() > _LARGEST_BITS:
        raise ValueError("got an integer of more than 4,300 digits")
    return value


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"expected strings as keys, got {type(key).__name__}")  # noqa: TRY004 - not JSON
    return _whole(str.__str__(key))


def _whole(text: str) -> str:
    """Return *text* if it can be written down: JSON can hold halves of characters, which no file or wire can."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        raise ValueError(_HALF) from None
    return text


def _finite(value: float | str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not JSON" if isinstance(value, float) else f"{clip(str(value))} is too large")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_scan = _decoder.scan_once  # type: ignore[attr-defined]  # what `decode` does, but for white space around a value


class Checker:
    """Turns what a caller sent into arguments that fit one tool's schema, or says what is wrong with it."""

    __slots__ = ("_coerce", "_fill", "_is_valid_natively", "_schema", "_validator")

    def __init__(self, schema: Mapping[str, Any], where: str, *, coerce: bool = False) -> None:
        self._validator = BoundedValidator(_plain_schema(schema, where), where)
        self._schema = self._validator.schema
        self._is_valid_natively = self._validator.is_valid_natively
        try:
            self._fill = filler_of(self._schema, lambda: self._validator.pointers)
        except TooMuchWorkError as error:
            raise unusable(where, error) from None
        except RecursionError:
            raise unusable(where, ValueError("its references are nested too deep to be checked")) from None
        self._coerce = coerce

    def arguments(self, raw: str | bytes | Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the arguments, defaults filled in; raise BadArguments with every problem."""
        if type(raw) is str:
            arguments, is_small = _parse(raw), len(raw) <= self._validator.size_limit
        else:
            arguments, is_small = _copied(raw), False
        try:
            if not (self._is_valid_natively(arguments) if is_small else self._validator.is_valid(arguments)):
                arguments = self._rescued(arguments)
        except UnicodeEncodeError:
            raise BadArguments(_HALF) from None
        except TooMuchWorkError:
            raise BadArguments(f"checking these arguments takes too much work: {_LESS}") from None
        if self._fill is not None:
            try:
                self._fill(arguments, FillWork())
            except (RecursionError, TooMuchWorkError) as error:
                raise _not_filled(error) from None
        return arguments

    def _rescued(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Coerce, where the tool allows it, what does not fit; raise if it still does not."""
        if self._coerce:
            coerced = copy.deepcopy(arguments)
            for error in errors_of(self._validator, coerced):
                _coerce_at(coerced, list(error.instance_path), error.kind)
            if self._validator.is_valid(coerced):
                _check_depth(coerced)
                return coerced
        raise BadArguments("the arguments do not fit", problems_of(self._validator, self._schema, arguments))


def _not_filled(error: Exception) -> BadArguments:
    if isinstance(error, RecursionError):
        return BadArguments("the defaults of the tool's schema lead into each other without end")
    reason = f"they may add {FILLED_LIMIT:,} values; {_LESS}"
    return BadArguments(f"filling in the defaults of the schema takes too much work: {reason}")


def check_of(schema: Any) -> Callable[[Any], bool]:
    """Return the check of a part of a schema; one whose references lead elsewhere fits nothing."""
    try:
        check: Callable[[Any], bool] = BoundedValidator(schema, "an option").is_valid
    except ToolDefinitionError:
        return lambda _: False
    return check


def _parse(text: str) -> dict[str, Any]:
    size = len(text)
    if size > ARGUMENTS_LIMIT:
        raise BadArguments(f"expected at most {ARGUMENTS_LIMIT} characters of JSON, got {size}")
    try:
        try:
            value, end = _scan(text, 0)
        except StopIteration:
            end = -1
        if end != size:
            value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise BadArguments(_why_not_json(text, error)) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else _first_part(error)
        raise BadArguments(f"expected a JSON object: {reason}") from None
    if type(value) is not dict:
        raise BadArguments(f'expected a JSON object such as {{"name": ...}}, got {noun_of(value)}')
    if size > _DEPTH and text.count("{") + text.count("[") > _DEPTH:
        _check_depth(value)
    if not text.isascii() or ("\\" in text and ("\\ud" in text or "\\uD" in text)):
        _check_whole(value)
    return value


def _check_whole(value: Any) -> None:
    """Refuse half of a surrogate pair, wherever it stands."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadArguments(_HALF) from None


def _first_part(error: ValueError) -> str:
    """Return what Python says of a number that is too long, without its advice to the programmer."""
    return str(error).partition(";")[0]


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEPTH):
        level = [inner for one in level for inner in (one.values() if type(one) is dict else one)]
        level = [one for one in level if type(one) in (dict, list)]
        if not level:
            return
    raise BadArguments(f"expected a JSON object: nested deeper than {_DEPTH} levels")


def _why_not_json(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip():
        return "expected a JSON object, got an empty text; send {} for no arguments"
    rest = text[error.pos :].strip()
    escape = text[max(0, error.pos - 2) :] if "escape" in error.msg else ""
    is_cut = not rest or error.msg.startswith("Unterminated") or _CUT_OFF.fullmatch(rest)
    if is_cut or re.search(r"\\(u[0-9a-fA-F]{0,3})?$", escape):
        return f"the JSON is cut off at character {len(text)}; send the whole object"
    near = text[max(0, error.pos - 10) : error.pos + 20]
    return f"not JSON: {error.msg} at character {error.pos}, near {clip(near)}"


def _copied(raw: Any) -> dict[str, Any]:
    if raw is None or type(raw) is dict:
        return _copied_mapping(raw or {})
    if isinstance(raw, str):
        return _parse(str.__str__(raw))
    if isinstance(raw, bytes | bytearray):
        try:
            return _parse(raw.decode("utf-8"))
        except UnicodeDecodeError:
            raise BadArguments("expected JSON in UTF-8") from None
    if not isinstance(raw, Mapping):
        raise BadArguments(f"expected JSON text or a mapping, got {type(raw).__name__}")
    return _copied_mapping(raw)


def _copied_mapping(raw: Mapping[Any, Any]) -> dict[str, Any]:
    with Border() as border:  # a mapping may be of any class, with methods of its own
        plain: dict[str, Any] = to_plain_json(raw)
        return plain
    error = border.raised
    reason = str(error) if is_a(error, ValueError) else type(error).__name__
    raise BadArguments(f"expected JSON values: {reason}")


def _coerce_at(arguments: Any, path: list[str | int], kind: Any) -> None:
    for error in meant(kind) if kind.name in ("anyOf", "oneOf") else ():
        _coerce_at(arguments, list(error.instance_path), error.kind)
    types = _types_wanted(kind)
    if not types or not path:
        return
    holder = arguments
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = _coerced(holder[path[-1]], types)


def _types_wanted(kind: Any) -> list[str]:
    """Return the types that would have fitted, also those of the options of a union."""
    if kind.name == "type":
        return list(kind.types)
    if kind.name in ("anyOf", "oneOf"):
        errors = [error for option in getattr(kind, "context", None) or () for error in option]
        return [name for error in errors if error.kind.name == "type" for name in error.kind.types]
    return []


def _coerced(value: Any, types: Sequence[str]) -> Any:
    """Return *value* as the type it was obviously meant to be, else unchanged."""
    if isinstance(value, str):
        word = value.strip().lower()
        try:
            parsed = _decoder.decode(word if word in ("true", "false", "null") else value)
        except (ValueError, RecursionError):
            return value
        return parsed if not _TYPES[type(parsed)].isdisjoint(types) else value
    if "string" in types and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value


_TYPES: Mapping[type, frozenset[str]] = {
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    bool: frozenset({"boolean"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
    type(None): frozenset({"null"}),
    str: frozenset(),
}
