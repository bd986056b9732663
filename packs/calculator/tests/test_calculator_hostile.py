"""calculate: what it refuses, and that it does so at once."""

import pytest
from agentos_pack_calculator.arithmetic import calculate


def refusal(expression):
    with pytest.raises(ValueError, match=r"^expression: ") as caught:
        calculate(expression)
    return str(caught.value)


DANGEROUS = [
    "9**9**9",
    "9**9**9**9",
    "2**4000000",  # simpleeval's own limit lets this through, and the next two
    "2**4000000 > 1",  # nothing to print, so that no limit on printing helps
    "3999999**3999999",  # half a minute's work if it is computed before it is refused
    "10**10**7",
    "2**9999**2",
    "2**10000",
    "(2**5000)*(2**5000)",
    "((((2**1000)**2)**2)**2)**2",
    "*".join(["(2**900)"] * 12),
    "(10**3000)**(10**3000)",
    "(-9)**9**9",
    "factorial(factorial(9))",
    "factorial(1000) * factorial(1000)",
    "1e999999999",
    "1e-999999999",
    "1e" + "9" * 900,
    "1e3000 * 1e3000",
    "9" * 990 + "**9",
    "exp(exp(exp(9)))",
    "1.5 ** 1e300",
    "round(1, 10**9)",
    "round(1, -10**9)",
]


@pytest.mark.parametrize("expression", DANGEROUS)
def test_numbers_without_bound_are_refused_at_once(run_python, expression):
    code = (
        "import sys\n"
        "from agentos_pack_calculator.arithmetic import calculate\n"
        "try:\n"
        "    print('value', calculate(sys.argv[1]).value)\n"
        "except ValueError as exc:\n"
        "    print('refused', exc)"
    )

    assert run_python(code, expression).startswith("refused expression: ")


@pytest.mark.parametrize(
    ("expression", "text"),
    [("1.5 ** 2000", "too large"), ("10**400 / 3", "too large"), ("sqrt(10**401)", "too large")],
)
def test_what_no_float_can_hold_is_refused(expression, text):
    assert text in refusal(expression)


def test_the_largest_power_is_allowed():
    assert calculate("2 ** 9999").value == 2**9999


def test_powers_of_one_cost_nothing():
    assert calculate("(-1) ** (10 ** 3000) + 0 ** 10 ** 3000").value == 1


@pytest.mark.parametrize(
    "expression",
    [
        "'a' * 3",
        '"a" * 1000000000',
        "b'a'",
        "f'{1}'",
        "__import__('os').system('true')",
        "().__class__",
        "(1).__class__",
        "(1).real",
        "pi.hex()",
        "[1, 2]",
        "{1: 2}",
        "[x for x in (1, 2)]",
        "lambda: 1",
        "(lambda: 1)()",
        "1 if 2 else 3",
        "1 and 2",
        "not 1",
        "1 in (1, 2)",
        "1 is 1",
        "True",
        "None",
        "x",
        "x = 5",
        "x := 5",
        "1; 2",
        "1 # 2",
        "1 << 2",
        "1 >> 2",
        "1 & 2",
        "1 | 2",
        "1 ^ 2",
        "~1",
        "1 @ 2",
        "1j",
        "0x10",
        "0b1",
        "...",
        "(1, 2)",
        "1,",
        "max(*3)",
        "max(**3)",
        "round(1, ndigits=2)",
        "sqrt",
        "sqrt + 1",
        "max(sqrt)",
        "sqrt(4)(5)",
        "2(3)",
        "rand()",
        "randint(5)",
        "int(5)",
        "str(5)",
        "import os",
        "print(1)",
        "1\x00",
        "\\",
        "1if 2else 3",
    ],
)
def test_only_arithmetic_is_evaluated(expression):
    refusal(expression)


@pytest.mark.parametrize("expression", ["(1 < 2) + 1", "-(1 < 2)", "(1 < 2) == (2 < 3)", "sqrt(1 < 2)"])
def test_a_comparison_is_not_a_number(expression):
    with pytest.raises(ValueError, match="comparison as a number"):
        calculate(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1 / 0", "'1 / 0' divides by zero"),
        ("3 + 1 // (2 - 2)", "'1 // (2 - 2)' divides by zero"),
        ("1 % 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("sin(0) / sin(0)", "divides by zero"),
        ("log(2, 1)", "divides by zero"),
        ("(-8) ** (1/3)", "has no real value"),
        ("sqrt(-1)", "has no real value"),
        ("asin(2)", "has no real value"),
        ("log(0)", "has no real value"),
        ("log10(1e-400)", "too close to zero"),
        ("exp(1000)", "too large"),
        ("factorial(1001)", "factorial takes 0 to 1,000"),
        ("factorial(-1)", "factorial takes 0 to 1,000"),
        ("factorial(2.5)", "needs whole numbers"),
        ("gcd(1.5, 2)", "needs whole numbers"),
        ("round(1, 101)", "round takes -100 to 100"),
        ("min()", "min takes at least 1 argument"),
        ("sqrt(1, 2)", "sqrt takes 1 argument"),
        ("round(1, 2, 3)", "round takes 1 or 2 arguments"),
    ],
)
def test_impossible_arithmetic_names_the_part(expression, text):
    assert text in refusal(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("", "is empty"),
        (" \n ", "is empty"),
        ("2 ^ 3", "'^' at character 3; write ** for a power"),
        ("2 \N{MULTIPLICATION SIGN} 3", "write *"),
        ("2pi", "a number runs into 'pi' at character 2; write * between"),
        ("squrt(4)", "unknown name 'squrt' at character 1; did you mean 'sqrt'?"),
        ("zzz", "known names are sqrt, abs"),
        ("1,000", "without thousands separators"),
        ("1_000", "without thousands separators"),
        ("2(3)", "write * to multiply"),
        ("sin", "give it arguments in parentheses"),
        ("5 %", "not valid arithmetic at character 3"),
        ("1 +* 2", "not valid arithmetic at character 4"),
        ("007", "leading zeros"),
    ],
)
def test_a_mistake_is_answered_with_the_way_out(expression, text):
    assert text in refusal(expression)


def test_the_length_is_limited():
    assert calculate("1" + "+1" * 499).value == 500
    assert "1,001 characters; at most 1,000" in refusal("1" + "+1" * 500)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 400 + "1" + ")" * 400,
        "-" * 900 + "1",
        "2" + "**1" * 300,
        "abs(" * 150 + "1" + ")" * 150,
        "1 < (" * 150 + "1" + ")" * 150,
    ],
)
def test_the_depth_is_limited(run_python, expression):
    code = (
        "import sys\n"
        "from agentos_pack_calculator.arithmetic import calculate\n"
        "try:\n"
        "    calculate(sys.argv[1])\n"
        "except ValueError as exc:\n"
        "    print(exc)"
    )

    assert "nested" in run_python(code, expression)


def test_a_nearly_full_stack_is_an_answer_too(run_python):
    code = (
        "import sys\n"
        "from agentos_pack_calculator.arithmetic import calculate\n"
        "calculate('1')\n"
        "sys.setrecursionlimit(90)\n"
        "try:\n"
        "    calculate('abs(' * 45 + '1' + ')' * 45)\n"
        "except ValueError as exc:\n"
        "    print(exc)"
    )

    assert "nested" in run_python(code)


def test_a_result_the_host_will_not_print_is_refused(run_python):
    code = (
        "import sys\n"
        "from agentos_pack_calculator.arithmetic import calculate\n"
        "sys.set_int_max_str_digits(640)\n"
        "try:\n"
        "    calculate('10**700')\n"
        "except ValueError as exc:\n"
        "    print(exc)"
    )

    assert run_python(code) == "expression: the result has more than the 640 digits this host prints"
