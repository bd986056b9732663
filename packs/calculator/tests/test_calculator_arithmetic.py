"""calculate: what it answers."""

import math

import pytest
from agentos_pack_calculator.arithmetic import Calculation, calculate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("+5 - -5", 10),
        ("1000 * 3", 3000),
        ("6 / 2", 3),
        ("7 / 2", 3.5),
        ("2 ** -2", 0.25),
        ("10 ** 400 // 10 ** 399", 10),
        ("  1\n + \t 2 ", 3),
    ],
)
def test_arithmetic_follows_the_usual_rules(expression, value):
    result = calculate(expression)

    assert (value, True) == (result.value, result.exact)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("0.1 + 0.2", "0.3"),
        ("0.1 * 3 == 0.3", "true"),
        ("1 / 3 * 3", "1"),
        ("0.3 // 0.1", "3"),
        ("0.3 % 0.1", "0"),
        ("1.1 ** 2", "1.21"),
        ("round(2.675, 2)", "2.68"),
        ("100.10 - 100", "0.1"),
        ("1e-400", "1E-400"),
        ("1e3", "1000"),
    ],
)
def test_decimal_fractions_are_not_binary(expression, text):
    assert text == calculate(expression).text


def test_whole_numbers_keep_every_digit():
    result = calculate("2 ** 200 + 1")

    assert Calculation(value=2**200 + 1, text=str(2**200 + 1), exact=True) == result
    assert isinstance(result.value, int)


def test_an_endless_fraction_says_that_it_was_rounded():
    assert Calculation(value=1 / 3, text="0." + 28 * "3", exact=False) == calculate("1/3")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sqrt(16)", 4),
        ("sqrt(10**600) == 10**300", True),
        ("abs(-3)", 3),
        ("round(2.5)", 2),
        ("round(1.23456, 3)", 1.235),
        ("round(12345, -2)", 12300),
        ("min(3, 1/2, 2)", 0.5),
        ("max(3)", 3),
        ("floor(-2.5)", -3),
        ("ceil(-2.5)", -2),
        ("factorial(0)", 1),
        ("factorial(20)", math.factorial(20)),
        ("gcd(12, 18, 27)", 3),
    ],
)
def test_functions_that_can_be_exact_are(expression, value):
    result = calculate(expression)

    assert (value, True) == (result.value, result.exact)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sqrt(2)", math.sqrt(2)),
        ("sin(pi / 6)", math.sin(math.pi / 6)),
        ("cos(tau)", 1.0),
        ("tan(1)", math.tan(1)),
        ("asin(1)", math.asin(1)),
        ("acos(0.5)", math.acos(0.5)),
        ("atan(1e3)", math.atan(1000)),
        ("log(e)", 1.0),
        ("log(1000, 10)", 3.0),
        ("log(8, 2)", 3.0),
        ("log(9, 3)", 2.0),
        ("log10(10 ** 400)", 400.0),
        ("log2(1 / 8)", -3.0),
        ("exp(1)", math.e),
        ("2 ** 0.5", math.sqrt(2)),
        ("1.0000001 ** 1000000", 1.0000001**1000000),
        ("2 ** -20000", 0.0),
        ("pi / 2", math.pi / 2),
    ],
)
def test_what_needs_floating_point_says_that_it_is_not_exact(expression, value):
    result = calculate(expression)

    assert result.value == pytest.approx(value, rel=1e-15)
    assert not result.exact


@pytest.mark.parametrize("expression", ["floor(pi)", "round(sqrt(2))", "pi > 3", "0 * pi", "min(1, pi)"])
def test_one_rounded_step_makes_the_result_inexact(expression):
    assert not calculate(expression).exact


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1 < 2 < 3", True), ("1 < 2 > 3", False), ("2 != 2", False), ("1/3 >= 0.333", True), ("2 <= 1", False)],
)
def test_comparisons_answer_true_or_false(expression, value):
    result = calculate(expression)

    assert value is result.value
    assert str(value).lower() == result.text


def test_a_comparison_stops_at_the_first_no():
    assert calculate("2 < 1 < 1/0").value is False


def test_a_fraction_that_outgrows_the_limit_is_rounded():
    result = calculate("1 / (10**2000 + 1) * 10**1500 / (3**2000 + 2) + 1")

    assert (result.value, result.exact) == (1.0, False)


def test_a_long_sum_is_not_nesting():
    assert calculate("+".join(["1"] * 500)).value == 500


def test_a_long_sum_needs_no_deep_stack(run_python):
    code = (
        "import sys\n"
        "from agentos_pack_calculator.arithmetic import calculate\n"
        "calculate('1')\n"
        "sys.setrecursionlimit(300)\n"
        "print(calculate('+'.join(['1'] * 500)).value)"
    )

    assert run_python(code) == "500"


def test_forty_levels_are_allowed():
    assert calculate("(" * 40 + "1" + "+1)" * 40).value == 41
