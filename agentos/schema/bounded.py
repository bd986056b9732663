"""A validator whose work has an end: what a value costs is known before native code sees it."""

import functools
import marshal
from collections.abc import Iterable
from typing import Any, NamedTuple

from agentos.errors import ToolDefinitionError
from agentos.schema.cost import ANYWHERE, IN_LISTS, SchemaCost, cost_of
from agentos.schema.descent import Descent
from agentos.schema.parts import Pointer
from agentos.schema.regex_cost import BACKTRACK_LIMIT
from agentos.schema.unions import with_shared_unions
from agentos.schema.work import WORK_LIMIT, TooMuchWorkError, Work

_SMALLEST = 16
"""A schema is refused that a value of so many parts could not be checked against."""
_QUICK = 4
"""What is left of the limit by a value that was measured by its bytes alone: a large number takes more than those."""
_MANY_STEPS = 2_000
_EXPLAINING = 100
"""How many steps of checking take as long as making one error."""
_PLAIN = 8_000
"""Up to how many bytes a schema is plain, if it has none of these words: a value is compared with all of it at most."""
_NOT_PLAIN = (b"Ref", b"ref", b"unevaluated", b"attern", b"propertyNames", b"format")
_PER_BYTE = 16
_LARGE = 2**64
_LARGE_BITS = 6_000
"""An integer takes as many steps as the square of its bits, in this unit."""


class BoundedValidator:
    """Checks values against one schema; raises TooMuchWorkError instead of beginning what could take too long."""

    __slots__ = ("_cost", "_descent", "_formats", "is_valid_natively", "native", "schema", "size_limit")

    def __init__(self, schema: Any, where: str, *, formats: bool = True) -> None:
        self.schema = schema
        """What is checked: the same schema, or one that means the same and takes less."""
        self._formats = formats
        self._descent: Descent | None = None
        self._cost: SchemaCost | None = None
        self.size_limit = _plain_size_limit(schema)
        """Of how many characters of JSON, or bytes, a value may be for `is_valid_natively`."""
        if not self.size_limit:
            try:
                self._measure()
            except TooMuchWorkError as error:
                raise unusable(where, error) from None
        self.native = compile_natively(schema, where, formats=formats)
        self.is_valid_natively = self.native.is_valid

    @property
    def cost(self) -> SchemaCost:
        """Return what checking costs; of a plain schema it is found out when it is first asked for."""
        return self._cost or self._measure()

    def _measure(self) -> SchemaCost:
        cost = cost_of(self.schema, Work())
        if cost.is_recursive and cost.steps.nodes > _MANY_STEPS:
            shared = with_shared_unions(self.schema, cost.subschemas)
            if shared is not None:
                self.schema, cost = shared, cost_of(shared, Work())
        self._cost = _bounded(cost)
        self.size_limit = WORK_LIMIT // (_QUICK * max(self._cost.steps)) if self._cost.growth == 1 else 0
        return self._cost

    @property
    def pointers(self) -> dict[int, Pointer]:
        """Return where each subschema stands, by its identity."""
        return {id(schema): pointer for pointer, schema in self.cost.subschemas.items()}

    def is_valid(self, value: Any) -> bool:
        """Tell whether *value* fits."""
        if len(marshal.dumps(value, 2)) > self.size_limit:
            Work().spend(self.work_of(value))
        return bool(self.is_valid_natively(value))

    def work_of(self, value: Any) -> int:
        """Return how many steps checking *value* may take."""
        cost = self.cost
        size = weigh(value, cost.text_names)
        nodes, characters, texts = cost.steps
        total = size.nodes * nodes + size.characters * characters + size.texts * texts
        return total if cost.growth == 1 else total * cost.growth**size.depth

    def iter_errors(self, value: Any) -> Iterable[Any]:
        """Find what is wrong with *value*: everything, or if that takes too much work what is found by descending."""
        cost, work = self.cost, self.work_of(value)
        if not cost.is_recursive and work * _EXPLAINING <= WORK_LIMIT:
            errors: Iterable[Any] = self.native.iter_errors(value)
            return errors
        if self.is_valid(value):
            return []
        if cost.words.isdisjoint(("anyOf", "oneOf")):
            return self._first_error(value)
        if self._descent is None:
            compile = functools.partial(compile_natively, formats=self._formats)
            self._descent = Descent(self.schema, cost.subschemas, compile)
        return self._descent.errors(value)

    def _first_error(self, value: Any) -> list[Any]:
        import jsonschema_rs

        try:
            self.native.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []


class ValueSize(NamedTuple):
    """How large a value is: its parts, the text that has patterns or formats, and its levels."""

    nodes: int
    characters: int
    texts: int
    depth: int


def weigh(value: Any, text_names: frozenset[str] = frozenset()) -> ValueSize:
    """Measure *value*."""
    nodes, characters, texts, depth = 1, 0, 0, 0
    level = [("", [value])]
    while level:
        below: list[tuple[str, Any]] = []
        for name, parts in level:
            for one in [one for one in parts if type(one) is int and not -_LARGE < one < _LARGE]:
                nodes += one.bit_length() ** 2 // _LARGE_BITS
            if text_names and (name in text_names or ANYWHERE in text_names):
                seen = [one for one in parts if type(one) is str]
                texts, characters = texts + len(seen), characters + sum(map(len, seen))
            inner = [one for one in parts if type(one) is dict or type(one) is list]
            nodes += sum(map(len, inner))
            below += _parts(inner, text_names)
        level, depth = below, depth + 1
    return ValueSize(nodes, characters, texts, depth)


def _parts(containers: list[Any], text_names: frozenset[str]) -> list[tuple[str, Any]]:
    """Return what is in *containers*, by name where names make a difference; names are text too."""
    found: list[tuple[str, Any]] = []
    for one in containers:
        if type(one) is list:
            found.append((IN_LISTS, one))
        elif not text_names:
            found.append(("", one.values()))
        else:
            found.append(("", one))
            found += [(name, [part]) for name, part in one.items()]
    return found


def _plain_size_limit(schema: Any) -> int:
    """Return how large a value may be for a check without a second thought; 0 if the schema is not plain to see."""
    try:
        text = marshal.dumps(schema, 2)
    except ValueError:
        return 0
    is_plain = len(text) <= _PLAIN and not any(word in text for word in _NOT_PLAIN)
    return WORK_LIMIT // (_QUICK * _PER_BYTE * len(text)) if is_plain else 0


def _bounded(cost: SchemaCost) -> SchemaCost:
    if max(cost.steps) * _SMALLEST > WORK_LIMIT:
        raise TooMuchWorkError(
            f"checking a single value could take {max(cost.steps):.0e} steps; "
            "write fewer references to what refers on, fewer unions in unions, fewer fractions in an enum"
        )
    return cost


def compile_natively(schema: Any, where: str, *, formats: bool = True) -> Any:
    """Make a validator: the one place that does, so that nothing is ever fetched, and no pattern runs without end."""
    import jsonschema_rs

    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=formats, offline=True, pattern_options=options)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise unusable(where, error) from None


def unusable(where: str, error: Exception) -> ToolDefinitionError:
    """Return the refusal of a schema."""
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return ToolDefinitionError(where, "", f"no usable JSON Schema (2020-12, no remote references): {reason}")
