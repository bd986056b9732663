"""The real langchain-core with a host's tools."""

import json

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from agentos import PUBLIC, Media, Principal, Tool, ToolResult, tool
from agentos.interop import as_langchain_tools


def named(host, name, principal=None):
    return next(tool for tool in as_langchain_tools(host, principal) if tool.name == name)


def call(args, name="add"):
    return {"type": "tool_call", "id": "c1", "name": name, "args": args}


async def test_they_are_tools_of_langchain(host):
    assert all(isinstance(tool, BaseTool) for tool in as_langchain_tools(host))


async def test_a_tool_says_what_it_is(host):
    tool = named(host, "add")

    assert tool.description == "Add two numbers."
    assert list(tool.args) == ["a", "b"]
    assert tool.metadata == {"tool": "builtin:add", "effect": "read"}


async def test_a_model_is_given_the_schema(host):
    function = convert_to_openai_tool(named(host, "add"))["function"]

    assert function["parameters"]["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer", "default": 10}}


async def test_invoked_with_arguments_it_returns_the_content(host):
    assert await named(host, "add").ainvoke({"a": 1, "b": 2}) == '{"sum": 3}'


async def test_invoked_with_a_call_it_returns_a_message(host):
    message = await named(host, "add").ainvoke(call({"a": 1}))

    assert isinstance(message, ToolMessage)
    assert (message.tool_call_id, message.content) == ("c1", '{"sum": 11}')


async def test_the_artifact_is_the_result(host):
    message = await named(host, "add").ainvoke(call({"a": 1}))

    assert isinstance(message.artifact, ToolResult)
    assert message.artifact.output == {"sum": 11}


@pytest.mark.parametrize(("name", "expected"), [("add", "InvalidArguments"), ("fail", "ToolRaised")])
async def test_a_failure_is_content(host, name, expected):
    message = await named(host, name).ainvoke(call({}, name))

    assert expected in message.content
    assert message.artifact.error.type == expected


async def test_the_call_is_made_for_the_principal_under_its_id(host):
    message = await named(host, "whoami", Principal("ada")).ainvoke(call({}, "whoami"))

    assert json.loads(message.content) == {"principal": "ada", "call": "c1", "session": {}}


async def test_a_principal_gets_what_it_may_call(host):
    assert "open_vault" not in [tool.name for tool in as_langchain_tools(host, Principal("bob"))]


async def test_a_name_that_does_not_fit_leads_to_its_tool(host):
    tool = next(tool for tool in as_langchain_tools(host) if tool.name.startswith("text_shout"))

    assert await tool.ainvoke({"text": "hi"}) == "HI"


async def test_parameters_may_have_any_name(host):
    """LangChain has parameters of its own, which a tool's must not meet."""
    names = ["self", "config", "run_manager", "callbacks", "tool_input", "no identifier", "call"]
    echo = Tool.from_schema(
        name="echo",
        description="",
        input_schema={"type": "object", "properties": {name: {"type": "integer"} for name in names}},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: args,
    )
    await host.tools_service().sync([echo])
    given = {name: number for number, name in enumerate(names)}

    assert given == json.loads(await named(host, "echo").ainvoke(given))


async def test_a_sync_call_is_refused_clearly(host):
    with pytest.raises(NotImplementedError, match=r"use `await tool.ainvoke"):
        named(host, "add").invoke({"a": 1})


async def test_a_tool_that_is_gone_says_so(host):
    tool = named(host, "add")
    await host.tools_service().unregister_tool("add")

    assert "UnknownTool" in await tool.ainvoke({"a": 1})


@tool(effect="read", required_access=PUBLIC)
async def shoot() -> list[Media]:
    """Take a picture."""
    return [Media("image/png", b"PNG", name="shot.png"), Media("audio/wav", b"WAV", name="click.wav")]


async def test_images_of_a_result_are_blocks_where_that_is_wanted(host):
    await host.tools_service().sync([shoot])
    blocks = (await as_langchain_tools(host, media=True)[0].ainvoke(call({}, "shoot"))).content_blocks
    text = (await as_langchain_tools(host)[0].ainvoke(call({}, "shoot"))).content

    assert [block["type"] for block in blocks] == ["text", "image"]
    assert (blocks[1]["base64"], blocks[1]["mime_type"]) == ("UE5H", "image/png")
    assert "[audio audio/wav click.wav, 3 bytes]" in blocks[0]["text"]
    assert "shot.png" in text
