"""Schemas, builders and documentation derived from signatures."""

import __future__

import abc
import collections
import dataclasses
import datetime as dt
import enum
import functools
import gc
import math
import re
import subprocess
import sys
import types
import typing
import uuid
import weakref
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from decimal import Decimal
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    Self,
    TypedDict,
    TypeVar,
    Union,
)

import attrs
import jsonschema_rs
import pytest
import typing_extensions
from attrs import validators

from agentos.errors import AgentOSError, ToolDefinitionError
from agentos.schema.signature import BuildError, Schema, derive_input, derive_output, describe, to_plain

T = TypeVar("T")


def taking(annotation: Any, default: Any = ..., *, name: str = "x") -> Callable[..., Any]:
    """Return a function `tool(x: annotation = default)`."""
    code = f"def tool({name}{'' if default is ... else '=default'}): return {name}"
    scope: dict[str, Any] = {**globals(), "default": default}
    exec(code, scope)
    function = scope["tool"]
    function.__annotations__ = {name: annotation}
    return function


def schema_of(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """Return what is derived for one parameter of that type, with the definitions if there are any."""
    schema = derive_input(taking(annotation, default)).schema
    jsonschema_rs.validator_for(schema, offline=True)
    found = schema["properties"]["x"]
    return {**found, "$defs": schema["$defs"]} if "$defs" in schema else found


def built(annotation: Any, value: Any) -> Any:
    """Return what the function gets for a parameter of that type when *value* came as JSON."""
    derived = derive_input(taking(annotation))
    jsonschema_rs.validator_for(derived.schema, offline=True, validate_formats=True).validate({"x": value})
    return value if derived.build is None else derived.build({"x": value})["x"]


def accepts(annotation: Any, value: Any) -> bool:
    schema = derive_input(taking(annotation)).schema
    return jsonschema_rs.validator_for(schema, offline=True, validate_formats=True).is_valid({"x": value})


def refusal(annotation: Any) -> str:
    with pytest.raises(ToolDefinitionError) as caught:
        derive_input(taking(annotation))
    return str(caught.value)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mood(enum.StrEnum):
    """How it feels."""

    GOOD = "good"
    BAD = "bad"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@attrs.frozen
class Point:
    """A place.

    Attributes:
        x: Steps to the right
        y: Steps up
    """

    x: int
    y: int = 0


ORIGIN = Point(0)


@attrs.frozen
class Circle:
    centre: Point
    radius: float


@attrs.frozen
class Box:
    corner: Point
    width: float
    height: float


@attrs.frozen
class Tree:
    value: int
    children: "list[Tree]" = attrs.field(factory=list)


@attrs.frozen
class Hen:
    egg: "Egg | None" = None


@attrs.frozen
class Egg:
    hen: Hen | None = None


@attrs.frozen
class Page(Generic[T]):
    items: list[T]
    following: "Page[T] | None" = None


@attrs.frozen
class IntPage(Page[int]):
    total: int = 0


@dataclasses.dataclass
class Span:
    start: int
    stop: int | None = None
    tags: list[str] = dataclasses.field(default_factory=list)


class Address(TypedDict):
    """Where somebody lives."""

    street: str
    city: NotRequired[str]


class Loose(TypedDict, total=False):
    name: Required[str]
    age: int


class Quoted(TypedDict):
    name: "str"
    age: "NotRequired[Annotated[int, 'In years']]"


class Extended(typing_extensions.TypedDict):
    name: str
    age: typing_extensions.NotRequired[typing_extensions.ReadOnly[int]]


class Wrapped(typing_extensions.TypedDict, total=False):
    name: "Annotated[typing_extensions.ReadOnly[Required[str]], 'A name']"
    age: int


class Branch(TypedDict):
    name: str
    branches: "list[Branch]"


class Leafed(TypedDict):
    leaf: Point
    branches: "list[Leafed]"


class Pair(NamedTuple):
    left: int
    right: Path = Path("here")


class ToolContext:
    """Stands for the real one, which is known by its name."""


class ToolResult:
    """Stands for the real one, which is known by its name."""


UserId = NewType("UserId", str)
OldJson = Union[str, int, None, list["OldJson"], dict[str, "OldJson"]]  # noqa: UP007
Json = typing_extensions.TypeAliasType("Json", "str | int | list[Json] | dict[str, Json] | None")
Grown = typing_extensions.TypeAliasType("Grown", "Point | list[Grown]")
Pairs = typing_extensions.TypeAliasType("Pairs", list[tuple[T, T]], type_params=(T,))
Endless = typing_extensions.TypeAliasType("Endless", "int | Endless")


class TestFunction:
    def test_derives_a_closed_object_in_the_order_of_the_parameters(self):
        def add(b: int, a: int, *, c: int = 3) -> int: ...

        assert derive_input(add).schema == {
            "type": "object",
            "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}, "c": {"type": "integer", "default": 3}},
            "required": ["b", "a"],
            "additionalProperties": False,
        }
        assert list(derive_input(add).schema["properties"]) == ["b", "a", "c"]

    def test_without_parameters_takes_an_empty_object(self):
        def ping(): ...

        assert derive_input(ping).schema == {"type": "object", "properties": {}, "additionalProperties": False}

    def test_async_functions_are_read_the_same(self):
        async def add(a: int): ...

        assert derive_input(add).schema["properties"] == {"a": {"type": "integer"}}

    def test_a_bound_method_has_no_self(self):
        class Calculator:
            def add(self, a: int): ...

        assert list(derive_input(Calculator().add).schema["properties"]) == ["a"]

    def test_a_class_method_has_no_cls(self):
        class Calculator:
            @classmethod
            def add(cls, a: int): ...

        assert list(derive_input(Calculator.add).schema["properties"]) == ["a"]

    def test_a_static_method_keeps_its_first_parameter(self):
        class Calculator:
            @staticmethod
            def add(a: int): ...

        assert list(derive_input(Calculator.add).schema["properties"]) == ["a"]

    def test_a_plain_function_can_be_said_to_be_a_method(self):
        class Calculator:
            def add(self, a: int): ...

        assert list(derive_input(Calculator.add, method=True).schema["properties"]) == ["a"]

    def test_a_wrapped_method_can_be_said_to_be_a_method(self):
        def decorate(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs): ...

            return wrapper

        class Calculator:
            @decorate
            def add(self, a: int): ...

        assert list(derive_input(Calculator.add, method=True).schema["properties"]) == ["a"]

    def test_a_bound_method_is_not_cut_twice(self):
        class Calculator:
            def add(self, /, a: int): ...

        assert list(derive_input(Calculator().add, method=True).schema["properties"]) == ["a"]

    def test_a_wrapped_function_is_read_through_its_wrapper(self):
        def inner(a: "Point"): ...

        @functools.wraps(inner)
        def wrapper(*args, **kwargs): ...

        assert "x" in derive_input(wrapper).schema["properties"]["a"]["properties"]

    def test_a_partial_offers_what_is_left(self):
        def add(a: int, b: "int"): ...

        assert list(derive_input(functools.partial(add, 1)).schema["properties"]) == ["b"]

    def test_an_object_with_call_is_read_by_it(self):
        class Adder:
            def __call__(self, a: "Point"): ...

        assert list(derive_input(Adder()).schema["properties"]) == ["a"]

    def test_function_attributes_change_nothing(self):
        def add(a: int): ...

        add.mark = True

        assert list(derive_input(add).schema["properties"]) == ["a"]

    def test_future_annotations_are_resolved(self):
        source = "def move(to: Point, by: 'int | None' = None) -> list[Point]: ..."
        scope = {"Point": Point}
        exec(compile(source, "x", "exec", flags=__future__.annotations.compiler_flag), scope)

        derived = derive_input(scope["move"])

        assert {"to": Point(1, 2)} == derived.build({"to": {"x": 1, "y": 2}})
        assert "null" in str(derived.schema["properties"]["by"])

    def test_names_of_the_closure_are_found(self):
        @attrs.frozen
        class Local:
            a: int
            again: "Local | None" = None

        def use(it: "Local") -> "Local":
            return Local(it.a)

        assert {"it": Local(1, Local(2))} == derive_input(use).build({"it": {"a": 1, "again": {"a": 2}}})

    def test_a_variable_that_has_no_value_yet_is_no_obstacle(self):
        def make():
            def use(a: int):
                return later

            derived = derive_input(use)
            later = 1
            return derived, later

        assert list(make()[0].schema["properties"]) == ["a"]

    def test_keeps_no_class_alive(self):
        @attrs.define(slots=False)
        class Local:
            a: int
            others: "list[Local]"  # noqa: F821

        def use(it: Local) -> Local: ...

        derive_input(use)
        derive_output(use)
        watch = weakref.ref(Local)
        del Local, use
        gc.collect()

        assert watch() is None


class TestContext:
    def test_is_not_in_the_schema(self):
        def greet(name: str, *, context: ToolContext): ...

        derived = derive_input(greet)

        assert list(derived.schema["properties"]) == ["name"]
        assert derived.context_parameter == "context"

    def test_is_found_by_its_type_under_any_name(self):
        def greet(ctx: ToolContext, name: str): ...

        assert derive_input(greet).context_parameter == "ctx"

    def test_is_found_by_its_name_without_annotation(self):
        def greet(name: str, context=None): ...

        assert derive_input(greet).context_parameter == "context"

    @pytest.mark.parametrize(
        "annotation",
        [
            "ToolContext",
            "agentos.ToolContext | None",
            Optional["ToolContext"],
            ToolContext | None,
            Annotated[ToolContext, "the context"],
            type("Ours", (ToolContext,), {}),
        ],
    )
    def test_is_recognised_in_every_spelling(self, annotation):
        assert derive_input(taking(annotation, name="ctx")).context_parameter == "ctx"

    def test_is_wanted_by_no_function_without_one(self):
        assert derive_input(taking(int)).context_parameter is None

    def test_other_names_can_be_skipped(self):
        def greet(name: str, context: int, session: object): ...

        derived = derive_input(greet, skip=("session",))

        assert list(derived.schema["properties"]) == ["name", "context"]
        assert derived.context_parameter == "session"

    def test_a_word_that_contains_the_name_is_another_class(self):
        class ToolContexts(TypedDict):
            a: int

        assert derive_input(taking(ToolContexts)).context_parameter is None

    def test_a_literal_of_the_name_is_a_literal(self):
        assert derive_input(taking(Literal["ToolContext"])).context_parameter is None

    @pytest.mark.parametrize(
        "annotation", [int, "str", Annotated[int, "How many lines"]], ids=["type", "text", "annotated"]
    )
    def test_a_value_for_the_model_has_another_name(self, annotation):
        with pytest.raises(ToolDefinitionError, match=r"a parameter of this name is given the ToolContext; rename it"):
            derive_input(taking(annotation, name="context"))

    def test_two_are_one_too_many(self):
        def greet(a: ToolContext, b: ToolContext): ...

        with pytest.raises(ToolDefinitionError, match=r"^greet\(b\): a is a ToolContext already"):
            derive_input(greet)

    @pytest.mark.parametrize("annotation", [str, "str", int])
    def test_a_text_of_that_name_would_never_arrive_and_is_refused(self, annotation):
        with pytest.raises(ToolDefinitionError, match=r"^tool\(context\): .* rename it"):
            derive_input(taking(annotation, name="context"))


class TestPlainTypes:
    @pytest.mark.parametrize(
        ("annotation", "schema"),
        [
            (str, {"type": "string"}),
            (int, {"type": "integer"}),
            (bool, {"type": "boolean"}),
            (None, {"type": "null"}),
            (type(None), {"type": "null"}),
            (Any, {}),
            (object, {}),
            (typing.LiteralString, {"type": "string"}),
            (list, {"type": "array"}),
            (typing.List, {"type": "array"}),  # noqa: UP006
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (list[Any], {"type": "array"}),
            (Sequence[str], {"type": "array", "items": {"type": "string"}}),
            (Iterable[str], {"type": "array", "items": {"type": "string"}}),
            (Collection[str], {"type": "array", "items": {"type": "string"}}),
            (dict, {"type": "object", "additionalProperties": True}),
            (dict[str, Any], {"type": "object", "additionalProperties": True}),
            (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (
                MutableMapping[str, list[int]],
                {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
            ),
            (Literal["b", "a", 2], {"enum": ["b", "a", 2]}),
            (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
            (Literal["only"], {"type": "string", "const": "only"}),
            (Literal[1, True, None], {"enum": [1, True, None]}),  # noqa: PYI061
            (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
            (Union[str, int, bool], {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]}),  # noqa: UP007
            (UserId, {"type": "string"}),
            (Final[int], {"type": "integer"}),
        ],
    )
    def test_need_no_builder(self, annotation, schema):
        assert schema == schema_of(annotation)
        assert derive_input(taking(annotation)).build is None

    @pytest.mark.parametrize(
        ("annotation", "schema"),
        [
            (tuple, {"type": "array"}),
            (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
            (
                tuple[int, str],
                {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": "string"}],
                    "minItems": 2,
                    "maxItems": 2,
                },
            ),
            (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
            (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
            (frozenset[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
            (AbstractSet[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
            (Color, {"type": "string", "enum": ["red", "blue"]}),
            (Mood, {"type": "string", "enum": ["good", "bad"], "description": "How it feels."}),
            (Level, {"type": "integer", "enum": [1, 2]}),
            (Literal[Color.RED], {"type": "string", "const": "red"}),
            (dt.datetime, {"type": "string", "format": "date-time"}),
            (dt.date, {"type": "string", "format": "date"}),
            (dt.time, {"type": "string", "format": "time"}),
            (dt.timedelta, {"type": "string", "format": "duration"}),
            (uuid.UUID, {"type": "string", "format": "uuid"}),
            (Path, {"type": "string"}),
            (PurePath, {"type": "string"}),
            (bytes, {"type": "string", "contentEncoding": "base64"}),
        ],
    )
    def test_of_python_have_a_schema_and_a_builder(self, annotation, schema):
        assert schema == schema_of(annotation)
        assert derive_input(taking(annotation)).build is not None

    @pytest.mark.parametrize(
        ("annotation", "json", "value"),
        [
            (tuple, [1, "a"], (1, "a")),
            (tuple[int, ...], [1, 2], (1, 2)),
            (tuple[int, Color], [1, "red"], (1, Color.RED)),
            (tuple[()], [], ()),
            (set, [1, 2], {1, 2}),
            (set[Color], ["red"], {Color.RED}),
            (frozenset[int], [1], frozenset({1})),
            (Color, "blue", Color.BLUE),
            (Level, 2, Level.HIGH),
            (Level, 2.0, Level.HIGH),
            (Literal[Color.RED, "x", 1], "red", Color.RED),
            (Literal[Color.RED, "x", 1], 1, 1),
            (dt.datetime, "2026-01-31T09:30:00Z", dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.UTC)),
            (dt.datetime, "2026-01-31t09:30:00z", dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.UTC)),
            (dt.date, "2026-01-31", dt.date(2026, 1, 31)),
            (dt.time, "09:30:00Z", dt.time(9, 30, tzinfo=dt.UTC)),
            (dt.timedelta, "P1DT2H3M4S", dt.timedelta(days=1, hours=2, minutes=3, seconds=4)),
            (dt.timedelta, "P2W", dt.timedelta(weeks=2)),
            (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678123456781234567812345678")),
            (Path, "a/b", Path("a/b")),
            (Decimal, "-1.50", Decimal("-1.50")),
            (bytes, "AAE=", b"\x00\x01"),
            (list[Path], ["a"], [Path("a")]),
            (dict[str, tuple[int, ...]], {"a": [1]}, {"a": (1,)}),
            (list[dict[str, set[int]]], [{"a": [1]}], [{"a": {1}}]),
            (Path | None, None, None),
            (Path | None, "a", Path("a")),
        ],
    )
    def test_arrive_as_what_was_declared(self, annotation, json, value):
        arrived = built(annotation, json)

        assert (type(value), value) == (type(arrived), arrived)

    def test_an_int_arrives_as_a_float_where_one_was_declared(self):
        assert type(built(float, 1)) is float

    @pytest.mark.parametrize("text", ["1", "-1", "+1.5", "1e10", "0.10"])
    def test_a_decimal_is_written_as_text(self, text):
        assert Decimal(text) == built(Decimal, text)

    @pytest.mark.parametrize("value", [1, 1.5, "", "x", "1,5", "NaN", "1.", "Infinity"])
    def test_a_decimal_is_nothing_else(self, value):
        assert not accepts(Decimal, value)

    def test_keys_can_be_narrowed(self):
        assert schema_of(dict[Literal["a", "b"], int]) == {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "propertyNames": {"type": "string", "enum": ["a", "b"]},
        }

    def test_the_arguments_are_not_changed(self):
        arguments = {"x": {"centre": {"x": 1}, "radius": 1.0}}

        derive_input(taking(Circle)).build(arguments)

        assert arguments == {"x": {"centre": {"x": 1}, "radius": 1.0}}

    def test_a_missing_argument_stays_missing(self):
        assert derive_input(taking(Path, Path("a"))).build({}) == {}


class TestClasses:
    def test_an_attrs_class_is_a_closed_object(self):
        assert schema_of(Point) == {
            "type": "object",
            "properties": {
                "x": {"type": "integer", "description": "Steps to the right"},
                "y": {"type": "integer", "description": "Steps up", "default": 0},
            },
            "description": "A place.",
            "required": ["x"],
            "additionalProperties": False,
        }

    def test_an_attrs_class_arrives_as_an_instance(self):
        assert Circle(Point(1), 2) == built(Circle, {"centre": {"x": 1}, "radius": 2})

    def test_private_attributes_go_by_their_alias(self):
        @attrs.frozen
        class Secretive:
            _a: int
            b: int = attrs.field(alias="bee")

        assert list(schema_of(Secretive)["properties"]) == ["a", "bee"]
        assert Secretive(1, 2) == built(Secretive, {"a": 1, "bee": 2})

    def test_an_alias_is_documented_by_either_name(self):
        @attrs.frozen
        class Secretive:
            """Hide.

            Attributes:
                _a: The first
            """

            _a: int

        assert schema_of(Secretive)["properties"]["a"]["description"] == "The first"

    def test_attributes_that_init_does_not_take_are_left_out(self):
        @attrs.frozen
        class Sum:
            a: int
            total: int = attrs.field(init=False, default=0)

        assert list(schema_of(Sum)["properties"]) == ["a"]

    def test_a_converter_gets_the_declared_type(self):
        @attrs.frozen
        class Tags:
            tags: tuple[str, ...] = attrs.field(converter=lambda value: (type(value).__name__, *value))

        assert Tags(("a",)) == built(Tags, {"tags": ["a"]})

    @pytest.mark.parametrize("maker", [attrs.define, attrs.frozen, dataclasses.dataclass])
    def test_factories_of_containers_are_defaults(self, maker):
        field = dataclasses.field if maker is dataclasses.dataclass else attrs.field
        word = "default_factory" if maker is dataclasses.dataclass else "factory"

        @maker
        class Bag:
            a: list[int] = field(**{word: list})
            b: dict[str, int] = field(**{word: dict})

        assert [inner["default"] for inner in schema_of(Bag)["properties"].values()] == [[], {}]

    def test_other_factories_are_not_called(self):
        @attrs.frozen
        class Stamped:
            at: str = attrs.field(factory=lambda: pytest.fail("called"))
            of: str = attrs.Factory(lambda self: pytest.fail("called"), takes_self=True)

        schema = schema_of(Stamped)

        assert schema["properties"]["at"] == {"type": "string"}
        assert "required" not in schema

    def test_a_dataclass_is_a_closed_object(self):
        assert schema_of(Span) == {
            "type": "object",
            "properties": {
                "start": {"type": "integer"},
                "stop": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            },
            "required": ["start"],
            "additionalProperties": False,
        }

    def test_a_dataclass_arrives_as_an_instance(self):
        assert Span(1, 2, ["a"]) == built(Span, {"start": 1, "stop": 2, "tags": ["a"]})

    def test_a_dataclass_may_take_init_vars(self):
        @dataclasses.dataclass
        class Scaled:
            value: int
            scale: dataclasses.InitVar[int]
            unit: ClassVar[str] = "m"

            def __post_init__(self, scale):
                self.value *= scale

        assert list(schema_of(Scaled)["properties"]) == ["value", "scale"]
        assert built(Scaled, {"value": 2, "scale": 3}).value == 6

    def test_a_typed_dict_is_a_closed_object(self):
        assert schema_of(Address) == {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            "description": "Where somebody lives.",
            "required": ["street"],
            "additionalProperties": False,
        }

    def test_a_typed_dict_of_plain_types_needs_no_builder(self):
        assert derive_input(taking(Address)).build is None

    def test_a_typed_dict_builds_its_members(self):
        class Place(TypedDict):
            at: Point
            name: str

        assert {"at": Point(1), "name": "a"} == built(Place, {"at": {"x": 1}, "name": "a"})

    @pytest.mark.parametrize("cls", [Loose, Quoted, Extended, Wrapped])
    def test_a_typed_dict_says_what_is_required(self, cls):
        schema = schema_of(cls)

        assert list(schema["properties"]) == ["name", "age"]
        assert schema["required"] == ["name"]

    def test_a_member_in_quotes_keeps_its_text(self):
        assert schema_of(Quoted)["properties"]["age"]["description"] == "In years"

    def test_a_typed_dict_can_be_opened(self):
        annotation = Annotated[Address, Schema(additionalProperties=True)]

        assert schema_of(annotation)["additionalProperties"] is True

    def test_a_typed_dict_that_is_used_again_can_be_opened_in_one_place(self):
        def move(old: Annotated[Address, Schema(additionalProperties=True)], new: Address, last: Address): ...

        properties = derive_input(move).schema["properties"]

        assert properties["old"]["additionalProperties"] is True
        assert properties["new"] == {"$ref": "#/$defs/Address"}

    def test_a_named_tuple_is_an_object(self):
        assert schema_of(Pair) == {
            "type": "object",
            "properties": {"left": {"type": "integer"}, "right": {"type": "string", "default": "here"}},
            "required": ["left"],
            "additionalProperties": False,
        }

    def test_a_named_tuple_arrives_as_one(self):
        arrived = built(Pair, {"left": 1, "right": "there"})

        assert (Pair, Pair(1, Path("there"))) == (type(arrived), arrived)

    def test_self_is_the_class(self):
        @attrs.frozen
        class Node:
            below: Self | None = None

        assert Node(Node()) == built(Node, {"below": {}})

    def test_names_in_the_class_are_found(self):
        @attrs.frozen
        class Outer:
            class Kind(enum.Enum):
                A = "a"

            kind: "Kind"

        assert Outer(Outer.Kind.A) == built(Outer, {"kind": "a"})

    def test_a_field_may_have_the_name_of_its_type(self):
        @dataclasses.dataclass
        class Event:
            Point: "Point | None" = None

        assert Event(Point(1)) == built(Event, {"Point": {"x": 1}})

    def test_make_class_works_too(self):
        made = attrs.make_class("Made", {"a": attrs.field(type=int), "b": attrs.field(type=Path)})

        assert made(1, Path("p")) == built(made, {"a": 1, "b": "p"})

    def test_what_the_class_refuses_is_told_with_its_path(self):
        @attrs.frozen
        class Even:
            value: int = attrs.field()

            @value.validator
            def _check(self, attribute, value):
                if value % 2:
                    raise ValueError("expected an even number", attribute, value)

        with pytest.raises(BuildError, match=r"^Even refuses it: expected an even number$") as caught:
            built(dict[str, list[Even]], {"a": [{"value": 2}, {"value": 3}]})

        assert caught.value.path == ("x", "a", 1)
        assert isinstance(caught.value.__cause__, ValueError)

    def test_a_pydantic_model_brings_its_own_schema(self):
        class Model:
            @classmethod
            def model_json_schema(cls, mode):
                return {
                    "type": "object",
                    "title": "Model",
                    "properties": {"sub": {"$ref": "#/$defs/Sub"}, "more": {"$ref": "#/$defs/Sub"}},
                    "$defs": {"Sub": {"type": "integer", "title": "Sub"}},
                }

            @classmethod
            def model_validate(cls, value):
                return ("validated", value)

        assert schema_of(Model) == {
            "type": "object",
            "properties": {"sub": {"$ref": "#/$defs/Sub"}, "more": {"$ref": "#/$defs/Sub"}},
            "additionalProperties": False,
            "$defs": {"Sub": {"type": "integer"}},
        }
        assert built(Model, {"sub": 1}) == ("validated", {"sub": 1})

    def test_a_real_pydantic_model_arrives_as_an_instance(self):
        pydantic = pytest.importorskip("pydantic")
        inner = pydantic.create_model("Inner", a=(int, ...))
        outer = pydantic.create_model("Outer", one=(inner, ...), many=(list[inner], []))

        assert outer(one=inner(a=1)) == built(outer, {"one": {"a": 1}})

    def test_a_pydantic_model_that_refuses_is_told(self):
        class Model:
            @classmethod
            def model_json_schema(cls, mode):
                return {"type": "object"}

            @classmethod
            def model_validate(cls, value):
                raise ValueError("not this one")

        with pytest.raises(BuildError, match=r"^Model refuses it: not this one$"):
            built(Model, {})


class TestDefinitions:
    def test_a_class_used_once_stands_where_it_is_used(self):
        assert "$defs" not in derive_input(taking(Circle)).schema

    def test_a_class_used_again_is_defined(self):
        schema = derive_input(taking(Circle | Box)).schema

        assert list(schema["$defs"]) == ["Point"]
        assert schema["properties"]["x"]["anyOf"][1]["properties"]["corner"] == {"$ref": "#/$defs/Point"}

    def test_what_a_parameter_says_stands_beside_the_reference(self):
        def move(old: Point, new: Annotated[Point, "Where to"] = ORIGIN): ...

        assert derive_input(move).schema["properties"]["new"] == {
            "$ref": "#/$defs/Point",
            "description": "Where to",
            "default": {"x": 0, "y": 0},
        }

    def test_a_class_that_contains_itself_is_defined(self):
        schema = schema_of(Tree)

        assert schema["$ref"] == "#/$defs/Tree"
        assert schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}

    def test_a_class_that_contains_itself_arrives_whole(self):
        assert Tree(1, [Tree(2, [Tree(3)])]) == built(
            Tree, {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}
        )

    def test_classes_that_contain_each_other_arrive_whole(self):
        assert Hen(Egg(Hen())) == built(Hen, {"egg": {"hen": {}}})

    def test_a_typed_dict_that_contains_itself_needs_no_builder(self):
        assert schema_of(Branch)["$ref"] == "#/$defs/Branch"
        assert derive_input(taking(Branch)).build is None

    def test_a_typed_dict_that_contains_itself_builds_what_is_in_it(self):
        assert {"leaf": Point(1), "branches": [{"leaf": Point(2), "branches": []}]} == built(
            Leafed, {"leaf": {"x": 1}, "branches": [{"leaf": {"x": 2}, "branches": []}]}
        )

    def test_two_classes_of_one_name_have_two_definitions(self):
        def make(kind):
            @attrs.frozen
            class Item:
                a: kind

            return Item

        one, two = make(int), make(str)

        def use(a: one, b: one, c: two, d: two): ...

        assert {name: schema["properties"]["a"] for name, schema in derive_input(use).schema["$defs"].items()} == {
            "Item": {"type": "integer"},
            "Item_2": {"type": "string"},
        }

    def test_a_property_may_be_called_like_a_keyword(self):
        class Odd(TypedDict):
            default: Point
            items: Point

        functional = TypedDict("functional", {"$ref": Point, "properties": Odd})

        assert {"$ref": Point(1), "properties": {"default": Point(2), "items": Point(3)}} == built(
            functional, {"$ref": {"x": 1}, "properties": {"default": {"x": 2}, "items": {"x": 3}}}
        )

    def test_deep_arguments_are_an_error_and_no_crash(self):
        value: dict[str, Any] = {"value": 1}
        for _ in range(5_000):
            value = {"value": 1, "children": [value]}

        with pytest.raises(BuildError, match="nested too deeply"):
            derive_input(taking(Tree)).build({"x": value})

    def test_definitions_do_not_depend_on_the_hash_seed(self):
        code = (
            "import json, attrs; from agentos.schema.signature import derive_input\n"
            "@attrs.frozen\nclass A: a: int = attrs.field(validator=attrs.validators.in_({'x', 'y', 'z'}))\n"
            "@attrs.frozen\nclass B: a: A; b: A\n"
            "def f(b: B, c: B, a: A, s: set[str] = {'p', 'q', 'r'}): ...\n"
            "print(json.dumps(derive_input(f).schema))"
        )
        outputs = {
            subprocess.run(
                [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True
            ).stdout
            for seed in ("1", "2", "3")
        }

        assert len(outputs) == 1


class TestGenerics:
    def test_arguments_take_the_place_of_variables(self):
        assert Page([1], Page([2])) == built(Page[int], {"items": [1], "following": {"items": [2]}})
        assert not accepts(Page[int], {"items": ["a"]})

    def test_each_has_a_definition_of_its_own(self):
        def use(a: Page[int], b: Page[str], c: Page[list[int]]): ...

        assert list(derive_input(use).schema["$defs"]) == ["Page_int", "Page_str", "Page_list_int"]

    def test_a_base_is_known_by_its_arguments(self):
        assert IntPage([1]) == built(IntPage, {"items": [1]})
        assert not accepts(IntPage, {"items": ["a"]})

    def test_one_in_another_is_resolved(self):
        @attrs.frozen
        class Book(Generic[T]):
            pages: Page[Page[T]]

        assert Book(Page([Page([Point(1)])])) == built(Book[Point], {"pages": {"items": [{"items": [{"x": 1}]}]}})

    def test_dataclasses_and_typed_dicts_can_be_generic(self):
        @dataclasses.dataclass
        class Held(Generic[T]):
            it: T

        class Keyed(TypedDict, Generic[T]):
            it: T

        assert Held(Path("a")) == built(Held[Path], {"it": "a"})
        assert {"it": Path("a")} == built(Keyed[Path], {"it": "a"})

    def test_arguments_need_not_be_hashable(self):
        limited = Annotated[int, constraint(ge=1)]

        def use(a: Page[limited], b: Page[limited]): ...

        assert len(derive_input(use).schema["$defs"]) == 1

    def test_names_in_quotes_are_resolved_where_they_stand(self):
        assert Page([Point(1)]) == built(Page["Point"], {"items": [{"x": 1}]})

    def test_a_variable_without_type_is_refused(self):
        assert "tool(x.items[]): found the type variable T; write a type in its place" in refusal(Page)
        assert "type variable T" in refusal(Page[T])
        assert "type variable T" in refusal(T)

    def test_a_variable_may_have_a_bound_or_constraints(self):
        assert schema_of(TypeVar("B", bound=int)) == {"type": "integer"}
        assert schema_of(TypeVar("C", int, str)) == {"anyOf": [{"type": "integer"}, {"type": "string"}]}

    def test_a_variable_may_have_a_default(self):
        assert schema_of(typing_extensions.TypeVar("D", default=int)) == {"type": "integer"}

    def test_a_generic_that_grows_for_ever_is_refused(self):
        assert "nested deeper than 64 levels" in refusal(Growing[int])


@attrs.frozen
class Growing(Generic[T]):
    it: "Growing[list[T]] | None" = None


class TestAliases:
    def test_of_a_type_are_what_they_stand_for(self):
        name = typing_extensions.TypeAliasType("name", Annotated[str, "A name"])

        def use(a: name, b: name): ...

        assert (
            list(derive_input(use).schema["properties"].values()) == [{"type": "string", "description": "A name"}] * 2
        )

    @pytest.mark.parametrize(("alias", "name"), [(Json, "Json"), (OldJson, "OldJson")])
    def test_that_contain_themselves_are_defined_and_need_no_builder(self, alias, name):
        assert [name] == list(schema_of(alias)["$defs"])
        assert derive_input(taking(alias)).build is None

    def test_that_contain_themselves_build_what_is_in_them(self):
        assert [Point(1), [Point(2)]] == built(Grown, [{"x": 1}, [{"x": 2}]])

    def test_take_arguments(self):
        assert [(Path("a"), Path("b"))] == built(Pairs[Path], [["a", "b"]])

    def test_that_are_only_themselves_are_refused(self):
        assert "Endless stands for itself" in refusal(Endless)


class TestUnions:
    def test_the_first_class_that_fits_is_made(self):
        shapes = Circle | Box

        assert Circle(Point(1), 2) == built(shapes, {"centre": {"x": 1}, "radius": 2})
        assert Box(Point(1), 2, 3) == built(shapes, {"corner": {"x": 1}, "width": 2, "height": 3})

    def test_equal_shapes_go_to_the_first(self):
        one, two = (attrs.make_class(name, {"a": attrs.field(type=int)}) for name in ("One", "Two"))

        assert one(1) == built(one | two, {"a": 1})
        assert two(1) == built(two | one, {"a": 1})

    def test_limits_tell_classes_apart(self):
        @attrs.frozen
        class Small:
            size: Annotated[int, Schema(maximum=10)]

        @attrs.frozen
        class Large:
            size: int

        assert [Small(1), Large(11)] == built(list[Small | Large], [{"size": 1}, {"size": 11}])

    def test_a_literal_tells_classes_apart(self):
        @attrs.frozen
        class Cat:
            kind: Literal["cat"]

        @attrs.frozen
        class Dog:
            kind: Literal["dog"]

        assert [Dog("dog"), Cat("cat")] == built(list[Cat | Dog], [{"kind": "dog"}, {"kind": "cat"}])

    def test_what_the_first_class_refuses_goes_to_the_next(self):
        @attrs.frozen
        class Odd:
            value: int = attrs.field()

            @value.validator
            def _check(self, attribute, value):
                if value % 2 == 0:
                    raise ValueError("even")

        @attrs.frozen
        class Number:
            value: int

        assert [Odd(1), Number(2)] == built(list[Odd | Number], [{"value": 1}, {"value": 2}])

    def test_what_every_class_refuses_is_told(self):
        @attrs.frozen
        class Odd:
            value: int = attrs.field(validator=lambda *_: 1 / 0)

        with pytest.raises(BuildError, match=r"^Odd refuses it: division by zero$"):
            built(Odd | int | None, {"value": 1})

    def test_a_text_that_is_no_date_stays_text(self):
        assert built(dt.date | str, "soon") == "soon"
        assert built(dt.date | str, "2026-01-31") == dt.date(2026, 1, 31)
        assert built(uuid.UUID | str, "soon") == "soon"

    def test_true_is_no_number(self):
        assert built(Level | bool, True) is True

    def test_containers_are_told_apart_by_what_is_in_them(self):
        either = list[Point] | list[Path] | dict[str, Path] | tuple[int, int]

        assert [Point(1)] == built(either, [{"x": 1}])
        assert [Path("a")] == built(either, ["a"])
        assert {"a": Path("b")} == built(either, {"a": "b"})
        assert built(either, [1, 2]) == (1, 2)

    def test_equal_schemas_are_written_once(self):
        assert schema_of(str | Path) == {"type": "string"}
        assert built(Path | str, "a") == Path("a")
        assert built(str | Path, "a") == "a"

    def test_a_class_beside_anything_is_tried_first(self):
        assert Point(1) == built(Point | Any, {"x": 1})
        assert built(Point | Any, {"z": 1}) == {"z": 1}

    def test_a_recursive_class_is_recognised_deep_down(self):
        assert [Tree(1, [Tree(2)]), {"value": 1, "children": [{"value": "x"}]}] == built(
            list[Tree | dict[str, Any]],
            [{"value": 1, "children": [{"value": 2}]}, {"value": 1, "children": [{"value": "x"}]}],
        )

    def test_sets_are_recognised_by_being_unique(self):
        assert [{1, 2}, [1, 1]] == built(list[set[int] | list[int]], [[1, 2], [1, 1]])
        assert built(list[set[Any] | list[Any]], [[{"a": 1}, {"a": 1}]]) == [[{"a": 1}, {"a": 1}]]

    @pytest.mark.parametrize(
        ("keywords", "fitting", "other"),
        [
            ({"type": ["string", "null"]}, "a", 1),
            ({"multipleOf": 3}, 6, 7),
            ({"multipleOf": 0.5}, 1.5, 1.7),
            ({"minimum": 1, "exclusiveMaximum": 3}, 1, 3),
            ({"exclusiveMinimum": 1, "maximum": 3}, 3, 1),
            ({"const": [1, {"a": True}]}, [1.0, {"a": True}], [1, {"a": 1}]),
            ({"minProperties": 1, "maxProperties": 2}, {"a": 1}, {}),
            ({"minItems": 1, "maxItems": 2}, [1], []),
            ({"minLength": 1, "maxLength": 2}, "a", "aaa"),
            ({"pattern": "^a"}, "ab", "ba"),
        ],
    )
    def test_keywords_of_an_author_tell_options_apart(self, keywords, fitting, other):
        class Keyed(TypedDict):
            it: Annotated[Any, Schema(**keywords)]
            path: Path

        either = Keyed | dict[str, Any]

        assert {"it": fitting, "path": Path("p")} == built(either, {"it": fitting, "path": "p"})
        assert {"it": other, "path": "p"} == built(either, {"it": other, "path": "p"})

    def test_a_number_that_no_float_can_hold_is_an_error(self):
        def take(x: float): ...

        with pytest.raises(BuildError, match="a number that is not too large"):
            derive_input(take).build({"x": 10**400})

    def test_what_fits_nothing_is_an_error(self):
        derived = derive_input(taking(Point | Path))

        with pytest.raises(BuildError, match="fits none of the types"):
            derived.build({"x": 3})


def constraint(**words: Any) -> SimpleNamespace:
    """Stand for an object of annotated_types, which is known by its attributes."""
    return SimpleNamespace(**words)


class TestConstraints:
    @pytest.mark.parametrize(
        ("annotation", "limits"),
        [
            (Annotated[int, constraint(ge=1)], {"minimum": 1}),
            (Annotated[int, constraint(gt=1)], {"exclusiveMinimum": 1}),
            (Annotated[float, constraint(le=1.5)], {"maximum": 1.5}),
            (Annotated[float, constraint(lt=1)], {"exclusiveMaximum": 1}),
            (Annotated[int, constraint(multiple_of=5)], {"multipleOf": 5}),
            (Annotated[int, constraint(ge=1, gt=None, le=9, lt=None)], {"minimum": 1, "maximum": 9}),
            (Annotated[int, constraint(ge=1), constraint(ge=3), constraint(ge=2)], {"minimum": 3}),
            (Annotated[str, constraint(min_length=1)], {"minLength": 1}),
            (Annotated[str, constraint(min_length=0, max_length=9)], {"maxLength": 9}),
            (Annotated[list, constraint(min_length=1, max_length=2)], {"minItems": 1, "maxItems": 2}),
            (Annotated[dict, constraint(max_length=2)], {"maxProperties": 2}),
            (Annotated[int | None, constraint(ge=1)], {"minimum": 1}),
            (Annotated[int, constraint(metadata=[constraint(ge=1)])], {"minimum": 1}),
            (Annotated[str | list, constraint(max_length=1)], {"maxLength": 1, "maxItems": 1}),
            (Annotated[Address, constraint(min_length=2)], {"minProperties": 2}),
            (Annotated[str, Schema(pattern="^a", maxLength=3)], {"pattern": "^a", "maxLength": 3}),
            (Annotated[Any, Schema(type="string", enum=("a", "b"))], {"type": "string", "enum": ["a", "b"]}),
            (Annotated[UserId, Schema(examples=["u1"])], {"examples": ["u1"]}),
        ],
    )
    def test_become_keywords(self, annotation, limits):
        assert limits.items() <= schema_of(annotation).items()

    def test_of_annotated_types_are_understood(self):
        at = pytest.importorskip("annotated_types")

        assert schema_of(Annotated[int, at.Interval(ge=1, lt=9)]) == {
            "type": "integer",
            "minimum": 1,
            "exclusiveMaximum": 9,
        }
        assert schema_of(Annotated[str, at.Len(1, 5)]) == {"type": "string", "minLength": 1, "maxLength": 5}

    def test_of_an_item_stay_with_the_item(self):
        assert schema_of(list[Annotated[int, constraint(ge=1)]]) == {
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
        }

    def test_that_say_nothing_about_the_type_are_refused(self):
        assert "tool(x): found namespace(ge=1), which says nothing about" in refusal(Annotated[str, constraint(ge=1)])
        assert "write Schema(...)" in refusal(Annotated[int, constraint(ge=dt.date(2026, 1, 1))])
        assert "write Schema(...)" in refusal(Annotated[int, constraint(le=math.inf)])

    def test_unknown_metadata_is_ignored(self):
        assert schema_of(Annotated[int, object(), int, constraint(unit="m")]) == {"type": "integer"}

    def test_a_schema_says_its_keywords_in_json(self):
        assert "but a complex has no JSON form; write keywords" in refusal(Annotated[str, Schema(default=1j)])

    def test_a_schema_is_a_value(self):
        assert Schema(enum=["a"]) == Schema(enum=["a"])
        assert Schema(enum=["a"]) != Schema(enum=["b"])
        assert hash(Schema(enum=["a"])) == hash(Schema(enum=["a"]))

    def test_a_schema_may_stand_in_a_union(self):
        assert schema_of(
            Optional[Annotated[str, Schema(enum=["a"])]]  # noqa: UP045
        ) == {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}

    @pytest.mark.parametrize(
        ("tp", "validator", "limits"),
        [
            (int, validators.ge(1), {"minimum": 1}),
            (int, validators.gt(1), {"exclusiveMinimum": 1}),
            (int, validators.le(1), {"maximum": 1}),
            (int, validators.lt(1), {"exclusiveMaximum": 1}),
            (str, validators.min_len(1), {"minLength": 1}),
            (list[int], validators.max_len(2), {"maxItems": 2}),
            (int, [validators.ge(1), validators.lt(9)], {"minimum": 1, "exclusiveMaximum": 9}),
            (int, validators.in_([3, 1]), {"enum": [3, 1]}),
            (str, validators.in_({"b", "a"}), {"enum": ["a", "b"]}),
            (Any, validators.optional(validators.in_([3, 1])), {"enum": [3, 1, None]}),
            (int | None, validators.optional(validators.ge(1)), {"minimum": 1}),
            (str, validators.matches_re("a+"), {"pattern": "^(?:a+)$"}),
            (str, validators.matches_re("a+", func=re.search), {"pattern": "a+"}),
            (str, validators.matches_re("a+", func=re.match), {"pattern": "^(?:a+)"}),
        ],
    )
    def test_of_attrs_validators_become_keywords(self, tp, validator, limits):
        cls = attrs.make_class("Checked", {"a": attrs.field(type=tp, validator=validator)})

        assert limits.items() <= schema_of(cls)["properties"]["a"].items()

    @pytest.mark.parametrize(
        ("tp", "validator"),
        [
            (str, validators.matches_re("a", re.IGNORECASE)),
            (str, validators.matches_re("(?P<name>a)")),
            (str, validators.matches_re(r"\Aa\Z")),
            (str, validators.in_("abc")),
            (str, validators.not_(validators.in_(["a"]))),
            (str, validators.in_([object()])),
            (str, lambda *_: None),
            (Decimal, validators.ge(0)),
            (Color, validators.in_([Color.RED])),
        ],
    )
    def test_of_attrs_validators_that_json_schema_can_not_say_are_left_to_attrs(self, tp, validator):
        checked = attrs.make_class("Checked", {"a": attrs.field(type=tp, validator=validator)})
        free = attrs.make_class("Checked", {"a": attrs.field(type=tp)})

        assert schema_of(free) == schema_of(checked)


class TestDefaults:
    @pytest.mark.parametrize(
        ("annotation", "default", "json"),
        [
            (int | None, None, None),
            (str, "a", "a"),
            (bool, False, False),
            (float, 1.5, 1.5),
            (list[int], [1], [1]),
            (Sequence[int], (1, 2), [1, 2]),
            (tuple[int, ...], (1, 2), [1, 2]),
            (dict[str, int], {"a": 1}, {"a": 1}),
            (Color, Color.RED, "red"),
            (Level, Level.LOW, 1),
            (Literal["a"], "a", "a"),
            (str, Mood.GOOD, "good"),
            (Point, Point(1), {"x": 1, "y": 0}),
            (Span, Span(1), {"start": 1, "stop": None, "tags": []}),
            (Pair, Pair(1), {"left": 1, "right": "here"}),
            (Address, {"street": "a"}, {"street": "a"}),
            (Path, Path("a"), "a"),
            (set[str], {"b", "a"}, ["a", "b"]),
            (dt.date, dt.date(2026, 1, 31), "2026-01-31"),
            (dt.datetime, dt.datetime(2026, 1, 31, tzinfo=dt.UTC), "2026-01-31T00:00:00+00:00"),
            (dt.timedelta, dt.timedelta(hours=30), "P1DT21600S"),
            (Decimal, Decimal("1.50"), "1.50"),
            (bytes, b"\x00", "AA=="),
            (Any, {"a": [Point(1)]}, {"a": [{"x": 1, "y": 0}]}),
        ],
    )
    def test_that_have_a_json_form_are_in_the_schema(self, annotation, default, json):
        schema = schema_of(annotation, default)

        assert json == schema["default"]
        assert type(json) is type(schema["default"])

    @pytest.mark.parametrize(
        ("annotation", "default"),
        [
            (Any, object()),
            (Any, int),
            (float, math.nan),
            (float, math.inf),
            (dict, {1: 2}),
            (Any, Growing),
        ],
    )
    def test_that_have_none_are_left_out(self, annotation, default):
        derived = derive_input(taking(annotation, default)).schema

        assert "default" not in derived["properties"]["x"]
        assert "required" not in derived

    @pytest.mark.parametrize(
        ("annotation", "default"),
        [
            (int, None),
            (Point, None),
            (int, "1"),
            (int, True),
            (dt.datetime, dt.datetime(2026, 1, 31)),
            (Decimal, Decimal("NaN")),
            (Literal["a"], "b"),
            (list[int], ["a"]),
            (Annotated[str, Schema(maxLength=1)], "ab"),
            (Annotated[float, Schema(multipleOf=0.5)], 0.7),
            (Annotated[float, Schema(multipleOf=0.5)], 10**400),
            (Address, {"street": "a", "planet": "b"}),
            (dict[Literal["a"], int], {"b": 1}),
        ],
    )
    def test_that_contradict_their_type_are_left_to_python(self, annotation, default):
        assert "default" not in schema_of(annotation, default)

    def test_that_contain_themselves_are_left_out(self):
        loop: list[Any] = []
        loop.append(loop)

        assert "default" not in schema_of(list, loop)

    def test_are_checked_in_spite_of_a_pattern_that_python_does_not_know(self):
        schema = derive_input(taking(Annotated[str, Schema(pattern=r"^\p{L}$")], "a")).schema

        assert schema["properties"]["x"]["default"] == "a"


class Plain(str):
    __slots__ = ()


class TestToPlain:
    @pytest.mark.parametrize("value", [1, "a", None, True, 1.5, [1], {"a": 1}])
    def test_json_is_json(self, value):
        assert value == to_plain(value)

    def test_a_string_of_another_class_becomes_a_plain_one(self):
        assert type(to_plain(Plain("a"))) is str
        assert type(next(iter(to_plain({Plain("a"): 1})))) is str

    def test_a_duration_keeps_its_fraction(self):
        assert to_plain(dt.timedelta(seconds=1, microseconds=500)) == "PT1.0005S"
        assert to_plain(dt.timedelta()) == "PT0S"

    def test_a_negative_duration_has_no_form(self):
        with pytest.raises(ValueError, match="negative duration"):
            to_plain(dt.timedelta(-1))

    def test_a_model_dumps_itself(self):
        class Model:
            def model_dump(self, mode):
                return {"mode": mode}

        assert to_plain(Model()) == {"mode": "json"}

    def test_anything_else_has_no_form(self):
        with pytest.raises(TypeError, match="a complex has no JSON form"):
            to_plain(1j)


class TestBuildErrors:
    @pytest.mark.parametrize(
        ("annotation", "value", "message"),
        [
            (dt.datetime, "soon", "expected a date and time such as 2026-01-31T09:30:00Z, got 'soon'"),
            (dt.datetime, "2026-12-31T23:59:60Z", "expected a date and time"),
            (dt.timedelta, "P1Y", "expected a duration in weeks, days or less, such as P1DT12H, got 'P1Y'"),
            (dt.timedelta, "P99999999999D", "expected a duration"),
            (bytes, "***", "expected base64"),
            (uuid.UUID, "x" * 100, "expected a UUID, got 'xxxx"),
            (Decimal, "x", "expected a decimal number"),
            (Color, "green", "expected one of 'red', 'blue'"),
            (Color, [], "expected one of 'red', 'blue'"),
            (set[list[int]], [[1]], "can't be a set: unhashable type: 'list'"),
        ],
    )
    def test_say_what_was_expected(self, annotation, value, message):
        with pytest.raises(BuildError) as caught:
            derive_input(taking(annotation)).build({"x": value})

        assert caught.value.message.startswith(message)
        assert len(caught.value.message) < 160

    @pytest.mark.parametrize(
        ("annotation", "value", "path"),
        [
            (list[dt.date], ["2026-01-31", "x"], ("x", 1)),
            (tuple[int, dt.date], [1, "x"], ("x", 1)),
            (dict[str, dt.date], {"a": "x"}, ("x", "a")),
            (dt.date | None, "x", ("x",)),
        ],
    )
    def test_say_where(self, annotation, value, path):
        with pytest.raises(BuildError) as caught:
            derive_input(taking(annotation)).build({"x": value})

        assert path == caught.value.path


class TestRefusals:
    @pytest.mark.parametrize(
        ("annotation", "found", "instead"),
        [
            (Callable[[int], int], "Callable", "a Literal of names"),
            (typing.Callable, "Callable", "a Literal of names"),
            (type, "the class 'type'", "a Literal or an Enum of names"),
            (type[int], "the class 'type'", "a Literal or an Enum of names"),
            (types, "module 'types'", "a type of that module"),
            (Iterator[int], "Iterator", "list[...]"),
            (complex, "the class 'complex'", "an attrs class, a dataclass or a TypedDict"),
            (collections.Counter, "the class 'Counter'", "an attrs class"),
            (re.Pattern, "the class 'Pattern'", "an attrs class"),
            (5, "found 5", "an attrs class"),
            ([int], "found [<class 'int'>]", "an attrs class"),
            (typing.NoReturn, "NoReturn", "an attrs class"),
            (Union, "typing.Union", "int | str"),
            (dict[int, str], "dict[int, str]", "write dict[str, ...]"),
            (dict[Color, str], "dict[", "write dict[str, ...]"),
            (Mapping[Any, str], "Mapping", "write dict[str, ...]"),
            (Literal[b"a"], "Literal[b'a']", "write strings or numbers"),
            (Self, "Self outside of a class", "the name of the class"),
            (tuple[int, *tuple[str, ...]], "tuple[int, *tuple", "a tuple of one length"),
            (enum.Enum("Empty", []), "'Empty'", "an Enum with members"),
            (enum.Flag("Bits", ["A", "B"]), "'Bits'", "an Enum with members"),
            (enum.Enum("Pairs", {"A": (1, 2)}), "found (1, 2)", "a string or a number as its value"),
            (enum.Enum("Odd", {"A": 1j}), "found 1j", "a string or a number as its value"),
            ("Missing", "'Missing' can't be resolved (name 'Missing' is not defined)", "import"),
            ("list[", "can't be resolved", "import"),
            ("1 / 0", "division by zero", "import"),
            ("itself", "found the text 'itself'", "write a type"),
        ],
    )
    def test_say_what_was_found_and_what_to_write(self, annotation, found, instead):
        function = taking(annotation)
        function.__globals__["itself"] = "itself"

        with pytest.raises(ToolDefinitionError) as caught:
            derive_input(function)

        assert str(caught.value).startswith("tool(x): ")
        assert found in str(caught.value)
        assert instead in str(caught.value)

    def test_name_the_path_to_the_type(self):
        @attrs.frozen
        class Filter:
            range: range

        def search(query: str, filters: list[dict[str, tuple[int, Filter]]]): ...

        with pytest.raises(
            ToolDefinitionError, match=r"^search\(filters\[\]\.\*\[1\]\.range\): found the class 'range'"
        ):
            derive_input(search)

    def test_carry_the_function_and_the_parameter(self):
        with pytest.raises(ToolDefinitionError) as caught:
            derive_input(taking(list[complex]))

        assert (caught.value.function, caught.value.parameter) == ("tool", "x[]")
        assert isinstance(caught.value, AgentOSError)
        assert isinstance(caught.value, TypeError)

    def test_a_parameter_has_an_annotation(self):
        def search(query): ...

        with pytest.raises(ToolDefinitionError, match=r"^search\(query\): has no annotation; write .*query: str"):
            derive_input(search)

    def test_a_field_has_an_annotation(self):
        assert "tool(x.a): has no annotation" in refusal(collections.namedtuple("P", "a"))  # noqa: PYI024
        assert "tool(x.a): has no annotation" in refusal(attrs.make_class("A", ["a"]))

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("def f(*args: int): ...", r"^f\(args\): found \*args; .* list"),
            ("def f(a: int, **kwargs: int): ...", r"^f\(kwargs\): found \*\*kwargs; .* dict"),
            ("def f(a: int, /, b: int): ...", r"^f\(a\): found a positional-only parameter; .* take the / away"),
        ],
    )
    def test_every_argument_has_a_name(self, source, message):
        scope: dict[str, Any] = {}
        exec(source, scope)

        with pytest.raises(ToolDefinitionError, match=message):
            derive_input(scope["f"])

    @pytest.mark.parametrize("thing", [Point, 5, "text", min])
    def test_only_functions_have_parameters(self, thing):
        with pytest.raises(ToolDefinitionError):
            derive_input(thing)

    def test_an_abstract_class_can_not_be_made(self):
        @attrs.frozen
        class Shape(abc.ABC):
            a: int

            @abc.abstractmethod
            def area(self): ...

        assert "'Shape', which is abstract" in refusal(Shape)

    def test_a_name_inside_a_generic_is_resolved_or_named(self):
        assert "tool(x): list['Missing'] can't be resolved" in refusal(Page[list["Missing"]])  # noqa: F821


class TestOutput:
    @pytest.mark.parametrize(
        ("annotation", "schema"),
        [
            (None, {"type": "null"}),
            (int, {"type": "integer"}),
            ("int", {"type": "integer"}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (Iterator[int], {"type": "array", "items": {"type": "integer"}}),
            (Generator[int, None, str], {"type": "array", "items": {"type": "integer"}}),
            (AsyncIterator[int], {"type": "array", "items": {"type": "integer"}}),
            ("Iterator[int]", {"type": "array", "items": {"type": "integer"}}),
            (Iterator, {"type": "array"}),
            (Iterator[Any], {"type": "array"}),
            (Awaitable[int], {"type": "integer"}),
            (Coroutine[Any, Any, int], {"type": "integer"}),
            (Any, None),
            ("Any", None),
            (object, None),
            (ToolResult, None),
            ("ToolResult", None),
            ("agentos.ToolResult | int", None),
            (ToolResult | int, None),
            (Annotated[ToolResult, "x"], None),
            (Annotated[int, "How many"], {"type": "integer", "description": "How many"}),
        ],
    )
    def test_is_what_the_annotation_says(self, annotation, schema):
        def tool(): ...

        tool.__annotations__ = {"return": annotation}

        assert schema == derive_output(tool)

    def test_is_unknown_without_annotation(self):
        def tool(): ...

        assert derive_output(tool) is None

    def test_of_a_class_that_contains_itself_is_a_reference(self):
        async def tool() -> Tree: ...

        schema = derive_output(tool)

        assert schema["$ref"] == "#/$defs/Tree"
        assert jsonschema_rs.validator_for(schema, offline=True).is_valid(to_plain(Tree(1, [Tree(2)])))

    def test_of_a_method_is_its_annotation(self):
        class Calculator:
            def add(self) -> int: ...

        assert derive_output(Calculator().add) == {"type": "integer"}

    def test_of_a_pydantic_model_is_what_it_serialises(self):
        class Model:
            @classmethod
            def model_json_schema(cls, mode):
                return {"const": mode}

        def tool() -> Model: ...

        assert derive_output(tool) == {"const": "serialization"}

    def test_that_has_no_json_form_is_refused(self):
        def tool() -> dict[str, range]: ...

        with pytest.raises(ToolDefinitionError, match=r"^tool\(return\.\*\): found the class 'range'"):
            derive_output(tool)


GOOGLE = """Find books.

    Looks at titles
    and authors.

    Note: slow.

    Args:
        query (str): What to look for,
            in any language.
        limit: How many.

    Returns:
        The books.
    """

NUMPY = """Find books.

    Looks at titles
    and authors.

    Note: slow.

    Parameters
    ----------
    query : str
        What to look for,
        in any language.
    limit : int, optional
        How many.

    Returns
    -------
    list
        The books.
    """

REST = """Find books.

    Looks at titles
    and authors.

    Note: slow.

    :param query: What to look for,
        in any language.
    :param int limit: How many.
    :returns: The books.
    """

EPYDOC = """Find books.

    Looks at titles
    and authors.

    Note: slow.

    @param query: What to look for,
        in any language.
    @param limit: How many.
    @return: The books.
    """


class TestDocs:
    @pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST, EPYDOC], ids=["google", "numpy", "rest", "epydoc"])
    def test_are_read_in_every_style(self, text):
        def search(query: str, limit: int = 3): ...

        search.__doc__ = text
        docs = describe(search)

        assert docs.short == "Find books."
        assert docs.long == "Looks at titles\nand authors.\n\nNote: slow."
        assert docs.parameters == {"query": "What to look for, in any language.", "limit": "How many."}

    def test_become_descriptions_of_the_parameters(self):
        def search(query: str, limit: int = 3): ...

        search.__doc__ = GOOGLE

        assert derive_input(search).schema["properties"]["limit"] == {
            "type": "integer",
            "description": "How many.",
            "default": 3,
        }

    def test_are_one_text_for_the_model(self):
        def search():
            """Find.

            More.
            """

        assert describe(search).description == "Find.\n\nMore."

    def test_of_one_line_are_short(self):
        def search():
            """Find."""

        docs = describe(search)

        assert (docs.short, docs.long, docs.description) == ("Find.", "", "Find.")

    def test_may_have_a_first_sentence_of_two_lines(self):
        def search():
            """Find what is written
            in books.
            """

        assert describe(search).short == "Find what is written in books."

    def test_may_be_missing(self):
        def search(): ...

        assert describe(search).description == ""

    def test_of_several_parameters_at_once_belong_to_each(self):
        def move(x: int, y: int):
            """Move.

            Parameters
            ----------
            x, y : int
                Steps.
            """

        assert describe(move).parameters == {"x": "Steps.", "y": "Steps."}

    def test_that_can_not_be_parsed_are_left_alone(self):
        def search(query: str):
            """Find.

            :param:
            """

        assert describe(search).short == "Find."
        assert describe(search).parameters == {}

    def test_that_only_mention_arguments_are_prose(self):
        def search():
            """Find.

            The Args: are many, and Parameters too.
            """

        assert describe(search).long == "The Args: are many, and Parameters too."

    @pytest.mark.parametrize(
        "annotation",
        [
            Annotated[str, "What to look for"],
            Annotated[str, 5, "What to look for", "or not"],
            Annotated[str, typing_extensions.Doc("What to look for")],
            Annotated[str, SimpleNamespace(description="What to look for")],
            "Annotated[str, 'What to look for']",
            "Query",
        ],
    )
    def test_in_annotated_win_over_the_docstring(self, annotation):
        function = taking(annotation)
        function.__doc__ = "Find.\n\nArgs:\n    x: Something else\n"
        function.__globals__.update(Annotated=Annotated, Query=Annotated[str, "What to look for"])

        assert describe(function).parameters == {"x": "What to look for"}
        assert derive_input(function).schema["properties"]["x"]["description"] == "What to look for"

    def test_of_a_type_that_can_not_be_resolved_are_left_to_the_docstring(self):
        assert describe(taking("Annotated[Missing, 'text']")).parameters == {}

    def test_of_a_field_come_from_annotated(self):
        @dataclasses.dataclass
        class Query:
            """Ask.

            :param text: Something else
            """

            text: Annotated[str, "What to look for"]

        assert schema_of(Query)["properties"]["text"]["description"] == "What to look for"

    def test_of_a_partial_are_those_of_its_function(self):
        def search(a: int, b: int):
            """Find."""

        assert describe(functools.partial(search, 1)).short == "Find."

    def test_cost_no_import_without_sections(self):
        code = (
            "import sys; from agentos.schema.signature import describe, derive_input\n"
            "def f(a: int):\n    'Add.'\n"
            "describe(f); derive_input(f)\n"
            "print([name for name in ('docstring_parser', 'cattrs', 'jsonschema') if name in sys.modules])"
        )

        assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"[]\n"
