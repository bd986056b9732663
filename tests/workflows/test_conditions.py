"""Conditions of tasks: what holds, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos.workflows.conditions import BadConditionError, holds, is_equal, parse_condition, references_of
from agentos.workflows.task_references import Reference

SCOPE = {
    "inputs": {"n": 3, "name": "ann", "tags": ["a", 1], "quiet": False, "none": None, "map": {"k": 1}},
    "fetch": {"state": "failed", "output": None, "error": {"type": "Timeout"}},
}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("${inputs.n} == 3", True),
        ("${inputs.n} == 3.0", True),
        ("${inputs.n} == '3'", False),
        ("${inputs.n} != 4 and ${inputs.n} > -1.5e1", True),
        ("${inputs.n} < 3 or ${inputs.n} >= 3", True),
        ("not ${inputs.quiet}", True),
        ("${inputs.quiet} == false", True),
        ("${inputs.quiet} == 0", False),
        ("true == 1", False),
        ("'a' in ${inputs.tags}", True),
        ("true in ${inputs.tags}", False),
        ("'nn' in ${inputs.name}", True),
        ('"k" in ${inputs.map}', True),
        ("'x' not in ${inputs.tags}", True),
        ("'x' in ${inputs.none}", False),
        ("${inputs.name} < 'bob'", True),
        ("${fetch.state} == 'failed' and ${fetch.error.type} == 'Timeout'", True),
        ("${fetch.output.items}", False),
        ("${fetch.output.items} == null", True),
        ("${inputs.tags} != []", True),
        ("${inputs.none} or ${inputs.tags}", True),
        ("not (${inputs.quiet} or ${inputs.n} > 5)", True),
        ("not ${inputs.quiet} and ${inputs.quiet}", False),
        ("false and true or true", True),
        ('"a\\"b" == \'a"b\'', True),
    ],
)
def test_a_condition_holds_or_not(condition, expected):
    assert holds(parse_condition(condition), SCOPE) is expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "ends too early"),
        ("${inputs.n} ==", "ends too early"),
        ("${inputs.n} = 3", "can't be read at '= 3'"),
        ("${inputs.n", "can't be read"),
        ("inputs.n == 3", "can't be read at '.n == 3'"),
        ("name == 3", "expected a value, got 'name'; a text stands in quotes"),
        ("'${fetch.state}' == 'failed'", "a reference stands without quotes"),
        ("(true", "a '(' is never closed"),
        ("true true", "expected and, or, or the end, got 'true'"),
        ("1 < 2 < 3", "expected and, or, or the end"),
        ("__import__('os').system('true')", ".system('true')"),
        ("${inputs..n} == 1", "expected .name"),
        ("(" * 40 + "true" + ")" * 40, "nested deeper than 32"),
        ("not " * 40 + "true", "nested deeper than 32"),
        ("true or " * 1000 + "true", "at most 2,000 characters"),
        ("007 == 7", "can't be read"),
    ],
)
def test_what_is_no_condition_is_refused(condition, message):
    with pytest.raises(BadConditionError) as caught:
        parse_condition(condition)

    assert message in str(caught.value)


@pytest.mark.parametrize("condition", ["${inputs.n} < 'a'", "true < 2", "${inputs.tags} > 1", "null >= 0", "1 in 2"])
def test_what_can_not_be_compared_is_told(condition):
    with pytest.raises(BadConditionError, match="expected"):
        holds(parse_condition(condition), SCOPE)


def test_the_references_of_a_condition_are_found():
    found = list(references_of(parse_condition("not ${a.state} == 'x' and (${b.output} in [] or ${a.error})")))

    assert found == [Reference("a", ("state",)), Reference("b", ("output",)), Reference("a", ("error",))]


@given(text=st.text("${}()[]<>=!'\"\\ .aintruefls0123orandnot", max_size=60))
@settings(max_examples=examples(3000))
def test_any_text_is_a_condition_or_refused(text):
    try:
        condition = parse_condition(text)
        answer = holds(condition, SCOPE)
    except BadConditionError:
        return
    assert isinstance(answer, bool)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)


@given(left=scalars, right=scalars)
@settings(max_examples=examples(500))
def test_equality_is_that_of_json(left, right):
    same_kind = isinstance(left, bool) == isinstance(right, bool)

    assert is_equal(left, right) == (left == right and same_kind)
    assert is_equal([left, {"k": right}], [left, {"k": right}])
