"""Completing what was validated: defaults wherever a schema says them, and whole numbers as ints."""

import copy
from collections.abc import Callable
from typing import Any

from agentos.schema.bounded import compile_natively, weigh
from agentos.schema.parts import Pointer, SchemaParts
from agentos.schema.references import pointed
from agentos.schema.work import TooMuchWorkError, Work

FILLED_LIMIT = 10_000
"""How many values the defaults of a schema may add to one instance."""
_VISITS = 100_000
"""How many values may be looked at that several subschemas have defaults for."""


class FillWork(Work):
    """What filling the defaults into one instance may take."""

    __slots__ = ("visits",)

    def __init__(self) -> None:
        self.left = FILLED_LIMIT
        self.visits = _VISITS
        self._end = 0.0

    def visit(self) -> None:
        """Count a value that several subschemas have defaults for."""
        self.visits -= 1
        if self.visits < 0:
            raise TooMuchWorkError("it takes too much work")


Filler = Callable[[Any, FillWork], None]


def filler_of(schema: Any, pointers: Callable[[], dict[int, Pointer]]) -> Filler | None:
    """Return what fills the defaults of *schema* into an instance of it, or None if it has none.

    *pointers* tells where each subschema stands.
    """
    return _Fillers(schema, pointers).whole()


class _Fillers:
    """Makes the fillers of one schema; each definition is looked at once, however many refer to it."""

    def __init__(self, root: Any, pointers: Callable[[], dict[int, Pointer]]) -> None:
        self._root = root
        self._pointers = pointers
        self._options: list[dict[str, Any]] = []
        self._parts: SchemaParts | None = None
        self._by_reference: dict[str, Filler | None] = {}
        self._unfinished: set[str] = set()
        self._under_way: set[tuple[str, int]] = set()

    def whole(self) -> Filler | None:
        fill = self.of(self._root)
        if self._options:
            pointers = self._pointers()
            self._parts = SchemaParts(self._root, [pointers[id(one)] for one in self._options], compile_natively)
        return fill

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
            return lambda value, work: self._later(reference, value, work)
        if reference not in self._by_reference:
            self._unfinished.add(reference)
            self._by_reference[reference] = self.of(pointed(self._root, reference))
            self._unfinished.discard(reference)
        return self._by_reference[reference]

    def _later(self, reference: str, value: Any, work: FillWork) -> None:
        filler, here = self._by_reference[reference], (reference, id(value))
        if filler is None or type(value) not in (dict, list) or here in self._under_way:
            return  # a reference that leads back to itself without going into the value has nothing to fill
        self._under_way.add(here)
        try:
            filler(value, work)
        finally:
            self._under_way.discard(here)

    def _of_object(self, schema: dict[str, Any]) -> Filler | None:
        here: list[tuple[str, Any, int]] = []
        inside: list[tuple[str, Filler]] = []
        whole: list[str] = []
        properties = schema.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if _is_whole(inner):
                whole.append(name)
            if isinstance(inner, dict) and "default" in inner:
                here.append((name, inner["default"], weigh(inner["default"]).nodes))
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
        numbers = [self._number(option) for option in options]

        def fill(value: Any, work: FillWork) -> None:
            work.spend_time()
            for number, filler in zip(numbers, fillers, strict=True):
                if self._fits(number, value):
                    if filler is not None:
                        filler(value, work)
                    return

        return fill

    def _number(self, option: Any) -> int | bool:
        """Return the number under which the check of an option is found, or what it says of everything."""
        if not isinstance(option, dict):
            return bool(option)
        self._options.append(option)
        return len(self._options) - 1

    def _fits(self, number: int | bool, value: Any) -> bool:
        if self._parts is None or isinstance(number, bool):
            return bool(number)
        return self._parts.fits(number, value)


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

    def fill(value: Any, work: FillWork) -> None:
        work.visit()
        for part in parts:
            part(value, work)

    return fill


def _fill_object(
    here: list[tuple[str, Any, int]],
    inside: list[tuple[str, Filler]],
    whole: list[str],
    others: Filler | None,
    known: frozenset[str],
) -> Filler:
    def fill(value: Any, work: FillWork) -> None:
        if type(value) is not dict:
            return
        for name in whole:
            if type(value.get(name)) is float:  # 1.0 is a whole number in JSON, and an int to whoever asked for one
                value[name] = int(value[name])
        for name, default, size in here:
            if name not in value:
                work.spend(size)
                value[name] = copy.deepcopy(default) if type(default) in (dict, list) else default
        for name, filler in inside:
            if name in value:
                filler(value[name], work)
        if others is not None:
            for name in value.keys() - known:
                others(value[name], work)

    return fill


def _fill_list(first: list[Filler | None], rest: Filler | None, *, is_whole: bool) -> Filler:
    def fill(value: Any, work: FillWork) -> None:
        if type(value) is not list:
            return
        if is_whole:
            value[len(first) :] = [int(one) if type(one) is float else one for one in value[len(first) :]]
        for filler, item in zip(first, value, strict=False):
            if filler is not None:
                filler(item, work)
        if rest is not None:
            for item in value[len(first) :]:
                rest(item, work)

    return fill
