"""Unified diffs within bounds: of an edit, whose places are known, and of a whole text against another."""

import difflib
from collections.abc import Iterable, Sequence

import attrs

from agentos_pack_files._text import LINE_END, split_lines

CHARS = 12_000
LINE_CHARS = 500
_CONTEXT = 3
_COMPARED = 1_000
"""How many lines are compared one by one; comparing costs their square, so longer changes are shown as one block."""


@attrs.frozen
class Diff:
    """A unified diff, as text."""

    text: str
    added: int
    removed: int
    truncated: bool


@attrs.frozen
class Change:
    """Lines of the old text, from *start* to before *end*, and what stands in their place."""

    start: int
    end: int
    lines: Sequence[str] = attrs.field(repr=False)


def diff_texts(path: str, old: str | None, new: str | None) -> Diff:
    """Compare two texts; None stands for a file that is not there."""
    before, after = split_lines(old or ""), split_lines(new or "")
    names = "/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}"
    return _rendered(names, before, _changes(before, after))


def diff_changes(path: str, old: str, changes: Sequence[Change]) -> Diff:
    """Show changes of *old* that are known, in order and apart from each other."""
    return _rendered((f"a/{path}", f"b/{path}"), split_lines(old), changes)


def _changes(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    whole = trimmed(before, 0, len(before), after)
    head, old, new = whole.start, before[whole.start : whole.end], whole.lines
    if max(len(old), len(new)) > _COMPARED:
        return [whole]
    matcher = difflib.SequenceMatcher(None, old, new)
    return [
        Change(head + start, head + end, new[first:last])
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def trimmed(before: Sequence[str], start: int, end: int, lines: Sequence[str]) -> Change:
    """Return the change of *before*, from *start* to before *end*, into *lines*, without what stays as it is."""
    old = before[start:end]
    head = _common(old, lines)
    tail = _common(old[head:][::-1], lines[head:][::-1])
    return Change(start + head, end - tail, lines[head : len(lines) - tail])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the lines that two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))


def _rendered(names: tuple[str, str], before: Sequence[str], changes: Sequence[Change]) -> Diff:
    lines = [f"--- {names[0]}", f"+++ {names[1]}"]
    used, cut, shift = sum(map(len, lines)) + 1, False, 0
    for group in _grouped(changes):
        for line in _hunk(before, group, shift):
            used += len(line) + 1
            cut = cut or used > CHARS
            if not cut:
                lines.append(line)
        shift += sum(len(one.lines) - (one.end - one.start) for one in group)
    removed, added = sum(one.end - one.start for one in changes), sum(len(one.lines) for one in changes)
    return Diff("\n".join(lines) if changes else "", added, removed, cut)


def _grouped(changes: Sequence[Change]) -> Iterable[list[Change]]:
    """Put changes whose contexts touch into one hunk."""
    group: list[Change] = []
    for change in changes:
        if group and change.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(before: Sequence[str], group: Sequence[Change], shift: int) -> Iterable[str]:
    first, last = max(0, group[0].start - _CONTEXT), min(len(before), group[-1].end + _CONTEXT)
    length = last - first + sum(len(one.lines) - (one.end - one.start) for one in group)
    yield f"@@ -{_range(first, last - first)} +{_range(first + shift, length)} @@"
    place = first
    for change in group:
        yield from _marked(" ", before[place : change.start])
        yield from _marked("-", before[change.start : change.end])
        yield from _marked("+", change.lines)
        place = change.end
    yield from _marked(" ", before[place:last])


def _range(start: int, length: int) -> str:
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        shown = LINE_END.sub("", line)
        yield mark + (shown if len(shown) <= LINE_CHARS else f"{shown[:LINE_CHARS]} [... {len(shown)} characters]")
        if not line.endswith(("\r", "\n")):
            yield "\\ No newline at end of file"
