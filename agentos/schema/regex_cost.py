"""What a pattern costs, and what it may: the engine takes linear time, times the size of the pattern's program.

A pattern that looks around or refers back runs in another engine, which gives up after so many steps.
"""

import functools
import re
from typing import Any, NamedTuple

from agentos.schema.work import Work

BACKTRACK_LIMIT = 10_000
"""After how many steps back a pattern that looks around is taken not to fit."""
_SIZES = ((8_000, 80), (32_000, 200), (128_000, 500), (512_000, 1_200), (2_000_000, 3_500), (10_000_000, 10_000))
"""Up to how many bytes a program has, and how many steps it then may take for a character."""
_SHORT = 16
_IS_COSTLY = re.compile(r"\{|\(\?|\\[1-9k]")
_ATOM = r"(?:\[\^?(?:\\.|[^\]\\])+\]|\\[wdsWDS.\-/]|[^\\\[\](){}*+?|^$])"
_IS_PLAIN = re.compile(rf"\^(?:{_ATOM}(?:\{{\d+\}})?)*(?:[*+?]|\{{\d+,\d*\}})?\$")
"""Classes one after the other, of which only the last may be of any length: it is in one place at a time."""
_COMPILED_BYTE = 8
"""How many bytes of a program are compiled in a step."""


class RegexCost(NamedTuple):
    """What a pattern takes for a character of a text, for the text, and to be compiled."""

    characters: int
    texts: int
    compiling: int


def regex_cost(pattern: str, work: Work) -> RegexCost:
    """Return what *pattern* costs, having counted what it takes to compile it."""
    cost = _cost(pattern)
    work.spend(cost.compiling)
    return cost


@functools.lru_cache(maxsize=1_000)
def _cost(pattern: str) -> RegexCost:
    if len(pattern) <= _SHORT and not _IS_COSTLY.search(pattern):
        return RegexCost(1, 0, len(pattern))
    import jsonschema_rs

    for size, steps in _SIZES:
        if _fits(pattern, jsonschema_rs.RegexOptions(size_limit=size)):
            return RegexCost(1 if _IS_PLAIN.fullmatch(pattern) else steps, 0, size // _COMPILED_BYTE)
    largest, steps = _SIZES[2]
    return RegexCost(steps, BACKTRACK_LIMIT, largest // _COMPILED_BYTE)


def _fits(pattern: str, options: Any) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for({"pattern": pattern}, offline=True, pattern_options=options)
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True
