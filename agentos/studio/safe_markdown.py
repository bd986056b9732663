"""A safe subset of markdown as HTML: headings, paragraphs, lists, code, emphasis and links, and nothing else.

Every text is escaped where it is written, and no tag or attribute comes from the source: whatever is not of the subset
stands there as it was written. Each line is read once, by patterns that can't run back far.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from markupsafe import Markup, escape

SOURCE_LIMIT: Final = 100_000
LINES: Final = 5_000
_NESTING: Final = 6
_INLINE_DEPTH: Final = 4
_FENCE = re.compile(r" {0,3}(```|~~~)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_ITEM = re.compile(r"([ \t]{0,40})(?:([-*+])|(\d{1,6})[.)])[ \t]+(.*)")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|\[(?P<text>[^\[\]\n]{1,500})\]\((?P<url>[^()\s<>\"']{1,2000})\)"
    r"|\*\*(?P<strong>[^*\n]+)\*\*"
    r"|\*(?P<em>[^*\s][^*\n]*)\*"
    r"|(?<!\w)_(?P<low>[^_\s][^_\n]*)_(?!\w)"
)
_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20\"'<>\\`]+", re.IGNORECASE)

_HEADINGS = {
    3: Markup("<h3>{}</h3>"),
    4: Markup("<h4>{}</h4>"),
    5: Markup("<h5>{}</h5>"),
    6: Markup("<h6>{}</h6>"),
}
_NUMBERED = Markup("<ol>{}</ol>")
_BULLETED = Markup("<ul>{}</ul>")


@attrs.frozen
class _Item:
    """A line of a list: how deep it stands, whether it is numbered, and its text."""

    indent: int
    is_numbered: bool
    text: str


def safe_markdown(source: str) -> Markup:
    """Return the HTML of the subset that *source* is; a long source is cut."""
    cut = source[:SOURCE_LIMIT].replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "\ufffd")
    lines = cut.split("\n")[:LINES]
    html = Markup("\n").join(_blocks(lines))
    return html if len(cut) == len(source) and len(lines) < LINES else html + Markup("<p>…</p>")


def _blocks(lines: Sequence[str]) -> Iterator[Markup]:
    at = 0
    while at < len(lines):
        line = lines[at]
        end = at + 1
        if (fence := _FENCE.match(line)) is not None:
            end = _end_of_fence(lines, at, fence[1])
            closed = end - 1 if end - 1 > at and lines[end - 1].strip().startswith(fence[1]) else end
            yield Markup("<pre><code>{}</code></pre>").format("\n".join(lines[at + 1 : closed]))
        elif (heading := _HEADING.fullmatch(line)) is not None:
            level = min(6, len(heading[1]) + 2)  # a page has one first heading, and cards have the second
            yield _HEADINGS[level].format(_inline(heading[2].rstrip("# \t")))
        elif _ITEM.fullmatch(line):
            end = _end_of(lines, at, is_list=True)
            yield _listed(list(_items(lines[at:end])))
        elif line.strip():
            end = _end_of(lines, at, is_list=False)
            yield Markup("<p>{}</p>").format(_inline("\n".join(one.strip() for one in lines[at:end])))
        at = end


def _end_of_fence(lines: Sequence[str], at: int, mark: str) -> int:
    for place in range(at + 1, len(lines)):
        if lines[place].strip().startswith(mark):
            return place + 1
    return len(lines)


def _end_of(lines: Sequence[str], at: int, *, is_list: bool) -> int:
    """Return where a list or a paragraph ends: at an empty line, or where something else begins."""
    for place in range(at + 1, len(lines)):
        line = lines[place]
        if not line.strip() or _FENCE.match(line) or _HEADING.fullmatch(line):
            return place
        if not is_list and _ITEM.fullmatch(line):
            return place
    return len(lines)


def _items(lines: Sequence[str]) -> Iterator[_Item]:
    waiting: _Item | None = None
    for line in lines:
        found = _ITEM.fullmatch(line)
        if found is None and waiting is not None:
            waiting = attrs.evolve(waiting, text=f"{waiting.text}\n{line.strip()}")
            continue
        if waiting is not None:
            yield waiting
        if found is not None:
            waiting = _Item(len(found[1].expandtabs(4)), found[2] is None, found[4])
    if waiting is not None:
        yield waiting


def _listed(items: Sequence[_Item], depth: int = 0) -> Markup:
    """Return a list; items that stand deeper are lists in the item before them."""
    parts, at = [], 0
    while at < len(items):
        end = at + 1
        while end < len(items) and items[end].indent > items[at].indent + 1 and depth < _NESTING:
            end += 1
        inner = _listed(items[at + 1 : end], depth + 1) if end > at + 1 else Markup("")
        parts.append(Markup("<li>{}{}</li>").format(_inline(items[at].text), inner))
        at = end
    return (_NUMBERED if items[0].is_numbered else _BULLETED).format(Markup("").join(parts))


def _inline(text: str, depth: int = 0) -> Markup:
    parts, at = [], 0
    for found in _INLINE.finditer(text) if depth < _INLINE_DEPTH else ():
        parts += [escape(text[at : found.start()]), _marked(found, depth)]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])


def _marked(found: re.Match[str], depth: int) -> Markup:
    if (code := found["code"]) is not None:
        return Markup("<code>{}</code>").format(code)
    if (url := found["url"]) is not None:
        if not _ADDRESS.fullmatch(url):
            return escape(found[0])
        link = Markup('<a href="{}" rel="noopener noreferrer" target="_blank">{}</a>')
        return link.format(url, _plain_inline(found["text"]))
    if (strong := found["strong"]) is not None:
        return Markup("<strong>{}</strong>").format(_inline(strong, depth + 1))
    return Markup("<em>{}</em>").format(_inline(found["em"] or found["low"] or "", depth + 1))


def _plain_inline(text: str) -> Markup:
    """Return the text of a link, in which there is no other."""
    return escape(text)
