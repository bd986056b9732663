"""Parts of a document, taken for what they should be, or refused with what they are."""

from typing import Any, NoReturn

from agentos.errors import ToolDefinitionError
from agentos.schema.build import Json
from agentos.schema.explain import clip, noun_of


def refuse(where: str, message: str, part: str = "") -> NoReturn:
    """Refuse a document, or an operation of it; *part* is the name of what is wrong in it."""
    raise ToolDefinitionError(where, clip(part) if part.isprintable() else shown(part), message)


def shown(value: Any) -> str:
    """Return foreign text for a message: on one line, and not too much of it."""
    return clip(repr(value))


def mapping(value: Any, where: str, what: str) -> Json:
    """Return *value* if it is a mapping; nothing is an empty one."""
    if value is not None and not isinstance(value, dict):
        refuse(where, f"{what}: expected a mapping, got {noun_of(value)}")
    return value or {}


def items(value: Any, where: str, what: str) -> list[Any]:
    """Return *value* if it is a list; nothing is an empty one."""
    if value is not None and not isinstance(value, list):
        refuse(where, f"{what}: expected a list, got {noun_of(value)}")
    return value or []


def text(value: Any) -> str:
    """Return *value* if it is text; anything else says nothing."""
    return value.strip() if isinstance(value, str) else ""


def place_of(place: str, name: str) -> tuple[str, str]:
    """Return where a value goes, so that the same place is equal: headers have no case."""
    return place, name.lower() if place == "header" else name
