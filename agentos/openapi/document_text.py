"""The text of a document, and of the files beside it, as plain JSON within bounds."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentos.model.parsing import _parse_json
from agentos.openapi.document_parts import refuse, shown
from agentos.openapi.yaml_text import parse_yaml
from agentos.schema.validation import to_plain_json

SIZE_LIMIT = 16 * 1024 * 1024
"""How many bytes of text a document may have, all of its files together."""
NODE_LIMIT = 2_000_000
"""How many values; in YAML a few lines can stand for any number of them."""
DEPTH_LIMIT = 100


class ReadingLimits:
    """What may still be read of a document; `name` is that of the document."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._values = NODE_LIMIT
        self._size = SIZE_LIMIT

    def count(self, depth: int) -> None:
        """Count one value."""
        self._values -= 1
        if self._values < 0 or depth > DEPTH_LIMIT:
            refuse(self.name, f"too large: more than {NODE_LIMIT} values or {DEPTH_LIMIT} levels")

    def spend(self, size: int, unit: str) -> None:
        """Count some text."""
        self._size -= size
        if self._size < 0:
            refuse(self.name, f"larger than {SIZE_LIMIT} {unit}")


def read_file(path: Path, limits: ReadingLimits) -> Any:
    """Return what a file holds; ValueError says why it can't be read."""
    try:
        with path.open("rb") as file:
            raw = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise ValueError(f"can't be read: {error.strerror or error}") from None
    return parse(raw, limits)


def parse(given: str | bytes, limits: ReadingLimits) -> Any:
    """Return what a text holds, as JSON or YAML; ValueError says why it can't be parsed."""
    limits.spend(len(given), "bytes" if isinstance(given, bytes) else "characters")
    text = _decoded(given) if isinstance(given, bytes) else given
    try:
        if text.lstrip().startswith("{"):
            return Copy(limits).of(_parse_json(text), 0)
        return parse_yaml(text, limits.count)
    except RecursionError:
        raise ValueError("can't be parsed: nested too deep") from None
    except ValueError as error:
        raise ValueError(f"can't be parsed: {' '.join(str(error).split())}") from None


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("expected text in UTF-8") from None


class Copy:
    """Copies what others have read into plain JSON, within bounds."""

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits

    def of(self, value: Any, depth: int) -> Any:
        """Return a copy of *value*."""
        self._limits.count(depth)
        if type(value) is str or value is None:
            return value
        if isinstance(value, Mapping):
            return {self._key(key): self.of(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(inner, depth + 1) for inner in value]
        return self._scalar(value)

    def _key(self, key: Any) -> str:
        if isinstance(key, int) and not isinstance(key, bool):
            return str(key)
        if not isinstance(key, str):
            refuse(self._limits.name, f"expected a string as key, got {type(key).__name__}; put {shown(key)} in quotes")
        return str.__str__(key)

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, dt.date):  # as YAML gives it to whoever has read the document
            return value.isoformat()
        try:
            return to_plain_json(value)
        except ValueError as error:
            refuse(self._limits.name, str(error))
