"""Small parts of Markdown."""

import json
import re
from collections.abc import Iterable, Sequence
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


def first_sentence(docstring: str | None) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((docstring or "").strip().partition("\n\n")[0].split())
