"""Arguments against schemas: what is accepted, what is filled in, and how a refusal reads.

A test marked `wrong` states what should be true and is not yet: it fails on purpose and says so when it no longer does.
"""

import collections
import contextlib
import copy
import json
import resource
import select
import socket
import subprocess
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import MappingProxyType
from typing import Any

import attrs
import jsonschema_rs
import pytest
import referencing
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from thorough import examples

from agentos import PUBLIC, ToolDefinitionError, tool
from agentos.schema.validation import ARGUMENTS_LIMIT, BadArguments, Checker, compile_schema, problems_of

TRAILING_COMMA = (
    "Illegal trailing comma before end of object at character 7"
    if sys.version_info >= (3, 13)
    else "Expecting property name enclosed in double quotes at character 8"
)
"""What Python's own parser says."""


def closed(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


INTEGER = {"type": "integer"}
STRING = {"type": "string"}
WEATHER = closed(
    ["city"],
    city={"type": "string", "minLength": 2, "maxLength": 20},
    days={"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
    unit={"enum": ["celsius", "fahrenheit"], "default": "celsius"},
    place=closed(["street"], street=STRING, number=INTEGER),
    stops={"type": "array", "items": closed(name=STRING, nights={"type": "integer", "minimum": 1}), "maxItems": 3},
    home={"$ref": "#/$defs/Address"},
) | {"$defs": {"Address": closed(["town"], town=STRING, code={"type": "string", "pattern": "^[0-9]{4}$"})}}


def checked(schema, raw, **options):
    return Checker(schema, "the schema", **options).arguments(raw)


def refusal(schema, raw, **options):
    """Return the refusal of *raw*: its message, or its problems if it has some."""
    with pytest.raises(BadArguments) as caught:
        checked(schema, raw, **options)
    return [str(problem) for problem in caught.value.problems] or str(caught.value)


def refused(schema, raw, **options):
    """Return the only problem of *raw*."""
    (problem,) = refusal(schema, raw, **options)
    return problem


# -- what is taken -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        '{"city": "Oslo"}',
        b'{"city": "Oslo"}',
        bytearray(b'{"city": "Oslo"}'),
        {"city": "Oslo"},
        MappingProxyType({"city": "Oslo"}),
        collections.OrderedDict(city="Oslo"),
        collections.UserDict(city="Oslo"),
    ],
    ids=lambda raw: type(raw).__name__,
)
def test_arguments_come_as_json_text_or_as_a_mapping(raw):
    assert checked(closed(city=STRING), raw) == {"city": "Oslo"}


def test_no_arguments_are_an_empty_object():
    assert checked(closed(), None) == {}


def test_a_mapping_is_copied_and_not_written_to():
    given = {"city": "Oslo", "stops": [{"name": "Bergen"}]}
    before = copy.deepcopy(given)

    taken = checked(WEATHER, given)
    taken["stops"][0]["name"] = "Voss"

    assert given == before


def test_tuples_and_subclasses_become_plain_json():
    class Text(str):
        __slots__ = ()

    taken = checked(closed(cities={"type": "array"}), {Text("cities"): (Text("Oslo"),)})

    assert [type(item) for item in (taken, *taken, taken["cities"], *taken["cities"])] == [dict, str, list, str]


def test_text_of_a_subclass_of_str_is_json_text_too():
    class Text(str):
        __slots__ = ()

    assert checked(closed(city=STRING), Text('{"city": "Oslo"}')) == {"city": "Oslo"}


def test_one_point_zero_is_an_integer():
    assert checked(closed(days=INTEGER), '{"days": 1.0}') == {"days": 1.0}


def test_integers_are_exact_however_large():
    assert checked(closed(id=INTEGER), '{"id": 123456789012345678901234567890}') == {
        "id": 123456789012345678901234567890
    }


def test_bounds_of_large_integers_are_exact():
    schema = closed(id={"type": "integer", "maximum": 2**64})

    assert refused(schema, {"id": 2**64 + 1}) == f"$.id: expected at most {2**64}, got an integer {2**64 + 1}"


def test_the_last_of_two_equal_keys_counts():
    assert checked(closed(days=INTEGER), '{"days": 1, "days": 2}') == {"days": 2}


# -- what can't be read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ['{"city": "Os', '{"city": "Oslo"', '{"city"', '{"city":', '{"city": "Oslo",', "{", '{"a": [1']
)
def test_truncated_json_is_called_cut_off(text):
    assert refusal(WEATHER, text) == f"the JSON is cut off at character {len(text)}; send the whole object"


@pytest.mark.parametrize("text", ['{"days": tru', '{"days": -', '{"city": "\\u00'])
def test_json_that_is_cut_inside_a_word_is_called_cut_off_too(text):
    assert refusal(WEATHER, text) == f"the JSON is cut off at character {len(text)}; send the whole object"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': 1}", "not JSON: Expecting property name enclosed in double quotes at character 1, near {'a': 1}"),
        ('{"days": 3} please', 'not JSON: Extra data at character 12, near days": 3} please'),
        ('{"a": 1,}', f'not JSON: {TRAILING_COMMA}, near {{"a": 1,}}'),
        ("days=3", "not JSON: Expecting value at character 0, near days=3"),
        ("", "expected a JSON object, got an empty text; send {} for no arguments"),
        (" \n", "expected a JSON object, got an empty text; send {} for no arguments"),
        ("[1]", 'expected a JSON object such as {"name": ...}, got a list'),
        ('"Oslo"', 'expected a JSON object such as {"name": ...}, got a string'),
        ("null", 'expected a JSON object such as {"name": ...}, got null'),
        ("3", 'expected a JSON object such as {"name": ...}, got an integer'),
        ('{"days": NaN}', "expected a JSON object: NaN is not JSON"),
        ('{"days": -Infinity}', "expected a JSON object: -Infinity is not JSON"),
        (b"\xff{}", "expected JSON in UTF-8"),
        (5, "expected JSON text or a mapping, got int"),
        (["city"], "expected JSON text or a mapping, got list"),
        ({1: 2}, "expected JSON values: expected strings as keys, got int"),
        ({"days": {3}}, "expected JSON values: a set is not JSON"),
        ({"days": float("nan")}, "expected JSON values: nan is not JSON"),
        ({"days": [float("inf")]}, "expected JSON values: inf is not JSON"),
    ],
)
def test_what_is_no_json_object_is_refused_in_words(text, expected):
    assert refusal(WEATHER, text) == expected


@pytest.mark.parametrize("text", ['{"x": 1e999}', '{"x": [-1e999]}'])
def test_a_number_beyond_a_float_never_arrives_as_infinity(text):
    refusal({"type": "object"}, text)


def test_text_beyond_the_limit_is_refused_before_it_is_parsed():
    text = '{"city": "' + "x" * ARGUMENTS_LIMIT

    assert refusal(WEATHER, text) == f"expected at most {ARGUMENTS_LIMIT} characters of JSON, got {len(text)}"


def test_text_up_to_the_limit_is_taken():
    text = json.dumps({"text": "x" * (ARGUMENTS_LIMIT - 12)})

    assert len(text) == ARGUMENTS_LIMIT
    assert len(checked(closed(text=STRING), text)["text"]) == ARGUMENTS_LIMIT - 12


def test_text_that_is_nested_without_end_is_refused():
    assert "nested too deep" in refusal({"type": "object"}, '{"x":' * 100_000)


def test_a_number_with_endless_digits_is_refused():
    assert "4300 digits" in refusal(closed(x=INTEGER), '{"x": ' + "9" * 5000 + "}")


def test_a_mapping_that_contains_itself_is_refused():
    loop: dict[str, Any] = {}
    loop["x"] = loop

    assert refusal({"type": "object"}, loop) == "expected JSON values: nested deeper than 64 levels"


# -- one readable error --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"city": 5}, "$.city: expected a string, got an integer 5"),
        ({"days": "five"}, '$.days: expected an integer, got a string "five"'),
        ({"days": None}, "$.days: expected an integer, got null"),
        ({"days": True}, "$.days: expected an integer, got a boolean true"),
        ({"days": 2.5}, "$.days: expected an integer, got a number 2.5"),
        ({"days": [3]}, "$.days: expected an integer, got a list"),
        ({"place": "Main Street 5"}, '$.place: expected an object, got a string "Main Street 5"'),
        ({"stops": {}}, "$.stops: expected a list, got an object"),
        ({"ctiy": "Oslo"}, "$.ctiy: unknown key; did you mean 'city'? Known: city, days, unit, place, stops, home"),
        ({"zzz": 1}, "$.zzz: unknown key. Known: city, days, unit, place, stops, home"),
        ({"a b": 1}, '$["a b"]: unknown key. Known: city, days, unit, place, stops, home'),
        (
            {"unit": "celcius"},
            '$.unit: expected one of "celsius", "fahrenheit"; did you mean \'celsius\'?, got a string "celcius"',
        ),
        ({"unit": 5}, '$.unit: expected one of "celsius", "fahrenheit", got an integer 5'),
        ({"days": 0}, "$.days: expected at least 1, got an integer 0"),
        ({"days": 15}, "$.days: expected at most 14, got an integer 15"),
        ({"city": "O"}, '$.city: expected at least 2 characters, got a string "O"'),
        ({"city": "O" * 21}, f'$.city: expected at most 20 characters, got a string "{"O" * 21}"'),
        ({"stops": [{}] * 4}, "$.stops: expected at most 3 items, got a list"),
        ({"place": {"number": 5}}, "$.place.street: missing; expected a string"),
        ({"place": {"street": 5}}, "$.place.street: expected a string, got an integer 5"),
        (
            {"place": {"street": "a", "numbr": 5}},
            "$.place.numbr: unknown key; did you mean 'number'? Known: street, number",
        ),
        ({"stops": [{}, {"nights": 0}]}, "$.stops[1].nights: expected at least 1, got an integer 0"),
        ({"stops": [{"nigths": 1}]}, "$.stops[0].nigths: unknown key; did you mean 'nights'? Known: name, nights"),
        ({"home": {"town": 5}}, "$.home.town: expected a string, got an integer 5"),
        ({"home": {}}, "$.home.town: missing; expected a string"),
        ({"home": {"town": "Oslo", "cod": "1"}}, "$.home.cod: unknown key; did you mean 'code'? Known: town, code"),
        (
            {"home": {"town": "Oslo", "code": "x"}},
            '$.home.code: expected text that fits the pattern ^[0-9]{4}$, got a string "x"',
        ),
    ],
)
def test_a_problem_says_where_what_was_expected_and_what_came(change, expected):
    arguments = {"city": "Oslo", **change}

    assert refused(WEATHER, arguments) == expected
    assert refused(WEATHER, json.dumps(arguments)) == expected


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"const": "on"}, "off", '"on", got a string "off"'),
        ({"exclusiveMinimum": 3}, 3, "more than 3, got an integer 3"),
        ({"exclusiveMaximum": 3}, 3.5, "less than 3, got a number 3.5"),
        ({"multipleOf": 0.5}, 0.7, "a multiple of 0.5, got a number 0.7"),
        ({"minItems": 1}, [], "at least 1 items, got a list"),
        ({"uniqueItems": True}, [1, 1], "no item twice, got a list"),
        ({"format": "email"}, "me", 'text of the format email, got a string "me"'),
        ({"type": ["string", "null"]}, 5, "null or a string, got an integer 5"),
        ({"type": "boolean"}, 0, "true or false, got an integer 0"),
        ({"minProperties": 1}, {}, "a value that satisfies minProperties, got an object"),
    ],
)
def test_each_keyword_has_its_words(schema, value, expected):
    assert refused(closed(x=schema), {"x": value}) == f"$.x: expected {expected}"


def test_a_missing_key_of_an_enum_lists_its_values():
    assert refused(closed(["unit"], unit={"enum": ["c", "f"]}), {}) == '$.unit: missing; expected one of "c", "f"'


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#/$defs/Text"}, "a string"),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "an integer or null"),
    ],
)
def test_a_missing_key_says_what_was_expected_through_references_and_unions(schema, expected):
    assert refused(closed(["x"], x=schema) | {"$defs": {"Text": STRING}}, {}) == f"$.x: missing; expected {expected}"


def test_a_key_where_none_is_known_says_so():
    assert refused(closed(), {"x": 1}) == "$.x: unknown key. None is known"


def test_every_problem_is_told_at_once():
    assert sorted(refusal(WEATHER, {"days": "x", "nope": 1})) == [
        "$.city: missing; expected a string",
        '$.days: expected an integer, got a string "x"',
        "$.nope: unknown key. Known: city, days, unit, place, stops, home",
    ]


def test_no_more_than_eight_problems_are_told():
    assert len(refusal(closed(x={"items": INTEGER}), {"x": ["a"] * 100})) == 8


def test_a_problem_is_told_once():
    assert refusal(closed(x={"allOf": [INTEGER, INTEGER]}), {"x": "a"}) == [
        '$.x: expected an integer, got a string "a"'
    ]


def test_problems_can_start_from_another_root():
    validator = compile_schema(closed(x=INTEGER), "the schema")

    assert [one.path for one in problems_of(validator, closed(x=INTEGER), {"x": "a"}, "output")] == ["output.x"]


NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "array", "items": INTEGER}, [1, "a"], '$.x[1]: expected an integer, got a string "a"'),
        ({"type": "integer", "minimum": 1}, 0, "$.x: expected at least 1, got an integer 0"),
        ({"type": "string", "maxLength": 2}, "abc", '$.x: expected at most 2 characters, got a string "abc"'),
        (
            {"type": "object", "additionalProperties": INTEGER},
            {"k": "v"},
            '$.x.k: expected an integer, got a string "v"',
        ),
    ],
)
def test_an_optional_parameter_says_what_is_wrong_with_a_value_of_the_right_type(schema, value, expected):
    assert refused(closed(x={"anyOf": [schema, NULL]}), {"x": value}) == expected


def test_a_tagged_union_explains_the_option_that_was_meant():
    cat, dog = closed(kind={"const": "cat"}, name=STRING), closed(kind={"const": "dog"}, size=INTEGER)

    assert "siz" in refusal(closed(x={"anyOf": [cat, dog]}), {"x": {"kind": "dog", "siz": 1}})[0]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"anyOf": [INTEGER, {"type": "null"}]}, "five", "an integer"),
        ({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}, {"nam": "x"}, "did you mean 'name'?"),
        ({"oneOf": [INTEGER, {"type": "boolean"}]}, "five", "true or false"),
    ],
)
def test_a_union_says_what_it_takes(schema, value, expected):
    assert any(
        expected in one for one in refusal(closed(x=schema) | {"$defs": {"A": closed(name=STRING)}}, {"x": value})
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            [{"required": ["a", "c"]}, {"title": "By place", "required": ["b"]}],
            "number 1 (which needs a, c) and By place (which needs b)",
        ),
        ([{"type": "object"}, {"type": "object"}, {"type": "string"}], "number 1 and number 2"),
        ([{"$ref": "#/$defs/First"}, {"type": "object"}], "First (which needs a) and number 2"),
    ],
)
def test_a_value_that_fits_several_of_which_one_is_wanted_is_told_which(options, told):
    union = {"oneOf": options, "properties": {"a": {}, "b": {}, "c": {}}}
    schema = {**closed(("x",), x=union), "$defs": {"First": {"required": ["a"]}}}

    found = refusal(schema, {"x": {"a": 1, "b": 2, "c": 3}})

    assert f"$.x: expected what fits exactly one of {len(options)} shapes; this fits {told}" in found


def test_an_unknown_key_is_named_however_the_object_is_closed():
    schema = {"type": "object", "properties": {"city": STRING}, "unevaluatedProperties": False}

    assert "ctiy" in refused(schema, {"ctiy": "Oslo"})


def test_a_key_of_the_wrong_form_is_named():
    assert "Oslo" in refused({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, {"Oslo": 1})


def test_a_list_of_values_that_is_cut_says_so():
    assert "…" in refused(closed(x={"enum": list(range(30))}), {"x": "a"})


# -- what a message may show ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [INTEGER, {"maxLength": 3}, {"enum": ["a"]}, {"pattern": "^a$"}, {"const": "a"}])
def test_a_long_value_is_clipped(schema):
    message = refused(closed(x=schema), {"x": "s" * 100_000})

    assert len(message) < 200
    assert message.endswith("…")


def test_values_inside_of_lists_and_objects_are_not_shown():
    assert "s3cret" not in refused(closed(x=INTEGER), {"x": {"password": ["s3cret"]}})


def test_text_that_is_not_json_is_shown_near_the_mistake_only():
    assert "s3cret" not in refusal(WEATHER, '{"password": "s3cret", "' + "x" * 100 + '": oops}')


def test_a_long_key_is_clipped():
    assert len(refused(closed(x=INTEGER), {"k" * 100_000: 1})) < 500


# -- defaults ------------------------------------------------------------------------------------------------------


def with_default(value, **more):
    return {"type": "object", "properties": {"n": {"default": value}}, "additionalProperties": False, **more}


TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "$defs": {
        "Node": closed(
            size={"type": "integer", "default": 1},
            child={"$ref": "#/$defs/Node"},
            children={"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
        )
    },
}


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        (with_default(3), {}, {"n": 3}),
        (with_default(None), {}, {"n": None}),
        (with_default(3), {"n": None}, {"n": None}),
        (closed(x=with_default(3)), {"x": {}}, {"x": {"n": 3}}),
        (closed(x=with_default(3)), {}, {}),
        (closed(x={**with_default(3), "default": {}}), {}, {"x": {"n": 3}}),
        (closed(x={"items": with_default(3)}), {"x": [{}, {"n": 4}]}, {"x": [{"n": 3}, {"n": 4}]}),
        (closed(x={"items": {"items": with_default(3)}}), {"x": [[{}]]}, {"x": [[{"n": 3}]]}),
        ({"$ref": "#/$defs/A", "$defs": {"A": with_default(3)}}, {}, {"n": 3}),
        (closed(x={"$ref": "#/$defs/A"}) | {"$defs": {"A": with_default(3)}}, {"x": {}}, {"x": {"n": 3}}),
        (closed(x={"$ref": "#/$defs/A~1B"}) | {"$defs": {"A/B": with_default(3)}}, {"x": {}}, {"x": {"n": 3}}),
        (closed(x={"$ref": "#/$defs/A", "default": 1}) | {"$defs": {"A": {"default": 2}}}, {}, {"x": 1}),
        (closed(x={"items": with_default(3)}), {"x": "no list"}, {"x": "no list"}),
        ({"type": "object"}, {"x": {}}, {"x": {}}),
    ],
)
def test_defaults_are_filled_in(schema, given, expected):
    assert checked(schema, given) == expected


def test_defaults_are_filled_in_through_a_recursive_reference():
    filled = checked(TREE, {"root": {"child": {"child": {"size": 2}}, "children": [{"children": [{}]}]}})

    leaf = {"size": 1, "children": []}
    assert filled == {
        "root": {
            "size": 1,
            "child": {"size": 1, "children": [], "child": {"size": 2, "children": []}},
            "children": [{"size": 1, "children": [leaf]}],
        }
    }


@pytest.mark.parametrize(
    "schema",
    [
        closed(x={"allOf": [with_default(3)]}),
        closed(x={"anyOf": [with_default(3), {"type": "null"}]}),
        closed(x={"$ref": "#/$defs/A", "properties": {"n": {"default": 3}}}) | {"$defs": {"A": {"type": "object"}}},
        closed(x={"$ref": "#A"}) | {"$defs": {"A": with_default(3, **{"$anchor": "A"})}},
        closed(x={"$ref": "#/$defs/A%20B"}) | {"$defs": {"A B": with_default(3)}},
    ],
    ids=["allOf", "anyOf", "beside $ref", "$anchor", "escaped $ref"],
)
def test_defaults_are_filled_in_wherever_a_schema_says_them(schema):
    assert checked(schema, {"x": {}}) == {"x": {"n": 3}}


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        ({"additionalProperties": with_default(3)}, {"a": {}}, {"a": {"n": 3}}),
        ({"prefixItems": [with_default(3)]}, [{}], [{"n": 3}]),
    ],
    ids=["additionalProperties", "prefixItems"],
)
def test_defaults_are_filled_in_for_values_of_maps_and_tuples(schema, given, expected):
    assert checked(closed(x=schema), {"x": given}) == {"x": expected}


@pytest.mark.parametrize("default", [[], {}, {"deep": [1]}])
def test_a_default_is_never_shared_between_calls(default):
    checker = Checker(with_default(default), "the schema")

    first = checker.arguments({})["n"]
    second = checker.arguments({})["n"]
    (first.append if isinstance(first, list) else first.__setitem__)(*(["x"] if isinstance(first, list) else ["x", 1]))
    first.get("deep", []).append(2) if isinstance(first, dict) else None

    assert second == default
    assert checker.arguments({})["n"] == default


def test_a_default_is_never_shared_between_the_items_of_one_call():
    one, two = checked(closed(x={"items": with_default([])}), {"x": [{}, {}]})["x"]

    assert one["n"] is not two["n"]


def test_a_default_is_never_shared_with_the_schema():
    schema = with_default([1])
    checked(schema, {})["n"].append(2)

    assert schema["properties"]["n"]["default"] == [1]


def test_a_required_key_with_a_default_must_still_be_sent():
    assert refused(with_default(3, required=["n"]), {}) == "$.n: missing; expected a value"


LEFT = closed(["left"], left=INTEGER, n={"default": 3})
RIGHT = closed(["right"], right=INTEGER)


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_defaults_of_one_option_of_a_union_are_not_filled_into_another(word):
    assert checked(closed(x={word: [LEFT, RIGHT]}), {"x": {"right": 1}}) == {"x": {"right": 1}}


def test_a_function_that_takes_a_union_of_classes_gets_the_class_that_fits():
    @attrs.frozen
    class Left:
        left: int
        n: int = 3

    @attrs.frozen
    class Right:
        right: int

    @tool(effect="read", required_access=PUBLIC)
    def turn(x: Left | Right) -> str:
        """Turn to a side."""
        return type(x).__name__

    assert turn.execute(checked(turn.input_schema, {"x": {"right": 1}}), None) == "Right"


def test_defaults_do_not_depend_on_where_else_a_definition_is_used():
    union = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}
    defs = {"$defs": {"A": with_default(3), "B": closed(["q"], q=INTEGER)}}

    assert checked(closed(p={"$ref": "#/$defs/B"}, x=union) | defs, {"x": {}}) == {"x": {"n": 3}}


# -- coercion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INTEGER, "5", 5),
        (INTEGER, " 5 ", 5),
        (INTEGER, "-5", -5),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "number"}, "5", 5),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        (STRING, 5, "5"),
        (STRING, 2.5, "2.5"),
        ({"$ref": "#/$defs/N"}, "5", 5),
        (closed(n=INTEGER), {"n": "5"}, {"n": 5}),
        ({"items": INTEGER}, ["5", 6], [5, 6]),
    ],
)
def test_coercion_takes_what_was_obviously_meant(schema, value, expected):
    schema = closed(x=schema) | {"$defs": {"N": INTEGER}}

    assert checked(schema, {"x": value}, coerce=True) == {"x": expected}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, "five"),
        (INTEGER, "5.5"),
        (INTEGER, "true"),
        (INTEGER, ""),
        (INTEGER, True),
        ({"type": "number"}, "NaN"),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, 1),
        (STRING, True),
        (STRING, None),
        ({"type": "array"}, "1, 2"),
        ({"type": "integer", "maximum": 3}, "5"),
    ],
)
def test_coercion_guesses_nothing(schema, value):
    refusal(closed(x=schema), {"x": value}, coerce=True)


def test_coercion_is_off_by_default():
    assert refused(closed(x=INTEGER), {"x": "5"}) == '$.x: expected an integer, got a string "5"'


def test_coercion_leaves_alone_what_fits():
    assert checked(closed(x={"type": ["string", "integer"]}), {"x": "5"}, coerce=True) == {"x": "5"}


def test_coercion_does_not_write_to_what_was_given():
    given = {"x": ["5"]}
    checked(closed(x={"items": INTEGER}), given, coerce=True)

    assert given == {"x": ["5"]}


def test_defaults_are_filled_in_after_coercion():
    assert checked(closed(x=INTEGER, n={"default": 3}), {"x": "5"}, coerce=True) == {"x": 5, "n": 3}


def test_coercion_reaches_an_optional_parameter():
    assert checked(closed(x={"anyOf": [INTEGER, {"type": "null"}]}), {"x": "5"}, coerce=True) == {"x": 5}


def test_coercion_reaches_into_an_optional_object():
    assert checked(closed(x={"anyOf": [closed(n=INTEGER), NULL]}), {"x": {"n": "5"}}, coerce=True) == {"x": {"n": 5}}


def test_coercion_keeps_to_the_levels_that_arguments_may_have():
    refusal(closed(x={"type": "array"}), {"x": "[" * 100 + "]" * 100}, coerce=True)


def test_coercion_never_makes_infinity():
    assert refused(closed(x={"type": "number"}), {"x": "1e999"}, coerce=True).endswith('got a string "1e999"')


# -- nothing but BadArguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "raw"),
    [
        (closed(x=INTEGER), '{"\\ud800": 1}'),
        (closed(x=INTEGER), '{"x": "\\ud800"}'),
        (closed(x=INTEGER), {"x": "\ud800"}),
        (closed(x=STRING), '{"x": "\\uDFFF"}'),
        (closed(x=STRING), '{"x": "\ud800"}'),
        (closed(x=STRING), {"x": "\ud800"}),
        ({"type": "object"}, '{"a": [{"\\udc00\\ud800": 1}]}'),
        ({"type": "object"}, {"a": [{"\ud800": 1}]}),
    ],
    ids=["key", "value", "mapping", "text", "raw", "text in a mapping", "deep", "deep in a mapping"],
)
def test_half_a_surrogate_pair_is_refused_like_anything_else(schema, raw):
    refusal(schema, raw)


def test_a_whole_surrogate_pair_is_one_character():
    assert checked(closed(x=STRING), '{"x": "\\ud83d\\ude00"}') == {"x": "\U0001f600"}


@pytest.mark.parametrize("bound", [{"maximum": 5}, {"multipleOf": 7}])
def test_an_endless_integer_in_a_mapping_is_held_to_bounds(bound):
    refusal(closed(x=INTEGER | bound), {"x": 10**5000})


def test_coercion_of_an_endless_integer_is_refused():
    refusal(closed(x=STRING), {"x": 10**5000}, coerce=True)


def test_an_endless_integer_in_a_mapping_is_called_an_integer():
    assert "got an integer" in refusal(closed(x=STRING), {"x": 10**5000})


def nested(depth, key="child"):
    return "{" + f'"{key}": {{' * depth + "}" * depth + "}"


def test_deeply_nested_text_under_a_recursive_schema_is_filled_or_refused():
    schema = {"$ref": "#/$defs/Node", "$defs": TREE["$defs"]}
    with contextlib.suppress(BadArguments):
        checked(schema, nested(900))


def test_a_reference_that_leads_to_itself_is_refused_or_ignored():
    with contextlib.suppress(ToolDefinitionError, BadArguments):
        checked(closed(x={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"$ref": "#/$defs/A"}}}, {"x": {}})


def test_coercion_of_text_that_is_nested_without_end_is_refused():
    refusal(closed(x={"type": "array"}), {"x": "[" * 100_000}, coerce=True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
garbage = (
    json_values
    | st.text()
    | st.binary()
    | st.floats()
    | st.dictionaries(st.integers() | st.text(), st.binary() | st.floats() | json_values, max_size=3)
    | json_values.map(json.dumps).flatmap(lambda text: st.integers(0, len(text)).map(lambda end: text[:end]))
    | st.sampled_from([object(), len, {1}, 1j, ..., MappingProxyType({"city": b"x"})])
)
CHECKERS = [
    Checker(WEATHER, "w"),
    Checker(WEATHER, "w", coerce=True),
    Checker(TREE, "w"),
    Checker({}, "w", coerce=True),
]


@settings(max_examples=examples(200))
@given(st.sampled_from(CHECKERS), garbage)
def test_garbage_as_arguments_never_raises_anything_but_bad_arguments(checker, raw):
    with contextlib.suppress(BadArguments):
        assert type(checker.arguments(raw)) is dict


near_misses = st.dictionaries(
    st.sampled_from([*WEATHER["properties"], "ctiy"]),
    json_values | st.sampled_from(["5", "Oslo", 3, {"street": "a"}, [{"name": "a"}], {"town": "b"}]),
)


def problems_with(checker, raw):
    try:
        checker.arguments(raw)
    except BadArguments as error:
        return error.problems
    return ()


@settings(max_examples=examples(150))
@given(st.sampled_from(CHECKERS), near_misses)
def test_every_problem_is_one_line_with_a_path(checker, raw):
    for problem in problems_with(checker, raw):
        assert problem.path.startswith("$")
        assert problem.message
        assert "\n" not in str(problem)


# -- schemas that can't be used ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        *(None, 5, [], "text", {1: 2}),
        *({"type": "text"}, {"properties": 5}, {"pattern": "("}, {"required": [1]}, {"minLength": -1}),
        *({"$ref": "#/$defs/none"}, {"$ref": 5}, {"$schema": "nope"}),
        *({"maximum": float("inf")}, {"enum": [object()]}),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_a_schema_that_can_not_be_used_is_a_definition_error(schema):
    with pytest.raises(ToolDefinitionError, match="the input schema: no usable JSON Schema"):
        compile_schema(schema, "the input schema")


def test_a_schema_that_names_an_older_draft_is_read_as_that_draft():
    validator = compile_schema({"$schema": "http://json-schema.org/draft-07/schema#", "items": [INTEGER]}, "w")

    assert [validator.is_valid([1]), validator.is_valid(["a"])] == [True, False]


@pytest.mark.parametrize("schema", [MappingProxyType({"type": "object"}), {"enum": ("a", "b")}])
def test_a_schema_may_be_any_mapping_with_any_sequences(schema):
    compile_schema(schema, "w")


@settings(max_examples=examples(100))
@given(
    st.dictionaries(
        st.sampled_from(
            ["type", "properties", "items", "$ref", "$schema", "$id", "enum", "pattern", "anyOf", "minimum"]
        ),
        json_values,
    )
)
def test_random_json_as_schema_never_raises_anything_but_a_definition_error(schema):
    with contextlib.suppress(ToolDefinitionError):
        compile_schema(schema, "w")


# -- nothing is fetched --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def no_new_files():
    """Let nobody open a file or a socket, Rust code included."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def url_of(server):
    return f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"


def was_called(server):
    return bool(select.select([server], [], [], 0)[0])


def references(url):
    """Return schemas that need what is at *url*."""
    return [
        {"$ref": url},
        {"$ref": f"{url}#/$defs/a"},
        {"$dynamicRef": url},
        {"$schema": url, "type": "object"},
        {"$id": url, "$ref": "other.json"},
        {"$id": url, "properties": {"x": {"$ref": "../other.json"}}},
        {"$defs": {"a": {"$ref": url}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"$ref": url}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": {"$ref": url}},
    ]


@pytest.mark.parametrize("which", range(9))
def test_a_remote_reference_is_refused_and_nobody_is_called(which, listener):
    with pytest.raises(ToolDefinitionError):
        compile_schema(references(url_of(listener))[which], "w")

    assert not was_called(listener)


@pytest.mark.parametrize("which", range(9))
def test_a_reference_to_a_file_that_exists_is_refused(which, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text('{"type": "integer", "$defs": {"a": {}}}', "utf-8")
    (tmp_path / "other.json").write_text("{}", "utf-8")

    with pytest.raises(ToolDefinitionError):
        compile_schema(references(path.as_uri())[which], "w")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/a.json", "https://example.com/a.json", "file:///etc/hostname", "a.json"]
)
def test_a_refusal_is_the_same_when_no_file_and_no_socket_can_be_opened(url):
    with pytest.raises(ToolDefinitionError) as free:
        compile_schema({"$ref": url}, "w")

    with no_new_files(), pytest.raises(ToolDefinitionError) as confined:
        compile_schema({"$ref": url}, "w")

    assert str(confined.value) == str(free.value)


def test_a_whole_check_opens_no_file_and_no_socket():
    with no_new_files():
        assert checked(WEATHER, '{"city": "Oslo"}') == {"city": "Oslo", "days": 3, "unit": "celsius"}


def test_the_guard_against_new_files_works():
    """Without `offline` the library under us does try, and then finds the guard in its way."""
    with no_new_files(), pytest.raises(jsonschema_rs.ValidationError, match=r"Failed to build HTTP client|os error 24"):
        jsonschema_rs.validator_for({"$ref": "http://127.0.0.1:9/a.json"})


def test_the_guard_against_calls_works():
    """Without `offline` the library under us does call the listener."""
    called = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            called.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        jsonschema_rs.validator_for({"$ref": f"http://127.0.0.1:{server.server_port}/a.json"})
        thread.join()

    assert called == ["/a.json"]


# -- work grows with what comes in, not faster -----------------------------------------------------------------------


COUNTING = """
import copy, sys
from agentos.schema.validation import BadArguments, Checker

def closed(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}

def profile(frame, event, argument):
    global count
    count += event == "call"

count = 0
%s
sys.setprofile(profile)
%s
sys.setprofile(None)
print(count)
"""


def python_calls(prepare, action):
    """Count the calls of Python functions that *action* makes: the work, whatever the machine is doing.

    In a process of its own: what other tests did to the interpreter must not meet a profiler.
    """
    script = COUNTING % (textwrap.dedent(prepare), textwrap.dedent(action))
    return int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def test_calls_are_counted():
    assert python_calls("", "[copy.copy(one) for one in range(100)]") >= 100


def test_many_unknown_keys_cost_no_more_than_those_that_are_told():
    prepare = """
        checker = Checker(closed(**{f"abc{n}": {"type": "integer"} for n in range(20)}), "w")
    """
    refuse = """
        try:
            checker.arguments({f"key{n}": n for n in range(2000)})
        except BadArguments:
            pass
    """

    assert python_calls(prepare, refuse) < 20_000


def test_definitions_that_refer_to_each_other_are_walked_once():
    prepare = """
        names = [f"T{n}" for n in range(6)]
        member = closed(**{name.lower(): {"$ref": f"#/$defs/{name}"} for name in names}, n={"default": 1})
        schema = {"$ref": "#/$defs/T0", "$defs": dict.fromkeys(names, member)}
        Checker(closed(), "w")  # imports what it needs
    """

    assert python_calls(prepare, 'Checker(schema, "w")') < 2_000


def test_a_pattern_that_could_run_for_ever_does_not():
    assert refused(closed(x={"pattern": "^(?=(a+)+b)(a+)+c$"}), {"x": "a" * 40}).startswith("$.x: expected text")


# -- agreement with the reference library ------------------------------------------------------------------------------


@attrs.frozen
class Shape:
    """A schema with instances that fit it and instances that do not."""

    schema: Any
    good: Any
    bad: Any


def numbers(low, span, kind):
    draw = st.integers if kind == "integer" else lambda a, b: st.floats(a, b, width=32)
    schema = {"type": kind, "minimum": low, "maximum": low + span}
    return Shape(
        schema, draw(low, low + span), st.sampled_from([low - 1, low + span + 1, low - 0.5, "1", None, True, []])
    )


def strings(low, span):
    schema = {"type": "string", "minLength": low, "maxLength": low + span}
    too_long = st.text(min_size=low + span + 1, max_size=low + span + 3)
    return Shape(
        schema, st.text(min_size=low, max_size=low + span), too_long | st.sampled_from([0, None, False, ["a"]])
    )


def patterns(which):
    pattern, good, bad = which
    return Shape({"type": "string", "pattern": pattern}, st.sampled_from(good), st.sampled_from(bad))


def enums(values):
    return Shape({"enum": values}, st.sampled_from(values), st.sampled_from(["\x00none", {"no": 1}, [1, [2]]]))


def as_unique(value):
    return json.dumps(value).replace("-0.0", "0.0")


def arrays(item, low, span, unique):
    low = 0 if unique else low  # not every schema has two values that fit
    schema = {"type": "array", "items": item.schema, "minItems": low, "maxItems": low + span, "uniqueItems": unique}
    good = st.lists(item.good, min_size=low, max_size=low + span, unique_by=as_unique if unique else None)
    too_long = st.lists(item.good, min_size=low + span + 1, max_size=low + span + 2)
    with_bad = st.tuples(st.lists(item.good, max_size=2), item.bad).map(lambda parts: [*parts[0], parts[1]])
    return Shape(schema, good, too_long | with_bad | st.sampled_from([{}, "[]", None]))


def objects(members, optional):
    """Return a closed object of *members*; those named in *optional* may be left out."""
    required = [name for name in members if name not in optional]
    schema = closed(required, **{name: member.schema for name, member in members.items()})
    good = st.fixed_dictionaries(
        {name: members[name].good for name in required},
        optional={name: members[name].good for name in members if name in optional},
    )
    bad = [good.map(lambda value: {**value, "zz": 1}), st.sampled_from([[], "{}", None])]
    if required:
        bad.append(good.map(lambda value: {name: value[name] for name in value if name != required[0]}))
    for name, member in members.items():
        bad.append(st.tuples(good, member.bad).map(lambda parts, name=name: {**parts[0], name: parts[1]}))
    return Shape(schema, good, st.one_of(bad))


def all_of(one):
    return Shape({"allOf": [one.schema, {}, one.schema]}, one.good, one.bad)


def nots(one):
    return Shape({"not": one.schema}, one.bad, one.good)


def conditions(one):
    schema = {"if": {"type": "null"}, "then": True, "else": one.schema}
    return Shape(schema, one.good | st.none(), one.bad.filter(lambda value: value is not None))


def referred(one):
    """Return *one* behind a reference; only at the top, since `#` is the whole schema."""
    return Shape({"$ref": "#/$defs/x", "$defs": {"x": one.schema}}, one.good, one.bad)


PATTERNS = [
    ("^[a-c]+$", ["a", "abc", "cab"], ["", "d", "ab1", 5]),
    ("[0-9]{2,3}", ["12", "x123y"], ["1", "", "a1b2"]),
    ("^(?:on|off)$", ["on", "off"], ["of", "onoff", "ON"]),
]
values = st.sampled_from(["a", "b", 1, 2.5, True, None, [1], {"a": 1}])
leaves = (
    st.builds(numbers, st.integers(-5, 5), st.integers(0, 5), st.sampled_from(["integer", "number"]))
    | st.builds(strings, st.integers(0, 3), st.integers(0, 3))
    | st.builds(patterns, st.sampled_from(PATTERNS))
    | st.builds(enums, st.lists(values, min_size=1, max_size=3, unique_by=json.dumps))
)
shapes = st.recursive(
    leaves,
    lambda inner: (
        st.builds(arrays, inner, st.integers(0, 2), st.integers(0, 2), st.booleans())
        | st.builds(
            objects, st.dictionaries(st.sampled_from("abc"), inner, max_size=3), st.sets(st.sampled_from("abc"))
        )
        | st.builds(all_of, inner)
        | st.builds(nots, inner)
        | st.builds(conditions, inner)
    ),
    max_leaves=6,
)
roots = shapes | shapes.map(referred)


def reference_says(schema, instance):
    return Draft202012Validator(schema, registry=referencing.Registry()).is_valid(instance)


def we_say(schema, instance):
    return compile_schema(schema, "w").is_valid(instance)


@settings(max_examples=examples(120))
@given(st.data())
def test_instances_made_for_a_random_schema_are_valid_to_us_and_to_the_reference(data):
    shape = data.draw(roots)
    instance = data.draw(shape.good)

    assert (we_say(shape.schema, instance), reference_says(shape.schema, instance)) == (True, True)


@settings(max_examples=examples(120))
@given(st.data())
def test_instances_made_against_a_random_schema_are_invalid_to_us_and_to_the_reference(data):
    shape = data.draw(roots)
    instance = data.draw(shape.bad)

    assert (we_say(shape.schema, instance), reference_says(shape.schema, instance)) == (False, False)


@settings(max_examples=examples(80))
@given(st.data(), st.booleans())
def test_a_checker_takes_from_text_and_from_mappings_what_the_reference_takes(data, is_good):
    members = data.draw(st.dictionaries(st.sampled_from("abc"), shapes, min_size=1, max_size=3))
    shape = objects(members, data.draw(st.sets(st.sampled_from("abc"))))
    instance = data.draw((shape.good if is_good else shape.bad).filter(lambda value: isinstance(value, dict)))
    checker = Checker(shape.schema, "w")

    for raw in (instance, json.dumps(instance)):
        with contextlib.nullcontext() if is_good else pytest.raises(BadArguments):
            assert checker.arguments(raw) == instance


def small(strategy):
    return st.lists(strategy, min_size=1, max_size=3)


def keywords(inner):
    """Return schemas of any keywords side by side, sensible or not."""
    names = st.sampled_from("abc")
    table = {
        "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
        | st.lists(st.sampled_from(["object", "array", "string", "number"]), min_size=1, unique=True),
        "properties": st.dictionaries(names, inner, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "[0-9]"]), inner, max_size=2),
        "additionalProperties": inner,
        "propertyNames": inner,
        "required": st.lists(names, unique=True),
        "dependentRequired": st.dictionaries(names, st.lists(names, unique=True), max_size=2),
        "dependentSchemas": st.dictionaries(names, inner, max_size=2),
        "minProperties": st.integers(0, 3),
        "maxProperties": st.integers(0, 3),
        "items": inner,
        "prefixItems": small(inner),
        "contains": inner,
        "minContains": st.integers(0, 2),
        "maxContains": st.integers(0, 2),
        "minItems": st.integers(0, 3),
        "maxItems": st.integers(0, 3),
        "uniqueItems": st.booleans(),
        "unevaluatedProperties": inner,
        "unevaluatedItems": inner,
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(-3, 3),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "pattern": st.sampled_from(["^a", "b", "[0-9]+$"]),
        "enum": small(values),
        "const": values,
        "anyOf": small(inner),
        "oneOf": small(inner),
        "allOf": small(inner),
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b"]),
    }
    chosen = st.lists(st.sampled_from(list(table)), min_size=1, max_size=4, unique=True)
    return chosen.flatmap(lambda words: st.fixed_dictionaries({word: table[word] for word in words}))


soups = st.recursive(st.booleans(), keywords, max_leaves=5)
soup_values = st.recursive(
    values | st.integers(-4, 4) | st.sampled_from([0.5, 1.0, "", "a1", "ab", "ba"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "a1"]), inner, max_size=3)
    ),
    max_leaves=6,
)
DEFS = {"a": {"type": ["string", "object"], "maxProperties": 1}, "b": {"properties": {"a": {"$ref": "#/$defs/a"}}}}


@settings(max_examples=examples(250))
@given(keywords(soups), st.lists(soup_values, min_size=1, max_size=5))
def test_any_keywords_side_by_side_mean_to_us_what_they_mean_to_the_reference(schema, instances):
    schema = {**schema, "$defs": DEFS}
    validator = compile_schema(schema, "w")

    assert [validator.is_valid(one) for one in instances] == [reference_says(schema, one) for one in instances]


trees = st.recursive(
    st.just({}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={"child": inner, "children": st.lists(inner, max_size=2), "size": st.integers() | st.text(max_size=2)},
    ),
    max_leaves=8,
)


@given(trees)
def test_a_recursive_schema_means_to_us_what_it_means_to_the_reference(tree):
    assert we_say(TREE, {"root": tree}) == reference_says(TREE, {"root": tree})
