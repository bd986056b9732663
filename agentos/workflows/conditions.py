"""The conditions of a workflow's tasks: `${search.output.total} > 0 and not ${inputs.quiet}`.

    condition   one or more of `and`, `or`, `not`, parentheses, and comparisons
    comparison  a value, or two with == != < <= > >= in `not in` between them
    value       a ${reference}, a number, "text" or 'text', true, false, null, []

A value alone counts as false if it is null, false, 0, or an empty text, list or object. A reference to what is not
there is null. Only numbers are compared with numbers by < and >, and texts with texts. There are no functions, no
arithmetic and no way to what was not named: a condition reads its references and does nothing else.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from agentos.base.quoting import quoted
from agentos.workflows.task_references import BadReferenceError, Reference, Scope, parse_reference, read

CONDITION_LIMIT = 2_000
"""How many characters a condition has at most."""
_DEPTH = 32
_TOKEN = re.compile(
    r"""\s*(?:
        \$\{(?P<reference>(?:[^}"]|"(?:[^"\\]|\\.)*+")*+)\}
        |(?P<number>-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)(?![\w.])
        |(?P<text>"(?:[^"\\]|\\.)*+"|'[^']*+')
        |(?P<word>[A-Za-z_]\w*)
        |(?P<sign>==|!=|<=|>=|<|>|\(|\)|\[\s*\])
    )""",
    re.VERBOSE,
)
_CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
_WORDS = ("and", "or", "not", "in")


class BadConditionError(ValueError):
    """A condition that is not written as one, or compares what can't be compared; the message says why."""


# -- what a condition is -----------------------------------------------------------------------------------------------


@attrs.frozen
class Literal:
    """A value that stands in the condition itself."""

    value: Any


@attrs.frozen
class Not:
    """The contrary of a condition."""

    inner: "Condition"


@attrs.frozen
class Joined:
    """Conditions of which all (`and`) or any (`or`) must hold."""

    word: str
    parts: "tuple[Condition, ...]"


@attrs.frozen
class Comparison:
    """Two values, and the sign between them."""

    sign: str
    left: "Condition"
    right: "Condition"


Condition = Literal | Reference | Not | Joined | Comparison


def references_of(condition: Condition) -> Iterator[Reference]:
    """Find every reference of a condition."""
    match condition:
        case Reference():
            yield condition
        case Not(inner):
            yield from references_of(inner)
        case Joined(_, parts):
            for part in parts:
                yield from references_of(part)
        case Comparison(_, left, right):
            yield from references_of(left)
            yield from references_of(right)


# -- reading one -------------------------------------------------------------------------------------------------------


def parse_condition(text: str) -> Condition:
    """Return the condition that *text* is; raise BadConditionError if it is none."""
    if len(text) > CONDITION_LIMIT:
        raise BadConditionError(f"a condition has at most {CONDITION_LIMIT:,} characters, this one has {len(text):,}")
    return _Parser(text).whole()


Token = tuple[str, str]


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at, end)
        if token is None:
            raise BadConditionError(f"can't be read at {quoted(text[at:].strip())}; expected {_EXPECTED}")
        found.append((str(token.lastgroup), str(token[str(token.lastgroup)])))
        at = token.end()
    return found


_EXPECTED = "a ${reference}, a number, a text in quotes, true, false, null, [], a comparison, and, or, not"


class _Parser:
    """Reads the tokens of one condition from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    def whole(self) -> Condition:
        made = self._joined("or")
        if self._at < len(self._tokens):
            raise BadConditionError(f"expected and, or, or the end, got {quoted(self._tokens[self._at][1])}")
        return made

    def _take(self, *tokens: Token) -> str | None:
        """Return the next token, and go on behind it, if it is one of these."""
        if self._at < len(self._tokens) and self._tokens[self._at] in tokens:
            self._at += 1
            return self._tokens[self._at - 1][1]
        return None

    def _joined(self, word: str) -> Condition:
        part = self._negated if word == "and" else lambda: self._joined("and")
        parts = [part()]
        while self._take(("word", word)):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _negated(self) -> Condition:
        if not self._take(("word", "not")):
            return self._compared()
        return Not(self._deeper(self._negated))

    def _deeper(self, inner: Callable[[], Condition]) -> Condition:
        self._depth += 1
        if self._depth > _DEPTH:
            raise BadConditionError(f"nested deeper than {_DEPTH} levels")
        made = inner()
        self._depth -= 1
        return made

    def _compared(self) -> Condition:
        left = self._value()
        sign = self._take(*(("sign", sign) for sign in _SIGNS)) or self._take(("word", "in"))
        if sign is None and self._tokens[self._at : self._at + 2] == [("word", "not"), ("word", "in")]:
            self._at += 2
            sign = "not in"
        return left if sign is None else Comparison(sign, left, self._value())

    def _value(self) -> Condition:
        if self._at >= len(self._tokens):
            raise BadConditionError(f"ends too early; expected {_EXPECTED}")
        kind, text = self._tokens[self._at]
        self._at += 1
        match kind:
            case "reference":
                return _reference(text)
            case "number":
                return Literal(json.loads(text))
            case "text":
                return Literal(_text(text))
            case "word" if text in _CONSTANTS:
                return Literal(_CONSTANTS[text])
            case "sign" if text == "(":
                return self._parenthesis()
            case "sign" if text.startswith("["):
                return Literal([])
        hint = "; a text stands in quotes" if kind == "word" and text not in _WORDS else ""
        raise BadConditionError(f"expected a value, got {quoted(text)}{hint}")

    def _parenthesis(self) -> Condition:
        made = self._deeper(lambda: self._joined("or"))
        if not self._take(("sign", ")")):
            raise BadConditionError("a '(' is never closed")
        return made


def _reference(text: str) -> Reference:
    try:
        return parse_reference(text)
    except BadReferenceError as error:
        raise BadConditionError(str(error)) from None


def _text(text: str) -> str:
    if "${" in text:
        raise BadConditionError(f"a reference stands without quotes, not as in {quoted(text)}")
    if text[0] == "'":
        return text[1:-1]
    try:
        return str(json.loads(text))
    except ValueError:
        raise BadConditionError(f"{quoted(text)} is no text in quotes, as in JSON") from None


# -- whether it holds --------------------------------------------------------------------------------------------------


def holds(condition: Condition, scope: Scope) -> bool:
    """Tell whether *condition* is true of what *scope* has; raise BadConditionError if it compares what can't be."""
    return is_true(_value_of(condition, scope))


def is_true(value: Any) -> bool:
    """Tell whether a value alone counts as true."""
    return bool(value)


def _value_of(condition: Condition, scope: Scope) -> Any:
    match condition:
        case Literal(value):
            return value
        case Reference():
            return _read_or_null(scope, condition)
        case Not(inner):
            return not holds(inner, scope)
        case Joined("and", parts):
            return all(holds(part, scope) for part in parts)
        case Joined(_, parts):
            return any(holds(part, scope) for part in parts)
        case Comparison(sign, left, right):
            return _COMPARE[sign](_value_of(left, scope), _value_of(right, scope))


def _read_or_null(scope: Scope, reference: Reference) -> Any:
    try:
        return read(scope, reference)
    except BadReferenceError:
        return None


def is_equal(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are the same: 1 is 1.0, and neither is true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(is_equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(is_equal, left, right))
    return bool(left == right)


def _ordered(sign: str, compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(left: Any, right: Any) -> bool:
        are_numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (left, right))
        if are_numbers or (isinstance(left, str) and isinstance(right, str)):
            return compare(left, right)
        shown = (quoted(json.dumps(one, ensure_ascii=False), 40) for one in (left, right))
        raise BadConditionError(f"{f' {sign} '.join(shown)}: expected two numbers or two texts")

    return compared


def _contains(left: Any, right: Any) -> bool:
    if isinstance(right, str) and isinstance(left, str):
        return left in right
    if isinstance(right, Mapping):
        return isinstance(left, str) and left in right
    if isinstance(right, list | tuple):
        return any(is_equal(left, one) for one in right)
    if right is None:
        return False
    raise BadConditionError("expected a list, an object or a text behind `in`")


_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": is_equal,
    "!=": lambda left, right: not is_equal(left, right),
    "<": _ordered("<", operator.lt),
    "<=": _ordered("<=", operator.le),
    ">": _ordered(">", operator.gt),
    ">=": _ordered(">=", operator.ge),
}
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    **_SIGNS,
    "in": _contains,
    "not in": lambda left, right: not _contains(left, right),
}
