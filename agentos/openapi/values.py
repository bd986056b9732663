"""Values as text, in the styles of OpenAPI. What would leave its place, or arrive as something else, is refused."""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from agentos.openapi.plan import OperationParameter
from agentos.schema.build import BuildError
from agentos.schema.explain import noun_of

Path = tuple[str | int, ...]
Pairs = list[tuple[str, str]]

_DELIMITERS = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|"}
_HEADER = re.compile(r"([!-~]([\t -~]*[!-~])?)?")
_COOKIE = re.compile(r"[!#-+\--:<-\[\]-~]*")


def as_text(value: Any, path: Path) -> str:
    """Return a plain value as text."""
    if isinstance(value, str):
        return _encodable(str(value), path)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    raise BuildError(f"expected text, a number, true or false, got {noun_of(value)}", path)


def _encodable(text: str, path: Path) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BuildError("expected Unicode text, got half of a surrogate pair", path) from None
    return text


def as_json(value: Any, path: Path, *, ascii_only: bool = False) -> str:
    """Return a value as JSON."""
    try:
        return _encodable(json.dumps(value, ensure_ascii=ascii_only, allow_nan=False), path)
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, BuildError):
            raise
        raise BuildError(f"expected JSON: {error}", path) from None


def as_one_text(value: Any, path: Path, *, explode: bool, delimiter: str = ",") -> str:
    """Return a value as one text; the items of a list and the keys and values of an object stand between delimiters."""
    if isinstance(value, dict) and explode:
        pairs = [(_without(key, "=", path), as_text(each, (*path, key))) for key, each in value.items()]
        return _joined([f"{key}={each}" for key, each in pairs], delimiter, path)
    if isinstance(value, dict):
        both = [part for key, each in value.items() for part in (as_text(key, path), as_text(each, (*path, key)))]
        return _joined(both, delimiter, path)
    if isinstance(value, list):
        return _joined([as_text(each, (*path, index)) for index, each in enumerate(value)], delimiter, path)
    return as_text(value, path)


def _joined(parts: Sequence[str], delimiter: str, path: Path) -> str:
    return delimiter.join(_without(part, delimiter, path) for part in parts)


def _without(text: str, delimiter: str, path: Path) -> str:
    if delimiter in text:
        raise BuildError(f"expected no {delimiter!r} inside: it divides one value from the next", path)
    return _encodable(text, path)


def as_pairs(
    name: str, value: Any, style: str, path: Path, *, explode: bool, taken: Collection[str] = frozenset()
) -> Pairs:
    """Return a value as names and texts of a query or a form; *taken* are names that a key of it may not become."""
    if not isinstance(value, list | dict):
        return [] if value is None else [(name, as_text(value, path))]
    if style == "deepObject":
        return list(_in_brackets(name, value, path, taken))
    if not explode:
        return [(name, as_one_text(value, path, explode=False, delimiter=_DELIMITERS[style]))] if value else []
    if isinstance(value, list):
        return [(name, as_text(each, (*path, index))) for index, each in enumerate(value)]
    return [(_key(key, path, taken), as_text(each, (*path, key))) for key, each in value.items()]


def _in_brackets(name: str, value: Any, path: Path, taken: Collection[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list | dict):
        yield name, as_text(value, path)
        return
    parts: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in parts:
        inner = f"{name}[{_key(str(key), path)}]"
        if inner in taken:
            raise BuildError(f"{inner!r} is a parameter of its own", (*path, key))
        yield from _in_brackets(inner, each, (*path, key), taken)


def _key(key: str, path: Path, taken: Collection[str] = frozenset()) -> str:
    if not key or "[" in key or "]" in key:
        raise BuildError("expected keys that are not empty and have no brackets", path)
    if key in taken:
        raise BuildError(f"the key {key!r} is a parameter of its own", path)
    return _encodable(key, path)


def as_header(parameter: OperationParameter, value: Any) -> str:
    """Return the value of a header: one line of visible characters."""
    path = (parameter.argument,)
    if parameter.is_json:
        return as_json(value, path, ascii_only=True)
    text = as_one_text(value, path, explode=parameter.explode)
    if not _HEADER.fullmatch(text):
        raise BuildError("expected one line of ASCII for a header, with no blank at either end", path)
    return text


def as_cookie(parameter: OperationParameter, value: Any) -> str:
    """Return the value of a cookie: no blanks, quotes, commas, semicolons or backslashes."""
    path = (parameter.argument,)
    text = as_json(value, path, ascii_only=True) if parameter.is_json else as_text(value, path)
    if not _COOKIE.fullmatch(text):
        raise BuildError('expected ASCII without blanks or any of " , ; \\ for a cookie', path)
    return text
