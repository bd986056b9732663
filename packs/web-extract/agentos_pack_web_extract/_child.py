"""Runs in a process of its own: reads one foreign document, which is stdin. The task is JSON in the first argument.

It answers on stdout with lines of JSON, each as soon as it is known: what was read before a limit was met is kept. It
imports nothing of the pack, so that it starts fast and can be run from its file.
"""

import contextlib
import importlib
import io
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

MAX_TEXT = 2_000_000
MAX_PAGE = 200_000
MAX_LINKS = 2_000
_LINK_TEXT = 300
_META = 500
_ELEMENTS = 60_000
"""Beyond so many, finding the article would take longer than it is worth."""
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main"),
        *("nav", "ol", "option", "p", "pre", "section", "summary", "table", "td", "th", "title", "tr", "ul"),
    )
)

Line = dict[str, Any]


class _WholePage(HTMLParser):
    """All text of a page, and its links. It keeps no tree, so that neither depth nor length can hurt it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self.base = ""
        self.links: list[list[str]] = []
        self.total = 0
        self._inside = ""
        self._link: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in reversed(attrs)}
        if tag in ("script", "style", "title"):
            self._inside = tag
        elif tag == "base" and not self.base:
            self.base = said.get("href", "")
        elif tag == "a":
            self._begin_link(said)
        elif tag == "img":
            self._add_to_link(said.get("alt", ""))
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""
        if tag == "a":
            self._link = None
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._inside == "title":
            self.title = self.title or " ".join(data.split())[:_META]
        elif not self._inside:
            self.parts.append(data)
            self._add_to_link(data)

    def _begin_link(self, said: dict[str, str]) -> None:
        self._link = None
        if "href" not in said:
            return
        self.total += 1
        if len(self.links) < MAX_LINKS:
            self._link = [said["href"].strip()[:3_000], "", said.get("title", "")[:_LINK_TEXT]]
            self.links.append(self._link)

    def _add_to_link(self, text: str) -> None:
        if self._link is not None and len(self._link[1]) < _LINK_TEXT:
            self._link[1] = f"{self._link[1]} {' '.join(text[:_LINK_TEXT].split())}".strip()[:_LINK_TEXT]

    @property
    def text(self) -> str:
        lines = (" ".join(line.split()) for line in "".join(self.parts).splitlines())
        return "\n".join(line for line in lines if line)


class UnusableError(Exception):
    """A library that can't be imported here: that is no fault of the document."""


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:  # a library of others, and what it imports: whatever it raises
        missing = getattr(error, "name", None)
        reason = f"{type(error).__name__}: {missing}" if missing else type(error).__name__
        raise UnusableError(name, reason) from error


def _whole_page(html: str) -> _WholePage:
    reader = _WholePage()
    # What the parser refuses is what hostile pages are made of: what it has read until then counts.
    with contextlib.suppress(AssertionError, ValueError, RecursionError):
        reader.feed(html)
        reader.close()
    return reader


def read_page(html: str, task: Line) -> Iterator[Line]:
    """Tell the article of a page, as Markdown or text; all of its text if no article stands out."""
    library = _library("trafilatura")
    found, said = None, {}
    with contextlib.suppress(Exception):  # whatever a foreign page does to the parser: its whole text is left
        tree = library.load_html(html)
        if tree is not None and sum(1 for _ in tree.iter()) <= _ELEMENTS:
            found = library.extract(
                tree,
                url=task["url"],
                output_format="markdown" if task["format"] == "markdown" else "txt",
                include_comments=False,
                include_links=task["format"] == "markdown",
            )
            document = library.extract_metadata(library.load_html(html), default_url=task["url"])
            said = {name: _short(getattr(document, name, None)) for name in ("title", "author", "date", "sitename")}
    whole = _whole_page(html)
    text = found or whole.text
    said["title"] = said.get("title") or whole.title
    yield {**said, "text": text[:MAX_TEXT], "is_article": bool(found), "is_cut": len(text) > MAX_TEXT}


def _short(value: object) -> str:
    return value[:_META] if isinstance(value, str) else ""


def read_links(html: str, task: Line) -> Iterator[Line]:  # noqa: ARG001 - as the others
    """Tell the links of a page: address, text, and what is said when one points at it."""
    page = _whole_page(html)
    yield {"title": page.title, "base": page.base[:3_000], "links": page.links, "total": page.total}


def read_pdf(data: bytes, task: Line) -> Iterator[Line]:
    """Tell the text of the pages of a PDF, one after another."""
    library = _library("pypdf")
    try:
        reader = library.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            yield {"error": "encrypted"}
            return
        count = len(reader.pages)
    except library.errors.DependencyError:
        yield {"error": "encrypted"}
        return
    except Exception as error:  # noqa: BLE001 - a broken file can make the parser raise anything
        yield {"error": type(error).__name__}
        return
    yield {"count": count, **_described(reader)}
    for number in task["pages"]:
        if number <= count:
            yield _pdf_page(reader, number)


def _described(reader: Any) -> Line:
    with contextlib.suppress(Exception):  # what a document says of itself is not worth failing for
        said = reader.metadata or {}
        return {"title": _short(said.get("/Title")), "author": _short(said.get("/Author"))}
    return {}


def _pdf_page(reader: Any, number: int) -> Line:
    try:
        text = reader.pages[number - 1].extract_text() or ""
    except Exception as error:  # noqa: BLE001 - one broken page must not cost the others
        return {"page": number, "text": "", "error": type(error).__name__}
    return {"page": number, "text": text[:MAX_PAGE], "is_cut": len(text) > MAX_PAGE}


def main() -> None:
    """Read the document, and tell what is in it."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - what libraries print
    task = json.loads(sys.argv[1])
    data = sys.stdin.buffer.read()
    html = data.decode("utf-8", "replace") if task["kind"] != "pdf" else ""
    lines = {
        "page": lambda: read_page(html, task),
        "links": lambda: read_links(html, task),
        "pdf": lambda: read_pdf(data, task),
    }[task["kind"]]()
    for line in _with_failure(lines):
        answers.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        answers.flush()


def _with_failure(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield *lines*, and at last which library can't be used, if that ended them."""
    try:
        yield from lines
    except UnusableError as error:
        library, reason = error.args
        yield {"unusable": library, "reason": reason}


if __name__ == "__main__":
    main()
