"""What every value checks of its fields, so that a bad one is refused where it is written."""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

_NAME_LIMIT = 200
_EMPTY: Mapping[str, Any] = MappingProxyType({})


def frozen_mapping(value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Copy *value* into a mapping that can't be written to."""
    if value is None:
        return _EMPTY
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a mapping, got {type(value).__name__}")
    return MappingProxyType(dict(value)) if value else _EMPTY


def fault_of_name(value: object) -> str | None:
    """Say what keeps *value* from being a name; None if nothing does."""
    if not isinstance(value, str):
        return f"expected a string, got {type(value).__name__}"
    if not value.strip():
        return "expected a name, got an empty string"
    if len(value) > _NAME_LIMIT:
        return f"expected at most {_NAME_LIMIT} characters, got {len(value)}"
    if not value.isprintable():
        return "expected printable characters only"
    return None


def fault_of_owner(value: object) -> str | None:
    """Say what keeps *value* from naming a pack: it stands before the colon of `pack:id`."""
    fault = fault_of_name(value)
    if fault is None and (":" in str(value) or any(char.isspace() for char in str(value))):
        return f"expected a name without colon or white space, got {value!r}"
    return fault


def fault_of_priority(value: object) -> str | None:
    """Say what keeps *value* from being a priority: only whole numbers have one order."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return None
    return f"expected an int, got {type(value).__name__}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the word of *known* that *word* was probably meant to be."""
    lowered = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or nothing when nothing is near."""
    match = nearest(word, known)
    return f"; did you mean {match!r}?" if match else ""
