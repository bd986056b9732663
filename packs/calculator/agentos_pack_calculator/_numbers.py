"""Numbers that stay exact as long as they can, and how they are written."""

import decimal
import math
from fractions import Fraction

Number = int | Fraction | float

MAX_BITS = 10_000
"""The size of the largest whole number, and of both halves of the largest fraction."""

TEXT_DIGITS = 28
"""Significant digits of a fraction that is written out."""

_PLAIN_FROM, _PLAIN_TO = -20, 40
_LARGEST_SAFE_INTEGER = 2**53


def settle(value: object) -> Number:
    """Return *value* as a number within the bounds; a fraction that outgrows them becomes a float."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return settle(value.numerator)
        return value if size_of(value) <= MAX_BITS else settle(float(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError("the result is not a finite number")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value.bit_length() > MAX_BITS:
            raise OverflowError(f"the result has more than {MAX_BITS:,} bits")
        return value
    raise ValueError("has no real value")


def size_of(value: int | Fraction) -> int:
    """Return the bits of the larger of numerator and denominator."""
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def as_text(value: Fraction) -> tuple[str, bool]:
    """Write *value* with at most `TEXT_DIGITS` significant digits, and say whether that is all of it."""
    with decimal.localcontext(decimal.Context(prec=TEXT_DIGITS)) as context:
        quotient = decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)
        exact = not context.flags[decimal.Inexact]
        shortest = quotient.normalize()
    if _PLAIN_FROM <= shortest.adjusted() <= _PLAIN_TO:
        return format(shortest, "f"), exact
    return str(shortest), exact


def as_json(value: Fraction) -> int | float:
    """Return *value* as an int if it is whole and every JSON reader can hold it, else the nearest float."""
    if value.denominator == 1 and abs(value) <= _LARGEST_SAFE_INTEGER:
        return value.numerator
    return float(value)
