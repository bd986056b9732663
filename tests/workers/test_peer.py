"""Requests and answers between two sides: each is answered once, or ends with the conversation."""

import asyncio

import pytest
from joined_peers import joined, nothing

from agentos.model.isolation import WorkerLimits
from agentos.workers.frames import FrameTooLargeError
from agentos.workers.peer import Peer, PeerError
from agentos.workers.wire_values import Functions, RemoteError, TooDeepError, decode_error, encode, encode_error
from agentos.workers.worker_process import WorkerProcess


async def echo(op, body):
    return [op, body]


async def test_a_request_is_answered():
    here, _ = joined(there=echo)

    assert await here.request("say", {"a": 1}) == ["say", {"a": 1}]


async def test_both_sides_ask():
    here, there = joined(here=echo, there=echo)

    assert await asyncio.gather(here.request("a", 1), there.request("b", 2)) == [["a", 1], ["b", 2]]


async def test_answers_find_their_questions_in_any_order():
    doors = {name: asyncio.Event() for name in "ab"}

    async def wait(op, body):
        await doors[op].wait()
        return op

    here, _ = joined(there=wait)
    tasks = [asyncio.create_task(here.request(name)) for name in "ab"]
    await asyncio.sleep(0)
    doors["b"].set()
    assert await tasks[1] == "b"
    doors["a"].set()

    assert await tasks[0] == "a"


async def test_what_the_other_side_raises_is_raised_here_with_its_name_and_text():
    class OddError(KeyError):
        pass

    async def fail(op, body):
        raise OddError("missing")

    here, _ = joined(there=fail)
    with pytest.raises(KeyError) as caught:
        await here.request("x")

    assert type(caught.value).__name__ == "OddError"
    assert str(caught.value) == "'missing'"
    assert "in fail" in caught.value.traceback_text
    assert isinstance(caught.value, RemoteError)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
async def test_no_exit_of_the_other_side_ends_this_one(kind):
    async def fail(op, body):
        raise kind("now")

    here, _ = joined(there=fail)
    with pytest.raises(RemoteError) as caught:
        await here.request("x")

    assert (kind.__name__, "now") == (type(caught.value).__name__, str(caught.value))


async def test_a_function_in_a_request_is_called_back_while_it_is_under_way():
    async def call(op, body):
        return [await body["add"](2, to=3), await body["sub"](2, 3)]

    async def add(one, *, to):
        return one + to

    here, _ = joined(there=call)

    assert await here.request("x", {"add": add, "sub": lambda a, b: a - b}) == [5, -1]


async def test_a_function_that_raises_raises_for_its_caller():
    async def call(op, body):
        try:
            await body()
        except ZeroDivisionError as error:
            return str(error)

    here, _ = joined(there=call)

    assert await here.request("x", lambda: 1 / 0) == "division by zero"


async def test_a_function_given_to_a_function_is_called_back_too():
    async def call(op, body):
        return await body(lambda value: value * 2)

    async def double(function):
        return await function(21)

    here, _ = joined(there=call)

    assert await here.request("x", double) == 42


async def test_a_function_is_gone_with_the_request_it_came_with():
    kept = []

    async def keep(op, body):
        kept.append(body)

    here, _ = joined(there=keep)
    await here.request("x", lambda: "still here")

    with pytest.raises(RemoteError, match="over"):
        await kept[0]()
    kept[0].tell()


async def test_what_is_told_is_heard_in_order_and_before_the_answer():
    heard = []

    async def tell(op, body):
        for number in range(5):
            body.tell(number)
        return "end"

    here, _ = joined(there=tell)
    heard.append(await here.request("x", heard.append))

    assert heard == [0, 1, 2, 3, 4, "end"]


async def test_cancelling_a_request_cancels_what_answers_it():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(op, body):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    here, _ = joined(there=wait)
    task = asyncio.create_task(here.request("x"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended.wait()
    while here._given_up:
        await asyncio.sleep(0)

    assert (0, {}, set()) == (here.stray, here._asked, here._given_up)


async def test_a_notice_is_heard_and_not_answered():
    heard = asyncio.get_running_loop().create_future()

    async def hear(op, body):
        heard.set_result((op, body))

    here, _ = joined(there=hear)
    here.notify("log", ["line"])

    assert await heard == ("log", ["line"])


async def test_answers_nobody_waits_for_are_dropped_and_counted():
    lines = []
    peer = Peer(lines.append, nothing)
    task = asyncio.create_task(peer.request("x"))
    await asyncio.sleep(0)
    for frame in ({"re": 99, "value": 1}, {"re": 1, "value": "one"}, {"re": 1, "value": "two"}):
        peer.receive(frame)

    assert await task == "one"
    assert peer.stray == 2


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"op": 1},
        {"id": "x", "op": "y"},
        {"id": 1},
        {"id": 1, "op": ["y"]},
        {"cancel": []},
        {"re": {}, "value": 1},
        {"id": 2, "of": [], "call": 0, "body": [[], {}]},
        {"id": 1, "op": "x", "body": {"$": "os.system", "v": "x"}},
        {"id": 1, "op": "x", "body": {"$": "ToolResult", "v": {"nonsense": 1}}},
        {"id": 1, "op": "x", "body": {"$": []}},
    ],
)
async def test_a_message_that_is_none_of_the_conversation_is_refused(frame):
    peer = Peer([].append, nothing)

    with pytest.raises(PeerError, match="not understood"):
        peer.receive(frame)


async def test_a_question_whose_answer_is_not_understood_fails_alone():
    peer = Peer([].append, nothing)
    tasks = [asyncio.create_task(peer.request("x")) for _ in range(2)]
    await asyncio.sleep(0)
    peer.receive({"re": 1, "value": {"$": "Popen", "v": {}}})
    peer.receive({"re": 2, "value": "fine"})

    with pytest.raises(PeerError, match="the answer"):
        await tasks[0]
    assert await tasks[1] == "fine"


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        nested(2_000),
        {"$": "set", "v": [[]]},
        {"$": "dict", "v": [[[], 1]]},
        {"$": "bytes", "v": "?"},
        {"$": "function", "v": 0},
        {"$": "timedelta", "v": [10**30]},
        {"$": "SecretRequirement", "v": {"id": ""}},
        {"$": "ToolContext", "v": {}},
        {"$": "Principal", "v": {"id": 1}},
    ],
)
async def test_no_answer_does_more_than_fail_its_own_question(value):
    peer = Peer([].append, nothing)
    task = asyncio.create_task(peer.request("x"))
    await asyncio.sleep(0)
    peer.receive({"re": 1, "value": value})

    with pytest.raises(PeerError, match="not understood"):
        await task


@pytest.mark.parametrize(
    "said",
    [
        ["what"],
        {"type": "X", "bases": nested(2_000), "message": "m", "traceback": ""},
        {"type": "X", "bases": [], "message": "m", "traceback": "", "data": {"args": 1}},
    ],
)
async def test_an_error_that_is_not_understood_is_an_error(said):
    peer = Peer([].append, nothing)
    task = asyncio.create_task(peer.request("x"))
    await asyncio.sleep(0)
    peer.receive({"re": 1, "error": said})

    with pytest.raises(RemoteError, match="not understood"):
        await task


async def test_too_many_requests_at_once_end_the_conversation():
    async def wait(op, body):
        await asyncio.Event().wait()

    peer = Peer([].append, wait, at_once=3)
    for number in range(3):
        peer.receive({"id": number, "op": "x"})

    with pytest.raises(PeerError, match="more than 3 things"):
        peer.receive({"id": 9, "op": "x"})
    peer.fail(PeerError("over"))


async def test_notices_do_not_count_as_requests():
    lines = []

    async def answer(op, body):
        return op

    peer = Peer(lines.append, answer, at_once=3)
    for _ in range(10):
        peer.receive({"op": "log"})
    peer.receive({"id": 9, "op": "x"})
    while not lines:
        await asyncio.sleep(0)

    assert b'"re":9,"value":"x"' in lines[0]


async def test_the_end_reaches_everybody_who_waits_once():
    cancelled = asyncio.Event()

    async def wait(op, body):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    peer = Peer([].append, wait)
    tasks = [asyncio.create_task(peer.request("x")) for _ in range(3)]
    await asyncio.sleep(0)
    peer.receive({"id": 1, "op": "x"})
    await asyncio.sleep(0)
    peer.fail(PeerError("it died"))
    peer.fail(PeerError("again"))
    peer.receive({"re": 1, "value": "too late"})

    assert [str(one) for one in await asyncio.gather(*tasks, return_exceptions=True)] == ["it died"] * 3
    await cancelled.wait()
    with pytest.raises(PeerError, match="it died"):
        await peer.request("x")


async def test_a_request_that_is_too_large_is_refused_before_it_is_sent():
    lines = []
    peer = Peer(lines.append, nothing, limit=100)

    with pytest.raises(FrameTooLargeError):
        await peer.request("x", "y" * 200)
    assert (lines, peer._asked) == ([], {})


async def test_an_answer_that_is_too_large_becomes_an_error():
    async def much(op, body):
        return "y" * 200

    here, _ = joined(there=much, limit=100)

    with pytest.raises(RemoteError, match="a message of 219 bytes; at most 100 are allowed"):
        await here.request("x")


async def test_an_answer_without_end_is_too_deep_for_its_reader_and_nothing_else():
    async def endless(op, body):
        value = []
        value += [value, value]
        return value

    here, _ = joined(there=endless)
    value, depth = await here.request("x"), 0
    while value:
        value, depth = value[0], depth + 1

    assert depth == 100


async def test_a_request_that_was_given_up_is_forgotten_before_it_is_answered():
    peer = Peer([].append, nothing)
    task = asyncio.create_task(peer.request("x"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert peer._asked == {}


@pytest.mark.parametrize("kind", ["mapping", "pairs", "list", "tuple"])
def test_a_value_without_end_is_too_deep_to_be_sent(kind):
    inner = []
    value = {"mapping": {}, "pairs": {}, "list": inner, "tuple": (inner,)}[kind]
    if kind in ("mapping", "pairs"):
        value["a" if kind == "mapping" else 1] = value
    else:
        inner.append(value)

    with pytest.raises(TooDeepError):
        encode(value, Functions(lambda function: 0))


@pytest.mark.parametrize("kind", [ValueError, KeyError, PeerError])
def test_an_error_is_caught_as_what_it_is_on_the_other_side(kind):
    error = decode_error(encode_error(kind("why")))

    assert isinstance(error, RemoteError)
    assert isinstance(error, kind) is (kind is not PeerError)


async def test_whoever_gives_up_on_a_process_is_cancelled():
    process = WorkerProcess(1, limits=WorkerLimits(), handle=nothing, note=lambda *_: None, on_end=nothing, silence=1.0)
    task = asyncio.create_task(process.ask("x", None))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
