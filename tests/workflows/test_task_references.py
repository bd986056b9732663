"""References in a workflow's data: how they are written, what they stand for, and what is said of wrong ones."""

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos.workflows.task_references import (
    TEXT_LIMIT,
    BadPlace,
    BadReferenceError,
    Reference,
    ReferencePlace,
    filled,
    parse_reference,
    parts_of,
    places_in,
    read,
)

SCOPE = {
    "inputs": {"who": "ann", "tags": ["a", "b"], "odd key}": {"x": None}},
    "search": {"output": {"total": 2, "items": [{"url": "u1"}, {"url": "u2"}]}, "state": "succeeded"},
}
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
json_values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
names = st.text(string.ascii_letters, min_size=1, max_size=6)
references = st.builds(Reference, names, st.lists(st.text(max_size=6) | st.integers(0, 99), max_size=4).map(tuple))


def fill(value):
    return filled(value, lambda reference: read(SCOPE, reference))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${inputs.tags}", ["a", "b"]),
        ("${ search.output.items[1].url }", "u2"),
        ('${inputs["odd key}"].x}', None),
        ("Dear ${inputs.who}, ${search.output.total} of ${inputs.tags}", 'Dear ann, 2 of ["a", "b"]'),
        ({"to": ["${inputs.who}", 3], "deep": {"n": "${search.output.total}"}}, {"to": ["ann", 3], "deep": {"n": 2}}),
        ("costs $5, {not} $${", "costs $5, {not} ${"),
        ("$${inputs.who} stays", "${inputs.who} stays"),
        ("$$${inputs.who}", "$${inputs.who}"),
        ("no reference", "no reference"),
        (17, 17),
    ],
)
def test_a_reference_stands_for_a_value(value, expected):
    assert fill(value) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${input.who}", "there is no 'input'; did you mean 'inputs'?"),
        ("${inputs.wo}", "inputs has no key 'wo'; did you mean 'who'?; it has 'who', 'tags'"),
        ("${inputs.tags[2]}", "inputs.tags has 2 items, and no [2]"),
        ("${inputs.tags.first}", "inputs.tags is a list and has no key 'first'; write [0] for an item"),
        ("${inputs.who.x}", "inputs.who is text and has no key 'x'"),
        ('${inputs["odd key}"].x.y}', 'inputs["odd key}"].x is null and has no key'),
        ("${}", "expected a reference such as inputs.name"),
        ("${inputs..who}", "expected .name, [0] or"),
        ("${inputs.who + 1}", "expected .name"),
        ("${inputs.who", "never closed"),
        ('${inputs["who]}', "never closed"),
        (f"${{inputs.{'x' * 600}}}", "never closed"),
    ],
)
def test_a_wrong_reference_is_told(text, message):
    with pytest.raises(BadReferenceError) as caught:
        fill(text)

    assert message in str(caught.value)


def test_every_text_with_references_is_found_in_its_place():
    found = list(places_in({"a": ["${x.output}", {"b": "so ${y.state} and ${x.output}"}], "c": "$${z}", "d": "${"}))

    assert [one.path for one in found] == [("a", 0), ("a", 1, "b"), ("d",)]
    assert found[:2] == [
        ReferencePlace(("a", 0), (Reference("x", ("output",)),), is_whole=True),
        ReferencePlace(("a", 1, "b"), (Reference("y", ("state",)), Reference("x", ("output",))), is_whole=False),
    ]
    assert isinstance(found[2], BadPlace)


def test_what_references_fill_in_is_bounded():
    with pytest.raises(BadReferenceError, match="at most 1,000,000 characters"):
        filled("a${x.output}", lambda _: "x" * TEXT_LIMIT)
    with pytest.raises(BadReferenceError, match="all together 4,000,000"):
        filled(["a${x.output}"] * 5, lambda _: "x" * (TEXT_LIMIT - 1))


@given(reference=references)
@settings(max_examples=examples(300))
def test_a_reference_that_is_written_is_read_again(reference):
    assert parse_reference(str(reference)) == reference


@given(value=json_values)
@settings(max_examples=examples(300))
def test_a_whole_reference_keeps_every_value_and_an_embedded_one_is_its_json(value):
    assert filled("${x.output}", lambda _: value) == value
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    assert filled("<${x.output}>", lambda _: value) == f"<{shown}>"


@given(text=st.text("${}[]\"'\\.ax0 ", max_size=40))
@settings(max_examples=examples(2000))
def test_any_text_is_taken_apart_or_refused(text):
    try:
        parts = parts_of(text)
    except BadReferenceError:
        return
    assert len([one for one in parts if isinstance(one, Reference)]) <= text.count("${")


@given(text=st.text())
@settings(max_examples=examples(300))
def test_a_text_whose_dollars_are_doubled_stays_as_it_is(text):
    assert filled(text.replace("${", "$${"), lambda _: pytest.fail("nothing to look up")) == text
