"""Gemini: the way back, and the real google-genai against an endpoint on loopback."""

import pytest

genai = pytest.importorskip("google.genai", reason="google-genai is not installed")

from google.genai import types  # noqa: E402

from agentos import Principal  # noqa: E402
from agentos.interop import gemini  # noqa: E402

ASKED = {"role": "user", "parts": [{"text": "1 + 10?"}]}


def response(*parts):
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}]}


def call(name="add", args=None, **more):
    return {"functionCall": {"name": name, "args": {"a": 1} if args is None else args, **more}}


DONE = response({"text": "11"})


def fault(request):
    """Say what Gemini would say: as many function responses as calls, by the same names and ids, in order."""
    waiting = []
    for content in request["contents"]:
        given = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        answered = [(one["name"], one.get("id")) for one in given]
        if waiting != answered or not all(isinstance(one["response"], dict) for one in given):
            return f"asked {waiting}, answered {answered}"
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        waiting = [(one["name"], one.get("id")) for one in calls]
    return f"no response to {waiting}" if waiting else None


@pytest.fixture
async def client(endpoint):
    endpoint.check = fault
    client = genai.Client(api_key="-", http_options=types.HttpOptions(base_url=endpoint.url))
    yield client
    await client.aio.aclose()
    client.close()


async def ask(client, contents, tools):
    config = {"tools": [{"function_declarations": tools}]}
    return await client.aio.models.generate_content(model="gemini-x", contents=contents, config=config)


async def test_the_declarations_arrive_with_their_json_schema(host, endpoint, client):
    endpoint.script = [DONE]
    tools = gemini.tools(host)
    await ask(client, [ASKED], tools)
    arrived = endpoint.requests[0]["tools"][0]["functionDeclarations"]

    assert [tool["name"] for tool in tools] == [one["name"] for one in arrived]
    assert [tool["parameters_json_schema"] for tool in tools] == [
        one.get("parametersJsonSchema") or one["parameters_json_schema"]
        for one in arrived  # the SDK's own spelling
    ]
    assert not any("parameters" in one for one in arrived)


async def test_a_declaration_is_one_for_the_sdk(host):
    assert all(types.FunctionDeclaration.model_validate(tool).name == tool["name"] for tool in gemini.tools(host))


async def test_the_calls_are_run_and_the_next_request_is_accepted(host, endpoint, client):
    endpoint.script = [response({"text": "Hm."}, call(), call("nope"), call("fail", {})), DONE]
    tools = gemini.tools(host)
    first = await ask(client, [ASKED], tools)
    contents = [ASKED, *await gemini.run(host, first, tools)]
    second = await ask(client, contents, tools)
    answers = [part["functionResponse"]["response"] for part in endpoint.requests[1]["contents"][2]["parts"]]

    assert second.text == "11"
    assert answers[0] == {"output": '{"sum": 11}'}
    assert [list(answer) for answer in answers] == [["output"], ["error"], ["error"]]


async def test_a_signature_is_repeated_unchanged(host, endpoint, client):
    endpoint.script = [response({**call(), "thoughtSignature": "_wBhYg=="}), DONE]
    tools = gemini.tools(host)
    first = await ask(client, [ASKED], tools)
    await ask(client, [ASKED, *await gemini.run(host, first, tools)], tools)

    assert endpoint.requests[1]["contents"][1]["parts"][0]["thoughtSignature"] == "_wBhYg=="


async def test_ids_are_repeated(host, endpoint, client):
    endpoint.script = [response(call(id="x"), call(id="y")), DONE]
    tools = gemini.tools(host)
    first = await ask(client, [ASKED], tools)
    await ask(client, [ASKED, *await gemini.run(host, first, tools)], tools)
    parts = endpoint.requests[1]["contents"][2]["parts"]

    assert [part["functionResponse"]["id"] for part in parts] == ["x", "y"]


# -- the way back, without the SDK ---------------------------------------------------------------------------------


def camel(contents):
    """Return contents as the SDK would send them, for `fault`."""
    return {
        "contents": [types.Content.model_validate(one).model_dump(by_alias=True, exclude_none=True) for one in contents]
    }


async def test_what_to_append_is_what_was_said_and_the_answers(host):
    answer = {"function_response": {"name": "add", "response": {"output": '{"sum": 11}'}}}
    expected = [{"role": "model", "parts": [call()]}, {"role": "user", "parts": [answer]}]

    assert expected == await gemini.run(host, response(call()), gemini.tools(host))


@pytest.mark.parametrize("ids", [("c", "c"), ("c", None), (None, None)], ids=str)
async def test_every_call_gets_one_answer(host, ids):
    contents = await gemini.run(host, response(*(call(id=id) for id in ids)), gemini.tools(host))

    assert len(ids) == len(contents[1]["parts"])
    assert fault(camel(contents)) is None


@pytest.mark.parametrize("bad", [call(None), call("no such!"), {"functionCall": {"name": "add"}}], ids=str)
async def test_a_bad_call_is_answered_in_words(host, bad):
    contents = await gemini.run(host, response(bad), gemini.tools(host))

    assert "error" in contents[1]["parts"][0]["function_response"]["response"]
    assert fault(camel(contents)) is None


async def test_a_plain_list_finds_the_way_back_again(host):
    tools = gemini.tools(host)
    asked = response(call(tools.names.to_wire["text.shout/größer"], {"text": "hi"}))
    contents = await gemini.run(host, asked, list(tools))

    assert contents[1]["parts"][0]["function_response"]["response"] == {"output": "HI"}


async def test_calls_are_made_for_the_principal(host):
    contents = await gemini.run(host, response(call("whoami", {})), [], Principal("ada"), session={"id": 1})
    answer = contents[1]["parts"][0]["function_response"]["response"]

    assert answer == {"output": '{"principal": "ada", "call": null, "session": {"id": 1}}'}


async def test_a_content_alone_is_enough(host):
    content = types.Content(role="model", parts=[types.Part.from_function_call(name="add", args={"a": 1})])
    contents = await gemini.run(host, content, gemini.tools(host))

    assert contents[1]["parts"][0]["function_response"]["response"] == {"output": '{"sum": 11}'}


@pytest.mark.parametrize("nothing", [{"candidates": [{"finishReason": "SAFETY"}]}, {"candidates": []}, response()])
async def test_a_response_that_says_nothing_has_nothing_to_append(host, nothing):
    assert await gemini.run(host, nothing, []) == []
