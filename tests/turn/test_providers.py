"""Turns with the real SDKs against loopback endpoints that speak their wire formats, whole and streamed."""

import asyncio

import pytest
from model_wires import WIRES, Says

from agentos import PUBLIC, Principal, TurnEvent, tool

ANN = Principal("ann")
ADD = ("c1", "add", '{"a": 1, "b": 2}')
SEND = ("c2", "send", '{"to": "bob"}')


async def take(stream):
    """Return the events of a stream, and its turn."""
    events = [event async for event in stream]
    assert [event.type for event in events].count("end") == 1
    return events, events[-1].turn


def texts(events):
    return "".join(event.text for event in events if event.type == "text")


def types_of(events):
    return [event.type for event in events if event.type != "text"]


@pytest.fixture(params=["whole", "streamed"])
def play(request, wire, endpoint, host, client):
    """Return what plays a turn with a script, whole or streamed; the endpoint checks every request."""

    async def play(*script, client=client, **options):
        endpoint.script = list(script)
        asked = {"model": "m", "principal": ANN, **wire.options, **options}
        if request.param == "whole":
            return await host.turn(client, wire.asked(), **asked)
        return (await take(host.turn(client, wire.asked(), stream=True, **asked)))[1]

    return play


def valid(wire, turn):
    assert wire.fault(wire.key(turn.messages)) is None
    return True


async def test_calls_are_run_until_there_is_an_answer(play, wire, log):
    turn = await play(Says("Let me see.", (ADD,)), Says("It is 3."))

    assert (turn.content, turn.steps, turn.stopped_by) == ("It is 3.", 2, "answer")
    assert wire.answer_of(turn.messages, "c1") == '{"sum": 3}'
    assert log == [("add", 1, 2)]
    assert valid(wire, turn)


async def test_two_calls_at_once_are_answered_at_their_ids(play, wire):
    other = ("c9", "add", '{"a": 40, "b": 2}')
    turn = await play(Says("", (ADD, other)), Says("done"))

    assert [wire.answer_of(turn.messages, id) for id in ("c1", "c9")] == ['{"sum": 3}', '{"sum": 42}']
    assert valid(wire, turn)


async def test_tokens_are_counted_where_the_provider_says(play):
    turn = await play(Says("", (ADD,)), Says("done"), max_total_tokens=10_000)

    assert turn.tokens == 200


async def test_the_prompts_of_tools_go_into_the_request_and_not_into_the_conversation(play, wire, endpoint):
    turn = await play(Says("hello"))

    assert "Send letters only" in wire.system_of(endpoint.requests[0])
    assert "Send letters" not in str(turn.messages)


async def test_a_refusal_ends_the_turn(play, wire):
    turn = await play(Says("I can't help with that.", ended="refusal"))

    assert (turn.stopped_by, turn.content) == ("refusal", "I can't help with that.")
    assert valid(wire, turn)


async def test_an_answer_that_is_too_long_says_so(play, wire):
    turn = await play(Says("It was a dark and", ended="length"))

    assert (turn.stopped_by, turn.content) == ("length", "It was a dark and")
    assert valid(wire, turn)


async def test_a_call_that_was_cut_at_its_length_does_not_run(play, wire, log):
    turn = await play(Says("", (("c1", "add", '{"a": 1'),), ended="length"), Says("sorry"))

    assert "may not be whole" in wire.answer_of(turn.messages, "c1")
    assert (turn.content, log) == ("sorry", [])
    assert valid(wire, turn)


async def test_a_text_is_a_message(wire, endpoint, host, client):
    endpoint.script = [Says("hello")]
    turn = await host.turn(client, "go", model="m", principal=ANN, **wire.options)

    assert turn.messages[:1] == wire.asked()


# -- limits --------------------------------------------------------------------------------------------------------


async def test_steps_are_limited(play, wire):
    turn = await play(Says("on", (ADD,)), Says("and on", (("c2", "add", '{"a": 2}'),)), Says("never"), max_steps=2)

    assert (turn.stopped_by, turn.steps) == ("steps", 2)
    assert valid(wire, turn)


async def test_calls_are_limited(play, wire, log):
    other = ("c9", "add", '{"a": 40, "b": 2}')
    turn = await play(Says("", (ADD, other)), Says("never"), max_calls=1)

    assert (turn.stopped_by, turn.steps, log) == ("calls", 1, [("add", 1, 2)])
    assert "may make 1 calls" in wire.answer_of(turn.messages, "c9")
    assert valid(wire, turn)


async def test_tokens_are_limited(play, wire):
    turn = await play(Says("", (ADD,)), Says("never"), max_total_tokens=100)

    assert (turn.stopped_by, turn.steps, turn.tokens) == ("tokens", 1, 100)
    assert valid(wire, turn)


@pytest.mark.parametrize(
    "limit", [{"max_calls": 0}, {"max_seconds": 0}, {"max_total_tokens": -1}, {"max_steps": True}], ids=str
)
async def test_a_limit_that_is_none_is_refused(host, wire, client, limit):
    with pytest.raises(ValueError, match=next(iter(limit))):
        await host.turn(client, "go", model="m", **limit)


# -- streams -------------------------------------------------------------------------------------------------------


async def test_a_stream_tells_what_happens_in_order(wire, endpoint, host, client):
    endpoint.script = [Says("Let me see.", (ADD, ("c9", "add", '{"a": 40}'))), Says("It is 3.")]
    events, turn = await take(host.turn(client, wire.asked(), stream=True, model="m", principal=ANN, **wire.options))

    assert types_of(events) == ["tool_call", "tool_call", "tool_result", "tool_result", "end"]
    assert texts(events) == "Let me see.It is 3."
    assert len([event for event in events if event.type == "text"]) > 4
    assert [event.call.id for event in events if event.type == "tool_call"] == ["c1", "c9"]
    assert isinstance(events[0], TurnEvent)
    assert turn.content == "It is 3."


async def test_a_sync_client_streams_too(wire, endpoint, host):
    endpoint.script = [Says("Let me see.", (ADD,)), Says("It is 3.")]
    async with wire.client(endpoint, is_async=False) as client:
        events, turn = await take(
            host.turn(client, wire.asked(), stream=True, model="m", principal=ANN, **wire.options)
        )

    assert (texts(events), turn.stopped_by) == ("Let me see.It is 3.", "answer")


async def test_a_sync_client_is_asked_whole_too(wire, endpoint, host):
    endpoint.script = [Says("Let me see.", (ADD,)), Says("It is 3.")]
    async with wire.client(endpoint, is_async=False) as client:
        turn = await host.turn(client, wire.asked(), model="m", principal=ANN, **wire.options)

    assert turn.content == "It is 3."


@pytest.mark.parametrize("ended", ["cut", "short"])
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_a_cut_connection_raises_and_leaves_a_valid_conversation(wire, endpoint, host, log, ended, is_async):
    """What was shown is kept; a call whose end never came is not, and does not run."""
    endpoint.script = [Says("", (ADD,)), Says("A long answer about letters", (SEND,), ended=ended)]
    transcript, shown, error = [], [], None
    async with wire.client(endpoint, is_async=is_async) as client:
        stream = host.turn(
            *(client, wire.asked()), stream=True, model="m", principal=ANN, transcript=transcript, **wire.options
        )
        try:
            async for event in stream:
                shown.append(event)
        except Exception as raised:
            error = raised
    said = texts(shown)

    assert error is not None
    assert said
    assert "A long answer about letters".startswith(said)
    assert log == [("add", 1, 2)]
    assert said in str(transcript[-1])
    assert wire.fault(wire.key([*wire.asked(), *transcript])) is None


async def test_closing_a_stream_cancels_the_turn_and_keeps_what_was_shown(wire, endpoint, host):
    endpoint.script = [Says("A long answer about letters")]
    transcript = []
    async with wire.client(endpoint, is_async=True) as client:
        stream = host.turn(
            *(client, wire.asked()), stream=True, model="m", principal=ANN, transcript=transcript, **wire.options
        )
        first = await anext(stream)
        await stream.aclose()

    assert first.type == "text"
    assert first.text in str(transcript)
    assert wire.fault(wire.key([*wire.asked(), *transcript])) is None


async def test_cancelling_while_a_call_runs_answers_it(wire, endpoint, host, client):
    started = asyncio.Event()

    @tool(effect="read", required_access=PUBLIC)
    async def wait() -> None:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()

    await host.tools_service("more").sync([wait])
    endpoint.script = [Says("One moment.", (("c1", "wait", "{}"), ADD))]
    transcript = []
    turn = host.turn(client, wire.asked(), model="m", principal=ANN, transcript=transcript, **wire.options)
    task = asyncio.ensure_future(turn)
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert wire.fault(wire.key([*wire.asked(), *transcript])) is None
    assert "Cancelled" in wire.answer_of(transcript, "c1")


async def test_time_is_limited(wire, endpoint, host, client):
    @tool(effect="read", required_access=PUBLIC)
    async def wait() -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    await host.tools_service("more").sync([wait])
    endpoint.script = [Says("One moment.", (("c1", "wait", "{}"),))]
    turn = await host.turn(client, wire.asked(), model="m", principal=ANN, max_seconds=1.0, **wire.options)

    assert turn.stopped_by == "time"
    assert wire.fault(wire.key(turn.messages)) is None


async def test_the_client_tells_which_way_to_ask(host):
    with pytest.raises(TypeError, match="client: expected one with"):
        await host.turn(object(), "go")
    with pytest.raises(ValueError, match="api: expected one of"):
        await host.turn(object(), "go", api="soap")


@pytest.mark.parametrize("counts", [True, False])
async def test_a_provider_that_counts_when_asked_is_asked_where_tokens_are_limited(
    wire, host, client, endpoint, counts
):
    endpoint.script = [Says("Good day.")]
    options = {"max_total_tokens": 1_000} if counts else {}
    async for _ in host.turn(client, wire.asked(), model="m", stream=True, **wire.options, **options):
        pass

    asked = endpoint.requests[-1].get("stream_options")
    assert asked == ({"include_usage": True} if counts and wire is WIRES["chat"] else None)


async def test_a_client_that_takes_too_long_by_itself_is_no_end_of_the_turns_time(host):
    class Impatient:
        class chat:
            class completions:
                @staticmethod
                async def create(**_):
                    raise TimeoutError("the client's own")

    with pytest.raises(TimeoutError, match="the client's own"):
        await host.turn(Impatient(), [{"role": "user", "content": "go"}], model="m", max_seconds=600)
