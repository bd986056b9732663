"""Servers that come and go: one result for every call, tools gated until they are back, and nothing left behind."""

import asyncio
import itertools
import logging
import os
import random
import shutil
import signal
import tempfile
from pathlib import Path

import attrs
import pytest
from bridging import (
    DEADLINE,
    FAST,
    SERVERS,
    bridge_of,
    bridged,
    call,
    children,
    descriptors,
    eventually,
    hostile,
    is_alive,
    manifest_of,
    plain,
    program,
    state_of,
    tasks,
    until,
)
from kit import Recorder, states

from agentos import AgentOS, Descriptor, ExtensionManifest, ExtensionPack, PackEntry, Tool
from agentos.mcp.client.server_text import ServerText
from agentos.processes.backoff import Backoff

SLOW = attrs.evolve(FAST, first_delay=30.0)
"""Once down, down for the whole test."""


async def killed(host, name="plain"):
    """Kill a server with signal 9 and wait until its tools are gated."""
    pid = int((await call(host, "pid")).content)
    os.kill(pid, signal.SIGKILL)
    await until(host, lambda: state_of(host, "pid")[0] == "gated")
    return pid


# -- a server that dies --------------------------------------------------------------------------------------------


async def test_a_call_in_flight_when_its_server_dies_has_one_result():
    async with bridged({"plain": plain()}) as host:
        result = await call(host, "die")

        assert result.error.type == "WorkerDied"
        assert result.error.message == (
            "mcp/plain went away during the call: the process exited with code 3; it may have taken effect"
        )
        assert dict(result.error.details) == {"may_have_run": True}


async def test_when_a_call_ends_since_its_server_died_the_tools_are_gated_already():
    limits = attrs.evolve(SLOW, grace=DEADLINE)
    async with bridged({"plain": plain()}, limits=limits) as host:
        await call(host, "die")
        states = {state_of(host, name) for name in ("die", "echo", "pid")}

        assert len(states) == 1
        assert states.pop()[1].startswith("mcp/plain is not connected: the process exited with code 3")
        assert host.tools.list_available_tools() == []


async def test_all_calls_in_flight_when_their_server_is_killed_have_one_result_each(tmp_path):
    marks = [tmp_path / str(number) for number in range(30)]
    async with bridged({"plain": plain()}) as host:
        running = [asyncio.create_task(call(host, "wait", {"mark": str(mark)})) for mark in marks]
        await eventually(lambda: all(mark.exists() for mark in marks))
        await killed(host)
        results = await asyncio.gather(*running)

        assert {one.error.type for one in results} == {"WorkerDied"}
        assert "ended by signal 9" in results[0].error.message


async def test_the_tools_of_a_dead_server_are_gated_with_the_reason():
    async with bridged({"plain": plain()}, limits=SLOW) as host:
        await killed(host)
        state, reason = state_of(host, "echo")

        assert state == "gated"
        assert reason.startswith("mcp/plain is not connected: the process was ended by signal 9; retry in ")
        assert reason in str(host.extensions.explain("tool", "echo"))


async def test_a_call_of_a_dead_servers_tool_says_why():
    async with bridged({"plain": plain()}, limits=SLOW) as host:
        await killed(host)
        result = await call(host, "echo", {"text": "x"})

        assert (result.error.type, dict(result.error.details)) == ("WorkerDied", {"may_have_run": False})
        assert "retry in" in result.error.message


async def test_the_tools_of_a_dead_server_are_not_offered():
    async with bridged({"plain": plain()}, limits=SLOW) as host:
        await killed(host)

        assert host.tools.list_available_tools() == []


async def test_while_a_server_is_dead_what_it_shadowed_is_in_force():
    made = Tool.from_schema(
        name="echo",
        description="",
        input_schema={"type": "object"},
        effect="read",
        required_access="any",
        execute=lambda args, context: "from here",
    )
    pack = ExtensionPack("local", "1.0", [made])
    async with bridged({"plain": plain(priority=1)}, packs=[pack], limits=SLOW) as host:
        await killed(host)

        assert states(host.extensions, "echo") == {"mcp/plain": "gated", "local": "active"}
        assert (await call(host, "echo")).content == "from here"


async def test_a_server_that_died_is_started_again_and_its_tools_are_back():
    async with bridged({"plain": plain()}) as host:
        pid = await killed(host)
        await until(host, lambda: state_of(host, "pid")[0] == "active")

        assert int((await call(host, "pid")).content) != pid


async def test_what_changed_while_a_server_was_down_is_held_back(tmp_path):
    """A server that comes back with other definitions is not let in unseen."""
    flag = tmp_path / "flag"
    spec = {**program("fickle.py", str(flag)), "effects": {"*": "read"}}
    async with bridged({"plain": spec}) as host:
        flag.touch()
        await killed(host)
        await until(host, lambda: state_of(host, "pid")[0] == "active")

        assert state_of(host, "go")[0] == "gated"
        assert "held back" in state_of(host, "go")[1]
        assert [one.tool for one in await host.pins.pending()] == ["mcp/plain:go"]


async def test_listeners_hear_that_tools_go_and_come():
    async with bridged({"plain": plain(tools=["pid"])}) as host:
        recorder = host.extensions.on(Recorder())
        await killed(host)
        await until(host, lambda: state_of(host, "pid")[0] == "active")
        told = [one.type for one in recorder.events if one.type.startswith("descriptor:")]

        assert told == ["descriptor:gated", "descriptor:deactivated", "descriptor:activated"]


async def test_what_a_process_left_behind_when_it_died_ends_with_it(caplog):
    with caplog.at_level(logging.DEBUG, "agentos"):
        async with bridged({"plain": hostile("family")}) as host:
            result = await call(host, "go")
            await until(host, lambda: state_of(host, "go")[0] == "gated")
    pid = int(next(one for one in caplog.messages if "stderr: left" in one).split()[-1])

    assert result.error.type == "WorkerDied"
    await eventually(lambda: not is_alive(pid))


async def test_the_answer_that_a_process_gives_before_it_ends_counts():
    async with bridged({"plain": hostile("last_words")}) as host:
        assert (await call(host, "go")).content == "done"


# -- starting ------------------------------------------------------------------------------------------------------


async def test_a_command_that_is_not_there_is_reported_and_nothing_else_fails(caplog):
    spec = {"command": "no-such-command-anywhere"}
    async with bridged({"bad": spec, "plain": plain()}, limits=SLOW) as host:
        assert [one.status for one in host.extensions.report.outcomes] == ["loaded", "loaded"]
        assert "the command 'no-such-command-anywhere' is not on PATH" in bridge_of(host, "bad").status
        assert (await call(host, "echo", {"text": "x"})).success
    assert any("mcp/bad is loaded, but degraded" in one for one in caplog.messages)


async def test_a_command_that_can_not_be_run_is_reported(tmp_path):
    file = tmp_path / "server"
    file.write_text("not a program")
    async with bridged({"bad": {"command": str(file)}}, limits=SLOW) as host:
        assert "can't be started: Permission denied" in bridge_of(host, "bad").status


async def test_a_folder_that_is_not_there_is_reported(tmp_path):
    async with bridged({"plain": plain(cwd=str(tmp_path / "none"))}, limits=SLOW) as host:
        assert f"can't be started in {tmp_path}/none: No such file or directory" in bridge_of(host).status


async def test_a_process_that_ends_at_once_is_reported_with_its_last_words_masked():
    secrets = {"k": "top-secret-value"}
    spec = hostile("quit", env={"A": "${secret:k}"})
    async with bridged({"plain": spec}, limits=SLOW, extension_secrets=secrets) as host:
        await host.extensions.load_pack(
            ExtensionPack("p", "1", [Descriptor("x", "y", None, gate=bridge_of(host).why_not)])
        )
        reason = host.extensions.explain("x", "y").entries[0].reason

        assert "the process exited with code 1: no license found for ***" in reason


async def test_the_last_words_of_a_process_are_for_people_and_for_no_model(caplog):
    async with bridged({"plain": hostile("preacher")}, limits=SLOW) as host:
        during = await call(host, "go")
        after = await call(host, "go")
        status = bridge_of(host).status

    assert "the process exited with code 4" in during.content
    assert "the process exited with code 4" in after.content
    assert "IGNORE ALL" not in f"{during} {after}"
    assert "the process exited with code 4: IGNORE ALL" in status
    assert any("IGNORE ALL" in one for one in caplog.messages)


TOKEN = "tok-4f9a2c7e81b3d650"
GIVEN = {"env": {"TOK": "${secret:tk}"}}


@pytest.mark.parametrize(
    ("mode", "said"),
    [("fatal_briefly", "exited with code 3: FATAL token ***"), ("leaky_list", "not connected: no list for ***")],
)
async def test_a_secret_in_what_a_server_says_last_is_masked_in_its_status(mode, said):
    async with bridged({"plain": hostile(mode, **GIVEN)}, limits=SLOW, extension_secrets={"tk": TOKEN}) as host:
        bridge = bridge_of(host)

        assert said in bridge.status
        assert TOKEN not in f"{bridge.status} {bridge!r} {bridge.why_not()}"


async def test_a_secret_that_stands_where_last_words_are_cut_is_masked_as_well(caplog):
    with caplog.at_level(logging.DEBUG, "agentos"):
        async with bridged({"plain": hostile("fatal", **GIVEN)}, limits=SLOW, extension_secrets={"tk": TOKEN}) as host:
            status = bridge_of(host).status

    assert "FATAL token ***" in status
    assert TOKEN[:6] not in f"{status} {caplog.text}"


async def test_of_a_line_whose_rest_is_thrown_away_no_part_of_a_secret_is_shown(caplog):
    spec = hostile("fatal_at_length", **GIVEN)
    with caplog.at_level(logging.DEBUG, "agentos"):
        async with bridged({"plain": spec}, limits=SLOW, extension_secrets={"tk": TOKEN * 3}) as host:
            status = bridge_of(host).status

    assert "FATAL tokens ***" in status
    assert TOKEN[:6] not in f"{status} {caplog.text}"


async def test_a_secret_of_many_lines_is_masked_line_by_line():
    secrets = {"tk": "-----BEGIN-----\nfirst half\nother half"}
    async with bridged({"plain": hostile("fatal_briefly", **GIVEN)}, limits=SLOW, extension_secrets=secrets) as host:
        assert "exited with code 3: ***" in bridge_of(host).status


def test_all_of_a_long_text_is_masked_before_it_is_cut():
    words, value = ServerText(), "secret-value-" * 20
    words.reading({"a": value}.get)("a")

    assert words.clip(value * 90) == "***" * 90


def test_only_values_that_were_read_are_hidden():
    words = ServerText()
    read = words.reading({"a": "first-value"}.get)

    assert (read("a"), read("b")) == ("first-value", None)
    assert words.clip("first-value\nother-value") == "*** other-value"


async def test_a_list_that_is_refused_with_the_code_of_a_closed_connection_is_told_in_the_servers_words():
    async with bridged({"plain": hostile("closed_list")}, limits=SLOW) as host:
        bridge = bridge_of(host)

        assert "not connected: no list today" in bridge.why_not()
        assert "it answers with the error -32000" in bridge.why_not(is_whole=False)


async def test_what_a_server_says_when_it_refuses_to_begin_is_for_no_model():
    async with bridged({"plain": hostile("no_list")}, limits=SLOW) as host:
        bridge = bridge_of(host)

        assert "out of order" in bridge.why_not()
        assert "it answers with the error -32003" in bridge.why_not(is_whole=False)


async def test_loading_waits_for_a_slow_server():
    async with bridged({"plain": plain("--slow")}) as host:
        assert (await call(host, "echo", {"text": "x"})).content == "x"


async def test_loading_does_not_wait_longer_than_it_was_told_to():
    async with bridged({"plain": hostile("mute", startTimeout=0.1)}) as host:
        assert host.extensions.report.outcomes[0].status == "loaded"
        assert "mcp/plain is not connected: it was not reached yet" in bridge_of(host).status


async def test_a_server_that_comes_up_later_is_taken_in_then(tmp_path):
    file = tmp_path / "plain.py"
    spec = {**plain(), "args": ["-S", "-E", str(file)]}
    async with bridged({"plain": spec}) as host:
        before = host.tools.list_available_tools()
        for name in ("wire.py", "plain.py"):
            shutil.copy(SERVERS / name, tmp_path)
        await until(host, lambda: state_of(host, "echo") is not None)

        assert before == []
        assert (await call(host, "echo", {"text": "at last"})).content == "at last"


async def test_a_required_server_that_can_not_be_reached_fails_the_load():
    host = AgentOS(
        extension_manifest=manifest_of({"bad": {"command": "no-such-command", "required": True, "startTimeout": 0.2}})
    )
    with pytest.raises(ExceptionGroup) as caught:
        async with host:
            pass

    assert "'no-such-command' is not on PATH" in str(caught.value.exceptions[0])


async def test_a_required_server_has_until_its_deadline(tmp_path):
    """One attempt that fails is not the end: what is required is waited for."""
    flag = tmp_path / "flag"
    spec = {**program("fickle.py", str(flag), "--second-time"), "required": True}
    async with bridged({"plain": spec}) as host:
        assert host.extensions.report.outcomes[0].status == "loaded"
        assert bridge_of(host).why_not() is None


async def test_a_server_that_never_answers_is_given_up_and_tried_again():
    limits = attrs.evolve(FAST, connect=0.2, first_delay=60.0, longest_delay=60.0)
    async with bridged({"plain": hostile("mute")}, limits=limits) as host:
        assert "it did not answer within 0.2 s; retry in" in bridge_of(host).status
        await eventually(lambda: children() == [])


async def test_a_server_whose_list_fails_is_not_connected():
    async with bridged({"plain": hostile("no_list")}, limits=SLOW) as host:
        status = bridge_of(host).status

        assert "not connected: out of order [31m yyy" in status
        assert len(status) < 400


# -- side by side --------------------------------------------------------------------------------------------------


async def test_servers_are_waited_for_together():
    """Each of them answers only when all have been started."""
    names = ["a", "b", "c"]
    with tempfile.TemporaryDirectory() as folder:
        specs = {name: plain("--after", folder, str(len(names)), startTimeout=DEADLINE) for name in names}
        async with bridged(specs) as host:
            assert {bridge_of(host, name).why_not() for name in names} == {None}


async def test_tools_of_servers_stand_in_the_order_of_the_manifest_whoever_comes_first():
    with tempfile.TemporaryDirectory() as folder:
        last, first = plain("--after", folder, "2"), plain("--after", folder, "1")
        async with bridged({"a": last, "b": first}) as host:
            entries = host.extensions.registry("tool").stack("echo")

            assert [one.source.pack for one in entries] == ["mcp/b", "mcp/a"]
            assert [one.key for one in host.extensions.report.outcomes] == ["mcp/a", "mcp/b"]


async def test_servers_are_ended_together():
    """Each of them ends only when all have been told to."""
    names = ["a", "b", "c"]
    limits = attrs.evolve(FAST, grace=DEADLINE)
    with tempfile.TemporaryDirectory() as folder:
        specs = {name: plain("--ends-with", folder, str(len(names))) for name in names}
        async with asyncio.timeout(DEADLINE), bridged(specs, limits=limits) as host:
            assert {bridge_of(host, name).why_not() for name in names} == {None}

        assert len(list(Path(folder).iterdir())) == len(names)


async def test_of_several_required_servers_each_that_is_missing_is_named():
    missing = {"command": "no-such-command", "required": True, "startTimeout": 0.1}
    host = AgentOS(extension_manifest=manifest_of({"a": missing, "b": plain(), "c": missing}))
    with pytest.raises(ExceptionGroup) as caught:
        await host.initialize()
    left = children()
    await host.shutdown()

    assert [one.key for one in caught.value.exceptions] == ["mcp/a", "mcp/c"]
    assert [one.status for one in host.extensions.report.outcomes] == ["failed", "loaded", "failed"]
    assert left == []


async def test_a_server_that_another_pack_loads_is_there_at_once():
    (entry,) = manifest_of({"plain": plain()}).packs
    seen = []

    async def activate(context):
        await host.extensions.load(entry)
        seen.append(state_of(host, "echo"))

    pack = ExtensionPack("loader", "1", on_activate=activate)
    host = AgentOS(extension_manifest=ExtensionManifest(packs=[PackEntry(factory=pack)]), budget=None)
    async with host:
        assert seen == [("active", "the only entry")]


# -- delays --------------------------------------------------------------------------------------------------------


def test_delays_double_up_to_their_bound_with_jitter():
    backoff = Backoff(0.5, 30.0, jitter=0.5)
    delays = [backoff.next() for _ in range(60)]

    for delay, most in zip(delays, [0.5, 1, 2, 4, 8, 16, *[30] * 54], strict=True):
        assert most / 2 <= delay <= most
    assert len(set(delays)) > 50


def test_after_a_good_time_delays_begin_anew():
    backoff = Backoff(0.5, 30.0, jitter=0.5)
    for _ in range(10):
        backoff.next()
    backoff.reset()

    assert backoff.next() <= 0.5


async def test_a_connection_that_lasted_makes_delays_begin_anew():
    limits = attrs.evolve(FAST, steady=0.0, first_delay=0.05, longest_delay=60.0)
    async with bridged({"plain": plain()}, limits=limits) as host:
        for _ in range(12):  # the thirteenth delay would be minutes
            await killed(host)
            await until(host, lambda: state_of(host, "pid")[0] == "active")


async def test_a_connection_in_which_a_call_was_answered_makes_delays_begin_anew():
    limits = attrs.evolve(FAST, first_delay=0.05, longest_delay=60.0)
    async with bridged({"plain": plain()}, limits=limits) as host:
        for _ in range(12):  # the thirteenth delay would be minutes
            await killed(host)
            await until(host, lambda: state_of(host, "pid")[0] == "active")


async def test_a_connection_in_which_a_call_was_refused_is_as_good():
    async with bridged({"plain": plain()}, limits=SLOW) as host:
        backoff = bridge_of(host)._connection._supervision._backoff
        for _ in range(10):
            backoff.next()
        await call(host, "refuse")
        await call(host, "die")

        assert backoff.attempts == 1


async def test_a_connection_without_an_answer_does_not_make_delays_begin_anew():
    async with bridged({"plain": plain()}, limits=SLOW) as host:
        backoff = bridge_of(host)._connection._supervision._backoff
        backoff.next()
        await call(host, "die")

        assert backoff.attempts == 2


# -- switching and unloading ---------------------------------------------------------------------------------------


async def test_a_disabled_servers_process_ends_and_enabling_starts_it_again():
    async with bridged({"plain": plain()}) as host:
        first = int((await call(host, "pid")).content)
        await host.extensions.disable("mcp/plain")
        gone, state = not is_alive(first), state_of(host, "pid")[0]
        await host.extensions.enable("mcp/plain")
        second = int((await call(host, "pid")).content)

        assert (gone, state) == (True, "disabled")
        assert second != first


async def test_a_server_that_is_overridden_off_is_disconnected_and_its_tools_are_gated_until_it_is_on():
    async with bridged({"plain": plain()}) as host:
        first = int((await call(host, "pid")).content)
        await host.extensions.set_override("mcp-server", "plain", {"enabled": False})
        gone, state = not is_alive(first), state_of(host, "pid")
        await host.extensions.set_override("mcp-server", "plain", None)
        second = int((await call(host, "pid")).content)

        assert (gone, state) == (True, ("gated", "mcp/plain is not connected: it is not in force"))
        assert second != first


async def test_reloading_connects_anew_before_the_old_process_ends():
    async with bridged({"plain": plain()}) as host:
        first = int((await call(host, "pid")).content)
        outcome = await host.extensions.reload("mcp/plain")

        assert outcome.status == "loaded"
        assert int((await call(host, "pid")).content) != first
        assert not is_alive(first)


async def test_unloading_takes_tools_and_process_away():
    async with bridged({"plain": plain()}) as host:
        pid = int((await call(host, "pid")).content)
        await host.extensions.unload("mcp/plain")

        assert not is_alive(pid)
        assert host.extensions.kinds() == []


async def test_unloading_a_dead_server_is_no_trouble():
    async with bridged({"plain": plain()}, limits=SLOW) as host:
        await killed(host)

        assert await host.extensions.unload("mcp/plain") == []


async def test_a_tool_that_is_still_held_when_its_server_was_let_go_says_so():
    async with bridged({"plain": plain()}) as host:
        tool = host.extensions.registry("tool").get_active("echo").payload
        await host.extensions.unload("mcp/plain")
        result = await tool.execute({}, None)

        assert (result.error.type, result.error.message) == (
            "WorkerDied",
            "mcp/plain is not connected: it is not in force",
        )


async def test_a_process_that_does_not_want_to_end_is_made_to():
    async with bridged({"plain": hostile("stubborn")}) as host:
        pid = int((await call(host, "pid")).content)
        await host.extensions.unload("mcp/plain")

        assert not is_alive(pid)


async def test_a_load_that_is_cancelled_leaves_no_process():
    host = AgentOS(extension_manifest=manifest_of({"plain": hostile("mute")}))
    loading = asyncio.create_task(host.initialize())
    await eventually(children)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    await eventually(lambda: children() == [])
    await host.shutdown()

    assert tasks() == set()


# -- nothing is left -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [plain(), hostile("mute", startTimeout=0.05), hostile("stubborn"), {"command": "no-such-command"}],
    ids=["plain", "mute", "stubborn", "missing"],
)
async def test_after_shutdown_no_process_no_descriptor_and_no_task_is_left(spec):
    async with bridged({"warm": plain()}):
        pass  # what is made once for the whole program is made now
    before = descriptors()
    async with bridged({"a": spec, "b": spec}) as host:
        await call(host, "echo", {"text": "x"})

    assert children() == []
    assert tasks() == set()
    assert descriptors().keys() == before.keys()


async def test_after_many_deaths_no_process_no_descriptor_and_no_task_is_left():
    async with bridged({"plain": plain()}) as host:
        await killed(host)
        await until(host, lambda: state_of(host, "pid")[0] == "active")
        before, running = len(descriptors()), len(tasks())
        for _ in range(10):
            await killed(host)
            await until(host, lambda: state_of(host, "pid")[0] == "active")

        assert len(descriptors()) == before
        assert len(tasks()) == running
        assert len(children()) == 2  # the server, and the guardian that ends it should this process be killed


async def turns(count):
    """Let the event loop turn that often."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.proof
async def test_killed_a_hundred_times_under_load_every_call_has_one_result_and_nothing_is_left(tmp_path):
    """Kill the server at random moments while callers call: the host lives and recovers, every time."""
    rounds, chance, mark = 100, random.Random(7), str(tmp_path / "mark")
    results, slow, deaths = [], [], set()
    is_over, ended = asyncio.Event(), asyncio.Condition()

    async def caller(host, number):
        for turn in itertools.count():
            if is_over.is_set():
                return
            text = f"{number}/{turn}"
            result = await call(host, "echo", {"text": text})
            async with ended:
                results.append((text, result))
                ended.notify_all()
            if not result.success:
                await asyncio.sleep(0.005)  # nobody knocks without a pause at a door that is shut

    async def patient(host):
        """Make one call after another that is never answered: each ends with its server."""
        while not is_over.is_set():
            slow.append(await call(host, "wait", {"mark": mark}))
            await asyncio.sleep(0.005)

    def answered():
        return sum(result.success for _, result in results)

    async def killer():
        """Wait for some answers, or for none: then a server dies that is just being started. And for some turns."""
        while not is_over.is_set():
            goal = answered() + chance.choice([0, 0, 1, 2, 5, 10])
            async with asyncio.timeout(DEADLINE), ended:
                await ended.wait_for(lambda goal=goal: answered() >= goal)
            await eventually(lambda: set(children()) - deaths)
            await turns(chance.randrange(300))
            if len(deaths) >= rounds:
                is_over.set()
            for pid in set(children()) - deaths:
                os.kill(pid, signal.SIGKILL)
                deaths.add(pid)

    async with bridged({"plain": plain(tools=["echo", "pid", "wait"])}) as host:
        before = len(descriptors())
        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            group.create_task(killer())
            group.create_task(patient(host))
            for number in range(4):
                group.create_task(caller(host, number))
        async with asyncio.timeout(DEADLINE):  # nobody may have noticed the last death yet
            while not (final := await call(host, "echo", {"text": "alive"})).success:
                await asyncio.sleep(0.005)
        await eventually(lambda: len(descriptors()) <= before)

    texts = [text for text, _ in results]
    assert len(texts) == len(set(texts))
    assert {one.error.type for one in (*slow, *(one for _, one in results)) if not one.success} == {"WorkerDied"}
    assert not any(one.success for one in slow)
    assert all(one.content == text for text, one in results if one.success)
    assert answered() > rounds
    assert sum("during the call" in one.error.message for one in slow) > rounds / 4
    assert final.content == "alive"
    assert (children(), tasks()) == ([], set())


async def test_a_server_that_dies_before_its_changed_list_is_asked_for_is_gated():
    async with bridged({"plain": plain()}, limits=attrs.evolve(SLOW, pause=60.0)) as host:
        await call(host, "grow")
        await killed(host)

        assert state_of(host, "grown14") is None
