"""Rows as JSON, within bounds. Of the standard library alone: it also runs in the process that asks a database."""

import base64
import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any

MAX_CELL = 10_000
"""How many characters of one text are shown."""
MAX_BYTES_SHOWN = 1_024
_EXACT = 1 << 53
"""Whole numbers beyond this are changed by readers of JSON that know only doubles."""
_DEPTH = 8


class Rows:
    """The first rows of a result, as many as fit."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows = max_rows
        self._room = max_bytes
        self.rows: list[list[Any]] = []
        self.truncated = False

    def take(self, rows: Iterable[Sequence[Any]]) -> bool:
        """Add *rows*; False as soon as no more are wanted."""
        return all(self._add(row) for row in rows)

    def _add(self, row: Sequence[Any]) -> bool:
        if len(self.rows) == self._max_rows:
            self.truncated = True
            return False
        plain = [self._cell(value) for value in row]
        self._room -= len(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace"))
        if self._room < 0:
            self.truncated = True
            return False
        self.rows.append(plain)
        return True

    def _cell(self, value: Any) -> Any:
        plain, is_cut = as_json(value)
        self.truncated = self.truncated or is_cut
        return plain


def as_json(value: Any, depth: int = 0) -> tuple[Any, bool]:
    """Return *value* as JSON, and whether a part of it was left out."""
    if value is None or isinstance(value, bool):
        return value, False
    if isinstance(value, int):
        return (value if abs(value) <= _EXACT else str(value)), False
    if isinstance(value, float):
        return (value if math.isfinite(value) else str(value)), False
    if isinstance(value, Decimal):
        return _decimal(value), False
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    if isinstance(value, dict) and depth < _DEPTH:
        return _nested(value.items(), dict, depth)
    if isinstance(value, list | tuple) and depth < _DEPTH:
        return _nested(enumerate(value), lambda pairs: [one for _, one in pairs], depth)
    if isinstance(value, date | time):
        return value.isoformat(), False
    return _text(value if isinstance(value, str) else str(value))


def _decimal(value: Decimal) -> float | str:
    """Return a number if that loses nothing, else its digits."""
    near = float(value)
    return near if math.isfinite(near) and Decimal(repr(near)) == value else str(value)


def _nested(pairs: Iterable[tuple[Any, Any]], build: Callable[[Any], Any], depth: int) -> tuple[Any, bool]:
    made = [(_text(str(key))[0] if build is dict else key, as_json(value, depth + 1)) for key, value in pairs]
    return build([(key, plain) for key, (plain, _) in made]), any(is_cut for _, (_, is_cut) in made)


def _bytes(value: bytes) -> tuple[Any, bool]:
    is_long = len(value) > MAX_BYTES_SHOWN
    shown = None if is_long else base64.b64encode(value).decode()
    return {"bytes": len(value), "base64": shown}, is_long


def _text(text: str) -> tuple[str, bool]:
    safe = text[: MAX_CELL + 1].encode("utf-8", "replace").decode()
    if len(text) <= MAX_CELL:
        return safe, False
    return f"{safe[:MAX_CELL]}... [{len(text):,} characters]", True


def quoted(name: str) -> str:
    """Return *name* as SQL takes it whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
