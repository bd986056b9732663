"""The real openai SDK against an endpoint on loopback that refuses what OpenAI would refuse."""

import json

import pytest

sdk = pytest.importorskip("openai", reason="the openai SDK is not installed")

from agentos.interop import openai  # noqa: E402

ASKED = [{"role": "user", "content": "1 + 10?"}]


def completion(**message):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                "logprobs": None,
                "message": {"role": "assistant", "content": None, "refusal": None, "annotations": [], **message},
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def call(id, name, arguments):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


CALLS = completion(tool_calls=[call("c1", "add", '{"a": 1}'), call("c2", "nope", ""), call("c2", "add", "{")])
DONE = completion(content="11")


def fault_in_chat(request):
    """Say what OpenAI would say: every call is answered, at once, by its id, and nothing else is."""
    waiting = []
    for message in request["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting or not isinstance(message["content"], str):
                return f"unexpected tool message {message}"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return f"no answer to {waiting}"
        if message["role"] == "assistant" and message.keys() - {"role", "content", "tool_calls", "refusal"}:
            return f"unknown key in {message}"
        waiting += [call["id"] for call in message.get("tool_calls", [])]
    return f"no answer to {waiting}" if waiting else None


def fault_in_responses(request):
    items = request["input"]
    asked = [item["call_id"] for item in items if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    return None if asked == answered else f"asked {asked}, answered {answered}"


@pytest.fixture
async def client(endpoint):
    async with sdk.AsyncOpenAI(base_url=f"{endpoint.url}/v1", api_key="-", max_retries=0) as client:
        yield client


async def test_the_tools_arrive_as_they_are(host, endpoint, client):
    endpoint.script = [DONE]
    await client.chat.completions.create(model="m", messages=ASKED, tools=openai.tools(host))

    assert openai.tools(host) == endpoint.requests[0]["tools"]
    assert endpoint.paths == ["/v1/chat/completions"]


async def test_the_calls_are_run_and_the_next_request_is_accepted(host, endpoint, client):
    endpoint.script = [CALLS, DONE]
    endpoint.check = fault_in_chat
    tools = openai.tools(host)
    response = await client.chat.completions.create(model="m", messages=ASKED, tools=tools)
    messages = [*ASKED, *await openai.run(host, response, tools)]
    response = await client.chat.completions.create(model="m", messages=messages, tools=tools)

    assert response.choices[0].message.content == "11"
    assert endpoint.requests[1]["messages"][2]["content"] == '{"sum": 11}'


async def test_the_parsed_response_and_the_raw_one_give_the_same(host, endpoint, client):
    only = completion(tool_calls=[call("c1", "add", '{"a": 1}')])
    endpoint.script = [only]
    tools = openai.tools(host)
    response = await client.chat.completions.create(model="m", messages=ASKED, tools=tools)

    assert await openai.run(host, only, tools) == await openai.run(host, response, tools)


async def test_a_strict_call_goes_there_and_back(host, endpoint, client):
    """The SDK's own helper parses strict calls, and what it adds does not get into the next request."""
    endpoint.script = [completion(tool_calls=[call("c1", "add", '{"a": 1, "b": null}')]), DONE]
    endpoint.check = fault_in_chat
    tools = [tool for tool in openai.tools(host, strict=True) if tool["function"]["strict"]]
    response = await client.chat.completions.parse(model="m", messages=ASKED, tools=tools)
    added = await openai.run(host, response, tools)
    await client.chat.completions.create(model="m", messages=[*ASKED, *added], tools=tools)

    assert added[1]["content"] == '{"sum": 11}'
    assert added == endpoint.requests[1]["messages"][1:]


def response(*output):
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed", "status": None}
TEXT = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "11", "annotations": []}],
}


def function_call(call_id, name, arguments):
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


async def test_responses_tools_arrive_as_they_are(host, endpoint, client):
    endpoint.script = [response(TEXT)]
    tools = openai.tools(host, api="responses", strict=True)
    await client.responses.create(model="m", input=ASKED, tools=tools)

    assert json.loads(json.dumps(tools)) == endpoint.requests[0]["tools"]
    assert endpoint.paths == ["/v1/responses"]


async def test_the_calls_of_a_response_are_run_and_the_next_request_is_accepted(host, endpoint, client):
    calls = [function_call("c1", "add", '{"a": 1}'), function_call("c1", "nope", "")]
    endpoint.script = [response(REASONING, *calls), response(TEXT)]
    endpoint.check = fault_in_responses
    tools = openai.tools(host, api="responses")
    first = await client.responses.create(model="m", input=ASKED, tools=tools)
    items = [*ASKED, *await openai.run(host, first, tools)]
    second = await client.responses.create(model="m", input=items, tools=tools)

    assert second.output_text == "11"
    assert {key: value for key, value in REASONING.items() if value is not None} == endpoint.requests[1]["input"][1]
    assert endpoint.requests[1]["input"][4]["output"] == '{"sum": 11}'
