"""statistics: against the standard library, on values that break naive sums."""

import math
import statistics as reference
from fractions import Fraction

import pytest
from agentos_pack_calculator.summary import Summary, statistics
from hypothesis import given, settings
from hypothesis import strategies as st

finite = st.floats(-1e15, 1e15, allow_nan=False).map(lambda value: round(value, 6))


def test_a_list_is_described():
    expected = Summary(
        count=8,
        sum=40,
        mean=5,
        median=4.5,
        min=2,
        max=9,
        population_variance=4,
        population_stdev=2,
        sample_variance=32 / 7,
        sample_stdev=math.sqrt(32 / 7),
        first_quartile=4,
        third_quartile=5.5,
    )

    assert expected == statistics([2, 4, 4, 4, 5, 5, 7, 9])


def test_one_value_has_no_sample_variance():
    result = statistics([7])

    assert (result.sample_variance, result.sample_stdev) == (None, None)
    assert (
        result.population_variance,
        result.population_stdev,
        result.median,
        result.first_quartile,
        result.third_quartile,
    ) == (0, 0, 7, 7, 7)


def test_small_numbers_beside_large_ones_are_not_lost():
    result = statistics([1e16, 1, -1e16, 1])

    assert (result.sum, result.mean) == (2, 0.5)


def test_tenths_are_tenths():
    result = statistics([0.1] * 10)

    assert (result.sum, result.mean, result.population_variance) == (1, 0.1, 0)


def test_the_variance_of_large_neighbours_is_not_cancelled_away():
    assert statistics([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]).sample_variance == 30


def test_the_deviation_does_not_underflow_with_the_variance():
    assert statistics([1e-200, 3e-200]).population_stdev == 1e-200


def test_the_extremes_are_still_in_range():
    result = statistics([1e100, -1e100] * 5_000)

    assert (result.sum, result.population_stdev, result.population_variance) == (0, 1e100, 1e200)


def test_ten_thousand_values_of_every_size_are_summed_exactly():
    values = [float(f"{n}e{n % 390 - 300}") for n in range(1, 10_001)]

    result = statistics(values)

    assert float(sum(Fraction(repr(value)) for value in values)) == result.sum


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "expected 1 to 10,000 numbers, got 0"),
        ([1] * 10_001, "expected 1 to 10,000 numbers, got 10,001"),
        ([1, float("nan")], r"values\[1\]: expected a finite number, got nan"),
        ([float("inf")], r"values\[0\]: expected a finite number"),
        ([1, 2, "3"], r"values\[2\]: expected a number, got str"),
        ([True], r"values\[0\]: expected a number, got bool"),
        ([None], r"values\[0\]: expected a number, got NoneType"),
        ([1e101], r"values\[0\]: expected a number between -1e100 and 1e100"),
        ([-(10**5000)], r"values\[0\]: expected a number between"),
        ("123", "expected a list of numbers, got str"),
        (5, "expected a list of numbers, got int"),
    ],
)
def test_bad_values_are_refused_with_their_place(values, text):
    with pytest.raises(ValueError, match=f"^values.*{text}|^{text}"):
        statistics(values)


@settings(deadline=None)
@given(st.lists(finite, min_size=2, max_size=50))
def test_it_agrees_with_the_standard_library(values):
    exact = [Fraction(repr(value)) for value in values]
    result = statistics(values)

    first, middle, third = reference.quantiles(exact, n=4, method="inclusive")
    expected = [
        sum(exact),
        reference.mean(exact),
        middle,
        first,
        third,
        reference.pvariance(exact),
        reference.variance(exact),
    ]
    assert [float(number) for number in expected] == [
        result.sum,
        result.mean,
        result.median,
        result.first_quartile,
        result.third_quartile,
        result.population_variance,
        result.sample_variance,
    ]
    assert result.sample_stdev == pytest.approx(reference.stdev(exact), rel=1e-15)
    assert result.population_stdev == pytest.approx(reference.pstdev(exact), rel=1e-15)


@settings(deadline=None)
@given(st.lists(finite, min_size=1, max_size=30), st.randoms())
def test_the_order_of_the_values_does_not_matter(values, random):
    shuffled = values[:]
    random.shuffle(shuffled)

    assert statistics(values) == statistics(shuffled)
