"""Random classes and their random instances go through JSON and come back equal."""

import base64
import contextlib
import dataclasses
import datetime as dt
import enum
import json
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import attrs
import jsonschema
import jsonschema_rs
import pytest
import referencing
from hypothesis import given
from hypothesis import strategies as st

from agentos.schema.signature import BuildError, DerivedInput, derive_input, to_plain


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@attrs.frozen
class Spec:
    """A type, how to draw a value of it, and the small reference that says what the value is in JSON."""

    type: Any
    values: st.SearchStrategy[Any] = attrs.field(repr=False)
    dump: Callable[[Any], Any] = attrs.field(repr=False)
    json: str
    hashable: bool = True


def same(value: Any) -> Any:
    return value


def iso(value: Any) -> str:
    return value.isoformat()


def unfolded(value: Any) -> Any:
    """Return a time without its mark of the repeated hour, which has no meaning in a fixed zone."""
    return value.replace(fold=0)


zones = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30)), dt.timezone(dt.timedelta(hours=-8))])
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=8)
seconds = st.integers(0, 10**7).map(lambda count: dt.timedelta(seconds=count))
LEAVES = [
    Spec(int, st.integers(), same, "integer"),
    Spec(str, texts, same, "string"),
    Spec(float, st.floats(allow_nan=False, allow_infinity=False), same, "number"),
    Spec(bool, st.booleans(), same, "boolean"),
    Spec(type(None), st.none(), same, "null"),
    Spec(Literal["b", "a", 3], st.sampled_from(["b", "a", 3]), same, "literal"),
    Spec(Color, st.sampled_from(Color), lambda value: value.value, "string"),
    Spec(Level, st.sampled_from(Level), lambda value: value.value, "integer"),
    Spec(Path, texts.map(Path), str, "string"),
    Spec(uuid.UUID, st.uuids(), str, "string"),
    Spec(Decimal, st.decimals(allow_nan=False, allow_infinity=False), str, "string"),
    Spec(bytes, st.binary(max_size=8), lambda value: base64.b64encode(value).decode(), "string"),
    Spec(dt.date, st.dates(), iso, "string"),
    Spec(dt.datetime, st.datetimes(timezones=zones).map(unfolded), iso, "string"),
    Spec(dt.time, st.times(timezones=zones).map(unfolded), iso, "string"),
    Spec(dt.timedelta, seconds, lambda value: f"PT{value // dt.timedelta(seconds=1)}S", "string", hashable=False),
]


def list_of(item: Spec) -> Spec:
    values = st.lists(item.values, max_size=3)
    return Spec(list[item.type], values, lambda value: [item.dump(each) for each in value], "array", hashable=False)


def tuple_of(item: Spec) -> Spec:
    values = st.lists(item.values, max_size=3).map(tuple)
    return Spec(
        tuple[item.type, ...], values, lambda value: [item.dump(each) for each in value], "array", item.hashable
    )


def set_of(item: Spec) -> Spec:
    values = st.frozensets(item.values, max_size=3)

    def dump(value: frozenset[Any]) -> list[Any]:
        return sorted((item.dump(each) for each in value), key=json.dumps)

    return Spec(frozenset[item.type], values, dump, "array")


def dict_of(item: Spec) -> Spec:
    values = st.dictionaries(texts, item.values, max_size=3)

    def dump(value: dict[str, Any]) -> dict[str, Any]:
        return {key: item.dump(each) for key, each in value.items()}

    return Spec(dict[str, item.type], values, dump, "object", hashable=False)


def row_of(items: list[Spec]) -> Spec:
    values = st.tuples(*(item.values for item in items))

    def dump(value: tuple[Any, ...]) -> list[Any]:
        return [item.dump(each) for item, each in zip(items, value, strict=True)]

    return Spec(tuple[tuple(item.type for item in items)], values, dump, "array", all(item.hashable for item in items))


def optional_of(item: Spec) -> Spec:
    values = st.none() | item.values
    return Spec(item.type | None, values, lambda value: None if value is None else item.dump(value), "optional")


@attrs.define(eq=False)
class Fields:
    """The fields of a class to be: their types, and a default for some."""

    specs: dict[str, Spec]
    defaults: dict[str, Any]

    def dump(self, value: Any) -> dict[str, Any]:
        return {name: spec.dump(getattr(value, name)) for name, spec in self.specs.items()}

    def spec(self, cls: Any) -> Spec:
        values = st.builds(cls, **{name: spec.values for name, spec in self.specs.items()})
        return Spec(cls, values, self.dump, "object", hashable=False)


@st.composite
def fields_of(draw: Any, inner: st.SearchStrategy[Spec]) -> Fields:
    specs = draw(st.dictionaries(st.sampled_from(["a", "b", "items", "default"]), inner, min_size=1, max_size=3))
    names = draw(st.sets(st.sampled_from(sorted(specs))))
    ordered = {name: specs[name] for name in sorted(specs, key=lambda name: (name in names, name))}
    return Fields(ordered, {name: draw(specs[name].values) for name in sorted(names)})


def attrs_class(fields: Fields) -> Spec:
    made: dict[str, Any] = {}
    for name, spec in fields.specs.items():
        default = {"factory": lambda name=name: fields.defaults[name]} if name in fields.defaults else {}
        made[name] = attrs.field(type=spec.type, **default)
    return fields.spec(attrs.make_class("Made", made))


def private_attrs_class(fields: Fields) -> Spec:
    made = {f"_{name}": attrs.field(type=spec.type) for name, spec in fields.specs.items()}
    cls: Any = attrs.make_class("Made", made, frozen=True)

    def dump(value: Any) -> dict[str, Any]:
        return {name: spec.dump(getattr(value, f"_{name}")) for name, spec in fields.specs.items()}

    fields.defaults.clear()
    return attrs.evolve(fields.spec(cls), dump=dump)


def dataclass(fields: Fields) -> Spec:
    made: list[Any] = []
    for name, spec in fields.specs.items():
        factory = {"default_factory": lambda name=name: fields.defaults[name]} if name in fields.defaults else {}
        made.append((name, spec.type, dataclasses.field(**factory)))
    return fields.spec(dataclasses.make_dataclass("Made", made))


def named_tuple(fields: Fields) -> Spec:
    fields.defaults.clear()
    return fields.spec(NamedTuple("Made", [(name, spec.type) for name, spec in fields.specs.items()]))


def typed_dict(fields: Fields) -> Spec:
    keys = {
        name: NotRequired[spec.type] if name in fields.defaults else spec.type for name, spec in fields.specs.items()
    }
    optional = {name: spec.values for name, spec in fields.specs.items() if name in fields.defaults}
    required = {name: spec.values for name, spec in fields.specs.items() if name not in fields.defaults}

    def dump(value: dict[str, Any]) -> dict[str, Any]:
        return {name: fields.specs[name].dump(each) for name, each in value.items()}

    values = st.fixed_dictionaries(required, optional=optional)
    return Spec(TypedDict("Made", keys), values, dump, "object", hashable=False)


def union_of(specs: list[Spec]) -> Spec:
    """Return a union of types that JSON itself tells apart."""
    annotation = specs[0].type
    for spec in specs[1:]:
        annotation |= spec.type
    values = st.one_of(*(spec.values.map(lambda value, spec=spec: Marked(value, spec)) for spec in specs))
    return Spec(annotation, values, same, "union", hashable=False)


class Marked(NamedTuple):
    """A value of a union together with the type that it is of."""

    value: Any
    spec: Spec


makers = st.sampled_from([attrs_class, private_attrs_class, dataclass, named_tuple, typed_dict])


def extended(inner: st.SearchStrategy[Spec]) -> st.SearchStrategy[Spec]:
    return st.one_of(
        inner.map(list_of),
        inner.map(tuple_of),
        inner.map(dict_of),
        inner.filter(lambda spec: spec.hashable and spec.json != "optional").map(set_of),
        inner.filter(lambda spec: spec.type is not type(None)).map(optional_of),
        st.lists(inner, min_size=1, max_size=3).map(row_of),
        st.builds(lambda make, fields: make(fields), makers, fields_of(inner)),
        st.builds(lambda make, fields: make(fields), makers, fields_of(inner)),
    )


specs = st.recursive(st.sampled_from(LEAVES), extended, max_leaves=6)
objects = st.builds(lambda make, fields: make(fields), makers, fields_of(specs)) | specs.map(dict_of)
arrays = specs.map(list_of) | specs.map(tuple_of) | st.lists(specs, min_size=1, max_size=3).map(row_of)
KINDS = [
    objects,
    arrays,
    *(
        st.sampled_from([leaf for leaf in LEAVES if leaf.json in kinds])
        for kinds in ("integer number", "string", "boolean")
    ),
]


def derived(annotation: Any) -> DerivedInput:
    def tool(x): ...

    tool.__annotations__ = {"x": annotation}
    return derive_input(tool)


def arrived(of: DerivedInput, value: Any) -> Any:
    return value if of.build is None else of.build({"x": value})["x"]


def told(value: Any) -> Any:
    """Return *value* with the type of everything in it: 1 equals 1.0, and a tuple may equal a NamedTuple."""
    if isinstance(value, frozenset):
        return frozenset, frozenset(map(told, value))
    if isinstance(value, tuple | list):
        return type(value), tuple(map(told, value))
    if isinstance(value, dict):
        return dict, {key: told(each) for key, each in value.items()}
    names = [field.name for field in getattr(value, "__attrs_attrs__", ())] or getattr(
        value, "__dataclass_fields__", ()
    )
    return type(value), {name: told(getattr(value, name)) for name in names} or value


def validator(schema: Mapping[str, Any], *, formats: bool = True) -> Any:
    return jsonschema_rs.validator_for(schema, offline=True, validate_formats=formats)


def reference(schema: Mapping[str, Any]) -> Any:
    return jsonschema.Draft202012Validator(schema, registry=referencing.Registry())


@given(st.data())
def test_an_instance_comes_back_equal(data):
    spec = data.draw(specs)
    value = data.draw(spec.values)
    of = derived(spec.type)
    plain = json.loads(json.dumps(spec.dump(value)))

    validator(of.schema).validate({"x": plain})

    assert value == arrived(of, plain)


@given(st.data())
def test_an_instance_comes_back_of_the_same_type_throughout(data):
    spec = data.draw(specs)
    value = data.draw(spec.values)

    assert told(value) == told(arrived(derived(spec.type), spec.dump(value)))


@given(st.data())
def test_to_plain_is_the_inverse(data):
    spec = data.draw(specs)
    value = data.draw(spec.values)
    of = derived(spec.type)
    plain = to_plain(value)

    validator(of.schema).validate({"x": plain})

    assert value == arrived(of, plain)


@given(st.data())
def test_what_equals_its_default_may_be_left_out(data):
    fields = data.draw(fields_of(specs))
    spec = data.draw(st.sampled_from([attrs_class, dataclass]))(fields)
    value = spec.type(**{name: data.draw(inner.values) for name, inner in fields.specs.items()})
    value = (attrs.evolve if attrs.has(spec.type) else dataclasses.replace)(value, **fields.defaults)
    plain = {name: each for name, each in spec.dump(value).items() if name not in fields.defaults}
    of = derived(spec.type)

    validator(of.schema).validate({"x": plain})

    assert value == arrived(of, plain)


@given(specs)
def test_a_schema_is_a_schema(spec):
    jsonschema.Draft202012Validator.check_schema(derived(spec.type).schema)


@given(st.data())
def test_a_default_is_in_the_schema_and_fits_it(data):
    spec = data.draw(specs)
    value = data.draw(spec.values)

    def tool(x=value): ...

    tool.__annotations__ = {"x": spec.type}
    schema = derive_input(tool).schema

    assert to_plain(value) == schema["properties"]["x"]["default"]
    assert validator(schema).is_valid({"x": schema["properties"]["x"]["default"]})


@given(st.data())
def test_an_option_of_a_union_comes_back_as_what_it_was(data):
    kinds = [data.draw(kind) for kind in data.draw(st.lists(st.sampled_from(KINDS), min_size=2, unique=True))]
    union = union_of(kinds)
    value, spec = data.draw(union.values)
    of = derived(union.type)
    plain = spec.dump(value)

    validator(of.schema).validate({"x": plain})

    assert told(value) == told(arrived(of, plain))


@given(st.data())
def test_of_two_classes_the_first_that_fits_is_made(data):
    one, two = data.draw(objects), data.draw(objects)
    plain = two.dump(data.draw(two.values))
    expected = arrived(derived(two.type), plain)
    if validator(derived(one.type).schema).is_valid({"x": plain}):
        with contextlib.suppress(BuildError):
            expected = arrived(derived(one.type), plain)

    assert told(expected) == told(arrived(derived(one.type | two.type), plain))


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
garbage = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=4
)


def mutated(draw: Any, value: Any) -> Any:
    """Return *value* with one thing changed somewhere in it."""
    if isinstance(value, dict):
        keys = [*value, "another"]
        key = draw(st.sampled_from(keys))
        rest = {name: each for name, each in value.items() if name != key}
        return rest if draw(st.booleans()) else {**rest, key: mutated(draw, value.get(key))}
    if isinstance(value, list) and draw(st.integers(0, 3)):
        at = draw(st.integers(0, len(value)))
        return [*value[:at], mutated(draw, value[at] if at < len(value) else None), *value[at + draw(st.booleans()) :]]
    return draw(garbage)


@st.composite
def mutants(draw: Any) -> tuple[DerivedInput, Any]:
    spec = draw(specs)
    return derived(spec.type), mutated(draw, {"x": spec.dump(draw(spec.values))})


@given(mutants())
def test_a_mutant_is_judged_as_the_reference_judges_it(mutant):
    of, value = mutant

    assert reference(of.schema).is_valid(value) == validator(of.schema, formats=False).is_valid(value)


@given(mutants())
def test_a_mutant_that_is_accepted_is_built_or_refused_in_words(mutant):
    of, value = mutant
    if of.build is None or not validator(of.schema).is_valid(value):
        return

    with contextlib.suppress(BuildError):
        assert of.build(value).keys() == value.keys()


@attrs.frozen
class Tree:
    value: int | Path
    children: "tuple[Tree, ...]" = ()
    named: "dict[str, Tree]" = attrs.field(factory=dict)


trees = st.recursive(
    st.builds(Tree, st.integers()),
    lambda inner: st.builds(
        Tree,
        st.integers() | texts.map(Path),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(texts, inner, max_size=2),
    ),
    max_leaves=8,
)


@given(trees)
def test_a_class_that_contains_itself_comes_back_equal(tree):
    of = derived(Tree)
    plain = to_plain(tree)

    validator(of.schema).validate({"x": plain})

    assert tree == arrived(of, plain)


@given(st.data())
def test_a_recursive_mutant_is_judged_as_the_reference_judges_it(data):
    schema = derived(Tree).schema
    value = mutated(data.draw, {"x": to_plain(data.draw(trees))})

    assert reference(schema).is_valid(value) == validator(schema, formats=False).is_valid(value)


@pytest.mark.parametrize("spec", LEAVES, ids=lambda spec: str(spec.type))
@given(data=st.data())
def test_every_leaf_comes_back_equal(spec, data):
    value = data.draw(spec.values)

    assert told(value) == told(arrived(derived(spec.type), spec.dump(value)))
