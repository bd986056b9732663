"""Small parts of Markdown."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_CODE = re.compile(r"(`+[^`]*`+)")
_NAMED = re.compile(r"^[a-z_]\w*(?:, [a-z_]\w*)*: ")


def code(text: object) -> str:
    """Return *text* as code within a line."""
    shown = str(text)
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def cell(text: object) -> str:
    """Return *text* so that it stays within one cell of a table."""
    return escaped(" ".join(str(text).split())).replace("|", "\\|")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table."""
    lines = [columns, ["---"] * len(columns), *([cell(one) for one in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def fence(text: str, language: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def as_json(value: Any) -> str:
    """Return a value as a block of JSON."""
    return fence(json.dumps(value, indent=2, ensure_ascii=False), "json")


def escaped(text: str) -> str:
    """Return prose in which `<` is no tag; what is code stays as it is."""
    return "".join(
        part if part.startswith("`") else part.replace("<", "&lt;").replace("{", "&#123;") for part in _CODE.split(text)
    )


def prose(docstring: str | None) -> str:
    """Return a docstring, whose backticks are Markdown already; lines of the form `name: meaning` become a list."""
    paragraphs = re.split(r"\n\s*\n", (docstring or "").strip())
    return "\n\n".join(_paragraph(one) for one in paragraphs)


def _paragraph(text: str) -> str:
    if text.startswith("    "):
        return text
    lines = text.splitlines()
    if sum(bool(_NAMED.match(line)) for line in lines) < 2 or not _NAMED.match(lines[0]):  # noqa: PLR2004 - a list
        return escaped(text)
    return "\n".join(_item(line) if _NAMED.match(line) else f"  {escaped(line)}" for line in lines)


def _item(line: str) -> str:
    names, _, meaning = line.partition(": ")
    return f"- {', '.join(code(name) for name in names.split(', '))}: {escaped(meaning)}"


_DIRECTIVE = re.compile(r"^:{3,}\{py:(\w+)\} (.+)$")
_END = re.compile(r"^:{3,}$")
_OPTION = re.compile(r"^:(\w+):(.*)$")
_WRITTEN = {"class": "class ", "exception": "class ", "function": "def ", "method": "def ", "property": ""}
_WIDEST = 100
_BENEATH = ("method", "classmethod", "staticmethod", "property")


def plain(text: str) -> str:
    """Return a page without what only Sphinx understands: what it describes stands beneath headings."""
    lines: list[str] = []
    waiting = iter(text.splitlines())
    for line in waiting:
        if found := _DIRECTIVE.match(line):
            lines += _heading(found[1], found[2], _options(waiting))
        elif not _END.match(line):
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _options(waiting: Iterator[str]) -> dict[str, str]:
    """Take the options of a directive, and the blank line behind them."""
    found = iter(lambda: _OPTION.match(next(waiting)), None)
    return {option[1]: option[2].strip() for option in found if option is not None}


def _heading(kind: str, head: str, options: dict[str, str]) -> list[str]:
    name = head.partition("(")[0]
    title = f"{'###' if kind in _BENEATH else '##'} {code(name)}\n"
    if kind == "data":
        return [title]
    before = f"@{kind}\n" if kind in ("classmethod", "staticmethod") else ""
    word = _WRITTEN.get(kind, "def ")
    type_ = f": {options['type']}" if options.get("type") else ""
    return [title, fence(_folded(f"{before}{'async ' if 'async' in options else ''}{word}{head}{type_}"), "python")]


def _folded(signature: str) -> str:
    """Return a signature with one parameter in each line, where it would be long."""
    if len(signature) <= _WIDEST:
        return signature
    begin, parts, depth = signature.index("(") + 1, [""], 0
    for end, sign in enumerate(signature[begin:], begin):  # noqa: B007 - where the parameters end
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            break
        parts = [*parts, ""] if sign == "," and depth == 0 else [*parts[:-1], parts[-1] + sign]
    lines = "".join(f"    {part.strip()},\n" for part in parts)
    return f"{signature[:begin]}\n{lines}{signature[end:]}"


def first_sentence(docstring: str | None) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((docstring or "").strip().partition("\n\n")[0].split())
