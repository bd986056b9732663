"""Guardrails and response processors in turns: what they have not seen leaves nowhere, streamed or not."""

import pytest
from model_wires import Says

from agentos import AgentOS, Descriptor, ExtensionPack, GuardVerdict, Principal, guardrail
from agentos.turn.turn_guards import _unanswered

ANN = Principal("ann")
SECRET = "swordfish"


@guardrail(stage="input")
async def no_orders(text, context):
    return GuardVerdict.block("orders are not taken") if "order" in text else None


@guardrail(stage="output")
async def no_swordfish(text, context):
    return GuardVerdict.block("a password") if SECRET in text else None


@guardrail(stage="output", sanitizes=True)
async def politely(text, context):
    return GuardVerdict.sanitize(text.replace("damn", "****"), "a curse") if "damn" in text else None


def shouting(response, context):
    return response.text.upper()


def pack(**payloads):
    kinds = {"shouting": "response-processor"}
    descriptors = [Descriptor(kind=kinds.get(id, "guardrail"), id=id, payload=one) for id, one in payloads.items()]
    return ExtensionPack(name="guards", descriptors=descriptors)


@pytest.fixture(params=["whole", "streamed"])
def play(request, wire, endpoint, client):
    async def play(guards, *script, text="go", **options):
        endpoint.script = list(script)
        async with AgentOS() as host:
            await host.extensions.load_pack(guards)
            options = {"model": "m", "principal": ANN, **wire.options, **options}
            if request.param == "whole":
                turn = await host.turn(client, wire.asked(text), **options)
                return turn, turn.content
            events = [event async for event in host.turn(client, wire.asked(text), stream=True, **options)]
            return events[-1].turn, "".join(event.text for event in events)

    return play


def valid(wire, turn):
    assert wire.fault(wire.key(turn.messages)) is None
    return True


async def test_what_the_user_may_not_say_reaches_no_model(play, wire, endpoint):
    turn, _ = await play(pack(no_orders=no_orders), Says("never"), text="an order")

    assert (turn.stopped_by, turn.steps, endpoint.requests) == ("guardrail", 0, [])
    assert "an order" not in str(turn.messages)
    assert "orders are not taken" in turn.content


async def test_what_the_model_may_not_say_is_neither_shown_nor_kept(play, wire):
    turn, shown = await play(pack(no_swordfish=no_swordfish), Says(f"The word is {SECRET}, so there."))

    assert turn.stopped_by == "guardrail"
    assert SECRET not in f"{shown}{turn.messages}{turn.content}"
    assert "a password" in shown
    assert valid(wire, turn)


async def test_calls_beside_blocked_words_do_not_run(play, wire):
    turn, _ = await play(pack(no_swordfish=no_swordfish), Says(SECRET, (("c1", "add", "{}"),)))

    assert turn.stopped_by == "guardrail"
    assert all(not result.success for result in turn.results)
    assert valid(wire, turn)


async def test_what_was_sanitized_is_shown_and_kept_so(play, wire):
    turn, shown = await play(pack(politely=politely), Says("Well, damn it all."))

    assert (turn.stopped_by, shown, turn.content) == ("answer", "Well, **** it all.", "Well, **** it all.")
    assert "damn" not in str(turn.messages)


async def test_processors_see_an_answer_before_anybody_else(play, wire):
    turn, shown = await play(pack(shouting=shouting), Says("well then"))

    assert (shown, turn.response.text) == ("WELL THEN", "WELL THEN")


async def test_processors_are_asked_only_where_that_is_wanted(play, wire):
    turn, shown = await play(pack(shouting=shouting), Says("well then"), respond=False)

    assert (shown, turn.response) == ("well then", None)


@pytest.mark.parametrize(
    ("message", "is_of_user"),
    [
        ({"role": "user", "content": "go"}, True),
        ({"parts": [{"text": "go"}]}, True),
        ({"role": "model", "parts": [{"text": "go"}]}, False),
        ({"content": "go"}, False),
    ],
)
def test_a_message_of_gemini_without_a_role_is_the_user_s(message, is_of_user):
    assert bool(_unanswered([message])) is is_of_user
