"""Results within bounds, that say when they were cut."""

import itertools
import json
import unicodedata
from collections.abc import Iterable, Sized
from typing import Any, Generic, TypeVar

import attrs

__all__ = ["Clipped", "ClippedRows", "clip", "clip_rows"]

Row = TypeVar("Row")


@attrs.frozen
class Clipped:
    """The beginning of a text."""

    text: str
    truncated: bool
    total_chars: int
    """How long the whole text is."""


@attrs.frozen
class ClippedRows(Generic[Row]):
    """The first rows of several."""

    rows: list[Row]
    truncated: bool
    total: int | None
    """How many rows there are; None if they were not counted to their end."""


def clip(text: str, max_chars: int) -> Clipped:
    """Return at most *max_chars* of *text*; what is seen as one character is kept whole or left out.

    That holds for combining marks, joined and flag emoji, Hangul and surrogates; where it can't be kept whole within
    *max_chars*, nothing of it stays.
    """
    total = len(text)
    if total <= max(max_chars, 0):
        return Clipped(text, truncated=False, total_chars=total)
    end = max(max_chars, 0)
    while end > 0 and _is_joined(text, end):
        end -= 1
    return Clipped(text[:end], truncated=True, total_chars=total)


def clip_rows(rows: Iterable[Row], *, max_rows: int, max_bytes: int) -> ClippedRows[Row]:
    """Return the first *rows*: at most *max_rows*, and at most *max_bytes* of them as JSON. The order is kept.

    An iterator is read no further than needed to know whether there is more.
    """
    total = len(rows) if isinstance(rows, Sized) else None
    kept: list[Row] = []
    size = 0
    coming = iter(rows)
    for row in itertools.islice(coming, max(max_rows, 0)):
        size += size_of(row)
        if size > max_bytes:
            return ClippedRows(kept, truncated=True, total=total)
        kept.append(row)
    if total is None and next(coming, _END) is _END:
        total = len(kept)
    return ClippedRows(kept, truncated=total is None or total > len(kept), total=total)


_END: Any = object()


def size_of(value: Any) -> int:
    """Return the bytes of *value* as JSON; what is not JSON counts as its text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return len(text.encode("utf-8", "surrogatepass")) + 1


# -- where a text may be cut -------------------------------------------------------------------------------------

_JOINER = "\u200d"


def _is_joined(text: str, at: int) -> bool:
    """Tell whether the characters before and after *at* are seen as one."""
    before, after = text[at - 1], text[at]
    if _JOINER in (before, after) or unicodedata.category(after) in ("Mn", "Me", "Mc"):
        return True
    if before == "\r":
        return after == "\n"
    if "\ud800" <= before <= "\udbff":
        return "\udc00" <= after <= "\udfff"
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    return _is_hangul(before, after) or _is_flag(text, at)


def _is_hangul(before: str, after: str) -> bool:
    """Tell whether two parts of a syllable belong together."""
    if "\u1100" <= before <= "\u115f":
        return "\u1100" <= after <= "\u11a7" or "\uac00" <= after <= "\ud7a3"
    if "\u1160" <= before <= "\u11a7" or "\uac00" <= before <= "\ud7a3":
        return "\u1160" <= after <= "\u11ff"
    return "\u11a8" <= before <= "\u11ff" and "\u11a8" <= after <= "\u11ff"


def _is_flag(text: str, at: int) -> bool:
    """Tell whether *at* is between the two letters of a flag: they are counted from where they begin."""
    if not _is_indicator(text[at]):
        return False
    start = at
    while start > 0 and _is_indicator(text[start - 1]):
        start -= 1
    return (at - start) % 2 == 1


def _is_indicator(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
