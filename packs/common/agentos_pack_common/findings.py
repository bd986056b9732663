"""Places in a text that a detector found: put in order, counted in characters, hidden."""

from collections.abc import Iterable, Sequence

import attrs


@attrs.frozen
class Finding:
    """A place in a text, and what it looks like."""

    kind: str
    start: int
    end: int


def without_overlap(found: Iterable[Finding]) -> list[Finding]:
    """Return *found* in order, what overlaps joined; what was found first names what was joined."""
    ordered = sorted(enumerate(found), key=lambda one: (one[1].start, one[0]))
    joined: list[tuple[int, Finding]] = []
    for rank, one in ordered:
        if joined and one.start < joined[-1][1].end:
            before, last = joined[-1]
            name = last.kind if before < rank else one.kind
            joined[-1] = (min(before, rank), Finding(name, last.start, max(last.end, one.end)))
        else:
            joined.append((rank, one))
    return [one for _, one in joined]


def in_characters(found: Iterable[Finding], data: bytes) -> list[Finding]:
    """Return *found*, which is in order and counts the bytes of *data* (UTF-8), counted in characters."""
    moved, position, characters = [], 0, 0
    for one in found:
        start = characters + len(decoded(data[position : one.start]))
        end = start + len(decoded(data[one.start : one.end]))
        moved.append(Finding(one.kind, start, end))
        position, characters = one.end, end
    return moved


def encoded(text: str) -> bytes:
    """Return *text* as UTF-8, halves of surrogate pairs too."""
    return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes) -> str:
    """Return the text that `encoded` made *data* of."""
    return data.decode("utf-8", "surrogatepass")


def hidden(text: str, findings: Sequence[Finding]) -> str:
    """Return *text* with its kind in brackets in place of each finding."""
    parts, position = [], 0
    for one in findings:
        parts += [text[position : one.start], f"[{one.kind}]"]
        position = one.end
    return "".join([*parts, text[position:]])
