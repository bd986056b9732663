"""Other people's clients: the SDK's over stdio, and FastMCP's over memory and stdio."""

import sys
from pathlib import Path
from types import SimpleNamespace

import mcp_types as types
import pytest
from fastmcp import Client as FastClient
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.client.transports.memory import FastMCPTransport
from fastmcp.exceptions import ToolError
from mcp import Client, StdioServerParameters

from agentos.mcp import MCPServer

sys.path.append(str(Path(__file__).parent))
import fixture_pack as pack

ERAS = ("legacy", "2026-07-28", "auto")
PROGRAM = [str(Path(__file__).with_name("fixture_pack.py")), "--user"]


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


# -- the SDK's client over stdio -------------------------------------------------------------------------------------


def spoken_to(era, *more, **options):
    return Client(StdioServerParameters(command=sys.executable, args=[*PROGRAM, *more]), mode=era, **options)


async def test_the_sdks_client_works_over_stdio(era):
    told = []

    async def report(done, total, message):
        told.append(done)

    async def approve(context, params):
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    async with spoken_to(era, elicitation_callback=approve) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        added = await client.call_tool("add", {"a": 1, "b": 2})
        counted = await client.call_tool("count", {"to": 3}, progress_callback=report)
        written = await client.call_tool("write", {"path": "a.txt"})
        failed = await client.call_tool("fail", {})
        printed = await client.call_tool("chatty", {})
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        document = (await client.read_resource("agentos://tools/add")).contents[0].text

    assert {"add", "write", "proposals_list"} <= names
    assert added.structured_content == {"sum": 3}
    assert (counted.content[0].text, told) == ("3", [1, 2, 3])
    assert written.structured_content["path"] == "a.txt"
    assert failed.is_error
    assert printed.content[0].text == "printed"
    assert "fixture:diary" in prompts
    assert document.startswith("# add")


async def test_a_search_over_stdio():
    async with spoken_to("auto", "--many", "100", "--search", "40") as client:
        found = await client.call_tool("search_tools", {"query": "wheel number 42", "limit": 1})
        name = found.structured_content["tools"][0]["name"]
        await client.call_tool("load_tools", {"names": [name]})

        assert name == "tool_42"
        assert name in {tool.name for tool in (await client.list_tools()).tools}


# -- FastMCP's client ------------------------------------------------------------------------------------------------


@pytest.fixture
async def fast(era, anyio_backend):
    """Return what makes FastMCP's client, in memory."""
    async with pack.hosted() as host:
        server = MCPServer(host, principal=pack.USER).server
        transport = FastMCPTransport(SimpleNamespace(_mcp_server=server, name="agentos"))
        yield lambda **options: FastClient(transport, mode=era, **options)


async def test_fastmcps_client_lists_and_calls(fast):
    async with fast() as client:
        names = {tool.name for tool in await client.list_tools()}
        added = await client.call_tool("add", {"a": 1, "b": 2})
        with pytest.raises(ToolError, match="no luck today"):
            await client.call_tool("fail", {})

    assert {"add", "proposals_apply"} <= names
    assert added.structured_content == {"sum": 3}


async def test_fastmcps_client_sees_progress(fast):
    told = []

    async def report(done, total, message):
        told.append((done, message))

    async with fast() as client:
        await client.call_tool("count", {"to": 2}, progress_handler=report)

    assert told == [(1, "1 of 2"), (2, "2 of 2")]


async def approve(message, response_type, params, context):
    assert "fixture:write" in message
    return ElicitResult(action="accept", content={"decision": "approve"})


async def test_fastmcps_client_is_asked_for_approval(fast):
    async with fast(elicitation_handler=approve) as client:
        written = await client.call_tool("write", {"path": "a.txt"})

    assert written.structured_content["path"] == "a.txt"


async def test_fastmcps_client_reads_prompts_and_documents(fast):
    async with fast() as client:
        prompts = [prompt.name for prompt in await client.list_prompts()]
        (document,) = await client.read_resource("agentos://packs/fixture")

    assert prompts[0] == "instructions"
    assert document.text.startswith("# fixture")


async def test_fastmcps_client_works_over_stdio(era):
    transport = StdioTransport(command=sys.executable, args=PROGRAM, keep_alive=False)
    async with FastClient(transport, mode=era, elicitation_handler=approve) as client:
        names = {tool.name for tool in await client.list_tools()}
        added = await client.call_tool("add", {"a": 1, "b": 2})
        written = await client.call_tool("write", {"path": "a.txt"})
        (document,) = await client.read_resource("agentos://packs/fixture")

    assert {"add", "proposals_apply"} <= names
    assert added.structured_content == {"sum": 3}
    assert written.structured_content["path"] == "a.txt"
    assert document.text.startswith("# fixture")
