"""The work of checking has an end: schemas and values that would take without end are answered, or refused."""

import json
import subprocess
import sys
import textwrap

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos import PUBLIC, AgentOS, ExtensionPack, ToolCall, tool
from agentos.errors import ToolDefinitionError
from agentos.schema.bounded import weigh
from agentos.schema.cost import Steps, cost_of
from agentos.schema.defaults import FILLED_LIMIT
from agentos.schema.validation import BadArguments, Checker, compile_schema
from agentos.schema.work import WORK_LIMIT, TooMuchWorkError, Work
from agentos.workflows.definition_checks import _of_arguments

FEW_SECONDS = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
"""


def answered(script):
    """Run *script* with 20 seconds of CPU and 2 GB, where without bounds it takes minutes; return what it prints."""
    whole = FEW_SECONDS + textwrap.dedent(script)
    ran = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


def branch(**more):
    return {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}, **more}, "required": ["c"]}


RECURSIVE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"anyOf": [branch(k={"const": "a"}), branch(k={"const": "b"}), {"type": "integer"}]}},
}


def nested(depth, leaf):
    for _ in range(depth):
        leaf = {"c": leaf}
    return leaf


def doubled(levels, word, last):
    """Return definitions of which each refers to the next one twice."""
    definitions = {
        f"d{level}": {word: [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
        for level in range(levels)
    }
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**definitions, f"d{levels}": last}}


def refusal(schema, arguments):
    with pytest.raises(BadArguments) as caught:
        Checker(schema, "w").arguments(arguments)
    return str(caught.value), caught.value.problems


# -- what the host was frozen with ---------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [14, 20, 60])
def test_a_recursive_union_is_refused_at_once_however_deep_its_value_is(depth):
    printed = answered(f"""
        import json
        from agentos.schema.validation import BadArguments, Checker
        schema = json.loads({json.dumps(RECURSIVE)!r})
        value = json.loads({json.dumps({"root": nested(depth, "x")})!r})
        try:
            Checker(schema, "w").arguments(json.dumps(value))
        except BadArguments as error:
            print(len(error.problems))
    """)

    assert int(printed) >= 1


def test_what_is_wrong_deep_in_a_recursive_union_is_told():
    _, (problem,) = refusal(RECURSIVE, {"root": nested(10, "x")})

    assert problem.path == "$.root" + ".c" * 10
    assert problem.message.startswith('expected an object or an integer, got a string "x"')


def test_a_recursive_value_that_fits_is_taken_at_any_depth():
    arguments = {"root": nested(60, 1)}

    assert Checker(RECURSIVE, "w").arguments(json.dumps(arguments)) == arguments


def test_types_that_contain_each_other_are_checked_and_built_at_once():
    printed = answered("""
        import attrs
        from agentos.schema.build import BuildError
        from agentos.schema.signature import Signature
        from agentos.schema.validation import Checker

        @attrs.frozen
        class Leaf:
            left: "Node | None" = None
            size: int = 0

            def __attrs_post_init__(self):
                raise ValueError("never")

        @attrs.frozen
        class Twig:
            left: "Node | None" = None
            size: int = 0

            def __attrs_post_init__(self):
                if self.size < 0:
                    raise ValueError("too small")

        Node = Leaf | Twig

        def climb(node: "Node"): ...

        derived = Signature.of(climb).input()
        value = {"size": -1}
        for _ in range(40):
            value = {"left": value}
        try:
            derived.build(Checker(derived.schema, "w").arguments({"node": value}))
        except BuildError as error:
            print(error.message)
    """)

    assert "refuses it" in printed


CLASSES = [f"C{number}" for number in range(16)]


def class_of(name):
    child = {"anyOf": [{"$ref": f"#/$defs/{one}"} for one in CLASSES]}
    properties = {"left": child, "right": child, "kind": {"const": name}, "size": {"type": "integer", "default": 1}}
    return {"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False}


CLASSES_IN_CLASSES = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/C0"}},
    "$defs": {name: class_of(name) for name in CLASSES},
}


def expression(depth, leaf):
    for level in range(depth):
        leaf = {"kind": CLASSES[(depth - 1 - level) % len(CLASSES)], "left": leaf}
    return leaf


def test_many_classes_that_contain_each_other_are_checked_and_filled():
    filled = Checker(CLASSES_IN_CLASSES, "w").arguments({"node": expression(30, {"kind": "C3"})})

    assert json.dumps(filled).count('"size": 1') == 31


def test_what_is_wrong_in_many_classes_that_contain_each_other_is_told():
    _, problems = refusal(CLASSES_IN_CLASSES, {"node": expression(4, {"kind": "C3", "siz": 1})})

    assert "did you mean 'size'?" in problems[0].message
    assert problems[0].path == "$.node.left.left.left.left.siz"


def test_defaults_that_double_stop_at_the_limit():
    levels = {
        f"d{level}": {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/d{level + 1}", "default": {}} for side in "lr"},
        }
        for level in range(18)
    }
    properties = {"x": {"$ref": "#/$defs/d0", "default": {}}}
    schema = {"type": "object", "properties": properties, "$defs": {**levels, "d18": {"type": "object"}}}

    message, _ = refusal(schema, "{}")

    assert message.startswith("filling in the defaults of the schema takes too much work")
    assert f"{FILLED_LIMIT:,}" in message


def test_defaults_up_to_the_limit_are_filled_in():
    schema = {"type": "object", "properties": {"x": {"type": "array", "default": [0] * (FILLED_LIMIT - 1)}}}

    assert len(Checker(schema, "w").arguments({})["x"]) == FILLED_LIMIT - 1


def test_one_default_beyond_the_limit_is_refused():
    schema = {"type": "object", "properties": {"x": {"type": "array", "default": [0] * FILLED_LIMIT}}}

    assert "too much work" in refusal(schema, {})[0]


@tool(effect="read", required_access=PUBLIC, output_schema=RECURSIVE)
async def grow(depth: int, leaf: str = "x") -> dict:
    """Grow."""
    return {"root": nested(depth, leaf)}


@tool(
    effect="read",
    required_access=PUBLIC,
    output_schema={
        "type": "object",
        "properties": {"x": {"type": "array", "items": {"enum": [n + 0.5 for n in range(400)]}}},
    },
)
async def spread(count: int) -> dict:
    """Spread."""
    return {"x": [399.5] * count}


async def output_of(function, **arguments):
    async with AgentOS(mode="auto") as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[function]))
        return await host.tools.process_tool_call(ToolCall(function.name, arguments))


async def test_an_output_that_does_not_fit_a_recursive_schema_is_refused_at_once():
    result = await output_of(grow, depth=40)

    assert result.error.type == "InvalidOutput"


async def test_an_output_that_takes_too_much_work_is_refused_and_the_result_says_that_the_tool_ran():
    result = await output_of(spread, count=1_000)

    assert result.error.type == "InvalidOutput"
    assert result.error.message.startswith("the tool did run, but checking its output")


async def test_an_output_that_takes_little_work_is_taken():
    assert (await output_of(spread, count=3)).output == {"x": [399.5] * 3}


# -- refused when it is registered ---------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
def test_references_that_double_without_end_are_refused_at_registration(word):
    with pytest.raises(ToolDefinitionError, match="a single value could take"):
        compile_schema(doubled(22, word, {"type": "string"}), "w")


@pytest.mark.parametrize("word", ["allOf", "anyOf"])
def test_references_that_double_a_few_times_are_checked(word):
    schema = doubled(8, word, {"type": "string", "minLength": 2})

    assert Checker(schema, "w").arguments({"x": "ab"}) == {"x": "ab"}
    assert "at least 2 characters" in str(refusal(schema, {"x": "a"})[1][0])


def test_unevaluated_inside_of_unevaluated_is_refused_at_registration():
    schema = {"type": "object", "properties": {"a": True}}
    for _ in range(18):
        schema = {"type": "object", "anyOf": [schema, {"maxProperties": 0}], "unevaluatedProperties": False}

    with pytest.raises(ToolDefinitionError, match="a single value could take"):
        compile_schema(schema, "w")


def test_a_chain_of_references_without_end_is_refused_at_registration():
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3_000)}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**chain, "d3000": True}}

    with pytest.raises(ToolDefinitionError, match="nested too deep"):
        Checker(schema, "w")


def test_patterns_that_take_long_to_compile_are_refused_at_registration():
    patterns = [{"pattern": f"({n}\\w{{1,100}}x?){{1,100}}"} for n in range(200)]

    with pytest.raises(ToolDefinitionError, match="too much work"):
        compile_schema({"type": "object", "properties": {"x": {"allOf": patterns}}}, "w")


def test_a_type_that_doubles_without_end_is_refused():
    printed = answered("""
        from agentos.errors import ToolDefinitionError
        from agentos.schema.signature import Signature

        def climb(x): ...

        climb.__annotations__["x"] = int
        for _ in range(40):
            climb.__annotations__["x"] = tuple[climb.__annotations__["x"], climb.__annotations__["x"]]
        try:
            Signature.of(climb).input()
        except ToolDefinitionError as error:
            print(error)
    """)

    assert "more than 20,000 types" in printed


# -- refused when it is called -------------------------------------------------------------------------------------

COSTLY = "[01]*1[01]{500}x"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "pattern": COSTLY}, "01" * 50_000),
        ({"type": "array", "items": {"pattern": COSTLY}}, ["01" * 50] * 1_000),
        ({"type": "array", "items": {"pattern": "^(?=(a+)+b)(a+)+c$"}}, ["a" * 40] * 2_000),
        ({"type": "object", "patternProperties": {COSTLY: True}}, {"01" * 5_000 + str(n): 1 for n in range(20)}),
        ({"type": "array", "items": {"enum": [n + 0.5 for n in range(400)]}}, [399.5] * 1_000),
        ({"type": "array", "contains": {"allOf": [{"const": n} for n in range(1_000)]}}, [0] * 50_000),
        ({"type": "array", "items": {"minimum": 5}}, [10**4200] * 230),
    ],
    ids=["pattern", "patterns", "lookaround", "keys", "enum", "contains", "integers"],
)
def test_what_takes_too_much_work_is_refused_before_it_begins(schema, value):
    message, _ = refusal({"type": "object", "properties": {"x": schema}}, {"x": value})

    assert message.startswith("checking these arguments takes too much work: send less at once")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "pattern": COSTLY}, "1" + "0" * 500 + "x"),
        ({"type": "array", "items": {"pattern": r"^[\w.-]{1,255}$"}}, ["name.of-some_thing"] * 10_000),
        ({"type": "string", "pattern": r"\S"}, "word " * 150_000),
        ({"type": "array", "uniqueItems": True, "items": {"type": "integer"}}, list(range(100_000))),
        ({"type": "array", "items": {"enum": [f"x{n}" for n in range(5_000)]}}, ["x4999"] * 50_000),
        ({"type": "array", "items": {"enum": list(range(5_000))}}, [4_999] * 50_000),
        ({"type": "array", "contains": {"const": 5}}, list(range(100_000))),
    ],
    ids=["pattern", "plain patterns", "short pattern", "unique", "texts", "numbers", "contains"],
)
def test_large_values_of_plain_schemas_are_taken(schema, value):
    arguments = {"x": value}

    assert Checker({"type": "object", "properties": {"x": schema}}, "w").arguments(json.dumps(arguments)) == arguments


def test_text_beside_a_costly_pattern_may_be_long():
    properties = {"name": {"type": "string", "pattern": COSTLY}, "content": {"type": "string"}}
    arguments = {"name": "1" + "0" * 500 + "x", "content": "y" * 900_000}

    assert Checker({"type": "object", "properties": properties}, "w").arguments(arguments) == arguments


# -- work is counted ------------------------------------------------------------------------------------------------


def test_work_ends_after_the_last_step():
    work = Work(2)
    work.spend(2)

    with pytest.raises(TooMuchWorkError):
        work.spend(1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, (1, 0, 0, 1)),
        ({"a": [1, "xy"]}, (4, 0, 0, 3)),
        ([2**128], (2 + 129**2 // 6_000, 0, 0, 2)),
    ],
)
def test_a_value_is_as_large_as_its_parts(value, expected):
    assert weigh(value) == expected


@pytest.mark.parametrize(
    ("names", "characters", "texts"), [({"a"}, 2, 1), ({"[]"}, 3, 1), ({"*"}, 2 + 3 + 2, 2 + 2), ({"z"}, 0, 0)]
)
def test_text_counts_where_it_has_a_pattern(names, characters, texts):
    size = weigh({"a": "xy", "b": ["uvw"]}, frozenset(names))

    assert (size.characters, size.texts) == (characters, texts)


names = st.sampled_from(["a", "b", "c"])


def keywords(inner):
    some = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b", "#"]),
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "properties": st.dictionaries(names, inner, max_size=2),
            "additionalProperties": inner,
            "required": st.lists(names, max_size=2, unique=True),
            "items": inner,
            "contains": inner,
            "type": st.sampled_from(["object", "array", "integer"]),
        },
    )


bodies = st.recursive(st.sampled_from([{"type": "integer"}, {"type": "object"}, {}]), keywords, max_leaves=6)
documents = st.fixed_dictionaries(
    {"$defs": st.fixed_dictionaries({"a": bodies, "b": bodies}), "anyOf": st.lists(bodies, min_size=1, max_size=3)}
)
values = st.recursive(
    st.sampled_from([0, 1, "x", None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=8,
)


def reference_says(schema, value):
    """Return what the reference says; None of a schema that leads it into itself without end."""
    try:
        return jsonschema.Draft202012Validator(schema).is_valid(value)
    except BaseException as error:
        if type(error).__name__ not in (
            "RecursionError",
            "PanicException",
        ):  # its parts in Rust panic
            raise
        return None


@settings(max_examples=examples(150), deadline=None)
@given(documents, values)
def test_random_recursive_schemas_are_within_the_work_and_mean_what_the_reference_says(schema, value):
    try:
        validator = compile_schema(schema, "w")
    except ToolDefinitionError:
        return
    if validator.work_of(value) > WORK_LIMIT:
        with pytest.raises(TooMuchWorkError):
            validator.is_valid(value)
        return
    expected = reference_says(schema, value)

    assert expected is None or validator.is_valid(value) == expected


@settings(max_examples=examples(150), deadline=None)
@given(documents, values)
def test_whatever_does_not_fit_has_an_error_within_the_value(schema, value):
    try:
        validator = compile_schema(schema, "w")
        if validator.is_valid(value):
            return
    except (ToolDefinitionError, TooMuchWorkError):
        return

    for error in (found := list(validator.iter_errors(value))):
        inner = value
        for part in error.instance_path:
            inner = inner[part]
    assert found


# -- unions ----------------------------------------------------------------------------------------------------------

CIRCLE = {"title": "Circle", "type": "object", "properties": {"radius": {"type": "number"}}, "required": ["radius"]}
BOX = {
    "type": "object",
    "properties": {"width": {"type": "number"}, "height": {"type": "number"}},
    "required": ["width", "height"],
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"width": 1}, "$.x.height: missing; expected a number (of the nearest of 2 shapes, number 2)"),
        ({"radius": "1"}, '$.x.radius: expected a number, got a string "1" (of the nearest of 2 shapes, Circle)'),
        (5, "$.x: expected an object, got an integer 5"),
    ],
)
def test_a_union_of_objects_names_the_shape_that_came_nearest_and_what_it_lacks(value, expected):
    closed = [{**one, "additionalProperties": False} for one in (CIRCLE, BOX)]
    _, problems = refusal({"type": "object", "properties": {"x": {"anyOf": closed}}}, {"x": value})

    assert [str(one) for one in problems] == [expected]


def test_a_schema_that_is_used_twice_leads_nowhere_back():
    shared = {"$ref": "#/$defs/name"}
    schema = {"type": "object", "properties": {"a": shared, "b": shared}, "$defs": {"name": {"type": "string"}}}

    assert not cost_of(schema, Work()).is_recursive


def test_a_schema_that_refers_to_itself_leads_back():
    assert cost_of({"type": "object", "properties": {"a": {"$ref": "#"}}}, Work()).is_recursive


def test_a_whole_number_is_an_int_where_that_is_all_there_is_to_complete():
    arguments = Checker({"type": "object", "properties": {"count": {"type": "integer"}}}, "w").arguments({"count": 2.0})

    assert type(arguments["count"]) is int


def test_the_limit_of_defaults_is_what_the_security_page_says():
    assert FILLED_LIMIT == 10_000


def test_steps_are_counted_each_by_itself():
    assert Steps(1, 2, 3).plus(Steps(10, 20, 30)) == Steps(11, 22, 33)
    assert Steps(5, 1, 1).or_(Steps(1, 6, 2)) == Steps(5, 6, 2)
    assert Steps(1, 2, 3).times(2) == Steps(2, 4, 6)


# -- where schemas are read but not checked ----------------------------------------------------------------------------


def referring_to_itself(word, times=10):
    """Return a small schema of which each part refers to itself *times* times."""
    return {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {word: [{"$ref": "#/$defs/n"}] * times}},
    }


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
def test_a_form_of_a_schema_that_refers_to_itself_is_made_at_once(word):
    schemas = [referring_to_itself(word), RECURSIVE, doubled(14, word, {"type": "string"})]
    printed = answered(f"""
        import json
        from agentos.studio.forms.form_fields import form_of
        for schema in json.loads({json.dumps(schemas)!r}):
            for value in ({{}}, {{"x": {{"c": {{"c": 1}}}}}}, json.loads({json.dumps({"root": nested(30, "x")})!r})):
                print(form_of(schema, value).path)
    """)

    assert printed.split() == ["$"] * 9


def test_a_way_into_a_schema_that_refers_to_itself_is_looked_at_at_once():
    schemas = [referring_to_itself("anyOf"), referring_to_itself("oneOf", 100), doubled(12, "anyOf", {"type": "null"})]
    printed = answered(f"""
        import json
        from agentos.workflows.schema_paths import fault_of_path
        from agentos.workflows.task_references import Reference
        for schema in json.loads({json.dumps(schemas)!r}):
            print(fault_of_path(schema, ("x", "y", "z"), Reference("tasks", ())))
    """)

    assert printed.split()[:2] == ["None"] * 2


def test_arguments_of_a_task_that_take_too_much_work_are_a_problem_of_the_definition():
    costly = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a|b|ab)*(c|d){5,9}$"}}}

    assert [str(one) for one in _of_arguments(costly, {"x": "ab" * 2_000_000}, ("arguments",))] == [
        "arguments: it takes too much work"
    ]
