"""The chat loop: it asks, runs, answers, and knows when to stop."""

import asyncio
import copy
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentos import PUBLIC, Principal, ToolResult, tool
from agentos.turn.chat import Turn, run_turn

ASKED = [{"role": "user", "content": "go"}]
ROOT = Path(__file__).parent.parent.parent


def call(name="add", arguments=None, id="c1"):
    arguments = {"a": 1} if arguments is None else arguments
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def says(content=None, *calls):
    message = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    return {"choices": [{"message": message}]}


class Client:
    """An async client with a script; the last line of it is said again and again."""

    def __init__(self, *script):
        self.script = list(script)
        self.requests = []
        self.chat = self
        self.completions = self

    async def create(self, **request):
        return self.next(request)

    def next(self, request):
        self.requests.append(request)
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(said, Exception):
            raise said
        return said


class SyncClient(Client):
    thread = None

    def create(self, **request):
        self.thread = threading.current_thread()
        return self.next(request)


class WrappedClient(Client):
    """A client whose function does not look async, as the SDK's do."""

    def create(self, **request):
        return super().create(**request)


async def turn(host, client, messages=ASKED, **more):
    return await run_turn(host, client, messages, model="m", **more)


def assert_valid(messages):
    """Every call is answered once, right after it."""
    waiting = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
        waiting += [call["id"] for call in message.get("tool_calls", [])]
    assert not waiting


# -- a turn --------------------------------------------------------------------------------------------------------


async def test_an_answer_ends_the_turn(host):
    made = await turn(host, Client(says("Hello.")))

    assert Turn([*ASKED, {"role": "assistant", "content": "Hello."}], "Hello.", 1, "answer", []) == made


async def test_calls_are_run_until_there_is_an_answer(host):
    client = Client(says(None, call()), says("11"))
    made = await turn(host, client)

    assert (made.content, made.steps, made.stopped_by) == ("11", 2, "answer")
    assert [message["role"] for message in made.messages] == ["user", "assistant", "tool", "assistant"]
    assert [result.output for result in made.results] == [{"sum": 11}]


async def test_the_answers_are_sent(host):
    client = Client(says(None, call()), says("11"))
    made = await turn(host, client)

    assert made.messages[:-1] == client.requests[1]["messages"]


async def test_the_request_has_the_tools_and_whatever_else_was_given(host):
    client = Client(says("Hi"))
    await turn(host, client, temperature=0, principal=Principal("bob"))
    request = client.requests[0]

    assert (request["model"], request["temperature"]) == ("m", 0)
    assert len(host.tools.listed(Principal("bob"))) == len(request["tools"])


async def test_without_tools_a_request_does_not_mention_them(host):
    await host.tools_service().sync([])
    client = Client(says("Hi"))
    await turn(host, client, tool_choice="auto", parallel_tool_calls=False)

    assert {"model", "messages"} == client.requests[0].keys()


async def test_a_change_shows_in_the_next_step(host):
    @tool(effect="read", required_access=PUBLIC)
    async def grow() -> str:
        """Register another tool."""
        await host.tools_service("other").sync([grown])
        return "grown"

    @tool(effect="read", required_access=PUBLIC)
    async def grown() -> str:
        """Be there."""
        return "here"

    await host.tools_service().sync([grow])
    client = Client(says(None, call("grow", {})), says("ok"))
    await turn(host, client)

    assert [len(request["tools"]) for request in client.requests] == [1, 2]


async def test_the_messages_given_are_not_changed(host):
    messages = copy.deepcopy(ASKED)
    await turn(host, Client(says(None, call()), says("11")), messages)

    assert messages == ASKED


async def test_calls_are_made_for_the_principal_in_the_session(host):
    client = Client(says(None, call("whoami", {})), says("ok"))
    made = await turn(host, client, principal=Principal("ada"), session={"id": "s"})

    assert [result.output for result in made.results] == [{"principal": "ada", "call": "c1", "session": {"id": "s"}}]


async def test_strict_nulls_are_taken_out(host):
    made = await turn(host, Client(says(None, call(arguments={"a": 1, "b": None})), says("11")), strict=True)

    assert [result.output for result in made.results] == [{"sum": 11}]


async def test_a_failing_call_goes_to_the_model(host):
    made = await turn(host, Client(says(None, call("fail", {})), says("sorry")))

    assert "no luck today" in made.messages[2]["content"]
    assert made.content == "sorry"


async def test_a_refusal_is_the_answer(host):
    refusal = {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "No."}}]}

    assert (await turn(host, Client(refusal))).content == "No."


async def test_an_answer_in_parts_is_joined(host):
    made = await turn(host, Client(says([{"type": "text", "text": "1"}, {"type": "text", "text": "1"}])))

    assert made.content == "11"


# -- clients -------------------------------------------------------------------------------------------------------


async def test_a_sync_client_is_called_in_a_thread(host):
    client = SyncClient(says("Hi"))
    made = await turn(host, client)

    assert made.content == "Hi"
    assert client.thread is not threading.current_thread()


async def test_a_client_that_returns_something_to_await_is_awaited(host):
    assert (await turn(host, WrappedClient(says("Hi")))).content == "Hi"


async def test_the_real_sdk_async(host, endpoint):
    sdk = pytest.importorskip("openai", reason="the openai SDK is not installed")
    endpoint.script = [says(None, call()), says("11")]
    async with sdk.AsyncOpenAI(base_url=f"{endpoint.url}/v1", api_key="-", max_retries=0) as client:
        made = await turn(host, client)

    assert made.content == "11"
    assert made.messages[:-1] == endpoint.requests[1]["messages"]


async def test_the_real_sdk_sync(host, endpoint):
    sdk = pytest.importorskip("openai", reason="the openai SDK is not installed")
    endpoint.script = [says(None, call()), says("11")]
    with sdk.OpenAI(base_url=f"{endpoint.url}/v1", api_key="-", max_retries=0) as client:
        made = await turn(host, client)

    assert made.content == "11"


# -- limits --------------------------------------------------------------------------------------------------------


async def test_the_step_limit_ends_the_turn(host):
    script = [says(f"try {number}", call(arguments={"a": number})) for number in range(9)]
    made = await turn(host, Client(*script), max_steps=4)

    assert (made.stopped_by, made.steps, made.content) == ("steps", 4, "try 3")
    assert len(made.results) == 4
    assert_valid(made.messages)


@pytest.mark.parametrize("steps", [0, -1, True, 2.0, None])
async def test_a_step_limit_is_a_positive_integer(host, steps):
    with pytest.raises(ValueError, match="max_steps"):
        await turn(host, Client(says("Hi")), max_steps=steps)


@pytest.mark.parametrize("request_", [{"tools": []}, {"stream": True}], ids=str)
async def test_what_a_turn_does_itself_is_refused(host, request_):
    with pytest.raises(ValueError, match=next(iter(request_))):
        await turn(host, Client(says("Hi")), **request_)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("required", ["required", None]),
        ("auto", ["auto", "auto"]),
        ({"type": "function"}, [{"type": "function"}, None]),
    ],
    ids=str,
)
async def test_a_choice_that_forces_a_call_holds_for_the_first_step(host, choice, expected):
    client = Client(says(None, call()), says("11"))
    await turn(host, client, tool_choice=choice)

    assert expected == [request.get("tool_choice") for request in client.requests]


async def test_a_result_may_end_the_turn(host):
    made = await turn(host, Client(says("So:", call("finish", {"text": "bye"}), call(id="c2"))))

    assert (made.stopped_by, made.content, made.steps) == ("tool", "bye", 1)
    assert len(made.results) == 2
    assert_valid(made.messages)


# -- stuck ---------------------------------------------------------------------------------------------------------

A, B, C = (says(None, call(arguments={"a": number})) for number in range(3))


def notes(made):
    return [index for index, message in enumerate(made.messages) if "[Note:" in (message["content"] or "")]


async def test_the_same_call_three_times_is_noted_once(host):
    made = await turn(host, Client(A, A, A, says("ok")))

    assert made.stopped_by == "answer"
    assert notes(made) == [6]
    assert len(made.results) == 3


async def test_the_note_stands_after_the_result(host):
    made = await turn(host, Client(A, A, A, says("ok")))

    assert made.messages[6]["content"].startswith('{"sum": 10}\n\n[Note:')
    assert made.messages[6]["role"] == "tool"


async def test_the_same_call_again_after_the_note_is_stuck(host):
    made = await turn(host, Client(A))

    assert (made.stopped_by, made.steps) == ("stuck", 4)
    assert [result.success for result in made.results] == [True, True, True, False]
    assert made.results[-1].error.type == "Refused"
    assert_valid(made.messages)


async def test_two_calls_in_turns_are_noted(host):
    made = await turn(host, Client(A, B, A, B, A, B, says("ok")))

    assert notes(made) == [12]


async def test_two_calls_in_turns_after_the_note_are_stuck(host):
    made = await turn(host, Client(*[A, B] * 9))

    assert (made.stopped_by, made.steps) == ("stuck", 7)
    assert_valid(made.messages)


@pytest.mark.parametrize("script", [[A, A, B, A, A], [A, B, C] * 3, [A, B, A, B, A, C]], ids=["pairs", "three", "five"])
async def test_less_is_not_stuck(host, script):
    made = await turn(host, Client(*script, says("ok")))

    assert notes(made) == []
    assert made.stopped_by == "answer"


async def test_arguments_are_compared_by_what_they_say(host):
    texts = ['{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{ "a":1,"b":2 }']
    script = [says(None, {"id": "c", "type": "function", "function": {"name": "add", "arguments": t}}) for t in texts]

    assert notes(await turn(host, Client(*script, says("ok")))) == [6]


async def test_the_same_call_three_times_in_one_step_is_no_sign(host):
    """Three dice are rolled at once."""
    made = await turn(host, Client(says(None, *(call(id=id) for id in "xyz")), says("ok")))

    assert notes(made) == []


async def test_calls_that_are_no_json_can_be_stuck_too(host):
    broken = says(None, {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{"}})

    assert (await turn(host, Client(broken))).stopped_by == "stuck"


# -- what is left when it does not end well ------------------------------------------------------------------------


async def test_the_transcript_is_what_was_added(host):
    transcript = []
    made = await turn(host, Client(says(None, call()), says("11")), transcript=transcript)

    assert made.messages == [*ASKED, *transcript]


async def test_after_an_error_of_the_client_the_transcript_is_valid(host):
    transcript = []
    with pytest.raises(ConnectionError):
        await turn(host, Client(says(None, call()), ConnectionError("gone")), transcript=transcript)

    assert [message["role"] for message in transcript] == ["assistant", "tool"]
    assert_valid(transcript)


async def test_after_a_cancellation_every_call_is_answered(host):
    started, transcript = asyncio.Event(), []

    @tool(effect="read", required_access=PUBLIC)
    async def wait() -> None:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()

    await host.tools_service().sync([wait])
    client = Client(says(None, call("wait", {}), call("wait", {}, "c2")))
    task = asyncio.create_task(turn(host, client, transcript=transcript))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert_valid(transcript)
    assert ["Cancelled" in message["content"] for message in transcript[1:]] == [True, True]


async def test_a_call_that_is_cancelled_is_answered_and_the_turn_goes_on(host):
    @tool(effect="read", required_access=PUBLIC)
    async def cancel_me() -> None:
        """Be cancelled."""
        await host.tools.cancel("c1")
        await asyncio.Event().wait()

    await host.tools_service().sync([cancel_me])
    made = await turn(host, Client(says(None, call("cancel_me", {})), says("ok")))

    assert "Cancelled" in made.messages[2]["content"]
    assert made.stopped_by == "answer"


# -- the rest ------------------------------------------------------------------------------------------------------


def test_a_turn_does_not_show_the_conversation():
    assert "secret" not in repr(
        Turn([{"role": "user", "content": "secret"}], "ok", 1, "answer", [ToolResult.ok("secret")])
    )


def test_the_loop_costs_nothing_until_it_is_used():
    """Neither a provider's SDK nor interop is imported with the loop."""
    code = (
        "import sys, agentos.turn.chat; print([m for m in sys.modules if m.startswith(('openai', 'agentos.interop'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "[]"


def test_the_example_runs():
    pytest.importorskip("openai", reason="the openai SDK is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "chat.py")], capture_output=True, text=True, timeout=60
    )

    assert done.stderr == ""
    assert "tool:started" in done.stdout
    assert "stopped by answer" in done.stdout


def test_the_example_says_how_to_install_the_sdk(tmp_path):
    (tmp_path / "openai.py").write_text("raise ModuleNotFoundError(\"No module named 'openai'\", name='openai')")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "chat.py")],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(tmp_path)},
    )

    assert done.returncode != 0
    assert "pip install 'agentos-host[openai]'" in done.stderr
