"""Servers that misbehave are bounded and contained: the call ends, the host lives, and other servers go on."""

import asyncio
import json
import logging
import os
import signal
import tracemalloc

import attrs
import pytest
from bridging import FAST, bridge_of, bridged, call, children, eventually, hostile, plain, program, state_of, until
from kit import Recorder

from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.unreadable_tools import UNREADABLE, readable_list
from agentos.mcp.json_rpc import failure_answer
from agentos.processes.lines import LineSplitter

SMALL = attrs.evolve(FAST, message=1024 * 1024)
"""A megabyte is the longest message: what is longer is thrown away, as with the real limit."""


async def went(mode, limits=FAST, **said):
    """Call the tool of a server that misbehaves, then one of a good server beside it."""
    async with bridged({"bad": hostile(mode, **said), "plain": plain()}, limits=limits) as host:
        result = await call(host, "mcp/bad:go")
        beside = await call(host, "mcp/plain:echo", {"text": "fine"})

        assert beside.content == "fine"
    return result


# -- answers -------------------------------------------------------------------------------------------------------


async def test_an_answer_that_never_comes_ends_with_the_timeout():
    assert (await went("never", timeout=0.2)).error.type == "TimedOut"


async def test_of_two_answers_the_first_counts():
    assert (await went("twice")).content == "first"


async def test_answers_to_nobody_are_left_out():
    assert (await went("wrong_ids")).content == "yours"


@pytest.mark.parametrize("mode", ["huge", "huge_tail"])
async def test_an_answer_of_a_hundred_megabytes_is_a_failure_and_is_not_kept(mode):
    tracemalloc.start()
    try:
        result = await went(mode, SMALL)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert result.error.type == "ToolRaised"
    assert "it is longer than 1,048,576 bytes" in result.error.message
    assert peak < 30 * 1024 * 1024


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("utf8", "it is not JSON-RPC: 'utf-8' codec can't decode"),
        ("surrogate", "it is not JSON-RPC: 'utf-8' codec can't encode"),
        ("deep", "it is not JSON-RPC: nested too deep"),
        ("rather_deep", "it is not JSON-RPC: nested deeper than 100 levels"),
        ("not_a_number", "it is not JSON-RPC: NaN is not JSON"),
        ("long_number", "it is not JSON-RPC: Exceeds the limit (4300 digits)"),
    ],
)
async def test_an_answer_that_is_no_message_is_a_failure_at_once(mode, words):
    result = await went(mode)

    assert result.error.type == "ToolRaised"
    assert words in result.error.message


async def test_an_answer_that_does_not_fit_the_protocol_is_a_failure():
    result = await went("no_result")

    assert result.error.type == "ToolRaised"
    assert "mcp/bad gave an answer that can't be used: ValidationError" in result.error.message


async def test_what_is_wrong_with_an_answer_is_told_in_one_line_without_addresses():
    result = await went("no_result")

    assert "validation error" in result.error.message
    assert "http" not in result.error.message
    assert "\n" not in result.error.message


async def test_an_error_with_the_code_of_a_closed_connection_is_an_error_of_the_server():
    async with bridged({"plain": hostile("says_closed")}) as host:
        result = await call(host, "go")

        assert (result.error.type, result.error.details) == ("ToolRaised", {"code": -32000})
        assert "mcp/plain answers with an error: the disk is full [31m yyy" in result.error.message
        assert len(result.error.message) < 2_100
        assert state_of(host, "go")[0] == "active"


async def test_a_secret_that_stands_where_an_error_is_cut_is_masked():
    said = {"env": {"TOK": "${secret:tk}"}}
    async with bridged({"plain": hostile("tells_all", **said)}, extension_secrets={"tk": "tok-4f9a2c7e81"}) as host:
        result = await call(host, "go")

        assert result.error.message.endswith("xxx***")


@pytest.mark.parametrize(("mode", "said"), [("tells_all_in_a_result", "xxx***"), ("tells_all_in_a_link", "xxx***: a]")])
async def test_a_secret_that_stands_where_a_result_is_cut_is_masked(mode, said):
    spec = hostile(mode, env={"TOK": "${secret:tk}"})
    async with bridged({"plain": spec}, extension_secrets={"tk": "tok-4f9a2c7e81b3d650"}) as host:
        result = await call(host, "go")

        assert result.content.endswith(said)
        assert "tok-" not in repr(result)


async def test_the_size_of_a_picture_is_that_of_its_bytes():
    assert (await went("wasteful")).content == "[image image/png, 2 bytes]"


@pytest.mark.parametrize("mode", ["garbage", "no_object"])
async def test_what_is_no_message_at_all_is_left_out(mode):
    assert (await went(mode)).content == "after all"


async def test_half_an_answer_and_a_dead_process_are_one_result():
    result = await went("half")

    assert result.error.type == "WorkerDied"
    assert "the process exited with code 0" in result.error.message


async def test_a_bulky_answer_is_cut_for_the_model():
    result = await went("bulky")

    assert len(result.content) <= 60_000
    assert result.output is None
    assert result.meta["output_dropped"] > 3_000_000


async def test_progress_that_is_no_progress_is_not_told():
    async with bridged({"plain": hostile("false_progress")}) as host:
        recorder = host.extensions.on(Recorder())
        result = await call(host, "go")

        assert result.content == "done"
        assert {one.done for one in recorder.of("tool:progress")} <= {-5, 3}
        assert {one.total for one in recorder.of("tool:progress")} <= {None}


async def test_a_process_that_closes_its_output_is_lost_and_ended():
    result = await went("shut_up")

    assert result.error.type == "WorkerDied"
    assert "the process closed its output; it may have taken effect" in result.error.message


@pytest.mark.parametrize(
    ("mode", "words"),
    [("long_instructions", "longer than 20,000 characters"), ("hidden_instructions", "U+200B ZERO WIDTH SPACE")],
)
async def test_instructions_that_can_not_be_shown_are_left_out_even_of_a_trusted_server(mode, words):
    async with bridged({"plain": hostile(mode, trust=True)}) as host:
        assert host.tools.system_prompt() == ""
        assert words in bridge_of(host).skipped[0].reason
        assert (await call(host, "go")).content == "went"


# -- floods --------------------------------------------------------------------------------------------------------


async def test_a_storm_of_changes_makes_few_lists():
    async with bridged({"plain": hostile("storm")}) as host:
        applied = []
        bridge = bridge_of(host)
        original = bridge._apply

        async def counted(connection):
            applied.append(1)
            await original(connection)

        bridge._apply = counted
        result = await call(host, "go")

        assert result.content == "calm"
        assert len(applied) < 200  # of 20,000 changes


async def test_chatter_that_nobody_listens_to_is_left_out():
    assert (await went("chatter")).content == "quiet"


async def test_of_a_flood_of_progress_the_newest_is_told_and_nobody_is_held_up():
    others, peak = 0, 0

    async def beside():
        nonlocal others, peak
        while True:
            others += 1
            peak = max(peak, len(asyncio.all_tasks()))
            await asyncio.sleep(0)

    async with bridged({"plain": hostile("progress_flood")}) as host:
        recorder, running = host.extensions.on(Recorder()), len(asyncio.all_tasks())
        watching = asyncio.create_task(beside())
        result = await call(host, "go")
        watching.cancel()
        told = [one.done for one in recorder.of("tool:progress")]

    assert result.content == "done"
    assert told == sorted(told)
    assert told[-1] == 20_000
    assert len(told) < 2_000
    assert others > 20_000 / 500  # at every five hundredth message somebody else had a turn
    assert peak < running + 20


async def test_the_text_of_a_number_is_another_id():
    assert (await went("stringly")).content == "yours"


async def test_a_noisy_process_is_not_held_up_and_is_logged_in_part(caplog):
    with caplog.at_level(logging.DEBUG, "agentos"):
        result = await went("noisy", attrs.evolve(FAST, noise=20))
    noise = [one for one in caplog.messages if one.startswith("stderr: noise")]

    assert result.content == "done"
    assert len(noise) == 20
    assert max(map(len, noise)) < 500
    assert "stderr: more than 20 lines; the rest is not logged" in caplog.messages
    assert not any("\x1b" in one for one in noise)


async def test_a_server_that_asks_without_end_and_does_not_listen_is_not_answered_without_end():
    assert (await went("pings")).content == "done"


async def test_what_a_server_takes_back_need_not_be_answered():
    assert (await went("cancelled_pings")).content == "answered"


async def test_a_server_that_asks_for_input_is_told_that_there_is_none():
    assert (await went("elicit")).content == "-32600"


async def test_a_server_that_asks_for_all_there_is_gets_nothing():
    """Sampling, roots, forms, our tools, files: 104 questions, each refused, and nothing of it was offered."""
    given, offered = json.loads((await went("asks")).content)

    assert (given, offered) == ([], {})


@pytest.mark.parametrize(
    "name", ["ask-model", "ask-roots", "ask-form", pytest.param("ask-again", marks=pytest.mark.proof)]
)
async def test_a_server_that_answers_with_a_question_gets_nothing_and_is_not_asked_for_ever(name):
    spec = {**program("modern.py"), "effects": {"*": "read"}}
    async with bridged({"modern": spec}) as host:
        result = await call(host, name)
        rounds = int((await call(host, "count")).content)

    assert (result.success, len(result.content) < 500, rounds <= 11) == (False, True, True)


async def test_a_server_that_does_not_read_holds_nobody_up():
    spec = hostile("stop_reading", timeout=0.3)
    async with bridged({"plain": spec}) as host:
        first = await call(host, "go")
        results = await asyncio.gather(*[call(host, "go", {}) for _ in range(30)])

        assert {one.error.type for one in (first, *results)} == {"TimedOut"}


async def test_a_server_that_does_not_read_large_calls_holds_nobody_up():
    async with bridged({"plain": hostile("stop_reading", timeout=0.3)}) as host:
        calls = [call(host, "go", {"a": "x" * 900_000}) for _ in range(5)]

        assert {one.error.type for one in await asyncio.gather(*calls)} == {"TimedOut"}


async def test_a_server_whose_message_has_no_end_is_lost():
    limits = attrs.evolve(FAST, message=64 * 1024, first_delay=30.0)
    async with bridged({"plain": hostile("endless")}, limits=limits) as host:
        result = await call(host, "go")

        assert result.error.type == "WorkerDied"
        assert "it sends a message without end; it may have taken effect" in result.error.message
        assert state_of(host, "go")[0] == "gated"


# -- lists ---------------------------------------------------------------------------------------------------------


async def listed(mode, limits):
    async with bridged({"plain": hostile(mode)}, limits=limits) as host:
        names = [one.name for one in host.tools.list_available_tools()]
        return len(names), [str(one) for one in bridge_of(host).skipped]


async def test_a_list_without_end_is_cut():
    count, skipped = await listed("cursors", attrs.evolve(FAST, pages=40))

    assert (count, skipped) == (40, ["... (the list of tools has more than 40 pages)"])


async def test_a_list_that_goes_in_a_circle_is_cut():
    count, skipped = await listed("circle", FAST)

    assert (count, skipped[0]) == (2, "... (the list of tools leads back to its own beginning)")


async def test_of_a_hundred_thousand_tools_the_first_are_taken():
    limits = attrs.evolve(FAST, tools=300, message=ServerLimits().message * 4)
    count, skipped = await listed("many", limits)

    assert (count, skipped) == (300, ["... (only the first 300 tools are taken)"])


async def test_a_list_in_one_message_that_is_too_long_is_no_list():
    async with bridged({"plain": hostile("many")}, limits=attrs.evolve(SMALL, first_delay=30.0)) as host:
        assert "it is longer than 1,048,576 bytes" in bridge_of(host).status


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("half_pair", "it can't be read: 'utf-8' codec can't encode character '\\ud800'"),
        ("no_number", "it can't be read: NaN is not JSON"),
        ("vast_number", "it has a number that JSON has no form for"),
        ("deep_schema", "it can't be read: nested deeper than 97 levels"),
        ("bottomless", "it can't be read: nested too deep"),
        ("bad_bytes", "it can't be read: 'utf-8' codec can't decode"),
        ("long_notes", "its annotations are larger than 10,000 characters"),
    ],
)
async def test_a_tool_that_can_not_be_read_does_not_cost_the_others(mode, reason):
    async with bridged({"plain": hostile(mode)}, limits=attrs.evolve(FAST, first_delay=30.0)) as host:
        names = {one.name for one in host.tools.list_available_tools()}
        (skipped,) = bridge_of(host).skipped

        assert (names, skipped.name) == ({"go", "pid"}, "bad")
        assert skipped.reason.startswith(reason)


async def test_what_is_around_the_tools_of_a_list_has_to_be_readable():
    async with bridged({"plain": hostile("bad_around")}, limits=attrs.evolve(FAST, first_delay=30.0)) as host:
        assert "it is not JSON-RPC: NaN is not JSON" in bridge_of(host).status


async def test_a_list_that_is_heavy_altogether_is_cut():
    count, skipped = await listed("heavy", attrs.evolve(FAST, listing=5_000_000))

    assert 200 < count < 300
    assert skipped == [f"... (only the first {count} tools are taken)"]


async def test_a_list_that_is_none_is_told():
    async with bridged({"plain": hostile("odd_list")}, limits=attrs.evolve(FAST, first_delay=30.0)) as host:
        assert "not connected: ValidationError: " in bridge_of(host).status


async def test_defaults_without_end_are_a_failure_of_the_call():
    async with bridged({"plain": hostile("endless_defaults")}) as host:
        result = await call(host, "go")

        assert result.error.type == "InvalidArguments"
        assert "without end" in result.error.message


# -- lines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_cut_the_same_however_they_arrive(size):
    data = b"one\n\nthree" * 5 + b"\n" + b"x" * 50 + b"\nshort\nrest"
    lines = LineSplitter(20)
    found = [line for start in range(0, len(data), size) for line in lines.feed(data[start : start + size])]

    assert [line for line, is_whole in found if is_whole] == [
        *[b"one", b"", b"threeone", b"", b"threeone", b"", b"threeone", b"", b"threeone", b"", b"three"],
        b"short",
    ]
    assert [is_whole for _, is_whole in found].count(False) == 1


def test_of_a_long_line_its_beginning_and_its_end_are_kept():
    lines = LineSplitter(1000)
    lines.feed(b"begin" + b"x" * 5000)
    lines.feed(b"x" * 50_000)
    ((line, is_whole),) = lines.feed(b"end\n")

    assert (line[:5], line[-3:], is_whole) == (b"begin", b"end", False)
    assert len(line) < 1000


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":', 7),
        (b'{"id": "a-7", "error": ...', "a-7"),
        (b'{"result": ' + b"x" * 5000 + b' ,"id" : 7}', 7),
        (b'{"id":"\xff","result":', None),
        (b'{"id":7,"method":"ping"', None),
        (b"nothing", None),
    ],
)
def test_a_line_that_is_no_message_is_an_answer_if_it_says_to_what(line, id):
    answer = failure_answer(line, "why")

    assert (answer and answer.id) == id


GOOD = b'{"name":"good","inputSchema":{"type":"object"}}'


def in_list(*tools):
    return b'{"jsonrpc":"2.0","id":3,"result":{"_meta":{"tools":[1,2]},"tools":[' + b",".join(tools) + b"]}}"


def test_a_list_that_can_be_read_is_left_as_it_is():
    assert readable_list(in_list(GOOD, GOOD)) == in_list(GOOD, GOOD)


def test_a_stand_in_takes_the_place_of_a_tool_that_can_not_be_read():
    mended = json.loads(readable_list(in_list(GOOD, b'{"d":"]},{\\"","name":"bad","x":NaN}', GOOD)))
    names = [one["name"] for one in mended["result"]["tools"]]

    assert names == ["good", "bad", "good"]
    assert mended["result"]["tools"][1][UNREADABLE] == "NaN is not JSON"


@pytest.mark.parametrize(
    "line",
    [
        b'{"result":{"tools":[]},"x":NaN}',
        b'{"result":{"tools":[NaN',
        b'{"result":{"tools":{"a":NaN}}}',
        b'{"other":{"tools":[NaN]}}',
        b"]]}",
        b'"',
        b'{"result":{"tools":[' + b'"\\' * 1_000_000,
        b'{"result":{"tools":[' + b"[" * 1_500_000,
    ],
)
def test_what_is_no_list_of_tools_is_left_as_it_is(line):
    assert readable_list(line) == line


# -- the end -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["never", "stop_reading", "pings", "storm", "stubborn"])
async def test_a_server_that_misbehaves_is_still_ended(mode):
    async with bridged({"plain": hostile(mode, timeout=0.2)}) as host:
        await call(host, "go")

    await eventually(lambda: children() == [])


async def test_a_server_that_dies_while_its_calls_wait_to_be_written_gives_each_a_result():
    async with bridged({"plain": hostile("stop_reading")}) as host:
        recorder = host.extensions.on(Recorder())
        calls = [asyncio.create_task(call(host, "go", {"a": "x" * 900_000})) for _ in range(5)]
        await until(host, lambda: len(recorder.of("tool:started")) == 5)
        os.kill(children()[0], signal.SIGKILL)
        results = await asyncio.gather(*calls)
        await until(host, lambda: state_of(host, "go")[0] == "active")

        assert {one.error.type for one in results} == {"WorkerDied"}
