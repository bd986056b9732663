"""Describe a list of numbers."""

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated

import attrs

from agentos import Schema
from agentos_pack_calculator._numbers import as_json

MAX_VALUES = 10_000
MAX_MAGNITUDE = 1e100


@attrs.frozen(kw_only=True)
class Summary:
    """What a list of numbers looks like; every field is rounded once, at the end.

    The sample variance and deviation of a single value are None. Quartiles are interpolated between
    neighbours (the "inclusive" method, as in spreadsheets' QUARTILE.INC).
    """

    count: int
    sum: int | float
    mean: int | float
    median: int | float
    min: int | float
    max: int | float
    population_variance: int | float
    population_stdev: int | float
    sample_variance: int | float | None
    sample_stdev: int | float | None
    first_quartile: int | float
    third_quartile: int | float


def statistics(
    values: Annotated[
        Sequence[Annotated[float, Schema(minimum=-MAX_MAGNITUDE, maximum=MAX_MAGNITUDE)]],
        "1 to 10,000 finite numbers between -1e100 and 1e100, in any order",
        Schema(minItems=1, maxItems=MAX_VALUES),
    ],
) -> Summary:
    """Describe a list of numbers: count, sum, mean, median, extremes, quartiles, variance, deviation.

    Sums are exact. It does no grouping, weighting, correlation or testing.
    """
    exact = _exact(values)
    ordered = sorted(exact)
    count = len(ordered)
    total, squares = _sums(ordered)
    population = squares / count
    sample = squares / (count - 1) if count > 1 else None
    return Summary(
        count=count,
        sum=as_json(total),
        mean=as_json(total / count),
        median=as_json(_quantile(ordered, Fraction(1, 2))),
        min=as_json(ordered[0]),
        max=as_json(ordered[-1]),
        population_variance=as_json(population),
        population_stdev=_root(population),
        sample_variance=None if sample is None else as_json(sample),
        sample_stdev=None if sample is None else _root(sample),
        first_quartile=as_json(_quantile(ordered, Fraction(1, 4))),
        third_quartile=as_json(_quantile(ordered, Fraction(3, 4))),
    )


def _exact(values: Sequence[int | float]) -> list[Fraction]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise ValueError(f"values: expected a list of numbers, got {type(values).__name__}")  # noqa: TRY004
    if not 1 <= len(values) <= MAX_VALUES:
        raise ValueError(f"values: expected 1 to {MAX_VALUES:,} numbers, got {len(values):,}")
    return [_fraction(value, f"values[{index}]") for index, value in enumerate(values)]


def _fraction(value: object, place: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{place}: expected a number, got {type(value).__name__}")  # noqa: TRY004
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place}: expected a finite number, got {value}; leave it out")
    if abs(value) > MAX_MAGNITUDE:
        raise ValueError(f"{place}: expected a number between -1e100 and 1e100; scale the values down")
    # The shortest text of a float is what its author wrote: 0.1 counts as one tenth.
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def _sums(values: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """Return the sum of *values* and the sum of their squared distances from the mean, both exact.

    In whole numbers over one common denominator: adding fractions one by one would cancel each time.
    """
    scale = math.lcm(*{value.denominator for value in values})
    whole = [value.numerator * (scale // value.denominator) for value in values]
    total = sum(whole)
    squares = len(whole) * sum(value * value for value in whole) - total * total
    return Fraction(total, scale), Fraction(squares, len(whole) * scale * scale)


def _quantile(ordered: Sequence[Fraction], part: Fraction) -> Fraction:
    place = part * (len(ordered) - 1)
    below, above = math.floor(place), math.ceil(place)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _root(value: Fraction) -> int | float:
    context = Context(prec=40)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return as_json(Fraction(context.sqrt(quotient)))
