"""The list of steps: one way for every call, and no step that a tool does not need."""

import asyncio

import pytest

from agentos import PUBLIC, AgentOS, ExtensionPack, Principal, ToolCall, tool
from agentos.calls.pipeline import STEPS, steps_for


@tool(effect="read", required_access=PUBLIC)
async def look(text: str = "") -> str:
    """Look."""
    return text


@tool(effect="read", required_access=("secret-room",))
async def look_closer() -> str:
    """Look closer."""
    return "seen"


@tool(effect="mutate", required_access=PUBLIC)
async def change() -> str:
    """Change something."""
    return "changed"


@pytest.fixture
async def host():
    async with AgentOS(mode="auto") as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[look, look_closer, change]))
        yield host


def names(steps):
    return [step.__name__ for step in steps]


def steps_of(host, name, *, is_plain=False):
    return names(steps_for(host.tools.catalog.find(name), host.tools.executor.services, is_plain=is_plain))


def test_the_list_shows_what_happens_to_a_call_from_the_top_to_the_bottom():
    assert names(STEPS) == [
        *("find", "find_again", "authorize", "validate", "guard_call", "see_new_denials", "decide"),
        *("reserve_budget", "once", "record", "note", "announce", "wrap", "run"),
        *("check_output", "guard_result", "finish"),
    ]


async def test_a_plain_read_has_a_shorter_list(host):
    assert steps_of(host, "look", is_plain=True) == [
        *("find", "validate", "reserve_budget", "note", "announce", "run", "check_output", "finish"),
    ]


async def test_a_tool_that_requires_access_is_authorized(host):
    assert "authorize" in steps_of(host, "look_closer", is_plain=True)


async def test_what_changes_something_is_decided_on_and_recorded(host):
    assert steps_of(host, "change") == [
        *("find", "find_again", "validate", "decide", "reserve_budget", "once", "record"),
        *("announce", "run", "check_output", "finish"),
    ]


async def test_a_host_without_budgets_has_no_step_for_them():
    async with AgentOS(budget=None) as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[look]))

        assert "reserve_budget" not in steps_of(host, "look", is_plain=True)


async def test_a_shared_store_has_a_step_that_sees_what_others_forbade(tmp_path):
    async with AgentOS(store=tmp_path / "agentos.db") as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[look]))

        assert "see_new_denials" in steps_of(host, "look", is_plain=True)


async def test_tools_that_need_the_same_steps_share_them(host):
    for name in ("look", "look_closer"):
        await host.tools.process_tool_call(ToolCall(name))
    other = tool(effect="read", required_access=PUBLIC, name="another")(look.function)
    await host.tools_service().register_tool(other)
    await host.tools.process_tool_call(ToolCall("another"))
    first, second = (host.tools.catalog.find(name).plain_handler for name in ("look", "another"))

    assert first is second


async def test_a_grant_that_forbids_makes_the_gate_decide_on_reads(host):
    before = await host.tools.process_tool_call(ToolCall("look"))
    await host.grants.add("look", "never")
    after = await host.tools.process_tool_call(ToolCall("look"))

    assert (before.success, after.error.type) == (True, "Refused")


# -- calls that are cancelled by their id --------------------------------------------------------------------------


async def test_a_call_that_was_cancelled_before_its_tool_began_never_begins(host):
    """A slow listener of `tool:started` gives the time for it."""
    began, ran = asyncio.Event(), []

    @tool(effect="read", required_access=PUBLIC)
    async def act() -> str:
        """Act."""
        ran.append("act")
        return "done"

    async def listener(event):
        if event.type == "tool:started":
            began.set()
            await asyncio.sleep(0)
            assert await host.tools.cancel("c")

    await host.tools_service().register_tool(act)
    host.extensions.on(listener)
    result = await host.tools.process_tool_call(ToolCall("act", id="c"))

    assert (result.error.type, result.call_id, ran) == ("Cancelled", "c", [])


async def test_what_has_ended_can_not_be_cancelled_any_more(host):
    answers = []

    async def listener(event):
        if event.type == "tool:finished":
            answers.append(await host.tools.cancel("c"))

    host.extensions.on(listener)
    result = await host.tools.process_tool_call(ToolCall("look", {"text": "seen"}, id="c"))

    assert (result.output, answers) == ("seen", [False])


async def test_a_cancelled_call_leaves_its_caller_uncancelled(host):
    @tool(effect="mutate", required_access=PUBLIC, intervention=lambda args, context: thinking())
    async def act() -> str:
        """Act."""
        return "done"

    thinks = asyncio.Event()

    async def thinking():
        thinks.set()
        await asyncio.Event().wait()

    async def caller():
        result = await host.tools.process_tool_call(ToolCall("act", id="c"), Principal("ann"))
        await asyncio.sleep(0)  # where a cancellation that is left over would come out
        return result, asyncio.current_task().cancelling()

    await host.tools_service().register_tool(act)
    task = asyncio.create_task(caller())
    await thinks.wait()
    was_cancelled = await host.tools.cancel("c")
    result, cancellations = await task

    assert (was_cancelled, result.error.type, cancellations) == (True, "Cancelled", 0)


async def test_a_tool_that_answers_its_cancellation_with_an_error_leaves_its_caller_uncancelled(host):
    runs = asyncio.Event()

    @tool(effect="read", required_access=PUBLIC)
    async def act() -> str:
        """Act."""
        runs.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("not now") from None

    async def caller():
        result = await host.tools.process_tool_call(ToolCall("act", id="c"))
        return result, asyncio.current_task().cancelling()

    await host.tools_service().register_tool(act)
    task = asyncio.create_task(caller())
    await runs.wait()
    await host.tools.cancel("c")
    result, cancellations = await task

    assert (result.error.type, cancellations) == ("ToolRaised", 0)
