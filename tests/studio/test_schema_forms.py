"""Forms made of JSON Schema: what goes in comes out, and what was entered is never lost on the way."""

import json
import re
from urllib.parse import urlencode

import bfcl_calls
import json_schema_suite
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentos import Problem, ToolDefinitionError
from agentos.schema.validation import compile_schema
from agentos.studio.forms.form_entries import ACTION, PAIR_LIMIT, arguments_of, entered_of, pairs_of, problems_in
from agentos.studio.forms.form_fields import FIELD_COUNT, controls_of, form_of
from agentos.studio.forms.form_shapes import exactly

TRIP = {
    "type": "object",
    "title": "A trip",
    "properties": {
        "from": {"type": "string", "description": "Where it begins"},
        "seats": {"type": "integer", "minimum": 1, "default": 2},
        "price": {"type": "number"},
        "isOpen": {"type": "boolean"},
        "class": {"enum": ["first", "second", 3, None]},
        "day": {"type": "string", "format": "date"},
        "stops": {"type": "array", "items": {"$ref": "#/$defs/stop"}},
        "guide": {"$ref": "#/$defs/stop"},
        "note": {"type": ["string", "null"]},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["from"],
    "additionalProperties": False,
    "$defs": {
        "stop": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        }
    },
}
EITHER = {
    "type": "object",
    "oneOf": [
        {
            "title": "By mail",
            "properties": {"kind": {"const": "mail"}, "to": {"type": "string"}, "text": {"type": "string"}},
            "required": ["kind", "to"],
            "additionalProperties": False,
        },
        {
            "title": "By phone",
            "properties": {"kind": {"const": "call"}, "number": {"type": "string"}, "text": {"type": "string"}},
            "required": ["kind", "number"],
            "additionalProperties": False,
        },
    ],
}


def submitted(form, changed=None, action=None):
    """Return what a page submits of a form after a person wrote into some of its controls."""
    given = dict(controls_of(form))
    given.update(changed or {})
    given |= {ACTION: action} if action else {}
    return pairs_of(urlencode([(name, value.replace("\n", "\r\n")) for name, value in given.items()]).encode())


def fill(schema, changed=None, values=None):
    form = form_of(schema) if values is None else form_of(schema, values)
    return arguments_of(schema, submitted(form, changed))


def redrawn(schema, form, action, changed=None):
    return form_of(schema, entered_of(schema, submitted(form, changed, action)))


def at(form, name):
    (found,) = [one for one in form.walk() if one.name == name]
    return found


def assert_same(schema, value):
    told = arguments_of(schema, submitted(form_of(schema, value)))
    assert (exactly(told.value), told.problems) == (exactly(value), ())


# -- nothing is lost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"from": "Graz"},
        {"from": ""},
        {"from": "line\nline\n\n  spaces ", "note": None},
        {"from": "\nbegins with a line", "note": ""},
        {"from": "carriage\r\nreturn", "note": "bell\x07"},
        {"from": "x", "seats": 0, "price": 1.0, "isOpen": False, "class": 3},
        {"from": "x", "price": 1e22, "class": None, "day": "2026-02-28"},
        {"from": "x", "price": -0.0, "day": "not a day"},
        {"from": "x", "stops": []},
        {"from": "x", "stops": [{"city": "Wien", "nights": 2}, {"city": ""}]},
        {"from": "x", "guide": {"city": "Linz"}, "labels": {}},
        {"from": "x", "labels": {"a/b": "1", "ä ö": "2", "a:on": "3", "members": ""}},
        {"from": "x", "labels": {"": "no name"}},
        {"from": "x", "labels": {"two\nlines": "no"}},
        {"from": "x" * 200_000},
        {"from": "x", "seats": 10**400},
        {"from": "<script>alert(1)</script>&amp;\"'"},
    ],
)
def test_what_fits_the_schema_comes_back_as_it_was(value):
    assert_same(TRIP, value)


def test_a_value_that_does_not_fit_comes_back_as_it_was_as_well():
    assert_same(TRIP, {"from": 7, "seats": "12", "stops": {"a": 1}, "extra": [None]})


def test_the_branch_that_fits_is_drawn():
    form = form_of(EITHER, {"kind": "call", "number": "1"})

    assert [one.label for one in form.shapes] == ["By mail", "By phone"]
    assert form.shape == form.shapes[1].value
    assert_same(EITHER, {"kind": "call", "number": "1"})


@pytest.mark.skipif(not json_schema_suite.read(), reason=json_schema_suite.MISSING)
def test_every_instance_of_the_official_suite_that_is_valid_comes_back_as_it_was():
    count = 0
    for cases in json_schema_suite.read().values():
        for case in cases:
            for test in case["tests"]:
                if test["valid"]:
                    assert_same(case["schema"], test["data"])
                    count += 1
    assert count > 1_000


@pytest.mark.proof
@pytest.mark.skipif(not bfcl_calls.read(), reason=bfcl_calls.MISSING)
def test_the_arguments_of_every_call_of_bfcl_come_back_as_they_were():
    count = 0
    for _, schema, value in bfcl_calls.read():
        if is_valid(schema, value):
            assert_same(schema, value)
            count += 1
    assert count > 2_351


def is_valid(schema, value):
    try:
        return compile_schema(schema, "a schema").is_valid(value)
    except ToolDefinitionError:
        return False


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
ANY = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))


@st.composite
def schemas(draw, depth=0):
    """Draw a schema and a value that fits it."""
    kinds = ["string", "integer", "number", "boolean", "null", "enum", "any"]
    kind = draw(st.sampled_from(kinds + (["object", "array", "anyOf", "allOf", "map"] * 2 if depth < 3 else [])))
    if kind in ("string", "integer", "number", "boolean", "null"):
        values = {
            "string": TEXTS,
            "integer": st.integers(),
            "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
            "boolean": st.booleans(),
            "null": st.none(),
        }
        return {"type": kind}, draw(values[kind])
    if kind == "any":
        return draw(st.sampled_from([{}, True])), draw(ANY)
    if kind == "enum":
        listed = draw(st.lists(ANY, min_size=1, max_size=4))
        return {"enum": listed}, draw(st.sampled_from(listed))
    if kind == "array":
        drawn = draw(st.lists(schemas(depth + 1), min_size=1, max_size=3))
        return {"type": "array", "prefixItems": [schema for schema, _ in drawn]}, [value for _, value in drawn]
    if kind == "map":
        schema, _ = inner = draw(schemas(depth + 1))
        names = draw(st.lists(TEXTS, max_size=3, unique=True))
        return {"type": "object", "additionalProperties": schema}, dict.fromkeys(names, inner[1])
    if kind == "anyOf":
        drawn = draw(st.lists(schemas(depth + 1), min_size=1, max_size=3))
        return {"anyOf": [schema for schema, _ in drawn]}, draw(st.sampled_from([value for _, value in drawn]))
    drawn = draw(st.dictionaries(TEXTS, st.tuples(schemas(depth + 1), st.sampled_from(["required", "there", "out"]))))
    properties = {name: schema for name, ((schema, _), _) in drawn.items()}
    value = {name: one for name, ((_, one), place) in drawn.items() if place != "out"}
    required = [name for name, (_, place) in drawn.items() if place == "required"]
    if kind == "allOf":
        halves = [{"properties": {name: one}} for name, one in properties.items()]
        return {"type": "object", "allOf": [*halves, {"required": required}]}, value
    return {"type": "object", "properties": properties, "required": required}, value


@given(schemas())
def test_any_value_of_any_schema_comes_back_as_it_was(drawn):
    assert_same(*drawn)


@given(schemas())
def test_raw_json_and_back_loses_nothing(drawn):
    schema, value = drawn
    raw = redrawn(schema, form_of(schema, value), "json:")
    back = redrawn(schema, raw, "form:")

    assert json.loads(raw.value) == value
    assert exactly(arguments_of(schema, submitted(raw)).value) == exactly(value)
    assert exactly(arguments_of(schema, submitted(back)).value) == exactly(value)


# -- what a person enters -----------------------------------------------------------------------------------------


def test_an_empty_form_sends_nothing_and_misses_what_is_required():
    told = fill(TRIP)

    assert (told.value, told.problems) == ({}, ())
    assert [one.path for one in problems_in(TRIP, told.value)] == ["$.from"]


def test_types_are_restored():
    written = {
        "a/from": "Graz",
        "a/seats": "3",
        "a/price": "1.5",
        "a/isOpen": "true",
        "a/class": "2",
        "a/day": "2026-01-02",
    }
    told = fill(TRIP, written)

    assert told.value == {
        "from": "Graz",
        "seats": 3,
        "price": 1.5,
        "isOpen": True,
        "class": 3,
        "day": "2026-01-02",
    }


def test_an_optional_text_that_is_empty_is_left_out_unless_it_is_said_to_be_empty():
    assert fill(TRIP, {"a/from": "x"}).value == {"from": "x"}
    assert fill(TRIP, {"a/from": "", "a/from:on": "1"}).value == {"from": ""}


def test_a_number_that_is_none_stays_in_its_field_with_a_word_about_it():
    told = fill(TRIP, {"a/from": "x", "a/seats": "two"})
    field = at(form_of(TRIP, told.entered), "a/seats")

    assert [str(one) for one in told.problems] == ['$.seats: expected an integer, got "two"']
    assert (field.value, field.problems) == ("two", ('expected an integer, got "two"',))


@pytest.mark.parametrize("text", ["1_000", "0x10", "\u0661", "1e999", "NaN", "--1", "9" * 5_000])
def test_what_json_does_not_call_a_number_is_none(text):
    told = fill(TRIP, {"a/price": text})

    assert len(told.problems) == 1
    assert at(form_of(TRIP, told.entered), "a/price").value == text


def test_a_problem_stands_at_its_field_or_at_the_nearest_around_it():
    problems = [
        Problem("$.stops[0].city", "too short"),
        Problem("$.stop", "unknown key"),
        Problem("$.guide.city", "no"),
    ]
    form = form_of(TRIP, {"from": "x", "stops": [{"city": ""}]}, problems)

    assert at(form, "a/stops/@0/city").problems == ("too short",)
    assert at(form, "a/guide").problems == ("city: no",)
    assert form.problems == ("stop: unknown key",)


def test_what_a_schema_says_is_shown():
    form = form_of(TRIP)
    seats, start = at(form, "a/seats"), at(form, "a/from")

    assert (form.label, start.label, start.description, start.is_required) == (
        "A trip",
        "from",
        "Where it begins",
        True,
    )
    assert (seats.default, seats.hints, seats.is_required, seats.value) == ("2", ("at least 1",), False, "")


# -- a form that changes ------------------------------------------------------------------------------------------


def test_rows_are_added_and_removed_and_the_others_keep_what_is_in_them():
    form = redrawn(TRIP, form_of(TRIP), "add:a/stops", {"a/from": "Graz"})
    form = redrawn(TRIP, form, "add:a/stops")
    form = redrawn(TRIP, form, "add:a/stops", {"a/stops/@0/city": "Wien"})
    form = redrawn(TRIP, form, "remove:a/stops/@1", {"a/stops/@2/city": "Linz", "a/stops/@2/nights": "2"})

    told = arguments_of(TRIP, submitted(form))
    assert told.value == {"from": "Graz", "stops": [{"city": "Wien"}, {"city": "Linz", "nights": 2}]}
    assert at(redrawn(TRIP, form, "remove:a/stops"), "a/stops").fields == ()


def test_an_object_that_is_optional_is_added_and_removed():
    assert at(form_of(TRIP), "a/guide").can_add
    form = redrawn(TRIP, form_of(TRIP), "add:a/guide")
    told = arguments_of(TRIP, submitted(form, {"a/from": "x", "a/guide/city": "Linz"}))
    gone = redrawn(TRIP, form, "remove:a/guide", {"a/guide/city": "Linz"})

    assert told.value == {"from": "x", "guide": {"city": "Linz"}}
    assert arguments_of(TRIP, submitted(gone)).value == {}


def test_members_that_the_schema_does_not_name_are_rows_with_a_name():
    form = redrawn(TRIP, form_of(TRIP), "add:a/labels")
    form = redrawn(TRIP, form, "add:a/labels")
    form = redrawn(TRIP, form, "add:a/labels", {"a/labels/*0:key": "colour", "a/labels/*0": "red"})

    told = arguments_of(TRIP, submitted(form, {"a/labels/*1:key": "colour", "a/labels/*1": "blue"}))
    assert told.value == {"labels": {"colour": "red"}}
    assert [str(one) for one in told.problems] == ["$.labels.colour: a name stands twice"]
    assert arguments_of(TRIP, submitted(form)).problems == ()


def test_an_item_without_a_value_is_a_problem():
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}
    form = redrawn(schema, form_of(schema), "add:a/n")
    form = redrawn(schema, form, "add:a/n")

    told = arguments_of(schema, submitted(form))
    assert [str(one) for one in told.problems] == ["$.n[0]: nothing is entered; fill it in or remove it"]


def test_another_branch_keeps_what_both_have():
    form = form_of(EITHER, {"kind": "mail", "to": "ann", "text": "hi"})
    form = redrawn(EITHER, form, "show:", {"a:kind": form.shapes[1].value})

    assert arguments_of(EITHER, submitted(form, {"a/number": "1"})).value == {
        "kind": "call",
        "number": "1",
        "text": "hi",
        "to": "ann",
    }
    assert at(form, "a/*0").key == "to"  # what only the other had is told as unknown, and not thrown away


def test_another_shape_is_sent_without_drawing_it_first():
    schema = {"type": "object", "properties": {"x": {"type": ["integer", "string"]}}}

    assert fill(schema, {"a/x:kind": "text"}, {"x": 5}).value == {"x": "5"}
    assert fill(schema, {"a/x:kind": ""}, {"x": 5}).value == {}


def test_json_that_is_none_stays_as_it_was_written():
    raw = redrawn(TRIP, form_of(TRIP, {"from": "x"}), "json:")
    told = arguments_of(TRIP, submitted(raw, {"a": "{'from': 1}"}))
    form = redrawn(TRIP, raw, "form:", {"a": "{'from': 1}"})

    assert re.match(r"\$: not JSON: .* in line 1, column 2", str(told.problems[0]))
    assert (form.control, form.value) == ("json", "{'from': 1}")


# -- bounds -------------------------------------------------------------------------------------------------------


def test_a_schema_that_refers_to_itself_ends():
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}}, "required": ["next"]}
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    wide = {"type": "object", "properties": {n: {"$ref": "#"} for n in "abcdef"}, "required": list("abcdef")}

    assert len(list(form_of(tree).walk())) < 100
    assert form_of(loop).control in ("json", "area", "none")
    assert len(list(form_of(wide).walk())) <= FIELD_COUNT * 8


def test_large_values_become_raw_json_where_they_are_too_much():
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}
    value = {"n": list(range(5_000))}

    assert at(form_of(schema, value), "a/n").control == "json"
    assert_same(schema, value)


def test_deep_values_become_raw_json():
    value = {"v": 1}
    for _ in range(60):
        value = {"next": value}
    assert_same({"type": "object", "properties": {"next": {"$ref": "#"}}}, value)


def test_a_form_of_too_many_fields_is_refused():
    with pytest.raises(ValueError, match="fields"):
        pairs_of("&".join(f"a{n}=1" for n in range(PAIR_LIMIT + 1)).encode())


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=5)), max_size=8), st.booleans())
def test_any_names_and_values_are_read_without_an_error(pairs, is_ours):
    told = arguments_of(TRIP, [(f"a/{name}" if is_ours else name, value) for name, value in pairs])

    assert isinstance(told.value, dict)
    form_of(TRIP, told.entered, told.problems)
