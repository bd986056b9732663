"""Arguments as they were before a tool could change them."""

import copy
from collections.abc import Mapping
from typing import Any

_SCALARS = frozenset({str, int, float, bool, type(None)})


def snapshot(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of arguments that a tool can't change: they are hashed after it ran."""
    for value in arguments.values():
        if type(value) not in _SCALARS:
            return copy.deepcopy(dict(arguments))
    return dict(arguments)
