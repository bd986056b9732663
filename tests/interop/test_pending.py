"""A call that waits for a person, as a model is told of it: it waits, it did not fail, and is not to be repeated."""

import json

import pytest
from langchain_core.messages import ToolMessage
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from agentos import PUBLIC, AgentOS, Answer, Descriptor, Principal, ToolCall, tool
from agentos.interop import anthropic, as_langchain_tools, as_toolset, gemini, openai
from agentos.turn.chat import run_turn

ANN = Principal("ann")


@pytest.fixture
async def host(anyio_backend):
    sent = []

    @tool(effect="mutate", required_access=PUBLIC)
    async def send(to: str) -> dict[str, str]:
        """Send a letter."""
        sent.append(to)
        return {"to": to}

    async with AgentOS() as host:
        await host.tools_service().sync([send])
        host.sent = sent
        yield host


def chat_call(id="1"):
    function = {"name": "send", "arguments": '{"to": "bob"}'}
    return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}


async def chat(host):
    messages = await openai.run(host, chat_call(), openai.tools(host, ANN))
    return messages[-1]["content"]


async def responses(host):
    output = [{"type": "function_call", "call_id": "1", "name": "send", "arguments": '{"to": "bob"}'}]
    messages = await openai.run(host, {"output": output}, openai.tools(host, ANN, api="responses"))
    return messages[-1]["output"]


async def claude(host):
    content = [{"type": "tool_use", "id": "1", "name": "send", "input": {"to": "bob"}}]
    (block,) = (await anthropic.run(host, {"content": content}, anthropic.tools(host, ANN)))[-1]["content"]
    assert "is_error" not in block
    return block["content"]


async def gemini_answer(host):
    content = {"parts": [{"function_call": {"name": "send", "args": {"to": "bob"}}}]}
    (part,) = (await gemini.run(host, content, gemini.tools(host, ANN)))[-1]["parts"]
    response = part["function_response"]["response"]
    (waiting,) = await host.approvals.pending()
    assert response["_meta"]["agentos/pending"]["proposal_id"] == waiting.id
    return response["output"]


async def langchain(host):
    (send,) = as_langchain_tools(host, ANN)
    message = await send.ainvoke({"type": "tool_call", "id": "1", "name": "send", "args": {"to": "bob"}})
    assert isinstance(message, ToolMessage)
    assert message.status == "success"
    assert message.artifact.pending["proposal_id"]
    return message.content


async def ai(host):
    def play(messages, info):
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("send", {"to": "bob"}, "1")])
        return ModelResponse(parts=[TextPart("done")])

    result = await Agent(FunctionModel(play), toolsets=[as_toolset(host, ANN)]).run("go")
    (part,) = [part for one in result.all_messages() for part in one.parts if isinstance(part, ToolReturnPart)]
    assert part.metadata["agentos/pending"]["proposal_id"]
    return part.content


class Scripted:
    def __init__(self, *messages):
        self.chat = self.completions = self
        self.messages = list(messages)

    async def create(self, **request):
        return {"choices": [{"message": self.messages.pop(0)}]}


async def turn(host):
    client = Scripted(chat_call(), {"role": "assistant", "content": "done"})
    made = await run_turn(host, client, [], model="m", principal=ANN)
    assert made.results[0].pending["proposal_id"]
    return made.messages[1]["content"]


WAYS = {
    "chat": chat,
    "responses": responses,
    "anthropic": claude,
    "gemini": gemini_answer,
    "langchain": langchain,
    "pydantic-ai": ai,
    "turn": turn,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@ways
async def test_a_call_that_waits_is_told_as_pending(host, way):
    said = await way(host)
    (waiting,) = await host.approvals.pending()

    assert said.startswith(f"Pending: {waiting.reason}. It waits for approval as proposal {waiting.id}")
    assert "do not repeat the call" in said


@ways
async def test_the_same_call_again_is_the_same_proposal_while_it_waits(host, way):
    assert await way(host) == await way(host)

    (waiting,) = await host.approvals.pending()
    assert (await host.approvals.approve(waiting.id)).output == {"to": "bob"}
    assert host.sent == ["bob"]
    assert await host.approvals.pending() == []


async def test_the_same_call_by_another_way_is_the_same_proposal(host):
    for way in WAYS.values():
        await way(host)

    assert len(await host.approvals.pending()) == 1


async def test_every_other_failure_is_one(host):
    content = [{"type": "tool_use", "id": "1", "name": "send", "input": {}}]
    (block,) = (await anthropic.run(host, {"content": content}, anthropic.tools(host, ANN)))[-1]["content"]

    assert block["is_error"] is True


# -- the same call -----------------------------------------------------------------------------------------------------


async def waits(host, who=ANN, to="bob", **more):
    call = ToolCall("send", {"to": to}, idempotency_key=more.pop("key", None))
    result = await host.tools.process_tool_call(call, who, rejoin=True, **more)
    assert result.error.type == "ApprovalRequired"
    return result


async def test_whoever_rejoins_is_given_the_same_token(host):
    first, again = await waits(host), await waits(host)

    assert dict(first.error.details) == dict(again.error.details)
    assert (await host.approvals.approve(again.error.details["token"])).success


OTHERS = {
    "another principal": {"who": Principal("bob")},
    "the same with other rights": {"who": Principal("ann", access={"x"})},
    "other arguments": {"to": "eve"},
    "another session": {"session": {"id": "s"}},
    "a key": {"key": "k"},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_another_call_is_another_proposal(host, other):
    first, second = await waits(host), await waits(host, **other)

    assert first.pending["proposal_id"] != second.pending["proposal_id"]


async def test_a_call_after_the_first_was_decided_on_is_a_new_one(host):
    first = (await waits(host)).pending["proposal_id"]
    await host.approvals.reject(first, "no")
    second = (await waits(host)).pending["proposal_id"]
    await host.approvals.edit(second, {"to": "eve"})

    assert len({first, second, (await waits(host)).pending["proposal_id"]}) == 3


async def test_a_call_after_the_first_expired_is_a_new_one(anyio_backend):
    now = [1_800_000_000.0]

    @tool(effect="mutate", required_access=PUBLIC)
    async def send(to: str) -> str:
        """Send a letter."""
        return to

    async with AgentOS(clock=lambda: now[0]) as host:
        await host.tools_service().sync([send])
        first = await waits(host)
        now[0] += 601

        assert (await waits(host)).pending != first.pending


async def test_a_tool_that_changed_meanwhile_is_asked_about_anew(host):
    first = await waits(host)

    @tool(effect="mutate", required_access=PUBLIC)
    async def send(to: str) -> str:
        """Send a letter, by another way."""
        return to

    await host.tools_service().sync([send])

    assert (await waits(host)).pending["proposal_id"] != first.pending["proposal_id"]


async def test_the_same_call_is_the_same_proposal_in_another_host_on_the_store(tmp_path):
    @tool(effect="mutate", required_access=PUBLIC)
    async def send(to: str) -> str:
        """Send a letter."""
        return to

    ids = []
    for _ in range(2):
        async with AgentOS(store=tmp_path / "agentos.db") as host:
            await host.tools_service().sync([send])
            ids.append((await waits(host)).pending["proposal_id"])

    assert ids[0] == ids[1]


async def test_who_does_not_rejoin_makes_a_proposal_for_each_call(host):
    for _ in range(2):
        await host.tools.process_tool_call(ToolCall("send", {"to": "bob"}), ANN)

    assert len(await host.approvals.pending()) == 2


async def test_a_result_that_waits_says_so_without_the_token(host):
    result = await waits(host)

    assert "token" not in json.dumps(dict(result.pending))
    assert set(result.pending) == {"proposal_id", "expires_at", "reason"}


@pytest.mark.parametrize("asked", [chat, responses, claude])
async def test_a_model_is_told_that_a_person_changed_the_arguments(host, asked):
    handler = Descriptor("hitl-handler", "editor", lambda _: Answer.edit({"to": "eve"}))
    await host.extensions.registry("hitl-handler").register(handler)
    told = await asked(host)

    assert host.sent == ["eve"]
    assert told.startswith('{"to": "eve"}')
    assert told.endswith('[A person changed the arguments of this call before it ran. It ran with {"to": "eve"}]')
