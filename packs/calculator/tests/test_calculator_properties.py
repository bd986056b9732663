"""calculate: against fractions and decimals, on expressions made at random."""

import contextlib
from decimal import Decimal, localcontext
from fractions import Fraction

from agentos_pack_calculator.arithmetic import calculate
from hypothesis import assume, given, settings
from hypothesis import strategies as st

OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: Fraction(a // b),
    "%": lambda a, b: a % b,
}

whole = st.integers(0, 10**6).map(lambda n: (str(n), Fraction(n)))
decimals = st.decimals(0, 1000, places=3, allow_nan=False).map(lambda d: (format(d, "f"), Fraction(d)))


def negated(child):
    return child.map(lambda c: (f"(-{c[0]})", None if c[1] is None else -c[1]))


def combined(child):
    return st.tuples(child, st.sampled_from(sorted(OPERATIONS)), child).map(join)


def raised(child):
    return st.tuples(child, st.integers(-3, 3)).map(raise_to)


def join(parts):
    (left, a), sign, (right, b) = parts
    value = None
    if a is not None and b is not None:
        with contextlib.suppress(ZeroDivisionError):
            value = OPERATIONS[sign](a, b)
    return f"({left} {sign} {right})", value


def raise_to(parts):
    (base, a), power = parts
    value = None
    if a is not None:
        with contextlib.suppress(ZeroDivisionError):
            value = a**power
    return f"({base} ** {power})", value


def outcome(expression):
    """Return the result, or the text of the refusal."""
    try:
        return calculate(expression)
    except ValueError as exc:
        return str(exc)


expressions = st.recursive(
    whole | decimals,
    lambda child: negated(child) | combined(child) | raised(child),
    max_leaves=10,
)


@settings(deadline=None)
@given(expressions)
def test_every_expression_means_what_fractions_say(pair):
    """A tree is written out and evaluated by `calculate`, and evaluated here with Fraction; both agree."""
    expression, expected = pair
    result = outcome(expression)
    if isinstance(result, str):
        assume("too large" not in result)
        assert expected is None
        assert "divides by zero" in result
        return

    if result.exact:
        assert expected == Fraction(result.text)
    else:
        assert float(expected) == result.value or abs(expected - Fraction(result.text)) <= abs(expected) * Fraction(
            1, 10**12
        )


@settings(deadline=None)
@given(st.lists(st.decimals(-(10**9), 10**9, places=4, allow_nan=False), min_size=1, max_size=20))
def test_sums_of_decimals_are_what_decimal_says(values):
    expression = " + ".join(f"({format(value, 'f')})" for value in values)

    result = calculate(expression)

    assert result.exact
    with localcontext(prec=60):
        assert sum(values, Decimal(0)) == Decimal(result.text)


@settings(deadline=None)
@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12).filter(bool))
def test_quotient_and_remainder_belong_together(a, b):
    expression = f"({a}) // ({b}) * ({b}) + ({a}) % ({b})"

    assert a == calculate(expression).value


@settings(deadline=None)
@given(st.integers(-(2**64), 2**64), st.integers(0, 100))
def test_powers_of_whole_numbers_are_whole(base, exponent):
    assert base**exponent == calculate(f"({base}) ** {exponent}").value


@settings(deadline=None)
@given(st.fractions(-1000, 1000, max_denominator=1000), st.fractions(-1000, 1000, max_denominator=1000))
def test_comparisons_are_exact(a, b):
    expression = f"({a.numerator}/{a.denominator}) < ({b.numerator}/{b.denominator})"

    assert (a < b) is calculate(expression).value


@settings(deadline=None)
@given(st.text(alphabet="0123456789.+-*/%()<>=!, episqrtmaxlog_", max_size=60))
def test_any_text_gives_a_number_or_a_refusal(text):
    with contextlib.suppress(ValueError):
        calculate(text)
