"""Finding what is wrong with a value by going into it, where listing everything would take without end.

The validator lists the errors of every branch of every union, and of their branches. Here each subschema is asked only
whether a part of the value fits it, and of a union only the option that came nearest is gone into.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from agentos.schema.explain import UNFINISHED, nearest
from agentos.schema.parts import Pointer, SchemaParts
from agentos.schema.references import pointed
from agentos.schema.work import TooMuchWorkError, Work

_STEPS = 10_000
_FOUND = 32
_PARTS = 3_000
"""Of how many subschemas a schema may be, for them to be asked one by one."""
_DEEP = frozenset(
    {
        *("$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions", "$id", "$anchor", "$dynamicAnchor"),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"),
        *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames", "properties"),
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains", "maxContains"),
    }
)
_OPAQUE = ("not", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "dependencies")


@attrs.frozen
class FoundKind:
    """What is wrong, in the form that the validator tells it."""

    name: str
    context: Sequence[Sequence[Any]] = ()
    """Of a union, what is wrong for each of its options."""


@attrs.frozen
class FoundError:
    """One thing that is wrong, in the form that the validator tells it."""

    kind: Any
    instance_path: Sequence[str | int]
    schema_path: Sequence[str | int]
    instance: Any


class Descent:
    """Finds errors against one schema."""

    def __init__(
        self, root: Any, subschemas: Mapping[Pointer, dict[str, Any]], compile: Callable[[Any, str], Any]
    ) -> None:
        self._root = root
        self._subschemas = subschemas
        self._pointers = {id(schema): pointer for pointer, schema in subschemas.items()}
        self._numbers = {id(schema): number for number, schema in enumerate(subschemas.values())}
        self._compile = compile
        self._parts: SchemaParts | None = None
        self._own: dict[Pointer, Any] = {}

    def errors(self, value: Any) -> list[FoundError]:
        """Return what is wrong with *value*, which does not fit; the first few, or how far it came."""
        search, found = _Search(self), []
        with contextlib.suppress(TooMuchWorkError):
            for error in search.errors(self._root, value, ()):
                found.append(error)
                if len(found) == _FOUND:
                    break
        return found or [FoundError(FoundKind(UNFINISHED), search.reached, [UNFINISHED], value)]

    def fits(self, schema: Any, value: Any) -> bool:
        """Tell whether a part of a value fits a subschema."""
        if not isinstance(schema, dict):
            return bool(schema)
        if self._parts is None:
            if len(self._subschemas) > _PARTS:
                raise TooMuchWorkError("it takes too much work")
            self._parts = SchemaParts(self._root, self._subschemas, self._compile)
        return self._parts.fits(self._numbers[id(schema)], value)

    def own_errors(self, schema: dict[str, Any], value: Any) -> Iterator[Any]:
        """Find what the keywords of a subschema say of *value* that don't lead to other subschemas."""
        pointer = self._pointers[id(schema)]
        if pointer not in self._own:
            self._own[pointer] = self._compile(_without_others(schema, self._root), "a part of a schema")
        yield from self._own[pointer].iter_errors(value)

    def pointer(self, schema: dict[str, Any]) -> Pointer:
        """Return where a subschema stands."""
        return self._pointers[id(schema)]

    def target(self, reference: str) -> Any:
        """Return what a reference leads to, if that is plain to see."""
        found = pointed(self._root, reference)
        return found if id(found) in self._pointers else None


class _Search:
    """One search: what it looked at, and what it may take."""

    def __init__(self, descent: Descent) -> None:
        self._descent = descent
        self._work = Work(_STEPS)
        self._seen: set[tuple[Pointer, tuple[str | int, ...]]] = set()
        self._open: set[tuple[Pointer, tuple[str | int, ...]]] = set()
        self.reached: tuple[str | int, ...] = ()

    def errors(self, schema: Any, value: Any, path: tuple[str | int, ...], levels: int = 64) -> Iterator[FoundError]:
        """Find what is wrong with a part of the value that does not fit *schema*, up to *levels* deep."""
        self._work.spend(1)
        if not isinstance(schema, dict):
            yield FoundError(FoundKind("falseSchema"), path, ["falseSchema"], value)
            return
        at = self._descent.pointer(schema)
        if levels > 1:
            if (at, path) in self._seen:
                return
            self._seen.add((at, path))
            self.reached = path
        if (at, path) in self._open:  # it refers to itself without going into the value
            return
        self._open.add((at, path))
        has_any = False
        for error in self._all(schema, at, value, path, levels):
            has_any = True
            yield error
        self._open.discard((at, path))
        if not has_any:
            word = next((word for word in _OPAQUE if word in schema), "")
            if word:
                yield FoundError(FoundKind(word), path, [*at, word], value)

    def _all(
        self, schema: dict[str, Any], at: Pointer, value: Any, path: tuple[str | int, ...], levels: int
    ) -> Iterator[FoundError]:
        for error in self._descent.own_errors(schema, value):
            yield FoundError(error.kind, (*path, *error.instance_path), [*at, *error.schema_path], value)
        for inner in self._beside(schema, value):
            if not self._fits(inner, value):
                yield from self.errors(inner, value, path, levels)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                yield from self._of_union(word, schema[word], at, value, path, levels)
        if levels:
            for key, inner, part in _inside(schema, value):
                if not self._fits(inner, part):
                    yield from self.errors(inner, part, (*path, key), levels - 1)

    def _beside(self, schema: dict[str, Any], value: Any) -> Iterator[Any]:
        """Return the subschemas that the same part of the value must fit."""
        if isinstance(schema.get("$ref"), str) and (target := self._descent.target(schema["$ref"])) is not None:
            yield target
        yield from schema.get("allOf", ())
        if "if" in schema:
            yield schema.get("then" if self._fits(schema["if"], value) else "else", True)
        if isinstance(value, dict):
            yield from (inner for name, inner in schema.get("dependentSchemas", {}).items() if name in value)

    def _of_union(
        self, word: str, options: Sequence[Any], at: Pointer, value: Any, path: tuple[str | int, ...], levels: int
    ) -> Iterator[FoundError]:
        fitting = sum(self._fits(option, value) for option in options)
        if fitting == 1 or (fitting and word == "anyOf"):
            return
        context: list[list[FoundError]] = []
        if not fitting and levels > 1:
            context = [list(self.errors(option, value, path, 1)) for option in options]
            index = nearest(context)
            if index is not None and (whole := list(self.errors(options[index], value, path, levels))):
                context[index] = whole
        yield FoundError(FoundKind(word, context), path, [*at, word], value)

    def _fits(self, schema: Any, value: Any) -> bool:
        self._work.spend(1)
        self._work.spend_time()
        return self._descent.fits(schema, value)


def _inside(schema: dict[str, Any], value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Return each part inside of *value* with a subschema that it must fit."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        yield from ((name, known[name], part) for name, part in value.items() if name in known)
        others = schema.get("additionalProperties", True)
        if isinstance(others, dict) and "patternProperties" not in schema:
            yield from ((name, others, part) for name, part in value.items() if name not in known)
    elif isinstance(value, list):
        first = schema.get("prefixItems", [])
        rest = schema.get("items", True)
        if isinstance(first, list) and isinstance(rest, dict | bool):
            yield from ((index, first[index] if index < len(first) else rest, part) for index, part in enumerate(value))


def _without_others(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Return what *schema* says without other subschemas: which keys there may be, not what they hold."""
    own = {word: value for word, value in schema.items() if word not in _DEEP}
    if schema.get("additionalProperties") is False:
        own["additionalProperties"] = False
    for word in ("properties", "patternProperties"):
        if isinstance(schema.get(word), dict):
            own[word] = dict.fromkeys(schema[word], True)
    return {"$schema": root["$schema"], **own} if "$schema" in root else own
