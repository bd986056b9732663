"""Hosts in memory, what they tell, and fakes on their stacks."""

import asyncio
import sys
import textwrap
import types
from pathlib import Path

import pytest
from testing.good_packs import with_notes
from testing.parts import Text, count_letters, pack, reads

import agentos
from agentos import (
    PUBLIC,
    Descriptor,
    ExtensionManager,
    ExtensionPack,
    PackEntry,
    PackLoadError,
    ToolCall,
    Toolset,
    tool,
)
from agentos.testing import FakeClock, call_tools, capture_events, make_host, overriding

SOURCE = textwrap.dedent("""
    from agentos import ExtensionPack

    def create_extension_pack(context):
        return ExtensionPack("from-a-file", "1.0", description=context.options.get("word", ""))
""")


class Duck:
    """An object with a tool's parts."""

    name = "quack"
    description = "Say what a duck says."
    input_schema = {"type": "object", "properties": {}}
    effect = "read"
    required_access = PUBLIC

    async def execute(self, args, context):
        return "quack"


async def call(host, name, **arguments):
    return await host.tools.process_tool_call(ToolCall(name, arguments))


# -- make_host ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(pack(name="given"), id="a pack"),
        pytest.param(lambda: pack(name="given"), id="a factory"),
        pytest.param(PackEntry(factory=pack(name="given")), id="an entry"),
        pytest.param({"factory": lambda: pack(name="given")}, id="a mapping"),
    ],
)
async def test_a_pack_may_be_given_in_many_ways(given):
    async with make_host(given) as host:
        assert [record.name for record in host.extensions.packs()] == ["given"]


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("place", ["some_pack.py", "some_pack"])
async def test_a_pack_may_be_a_path(tmp_path, place, as_text):
    (tmp_path / "some_pack").mkdir()
    (tmp_path / "some_pack" / "__init__.py").write_text(SOURCE)
    (tmp_path / "some_pack.py").write_text(SOURCE)
    path = tmp_path / place
    async with make_host(str(path) if as_text else path) as host:
        assert [record.name for record in host.extensions.packs()] == ["from-a-file"]


async def test_a_pack_may_be_a_module(monkeypatch):
    module = types.ModuleType("some_module_of_a_test")
    module.pack = pack(name="in-a-module")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    async with make_host(module) as host:
        assert [record.name for record in host.extensions.packs()] == ["in-a-module"]


async def test_a_pack_may_be_named_by_its_entry_point():
    async with make_host("calculator") as host:
        assert (await call(host, "calculate", expression="1 + 1")).output["value"] == 2


async def test_the_folder_of_an_installed_distribution_is_its_pack():
    async with make_host(Path(agentos.__file__).parents[1] / "packs" / "calculator") as host:
        assert [record.name for record in host.extensions.packs()] == ["calculator"]


async def test_a_folder_of_a_distribution_has_the_module_that_it_announces(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project.entry-points."agentos.packs"]\nx = "nowhere_to_be_found"\n')
    with pytest.raises(ExceptionGroup):
        async with make_host(tmp_path):
            pass


async def test_a_folder_of_a_distribution_needs_one_entry_point(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    with pytest.raises(PackLoadError, match=r"expected one entry point in the group 'agentos\.packs', found none"):
        async with make_host(tmp_path):
            pass


async def test_the_folder_of_a_distribution_that_is_not_installed_is_importable(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "pack_of_this_very_test.py").write_text(SOURCE)
    announced = '[project.entry-points."agentos.packs"]\nx = "pack_of_this_very_test"\n'
    (tmp_path / "pyproject.toml").write_text(announced)
    async with make_host(tmp_path) as host:
        assert [record.name for record in host.extensions.packs()] == ["from-a-file"]


async def test_tools_without_a_pack_go_into_one():
    more = Toolset("more", [_count_words()])
    async with make_host(count_letters, more, Duck(), Descriptor("colour", "red", "#f00")) as host:
        (record,) = host.extensions.packs()

    assert record.name == "tests"
    assert [id for _, id in record.descriptors] == ["count_letters", "count_words", "quack", "red"]


async def test_tools_without_a_pack_are_loaded_where_the_first_of_them_stands():
    others = [ExtensionPack("first"), ExtensionPack("last")]
    async with make_host(others[0], Duck(), others[1], _count_words()) as host:
        assert [record.name for record in host.extensions.packs()] == ["first", "tests", "last"]


def _count_words():
    @reads
    async def count_words(text: Text) -> int:
        """Count the words of a text."""
        return len(text.split())

    return count_words


async def test_what_is_no_pack_is_refused():
    with pytest.raises(TypeError, match="expected a pack, a factory, a module, a name or a path, got int"):
        async with make_host(5):
            pass


async def test_options_are_for_packs_and_entries_keep_their_own():
    seen = []

    def note(context):
        seen.append(dict(context.options))
        return ExtensionPack(f"p{len(seen)}")

    entry = PackEntry(factory=lambda context: note(context), options={"a": 1})
    async with make_host(note, entry, options={"a": 0, "b": 0}):
        pass

    assert seen == [{"a": 0, "b": 0}, {"a": 1, "b": 0}]


def test_every_pack_that_cant_be_loaded_is_told_with_its_file_and_its_reason(tmp_path):
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text("raise RuntimeError('boom')")
    with pytest.raises(ExceptionGroup) as caught:
        call_tools([first, second], ("greet", {}))

    assert f"{str(first)!r}: could not be made: RuntimeError: boom" in str(caught.value)
    assert f"{str(second)!r}: could not be made: ModuleNotFoundError" in str(caught.value)


async def test_a_pack_that_cant_be_loaded_raises():
    with pytest.raises(ExceptionGroup):
        async with make_host(lambda: None):
            pass


async def test_a_pack_that_cant_be_loaded_is_reported_if_it_is_not_strict():
    async with make_host(lambda: None, strict=False) as host:
        assert [outcome.status for outcome in host.extensions.report.outcomes] == ["failed"]


async def test_nobody_is_asked_and_no_call_is_too_many():
    async with make_host(with_notes) as host:
        results = [await call(host, "write_note", title="a", text="b") for _ in range(100)]

    assert all(result.success for result in results)


async def test_other_settings_are_those_of_a_host():
    async with make_host(with_notes, mode="approve", deny=["read_note"]) as host:
        asked = await call(host, "write_note", title="a", text="b")
        denied = await call(host, "read_note", title="a")

    assert asked.success  # its author says that nobody needs to be asked
    assert denied.error.type == "Refused"


async def test_time_is_the_clocks():
    clock = FakeClock()

    @tool(effect="mutate", required_access=PUBLIC)
    async def send(text: Text) -> str:
        """Send a text."""
        return "sent"

    async with make_host(send, mode="approve", clock=clock, proposal_ttl=60) as host:
        asked = await call(host, "send", text="a")
        clock.advance(61)
        result = await host.approvals.approve(asked.error.details["token"])

    assert result.error.type == "ProposalInvalid"


async def test_the_host_is_shut_down_whatever_happens():
    ended = []
    with pytest.raises(RuntimeError):
        async with make_host(pack(on_deactivate=lambda: ended.append("ended"))):
            raise RuntimeError

    assert ended == ["ended"]


# -- call_tools --------------------------------------------------------------------------------------------------------


def test_a_name_alone_is_no_call():
    with pytest.raises(TypeError, match=r"expected a call as \(name, arguments\)"):
        call_tools(count_letters, "count_letters")


def test_tools_are_called_without_a_loop():
    results = call_tools(
        with_notes, ("write_note", {"title": "a", "text": "b"}), ToolCall("read_note", '{"title": "a"}')
    )

    assert [result.output for result in results] == ["noted", "b"]


def test_several_packs_are_loaded_in_their_order():
    (result,) = call_tools([with_notes, count_letters], ("count_letters", {"text": "four"}))

    assert result.output == 4


# -- capture_events ----------------------------------------------------------------------------------------------------


async def test_events_are_captured_until_the_end_of_the_block():
    async with make_host() as host:
        with capture_events(host) as events:
            await host.extensions.load_pack(pack())
        await host.extensions.unload("example")

    assert events.types == ["descriptor:activated", "tools:changed", "pack:loaded"]
    assert [event.pack for event in events.of("pack:loaded")] == ["example"]
    assert events.of("pack:loaded", "tools:changed").types == ["tools:changed", "pack:loaded"]


async def test_events_of_a_manager_are_captured(manager):
    with capture_events(manager) as events:
        await manager.load_pack(ExtensionPack("empty"))

    assert events.types == ["pack:loaded"]


def test_events_of_something_else_are_refused():
    with pytest.raises(TypeError, match="expected an AgentOS or an ExtensionManager, got str"), capture_events("x"):
        pass


# -- overriding --------------------------------------------------------------------------------------------------------


async def test_a_fake_is_on_top_for_the_time_of_a_block():
    async with make_host(count_letters) as host:
        async with overriding(host, "tool", "count_letters", lambda args, context: 42):
            fake = await call(host, "count_letters", text="four")
        real = await call(host, "count_letters", text="four")

    assert (fake.output, real.output) == (42, 4)


async def test_a_fake_keeps_the_schema_of_what_it_stands_for():
    async with make_host(count_letters) as host, overriding(host, "tool", "count_letters", lambda args, context: 42):
        assert (await call(host, "count_letters", txt="four")).error.type == "InvalidArguments"


async def test_a_fake_may_be_a_tool_of_another_name():
    async with make_host(count_letters) as host, overriding(host, "tool", "count_letters", Duck()):
        assert (await call(host, "count_letters")).output == "quack"


async def test_a_fake_may_stand_alone():
    async with make_host() as host, overriding(host, "tool", "quack", Duck()) as entry:
        assert entry.state == "active"
        assert (await call(host, "quack")).output == "quack"


async def test_a_function_can_stand_for_nothing():
    async with make_host() as host:
        with pytest.raises(LookupError, match="there is no tool 'quack'"):
            async with overriding(host, "tool", "quack", lambda args, context: 1):
                pass


async def test_a_fake_is_above_every_priority():
    strong = pack(Descriptor("tool", "count_letters", count_letters, priority=10**9))
    async with make_host(strong) as host, overriding(host, "tool", "count_letters", lambda args, context: 42):
        assert (await call(host, "count_letters", text="a")).output == 42


async def test_a_fake_is_taken_off_when_the_block_raises():
    async with make_host(count_letters) as host:
        with pytest.raises(RuntimeError):
            async with overriding(host, "tool", "count_letters", lambda args, context: 42):
                raise RuntimeError

        assert len(host.extensions.registry("tool").stack("count_letters")) == 1


async def test_a_fake_is_taken_off_when_the_block_is_cancelled():
    async with make_host(count_letters) as host:
        begun = asyncio.Event()

        async def wait():
            async with overriding(host, "tool", "count_letters", lambda args, context: 42):
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(wait())
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])

        assert len(host.extensions.registry("tool").stack("count_letters")) == 1


async def test_fakes_of_other_kinds_are_payloads(manager: ExtensionManager):
    async with overriding(manager, "colour", "red", "#e00"):
        assert manager.registry("colour").get_active("red").payload == "#e00"

    assert manager.registry("colour").get_active("red") is None


async def test_a_fake_that_is_not_in_force_is_an_error_that_explains():
    overrides = {"tools": {"count_letters": {"enabled": False}}}
    async with make_host(count_letters, overrides=overrides) as host:
        with pytest.raises(AssertionError, match="the fake is not in force"):
            async with overriding(host, "tool", "count_letters", lambda args, context: 42):
                pass

        assert len(host.extensions.registry("tool").stack("count_letters")) == 1


def test_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call_tools(count_letters, ("count_letters", {"text": "a"}))

    assert list(Path.cwd().iterdir()) == []
