"""Arguments made from a schema: good ones are good, and there are bad ones of every kind."""

import json
import re

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.parts import count_letters

from agentos.testing import hostile_arguments, valid_arguments
from agentos.testing._canaries import Canaries
from agentos.testing._regex_texts import text_matching
from agentos.testing.fakes import canary_of
from agentos.testing.hostile import Baits, Case, hostile_texts


def closed(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TREE = {
    **closed(root={"$ref": "#/$defs/node"}),
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "inner": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["name"],
        }
    },
}

SCHEMAS = {
    "nothing": closed(),
    "text": closed(a={"type": "string"}),
    "short": closed(a={"type": "string", "maxLength": 0}),
    "long": closed(a={"type": "string", "minLength": 50, "maxLength": 60}),
    "pattern": closed(a={"type": "string", "pattern": r"^[A-Z]{2}-\d+(?:x|y)?$"}),
    "pattern-and-length": closed(a={"type": "string", "pattern": "^a*$", "minLength": 5}),
    "format": closed(a={"type": "string", "format": "date-time"}, b={"type": "string", "format": "uuid"}),
    "choice": closed(a={"enum": ["x", "y"]}, b={"const": 5}),
    "integer": closed(a={"type": "integer", "minimum": 3, "maximum": 7}),
    "exclusive": closed(a={"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}),
    "beneath": closed(a={"type": "integer", "maximum": -10}),
    "multiple": closed(a={"type": "integer", "multipleOf": 5, "minimum": 7}),
    "number": closed(a={"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    "open-number": closed(a={"type": "number"}, b={"type": "integer"}),
    "boolean": closed(a={"type": "boolean"}, b={"type": "null"}),
    "list": closed(a={"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}),
    "distinct": closed(a={"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 3}),
    "distinct-numbers": closed(a={"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 3}),
    "distinct-choices": closed(a={"type": "array", "items": {"enum": ["x", "y"]}, "uniqueItems": True, "minItems": 2}),
    "tuple": closed(a={"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}),
    "map": closed(a={"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}),
    "nested": closed(a=closed(b=closed(c={"type": "string"}))),
    "list-of-objects": closed(a={"type": "array", "items": closed(b={"type": "string"}), "minItems": 1}),
    "nullable": closed(a={"type": ["string", "null"]}, b={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    "one-of": closed(a={"oneOf": [{"type": "string"}, {"type": "integer"}]}),
    "all-of": {"allOf": [closed(a={"type": "string"})], "type": "object"},
    "all-of-parts": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "allOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
    },
    "untyped": {"properties": {"a": {}, "b": {"items": {"type": "string"}}, "c": True}, "required": ["a", "b", "c"]},
    "untyped-inside": closed(a={"properties": {"b": {"type": "string"}}, "required": ["b"]}),
    "distinct-truths": closed(a={"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "maxItems": 3}),
    "default": {"type": "object", "properties": {"a": {"type": "integer", "default": 9}}, "required": ["a"]},
    "example": closed(a={"type": "string", "pattern": "(?=x)x(?!y)", "examples": ["x"]}),
    "tree": TREE,
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_good_arguments_are_made(schema):
    made = valid_arguments(schema)

    assert made
    for one in made:
        jsonschema.validate(one, schema)


def test_there_are_few_and_many_good_arguments():
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}}

    assert valid_arguments(schema) == [{}, {"a": "a" * 9}]


def test_what_nothing_fits_has_no_good_arguments():
    assert valid_arguments({"type": "object", "not": {}}) == []


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_case_says_whether_it_fits(schema):
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker(["uuid"]))
    for case in hostile_arguments(schema):
        if type(case.arguments) is dict and case.fits:
            assert validator.is_valid(case.arguments), case


def test_there_are_cases_that_fit_and_cases_that_do_not():
    cases = hostile_arguments(count_letters.input_schema)

    assert sum(case.fits for case in cases) > 40
    assert sum(not case.fits for case in cases) > 20


def test_the_cases_are_the_same_every_time():
    assert [str(one) for one in hostile_arguments(TREE)] == [str(one) for one in hostile_arguments(TREE)]


def test_a_limit_bounds_both_kinds():
    cases = hostile_arguments(count_letters.input_schema, limit=10)

    assert [case.fits for case in cases] == [True] * 10 + [False] * 10


@pytest.mark.parametrize(
    "wanted",
    [
        *("good arguments 1", "no arguments", "an empty object", "JSON nested deep", "JSON that is too long"),
        *("text is missing", "the key '__proto__' too much", "text: null", "text: NaN", "text: a path 1"),
        *("text: the longest text", "text: beyond the longest text", "text: half of a surrogate pair"),
        *("text: control characters 1", "text: hidden characters 1", "text: SQL 1", "text: a command 1"),
        *("text: a template 1", "text: an address 2", "text: nested lists"),
    ],
)
def test_there_are_cases_of_every_kind(wanted):
    assert wanted in [case.label for case in hostile_arguments(count_letters.input_schema)]


def test_samples_are_what_cases_start_from():
    schema = closed(a={"type": "string"}, b={"type": "integer"})
    cases = hostile_arguments(schema, samples=[{"a": "mine", "b": 42}])

    assert cases[0].arguments == {"a": "mine", "b": 42}
    assert all(case.arguments["b"] == 42 for case in cases if case.label.startswith("a: a path"))


def test_places_inside_lists_and_objects_are_tried():
    labels = [case.label for case in hostile_arguments(SCHEMAS["list-of-objects"])]

    assert "a.0.b: a path 1" in labels


def test_places_that_a_sample_leaves_out_are_tried():
    schema = closed(a={"anyOf": [closed(b={"type": "string"}), {"type": "null"}]})
    cases = hostile_arguments(schema, samples=[{"a": None}])

    assert any(case.label == "a.b: a path 1" and case.fits for case in cases)


def test_what_a_shape_refuses_is_tried_behind_something_good():
    schema = closed(a={"type": "string", "pattern": "^https://"})
    fitting = [case.arguments["a"] for case in hostile_arguments(schema) if case.fits]

    assert any("$(touch pwned)" in text for text in fitting)


def test_hostile_texts_point_at_the_baits():
    texts = " ".join(text for _, text in hostile_texts(Baits("/the/file", "127.0.0.1:77")))

    assert "file:///the/file" in texts
    assert "http://127.0.0.1:77/" in texts


def test_hostile_texts_do_no_harm():
    for _, text in hostile_texts(Baits()):
        assert not re.search(r"\brm\b|drop|delete|/dev/(zero|random|sd)|mkfs|shutdown|:\(\)", text, re.IGNORECASE)


def test_a_case_is_shown_in_one_line_of_ascii():
    shown = str(Case("odd", {"a": "\u202e\n\x00" + "b" * 500}))

    assert shown.isascii()
    assert shown.isprintable()
    assert "characters)" in shown


def test_what_is_no_json_is_shown_by_its_type():
    assert str(Case("odd", {"a": {1}})) == "odd: dict"


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "abc", "a|b", "[a-z]+", "[^a]", "[^a0-9_. -]", r"\d{3}", r"\w\s\S", ".", "a{2,5}", "(a)(?:b)?c*"),
        *("^x$", "(?i)a", "a??", "(?P<n>ab){2}", r"[\d_]", r"[^\s]", r"\D", "(?>a)", "a++", r"[^\W]"),
    ],
)
def test_a_text_is_made_for_a_pattern(pattern):
    assert re.search(pattern, text_matching(pattern))


@pytest.mark.parametrize("pattern", [r"(a)\1", "(", "a{1000}"])
def test_some_patterns_are_beyond_it(pattern):
    assert text_matching(pattern) is None


@given(st.from_regex(r"\A[a-z0-9]{1,20}\Z"))
def test_a_canary_is_found_however_it_is_written(id):
    value = canary_of(id)
    canaries = Canaries({id: value})

    for text in (value, value[::-1], value.upper(), value[-8:].lower(), value[7::-1], value.encode().hex()):
        assert canaries.found_in(f"before {text} after") == [id]


@pytest.mark.parametrize("part", [slice(6), slice(8), slice(16), slice(-6, None), slice(20, 26)])
def test_six_characters_of_a_canary_are_found(part):
    value = canary_of("openai.apiKey")

    assert Canaries({"openai.apiKey": value}).found_in(f"key={value[part]}...") == ["openai.apiKey"]


@pytest.mark.parametrize("separator", ["-", " ", "_", ", ", "\n", "\\n", "', '"])
def test_a_canary_is_found_with_something_between_its_characters(separator):
    value = canary_of("openai.apiKey")

    assert Canaries({"openai.apiKey": value}).found_in(separator.join(value)) == ["openai.apiKey"]


def test_less_than_six_characters_of_a_canary_are_not_it():
    value = canary_of("openai.apiKey")

    assert Canaries({"openai.apiKey": value}).found_in(f"{value[:5]} {value[-5:]}") == []


def test_a_value_that_is_given_is_found_whole_only():
    canaries = Canaries({"url": "http://127.0.0.1:8080/v1", "short": "abc"})

    assert canaries.found_in("http://127.0.0.1:9/") == []
    assert canaries.found_in("at http://127.0.0.1:8080/v1/x abc") == ["url"]


def test_the_arguments_of_cases_can_be_sent():
    for case in hostile_arguments(SCHEMAS["nested"]):
        if case.fits:
            json.dumps(case.arguments)
