"""Whether a way through a value can lead anywhere, by the value's JSON Schema."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentos.base.quoting import quoted
from agentos.base.spelling import did_you_mean
from agentos.schema.references import resolved
from agentos.schema.work import TooMuchWorkError, Work
from agentos.workflows.task_references import Path, Reference

_BRANCHES = 64
"""How many schemas are followed side by side; beyond, every way is taken for possible."""
_LOOKS = 2_000
"""How many schemas are looked at; beyond, the same."""
_JOINING = ("allOf", "if", "dependentSchemas", "$dynamicRef")


def fault_of_path(schema: Any, path: Path, head: Reference) -> str | None:
    """Say why *path*, which begins at *head*, leads nowhere in what *schema* allows; None if it may lead somewhere."""
    try:
        return _fault_of_path(schema, path, head, Work(_LOOKS))
    except TooMuchWorkError:
        return None


def _fault_of_path(schema: Any, path: Path, head: Reference, work: Work) -> str | None:
    branches = list(_branches(schema, schema, work))
    for depth, step in enumerate(path):
        found = [_beneath(branch, step) for branch in branches]
        if any(one is _ANYTHING for one in found):
            return None
        below = [one for one in found if not isinstance(one, str)]
        if not below:
            place = Reference(head.root, (*head.path, *path[:depth]))
            whys = dict.fromkeys(one for one in found if isinstance(one, str))
            return f"{place} {next(iter(whys), 'has nothing')}"
        branches = [branch for one in below for branch in _branches(one, schema, work)]
        if len(branches) > _BRANCHES:
            return None
    return None


_ANYTHING: Any = {}


def _branches(schema: Any, root: Any, work: Work, depth: int = 0) -> Iterator[Any]:
    """Yield the alternatives of a schema, but for null: what it is now and then is told when it is."""
    work.spend(1)
    known = resolved(schema, root)
    options = [option for key in ("anyOf", "oneOf") for option in known.get(key, ())]
    if not options or depth > _BRANCHES // 8 or any(key in known for key in _JOINING):
        yield _ANYTHING if not known or any(key in known for key in _JOINING) or options else known
        return
    for option in options:
        if resolved(option, root).get("type") != "null":
            yield from _branches(option, root, work, depth + 1)


def _beneath(schema: Any, step: str | int) -> Any:
    """Return the schema of what is one *step* further, what may be anything, or why there is nothing."""
    if schema is _ANYTHING:
        return _ANYTHING
    kinds = schema.get("type")
    wanted = "array" if isinstance(step, int) else "object"
    if isinstance(kinds, str | list) and wanted not in ([kinds] if isinstance(kinds, str) else kinds):
        return f"is {_shown_kinds(kinds)}, and has no {_shown_step(step)}"
    return _item(schema, step) if isinstance(step, int) else _member(schema, step)


def _shown_kinds(kinds: str | list[str]) -> str:
    names = {"string": "text", "integer": "a number", "number": "a number", "boolean": "true or false", "null": "null"}
    more = {"array": "a list", "object": "an object"}
    listed = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(
        dict.fromkeys({**names, **more}.get(one, one) for one in listed if one != "null" or len(listed) == 1)
    )


def _shown_step(step: str | int) -> str:
    return f"item [{step}]" if isinstance(step, int) else f"key {quoted(step)}"


def _item(schema: Mapping[str, Any], index: int) -> Any:
    first = schema.get("prefixItems") or ()
    below = first[index] if index < len(first) else schema.get("items", _ANYTHING)
    return f"has no item [{index}]" if below is False else below if isinstance(below, Mapping) and below else _ANYTHING


def _member(schema: Mapping[str, Any], key: str) -> Any:
    known = schema.get("properties") or {}
    if key in known:
        return known[key] if isinstance(known[key], Mapping) and known[key] else _ANYTHING
    more = schema.get("additionalProperties", True)
    if schema.get("patternProperties") or more is True or "unevaluatedProperties" in schema or "$ref" in schema:
        return _ANYTHING
    if more is False:
        listing = f"; it has {', '.join(map(quoted, list(known)[:20]))}" if known else ""
        return f"has no key {quoted(key)}{did_you_mean(key, known)}{listing}"
    return more if isinstance(more, Mapping) and more else _ANYTHING
