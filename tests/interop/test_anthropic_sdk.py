"""Anthropic: the way back, and the real SDK against a loopback endpoint that refuses what Anthropic would refuse."""

import re

import pytest

sdk = pytest.importorskip("anthropic", reason="the anthropic SDK is not installed")

from agentos import Principal  # noqa: E402
from agentos.interop import anthropic  # noqa: E402

ASKED = [{"role": "user", "content": "1 + 10?"}]


def message(*content, stop_reason="tool_use"):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def use(id="toolu_1", name="add", input=None):
    return {"type": "tool_use", "id": id, "name": name, "input": {"a": 1} if input is None else input}


THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
TEXT = {"type": "text", "text": "Let me see.", "citations": None}
DONE = message({"type": "text", "text": "11"}, stop_reason="end_turn")


def fault(request):
    """Say what Anthropic would say: results come first and at once, one for each use, and no text is empty."""
    waiting = []
    for one in request["messages"]:
        blocks = one["content"] if isinstance(one["content"], list) else [{"type": "text", "text": one["content"]}]
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return "text content blocks must be non-empty"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if results != waiting:
            return f"asked {waiting}, answered {results}"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(waiting) != len(set(waiting)):
            return "tool_use ids must be unique"
        if not all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", b["name"]) for b in blocks if b["type"] == "tool_use"):
            return "a name does not fit"
    return f"no result for {waiting}" if waiting else None


@pytest.fixture
async def client(endpoint):
    endpoint.check = fault
    async with sdk.AsyncAnthropic(base_url=endpoint.url, api_key="-", max_retries=0) as client:
        yield client


async def ask(client, messages, tools):
    return await client.messages.create(model="m", max_tokens=64, messages=messages, tools=tools)


async def test_the_tools_arrive_as_they_are(host, endpoint, client):
    endpoint.script = [DONE]
    await ask(client, ASKED, anthropic.tools(host))

    assert anthropic.tools(host) == endpoint.requests[0]["tools"]
    assert endpoint.paths == ["/v1/messages"]


async def test_the_calls_are_run_and_the_next_request_is_accepted(host, endpoint, client):
    endpoint.script = [message(THINKING, TEXT, use(), use("toolu_1", "no such!", {})), DONE]
    tools = anthropic.tools(host)
    response = await ask(client, ASKED, tools)
    messages = [*ASKED, *await anthropic.run(host, response, tools)]
    response = await ask(client, messages, tools)

    assert response.content[0].text == "11"
    assert messages == endpoint.requests[1]["messages"]


async def test_what_the_model_thought_is_repeated_unchanged(host, endpoint, client):
    endpoint.script = [message(THINKING, use())]
    tools = anthropic.tools(host)
    messages = await anthropic.run(host, await ask(client, ASKED, tools), tools)

    assert {"role": "assistant", "content": [THINKING, use()]} == messages[0]


async def test_the_parsed_response_and_the_raw_one_give_the_same(host, endpoint, client):
    raw = message(TEXT, use())
    endpoint.script = [raw]
    tools = anthropic.tools(host)

    assert await anthropic.run(host, raw, tools) == await anthropic.run(host, await ask(client, ASKED, tools), tools)


async def test_a_null_in_the_input_is_repeated(host, endpoint, client):
    endpoint.script = [message(use(input={"a": None}))]
    tools = anthropic.tools(host)
    messages = await anthropic.run(host, await ask(client, ASKED, tools), tools)

    assert messages[0]["content"][0]["input"] == {"a": None}


# -- the way back, without the SDK ---------------------------------------------------------------------------------


async def test_a_success_is_no_error(host):
    messages = await anthropic.run(host, message(use()), anthropic.tools(host))

    assert messages[1]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"sum": 11}'}]


@pytest.mark.parametrize("bad", [use(name="nope"), use(input={}), use(name="fail", input={}), use(input="{")], ids=str)
async def test_a_failure_is_an_error(host, bad):
    messages = await anthropic.run(host, message(bad), anthropic.tools(host))

    assert messages[1]["content"][0]["is_error"] is True
    assert fault({"messages": messages}) is None


@pytest.mark.parametrize("ids", [("t", "t"), (None, ""), ("t", None, "t")], ids=str)
async def test_every_use_gets_one_result(host, ids):
    messages = await anthropic.run(host, message(*(use(id) for id in ids)), anthropic.tools(host))

    assert len(ids) == len(messages[1]["content"])
    assert fault({"messages": messages}) is None


async def test_a_plain_list_finds_the_way_back_again(host):
    tools = anthropic.tools(host)
    asked = message(use(name=tools.names.to_wire["text.shout/größer"], input={"text": "hi"}))
    messages = await anthropic.run(host, asked, list(tools))

    assert messages[1]["content"][0]["content"] == "HI"


async def test_calls_are_made_for_the_principal(host):
    messages = await anthropic.run(host, message(use(name="whoami", input={})), [], Principal("ada"), session={"id": 1})

    assert messages[1]["content"][0]["content"] == '{"principal": "ada", "call": "toolu_1", "session": {"id": 1}}'


async def test_without_calls_only_what_was_said_is_appended(host):
    assert await anthropic.run(host, DONE, []) == [{"role": "assistant", "content": [{"type": "text", "text": "11"}]}]


async def test_a_text_without_any_is_not_repeated(host):
    assert await anthropic.run(host, message({"type": "text", "text": " "}), []) == []


async def test_content_may_be_a_text(host):
    expected = [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}]

    assert expected == await anthropic.run(host, {"role": "assistant", "content": "Hi"}, [])


async def test_what_is_no_message_is_refused_in_words(host):
    with pytest.raises(ValueError, match="expected a message with content"):
        await anthropic.run(host, {"type": "error"}, [])
