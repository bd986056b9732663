"""What a bridged server asks during a call: forms go to the client that made the call, everything else is refused."""

import asyncio
import json

import mcp_types as types
import pytest
from bridging import DEADLINE, bridge_of, bridged, call, program
from mcp import Client

from agentos.mcp import MCPServer
from agentos.mcp.client.manifest_servers import parse_servers

ERAS = ("legacy", "2026-07-28")


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


@pytest.fixture(params=ERAS)
def server_era(request):
    return request.param


def curious(server_era="legacy", **said):
    args = ["modern"] if server_era != "legacy" else []
    return {"plain": {**program("curious.py", *args), "effects": {"*": "read"}, "elicitation": True, **said}}


class Person:
    """Whoever sits at the client: gives one answer after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, context, params):
        self.asked.append(params)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return await answer() if callable(answer) else answer


def named(name):
    return types.ElicitResult(action="accept", content={"name": name})


def client_of(host, era, person=None, **options):
    return Client(MCPServer(host, **options).server, mode=era, elicitation_callback=person)


async def asked(host, era, person, name="form", **options):
    async with asyncio.timeout(DEADLINE), client_of(host, era, person, **options) as client:
        return await client.call_tool(name, {})


# -- passed on ---------------------------------------------------------------------------------------------------------


async def test_a_form_reaches_the_person_and_the_answer_the_server(era, server_era):
    person = Person(named("Ann"))
    async with bridged(curious(server_era)) as host:
        result = await asked(host, era, person)

    assert json.loads(result.content[0].text) == {"action": "accept", "content": {"name": "Ann"}}
    assert not result.is_error
    assert person.asked[0].requested_schema["properties"] == {"name": {"type": "string"}}


async def test_the_person_is_told_who_asks(era, server_era):
    person = Person(named("Ann"))
    async with bridged(curious(server_era)) as host:
        await asked(host, era, person)

    assert person.asked[0].message == "The MCP server 'plain' asks: What is your name?"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_refuse(era, server_era, action):
    async with bridged(curious(server_era)) as host:
        result = await asked(host, era, Person(types.ElicitResult(action=action)))

    assert json.loads(result.content[0].text)["action"] == action


async def test_a_server_may_ask_more_than_once(era, server_era):
    person = Person(named("Ann"), named("Bob"))
    async with bridged(curious(server_era)) as host:
        result = await asked(host, era, person, "twice")

    assert (len(person.asked), json.loads(result.content[0].text)["content"]) == (2, {"name": "Bob"})


async def test_a_call_that_waits_for_approval_asks_after_it(era, server_era):
    person = Person(types.ElicitResult(action="accept", content={"decision": "approve"}), named("Ann"))
    async with bridged(curious(server_era, effects={"*": "destructive"})) as host:
        result = await asked(host, era, person)

    assert json.loads(result.content[0].text)["content"] == {"name": "Ann"}
    assert person.asked[0].message.startswith("A call waits for your approval.")
    assert person.asked[1].message.endswith("asks: What is your name?")


async def test_a_form_through_call_tool_reaches_the_person(era):
    async with bridged(curious()) as host, client_of(host, era, Person(named("Ann")), search_above=0) as client:
        result = await client.call_tool("call_tool", {"name": "form"})

    assert json.loads(result.content[0].text)["content"] == {"name": "Ann"}


async def test_a_call_whose_client_does_not_come_back_ends_with_the_server(anyio_backend):
    """In the era without sessions nobody may ever answer: nothing is left when the server is closed."""
    async with bridged(curious()) as host:
        server = MCPServer(host)
        async with Client(server.server, mode="2026-07-28", elicitation_callback=Person(named("Ann"))) as client:
            first = await client.session.call_tool("form", {}, allow_input_required=True)
            assert isinstance(first, types.InputRequiredResult)
            assert len(server._questions._paused) == 1
        await server.close()

        assert len(server._questions._paused) == 0
        assert bridge_of(host).why_not() is None


async def test_an_answer_to_a_call_that_is_gone_says_so(anyio_backend):
    async with bridged(curious()) as host:
        server = MCPServer(host)
        async with Client(server.server, mode="2026-07-28", elicitation_callback=Person(named("Ann"))) as client:
            first = await client.session.call_tool("form", {}, allow_input_required=True)
            await server._questions.close()
            again = await client.session.call_tool(
                "form", {}, input_responses={"question": named("Ann")}, request_state=first.request_state
            )

    assert again.content[0].text.startswith("Cancelled: the call that asked is not under way any more")


# -- refused -----------------------------------------------------------------------------------------------------------


async def test_a_server_that_may_not_ask_is_told_so(era, server_era):
    person = Person(named("Ann"))
    async with bridged(curious(server_era, elicitation=False)) as host:
        result = await asked(host, era, person)

    assert result.is_error
    assert "the server may not ask people (elicitation)" in result.content[0].text
    assert person.asked == []


@pytest.mark.parametrize(
    ("said", "may_ask"),
    [
        ({}, False),
        ({"trust": True}, True),
        ({"trust": True, "elicitation": False}, False),
        ({"elicitation": True}, True),
    ],
    ids=str,
)
async def test_a_trusted_server_may_ask_unless_the_operator_says_otherwise(said, may_ask):
    (server,) = parse_servers({"s": {"command": "x", **said}})

    assert server.may_ask is may_ask


async def test_a_server_that_may_not_ask_is_offered_nothing(anyio_backend):
    async with bridged(curious(elicitation=False)) as host:
        assert json.loads((await call(host, "capabilities")).content) == {}


async def test_a_client_that_can_not_be_asked_is_not(era, server_era):
    async with bridged(curious(server_era)) as host:
        result = await asked(host, era, None)

    assert result.is_error
    assert "nobody can be asked" in result.content[0].text


async def test_a_call_of_the_host_itself_asks_nobody(server_era):
    async with bridged(curious(server_era)) as host:
        result = await call(host, "form")

    assert (result.success, "nobody can be asked" in result.content) == (False, True)


async def test_a_question_that_may_be_about_two_calls_is_put_to_nobody(anyio_backend):
    """In the older era a question does not say which call it is about."""
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow():
        started.set()
        await go_on.wait()
        return named("Ann")

    other = Person(named("Eve"))
    async with bridged(curious()) as host, asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        first = group.create_task(asked(host, "legacy", Person(slow)))
        await started.wait()
        second = await asked(host, "legacy", other)
        go_on.set()

    assert "several calls are under way" in second.content[0].text
    assert other.asked == []
    assert json.loads(first.result().content[0].text)["content"] == {"name": "Ann"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("model", "the host does not lend its model to servers (sampling)"),
        ("roots", "the host tells servers of no folders (roots)"),
        ("link", "only forms are passed on, no addresses"),
    ],
)
async def test_what_else_a_server_asks_for_is_refused_with_the_reason(era, server_era, name, reason):
    person = Person(named("Ann"))
    async with bridged(curious(server_era)) as host:
        result = await asked(host, era, person, name)

    assert (result.is_error, reason in result.content[0].text, person.asked) == (True, True, [])
