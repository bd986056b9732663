"""An exact text in a file: where it is, the text without it, and which lines that changes."""

import re
from bisect import bisect_right

from agentos_pack_files._diff import Change, trimmed
from agentos_pack_files._text import LINE_END, split_lines

Span = tuple[int, int]

_SHOWN = 5


def find_spans(text: str, old: str) -> list[Span]:
    """Find a text, whatever ends its lines."""
    return [match.span() for match in _finder(old).finditer(text)]


def _finder(old: str) -> re.Pattern[str]:
    """Return what finds a text; it has no repetition, so it can't take long."""
    return re.compile(r"(?:\r\n|\n|\r)".join(map(re.escape, LINE_END.split(old))))


def replaced(text: str, spans: list[Span], new: str) -> str:
    """Return *text* with *new* in the place of each span."""
    parts, place = [], 0
    for start, end in spans:
        parts += [text[place:start], new]
        place = end
    return "".join([*parts, text[place:]])


def miscounted(path: str, text: str, spans: list[Span], count: int, old: str) -> str:
    """Say how often a text is there, and where."""
    if not spans:
        stripped = old.strip()
        is_near = bool(stripped) and stripped != old and bool(find_spans(text, stripped))
        hint = "without the blanks around it, it is" if is_near else "read the file again and copy the text exactly"
        return f"old_text: is not in {path!r}; {hint}"
    lines = [len(LINE_END.findall(text[:start])) + 1 for start, _ in spans[:_SHOWN]]
    shown = ", ".join(f"{line:,}" for line in lines) + (", ..." if len(spans) > _SHOWN else "")
    return (
        f"old_text: is in {path!r} {len(spans):,} times, expected {count:,} (lines {shown}); "
        f"give more of the text around it, or say count {len(spans):,}"
    )


def changes_of(text: str, spans: list[Span], new: str) -> list[Change]:
    """Return the lines that change when *new* takes the place of each span."""
    lines = split_lines(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    for first, last, inside in _grouped(spans, starts[:-1]):
        begin, stop = starts[first], starts[last]
        moved = [(start - begin, end - begin) for start, end in inside]
        found.append(trimmed(lines, first, last, split_lines(replaced(text[begin:stop], moved, new))))
    return [change for change in found if change.lines or change.end > change.start]


def _grouped(spans: list[Span], starts: list[int]) -> list[tuple[int, int, list[Span]]]:
    """Put spans together that touch the same lines: the first line, the one after the last, and the spans."""
    groups: list[tuple[int, int, list[Span]]] = []
    for start, end in spans:
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end)
        if groups and groups[-1][1] > first:
            first, _, inside = groups.pop()
            inside.append((start, end))
        else:
            inside = [(start, end)]
        groups.append((first, last, inside))
    return groups
