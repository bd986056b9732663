"""Topics and messages: what is refused, and how they are written."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentos.model.field_checks import fault_of_name
from agentos.secrets.masking import Masker

MESSAGE_LIMIT = 1_000_000
"""How many characters a message has at most, as JSON in ASCII."""
_DEPTH = 32
"""How deep a message may be nested."""
_SCALAR, _PART = 2, 3
"""How many characters a number has at least, and a string, list or object; with the comma behind it."""
_SCALARS = frozenset({int, float, bool, type(None)})
_SHOWN = 200
"""How much of a foreign name an error shows."""
_BITS = 1_000
"""How large a whole number may be: every reader of JSON takes it."""


def check_topic(topic: object, masker: Masker) -> None:
    """Raise ValueError for what can't be a topic."""
    fault = fault_of_name(topic)
    if fault is None and masker.mask(str(topic)) != topic:
        fault = "it has a known secret in it"
    if fault is not None:
        raise ValueError(f"topic: {fault}")


def written(message: Any, masker: Masker) -> str:
    """Return a message as JSON in ASCII, with known secrets masked; raise ValueError for what is no JSON or too large.

    Who reads it has a copy of his own: what one listener does to a message, no other sees.
    """
    try:
        plain = _Reading().plain(message, 0)
    except _InvalidPartError as error:
        raise ValueError(f"message ${''.join(reversed(error.path))[:_SHOWN]}: {error}") from None
    text = json.dumps(masker.mask_data(plain), separators=(",", ":"))
    if len(text) > MESSAGE_LIMIT:
        raise _too_large()
    return text


def _too_large() -> ValueError:
    return ValueError(f"message: expected at most {MESSAGE_LIMIT:,} characters of JSON")


class _InvalidPartError(Exception):
    """A part of a message that is no JSON; `path` leads from there to the whole."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.path: list[str] = []


class _Reading:
    """Reads a value once, as far as it may be large."""

    def __init__(self) -> None:
        self._left = MESSAGE_LIMIT + 1  # behind the last part is no comma

    def plain(self, value: Any, depth: int) -> Any:
        """Return *value* of plain types alone."""
        kind = type(value)
        self._left -= len(value) + _PART if kind is str else _SCALAR if kind in _SCALARS else _PART
        if self._left < 0:
            raise _too_large()
        if value is None or kind is str or kind is bool:
            return value
        if kind is int or kind is float:
            return _number(value)
        if depth >= _DEPTH:
            raise _InvalidPartError(f"nested deeper than {_DEPTH} levels")
        if kind is dict:
            return self._object(value, depth + 1)
        if kind is list or kind is tuple:
            return self._list(value, depth + 1)
        raise _InvalidPartError(f"expected a JSON value, got {kind.__name__[:_SHOWN]}")

    def _list(self, value: Sequence[Any], depth: int) -> list[Any]:
        made: list[Any] = []
        try:
            for item in value:
                made.append(self.plain(item, depth))  # noqa: PERF401 - how far it came is told
        except _InvalidPartError as error:
            error.path.append(f"[{len(made)}]")
            raise
        return made

    def _object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, item in value.items():
            if type(key) is not str:
                raise _InvalidPartError(f"expected keys that are strings, got {type(key).__name__[:_SHOWN]}")
            self._left -= len(key)
            try:
                made[key] = self.plain(item, depth)
            except _InvalidPartError as error:
                error.path.append(f".{key[:_SHOWN]}")
                raise
        return made


def _number(value: float) -> float:
    if type(value) is int:
        if value.bit_length() > _BITS:
            raise _InvalidPartError(f"a number of more than {_BITS:,} bits")
    elif not math.isfinite(value):
        raise _InvalidPartError(f"expected a number of JSON, got {value}")
    return value
