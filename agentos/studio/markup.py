"""Templates: foreign text is text, what is secret is masked, and times, sizes and JSON are readable."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agentos.secrets.masking import Masker
from agentos.studio.safe_markdown import safe_markdown

TEXT_LIMIT: Final = 20_000
"""How many characters of one text a page shows."""
_FOLDER = Path(__file__).parent / "templates"


def templates(masker: Masker) -> Environment:
    """Return the templates of one host: every text that is put in is masked and escaped."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=partial(_masked, masker),
    )
    environment.filters.update(
        moment=moment, took=took, json=as_json, cut=cut, words=words, count=counted, first_line=first_line
    )
    environment.filters["markdown"] = lambda text: safe_markdown(masker.mask(str(text)))
    environment.policies["json.dumps_function"] = as_json
    return environment


def _masked(masker: Masker, value: Any) -> Any:
    """Return what is put into a page: markup of ours as it is, all else with secrets masked."""
    if value is None:
        return ""
    if isinstance(value, Markup):
        return value
    return masker.mask(str(value))


def moment(value: datetime | None) -> Markup | str:
    """Return a time as pages show it: the script makes it local, and it is exact on hover."""
    if value is None:
        return ""
    exact = value.astimezone(UTC).isoformat(timespec="milliseconds")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(exact, exact[:19].replace("T", " "))


def took(seconds: float | None) -> str:
    """Put a duration into words."""
    if seconds is None:
        return ""
    if seconds < 0.0001:  # noqa: PLR2004 - what a clock tells
        return "no time"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"  # noqa: PLR2004
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"  # noqa: PLR2004


def as_json(value: Any, **_: Any) -> str:
    """Write a value as JSON for people, whatever is in it; a long one is cut."""
    return cut(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, datetime):
        return value.isoformat()
    if attrs.has(type(value)):
        return attrs.asdict(value)
    return str(value)


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return a text that is not longer than a page shows, and say how much is left out."""
    left = len(text) - limit
    return text if left <= 0 else f"{text[:limit]}\n... {left} more characters"


def first_line(text: str | None, limit: int = 160) -> str:
    """Return the first line of a text, cut where it is long."""
    line = (text or "").strip().partition("\n")[0]
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def words(value: Any) -> str:
    """Write a name of ours, such as a state, for people."""
    return str(value).replace("_", " ").replace("-", " ")


def counted(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
