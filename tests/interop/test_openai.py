"""The way back from OpenAI's responses: every call is answered once, and the next request is valid."""

import json
from types import SimpleNamespace

import pytest

from agentos import PUBLIC, Principal, Tool
from agentos.interop import openai


def call(name="add", arguments='{"a": 1}', id="c1", **more):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def completion(*calls, content=None, **more):
    message = {"role": "assistant", "content": content, **more}
    if calls:
        message["tool_calls"] = list(calls)
    return {"id": "r1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}


async def run(host, response, tools=None, principal=None, **more):
    return await openai.run(host, response, openai.tools(host) if tools is None else tools, principal, **more)


def texts(messages):
    return [message["content"] for message in messages if message["role"] == "tool"]


def assert_answered(messages):
    """Every call has an id of its own and exactly one answer, in order."""
    asked = [call["id"] for call in messages[0]["tool_calls"]]
    assert len(asked) == len(set(asked))
    assert asked == [message["tool_call_id"] for message in messages[1:]]


# -- chat ----------------------------------------------------------------------------------------------------------


async def test_what_to_append_is_what_was_said_and_the_answers(host):
    expected = [
        {"role": "assistant", "content": None, "tool_calls": [call()]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"sum": 11}'},
    ]

    assert expected == await run(host, completion(call()))


async def test_an_answer_without_calls_is_what_to_append(host):
    assert await run(host, completion(content="Hello.")) == [{"role": "assistant", "content": "Hello."}]


async def test_calls_are_answered_in_order(host):
    messages = await run(host, completion(call(id="x"), call(arguments='{"a": 2}', id="y")))

    assert texts(messages) == ['{"sum": 11}', '{"sum": 12}']


async def test_a_wire_name_leads_to_its_tool(host):
    tools = openai.tools(host)
    wire = tools.names.to_wire["text.shout/größer"]

    assert texts(await run(host, completion(call(wire, '{"text": "hi"}')), tools)) == ["HI"]


@pytest.mark.parametrize("plain", [list, lambda tools: tools[-1:], lambda tools: json.loads(json.dumps(tools))])
async def test_a_plain_list_finds_the_way_back_again(host, plain):
    tools = openai.tools(host)
    wire = tools.names.to_wire["text.shout/größer"]

    assert texts(await run(host, completion(call(wire, '{"text": "hi"}')), plain(tools))) == ["HI"]


BAD = {
    "an unknown name": (call("ad"), "UnknownTool: there is no tool called 'ad'"),
    "no name": (call(None), "UnknownTool"),
    "no function": ({"id": "c1", "type": "function"}, "UnknownTool"),
    "a name that no provider takes": (call("functions.add now!"), "UnknownTool"),
    "cut off JSON": (call(arguments='{"a": 1'), "InvalidArguments: the JSON is cut off"),
    "no JSON": (call(arguments="a=1"), "InvalidArguments: not JSON"),
    "another type": (call(arguments="[1]"), "InvalidArguments: expected a JSON object"),
    "a missing argument": (call(arguments="{}"), "InvalidArguments"),
    "a failure": (call("fail", "{}"), "ToolRaised"),
    "a custom tool": ({"id": "c1", "type": "custom", "custom": {"name": "grammar", "input": "x"}}, "UnknownTool"),
}


@pytest.mark.parametrize(("bad", "expected"), BAD.values(), ids=BAD)
async def test_a_bad_call_is_answered_in_words(host, bad, expected):
    messages = await run(host, completion(bad))

    assert_answered(messages)
    assert expected in texts(messages)[0]


@pytest.mark.parametrize("arguments", ["", " ", None])
async def test_no_text_means_no_arguments(host, arguments):
    messages = await run(host, completion(call("whoami", arguments)))

    assert "principal" in texts(messages)[0]
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_arguments_may_be_an_object(host):
    messages = await run(host, completion(call(arguments={"a": 1})))

    assert texts(messages) == ['{"sum": 11}']
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'


@pytest.mark.parametrize("ids", [("c", "c"), (None, None), ("", "c"), ("c", "c", None, "c")], ids=str)
async def test_every_call_has_an_id_of_its_own(host, ids):
    messages = await run(host, completion(*(call(id=id) for id in ids)))

    assert len(ids) == len(texts(messages))
    assert_answered(messages)


async def test_an_id_that_is_missing_altogether_is_made(host):
    given = call()
    del given["id"]

    assert_answered(await run(host, completion(given)))


async def test_text_that_is_no_json_is_repeated_as_json(host):
    messages = await run(host, completion(call(arguments='{"a": ')))

    assert json.loads(messages[0]["tool_calls"][0]["function"]["arguments"]) == {"INVALID_JSON": '{"a": '}


async def test_a_name_that_no_provider_takes_is_repeated_as_one_that_fits(host):
    messages = await run(host, completion(call("functions.add now!")))

    assert messages[0]["tool_calls"][0]["function"]["name"] == "functions_add_now"


async def test_what_a_provider_put_beside_a_call_is_repeated(host):
    signed = call(extra_content={"google": {"thought_signature": "s"}})
    messages = await run(host, completion(signed, reasoning_content="because"))

    assert [signed] == messages[0]["tool_calls"]
    assert messages[0]["reasoning_content"] == "because"


async def test_what_only_answers_have_is_not_repeated(host):
    messages = await run(
        host, completion(content="Hi", annotations=[], refusal=None, function_call=None, audio={"id": "a", "data": "x"})
    )

    assert messages == [{"role": "assistant", "content": "Hi", "audio": {"id": "a"}}]


async def test_calls_are_made_for_the_principal_in_the_session(host):
    messages = await run(
        host, completion(call("whoami", "{}", "c7")), None, Principal("ada"), session={"id": "s", "theme": "dark"}
    )

    assert json.loads(texts(messages)[0]) == {"principal": "ada", "call": "c7", "session": {"id": "s", "theme": "dark"}}


async def test_a_principal_can_not_call_what_it_is_not_offered(host):
    messages = await run(host, completion(call("open_vault", "{}")), None, Principal("bob"))

    assert "UnknownTool" in texts(messages)[0]


async def test_a_message_alone_is_enough(host):
    message = completion(call())["choices"][0]["message"]

    assert await run(host, completion(call())) == await run(host, message)


async def test_an_object_of_another_sdk_is_read_by_its_fields(host):
    function = SimpleNamespace(name="add", arguments='{"a": 1}')
    asked = SimpleNamespace(id="c1", type="function", function=function)
    message = SimpleNamespace(role="assistant", content=None, tool_calls=[asked])
    response = SimpleNamespace(choices=[SimpleNamespace(message=message)])

    assert await run(host, completion(call())) == await run(host, response)


@pytest.mark.parametrize("response", [{}, {"choices": []}, {"error": {"message": "busy"}}, None, "text"])
async def test_what_is_no_response_is_refused_in_words(host, response):
    with pytest.raises(ValueError, match="expected a chat completion"):
        await run(host, response)


# -- responses -----------------------------------------------------------------------------------------------------


def function_call(name="add", arguments='{"a": 1}', call_id="c1", **more):
    return {"type": "function_call", "id": "fc1", "call_id": call_id, "name": name, "arguments": arguments, **more}


async def test_of_a_response_all_items_are_repeated_and_the_calls_answered(host):
    reasoning = {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "e"}
    response = {"object": "response", "output": [{**reasoning, "status": None}, function_call()]}
    expected = [
        reasoning,
        function_call(),
        {"type": "function_call_output", "call_id": "c1", "output": '{"sum": 11}'},
    ]

    assert expected == await run(host, response, openai.tools(host, api="responses"))


@pytest.mark.parametrize("ids", [("c", "c"), (None, ""), ("c", None, "c")], ids=str)
async def test_every_call_of_a_response_is_answered_once(host, ids):
    items = await run(host, {"output": [function_call(call_id=id) for id in ids]})
    asked = [item["call_id"] for item in items if item["type"] == "function_call"]

    assert len(ids) == len(set(asked))
    assert asked == [item["call_id"] for item in items if item["type"] == "function_call_output"]


async def test_a_custom_tool_call_gets_its_own_kind_of_answer(host):
    asked = {"type": "custom_tool_call", "call_id": "c1", "name": "grammar", "input": "x + y"}
    items = await run(host, {"output": [asked]})

    assert asked == items[0]
    assert items[1]["type"] == "custom_tool_call_output"


async def test_what_an_sdk_parsed_is_not_repeated(host):
    message = {"type": "message", "content": [{"type": "output_text", "text": "x", "parsed": {"x": 1}}]}

    assert await run(host, {"output": [message]}) == [
        {"type": "message", "content": [{"type": "output_text", "text": "x"}]}
    ]


async def test_a_response_without_output_has_nothing_to_append(host):
    assert await run(host, {"output": []}) == []


# -- strict --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("plain", [lambda tools: tools, list], ids=["kept", "plain"])
async def test_a_null_that_stands_for_not_given_is_taken_out(host, api, plain):
    tools = plain(openai.tools(host, strict=True, api=api))

    assert texts(await run(host, completion(call(arguments='{"a": 1, "b": null}')), tools)) == ['{"sum": 11}']


async def test_without_strict_a_null_is_an_argument(host):
    messages = await run(host, completion(call(arguments='{"a": 1, "b": null}')))

    assert "InvalidArguments" in texts(messages)[0]


@pytest.mark.parametrize("arguments", ['{"a": null', "[null]", "null", {"a": 1, "b": None}, '{"a": NaN, "b": null}'])
async def test_strict_answers_whatever_came(host, arguments):
    messages = await run(host, completion(call(arguments=arguments)), openai.tools(host, strict=True))

    assert_answered(messages)


async def test_strict_with_a_name_of_its_own(host):
    """The way back from nulls goes by the tool's name, not by its name on the wire."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False}
    odd = Tool.from_schema(
        name="odd name",
        description="",
        input_schema=schema,
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: args,
    )
    await host.tools_service().sync([odd])
    tools = openai.tools(host, strict=True)

    assert texts(await run(host, completion(call(tools[0]["function"]["name"], '{"x": null}')), tools)) == ["{}"]
