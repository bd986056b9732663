"""Responses go through their processors and then the guardrails; turns go through both."""

import asyncio
import json

import attrs
import pytest
from kit import Recorder

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    DescriptorError,
    ExtensionPack,
    GuardrailBlockedError,
    GuardVerdict,
    PackLoadError,
    Principal,
    Response,
    ResponseRefusedError,
    ToolResult,
    guardrail,
    tool,
)

ANN = Principal("ann")


def host_with(*descriptors):
    pack = ExtensionPack("p", "1", list(descriptors))
    return AgentOS(extension_manifest={"packs": [{"factory": lambda: pack}]})


def processor(id, payload, priority=None, **metadata):
    return Descriptor("response-processor", id, payload, priority=priority, metadata=metadata)


def adding(word):
    async def add(response, context):
        return attrs.evolve(response, text=f"{response.text} {word}")

    return add


async def test_without_processors_a_response_is_the_text():
    async with host_with() as host:
        assert await host.respond("hello") == Response("hello", "markdown", (), {})


async def test_processors_run_in_order_each_on_what_the_one_before_made():
    async with host_with(
        processor("a", adding("a")), processor("b", adding("b"), 9), processor("c", adding("c"))
    ) as host:
        response = await host.respond("x")

    assert response.text == "x b a c"


async def test_a_processor_may_give_a_response_a_text_or_nothing():
    def text(response, context):
        return response.text.upper()

    class Attaching:
        async def process(self, response, context):
            return attrs.evolve(response, attachments=("file",), metadata={"who": context.principal.id}, format="html")

    async def nothing(response, context):
        return None

    async with host_with(processor("t", text), processor("o", Attaching()), processor("n", nothing)) as host:
        response = await host.respond("x", principal=ANN, session={"id": "s"})

    assert response == Response("X", "html", ("file",), {"who": "ann"})


async def raises(response, context):
    raise SystemExit


async def hangs(response, context):
    await asyncio.Event().wait()


async def babbles(response, context):
    return 5


hangs.timeout = 0.02


@pytest.mark.parametrize("fault", [raises, hangs, babbles])
async def test_one_that_fails_is_left_out_and_that_is_told(fault):
    heard = Recorder()
    async with host_with(processor("bad", fault), processor("good", adding("good"))) as host:
        host.extensions.on(heard)
        response = await host.respond("x")

    assert response.text == "x good"
    (event,) = heard.of("response:failed")
    assert (event.processor, event.pack) == ("bad", "p")


@pytest.mark.parametrize("fault", [raises, hangs, babbles])
async def test_with_a_required_one_that_fails_the_response_is_refused(fault):
    async with host_with(processor("bad", fault, required=True)) as host:
        with pytest.raises(ResponseRefusedError, match="bad"):
            await host.respond("x")


@guardrail(stage="output", sanitizes=True)
async def clean(text, context):
    """Block what is bad, and mask what is secret."""
    if "bad" in text:
        return GuardVerdict.block("nothing bad", "BAD")
    return GuardVerdict.sanitize(text.replace("secret", "***"), "masked") if "secret" in text else None


async def test_the_guardrails_have_the_last_word():
    async with host_with(processor("a", adding("secret")), processor("b", adding("bad"), enabled=True), clean) as host:
        with pytest.raises(GuardrailBlockedError) as error:
            await host.respond("x")
        await host.extensions.set_override("response-processor", "b", {"enabled": False})
        response = await host.respond("x")

    assert (error.value.guard, error.value.code, error.value.stage) == ("clean", "BAD", "output")
    assert response.text == "x ***"


@pytest.mark.parametrize("payload", [5, Response, lambda: None], ids=["number", "class", "no parameters"])
async def test_a_payload_that_is_no_processor_is_refused(payload):
    host = host_with(processor("wrong", payload))
    report = await host.initialize()
    await host.shutdown()

    (outcome,) = report.failed
    assert isinstance(outcome.error, PackLoadError | DescriptorError)
    assert "response-processor" in str(outcome.error)


# -- turns -------------------------------------------------------------------------------------------------------------


class Client:
    """A client with a script."""

    def __init__(self, *script):
        self.script = list(script)
        self.requests = []
        self.chat = self.completions = self

    async def create(self, **request):
        self.requests.append(request)
        return self.script.pop(0)


def says(content, *names):
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps({})}}
        for number, name in enumerate(names)
    ]
    return {"choices": [{"message": {"role": "assistant", "content": content, "tool_calls": calls}}]}


def user(content):
    return {"role": "user", "content": content}


@guardrail(stage="input", sanitizes=True)
async def careful(text, context):
    """Block what is bad, and mask what is secret."""
    if "bad" in text:
        return GuardVerdict.block("nothing bad", "BAD")
    return GuardVerdict.sanitize(text.replace("secret", "***"), "masked") if "secret" in text else None


async def test_a_blocked_question_never_reaches_the_model():
    client = Client(says("hello"), says("hello"))
    async with host_with(careful) as host:
        turn = await host.run_turn(client, [user("bad question")])
        again = await host.run_turn(client, [*turn.messages, user("a fine one")])

    assert (turn.stopped_by, turn.steps) == ("guardrail", 0)
    assert "nothing bad" in turn.content
    assert "bad question" not in str(turn.messages)
    assert again.content == "hello"
    assert "bad question" not in str(client.requests)


async def test_a_question_is_sanitized_before_the_model_has_it():
    client = Client(says("hello"))
    said = [
        user("first secret"),
        {"role": "assistant", "content": "yes"},
        user([{"type": "text", "text": "my secret"}]),
    ]
    async with host_with(careful) as host:
        turn = await host.run_turn(client, said)

    assert client.requests[0]["messages"][-1] == user([{"type": "text", "text": "my ***"}])
    assert client.requests[0]["messages"][0] == user("first secret")
    assert said[-1] == user([{"type": "text", "text": "my secret"}])
    assert turn.content == "hello"


@pytest.mark.parametrize(
    ("answer", "stopped_by", "shown"),
    [("fine", "answer", "fine"), ("a secret", "answer", "a ***"), ("bad thing", "guardrail", "nothing bad")],
)
async def test_an_answer_goes_through_the_guardrails(answer, stopped_by, shown):
    transcript = []
    async with host_with(clean) as host:
        turn = await host.run_turn(Client(says(answer)), [user("x")], transcript=transcript)

    assert turn.stopped_by == stopped_by
    assert shown in turn.content
    assert (turn.messages[-1]["content"] == turn.content) is (stopped_by == "answer")
    assert "bad thing" not in str([turn, transcript])


RAN = []


@tool(effect="read", required_access=PUBLIC)
async def act() -> ToolResult:
    """Act, and end the turn."""
    RAN.append("act")
    return ToolResult.ok("the secret end", stop=True)


async def test_a_call_with_blocked_words_does_not_run_and_is_answered():
    RAN.clear()
    async with host_with(clean, act) as host:
        turn = await host.run_turn(Client(says("bad plan", "act")), [user("x")])

    assert (turn.stopped_by, RAN) == ("guardrail", [])
    assert [message["role"] for message in turn.messages] == ["user", "assistant", "tool"]


async def test_what_a_tool_says_at_the_end_of_a_turn_goes_through_them_too():
    async with host_with(clean, act) as host:
        turn = await host.run_turn(Client(says("well", "act")), [user("x")])

    assert (turn.stopped_by, turn.content) == ("tool", "the *** end")


async def test_a_turn_uses_response_processors_on_request():
    async with host_with(processor("p", adding("-- the host")), clean) as host:
        plain = await host.run_turn(Client(says("hello")), [user("x")])
        turn = await host.run_turn(Client(says("hello secret")), [user("x")], respond=True)
        blocked = await host.run_turn(Client(says("bad")), [user("x")], respond=True)

    assert (plain.content, plain.response) == ("hello", None)
    assert turn.content == turn.response.text == "hello *** -- the host"
    assert (blocked.stopped_by, blocked.response) == ("guardrail", None)
