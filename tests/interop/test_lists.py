"""Lists in every provider's shape: what is in them, for whom, and how long they are kept."""

import copy
import gc
import json
import re
import weakref

import pytest

from agentos import PUBLIC, AgentOS, Principal, Tool
from agentos.interop import anthropic, gemini, mcp, openai

SHAPES = {
    "chat": lambda host, who=None: openai.tools(host, who),
    "chat strict": lambda host, who=None: openai.tools(host, who, strict=True),
    "responses": lambda host, who=None: openai.tools(host, who, api="responses"),
    "anthropic": anthropic.tools,
    "gemini": gemini.tools,
    "mcp": mcp.tools,
}
shapes = pytest.mark.parametrize("tools", SHAPES.values(), ids=SHAPES)
ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 10}},
    "required": ["a"],
    "additionalProperties": False,
}
STRICT_ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def with_schema(name, schema, **fields):
    return Tool.from_schema(
        name=name,
        description="",
        input_schema=schema,
        effect=fields.pop("effect", "read"),
        required_access=PUBLIC,
        execute=lambda args, context: args,
        **fields,
    )


def name_of(item):
    return item.get("function", item)["name"]


def schema_of(item):
    item = item.get("function", item)
    return next(
        item[key] for key in ("parameters", "input_schema", "parameters_json_schema", "inputSchema") if key in item
    )


# -- shapes --------------------------------------------------------------------------------------------------------


async def test_a_tool_for_chat_completions(host):
    expected = {
        "type": "function",
        "function": {"name": "add", "description": "Add two numbers.", "parameters": ADD},
    }

    assert expected == openai.tools(host)[0]


async def test_a_tool_for_responses_says_that_it_is_not_strict(host):
    expected = {"type": "function", "name": "add", "description": "Add two numbers.", "parameters": ADD}

    assert {**expected, "strict": False} == openai.tools(host, api="responses")[0]


async def test_a_strict_tool(host):
    function = openai.tools(host, strict=True)[0]["function"]

    assert function["parameters"] == STRICT_ADD
    assert function["strict"] is True


async def test_a_schema_without_a_strict_form_is_sent_as_it_is(host):
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, "additionalProperties": False}
    await host.tools_service().sync([with_schema("t", schema)])
    function = openai.tools(host, strict=True)[0]["function"]

    assert schema == function["parameters"]
    assert function["strict"] is False


async def test_another_api_is_refused_by_name(host):
    with pytest.raises(ValueError, match="'chat' or 'responses', got 'assistants'"):
        openai.tools(host, api="assistants")


async def test_a_tool_for_anthropic(host):
    assert anthropic.tools(host)[0] == {"name": "add", "description": "Add two numbers.", "input_schema": ADD}


async def test_a_tool_for_gemini(host):
    assert gemini.tools(host)[0] == {"name": "add", "description": "Add two numbers.", "parameters_json_schema": ADD}


async def test_a_tool_for_mcp(host):
    expected = {
        "name": "add",
        "title": "Add",
        "description": "Add two numbers.",
        "inputSchema": ADD,
        "outputSchema": {"type": "object", "additionalProperties": {"type": "integer"}},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": True,
        },
    }

    assert expected == mcp.tools(host)[0]


@pytest.mark.parametrize(
    ("fields", "hints"),
    [
        ({"effect": "read"}, (True, False, True)),
        ({"effect": "mutate"}, (False, False, False)),
        ({"effect": "mutate", "idempotent": True}, (False, False, True)),
        ({"effect": "destructive"}, (False, True, False)),
    ],
    ids=str,
)
async def test_the_effect_says_the_hints_of_mcp(host, fields, hints):
    await host.tools_service().sync([with_schema("t", {"type": "object"}, **fields)])
    annotations = mcp.tools(host)[0]["annotations"]

    assert hints == tuple(annotations[key] for key in ("readOnlyHint", "destructiveHint", "idempotentHint"))


async def test_an_output_that_is_no_object_has_no_schema_in_mcp(host):
    await host.tools_service().sync([with_schema("t", {"type": "object"}, output_schema={"type": "string"})])

    assert "outputSchema" not in mcp.tools(host)[0]


@shapes
async def test_every_name_fits_every_provider(host, tools):
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name_of(item)) for item in tools(host))


@shapes
async def test_the_list_has_the_way_back(host, tools):
    made = tools(host)

    assert [info.name for info in host.tools.list_available_tools()] == [
        made.names.decode(name_of(item)) for item in made
    ]


@shapes
async def test_a_list_is_json(host, tools):
    assert tools(host) == json.loads(json.dumps(tools(host)))


@shapes
async def test_a_principal_sees_what_it_may_call(host, tools):
    user = Principal("ada", access={"vault:read"})
    nobody = Principal("bob")

    assert "open_vault" in map(name_of, tools(host, user))
    assert "open_vault" not in map(name_of, tools(host, nobody))


# -- roots that providers refuse -----------------------------------------------------------------------------------

PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PLACE = {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "string"}}, "required": ["at"]}
ROOTS = {
    "nothing": ({}, {"type": "object", "properties": {}}),
    "no properties": ({"type": "object"}, {"type": "object", "properties": {}}),
    "anyOf": (
        {"anyOf": [PERSON, PLACE]},
        {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "string"}}},
    ),
    "allOf": (
        {"type": "object", "allOf": [PERSON, PLACE]},
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "at": {"type": "string"}},
            "required": ["at", "name"],
        },
    ),
    "a reference": (
        {"$ref": "#/$defs/Person", "$defs": {"Person": PERSON}},
        {**PERSON, "$defs": {"Person": PERSON}},
    ),
    "alternatives of what is required": (
        {**PLACE, "required": [], "oneOf": [{"required": ["name"]}, {"required": ["at"]}, True]},
        {**PLACE, "required": []},
    ),
    "a reference to another document": (
        {"$ref": "urn:elsewhere", "$defs": {"E": {"$id": "urn:elsewhere", "properties": {"x": True}}}},
        {"type": "object", "properties": {}, "$defs": {"E": {"$id": "urn:elsewhere", "properties": {"x": True}}}},
    ),
    "an endless reference": (
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"type": "object", "properties": {}, "$defs": {"A": {"$ref": "#/$defs/A"}}},
    ),
}


@pytest.mark.parametrize("tools", [SHAPES["chat"], SHAPES["responses"], SHAPES["anthropic"]])
@pytest.mark.parametrize(("given", "expected"), ROOTS.values(), ids=ROOTS)
async def test_what_is_refused_at_the_root_is_laid_flat(host, tools, given, expected):
    await host.tools_service().sync([with_schema("t", given)])

    assert expected == schema_of(tools(host)[0])


@pytest.mark.parametrize("tools", [gemini.tools, mcp.tools])
async def test_others_get_the_schema_as_an_object(host, tools):
    await host.tools_service().sync([with_schema("t", {"anyOf": [PERSON, PLACE]})])

    assert schema_of(tools(host)[0]) == {"type": "object", "anyOf": [PERSON, PLACE]}


# -- kept lists ----------------------------------------------------------------------------------------------------


@shapes
async def test_a_list_asked_for_again_is_not_made_again(host, tools):
    assert tools(host)[0] is tools(host)[0]


@shapes
async def test_a_change_shows_in_the_next_list(host, tools):
    tools(host)
    await host.tools_service().unregister_tool("add")

    assert "add" not in map(name_of, tools(host))


@shapes
async def test_what_a_caller_does_to_its_list_does_not_show_in_the_next(host, tools):
    expected = copy.deepcopy(tools(host))
    tools(host).clear()

    assert expected == tools(host)


@shapes
async def test_what_a_caller_does_to_a_schema_does_not_reach_the_tool(host, tools):
    schema_of(tools(host)[0])["properties"].clear()

    assert host.tools.get_tool("add").input_schema == ADD


async def test_a_slice_of_a_list_is_a_plain_list(host):
    assert type(openai.tools(host)[:2]) is list


async def test_two_principals_never_share_a_list(host):
    ada, bob = Principal("ada", access={"vault:read"}), Principal("bob")
    expected = [len(openai.tools(host, ada)), len(openai.tools(host, bob))]

    assert [len(host.tools.listed(ada)), len(host.tools.listed(bob))] == expected
    assert expected == [len(openai.tools(host, ada)), len(openai.tools(host, bob))]


async def test_kept_lists_are_bounded(host):
    """More principals than are kept still get their own list each."""
    who = [Principal(f"user{number}", access={f"rule{number}"}) for number in range(200)]

    assert all(len(openai.tools(host, one)) == 5 for one in who)


async def test_kept_lists_do_not_keep_a_host():
    async with AgentOS() as host:
        openai.tools(host)
        orchestrator = weakref.ref(host.tools)
    del host
    gc.collect()

    assert orchestrator() is None
