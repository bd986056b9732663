"""Strict schemas: within OpenAI's subset, and never a promise that the original does not keep."""

import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from thorough import examples

from agentos.interop._strict_schemas import NotStrictError, Restorer, strict_schema


def closed(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def valid(schema: dict[str, Any], value: Any) -> bool:
    return jsonschema_rs.validator_for(schema, offline=True, validate_formats=True).is_valid(value)


def only(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the strict form of a schema that stands as a required property."""
    return strict_schema(closed({"x": schema}, "x"))["properties"]["x"]


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    return strict_schema(closed({"x": schema}))["properties"]["x"]


# -- what becomes of a schema --------------------------------------------------------------------------------------


def test_every_property_is_required():
    made = strict_schema(closed({"a": {"type": "string"}, "b": {"type": "string"}}, "a"))

    assert made["required"] == ["a", "b"]


def test_an_object_is_closed():
    made = strict_schema({"type": "object", "properties": {"a": {"type": "string"}}})

    assert made["additionalProperties"] is False


CASES = {
    "a type": ({"type": "string"}, {"type": ["string", "null"]}),
    "types": ({"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}),
    "null already": ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    "a default": ({"type": "integer", "default": 5}, {"type": ["integer", "null"]}),
    "an enum": ({"enum": ["a", "b"]}, {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]}),
    "an enum with null": ({"enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
    "a union": (
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
    ),
    "a union with null": (
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ),
    "a description": (
        {"const": "a", "description": "d"},
        {"description": "d", "anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]},
    ),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
def test_what_is_optional_becomes_nullable(given, expected):
    assert expected == optional(given)


def test_what_is_required_stays_as_it_is():
    assert only({"type": "integer", "minimum": 1}) == {"type": "integer", "minimum": 1}


@pytest.mark.parametrize("keyword", ["default", "examples", "$comment", "deprecated", "x-order"])
def test_what_says_nothing_about_values_is_left_out(keyword):
    assert only({"type": "integer", keyword: 1}) == {"type": "integer"}


def test_one_of_becomes_any_of():
    assert only({"oneOf": [{"type": "string"}, {"type": "integer"}]}) == {
        "anyOf": [{"type": "string"}, {"type": "integer"}]
    }


TAGGED = [
    closed({"kind": {"const": "a"}, "x": {"type": "string"}}, "kind"),
    closed({"kind": {"const": "b"}, "x": {"type": "string"}}, "kind"),
]


def test_one_of_with_a_tag_becomes_any_of():
    assert len(TAGGED) == len(only({"oneOf": TAGGED})["anyOf"])


def test_one_of_by_required_key_becomes_any_of():
    branches = [closed({"a": {"type": "string"}}, "a"), closed({"b": {"type": "string"}}, "b")]

    assert len(branches) == len(only({"oneOf": branches})["anyOf"])


def test_one_of_by_values_becomes_any_of():
    assert [one["enum"] for one in only({"oneOf": [{"enum": ["a"]}, {"enum": ["b"]}]})["anyOf"]] == [["a"], ["b"]]


def test_a_description_of_a_reference_stands_beside_an_any_of():
    made = strict_schema(
        closed(
            {"x": {"$ref": "#/$defs/Node", "description": "d"}},
            "x",
            **{"$defs": {"Node": closed({"n": {"type": "integer"}}, "n")}},
        )
    )

    assert made["properties"]["x"] == {"description": "d", "anyOf": [{"$ref": "#/$defs/Node"}]}


def test_recursion_is_kept():
    node = closed({"next": {"$ref": "#/$defs/a~1b%20c"}})
    made = strict_schema(closed({"x": {"$ref": "#/$defs/a~1b%20c"}}, "x", **{"$defs": {"a/b c": node}}))

    assert made["$defs"]["a/b c"]["properties"]["next"] == {"anyOf": [{"$ref": "#/$defs/a~1b%20c"}, {"type": "null"}]}


def test_a_definition_that_nothing_refers_to_is_left_out():
    assert "$defs" not in strict_schema(closed({}, **{"$defs": {"Odd": {"allOf": []}}}))


def test_the_original_is_not_changed():
    original = closed({"a": {"type": "integer", "default": 1}})
    before = copy.deepcopy(original)
    strict_schema(original)

    assert before == original


# -- what has no strict form ---------------------------------------------------------------------------------------

REFUSED = {
    "allOf": {"allOf": [{"type": "string"}]},
    "not": {"type": "string", "not": {"const": "a"}},
    "if": {"type": "string", "if": {"const": "a"}},
    "no type": {},
    "anything": True,
    "a length": {"type": "string", "minLength": 1},
    "a map": {"type": "object", "additionalProperties": {"type": "string"}},
    "an open object": {"type": "object"},
    "an object opened on purpose": {"type": "object", "properties": {}, "additionalProperties": True},
    "a required key that is no property": closed({}, "ghost"),
    "an array of anything": {"type": "array"},
    "a tuple": {"type": "array", "prefixItems": [{"type": "string"}]},
    "a set": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    "a format that strict does not know": {"type": "string", "format": "uri"},
    "a pattern that looks around": {"type": "string", "pattern": "^(?=a)"},
    "an enum of lists": {"enum": [["a"]]},
    "an enum that is too long": {"enum": [str(number) for number in range(300)]},
    "oneOf whose branches overlap": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    "oneOf of objects that may be empty": {
        "oneOf": [closed({"a": {"type": "string"}}), closed({"b": {"type": "string"}})]
    },
    "oneOf of anything": {"oneOf": [True, {"type": "string"}]},
    "a type beside anyOf": {"type": "string", "anyOf": [{"type": "string"}]},
    "a constraint beside a reference": {"$ref": "#/$defs/A", "minimum": 3},
    "a reference elsewhere": {"$ref": "#/properties/x"},
    "oneOf with a tag that may be anything": {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
            {"type": "object", "properties": {}, "required": ["kind"]},
        ]
    },
    "a reference to another document": {"$ref": "https://example.com/schema"},
    "a reference to nowhere": {"$ref": "#/$defs/Nowhere"},
    "a schema of 20,000 words": {"type": "string", "description": "many words " * 20_000},
}


@pytest.mark.parametrize("schema", REFUSED.values(), ids=REFUSED)
def test_what_strict_schemas_can_not_say_is_not_made_strict(schema):
    with pytest.raises(NotStrictError):
        strict_schema(closed({"x": schema}))


@pytest.mark.parametrize(
    "root", [{}, {"type": "object"}, {"anyOf": [closed({})]}, {"type": "string", "properties": {}}]
)
def test_the_root_is_an_object(root):
    with pytest.raises(NotStrictError):
        strict_schema(root)


def test_ten_levels_are_the_limit():
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(11):
        schema = closed({"x": schema}, "x")

    with pytest.raises(NotStrictError, match="levels"):
        strict_schema(schema)


# -- the way back --------------------------------------------------------------------------------------------------


def test_a_null_that_stands_for_not_given_is_taken_out():
    restore = Restorer(closed({"a": {"type": "integer"}, "b": {"type": "string"}}, "a"))

    assert restore({"a": 1, "b": None}) == {"a": 1}


def test_a_null_that_the_original_takes_is_kept():
    restore = Restorer(closed({"a": {"type": ["integer", "null"], "default": 5}}))

    assert restore({"a": None}) == {"a": None}


def test_nulls_are_taken_out_at_every_depth():
    inner = closed({"b": {"type": "string"}})
    restore = Restorer(closed({"a": {"type": "array", "items": {"anyOf": [{"type": "string"}, inner]}}}))

    assert restore({"a": ["x", {"b": None}]}) == {"a": ["x", {}]}


def test_of_a_union_the_branch_that_fits_says_which_nulls_go():
    branches = [
        closed({"kind": {"const": "a"}, "x": {"type": ["string", "null"]}}, "kind"),
        closed({"kind": {"const": "b"}, "x": {"type": "string"}}, "kind"),
    ]
    restore = Restorer(closed({"it": {"anyOf": branches}}, "it"))

    assert restore({"it": {"kind": "a", "x": None}}) == {"it": {"kind": "a", "x": None}}
    assert restore({"it": {"kind": "b", "x": None}}) == {"it": {"kind": "b"}}


def test_a_union_that_contains_itself_is_no_endless_way():
    again = {"anyOf": [{"$ref": "#/$defs/Again"}, closed({"a": {"type": "string"}})]}
    schema = closed({"it": {"$ref": "#/$defs/Again"}}, **{"$defs": {"Again": again}})
    Restorer(schema)({"it": {"a": None}})

    with pytest.raises(NotStrictError, match="back to itself"):
        strict_schema(schema)


def test_arguments_that_fit_nothing_are_left_to_the_validator():
    restore = Restorer(closed({"it": {"anyOf": [closed({"a": {"type": "string"}}, "a")]}}, "it"))

    assert restore({"it": 5, "more": None}) == {"it": 5, "more": None}


# -- the promise ---------------------------------------------------------------------------------------------------

KEYS = ["a", "b", "c/d", "e~%f", "größe"]
notes = st.fixed_dictionaries({}, optional={"description": st.just("d"), "default": st.none(), "title": st.just("t")})
bounds = st.fixed_dictionaries({}, optional={"minimum": st.integers(-5, 0), "maximum": st.integers(1, 9)})
scalars = st.sampled_from([None, True, False, 0, 1, -3, 1.5, "", "x", "null"])
leaves = st.one_of(
    st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda kind: {"type": kind}),
    st.lists(st.sampled_from(["string", "integer", "null"]), min_size=1, unique=True).map(
        lambda kinds: {"type": kinds}
    ),
    bounds.map(lambda limits: {"type": "integer", **limits}),
    st.sampled_from(["^a+$", "^[0-9]{2}$"]).map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.lists(scalars, min_size=1, max_size=4, unique_by=repr).map(lambda values: {"enum": values}),
    scalars.map(lambda value: {"const": value}),
    st.sampled_from([{"$ref": "#"}, {"$ref": "#/$defs/Node"}, {"$ref": "#/$defs/odd~1name"}]),
)


def with_notes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda schema, notes: {**schema, **notes}, inner, notes)


@st.composite
def objects(draw, inner):
    properties = draw(st.dictionaries(st.sampled_from(KEYS), inner, max_size=4))
    required = [name for name in properties if draw(st.booleans())]
    schema = {"type": "object", "properties": properties, "required": required}
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    return schema


def larger(inner):
    unions = st.lists(inner, min_size=1, max_size=3)
    return with_notes(
        st.one_of(
            objects(inner),
            st.builds(
                lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 1)
            ),
            unions.map(lambda branches: {"anyOf": branches}),
            unions.map(lambda branches: {"oneOf": branches}),
            st.lists(st.sampled_from(["u", "v", "w"]), min_size=1, unique=True).flatmap(
                lambda tags: st.tuples(*(tagged(tag, inner) for tag in tags)).map(
                    lambda branches: {"oneOf": list(branches)}
                )
            ),
        )
    )


def tagged(tag, inner):
    return st.dictionaries(st.sampled_from(KEYS), inner, max_size=2).map(
        lambda properties: closed({**properties, "tag": {"const": tag}}, "tag")
    )


schemas = st.recursive(with_notes(leaves), larger, max_leaves=8)


@st.composite
def roots(draw):
    root = draw(objects(schemas))
    return {**root, "$defs": {"Node": draw(objects(schemas)), "odd/name": draw(schemas)}}


def strict_or_reject(root: dict[str, Any]) -> dict[str, Any]:
    try:
        return strict_schema(root)
    except NotStrictError:
        reject()


def pointed(root: dict[str, Any], reference: str) -> dict[str, Any]:
    node: Any = root
    for part in reference.split("/")[1:]:
        node = node[part.replace("~1", "/")]
    return node


TYPED = {
    "string": st.text(max_size=3),
    "integer": st.integers(-6, 10),
    "number": st.floats(-9, 9),
    "boolean": st.booleans(),
    "null": st.none(),
}


def instance(draw: Any, schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> Any:
    """Draw a value that fits a strict schema."""
    if depth > 12:
        reject()
    if "$ref" in schema:
        return instance(draw, pointed(root, schema["$ref"]), root, depth + 1)
    if "anyOf" in schema:
        branches = schema["anyOf"]
        small = [one for one in branches if one == {"type": "null"}]
        return instance(draw, draw(st.sampled_from(small if small and depth > 5 else branches)), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    kind = "null" if "null" in kinds and depth > 5 else draw(st.sampled_from(kinds))
    if kind == "object":
        return {name: instance(draw, inner, root, depth + 1) for name, inner in schema["properties"].items()}
    if kind == "array":
        size = draw(st.integers(schema.get("minItems", 0), schema.get("minItems", 0) + (depth < 5)))
        return [instance(draw, schema["items"], root, depth + 1) for _ in range(size)]
    if kind == "string" and "pattern" in schema:
        return draw(st.sampled_from(["a", "aaa", "42"]))
    return draw(TYPED[kind])


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(roots(), st.data())
def test_what_fits_the_strict_schema_fits_the_original_without_its_nulls(root, data):
    made = strict_or_reject(root)
    value = instance(data.draw, made, made)
    if not valid(made, value):  # a pattern or a limit that was not drawn for
        reject()

    assert valid(root, Restorer(root)(value))


FORBIDDEN = {"allOf", "oneOf", "not", "if", "default", "examples", "minLength", "uniqueItems"}


def parts(schema: Any) -> Any:
    yield schema
    for keyword in ("properties", "$defs"):
        for inner in schema.get(keyword, {}).values():
            yield from parts(inner)
    for inner in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
        yield from parts(inner)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(roots())
def test_a_strict_schema_stays_within_the_subset(root):
    made = strict_or_reject(root)

    assert made["type"] == "object"
    for part in parts(made):
        assert not FORBIDDEN & part.keys()
        assert len(part.keys() & {"$ref", "anyOf", "type"}) == 1
        assert "$ref" not in part or len(part) == 1
        if "properties" in part:
            assert list(part["properties"]) == part["required"]
            assert part["additionalProperties"] is False


@settings(max_examples=examples(50))
@given(roots(), st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner)))
def test_the_way_back_never_raises(root, value):
    try:
        jsonschema_rs.validator_for(root, offline=True)
    except ValueError:
        reject()

    Restorer(root)(value)
