"""One text for one value: what hashes, seals and comparisons of JSON are made from."""

import hashlib
import json
from typing import Any

_encode_in_order = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, default=str).encode
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str).encode


def canonical(value: Any) -> str:
    """Return JSON text that is the same for equal values: keys sorted, no white space, ASCII only."""
    return _encode(value)


def in_order(value: Any) -> str:
    """Return JSON text that keeps the order of keys, for what is read back."""
    return _encode_in_order(value)


def digest(value: Any) -> str:
    """Return the SHA-256 of *value*'s canonical text, as hex digits."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()
