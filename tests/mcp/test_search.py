"""Finding tools: the ranking by itself, and search_tools and load_tools as clients of both eras use them."""

import asyncio
import sys
from pathlib import Path

import anyio
import attrs
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.server.subscriptions import ToolsListChanged

import agentos.mcp.server.shown_tools as offering
from agentos import PUBLIC, ExtensionPack, Principal, Tool
from agentos.mcp import MCPServer
from agentos.mcp.server import own_tools as _own_tools
from agentos.stacks.entry import EntryState
from agentos.tools.listing import ToolInfo
from agentos.tools.search import PARAMETER_LIMIT, RESULT_LIMIT, ToolIndex, terms_of

sys.path.append(str(Path(__file__).parent))
import fixture_pack as pack

ERAS = ("legacy", "2026-07-28")


def info(name, description="", properties=None, schema=None):
    return ToolInfo(
        name=name,
        description=description,
        input_schema=schema or {"type": "object", "properties": properties or {}},
        output_schema=None,
        effect="read",
        required_access=PUBLIC,
        display_name=name,
        category=None,
        source="extension",
        fully_qualified_id=f"p:{name}",
        aliases=(),
        state=EntryState.ACTIVE,
    )


SHELF = [
    info("send_mail", "Send a message to somebody.", {"to": {"description": "Whom to write to"}}),
    info("read_mail", "Read the messages in the inbox."),
    info("convertCurrency", "Convert an amount of money.", {"from_currency": {}, "to_currency": {}}),
    info("weather", "Tell the weather at a place.", {"city": {"description": "Name of a town"}}),
    info("list_files", "List the files of a folder."),
]


def found(query, limit=10, shelf=SHELF, **options):
    return [hit.info.name for hit in ToolIndex(shelf).search(query, limit, **options)]


# -- ranking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("send a mail", "send_mail"),
        ("currencies", "convertCurrency"),
        ("convert money", "convertCurrency"),
        ("CONVERT CURRENCY", "convertCurrency"),
        ("town", "weather"),
        ("from currency", "convertCurrency"),
        ("inbox", "read_mail"),
        ("file listing list", "list_files"),
        ("weath", "weather"),
    ],
)
def test_the_tool_that_fits_best_comes_first(query, best):
    assert found(query)[0] == best


def test_a_name_counts_more_than_a_description():
    shelf = [info("other", "About invoices and invoices."), info("invoice", "Something.")]

    assert found("invoice", shelf=shelf) == ["invoice", "other"]


def test_a_rare_word_counts_more_than_a_common_one():
    shelf = [*(info(f"get_{place}", "Get a thing.") for place in range(20)), info("set_zebra", "Set a thing.")]

    assert found("get zebra", shelf=shelf)[0] == "set_zebra"


def test_a_short_text_counts_more_than_a_long_one():
    shelf = [info("a", "stamp " + "and much else besides " * 30), info("b", "stamp")]

    assert found("stamp", shelf=shelf) == ["b", "a"]


def test_whoever_knows_the_name_finds_the_tool():
    shelf = [info("mail_mail_mail", "mail " * 20), info("mail", "x")]

    assert found("mail", shelf=shelf)[0] == "mail"
    assert found(" MAIL ", shelf=shelf)[0] == "mail"


def test_a_name_without_any_word_is_found_too():
    assert found("___", shelf=[info("___")]) == ["___"]


def test_equals_keep_the_order_of_the_list():
    shelf = [info(f"tool_{letter}", "Turn the wheel.") for letter in "dbac"]

    assert found("wheel", shelf=shelf) == ["tool_d", "tool_b", "tool_a", "tool_c"]


def test_what_fits_nothing_finds_nothing():
    assert found("quantum") == []


@pytest.mark.parametrize("query", ["", "   ", "!?", "of"])
def test_a_query_without_a_word_that_is_known_finds_nothing(query):
    assert found(query, shelf=[info("x", "y")]) == []


def test_nothing_is_found_among_nothing():
    assert found("mail", shelf=[]) == []


def test_only_what_one_may_see_is_found():
    assert found("mail", among={"read_mail"}) == ["read_mail"]


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (0, 0), (-3, 0), (10_000, RESULT_LIMIT)])
def test_the_number_of_results_is_bounded(limit, count):
    shelf = [info(f"tool_{place}", "wheel") for place in range(200)]

    assert len(found("wheel", limit, shelf=shelf)) == count


def test_a_word_that_nobody_uses_stands_for_those_that_begin_with_it():
    assert found("curr") == ["convertCurrency"]
    assert found("cu") == []


def test_nested_parameters_count():
    schema = {
        "type": "object",
        "properties": {
            "trips": {"type": "array", "items": {"type": "object", "properties": {"airport": {"type": "string"}}}}
        },
    }

    assert found("airport", shelf=[info("plan", schema=schema)]) == ["plan"]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": "none"},
        {"properties": {"a": True, "b": {"description": 5}, "c": None}},
        {"properties": {f"p{place}": {} for place in range(100_000)}},
        {"items": [1, 2]},
        {},
    ],
    ids=["no mapping", "odd parts", "many", "odd items", "empty"],
)
def test_schemas_of_any_shape_are_taken(schema):
    assert found("plan", shelf=[info("plan", schema=schema)]) == ["plan"]


def test_parameters_beyond_the_limit_do_not_count():
    properties = {f"p{place}": {} for place in range(PARAMETER_LIMIT)}
    shelf = [info("plan", properties={**properties, "zebra": {}})]

    assert found("zebra", shelf=shelf) == []


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("sendMails", ["send", "mail"]),
        ("HTTPServer2Go", ["http", "server2", "go"]),
        ("get_user-by.id", ["get", "user", "by", "id"]),
        ("Höhe, LÄNGE", ["höhe", "länge"]),
        ("日本 語", ["日本", "語"]),
    ],
)
def test_a_text_is_taken_apart_into_words(text, terms):
    assert terms_of(text) == [one for term in terms for one in terms_of(term)]
    assert len(terms_of(text)) == len(terms)


@pytest.mark.parametrize(
    "alike",
    [
        "send sends sending",
        "query queries",
        "convert converts converted converting converter",
        "planning plan plans planned planner",
        "organize organization organizations",
        "mail Mails mailing MAILED",
        "file files",
        "bus",
        "status",
    ],
)
def test_the_forms_of_a_word_are_one(alike):
    assert len(set(terms_of(alike))) == 1


@pytest.mark.parametrize("different", ["mail male", "user usage", "bus boss", "is as", "list last", "code coal"])
def test_different_words_stay_different(different):
    assert len(set(terms_of(different))) == 2


def test_what_only_asks_does_not_count():
    shelf = [info("like_this", "You would like to know what you want."), info("weather", "Tell the weather.")]

    assert found("I would like to know what the weather is, please", shelf=shelf)[0] == "weather"


def test_what_only_asks_counts_where_nothing_else_is_said():
    assert found("what to do", shelf=[info("x"), info("to_do", "What to do.")]) == ["to_do"]


def test_the_end_of_a_long_query_counts():
    query = " ".join(f"word{place}" for place in range(200)) + " weather"

    assert found(query) == ["weather"]


def test_an_index_knows_how_many_tools_it_has():
    assert len(ToolIndex(SHELF)) == 5


@given(st.text(max_size=200), st.integers(-5, 200))
def test_any_query_gets_a_list_in_the_order_of_its_scores(query, limit):
    hits = ToolIndex(SHELF).search(query, limit)

    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score > 0 for hit in hits)


# -- as a client sees it ---------------------------------------------------------------------------------------------


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture
async def host(anyio_backend):
    async with pack.hosted() as host:
        await host.extensions.load_pack(pack.many(50))
        yield host


@pytest.fixture
def server(host):
    return MCPServer(host, principal=pack.USER)


@pytest.fixture
async def client(server, era):
    async with Client(server.server, mode=era) as client:
        yield client


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


SEARCH = ["search_tools", "load_tools", "call_tool"]
OWN = [*SEARCH, "proposals_list", "proposals_show", "proposals_apply", "proposals_reject"]


async def test_a_client_sees_a_search_in_place_of_too_many_tools(client):
    assert await names(client) == OWN


async def test_a_client_sees_the_tools_where_there_are_few(host, era):
    async with Client(MCPServer(host, search_above=1_000).server, mode=era) as client:
        listed = await names(client)

    assert "add" in listed
    assert "search_tools" not in listed


async def test_the_search_can_be_turned_off(host, era):
    async with Client(MCPServer(host, search_above=None).server, mode=era) as client:
        listed = await names(client)
        called = await client.call_tool("search_tools", {"query": "x"})

    assert len(listed) == len(host.tools.listed(None)) + 4
    assert "there is no tool called 'search_tools'" in called.content[0].text


async def test_what_counts_is_what_the_principal_may_see(host, era):
    """One principal is shown its few tools, another searches among many."""
    private = [
        Tool.from_schema(
            name=f"private_{place}",
            description="Private.",
            input_schema={"type": "object", "properties": {}},
            effect="read",
            required_access=("private",),
            execute=lambda args, context: 1,
        )
        for place in range(100)
    ]
    await host.extensions.load_pack(ExtensionPack("private", "1", private))
    limit = len(host.tools.listed(pack.USER))
    async with Client(MCPServer(host, principal=pack.USER, search_above=limit).server, mode=era) as few:
        assert "add" in await names(few)
    async with Client(MCPServer(host, search_above=limit).server, mode=era) as many:
        assert await names(many) == OWN


async def test_searching_tells_what_fits(client):
    result = await client.call_tool("search_tools", {"query": "write a file", "limit": 2})
    (best, _) = result.structured_content["tools"]

    assert best == {
        "name": "write",
        "description": "Write a file.",
        "effect": "mutate",
        "parameters": ["path", "text"],
    }


async def test_a_secret_that_stands_where_a_description_is_cut_is_masked(client, host):
    host.extensions.masker.learn("hunter2-and-more")
    description = "Divulge. " + "x" * 480 + " hunter2-and-more"
    made = Tool.from_schema(
        name="leak",
        description=description,
        input_schema={"type": "object", "properties": {}},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: None,
    )
    await host.extensions.load_pack(ExtensionPack("leak", "1", [made]))
    hits = (await client.call_tool("search_tools", {"query": "divulge"})).structured_content["tools"]

    assert hits[0]["description"].endswith("x ***")


async def test_searching_without_success_says_so(client):
    result = await client.call_tool("search_tools", {"query": "quantum"})

    assert result.content[0].text == "Nothing fits. Search in other words."
    assert result.structured_content == {"tools": []}


async def test_searching_finds_nothing_that_one_may_not_call(client):
    result = await client.call_tool("search_tools", {"query": "vault"})

    assert "vault" not in [one["name"] for one in result.structured_content["tools"]]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": ""}, {"query": "x", "limit": 0}, {"query": "x" * 5_000}],
    ids=["none", "empty", "limit", "long"],
)
async def test_searching_checks_its_arguments(client, arguments):
    assert (await client.call_tool("search_tools", arguments)).content[0].text.startswith("InvalidArguments")


async def test_a_tool_that_was_not_loaded_can_be_called(client):
    assert (await client.call_tool("tool_7", {})).content[0].text == "7"


async def test_what_was_loaded_is_offered_from_then_on(client):
    result = await client.call_tool("load_tools", {"names": ["tool_7", "add", "tool_7"]})

    assert [one["name"] for one in result.structured_content["loaded"]] == ["tool_7", "add"]
    assert result.structured_content["loaded"][1]["inputSchema"]["required"] == ["a"]
    assert await names(client) == [*OWN, "tool_7", "add"]


async def test_loading_more_adds_to_what_was_loaded(client):
    await client.call_tool("load_tools", {"names": ["tool_7"]})
    await client.call_tool("load_tools", {"names": ["tool_8"]})

    assert await names(client) == [*OWN, "tool_7", "tool_8"]


async def test_unknown_names_are_told_with_what_may_have_been_meant(client):
    result = await client.call_tool("load_tools", {"names": ["add", "wriet"]})

    assert result.structured_content["unknown"] == ["there is no tool called 'wriet'; did you mean 'write'?"]


async def test_only_of_the_first_unknown_names_it_is_told_what_may_have_been_meant(client):
    misspelt = [f"wri{number}te" for number in range(6)]
    result = await client.call_tool("load_tools", {"names": ["add", *misspelt]})

    hinted = ["did you mean 'write'?" in told for told in result.structured_content["unknown"]]
    assert hinted == [True, True, True, False, False, False]


async def test_what_may_have_been_meant_is_looked_for_among_a_bounded_number_of_tools(client, monkeypatch):
    monkeypatch.setattr(_own_tools, "_NAMES_SEARCHED", 0)
    result = await client.call_tool("load_tools", {"names": ["add", "wriet"]})

    assert result.structured_content["unknown"] == ["there is no tool called 'wriet'"]


async def test_loading_only_unknown_names_is_an_error(client):
    result = await client.call_tool("load_tools", {"names": ["vault"]})

    assert result.is_error
    assert await names(client) == OWN


async def test_a_name_that_was_made_up_for_the_wire_can_be_loaded(client):
    hit = (await client.call_tool("search_tools", {"query": "measure size"})).structured_content["tools"][0]
    await client.call_tool("load_tools", {"names": [hit["name"]]})

    assert hit["name"].startswith("gr_")
    assert hit["name"] in await names(client)


async def test_another_conversation_has_not_loaded_it(server, era):
    async with Client(server.server, mode=era, client_info=types.Implementation(name="one", version="1")) as one:
        await one.call_tool("load_tools", {"names": ["add"]})
        async with Client(server.server, mode=era, client_info=types.Implementation(name="two", version="1")) as two:
            assert await names(two) == OWN
        assert "add" in await names(one)


async def test_without_sessions_a_client_is_known_by_its_name_and_principal(host):
    who = {"now": pack.USER}
    server = MCPServer(host, principal=lambda ctx: who["now"])
    async with Client(server.server, mode="2026-07-28") as first:
        await first.call_tool("load_tools", {"names": ["add"]})
    async with Client(server.server, mode="2026-07-28") as again:
        assert "add" in await names(again)
        who["now"] = Principal("eve")
        assert await names(again) == OWN


async def test_a_user_and_a_service_of_one_id_are_two_clients(host):
    who = {"now": pack.USER}
    server = MCPServer(host, principal=lambda ctx: who["now"])
    async with Client(server.server, mode="2026-07-28") as client:
        await client.call_tool("load_tools", {"names": ["add"]})
        who["now"] = attrs.evolve(pack.USER, kind="service")

        assert "add" not in await names(client)


async def test_a_session_ends_with_what_it_loaded(server):
    async with Client(server.server, mode="legacy") as first:
        await first.call_tool("load_tools", {"names": ["add"]})
    async with Client(server.server, mode="legacy") as again:
        assert await names(again) == OWN


async def test_of_clients_without_a_session_a_bounded_number_is_remembered(server, monkeypatch):
    monkeypatch.setattr(offering, "CLIENTS_REMEMBERED", 2)
    for name in ("a", "b", "c"):
        info = types.Implementation(name=name, version="1")
        async with Client(server.server, mode="2026-07-28", client_info=info) as client:
            await client.call_tool("load_tools", {"names": ["add"]})

    assert [key[2] for key in server._shown._loaded] == ["b", "c"]


async def test_of_what_was_loaded_a_bounded_number_is_kept(client, monkeypatch):
    monkeypatch.setattr(offering, "LOADED_LIMIT", 2)
    await client.call_tool("load_tools", {"names": ["tool_1", "tool_2", "tool_3"]})

    assert await names(client) == [*OWN, "tool_2", "tool_3"]


async def test_a_tool_that_goes_away_is_not_offered_any_more(client, host):
    await client.call_tool("load_tools", {"names": ["tool_1", "add"]})
    await host.extensions.set_override("tool", "tool_1", {"enabled": False})

    assert await names(client) == [*OWN, "add"]


async def test_loading_is_told_to_the_client_that_did_it_and_to_no_other(server):
    told = {"one": [], "two": []}

    def hearing(name):
        async def handle(message):
            if isinstance(message, types.ToolListChangedNotification):
                told[name].append(message)

        return handle

    async with (
        Client(server.server, mode="legacy", message_handler=hearing("one")) as one,
        Client(server.server, mode="legacy", message_handler=hearing("two")) as two,
    ):
        with anyio.fail_after(5):
            while len(server._notifier._sessions) < 2:
                await asyncio.sleep(0)
            await one.call_tool("load_tools", {"names": ["add"]})
            while not told["one"]:
                await asyncio.sleep(0)
        await two.list_tools()

    assert (len(told["one"]), len(told["two"])) == (1, 0)


async def test_loading_is_told_on_the_clients_stream_alone(server):
    one, two = (types.Implementation(name=name, version="1") for name in ("one", "two"))
    async with (
        Client(server.server, mode="2026-07-28", client_info=one) as first,
        Client(server.server, mode="2026-07-28", client_info=two) as second,
        first.listen(tools_list_changed=True) as mine,
        second.listen(tools_list_changed=True) as others,
    ):
        await first.call_tool("load_tools", {"names": ["add"]})
        await server.close()

        assert [event async for event in mine] == [ToolsListChanged()]
        assert [event async for event in others] == []


async def test_loading_what_is_loaded_changes_nothing(server):
    async with Client(server.server, mode="2026-07-28") as client, client.listen(tools_list_changed=True) as stream:
        await client.call_tool("load_tools", {"names": ["add"]})
        assert await anext(stream) == ToolsListChanged()
        await client.call_tool("load_tools", {"names": ["add"]})
        await server.close()

        assert [event async for event in stream] == []


async def test_a_client_that_is_not_remembered_is_told_nothing(server):
    async with Client(server.server, mode="legacy") as client:
        with anyio.fail_after(5):
            while not server._notifier._sessions:
                await asyncio.sleep(0)
        server._notifier.close()

        assert not (await client.call_tool("load_tools", {"names": ["add"]})).is_error


async def test_the_index_is_made_once_until_something_changes(server, host, client, monkeypatch):
    made = []
    real = offering.index_of

    def counting(infos):
        made.append(len(infos))
        return real(infos)

    monkeypatch.setattr(offering, "index_of", counting)
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(lambda: client.call_tool("search_tools", {"query": "wheel"}))
    await host.extensions.set_override("tool", "tool_1", {"enabled": False})
    await client.call_tool("search_tools", {"query": "wheel"})

    assert made == [made[0], made[0] - 1]


async def test_ten_thousand_tools_are_searched(anyio_backend):
    async with pack.hosted() as host:
        await host.extensions.load_pack(pack.many(10_000))
        async with Client(MCPServer(host).server, mode="2026-07-28") as client:
            result = await client.call_tool("search_tools", {"query": "wheel number 9876", "limit": 1})

    assert result.structured_content["tools"][0]["name"] == "tool_9876"


async def test_lists_of_many_kinds_of_principals_are_kept_within_bounds(server, host):
    for number in range(100):
        server._shown.callable_by(Principal(f"p{number}", access={f"rule{number}"}))

    assert len(server._shown._by_name) <= 64


# -- call_tool: for clients that list once ---------------------------------------------------------------------------


async def test_a_client_that_lists_once_calls_what_it_found(client):
    await client.list_tools()
    (hit,) = (await client.call_tool("search_tools", {"query": "wheel 42", "limit": 1})).structured_content["tools"]

    called = await client.call_tool("call_tool", {"name": hit["name"], "arguments": {"turns": 2}})

    assert (called.is_error, called.content[0].text) == (False, "42")


async def test_the_arguments_may_be_left_out(client):
    assert (await client.call_tool("call_tool", {"name": "tool_7"})).content[0].text == "7"


async def test_the_result_is_that_of_a_call_by_name(client):
    by_name = await client.call_tool("add", {"a": 1})
    through = await client.call_tool("call_tool", {"name": "add", "arguments": {"a": 1}})

    assert through == by_name


async def test_a_name_that_was_made_up_for_the_wire_can_be_called(client):
    hit = (await client.call_tool("search_tools", {"query": "measure size"})).structured_content["tools"][0]
    called = await client.call_tool("call_tool", {"name": hit["name"], "arguments": {"of": "a shoe"}})

    assert called.content[0].text == "the size of a shoe"


async def test_the_errors_are_those_of_the_tool_that_is_meant(client):
    named = await client.call_tool("add", {"aa": 1})
    through = await client.call_tool("call_tool", {"name": "add", "arguments": {"aa": 1}})

    assert "$.aa: unknown key" in through.content[0].text
    assert through == named


@pytest.mark.parametrize(
    "arguments", [{}, {"name": ""}, {"name": 5}, {"name": "add", "arguments": "a=1"}, {"nam": "x"}]
)
async def test_calling_checks_its_own_arguments(client, arguments):
    assert (await client.call_tool("call_tool", arguments)).content[0].text.startswith("InvalidArguments")


async def test_what_one_may_not_call_does_not_exist_through_it_either(client):
    called = await client.call_tool("call_tool", {"name": "vault"})

    assert called.content[0].text == (await client.call_tool("vault", {})).content[0].text
    assert "there is no tool called 'vault'" in called.content[0].text


@pytest.mark.parametrize("name", OWN)
async def test_the_servers_own_tools_are_called_by_their_own_names(client, name):
    called = await client.call_tool("call_tool", {"name": name, "arguments": {"query": "x"}})

    assert called.content[0].text == f"InvalidArguments: {name!r} is among your tools: call it by its own name"


async def test_an_output_that_is_no_object_is_no_error_though_no_schema_was_told(client):
    """Whoever calls by name knows the output's schema; through call_tool nobody was told one."""
    called = await client.call_tool("call_tool", {"name": "words", "arguments": {"text": "a b"}})

    assert not called.is_error
    assert called.structured_content is None
    assert '"a"' in called.content[0].text


async def test_what_changes_something_waits_for_approval_as_itself(host, era):
    async with Client(MCPServer(host, principal=pack.USER).server, mode=era) as client:
        called = await client.call_tool("call_tool", {"name": "write", "arguments": {"path": "a.txt"}})
    (proposal,) = await host.approvals.pending()

    assert called.content[0].text.startswith("Pending: ")
    assert (proposal.tool, proposal.effect, proposal.arguments) == (
        "fixture:write",
        "mutate",
        {"path": "a.txt", "text": ""},
    )
    assert pack.seen == []


async def test_who_is_asked_in_place_sees_the_tool_that_is_meant(host, era):
    asked = []

    async def person(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    server = MCPServer(host, principal=pack.USER).server
    async with Client(server, mode=era, elicitation_callback=person) as client:
        called = await client.call_tool("call_tool", {"name": "remove", "arguments": {"path": "a.txt"}})

    assert called.content[0].text == "removed a.txt"
    assert pack.seen == ["removed a.txt"]
    assert "Tool: fixture:remove (destructive)" in asked[0]


async def test_the_audit_names_the_tool_that_is_meant(host, era):
    async with Client(MCPServer(host, principal=pack.USER).server, mode=era) as client:
        await client.call_tool("call_tool", {"name": "tool_7"})
        await client.call_tool("call_tool", {"name": "write", "arguments": {"path": "a.txt"}})
    records = await host.audit.records()
    named = {str(record.data.get("tool")) for record in records}

    assert {"many:tool_7", "fixture:write"} <= named
    assert not any("call_tool" in one for one in named)


async def test_progress_of_the_tool_that_is_meant_arrives(client):
    told = []

    async def note(done, total, message):
        told.append((done, total))

    await client.call_tool("call_tool", {"name": "count", "arguments": {"to": 3}}, progress_callback=note)

    assert told == [(1, 3), (2, 3), (3, 3)]


async def test_call_tool_says_that_it_may_do_anything(client):
    (listed,) = [tool for tool in (await client.list_tools()).tools if tool.name == "call_tool"]

    assert (listed.annotations.read_only_hint, listed.annotations.destructive_hint) == (False, True)


async def test_a_tool_of_a_pack_that_is_called_call_tool_is_reached_under_another_name(client, host):
    made = Tool.from_schema(
        name="call_tool",
        description="Phone somebody.",
        input_schema={"type": "object", "properties": {}},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: "ringing",
    )
    await host.extensions.load_pack(ExtensionPack("phone", "1", [made]))
    hit = (await client.call_tool("search_tools", {"query": "phone somebody"})).structured_content["tools"][0]
    called = await client.call_tool("call_tool", {"name": hit["name"]})

    assert hit["name"].startswith("call_tool_")
    assert called.content[0].text == "ringing"


async def test_call_tool_goes_with_the_search(host, era):
    async with Client(MCPServer(host, search_above=None).server, mode=era) as client:
        called = await client.call_tool("call_tool", {"name": "add", "arguments": {"a": 1}})

    assert "there is no tool called 'call_tool'" in called.content[0].text
