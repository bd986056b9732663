"""The list of steps: one way for every call, and no step that a tool does not need."""

import asyncio
import functools

import pytest

from agentos import (
    PUBLIC,
    AgentOS,
    Answer,
    Descriptor,
    ExtensionPack,
    GuardVerdict,
    Principal,
    ToolCall,
    ToolContext,
    ToolResult,
    guardrail,
    tool,
)
from agentos.base.foreign import call_with
from agentos.base.locks import Change, ChangeLocks
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


# -- what is given to whom ---------------------------------------------------------------------------------------------


class Asks:
    def __call__(self, context):
        return context


class AsksNothing:
    def __call__(self):
        return "nothing"


def by_name(*, context):
    return context


def nothing(*, other="nothing"):
    return other


def kept(pack="nothing"):
    return pack


def maybe(context="nothing"):
    return context


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (Asks(), "it"),
        (AsksNothing(), "nothing"),
        (functools.partial(lambda: "nothing"), "nothing"),
        (functools.partial(by_name), "it"),
        (by_name, "it"),
        (nothing, "nothing"),
        (kept, "nothing"),
        (maybe, "it"),
        (lambda *all: all[0], "it"),
    ],
)
def test_a_function_is_given_what_it_asks_for(function, given):
    assert call_with(function, "it") == given


def test_a_change_descends_from_those_that_it_was_started_in_alone():
    first = Change(None)
    second = Change(first)
    third = Change(second)

    assert third.descends_from(first)
    assert third.descends_from(third)
    assert not first.descends_from(third)


async def test_a_change_waits_for_what_is_held_and_takes_what_is_free_with_it():
    locks, first, second = ChangeLocks(), Change(None), Change(None)
    await locks.acquire(first, ["a"])
    waiting = asyncio.create_task(locks.acquire(second, ["a", "b"]))
    await asyncio.sleep(0)
    locks.release(first, ["a"])

    assert await waiting == frozenset()
    assert second.held == {"a", "b"}


# -- results -----------------------------------------------------------------------------------------------------------


async def result_of(made, *more, **fields):
    @tool(effect="read", required_access=PUBLIC)
    async def makes() -> dict:
        """Make it."""
        return made

    async with AgentOS(budget=None, mode="auto", **fields) as host:
        await host.extensions.load_pack(ExtensionPack("makes", "1", [makes, *more]))
        return await host.tools.process_tool_call(ToolCall("makes"))


async def test_what_has_no_json_form_is_no_result():
    result = await result_of({"a": [object()]})

    assert result.error.type == "ResultNotSerialisable"
    assert "object" in result.error.message


async def test_a_failure_that_says_nothing_is_a_failure():
    result = await result_of(ToolResult(False, None))

    assert result.error.type == "ToolRaised"
    assert "without saying why" in result.error.message


async def test_a_note_makes_no_content_longer_than_its_limit():
    limits = {"limits": {"content": 1_000, "output": 1_000}}
    result = await result_of(ToolResult(True, {"a": "x" * 5_000}, content="y" * 1_000), extension_manifest=limits)

    assert result.output is None
    assert len(result.content) <= 1_000
    assert "limits.output" in result.content


# -- guardrails that wait for nothing ----------------------------------------------------------------------------------


@guardrail("tool_call")
async def raises(call, context):
    raise ValueError("broken")


@guardrail("tool_call")
async def refuses(call, context):
    return GuardVerdict.block("no", "nope")


async def test_a_guardrail_that_raises_at_once_blocks():
    assert (await result_of({}, raises)).error.type == "GuardrailBlocked"


async def test_a_call_that_a_guardrail_blocks_is_on_record_with_the_guardrail_and_its_code():
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1", [look, refuses]))
        await host.tools.process_tool_call(ToolCall("look"))
        found = [one.data for one in await host.audit.records() if one.event == "decision"]

    assert [(one["step"], one["reason"]) for one in found] == [("guardrail", "refuses: nope")]


async def test_a_caller_cancelled_while_a_guardrail_is_asked_is_cancelled():
    is_asked = asyncio.Event()

    @guardrail("tool_call")
    async def waits(call, context):
        is_asked.set()
        await asyncio.Event().wait()

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1", [look, waits]))
        calling = asyncio.create_task(host.tools.process_tool_call(ToolCall("look")))
        await is_asked.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling


async def test_guardrails_of_results_are_not_asked_about_a_call_that_was_cancelled_before_it_ran():
    asked, is_told, may_go_on = [], asyncio.Event(), asyncio.Event()

    @guardrail("tool_result")
    async def notes(result, context):
        asked.append(result)

    async def listen(event):
        if event.type == "tool:started":
            is_told.set()
            await may_go_on.wait()

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1", [look, notes]))
        host.extensions.on(listen)
        calling = asyncio.create_task(host.tools.process_tool_call(ToolCall("look", id="c")))
        await is_told.wait()
        assert await host.tools.cancel("c")
        may_go_on.set()
        result = await calling

    assert (result.error.type, asked) == ("Cancelled", [])


async def test_a_part_of_a_result_that_waits_for_guardrails_may_be_awaited():
    @guardrail("tool_result")
    async def passes(result, context):
        return None

    @tool(effect="read", required_access=PUBLIC)
    async def streams(context: ToolContext) -> str:
        """Tell a part."""
        await context.send_content("a part")
        return "done"

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", "1", [streams, passes]))
        host.extensions.on(lambda event: None)
        assert (await host.tools.process_tool_call(ToolCall("streams"))).output == "done"


async def test_an_invalid_answer_is_told_in_the_log(caplog):
    handler = Descriptor("hitl-handler", "h", lambda proposal: Answer("perhaps"))
    async with AgentOS(mode="approve") as host:
        await host.extensions.load_pack(ExtensionPack("p", "1", [change, handler]))
        result = await host.tools.process_tool_call(ToolCall("change"))

    assert result.error.type == "ApprovalRequired"
    assert "got an invalid answer" in caplog.text


async def test_what_a_cancelled_tool_returns_is_not_gone_through():
    begun, gone_through = asyncio.Event(), []

    async def parts():
        gone_through.append("a part")
        yield "a"

    @tool(effect="read", required_access=PUBLIC)
    async def stubborn():
        """Return something all the same."""
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return parts()

    async with AgentOS() as host:
        await host.tools_service().sync([stubborn])
        call = asyncio.create_task(host.tools.process_tool_call(ToolCall("stubborn", id="c1")))
        await begun.wait()
        assert await host.tools.cancel("c1")
        result = await call

    assert (result.error.type, gone_through) == ("Cancelled", [])
