"""Media of results as MCP's content, for clients of both eras and from servers to models."""

import base64

import pytest
from bridging import FAST, bridged, call, plain
from mcp import Client

from agentos import PUBLIC, AgentOS, ExtensionPack, GuardVerdict, Media, Principal, ToolResult, guardrail, tool
from agentos.interop import anthropic
from agentos.mcp import MCPServer
from agentos.mcp.content_blocks import CONTENT, blocks_for_client

PNG = b"\x89PNG\r\n\x1a\n"
ADA = Principal("ada")


@tool(effect="read", required_access=PUBLIC)
async def look() -> list[str | Media]:
    """Return one of each."""
    return [
        "All of them:",
        Media("image/png", PNG),
        Media("audio/wav", b"RIFF"),
        Media("text/csv", b"a,b\n", name="ä.csv"),
        Media("application/zip", b"PK"),
        Media("application/pdf", url="https://example.org/a.pdf", name="a.pdf"),
    ]


@pytest.fixture(params=["legacy", "2026-07-28"])
def era(request):
    return request.param


async def content_of(tools, name, era):
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("looking", "1.0", tools))
        async with Client(MCPServer(host, principal=ADA).server, mode=era) as client:
            answer = await client.call_tool(name, {})
    return [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in answer.content]


async def test_a_client_gets_what_a_tool_returns(era):
    text, image, sound, table, archive, link = await content_of([look], "look", era)

    assert text["text"].splitlines()[:2] == ["All of them:", "[image image/png, 8 bytes]"]
    assert image == {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    assert sound == {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    assert (table["resource"]["text"], table["resource"]["mimeType"]) == ("a,b\n", "text/csv")
    assert table["resource"]["uri"].endswith("/%C3%A4.csv")
    assert archive["resource"]["blob"] == "UEs="
    assert (link["type"], link["uri"], link["name"]) == ("resource_link", "https://example.org/a.pdf", "a.pdf")


async def test_a_client_of_old_gets_what_it_knows():
    result = ToolResult.ok(media=[Media("image/png", PNG), Media("audio/wav", b"RIFF"), Media("a/b", url="x:y")])

    kinds = [block["type"] for block in blocks_for_client(result, "said", "2024-11-05")]
    assert kinds == ["text", "image"]


async def test_a_guard_takes_media_away_from_clients_too(era):
    @guardrail(stage="tool_result", sanitizes=True)
    async def blind(result, context):
        return GuardVerdict.sanitize("removed", "not for you")

    assert await content_of([look, blind], "look", era) == [{"type": "text", "text": "removed"}]


# -- bridged -----------------------------------------------------------------------------------------------------------


async def test_a_bridged_screenshot_is_an_image_for_a_model():
    async with bridged({"plain": plain()}, limits=FAST) as host:
        used = {"content": [{"type": "tool_use", "id": "t1", "name": "media", "input": {}}]}
        messages = await anthropic.run(host, used, anthropic.tools(host, Principal.system()))

    (answer,) = messages[-1]["content"]
    kinds = [(block["type"], block.get("source", {}).get("media_type")) for block in answer["content"]]
    assert kinds == [("text", None), ("image", "image/png"), ("image", "image/gif")]


async def test_what_a_server_says_never_names_a_file_of_ours(tmp_path):
    """A link to a file is a link: nothing is read, whatever the host allows."""
    async with bridged({"plain": plain()}, limits=FAST, media_folders=["/"]) as host:
        result = await call(host, "media")

    assert all(one.path is None and one.data is not None for one in result.media)
    assert "[resource file:///a: The letter A]" in result.content


async def test_a_block_whose_media_are_gone_is_gone_and_others_stay_in_their_places():
    async with bridged({"plain": plain()}, limits=FAST) as host:
        result = await call(host, "media")
    kept = [one for one in result.media if one.mime != "image/png"] + [Media("image/webp", b"new")]
    changed = ToolResult.ok(content="changed", state=result.state, media=kept)

    blocks = blocks_for_client(changed, "changed", "2025-11-25")
    kinds = [block.get("mimeType") or block.get("resource", {}).get("mimeType") or block["type"] for block in blocks]
    assert kinds == ["text", "audio/wav", "resource_link", "resource", "image/gif", "image/webp"]
    assert b"ABC" not in repr(result.state).encode()
    assert CONTENT in result.state
