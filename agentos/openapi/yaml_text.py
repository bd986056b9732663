"""The text of a YAML 1.2 document as plain JSON values: read once, and within bounds.

libyaml divides the text where PyYAML brought it, ruamel.yaml where not. What the pieces mean is decided here, so
that it is the same with either.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agentos.model.parsing import _what_and_where

_CORE = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBERS = frozenset("-+.0123456789")
_DIGITS = 4_000
_BASES = {"0o": 8, "0x": 16}

Bound = Callable[[int], None]
"""Counts one value at a depth; raises ValueError if that is one too many, or too deep."""


def parse_yaml(given: str, bound: Bound) -> Any:
    """Return what a text holds; ValueError says what is wrong with it, and where."""
    from ruamel.yaml.error import YAMLError as RuamelError

    try:
        from yaml import YAMLError
    except ImportError:  # pragma: no cover - PyYAML is where the tests are
        YAMLError = RuamelError  # noqa: N806 - a class
    try:
        return _Builder(_events(given), bound).document()
    except (YAMLError, RuamelError) as error:
        if hasattr(error, "problem_mark"):
            raise ValueError(_what_and_where(error)) from None
        raise ValueError(f"not YAML ({getattr(error, 'reason', type(error).__name__)})") from None


def _events(given: str) -> Iterator[Any]:
    """Yield the events of a text, from the fastest parser that is there."""
    try:
        from yaml.cyaml import CParser
    except ImportError:
        from ruamel.yaml import YAML

        yield from YAML(typ="safe", pure=True).parse(given)
        return
    parser = CParser(given)
    try:
        while (event := parser.get_event()) is not None:
            yield event
    finally:
        parser.dispose()


class _Builder:
    """Makes values of events."""

    def __init__(self, events: Iterable[Any], bound: Bound) -> None:
        self._events = iter(events)
        self._bound = bound
        self._anchors: dict[str, Any] = {}

    def document(self) -> Any:
        """Return the one document of the text; None if it has none."""
        self._next()  # the stream begins
        if _kind(self._next()) == "StreamEndEvent":
            return None
        made = self._value(self._next(), 0)
        self._next()  # the document ends
        if _kind(self._next()) != "StreamEndEvent":
            raise ValueError("expected one document, got several")
        return made

    def _next(self) -> Any:
        return next(self._events)

    def _value(self, event: Any, depth: int) -> Any:
        self._bound(depth)
        kind = _kind(event)
        if kind == "AliasEvent":
            return self._copied(self._anchored(event), depth)
        if kind == "ScalarEvent":
            made = _scalar(event)
        elif event.tag in (None, "!", f"{_CORE}{'map' if kind == 'MappingStartEvent' else 'seq'}"):
            made = self._mapping(depth) if kind == "MappingStartEvent" else self._sequence(depth)
        else:
            raise _refused(event, "a value does not fit its tag, or the tag is unknown")
        if event.anchor is not None:
            self._anchors[event.anchor] = made
        return made

    def _sequence(self, depth: int) -> list[Any]:
        made = []
        while _kind(event := self._next()) != "SequenceEndEvent":
            made.append(self._value(event, depth + 1))
        return made

    def _mapping(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: list[Any] = []
        while _kind(event := self._next()) != "MappingEndEvent":
            if _is_merge(event):
                merged += self._merged(depth)
                continue
            key = self._key(event)
            if key in made:
                raise _refused(event, f"the key {key!r} stands twice in one mapping")
            made[key] = self._value(self._next(), depth + 1)
        for each in merged:
            for key, value in each.items():
                made.setdefault(key, value)
        return made

    def _merged(self, depth: int) -> list[dict[str, Any]]:
        """Return the mappings that a merge key names, those that come first being stronger."""
        event = self._next()
        given = self._value(event, depth)
        found = given if isinstance(given, list) else [given]
        if not all(isinstance(each, dict) for each in found):
            raise _refused(event, "expected a mapping, or a list of them, after <<")
        return found

    def _key(self, event: Any) -> str:
        kind = _kind(event)
        made = self._anchored(event) if kind == "AliasEvent" else _scalar(event) if kind == "ScalarEvent" else None
        if isinstance(made, int | float) and not isinstance(made, bool) and kind == "ScalarEvent":
            made = event.value  # 200 and 1.10 are names here
        if not isinstance(made, str):
            raise _refused(event, "expected text as a key; put it in quotes")
        if getattr(event, "anchor", None) is not None and kind == "ScalarEvent":
            self._anchors[event.anchor] = made
        return made

    def _anchored(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise _refused(event, "an alias refers to what is not there, or to what it is a part of")
        return self._anchors[event.anchor]

    def _copied(self, value: Any, depth: int) -> Any:
        """Return a copy, every value of it counted: a few aliases can stand for any number of values."""
        if isinstance(value, dict):
            return {key: self._counted(each, depth + 1) for key, each in value.items()}
        return [self._counted(each, depth + 1) for each in value] if isinstance(value, list) else value

    def _counted(self, value: Any, depth: int) -> Any:
        self._bound(depth)
        return self._copied(value, depth)


def _kind(event: Any) -> str:
    return type(event).__name__


def _is_merge(event: Any) -> bool:
    return _kind(event) == "ScalarEvent" and event.value == "<<" and not event.style and event.tag is None


def _refused(event: Any, why: str) -> ValueError:
    mark = event.start_mark
    return ValueError(f"line {mark.line + 1}, column {mark.column + 1}: {why}")


def _scalar(event: Any) -> Any:
    """Return a scalar by YAML 1.2's core schema; a date is text, as in JSON."""
    value, tag = event.value, event.tag
    if tag is None:
        return value if event.style else _plain(event, value)
    if tag in ("!", f"{_CORE}str", f"{_CORE}timestamp"):
        return value
    made = _plain(event, value)
    wanted = {"int": int, "float": int | float, "bool": bool, "null": type(None)}.get(str(tag).removeprefix(_CORE))
    if wanted is None or not isinstance(made, wanted) or (isinstance(made, bool) and wanted is not bool):
        raise _refused(event, "a value does not fit its tag, or the tag is unknown")
    return float(made) if isinstance(made, int) and tag == f"{_CORE}float" else made


def _plain(event: Any, value: str) -> Any:
    if value in _WORDS:
        return _WORDS[value]
    if value[0] not in _NUMBERS:
        return value
    if _INT.fullmatch(value):
        return int(_short(event, value), _BASES.get(value[:2], 10))
    return _finite(event, value) if _FLOAT.fullmatch(value) else value


def _short(event: Any, value: str) -> str:
    if len(value) > _DIGITS:
        raise _refused(event, f"a number of more than {_DIGITS} digits")
    return value


def _finite(event: Any, value: str) -> float:
    made = math.inf if value[-1].isalpha() else float(value)
    if not math.isfinite(made):
        raise _refused(event, f"{_short(event, value)} is not JSON")
    return made
