"""What a model is shown of a result's media, with each provider's own types as judges."""

import base64

import attrs
import pytest
from pydantic import TypeAdapter

from agentos import PUBLIC, Media, Principal, ToolResult, tool
from agentos.interop import anthropic, gemini, openai
from agentos.turn.chat import run_turn

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
ENCODED = base64.b64encode(PNG).decode()
ADA = Principal("ada")
CLIP = Media("video/mp4", b"moov", name="clip.mp4")


@tool(effect="read", required_access=PUBLIC)
async def look() -> ToolResult:
    """Look."""
    return ToolResult.ok("seen", "It is a chart.", media=[Media("image/png", PNG), CLIP])


@tool(effect="read", required_access=PUBLIC)
async def stumble() -> ToolResult:
    """Fail with a picture."""
    return attrs.evolve(ToolResult.fail("Broken", "see the picture"), media=[Media("image/png", PNG)])


@tool(effect="read", required_access=PUBLIC)
async def collect() -> ToolResult:
    """Return one of each."""
    found = [
        Media("application/pdf", b"%PDF", name="a.pdf"),
        Media("audio/wav", b"RIFF"),
        Media("image/webp", url="https://example.org/a.webp"),
        Media("image/png", url="http://127.0.0.1/private.png"),
        Media("image/tiff", b"II*"),
    ]
    return ToolResult.ok("all", "All of them.", media=found)


@pytest.fixture
async def host(host):
    await host.tools_service().sync([look, stumble, collect])
    return host


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def used(*names):
    return {"content": [{"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}} for name in names]}


async def anthropic_blocks(host, *names, **options):
    messages = await anthropic.run(host, used(*names), anthropic.tools(host, ADA), **options)
    types = pytest.importorskip("anthropic.types")
    TypeAdapter(types.MessageParam).validate_python(messages[-1])
    return messages[-1]["content"]


async def test_anthropic_is_shown_an_image_in_the_result(host):
    (block,) = await anthropic_blocks(host, "look")

    text, image = block["content"]
    assert text == {"type": "text", "text": "It is a chart.\n[video video/mp4 clip.mp4, 4 bytes]"}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": ENCODED}


async def test_anthropic_is_shown_what_a_failure_has_behind_all_results(host):
    """A result that is marked as an error takes text alone."""
    blocks = await anthropic_blocks(host, "stumble", "look")

    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "text", "image"]
    assert (blocks[0]["is_error"], blocks[0]["content"]) == (True, "Broken: see the picture")
    assert "toolu_stumble" in blocks[2]["text"]


async def test_anthropic_takes_files_and_addresses_and_reads_the_names_of_the_rest(host):
    (block,) = await anthropic_blocks(host, "collect")

    text, document, image = block["content"]
    assert (document["type"], document["source"]["media_type"]) == ("document", "application/pdf")
    assert image["source"] == {"type": "url", "url": "https://example.org/a.webp"}
    assert text["text"].splitlines() == [
        "All of them.",
        "[audio audio/wav, 4 bytes]",
        "[image image/png at http://127.0.0.1/private.png]",
        "[image image/tiff, 3 bytes]",
    ]


async def test_without_media_names_are_all(host):
    (block,) = await anthropic_blocks(host, "look", media=False)

    assert block["content"].splitlines() == [
        "It is a chart.",
        "[image image/png, 264 bytes]",
        "[video video/mp4 clip.mp4, 4 bytes]",
    ]


# -- OpenAI ------------------------------------------------------------------------------------------------------------


def chat(*names):
    calls = [
        {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names
    ]
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}


async def test_chat_completions_show_it_behind_all_answers(host):
    messages = await openai.run(host, chat("look", "stumble", "add"), openai.tools(host, ADA))
    types = pytest.importorskip("openai.types.chat")
    for message in messages:
        TypeAdapter(types.ChatCompletionMessageParam).validate_python(message)

    assert [one["role"] for one in messages] == ["assistant", "tool", "tool", "tool", "user"]
    assert messages[1]["content"] == "It is a chart.\n[video video/mp4 clip.mp4, 4 bytes]"
    label, image, other, again = messages[-1]["content"]
    assert "call_look" in label["text"]
    assert "not a message of the user" in label["text"]
    assert "call_stumble" in other["text"]
    assert image == again == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{ENCODED}"}}


async def test_chat_completions_take_files_sound_and_addresses(host):
    messages = await openai.run(host, chat("collect"), openai.tools(host, ADA))

    _, file, sound, image = messages[-1]["content"]
    assert file["file"] == {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}
    assert sound["input_audio"] == {"data": "UklGRg==", "format": "wav"}
    assert image["image_url"] == {"url": "https://example.org/a.webp"}


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_openai_reads_names_alone_where_media_are_not_wanted(host, api):
    called = chat("look") if api == "chat" else responded("look")
    messages = await openai.run(host, called, openai.tools(host, ADA, api=api), media=False)

    answer = messages[-1]["content" if api == "chat" else "output"]
    assert answer == "It is a chart.\n[image image/png, 264 bytes]\n[video video/mp4 clip.mp4, 4 bytes]"


def responded(*names):
    calls = [{"type": "function_call", "call_id": f"call_{name}", "name": name, "arguments": "{}"} for name in names]
    return {"output": calls}


async def test_responses_show_it_in_the_answer(host):
    messages = await openai.run(host, responded("look", "collect"), openai.tools(host, ADA, api="responses"))
    types = pytest.importorskip("openai.types.responses")
    for message in messages:
        TypeAdapter(types.ResponseInputItemParam).validate_python(message)

    text, image = messages[-2]["output"]
    assert text == {"type": "input_text", "text": "It is a chart.\n[video video/mp4 clip.mp4, 4 bytes]"}
    assert image["image_url"] == f"data:image/png;base64,{ENCODED}"
    assert [part["type"] for part in messages[-1]["output"]] == ["input_text", "input_file", "input_image"]


async def test_a_turn_shows_what_its_tools_return(host, endpoint):
    sdk = pytest.importorskip("openai")
    done = {"choices": [{"message": {"role": "assistant", "content": "I see."}, "index": 0, "finish_reason": "stop"}]}
    frame = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    endpoint.script += [{**frame, **chat("look")}, {**frame, **done}]
    endpoint.script[0]["choices"][0] |= {"index": 0, "finish_reason": "tool_calls"}
    async with sdk.AsyncOpenAI(base_url=endpoint.url, api_key="-", max_retries=0) as client:
        turn = await run_turn(host, client, [{"role": "user", "content": "Look."}], model="m", principal=ADA)

    assert turn.content == "I see."
    assert [one["role"] for one in endpoint.requests[-1]["messages"]] == ["user", "assistant", "tool", "user"]
    assert [one.mime for one in turn.results[0].media] == ["image/png", "video/mp4"]


# -- Gemini ------------------------------------------------------------------------------------------------------------


async def test_gemini_is_shown_it_beside_the_responses(host):
    calls = [{"function_call": {"name": name, "args": {}}} for name in ("look", "stumble")]
    contents = await gemini.run(host, {"parts": calls}, gemini.tools(host, ADA))
    types = pytest.importorskip("google.genai.types")
    content = types.Content.model_validate(contents[-1])

    assert [part.function_response is not None for part in content.parts] == [True, True, False, False, False, False]
    assert content.parts[3].inline_data.data == PNG
    assert "clip.mp4" in contents[-1]["parts"][0]["function_response"]["response"]["output"]
    assert "a call of the tool stumble" in content.parts[4].text
