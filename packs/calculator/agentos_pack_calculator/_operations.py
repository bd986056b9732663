"""The operators, functions and constants of an expression, each bounded by itself."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, cast

import attrs

from agentos_pack_calculator._numbers import MAX_BITS, Number, settle, size_of

MAX_FACTORIAL = 1_000
MAX_ROUND_DIGITS = 100
_ANY = 1_000


def number(value: object) -> Number:
    """Return *value* if it is a number; the answer of a comparison is not."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction | float):
        raise ValueError("uses a comparison as a number; compare last")  # noqa: TRY004 - bad input
    return value


def _whole(value: Number) -> int:
    if isinstance(value, int):
        return value
    raise ValueError("needs whole numbers; use round, floor or ceil first")


def _divide(left: Number, right: Number) -> Number:
    if isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)
    return Fraction(left) / Fraction(right)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, float) or not isinstance(exponent, int):
        return cast("Number", float(base) ** float(exponent))
    # The true size is at least this, so what passes is at most about twice the limit and cheap to compute.
    if (size_of(base) - 1) * abs(exponent) < MAX_BITS:
        return Fraction(base) ** exponent
    if isinstance(base, int) and exponent > 0:
        raise OverflowError(f"the result has more than {MAX_BITS:,} bits")
    return float(base) ** exponent


def _real(function: Callable[[Any], float]) -> Callable[[Number], float]:
    """Say in our own words what CPython words differently from version to version."""

    def call(value: Number) -> float:
        # Whole numbers may be beyond a float's range: the logarithms take them as they are.
        argument = value if isinstance(value, int) else float(value)
        if value and not argument:
            raise ValueError("has an argument too close to zero")
        try:
            return function(argument)
        except ValueError:
            raise ValueError("has no real value") from None

    return call


def _sqrt(value: Number) -> Number:
    if isinstance(value, int) and value >= 0 and math.isqrt(value) ** 2 == value:
        return math.isqrt(value)
    return _real(math.sqrt)(value)


def _round(value: Number, digits: Number | None = None) -> Number:
    if digits is None:
        return round(value)
    places = _whole(digits)
    if abs(places) > MAX_ROUND_DIGITS:
        raise ValueError(f"has too many digits; round takes -{MAX_ROUND_DIGITS} to {MAX_ROUND_DIGITS}")
    return cast("Number", round(value, places))


def _factorial(value: Number) -> int:
    whole = _whole(value)
    if not 0 <= whole <= MAX_FACTORIAL:
        raise ValueError(f"is out of range; factorial takes 0 to {MAX_FACTORIAL:,}")
    return math.factorial(whole)


def _gcd(*values: Number) -> int:
    return math.gcd(*(_whole(value) for value in values))


_ln, _log2, _log10 = _real(math.log), _real(math.log2), _real(math.log10)


def _log(value: Number, base: Number | None = None) -> Number:
    if base is None:
        return _ln(value)
    # Dividing logarithms gives log(1000, 10) = 2.9999999999999996.
    if base in {2, 10}:
        return _log2(value) if base == 2 else _log10(value)  # noqa: PLR2004
    return _divide(_ln(value), _ln(base))


@attrs.frozen
class Function:
    """A function that an expression may call with a fixed range of arguments."""

    name: str
    call: Callable[..., object]
    fewest: int = 1
    most: int = 1

    def __call__(self, *values: object) -> Number:
        """Call it with numbers only and keep the result within the bounds."""
        if not self.fewest <= len(values) <= self.most:
            raise ValueError(f"has {len(values)} arguments; {self.name} takes {self._arity}")
        return settle(self.call(*map(number, values)))

    @property
    def _arity(self) -> str:
        if self.most == _ANY:
            return f"at least {self.fewest} argument" + "s" * (self.fewest > 1)
        return " or ".join(dict.fromkeys((str(self.fewest), str(self.most)))) + " argument" + "s" * (self.most > 1)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        function.name: function
        for function in (
            Function("sqrt", _sqrt),
            Function("abs", abs),
            Function("round", _round, most=2),
            Function("min", lambda *values: min(values), most=_ANY),
            Function("max", lambda *values: max(values), most=_ANY),
            Function("sin", _real(math.sin)),
            Function("cos", _real(math.cos)),
            Function("tan", _real(math.tan)),
            Function("asin", _real(math.asin)),
            Function("acos", _real(math.acos)),
            Function("atan", _real(math.atan)),
            Function("log", _log, most=2),
            Function("log10", _log10),
            Function("log2", _log2),
            Function("exp", _real(math.exp)),
            Function("floor", math.floor),
            Function("ceil", math.ceil),
            Function("factorial", _factorial),
            Function("gcd", _gcd, most=_ANY),
        )
    }
)

CONSTANTS: Mapping[str, float] = MappingProxyType({"pi": math.pi, "e": math.e, "tau": math.tau})


def _calculating(operation: Callable[[Any, Any], object]) -> Callable[[object, object], Number]:
    return lambda left, right: settle(operation(number(left), number(right)))


def _comparing(operation: Callable[[Any, Any], bool]) -> Callable[[object, object], bool]:
    return lambda left, right: operation(number(left), number(right))


OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = MappingProxyType(
    {
        ast.Add: _calculating(operator.add),
        ast.Sub: _calculating(operator.sub),
        ast.Mult: _calculating(operator.mul),
        ast.Div: _calculating(_divide),
        ast.FloorDiv: _calculating(operator.floordiv),
        ast.Mod: _calculating(operator.mod),
        ast.Pow: _calculating(_power),
        ast.UAdd: number,
        ast.USub: lambda value: -number(value),
        ast.Eq: _comparing(operator.eq),
        ast.NotEq: _comparing(operator.ne),
        ast.Lt: _comparing(operator.lt),
        ast.LtE: _comparing(operator.le),
        ast.Gt: _comparing(operator.gt),
        ast.GtE: _comparing(operator.ge),
    }
)
