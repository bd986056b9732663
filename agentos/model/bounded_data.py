"""Data of foreign code within bounds: whole, or nothing but how large it was."""

import json
from collections.abc import Mapping
from typing import Any

from agentos.model.settings import ResultLimits

DATA_LIMIT = ResultLimits().state
"""How many characters of JSON are kept of what foreign code says beside its answer."""
_measured = json.JSONEncoder(ensure_ascii=False, default=repr).encode


def data_size(value: Any) -> int:
    """Return how many characters of JSON a value has; what is small by its type is not counted."""
    return len(_measured(value)) if isinstance(value, str | list | dict) and value else 0


def data_within(values: Mapping[str, Any], name: str, limit: int = DATA_LIMIT) -> Mapping[str, Any]:
    """Return *values* if they are not too large, else how large they were."""
    size = data_size(values)
    return values if size <= limit else {f"{name}_dropped": size}


def foreign_data_within(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the same of what nobody has made JSON yet; what has no end, or keys that are no texts, is dropped."""
    if not values:
        return values
    try:
        return data_within(dict(values), name)
    except (TypeError, ValueError, RecursionError):
        return {f"{name}_dropped": "it is not JSON"}
