"""HTML as plain text: in one pass over it, and nothing that it names is fetched."""

import html
import re

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]{0,20})")
_ROWS = frozenset(
    {"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figure", "footer", "form"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table"}
    | {"tr", "ul"}
)
_UNSEEN = frozenset({"script", "style", "title", "template", "textarea", "noscript", "svg"})
_BLANK_LINES = re.compile(r"\n{3,}")


def text_of_html(source: str, *, with_quotes: bool = True) -> str:
    """Return what a reader of *source* sees, line by line; without what stands in blockquotes, if so wished."""
    found: list[str] = []
    at, quotes = 0, 0
    lower = source.lower()
    while at < len(source):
        start = source.find("<", at)
        end = len(source) if start < 0 else start
        if with_quotes or not quotes:
            found.append(_words(source[at:end]))
        if start < 0:
            break
        at, name, is_end = _after_tag(source, lower, start)
        if name == "blockquote":
            quotes = max(0, quotes + (-1 if is_end else 1))
        if name in _ROWS:
            found.append("\n- " if name == "li" and not is_end else "\n")
        elif name in ("td", "th"):
            found.append(" ")
        elif not name and at == start + 1:
            found.append("<")
    lines = (" ".join(line.split()) for line in "".join(found).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def _words(text: str) -> str:
    """Return the text between two tags: white space is one blank, and references are characters."""
    return html.unescape(re.sub(r"[ \t\r\n\f]+", " ", text))


def _after_tag(source: str, lower: str, start: int) -> tuple[int, str, bool]:
    """Return where the text goes on after the tag at *start*, the tag's name, and whether it ends an element.

    What is never closed hides the rest: to look for its end is done once, so that time grows with length alone.
    """
    if source.startswith("<!--", start):
        return _behind(source, "-->", start), "", False
    tag = _TAG.match(source, start)
    if tag is None:
        is_markup = source[start + 1 : start + 2] in ("!", "?")
        return (_behind(source, ">", start) if is_markup else start + 1), "", False
    name, is_end = tag[1].lower(), source[start + 1] == "/"
    at = _behind(source, ">", start)
    if name in _UNSEEN and not is_end:
        at = _behind(lower, f"</{name}", at)
        at = _behind(source, ">", at)
    return at, name, is_end


def _behind(source: str, what: str, start: int) -> int:
    found = source.find(what, start)
    return len(source) if found < 0 else found + len(what)
