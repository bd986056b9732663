"""What endpoints were seen to send beside what their documents say; the real SDKs read it."""

from types import SimpleNamespace

import pytest
from model_wires import Chat, Gemini, Responses, Says, serving, sse, tools_of

from agentos import AgentOS, Descriptor, ExtensionPack, GuardVerdict, guardrail
from agentos.turn.adapters.model_adapter import ModelFailedError


def as_said(wire):
    """Return a wire whose scripts are what is sent, part by part."""
    made = type(f"Said{type(wire).__name__}", (type(wire),), {"parts": lambda self, says: says.parts})
    return made()


def sent(*parts, ended="done"):
    return SimpleNamespace(parts=[part if isinstance(part, bytes) else sse(part) for part in parts], ended=ended)


@guardrail(stage="output")
async def no_swordfish(text, context):
    return GuardVerdict.block("a password") if "swordfish" in text else None


GUARD = ExtensionPack("guard", "1", [Descriptor("guardrail", "no_swordfish", no_swordfish)])


async def streamed(wire, *script, packs=()):
    """Return the texts that were told, and the turn."""
    with serving(wire) as endpoint:
        endpoint.script = list(script)
        async with AgentOS(extension_manifest=list(packs)) as host, wire.client(endpoint, is_async=True) as client:
            await host.tools_service().sync(tools_of([]))
            stream = host.turn(client, wire.asked(), stream=True, model="m", **wire.options)
            events = [event async for event in stream]
    assert endpoint.faults == []
    return "".join(event.text for event in events if event.type == "text"), events[-1].turn


# -- calls that share an index -------------------------------------------------------------------------------------


CHAT = as_said(Chat())
WHOLE = sent(*Chat().parts(Says("It is done.")))


def chunk(finish=None, **delta):
    return {**CHAT._frame("chat.completion.chunk"), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def begun(id, arguments, name="add", index=0):
    function = {"name": name, "arguments": arguments}
    return chunk(tool_calls=[{"index": index, "id": id, "type": "function", "function": function}])


def more(arguments, index=0, **said):
    return chunk(tool_calls=[{"index": index, "function": {"arguments": arguments}, **said}])


END = (chunk("tool_calls"), b"data: [DONE]\n\n")


async def test_calls_that_all_have_index_0_are_told_apart_by_their_ids():
    parts = (begun("c1", '{"a":'), more(" 1}"), begun("c2", '{"a": '), more("2"), more("}"), *END)
    _, turn = await streamed(CHAT, sent(*parts), WHOLE)

    assert [CHAT.answer_of(turn.messages, id) for id in ("c1", "c2")] == ['{"sum": 11}', '{"sum": 12}']
    assert turn.content == "It is done."


async def test_an_id_that_comes_with_every_part_begins_no_other_call():
    named = {"name": "add", "arguments": " 1}"}
    again = chunk(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": named}])
    _, turn = await streamed(CHAT, sent(begun("c1", '{"a":'), again, *END), WHOLE)

    assert CHAT.answer_of(turn.messages, "c1") == '{"sum": 11}'


# -- words that come with the end alone ----------------------------------------------------------------------------


RESPONSES = as_said(Responses())


def completed(text, *before):
    response = RESPONSES._response(Says(text))
    return sent(*before, {"type": "response.completed", "response": response, "sequence_number": 9})


def delta(text):
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "sequence_number": 1}
    return {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []}


@pytest.mark.parametrize("before", [(), (delta("It is "),)], ids=["no part", "the beginning"])
async def test_words_that_no_part_had_are_told_at_the_end(before):
    told, turn = await streamed(RESPONSES, completed("It is done.", *before))

    assert (told, turn.content) == ("It is done.", "It is done.")


@pytest.mark.parametrize("before", [(), (delta("Well."),)], ids=["no part", "other words"])
async def test_words_that_no_part_had_are_seen_by_guardrails_or_left_out(before):
    told, turn = await streamed(RESPONSES, completed("The word is swordfish.", *before), packs=[GUARD])

    assert "swordfish" not in told + turn.content + str(turn.messages)


# -- an end without an answer --------------------------------------------------------------------------------------


async def test_a_call_that_gemini_could_not_write_is_no_empty_answer():
    wire = as_said(Gemini())
    nothing = {"candidates": [{"index": 0, "finishReason": "MALFORMED_FUNCTION_CALL"}]}
    with pytest.raises(ModelFailedError, match="MALFORMED_FUNCTION_CALL"):
        await streamed(wire, sent(nothing))


async def test_an_image_that_gemini_refused_to_make_is_a_refusal():
    wire = as_said(Gemini())
    _, turn = await streamed(wire, sent({"candidates": [{"index": 0, "finishReason": "IMAGE_SAFETY"}]}))

    assert turn.stopped_by == "refusal"
