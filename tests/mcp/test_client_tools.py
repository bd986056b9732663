"""The tools of a bridged server: on the same stacks as all others, with the same checks."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest
from bridging import (
    DEADLINE,
    FAST,
    bridge_of,
    bridged,
    call,
    eventually,
    hostile,
    manifest_of,
    plain,
    program,
    state_of,
    until,
)
from kit import Recorder, states

from agentos import AgentOS, ExtensionPack, Principal, Tool, ToolCall
from agentos.mcp.client.bridged_tools import BridgedTool
from agentos.tools.definition import definition_hash


@pytest.fixture
async def host(anyio_backend):
    async with bridged({"plain": plain()}) as host:
        yield host


# -- calls ---------------------------------------------------------------------------------------------------------


async def test_a_tool_of_a_server_is_called_like_any_other(host):
    result = await call(host, "echo", {"text": "hello"})

    assert (result.success, result.output, result.content) == (True, "hello", "hello")
    assert result.meta["tool"] == "mcp/plain:echo"


async def test_a_tool_is_found_by_its_full_name(host):
    assert (await call(host, "mcp/plain:echo", {"text": "x"})).content == "x"


async def test_structured_content_is_the_output_and_text_is_what_a_model_reads(host):
    result = await call(host, "add", {"a": 1, "b": 2})

    assert (result.output, result.content) == ({"sum": 3}, "it is 3")


async def test_output_is_held_against_the_servers_own_schema(host):
    result = await call(host, "wrong")

    assert result.error.type == "InvalidOutput"
    assert "$.n: expected an integer" in result.error.message


async def test_arguments_are_checked_before_the_server_sees_them(host):
    result = await call(host, "add", {"a": 1, "c": 2})

    assert result.error.type == "InvalidArguments"


async def test_an_error_of_the_tool_is_a_failure(host):
    result = await call(host, "fail")

    assert (result.error.type, result.error.message) == ("ToolRaised", "it went wrong")


async def test_an_error_of_the_protocol_is_a_failure_with_its_code(host):
    result = await call(host, "refuse")

    assert result.error.type == "ToolRaised"
    assert "not with me" in result.error.message
    assert result.error.details == {"code": -32602}


async def test_images_sound_and_resources_are_summed_up_for_the_model(host):
    result = await call(host, "media")

    assert result.content.splitlines() == [
        "[image image/png, 3 bytes]",
        "[audio audio/wav, 12 bytes]",
        "[resource file:///a: The letter A]",
        "[resource file:///b]",
        "what b says",
        "[resource file:///c, image/gif, 3 bytes]",
    ]


async def test_images_sound_and_files_are_the_results_media(host):
    result = await call(host, "media")

    kept = [(one.mime, one.data[:3], one.name) for one in result.media]
    assert kept == [("image/png", b"ABC", None), ("audio/wav", b"ABC", None), ("image/gif", b"ABC", "c")]


async def test_images_that_are_too_large_are_not_kept():
    async with bridged({"plain": hostile("many_images")}) as host:
        result = await call(host, "go")

        assert (result.state, result.media) == (None, ())
        assert len(result.content) < 3000


async def test_progress_of_the_server_is_progress_of_the_call(host):
    recorder = host.extensions.on(Recorder())
    await call(host, "steps")

    assert [(one.done, one.total, one.message) for one in recorder.of("tool:progress")][-1] == (3, 3, "step 3")


async def test_cancelling_a_call_cancels_it_at_the_server(host, tmp_path):
    mark = tmp_path / "mark"
    running = asyncio.create_task(call(host, "wait", {"mark": str(mark)}, id="c1"))
    await eventually(lambda: mark.exists() and "started" in mark.read_text())
    await host.tools.cancel("c1")
    result = await running
    await eventually(lambda: "cancelled" in mark.read_text())

    assert result.error.type == "Cancelled"


async def test_cancelling_the_caller_cancels_it_at_the_server(host, tmp_path):
    mark = tmp_path / "mark"
    running = asyncio.create_task(call(host, "wait", {"mark": str(mark)}))
    await eventually(lambda: mark.exists() and "started" in mark.read_text())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await eventually(lambda: "cancelled" in mark.read_text())


async def test_a_call_ends_after_the_servers_timeout_and_is_cancelled_there(tmp_path):
    mark = tmp_path / "mark"
    async with bridged({"plain": plain(timeout=0.2)}) as host:
        result = await call(host, "wait", {"mark": str(mark)})
        await eventually(lambda: "cancelled" in mark.read_text())

        assert result.error.type == "TimedOut"


async def test_a_large_call_and_its_answer_are_whole(host):
    text = "x" * 900_000
    result = await call(host, "echo", {"text": text})

    assert result.output == text


async def test_calls_run_side_by_side(host, tmp_path):
    marks = [tmp_path / str(number) for number in range(20)]
    waiting = [asyncio.create_task(call(host, "wait", {"mark": str(mark)}, id=mark.name)) for mark in marks]
    await eventually(lambda: all(mark.exists() for mark in marks))
    echoed = await call(host, "echo", {"text": "meanwhile"})
    for mark in marks:
        await host.tools.cancel(mark.name)
    results = await asyncio.gather(*waiting)

    assert echoed.content == "meanwhile"
    assert {result.error.type for result in results} == {"Cancelled"}


# -- lists ---------------------------------------------------------------------------------------------------------


async def test_a_list_says_that_a_tool_is_of_a_server(host):
    info = next(one for one in host.tools.list_available_tools() if one.name == "echo")

    assert (info.source, info.fully_qualified_id, info.description) == ("mcp", "mcp/plain:echo", "Say it again.")


async def test_the_pack_of_a_server_is_loaded_under_its_name(host):
    (record,) = host.extensions.packs()

    assert (record.key, record.name) == ("mcp/plain", "mcp/plain")


async def test_tools_that_the_allow_list_does_not_name_are_left_out():
    async with bridged({"plain": plain(tools=["e*", "add"])}) as host:
        assert sorted(one.name for one in host.tools.list_available_tools()) == ["add", "echo", "environment"]
        assert {one.reason for one in bridge_of(host).skipped} == {"it is not named in `tools`"}


async def test_the_bridge_tells_how_the_server_is(host):
    bridge = bridge_of(host)

    assert bridge.status == "mcp/plain is connected (protocol 2025-11-25)"
    assert repr(bridge) == f"<Bridge {bridge.status}; 14 tools, 0 skipped>"


async def test_a_new_tool_of_the_server_is_offered(host):
    await call(host, "grow")

    await until(host, lambda: state_of(host, "grown14") == ("active", "the only entry"))


async def test_tools_that_did_not_change_are_not_touched_by_a_new_list(host):
    before = host.extensions.registry("tool").get_active("echo")
    await call(host, "grow")
    await until(host, lambda: state_of(host, "grown14"))

    assert host.extensions.registry("tool").get_active("echo").payload is before.payload


# -- effects and trust ---------------------------------------------------------------------------------------------


def effects(host):
    return {one.name: one.effect for one in host.tools.list_available_tools()}


async def test_tools_of_an_untrusted_server_count_as_destructive_whatever_it_hints():
    async with bridged({"plain": program("plain.py")}) as host:
        assert set(effects(host).values()) == {"destructive"}
        assert not any(one.payload.idempotent for one in host.extensions.registry("tool").list_active())


async def test_hints_of_a_trusted_server_count():
    async with bridged({"plain": {**program("plain.py"), "trust": True}}) as host:
        found = effects(host)

        assert (found["echo"], found["add"], found["fail"]) == ("read", "mutate", "destructive")
        assert host.extensions.registry("tool").get_active("add").payload.idempotent


async def test_hints_that_are_no_booleans_do_not_count():
    async with bridged({"plain": {**program("hostile.py", "bad_tools"), "trust": True}}) as host:
        assert effects(host)["also-good"] == "destructive"


@pytest.mark.parametrize("trust", [True, False])
async def test_what_the_operator_says_of_effects_always_counts(trust):
    said = {"trust": trust, "effects": {"echo": "mutate", "f*": "read"}}
    async with bridged({"plain": {**program("plain.py"), **said}}) as host:
        assert (effects(host)["echo"], effects(host)["fail"]) == ("mutate", "read")


async def test_a_destructive_tool_is_not_run_unasked():
    async with bridged({"plain": program("plain.py")}) as host:
        asked = await call(host, "echo", {"text": "x"})
        ran = await host.approvals.approve(asked.error.details["token"])

        assert (asked.error.type, ran.content) == ("ApprovalRequired", "x")


async def test_instructions_of_an_untrusted_server_are_no_system_prompt(host):
    assert host.tools.system_prompt() == ""


async def test_instructions_of_a_trusted_server_are_the_system_prompt_of_its_tools():
    async with bridged({"plain": plain(trust=True)}) as host:
        assert host.tools.system_prompt() == "Be brief."


# -- access --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "access", "is_listed"),
    [
        ({}, (), False),
        ({}, ("mcp:plain",), True),
        ({"requiredAccess": ["files", "more"]}, ("mcp:plain", "files"), False),
        ({"requiredAccess": ["files"]}, ("files",), True),
        ({"requiredAccess": "PUBLIC"}, (), True),
    ],
)
async def test_a_principal_needs_the_rules_of_the_server(said, access, is_listed):
    principal = Principal("ann", access=frozenset(access))
    async with bridged({"plain": plain(**said)}) as host:
        listed = {one.name for one in host.tools.list_available_tools(principal)}
        result = await host.tools.process_tool_call(ToolCall("echo", {"text": "x"}), principal)

        assert ("echo" in listed, result.success) == (is_listed, is_listed)


# -- stacks --------------------------------------------------------------------------------------------------------


def local(answer="from here", **fields):
    made = Tool.from_schema(
        name="echo",
        description="A local one.",
        input_schema={"type": "object"},
        effect="read",
        required_access="any",
        execute=lambda args, context: answer,
    )
    return ExtensionPack("local", "1.0", [made], **fields)


async def test_a_local_pack_overrides_a_servers_tool_until_it_is_unloaded(host):
    await host.extensions.load_pack(local())
    overridden = await call(host, "echo")
    shadowed = states(host.extensions, "echo")
    await host.extensions.unload("local")
    back = await call(host, "echo", {"text": "from there"})

    assert (overridden.content, back.content) == ("from here", "from there")
    assert shadowed == {"local": "active", "mcp/plain": "shadowed"}


async def test_an_untrusted_server_does_not_take_the_place_of_a_packs_tool():
    async with bridged({"plain": plain()}, packs=[local()]) as host:
        assert (await call(host, "echo")).content == "from here"


async def test_a_trusted_server_is_registered_later_and_wins():
    async with bridged({"plain": plain(trust=True)}, packs=[local()]) as host:
        assert (await call(host, "echo", {"text": "from there"})).content == "from there"


async def test_the_operators_priority_counts():
    async with bridged({"plain": plain(priority=5)}, packs=[local()]) as host:
        assert states(host.extensions, "echo") == {"mcp/plain": "active", "local": "shadowed"}


async def test_an_override_by_pack_and_id_reaches_a_servers_tool(host):
    await host.extensions.set_override("tools", "mcp/plain:echo", {"enabled": False})

    assert state_of(host, "echo")[0] == "disabled"


# -- pins ----------------------------------------------------------------------------------------------------------


async def test_a_definition_that_the_server_changed_is_held_back_until_it_is_accepted(host):
    await call(host, "change")
    await until(host, lambda: state_of(host, "echo")[0] == "gated")
    refused = await call(host, "echo", {"text": "x"})
    await host.pins.accept("mcp/plain:echo")
    accepted = await call(host, "echo", {"text": "x"})

    assert refused.error.type == "DefinitionChanged"
    assert accepted.content == "x"


async def test_the_other_tools_of_a_server_that_changed_one_go_on(host):
    await call(host, "change")
    await until(host, lambda: state_of(host, "echo")[0] == "gated")

    assert (await call(host, "add", {"a": 1, "b": 1})).output == {"sum": 2}


async def test_pins_that_are_off_are_on_for_a_server_that_nobody_vouches_for():
    async with bridged({"plain": plain()}, pins="off") as host:
        await call(host, "change")
        await until(host, lambda: state_of(host, "echo")[0] == "gated")


async def test_pins_that_are_off_are_off_for_a_trusted_server():
    async with bridged({"plain": {**plain(), "trust": True}}, pins="off") as host:
        before = host.tools.get_tool("echo").description
        await call(host, "change")
        await until(host, lambda: host.tools.get_tool("echo").description != before)

        assert state_of(host, "echo")[0] == "active"


@pytest.mark.parametrize("mode", ["annotate", "unannotate"])
async def test_annotations_that_the_server_changed_are_held_back_though_nobody_believes_them(mode):
    async with bridged({"plain": hostile(mode)}) as host:
        await call(host, "go")
        await until(host, lambda: state_of(host, "go")[0] == "gated")

        assert "changed since it was accepted (server annotations)" in state_of(host, "go")[1]
        assert state_of(host, "pid")[0] == "active"


def test_a_tool_without_annotations_has_the_definition_of_any_tool():
    made = {"name": "a", "description": "", "input_schema": {}, "effect": "read", "required_access": "x"}

    assert definition_hash(BridgedTool(**made)) == definition_hash(Tool(**made))


async def test_with_strict_pins_every_new_tool_of_a_server_waits():
    async with bridged({"plain": plain()}, pins="strict") as host:
        assert len(await host.pins.pending()) == 14
        assert host.tools.list_available_tools() == []


async def test_what_a_server_changed_between_two_runs_is_held_back(tmp_path):
    store = tmp_path / "store.db"
    async with bridged({"plain": plain()}, store=store):
        pass
    async with bridged({"plain": plain(trust=True)}, store=store) as host:
        pending = [one.tool for one in await host.pins.pending()]

    assert "mcp/plain:echo" in pending  # its instructions are now part of what a model is told


# -- a bad tool does not cost the rest -----------------------------------------------------------------------------

BAD = {
    "tasks-only": "it can be called as a task only",
    "no-schema": "it has no inputSchema",
    "null-schema": "it has no inputSchema",
    "listed-schema": "its inputSchema is no object",
    "bad-type": "no usable JSON Schema",
    "no-object": "arguments are an object",
    "remote": "no usable JSON Schema",
    "bad-output": "no usable JSON Schema",
    "with:colon": "its name has a colon",
    "with space": "its name is not 1 to 128 letters",
    "m\u0430il": "its name is not 1 to 128 letters",
    "long": "longer than 20,000 characters",
    "tagged": "hidden characters: U+E0041 TAG LATIN CAPITAL LETTER A",
    "turned": "hidden characters: U+202E RIGHT-TO-LEFT OVERRIDE",
    "hidden-title": "hidden characters: U+200B ZERO WIDTH SPACE",
    "hidden-parameter": "hidden characters: U+2066 LEFT-TO-RIGHT ISOLATE",
    "big": "its inputSchema is larger than 100,000 characters",
    "good": "the server has two tools of this name",
    "no-text": "its description is no text",
    "lone-return": "hidden characters: U+000D",
    "exact-return": "hidden characters: U+000D",
}


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def skipped(anyio_backend):
    async with bridged({"plain": hostile("bad_tools")}) as host:
        listed = [one.name for one in host.tools.list_available_tools()]
        yield listed, bridge_of(host).skipped


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_tool_is_left_out_with_the_reason(skipped, name):
    reasons = [one.reason for one in skipped[1] if one.name == name]

    assert any(BAD[name] in reason for reason in reasons), reasons


async def test_what_has_no_name_is_left_out(skipped):
    assert [one.reason for one in skipped[1] if one.name == "(no name)"] == [
        "its name is not 1 to 128 letters, digits, '.', '_' and '-'",
        *["it has no name"] * 4,
    ]


async def test_a_long_name_is_shown_cut(skipped):
    assert any(one.name == "n" * 100 + "..." for one in skipped[1])


async def test_the_good_tools_beside_bad_ones_are_taken(skipped):
    assert {"good", "also-good", "odd-notes", "tasks-too"} <= set(skipped[0])


async def test_line_ends_of_other_systems_are_taken_for_ours():
    async with bridged({"plain": hostile("bad_tools")}) as host:
        tool = host.tools.get_tool("other-line-ends")

        assert (tool.description, tool.input_schema["properties"]["a"]["description"]) == ("One.\nTwo.", "One.\nTwo.")


async def test_line_ends_of_other_systems_are_taken_for_ours_in_instructions():
    async with bridged({"plain": hostile("other_line_ends", trust=True)}) as host:
        assert host.tools.system_prompt() == "One.\nTwo."


async def test_what_is_left_out_is_logged_in_one_line(caplog):
    with caplog.at_level(logging.WARNING, "agentos"):
        async with bridged({"plain": hostile("bad_tools")}):
            pass
    lines = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]

    assert len(lines) == 1
    assert lines[0].startswith("mcp/plain: left out: no-schema (it has no inputSchema), ")
    assert " more" in lines[0]


# -- the process ---------------------------------------------------------------------------------------------------


def variables(result):
    return {name: value for name, value in result.output.items() if name != "LC_CTYPE"}  # Python's own doing


async def test_the_environment_of_an_absolute_command_is_what_the_manifest_names(monkeypatch):
    monkeypatch.setenv("HUSH_HUSH", "not yours")
    async with bridged({"plain": plain(env={"A": "1"})}) as host:
        assert variables(await call(host, "environment")) == {"A": "1"}


async def test_a_command_that_has_to_be_looked_for_gets_path_as_well(monkeypatch):
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:/usr/bin")
    spec = {**plain(), "command": "python3"}
    async with bridged({"plain": spec}) as host:
        assert variables(await call(host, "environment")) == {"PATH": f"{sys.prefix}/bin:/usr/bin"}


async def test_a_command_in_a_folder_that_is_named_gets_no_path(tmp_path):
    (tmp_path / "python").symlink_to(Path(sys.executable).resolve())
    spec = {**plain(cwd=str(tmp_path)), "command": "./python"}
    async with bridged({"plain": spec}) as host:
        assert variables(await call(host, "environment")) == {}


async def test_a_path_that_the_manifest_names_is_the_path():
    spec = {**plain(env={"PATH": f"{sys.prefix}/bin"}), "command": "python3"}
    async with bridged({"plain": spec}) as host:
        assert variables(await call(host, "environment")) == {"PATH": f"{sys.prefix}/bin"}


async def test_a_server_runs_in_the_folder_that_is_said(tmp_path):
    async with bridged({"plain": plain(cwd=str(tmp_path))}) as host:
        assert (await call(host, "where")).content == str(tmp_path)


async def test_what_a_server_prints_besides_messages_is_left_out():
    async with bridged({"plain": plain("--banner")}) as host:
        assert (await call(host, "echo", {"text": "x"})).content == "x"


# -- secrets -------------------------------------------------------------------------------------------------------

SECRET = {"GITHUB_TOKEN": "${secret:github.token}"}


async def test_a_secret_goes_into_the_environment_by_reference_and_is_masked_on_the_way_out():
    async with bridged({"plain": plain(env=SECRET)}, extension_secrets={"github.token": "ghp-1234567"}) as host:
        result = await call(host, "environment")

        assert variables(result) == {"GITHUB_TOKEN": "***"}


async def test_a_secret_that_stands_where_a_title_is_cut_is_masked():
    spec = hostile("leaky_title", env={"TOK": "${secret:tk}"})
    async with bridged({"plain": spec}, extension_secrets={"tk": "tok-4f9a2c7e81b3d650"}) as host:
        assert host.tools.get_tool("go").display_name == "x" * 190 + "***"


async def test_a_secret_in_a_description_is_masked_before_anybody_is_offered_the_tool():
    spec = hostile("leaky_title", env={"TOK": "${secret:tk}"})
    async with bridged({"plain": spec}, extension_secrets={"tk": "tok-4f9a2c7e81b3d650"}) as host:
        assert [info.description for info in host.tools.list_available_tools()] == ["Uses ***"]


async def test_a_value_in_the_clear_that_sounds_secret_is_masked_too():
    async with bridged({"plain": plain(env={"API_KEY": "in-the-clear", "LEVEL": "debug"})}) as host:
        assert variables(await call(host, "environment")) == {"API_KEY": "***", "LEVEL": "debug"}


async def test_without_its_secret_a_server_is_not_started_and_the_reason_names_the_variable(monkeypatch):
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    catalog = {"github.token": "GITHUB_TOKEN"}
    async with bridged({"plain": plain(env=SECRET)}, secret_catalog=catalog) as host:
        (entry,) = host.extensions.explain("mcp-server", "plain").entries

        assert str(entry.state) == "gated"
        assert entry.reason == "missing secret 'github.token' (set GITHUB_TOKEN in the environment or .env)"
        assert host.tools.list_available_tools() == []


async def test_when_its_secret_arrives_a_server_is_started():
    async with bridged({"plain": plain(env=SECRET)}) as host:
        await host.extensions.set_secret("github.token", "ghp-1234567")

        assert variables(await call(host, "environment")) == {"GITHUB_TOKEN": "***"}


async def test_when_its_secret_goes_a_server_is_stopped_and_comes_back_with_it():
    secrets = {"github.token": "ghp-1234567"}
    async with bridged({"plain": plain(env=SECRET)}) as host:
        await host.extensions.set_secret("github.token", secrets["github.token"])
        first = await call(host, "pid")
        await host.extensions.set_secret("github.token", None)
        gated = state_of(host, "pid")
        await host.extensions.set_secret("github.token", "ghp-7654321")
        second = await call(host, "pid")

        assert gated[0] == "gated"
        assert "missing secret 'github.token'" in gated[1]
        assert first.content != second.content


# -- both eras -----------------------------------------------------------------------------------------------------


async def test_a_server_of_an_unknown_era_is_not_connected():
    async with bridged({"plain": hostile("old")}) as host:
        assert "Unsupported protocol version" in bridge_of(host).status


async def test_a_server_without_tools_is_connected_and_offers_nothing():
    async with bridged({"plain": hostile("no_tools")}) as host:
        assert bridge_of(host).why_not() is None
        assert host.tools.list_available_tools() == []


async def test_two_servers_stand_side_by_side():
    async with bridged({"one": plain(), "two": plain(tools=["echo"])}) as host:
        assert states(host.extensions, "echo") == {"mcp/two": "active", "mcp/one": "shadowed"}
        assert (await call(host, "pid")).content.isdigit()


async def test_a_host_can_be_closed_while_a_call_runs(tmp_path):
    mark = tmp_path / "mark"
    host = AgentOS(extension_manifest=manifest_of({"plain": plain()}, limits=FAST), budget=None, mode="auto")
    async with asyncio.timeout(DEADLINE):
        await host.initialize()
        running = asyncio.create_task(call(host, "wait", {"mark": str(mark)}))
        await eventually(mark.exists)
        await host.shutdown()
        result = await running

    assert result.error.type == "WorkerDied"
    assert "it was closed" in result.error.message


async def test_a_broken_stream_of_changes_is_opened_again_and_what_was_missed_is_looked_up():
    spec = {**program("modern.py"), "effects": {"*": "read"}}
    async with bridged({"plain": spec}) as host:
        protocol = bridge_of(host).protocol
        await call(host, "break")
        await until(host, lambda: state_of(host, "told-to-nobody") is not None)

        assert protocol == "2026-07-28"
        assert (await call(host, "told-to-nobody")).content == "went"
