"""References in a workflow's data: `${inputs.name}`, `${task.output.items[0]}`, `${task.state}`.

A text that is one reference stands for the value itself, whatever its type; a reference within a text becomes text.
`$${` is a plain `${`. Keys that are no plain names are written `["any key"]`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from agentos.base.quoting import quoted
from agentos.base.spelling import did_you_mean

REFERENCE_LIMIT = 500
"""How many characters a reference has at most."""
TEXT_LIMIT = 1_000_000
"""How many characters a text has at most, once its references are filled in."""
VALUE_LIMIT = 4_000_000
"""How many characters of text are filled into one value at most, all together."""
_STEP = re.compile(r'\.([\w-]+)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]')
_INNER = re.compile(r'(?:[^}"]|"(?:[^"\\]|\\.)*+")*+')
_ROOT = re.compile(r"[^\W\d][\w-]*")
_SHOWN_KEYS = 10

Path = tuple[str | int, ...]


class BadReferenceError(ValueError):
    """A reference that is not written as one, or has nothing to refer to; the message says why."""


@attrs.frozen
class Reference:
    """What a reference names: a root (`inputs`, `run` or a task), and the way from there."""

    root: str
    path: Path = ()

    def __str__(self) -> str:
        return self.root + "".join(map(_step_text, self.path))


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if re.fullmatch(r"[\w-]+", step) else f"[{json.dumps(step)}]"


def parse_reference(text: str) -> Reference:
    """Return what stands between `${` and `}`; raise BadReferenceError if it is no reference."""
    if len(text) > REFERENCE_LIMIT:
        raise BadReferenceError(f"a reference has at most {REFERENCE_LIMIT} characters, this one has {len(text)}")
    inner = text.strip()
    root = _ROOT.match(inner)
    if root is None:
        raise BadReferenceError(f"expected a reference such as inputs.name or task.output, got {quoted(text)}")
    steps: list[str | int] = []
    at = root.end()
    while at < len(inner):
        step = _STEP.match(inner, at)
        if step is None:
            raise BadReferenceError(f'expected .name, [0] or ["a key"] at {quoted(inner[at:])} of {quoted(inner)}')
        name, index, key = step.groups()
        steps.append(int(index) if index else name or _key(key))
        at = step.end()
    return Reference(root[0], tuple(steps))


def _key(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        raise BadReferenceError(f"expected a key in double quotes, as in JSON, got {quoted(text)}") from None


# -- where they stand --------------------------------------------------------------------------------------------------

Part = str | Reference


def parts_of(text: str) -> list[Part]:
    """Return the pieces of a text, and the references between them; raise BadReferenceError if one is no reference."""
    parts: list[Part] = []
    at = 0
    while (start := text.find("${", at)) >= 0:
        if text[start - 1 : start] == "$" and start > at:
            parts.append(text[at : start - 1] + "${")
            at = start + 2
            continue
        end = _end_of(text, start + 2)
        parts += [text[at:start], parse_reference(text[start + 2 : end])]
        at = end + 1
    parts.append(text[at:])
    return [part for part in parts if part != ""]


def _end_of(text: str, start: int) -> int:
    """Return where the `}` of a reference is; one within a quoted key does not count."""
    inner = _INNER.match(text, start, start + REFERENCE_LIMIT + 1)
    if inner is not None and text[inner.end() : inner.end() + 1] == "}":
        return inner.end()
    raise BadReferenceError(f"{quoted(text[start - 2 :])} is never closed by a '}}'; write '$${{' for a plain '${{'")


@attrs.frozen
class ReferencePlace:
    """Where in a value a text with references stands, and what they are."""

    path: Path
    references: tuple[Reference, ...]
    is_whole: bool
    """Whether the text is one reference and nothing else, so that the value keeps its type."""


@attrs.frozen
class BadPlace:
    """Where in a value a text stands whose references can't be read, and why."""

    path: Path
    message: str


def places_in(value: Any, path: Path = ()) -> Iterator[ReferencePlace | BadPlace]:
    """Find every text with references in *value*."""
    if isinstance(value, str):
        if "${" in value:
            yield from _places_of_text(value, path)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from places_in(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from places_in(item, (*path, index))


def _places_of_text(text: str, path: Path) -> Iterator[ReferencePlace | BadPlace]:
    try:
        parts = parts_of(text)
    except BadReferenceError as error:
        yield BadPlace(path, str(error))
        return
    found = tuple(part for part in parts if isinstance(part, Reference))
    if found:
        yield ReferencePlace(path, found, is_whole=len(parts) == 1)


# -- what they stand for -----------------------------------------------------------------------------------------------

Scope = Mapping[str, Any]
"""What references may name, by root: plain JSON."""


def read(scope: Scope, reference: Reference) -> Any:
    """Return what *reference* names; raise BadReferenceError if there is nothing."""
    if reference.root not in scope:
        hint = did_you_mean(reference.root, scope)
        raise BadReferenceError(f"${{{reference}}}: there is no {quoted(reference.root)}{hint}")
    value = scope[reference.root]
    for depth, step in enumerate(reference.path):
        try:
            value = value[step] if _fits(value, step) else _missing(value, step)
        except (LookupError, BadReferenceError) as error:
            place = Reference(reference.root, reference.path[:depth])
            why = str(error) if isinstance(error, BadReferenceError) else _why_missing(value, step)
            raise BadReferenceError(f"${{{reference}}}: {place} {why}") from None
    return value


def _fits(value: Any, step: str | int) -> bool:
    return isinstance(value, list | tuple) if isinstance(step, int) else isinstance(value, Mapping)


def _missing(value: Any, step: str | int) -> Any:
    kind = _kind(value)
    wanted = f"no item [{step}]" if isinstance(step, int) else f"no key {quoted(step)}"
    hint = "; write [0] for an item" if kind == "a list" else ""
    raise BadReferenceError(f"is {kind} and has {wanted}{hint}")


def _why_missing(value: Any, step: str | int) -> str:
    if isinstance(step, int):
        return f"has {len(value)} items, and no [{step}]"
    known = ", ".join(quoted(str(key)) for key in list(value)[:_SHOWN_KEYS])
    return f"has no key {quoted(step)}{did_you_mean(step, map(str, value))}{f'; it has {known}' if known else ''}"


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    kinds: Sequence[tuple[type | tuple[type, ...], str]] = (
        ((list, tuple), "a list"),
        (str, "text"),
        (bool, "true or false"),
        ((int, float), "a number"),
    )
    return next((name for type_, name in kinds if isinstance(value, type_)), "null")


def filled(value: Any, look_up: Callable[[Reference], Any]) -> Any:
    """Return *value* with what its references stand for in their places; raise BadReferenceError if one has nothing."""
    room = [VALUE_LIMIT]

    def fill(one: Any) -> Any:
        if isinstance(one, str):
            return _filled_text(one, look_up, room) if "${" in one else one
        if isinstance(one, Mapping):
            return {key: fill(item) for key, item in one.items()}
        if isinstance(one, list | tuple):
            return [fill(item) for item in one]
        return one

    return fill(value)


def _filled_text(text: str, look_up: Callable[[Reference], Any], room: list[int]) -> Any:
    parts = parts_of(text)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return look_up(parts[0])
    joined = "".join(part if isinstance(part, str) else as_text(look_up(part)) for part in parts)
    room[0] -= len(joined)
    if len(joined) > TEXT_LIMIT or room[0] < 0:
        raise BadReferenceError(
            f"a text with its references filled in has at most {TEXT_LIMIT:,} characters, all together {VALUE_LIMIT:,}"
        )
    return joined


def as_text(value: Any) -> str:
    """Return a value as it stands within a text: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
