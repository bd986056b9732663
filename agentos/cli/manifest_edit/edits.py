"""What an edit is about, and how it is made: some places of a text are spliced, and the rest stays to the byte."""

import re
from typing import Any

Keys = tuple[str | int, ...]
"""The path of what is edited; -1 at its end adds to a list."""

GONE: Any = object()
"""As a value: take the key away."""

Splice = tuple[int, int, str]
"""What stands between two places of a text, and what is to stand there instead."""


def spliced(text: str, splices: list[Splice]) -> str:
    """Return *text* after *splices*; new lines end as the line before them does."""
    for start, end, new in sorted(splices, reverse=True):
        before = text.rfind("\n", 0, start)
        line_end = before if before >= 0 else text.find("\n")
        ending = "\r\n" if line_end > 0 and text[line_end - 1] == "\r" else "\n"
        text = text[:start] + new.replace("\n", ending) + text[end:]
    return text


def start_of_line(text: str, at: int) -> int:
    """Return where the line of *at* begins."""
    return text.rfind("\n", 0, at) + 1


def end_of_line(text: str, at: int) -> int:
    """Return the end of the line of *at*. The end of a block scalar is the beginning of a line: that is it already."""
    if at and text[at - 1] == "\n":
        return at
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def margin(text: str, at: int) -> str:
    """Return the white space before what stands on the line of *at*."""
    found = re.compile(r"[ \t]*").match(text, start_of_line(text, at))
    return "" if found is None else found[0]


def line_after(text: str, at: int, line: str) -> Splice:
    """Put whole lines behind the line of *at*."""
    end = end_of_line(text, at)
    return end, end, line if not text[:end] or text[end - 1] == "\n" else f"\n{line}"
