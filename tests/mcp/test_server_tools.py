"""Tools and results as MCP clients of both eras see them."""

import sys
from pathlib import Path

import attrs
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

import agentos.mcp.server.shown_tools as offering
from agentos import PUBLIC, ExtensionPack, Principal, Tool, ToolResult
from agentos.mcp import MCPServer
from agentos.mcp.server.wire_format import ClientToolNames, call_result, clipped, encodable, encodable_data, visible

sys.path.append(str(Path(__file__).parent))
import fixture_pack as pack

ERAS = ("legacy", "2026-07-28")


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture
async def host(anyio_backend):
    async with pack.hosted() as host:
        yield host


@pytest.fixture
async def client(host, era):
    async with Client(MCPServer(host, principal=pack.USER).server, mode=era) as client:
        yield client


async def listed(client):
    return {tool.name: tool for tool in (await client.list_tools()).tools}


async def text_of(client, name, arguments=None):
    return (await client.call_tool(name, arguments or {})).content[0].text


def simple(name="echo", **fields):
    made = {
        "description": "Echo.",
        "input_schema": {"type": "object", "properties": {}},
        "effect": "read",
        "required_access": PUBLIC,
        "execute": lambda args, context: name,
        **fields,
    }
    return Tool.from_schema(name=name, **made)


# -- lists -----------------------------------------------------------------------------------------------------------


async def test_every_tool_that_the_principal_may_see_is_listed(client):
    mine = {name for name in await listed(client) if not name.startswith(("proposals_", "gr_"))}

    assert mine == {tool.name for tool in (*pack.TOOLS, *pack.MORE, *pack.DIARY)} - {
        *("vault", "read_secret_diary", "größe messen")
    }


async def test_the_host_itself_sees_everything(host, era):
    async with Client(MCPServer(host).server, mode=era) as client:
        assert {"vault", "read_secret_diary"} <= set(await listed(client))


async def test_that_clients_are_served_as_the_host_itself_is_logged_unless_it_is_said(host, caplog):
    MCPServer(host, principal=Principal.system())
    MCPServer(host, principal=pack.USER)
    said = caplog.text
    MCPServer(host)

    assert said == ""
    assert "MCP clients are served without a principal" in caplog.text
    assert "Principal.system()" in caplog.text


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        ("add", (True, False, True)),
        ("write", (False, False, True)),
        ("remove", (False, True, False)),
        ("proposals_list", (True, False, True)),
        ("proposals_apply", (False, True, False)),
        ("proposals_reject", (False, False, False)),
    ],
)
async def test_annotations_come_from_the_effect(client, name, hints):
    told = (await listed(client))[name].annotations

    assert (told.read_only_hint, told.destructive_hint, told.idempotent_hint) == hints
    assert told.open_world_hint is None


async def test_the_title_is_the_display_name(client):
    tools = await listed(client)

    assert (tools["write"].title, tools["add"].title) == ("Write a file", "Add")


async def test_the_input_schema_is_the_tools_own(client):
    schema = (await listed(client))["add"].input_schema

    assert schema["properties"]["a"] == {"type": "integer", "description": "The first number"}
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["a"], False)


async def test_the_output_schema_of_an_object_is_told_in_both_eras(client):
    assert (await listed(client))["add"].output_schema["type"] == "object"


async def test_the_output_schema_of_another_value_is_told_where_the_protocol_allows_it(client, era):
    told = (await listed(client))["words"].output_schema

    assert told == (None if era == "legacy" else {"type": "array", "items": {"type": "string"}})


async def test_an_output_schema_that_allows_null_is_not_told(client):
    """The SDK leaves null out of what it sends, and a client that knows the schema would miss it."""
    assert (await listed(client))["maybe"].output_schema is None


async def test_a_name_that_mcp_allows_is_kept(client):
    assert "math.double" in await listed(client)


async def test_a_name_that_mcp_does_not_allow_gets_another_and_can_be_called_by_it(client):
    assert "gr_e_messen" in await listed(client)
    assert await text_of(client, "gr_e_messen", {"of": "a tree"}) == "the size of a tree"


async def test_a_made_up_name_is_nobodys_alias(host, era):
    other = attrs.evolve(simple("other"), aliases=("gr_e_messen",), execute=lambda args, context: "somebody else")
    await host.extensions.load_pack(ExtensionPack("others", "1", [other]))
    async with Client(MCPServer(host).server, mode=era) as client:
        (made_up,) = [name for name in await listed(client) if name.startswith("gr_")]

        assert made_up != "gr_e_messen"
        assert await text_of(client, made_up, {"of": "a tree"}) == "the size of a tree"
        assert await text_of(client, "gr_e_messen") == "somebody else"


async def test_a_tool_can_be_called_by_its_own_name_too(client):
    assert await text_of(client, "größe messen", {"of": "a tree"}) == "the size of a tree"


async def test_a_long_description_is_bounded(host, era):
    await host.extensions.load_pack(ExtensionPack("long", "1", [simple(description="x" * 100_000)]))
    async with Client(MCPServer(host).server, mode=era) as client:
        told = (await listed(client))["echo"].description

    assert len(told) < 21_000
    assert told.endswith("[cut: 20000 of 100000 characters are shown]")


async def test_a_pack_cannot_pass_for_a_tool_of_the_server(host, era):
    impostor = simple("proposals_apply", execute=lambda args, context: "I am somebody else")
    await host.extensions.load_pack(ExtensionPack("impostor", "1", [impostor]))
    async with Client(MCPServer(host).server, mode=era) as client:
        names = [tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("proposals_apply")]

        assert "there is no proposal 'x'" in await text_of(client, "proposals_apply", {"id": "x"})
        assert await text_of(client, names[1]) == "I am somebody else"


async def test_the_proposals_tools_can_be_left_out(host, era):
    async with Client(MCPServer(host, approvals_tools=False).server, mode=era) as client:
        assert not any(name.startswith("proposals_") for name in await listed(client))
        assert "there is no tool called" in await text_of(client, "proposals_list")


async def test_what_is_listed_is_made_once(host):
    server = MCPServer(host)._shown
    infos = host.tools.listed(None)

    assert server.items(infos, modern=True)[0] is server.items(infos, modern=True)[0]


# -- pages -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(offering, "PAGE", 5)


async def all_pages(client):
    found, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        found.append([tool.name for tool in page.tools])
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_a_long_list_comes_in_pages(client, small_pages, host):
    pages = await all_pages(client)

    assert len(pages) > 3
    assert [len(page) for page in pages[1:-1]] == [5] * (len(pages) - 2)
    assert (
        len({name for page in pages for name in page}) == sum(map(len, pages)) == len(host.tools.listed(pack.USER)) + 4
    )


async def test_a_cursor_ends_with_the_list_that_it_was_made_for(client, small_pages, host):
    cursor = (await client.list_tools()).next_cursor
    await host.extensions.load_pack(ExtensionPack("new", "1", [simple("new")]))

    with pytest.raises(MCPError, match="list again") as refused:
        await client.list_tools(cursor=cursor)
    assert refused.value.code == types.INVALID_PARAMS


@pytest.mark.parametrize("cursor", ["", "x", "5", "-1-1-1", "a" * 100_000])
async def test_a_cursor_that_was_made_up_is_refused(client, cursor):
    with pytest.raises(MCPError, match="the cursor is not valid"):
        await client.list_tools(cursor=cursor)


async def test_a_cursor_of_another_server_is_refused(client, small_pages, host, era):
    async with Client(MCPServer(host).server, mode=era) as other:
        cursor = (await other.list_tools()).next_cursor

    with pytest.raises(MCPError, match="the cursor is not valid"):
        await client.list_tools(cursor=cursor)


# -- results ---------------------------------------------------------------------------------------------------------


async def test_an_object_is_structured_content_and_text(client):
    result = await client.call_tool("add", {"a": 1, "b": 2})

    assert (result.structured_content, result.content[0].text) == ({"sum": 3}, '{"sum": 3}')
    assert not result.is_error


async def test_defaults_are_filled_in(client):
    assert (await client.call_tool("add", {"a": 1})).structured_content == {"sum": 11}


async def test_another_value_is_structured_content_where_the_protocol_allows_it(client, era):
    result = await client.call_tool("words", {"text": "to be"})

    assert result.structured_content == (None if era == "legacy" else ["to", "be"])
    assert result.content[0].text == '["to", "be"]'


async def test_a_value_under_a_schema_that_was_not_told_is_text_alone(client):
    result = await client.call_tool("maybe", {"value": "x"})

    assert (result.structured_content, result.content[0].text) == (None, "x")


async def test_nothing_is_said_in_words(client):
    assert await text_of(client, "maybe") == "(no output)"


async def test_the_state_of_a_result_never_leaves(client):
    result = await client.call_tool("stateful", {})

    assert result.content[0].text == "what the model reads"
    assert pack.SECRET not in result.model_dump_json()


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("fail", {}, "ToolRaised: RuntimeError: no luck today"),
        ("add", {"a": "one"}, "$.a: expected an integer, got a string"),
        ("add", {"a": 1, "bb": 2}, "did you mean 'b'?"),
        ("ad", {}, "did you mean 'add'?"),
        ("vault", {}, "there is no tool called 'vault'"),
        ("", {}, "there is no tool called ''"),
    ],
)
async def test_an_error_is_a_result_that_a_model_can_act_on(client, name, arguments, words):
    result = await client.call_tool(name, arguments)

    assert result.is_error
    assert words in result.content[0].text
    assert "Traceback" not in result.content[0].text


async def test_arguments_may_be_left_out(client):
    assert (await client.call_tool("whoami")).structured_content["principal"] == "ada"


async def test_every_call_has_an_id_of_its_own(client):
    ids = [(await client.call_tool("whoami")).structured_content["call"] for _ in range(3)]

    assert len(set(ids)) == 3


async def test_a_session_is_one_conversation_and_there_are_none_in_the_new_era(host, era):
    server = MCPServer(host).server
    found = []
    for _ in range(2):
        async with Client(server, mode=era) as client:
            for _ in range(2):
                found.append((await client.call_tool("whoami")).structured_content["session"].get("id"))

    if era == "legacy":
        assert (found[0], found[2]) == (found[1], found[3])
        assert found[0] != found[2]
    else:
        assert found == [None] * 4


async def test_a_result_that_is_too_large_for_its_schema_is_an_error_that_says_so(client):
    result = await client.call_tool("huge", {"size": 3_000_000})

    assert result.is_error
    assert result.content[0].text.startswith(
        "The call succeeded and took effect; do not make it again. Only its output, of 3000012 characters, was too "
    )


@pytest.mark.parametrize("size", [2, 900_000], ids=["small", "large"])
async def test_a_list_says_alike_in_both_eras_that_its_call_took_effect(client, era, size):
    result = await client.call_tool("words", {"text": "a " * size})
    says_so = result.content[0].text.startswith("The call succeeded and took effect; do not make it again.")

    assert says_so == (size > 2)
    assert result.is_error == (says_so and era == "2026-07-28")


async def test_text_that_has_no_utf8_form_ends_nothing(client):
    result = await client.call_tool("surrogates", {})

    result.model_dump_json().encode()
    assert await text_of(client, "maybe", {"value": "still here"}) == "still here"


async def test_the_host_denies_for_mcp_too(era):
    async with (
        pack.hosted(deny=["add"]) as host,
        Client(MCPServer(host).server, mode=era) as client,
    ):
        assert "add" not in await listed(client)
        assert (await client.call_tool("add", {"a": 1})).is_error


async def test_calls_are_on_record_with_their_principal(client, host):
    await client.call_tool("add", {"a": 1})
    last = (await host.audit.records())[-1]

    assert (last.data["tool"], last.data["principal"]) == ("fixture:add", "ada")
    assert last.data["call_id"].startswith("mcp-")


# -- the short cut ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"), [("add", {"a": 1}), ("words", {"text": "a b"}), ("fail", {}), ("maybe", {}), ("nope", {})]
)
async def test_the_short_cut_answers_as_the_long_way_does(host, era, name, arguments):
    short, long = MCPServer(host), MCPServer(host)
    long._plain_call = lambda ctx: None
    answers = []
    for server in (short, long):
        async with Client(server.server, mode=era) as client:
            raw = await client.session._dispatcher.send_raw_request(
                "tools/call", {"name": name, "arguments": arguments, "_meta": meta_of(client)}
            )
            answers.append(raw)

    assert answers[0] == answers[1]


def meta_of(client):
    if client.protocol_version < "2026":
        return {}
    return {
        types.PROTOCOL_VERSION_META_KEY: client.protocol_version,
        types.CLIENT_INFO_META_KEY: {"name": "test", "version": "1"},
        types.CLIENT_CAPABILITIES_META_KEY: {},
    }


@pytest.mark.parametrize(
    "params",
    [
        {"name": 5},
        {},
        {"name": "add", "arguments": [1]},
        {"name": "add", "arguments": "{}"},
        {"name": ["add"]},
    ],
    ids=str,
)
async def test_a_call_that_is_none_is_refused_as_the_protocol_says(client, params):
    with pytest.raises(MCPError) as refused:
        await client.session._dispatcher.send_raw_request("tools/call", {**params, "_meta": meta_of(client)})
    assert refused.value.code == types.INVALID_PARAMS


async def test_fields_that_nobody_knows_go_the_long_way(client):
    params = {"name": "add", "arguments": {"a": 1}, "unheard_of": 1, "_meta": meta_of(client)}
    raw = await client.session._dispatcher.send_raw_request("tools/call", params)

    assert raw["structuredContent"] == {"sum": 11}


# -- parts -----------------------------------------------------------------------------------------------------------


def test_a_name_that_is_made_up_never_meets_one_that_stands():
    wire = ClientToolNames.of(["a b"]).to_wire["a b"]
    names = ClientToolNames.of(["a b", wire])

    assert names.wire(wire) == wire
    assert names.to_wire["a b"] != wire


def test_names_that_fit_need_no_map():
    assert ClientToolNames.of(["add", "math.double", "x-1"]) == ClientToolNames()


@pytest.mark.parametrize(("text", "shown"), [("plain", "plain"), ("größe", "größe"), ("half \ud800", "half ?")])
def test_only_what_has_no_utf8_form_is_replaced(text, shown):
    assert encodable(text) == shown


def test_data_is_made_encodable_to_its_depths():
    assert encodable_data({"\ud800": ["\ud800", 1, {"x": "\ud800"}]}) == {"?": ["?", 1, {"x": "?"}]}


def test_hidden_characters_are_written_out():
    assert visible("a\u202eb\nc\td\u200b") == "a\\u202eb\nc\td\\u200b"


def test_a_short_text_is_not_cut():
    assert clipped("abc", 3) == "abc"


def test_details_of_an_error_stay_with_the_host():
    result = ToolResult.fail("ApprovalRequired", "wait", {"token": "t0ken"})

    assert "t0ken" not in str(call_result(result, None, is_modern=True))


def test_the_output_of_a_failure_is_told_as_well():
    failed = attrs.evolve(ToolResult.fail("PartialFailure", "1 of 2"), output={"succeeded": 1})

    assert call_result(failed, None, is_modern=False)["structuredContent"] == {"succeeded": 1}


async def test_the_sdk_is_given_the_schema_of_a_tool_by_name(host):
    server = MCPServer(host).server

    assert server.get_tool_input_schema("add")["required"] == ["a"]
    assert server.get_tool_input_schema("nope") is None
    assert server.get_tool_input_schema("proposals_apply") is None


@pytest.mark.parametrize(
    "options",
    [{"principal": "ada"}, {"search_above": True}, {"search_above": "40"}, {"state_keys": [b"short"]}],
    ids=str,
)
async def test_options_that_can_not_be_meant_are_refused(host, options):
    with pytest.raises((TypeError, ValueError)):
        MCPServer(host, **options).server  # noqa: B018 - it is made when it is asked for


async def test_a_principal_without_access_sees_what_is_public(host, era):
    async with Client(MCPServer(host, principal=Principal("eve")).server, mode=era) as client:
        tools = await listed(client)

    assert "add" in tools
    assert not {"write", "remove", "vault"} & set(tools)
