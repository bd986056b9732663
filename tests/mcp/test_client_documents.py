"""What a bridged server has beside tools, and what its answers have beside text: it arrives at our clients as it is."""

import asyncio
import logging
import sys

import attrs
import mcp_types as types
import pytest
from bridging import DEADLINE, FAST, SERVERS, bridge_of, bridged, call, eventually, hostile, plain
from mcp import Client, MCPError, StdioServerParameters

from agentos import Principal
from agentos.mcp import MCPServer
from agentos.mcp.client.bridged_documents import _fits

ERAS = ("legacy", "2026-07-28")
PATIENT = attrs.evolve(FAST, connect=30.0, grace=2.0)
RICH = {
    "command": sys.executable,
    "args": [str(SERVERS / "varied.py")],
    "effects": {"*": "read"},
    "startTimeout": 30,
}
TOKEN = "t-0123456789abcdef"


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def host(anyio_backend):
    async with bridged({"rich": RICH}, limits=PATIENT) as host:
        yield host


@pytest.fixture(scope="module")
async def direct(anyio_backend):
    """A client of the server itself: what ours get is compared with what this one gets."""
    async with Client(StdioServerParameters(command=RICH["command"], args=RICH["args"])) as client:
        yield client


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


def served(host, era, **options):
    return Client(MCPServer(host, **options).server, mode=era, cache=None)


def said(items):
    return [item.model_dump(by_alias=True, exclude_none=True, mode="json") for item in items]


# -- lists -------------------------------------------------------------------------------------------------------------


async def test_resources_are_listed_as_the_server_lists_them(host, direct, era):
    async with served(host, era) as client:
        listed = said((await client.list_resources()).resources)

    theirs = said((await direct.list_resources()).resources)
    assert [item for item in listed if not item["uri"].startswith("agentos:")] == theirs
    assert theirs[0]["annotations"] == {"audience": ["user"], "priority": 0.5}


async def test_templates_are_listed_as_the_server_lists_them(host, direct, era):
    async with served(host, era) as client:
        listed = said((await client.list_resource_templates()).resource_templates)

    theirs = said((await direct.list_resource_templates()).resource_templates)
    assert [item for item in listed if not item["uriTemplate"].startswith("agentos:")] == theirs


async def test_prompts_are_listed_as_the_server_lists_them(host, direct, era):
    async with served(host, era) as client:
        listed = said((await client.list_prompts()).prompts)

    assert [item for item in listed if item["name"] == "review"] == said((await direct.list_prompts()).prompts)


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["memo://today", "memo://picture", "memo://people/bob"])
async def test_a_resource_is_read_byte_for_byte(host, direct, era, uri):
    async with served(host, era) as client:
        found = await client.read_resource(uri)

    assert said(found.contents) == said((await direct.read_resource(uri)).contents)


async def test_a_prompt_is_what_the_server_makes_of_it(host, direct, era):
    arguments = {"code": "1 + 1", "tone": "dry"}
    async with served(host, era) as client:
        found = [await client.get_prompt(name, arguments) for name in ("review", "mcp/rich:review")]

    theirs = await direct.get_prompt("review", arguments)
    assert [said(one.messages) for one in found] == [said(theirs.messages)] * 2
    assert found[0].description == theirs.description


async def test_what_no_server_has_is_not_found(host, era):
    async with served(host, era) as client:
        for uri in ("memo://nothing", "other://x", "agentos://packs/none"):
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="There is no prompt 'nothing'"):
            await client.get_prompt("nothing")


async def test_an_error_of_the_server_is_told_with_whose_it_is(host, era):
    async with served(host, era) as client:
        with pytest.raises(MCPError, match="mcp/rich answers with an error"):
            await client.get_prompt("review", {})


# -- for whom ----------------------------------------------------------------------------------------------------------


async def test_whoever_may_not_use_the_server_sees_nothing_of_it(host, era):
    async with served(host, era, principal=Principal("eve")) as client:
        uris = [one.uri for one in (await client.list_resources()).resources]
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        prompts = [one.name for one in (await client.list_prompts()).prompts]
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("memo://today")
        with pytest.raises(MCPError, match="There is no prompt"):
            await client.get_prompt("review", {"code": "x"})

    assert not any("memo:" in one for one in (*uris, *templates))
    assert prompts == []


async def test_whoever_holds_the_servers_rule_reads(host, era):
    async with served(host, era, principal=Principal("ann", access={"mcp:rich"})) as client:
        assert (await client.read_resource("memo://people/ann")).contents[0].text == "This is ann."


async def test_the_operator_says_what_is_taken_in(era):
    some = {**RICH, "resources": ["memo://people/*"], "prompts": []}
    async with bridged({"rich": some}, limits=PATIENT) as host, served(host, era) as client:
        uris = [one.uri for one in (await client.list_resources()).resources]
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        assert "memo://today" not in uris
        assert "memo://people/{name}" in templates
        assert [one.name for one in (await client.list_prompts()).prompts] == []
        assert (await client.read_resource("memo://people/ann")).contents[0].text == "This is ann."
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("memo://today")


async def test_two_servers_with_the_same_prompts_and_resources_are_told_apart():
    async with (
        bridged({"one": RICH, "two": RICH, "three": {**RICH, "prefix": "x_"}}, limits=PATIENT) as host,
        served(host, "2026-07-28") as client,
    ):
        prompts = [one.name for one in (await client.list_prompts()).prompts]
        uris = [one.uri for one in (await client.list_resources()).resources]
        answer = await client.get_prompt("mcp/two:review", {"code": "x"})

    assert prompts == ["review", "mcp/two:review", "x_review"]
    assert uris.count("memo://today") == 1
    assert answer.messages


# -- changes and faults ------------------------------------------------------------------------------------------------


async def test_a_change_of_the_servers_prompts_is_told_to_our_clients():
    heard = asyncio.Event()

    async def hear(message):
        if isinstance(message, types.PromptListChangedNotification):
            heard.set()

    async with (
        bridged({"rich": RICH}, limits=PATIENT) as host,
        Client(MCPServer(host).server, mode="legacy", message_handler=hear, cache=None) as client,
    ):
        await client.list_prompts()
        heard.clear()
        await call(host, "grow")
        async with asyncio.timeout(DEADLINE):
            await heard.wait()
        prompts = [one.name for one in (await client.list_prompts()).prompts]

    assert prompts == ["review", "farewell"]


async def test_a_server_that_can_not_be_asked_costs_the_others_nothing(caplog, era):
    servers = {"bad": hostile("no_documents"), "rich": RICH, "plain": plain()}
    async with bridged(servers, limits=PATIENT) as host, served(host, era) as client:
        with caplog.at_level(logging.WARNING, "agentos.mcp"):
            uris = [one.uri for one in (await client.list_resources()).resources]
        found = await client.read_resource("memo://people/ann")

    assert "memo://today" in uris
    assert found.contents[0].text == "This is ann."
    assert "what mcp/bad offers beside tools is left out" in caplog.text


async def test_a_server_that_went_away_is_left_out():
    async with bridged({"plain": RICH}, limits=attrs.evolve(PATIENT, first_delay=60.0)) as host:
        bridge = bridge_of(host)
        bridge._connection._session.end("it was ended by a test")
        await eventually(lambda: bridge.why_not() is not None)
        async with served(host, "2026-07-28") as client:
            assert [one.name for one in (await client.list_prompts()).prompts] == []


async def test_a_secret_of_the_server_is_masked_in_what_it_has(era):
    said = {**RICH, "env": {"TOK": "${secret:rich.token}"}}
    options = {"extension_secrets": {"rich.token": TOKEN}, "limits": PATIENT}
    async with bridged({"rich": said}, **options) as host, served(host, era) as client:
        text = (await client.read_resource("memo://today")).contents[0].text

    assert text == "# Today\n***"


@pytest.mark.parametrize(
    ("uri", "template", "fits"),
    [
        ("memo://people/ann", "memo://people/{name}", True),
        ("memo://people/", "memo://people/{name}", True),
        ("memo://places/ann", "memo://people/{name}", False),
        ("a/1/b/2/c", "a/{x}/b/{y}/c", True),
        ("a/1/2/c", "a/{x}/b/{y}/c", False),
        ("a/b", "a/b", True),
        ("a/b/c", "a/b", False),
        ("aba", "ab{x}ba", False),
        ("file:///x/y?z=1", "file:///{+path}{?z}", True),
    ],
)
def test_a_template_says_which_addresses_are_its_own(uri, template, fits):
    assert _fits(uri, template) is fits


async def test_what_the_server_says_of_a_tool_in_annotations_is_served_on_but_for_what_it_does(host, era):
    """It is not trusted: that `show` only reads, the operator says."""
    async with served(host, era) as client:
        (shown,) = [tool for tool in (await client.list_tools()).tools if tool.name == "show"]

    annotations = shown.annotations.model_dump(exclude_none=True)
    assert (annotations["title"], annotations["open_world_hint"]) == ("Show it", False)
    assert annotations["read_only_hint"] is True


# -- answers -----------------------------------------------------------------------------------------------------------


async def test_an_answer_arrives_block_for_block(host, direct, era):
    async with served(host, era) as client:
        ours = await client.call_tool("show", {})

    theirs = await direct.call_tool("show", {})
    assert said(ours.content) == said(theirs.content)
    assert [one.type for one in ours.content] == ["text", "image", "audio", "resource_link", "resource", "resource"]


async def test_a_link_of_an_answer_can_be_read(era):
    """It need not be in any list: whose it is was noted with the answer."""
    only = {**RICH, "resources": ["memo://people/ann"]}
    async with bridged({"rich": only}, limits=PATIENT) as host, served(host, era) as client:
        with pytest.raises(MCPError):
            await client.read_resource("memo://people/ann")
        link = (await client.call_tool("show", {})).content[3]

        assert (await client.read_resource(link.uri)).contents[0].text == "This is ann."


async def test_an_answer_through_call_tool_arrives_block_for_block(host, direct, era):
    async with served(host, era, search_above=0) as client:
        ours = await client.call_tool("call_tool", {"name": "show"})

    assert said(ours.content) == said((await direct.call_tool("show", {})).content)


async def test_a_client_that_does_not_know_a_kind_of_block_gets_the_text_and_the_others(host):
    from agentos.mcp.content_blocks import blocks_for_client

    result = await call(host, "show")
    kinds = {
        protocol: [one["type"] for one in blocks_for_client(result, result.content, protocol)]
        for protocol in ("2024-11-05", "2025-03-26", "2025-06-18")
    }

    assert kinds == {
        "2024-11-05": ["text", "image", "resource", "resource"],
        "2025-03-26": ["text", "image", "audio", "resource", "resource"],
        "2025-06-18": ["text", "image", "audio", "resource_link", "resource", "resource"],
    }


async def test_text_that_was_changed_on_its_way_is_what_counts(host):
    from agentos.mcp.content_blocks import blocks_for_client

    result = await call(host, "show")
    blocks = blocks_for_client(result, "what is left of it", "2025-11-25")

    assert [one["type"] for one in blocks] == ["text", "image", "audio", "resource_link", "resource", "resource"]
    assert blocks[0] == {"type": "text", "text": "what is left of it"}


async def test_what_is_too_large_is_told():
    async with bridged({"plain": hostile("many_images")}) as host:
        result = await call(host, "go")

    assert result.content.endswith("characters, too many to be handed on]")
    assert result.state is None


async def test_the_state_of_a_packs_own_tool_stays_with_the_host(host, era):
    from agentos import PUBLIC, ExtensionPack, Tool, ToolResult

    tool = Tool.from_schema(
        name="private",
        description="Keep something.",
        input_schema={"type": "object"},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: ToolResult.ok("done", state={"media": [{"type": "image", "data": "QUJD"}]}),
    )
    await host.extensions.load_pack(ExtensionPack("private", "1.0", [tool]))
    try:
        async with served(host, era) as client:
            assert said((await client.call_tool("private", {})).content) == [{"type": "text", "text": "done"}]
    finally:
        await host.extensions.unload("private")
