"""What every value checks of its fields, so that a bad one is refused where it is written."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from agentos.base.spelling import did_you_mean, nearest

__all__ = ["did_you_mean", "fault_of_name", "fault_of_owner", "fault_of_priority", "frozen_mapping", "nearest"]

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
