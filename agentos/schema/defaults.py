"""Completing what was validated: defaults wherever a schema says them, and whole numbers as ints."""

import copy
from collections.abc import Callable
from typing import Any

from agentos.schema.references import pointed

Filler = Callable[[Any], None]


Compile = Callable[[Any], Callable[[Any], bool]]


def filler_of(schema: Any, compile: Compile) -> Filler | None:
    """Return what fills the defaults of *schema* into an instance of it, or None if it has none.

    *compile* makes the check by which the option of a union is told that an instance was meant for.
    """
    return _Fillers(schema, compile).of(schema)


class _Fillers:
    """Makes the fillers of one schema; each definition is looked at once, however many refer to it."""

    def __init__(self, root: Any, compile: Compile) -> None:
        self._root = root
        self._compile = compile
        self._by_reference: dict[str, Filler | None] = {}
        self._unfinished: set[str] = set()
        self._under_way: set[tuple[str, int]] = set()

    def of(self, schema: Any) -> Filler | None:
        if not isinstance(schema, dict):
            return None
        parts = [self._of_reference(schema.get("$ref")), self._of_object(schema), self._of_list(schema)]
        parts += [self.of(inner) for inner in _list(schema.get("allOf"))]
        parts.append(self._of_union([*_list(schema.get("anyOf")), *_list(schema.get("oneOf"))]))
        return _in_turn([part for part in parts if part is not None])

    def _of_reference(self, reference: Any) -> Filler | None:
        if not isinstance(reference, str):
            return None
        if reference in self._unfinished:  # recursive: known only when all is made, so it is looked up when it is used
            return lambda value: self._later(reference, value)
        if reference not in self._by_reference:
            self._unfinished.add(reference)
            self._by_reference[reference] = self.of(pointed(self._root, reference))
            self._unfinished.discard(reference)
        return self._by_reference[reference]

    def _later(self, reference: str, value: Any) -> None:
        filler, here = self._by_reference[reference], (reference, id(value))
        if filler is None or type(value) not in (dict, list) or here in self._under_way:
            return  # a reference that leads back to itself without going into the value has nothing to fill
        self._under_way.add(here)
        try:
            filler(value)
        finally:
            self._under_way.discard(here)

    def _of_object(self, schema: dict[str, Any]) -> Filler | None:
        here: list[tuple[str, Any]] = []
        inside: list[tuple[str, Filler]] = []
        whole: list[str] = []
        properties = schema.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if _is_whole(inner):
                whole.append(name)
            if isinstance(inner, dict) and "default" in inner:
                here.append((name, inner["default"]))
            if (filler := self.of(inner)) is not None:
                inside.append((name, filler))
        others = self.of(schema.get("additionalProperties"))
        if not here and not inside and not whole and others is None:
            return None
        return _fill_object(here, inside, whole, others, frozenset(properties or ()))

    def _of_list(self, schema: dict[str, Any]) -> Filler | None:
        first = [self.of(inner) for inner in _list(schema.get("prefixItems"))]
        rest = self.of(schema.get("items"))
        is_whole = _is_whole(schema.get("items"))
        if rest is None and not any(first) and not is_whole:
            return None
        return _fill_list(first, rest, is_whole=is_whole)

    def _of_union(self, options: list[Any]) -> Filler | None:
        """Return what fills in the defaults of the first option that an instance fits."""
        fillers = [self.of(option) for option in options]
        if not any(fillers):
            return None
        shared = {"$defs": self._root["$defs"]} if isinstance(self._root, dict) and "$defs" in self._root else {}
        checks = [self._compile({"allOf": [option], **shared}) for option in options]

        def fill(value: Any) -> None:
            for fits, filler in zip(checks, fillers, strict=True):
                if fits(value):
                    if filler is not None:
                        filler(value)
                    return

        return fill


def _is_whole(schema: Any) -> bool:
    """Tell whether *schema* takes whole numbers only, or null."""
    if not isinstance(schema, dict):
        return False
    options = _list(schema.get("anyOf"))
    if options:
        return all(_is_whole(one) or _is_null(one) for one in options) and any(map(_is_whole, options))
    kind = schema.get("type")
    return kind == "integer" or (isinstance(kind, list) and set(kind) <= {"integer", "null"} and "integer" in kind)


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _in_turn(parts: list[Filler]) -> Filler | None:
    if len(parts) < 2:  # noqa: PLR2004 - one or none
        return parts[0] if parts else None

    def fill(value: Any) -> None:
        for part in parts:
            part(value)

    return fill


def _fill_object(
    here: list[tuple[str, Any]],
    inside: list[tuple[str, Filler]],
    whole: list[str],
    others: Filler | None,
    known: frozenset[str],
) -> Filler:
    def fill(value: Any) -> None:
        if type(value) is not dict:
            return
        for name in whole:
            if type(value.get(name)) is float:  # 1.0 is a whole number in JSON, and an int to whoever asked for one
                value[name] = int(value[name])
        for name, default in here:
            if name not in value:
                value[name] = copy.deepcopy(default) if type(default) in (dict, list) else default
        for name, filler in inside:
            if name in value:
                filler(value[name])
        if others is not None:
            for name in value.keys() - known:
                others(value[name])

    return fill


def _fill_list(first: list[Filler | None], rest: Filler | None, *, is_whole: bool) -> Filler:
    def fill(value: Any) -> None:
        if type(value) is not list:
            return
        if is_whole:
            value[len(first) :] = [int(one) if type(one) is float else one for one in value[len(first) :]]
        for filler, item in zip(first, value, strict=False):
            if filler is not None:
                filler(item)
        if rest is not None:
            for item in value[len(first) :]:
                rest(item)

    return fill
