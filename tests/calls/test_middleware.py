"""Middleware runs around the tools that it names, inside of the gate."""

import asyncio
import threading

import pytest
from kit import Recorder

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    DescriptorError,
    ExtensionManifest,
    ExtensionPack,
    GuardVerdict,
    InterventionRule,
    PackEntry,
    PackLoadError,
    Principal,
    ToolCall,
    ToolContext,
    ToolResult,
    guardrail,
    middleware,
    tool,
)

ANN = Principal("ann", access={"*"})
RAN = []
SECRET = "sk-very-secret-0123456789"


@tool(effect="read", required_access=PUBLIC)
async def find(query: str, limit: int = 5) -> str:
    """Find."""
    RAN.append(("find", query, limit))
    return f"found {query}"


@tool(effect="mutate", required_access=PUBLIC)
async def write(text: str) -> str:
    """Write."""
    RAN.append(("write", text))
    return text


@tool(effect="read", required_access=PUBLIC, timeout=0.05)
async def slow(context: ToolContext) -> str:
    """Take long, the first time."""
    RAN.append(("slow",))
    if len(RAN) == 1:
        await asyncio.Event().wait()
    return "at last"


@tool(effect="read", required_access=PUBLIC)
async def nesting(context: ToolContext) -> ToolResult:
    """Call another tool."""
    return await context.call("find", {"query": "nested"})


@pytest.fixture(autouse=True)
def nothing_ran():
    RAN.clear()


def host_with(*descriptors, **fields):
    pack = ExtensionPack("search", "1", [find, write, slow, nesting, *descriptors])
    return AgentOS(extension_manifest={"packs": [{"factory": lambda: pack}]}, **fields)


def around(id, function, tools="*", priority=None, **fields):
    return Descriptor("tool-middleware", id, middleware(tools=tools, **fields)(function), priority=priority)


async def call(host, name="find", **arguments):
    return await host.tools.process_tool_call(ToolCall(name, arguments), ANN)


async def passes(invocation, next):
    return await next()


async def test_it_sees_the_call_and_runs_the_rest():
    seen = []

    @middleware(tools="search:*")
    async def watch(invocation, next):
        seen.append((invocation.tool, invocation.name, invocation.arguments, invocation.effect, invocation.depth))
        assert invocation.principal is ANN
        assert invocation.session == {}
        assert invocation.context.principal is ANN
        return await next()

    async with host_with(watch) as host:
        result = await call(host, query="x")

    assert seen == [("search:find", "find", {"query": "x", "limit": 5}, "read", 0)]
    assert result.output == "found x"


@pytest.mark.parametrize(
    ("tools", "is_asked"), [("*", True), ("find", True), ("search:f*", True), (["a", "find"], True), ("write", False)]
)
async def test_it_runs_around_the_tools_that_it_names(tools, is_asked):
    asked = []

    async def note(invocation, next):
        asked.append(invocation.name)
        return await next()

    async with host_with(around("note", note, tools)) as host:
        await call(host, query="x")

    assert bool(asked) is is_asked


async def test_the_highest_priority_is_outermost():
    order = []

    def layer(id, priority):
        async def note(invocation, next):
            order.append(f"+{id}")
            result = await next()
            order.append(f"-{id}")
            return result

        return around(id, note, priority=priority)

    async with host_with(layer("a", 1), layer("b", 9), layer("c", 1)) as host:
        await call(host, query="x")

    assert order == ["+b", "+a", "+c", "-c", "-a", "-b"]


async def test_it_may_answer_instead_of_the_tool():
    async def answer(invocation, next):
        return ToolResult.ok("from the cache")

    async with host_with(around("answer", answer)) as host:
        result = await call(host, query="x")

    assert (result.output, result.content, RAN) == ("from the cache", "from the cache", [])
    assert result.meta["tool"] == "search:find"


async def test_it_may_run_the_tool_again():
    async def retry(invocation, next):
        result = await next()
        return result if result.success else await next()

    async with host_with(around("retry", retry)) as host:
        result = await call(host, "slow")

    assert result.output == "at last"
    assert len(RAN) == 2


async def test_a_tool_that_ends_late_after_its_timeout_is_not_run_again_once_its_call_was_cancelled():
    is_ending, may_end = asyncio.Event(), asyncio.Event()

    @tool(effect="read", required_access=PUBLIC)
    async def lingering() -> str:
        """Take long, and long to end."""
        RAN.append("lingering")
        try:
            await asyncio.Event().wait()
        finally:
            is_ending.set()
            await may_end.wait()

    async def retry(invocation, next):
        result = await next()
        return result if result.success else await next()

    async with host_with(around("retry", retry)) as host:
        host.tools.executor.catalog.default_timeout = 0.05  # of tools that name none
        await host.extensions.load_pack(ExtensionPack("late", "1", [lingering]))
        going_on = asyncio.create_task(host.tools.process_tool_call(ToolCall("lingering", id="c"), ANN))
        async with asyncio.timeout(30):
            await is_ending.wait()
            was_accepted = await host.tools.cancel("c")
            may_end.set()
            result = await going_on

    assert was_accepted
    assert (result.error.type, RAN) == ("Cancelled", ["lingering"])


async def test_listeners_hear_of_one_call_however_often_its_tool_ran():
    async def twice(invocation, next):
        await next()
        return await next()

    heard = Recorder()
    async with host_with(around("twice", twice)) as host:
        host.extensions.on(heard)
        await call(host, query="x")

    assert len(RAN) == 2
    assert [type for type in heard.types if type.startswith("tool:")] == ["tool:started", "tool:finished"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (ToolResult.ok(5), "InvalidOutput"),
        (ToolResult.fail("Mine", "no"), "Mine"),
        (ToolResult.ok("fine"), None),
        (None, "MiddlewareFailed"),
        ("text", "MiddlewareFailed"),
    ],
)
async def test_what_it_gives_is_checked_like_what_a_tool_returned(made, expected):
    async def change(invocation, next):
        await next()
        return made

    async with host_with(around("change", change)) as host:
        result = await call(host, query="x")

    assert (None if result.error is None else result.error.type) == expected


async def test_what_it_gives_is_masked_and_guarded():
    async def answer(invocation, next):
        return ToolResult.ok(f"{invocation.arguments['query']} {SECRET}")

    @guardrail(stage="tool_result")
    async def no_bad(result, context):
        return GuardVerdict.block("no") if "bad" in result.content else None

    secret = Descriptor("note", "n", 1, required_secrets=["key"])
    async with host_with(around("answer", answer), no_bad, secret, extension_secrets={"key": SECRET}) as host:
        fine, bad = await call(host, query="fine"), await call(host, query="bad")

    assert SECRET not in repr(fine)
    assert bad.error.type == "GuardrailBlocked"


async def test_it_runs_inside_of_the_gate():
    asked = []

    async def note(invocation, next):
        asked.append(invocation.name)
        return await next()

    async with host_with(around("note", note)) as host:
        waiting = await call(host, "write", text="x")
        before = list(asked)
        result = await host.approvals.approve(waiting.error.details["token"])

    assert (before, asked) == ([], ["write"])
    assert result.success


@pytest.mark.parametrize("fault", ["raise", "hang", "exit", "sync"])
async def test_one_that_fails_fails_the_call_and_says_whether_the_tool_ran(fault):
    async def fail(invocation, next):
        await next()
        if fault == "hang":
            await asyncio.Event().wait()
        raise SystemExit if fault == "exit" else ValueError

    def fail_in_thread(invocation, next):
        next()
        raise KeyboardInterrupt

    function = fail_in_thread if fault == "sync" else fail
    async with host_with(around("fail", function, timeout=0.05)) as host:
        result = await call(host, query="x")

    assert result.error.type == "MiddlewareFailed"
    assert "did run" in result.content
    assert len(RAN) == 1


async def test_its_time_limit_counts_its_own_time():
    async def wait(invocation, next):
        return await next()

    @tool(effect="read", required_access=PUBLIC)
    async def patient() -> str:
        """Take longer than the middleware may."""
        await asyncio.sleep(0.1)
        return "done"

    async with host_with(patient, around("wait", wait, timeout=0.03)) as host:
        result = await call(host, "patient")

    assert result.output == "done"


async def test_a_sync_one_runs_in_a_thread_and_gets_the_result_itself():
    threads = []

    def sync(invocation, next):
        threads.append(threading.current_thread())
        result = next()
        return ToolResult.ok(f"{result.output}!")

    async with host_with(around("sync", sync)) as host:
        result = await call(host, query="x")

    assert result.output == "found x!"
    assert threads != [threading.main_thread()]


async def test_other_arguments_of_a_read_are_checked_and_guarded():
    @guardrail(stage="tool_call")
    async def no_bad(call, context):
        return GuardVerdict.block("no") if call.arguments["query"] == "bad" else None

    async def other(invocation, next):
        return await next({"query": {"a": "b", "bad": "bad", "wrong": 5}[invocation.arguments["query"]]})

    async with host_with(around("other", other, "find"), no_bad) as host:
        fine, wrong = await call(host, query="a"), await call(host, query="wrong")

    assert fine.output == "found b"
    assert wrong.error.type == "InvalidArguments"


async def test_other_arguments_that_a_guardrail_blocks_do_not_run():
    @guardrail(stage="tool_call")
    async def no_bad(call, context):
        return GuardVerdict.block("no") if call.arguments["query"] == "bad" else None

    async def worse(invocation, next):
        return await next({"query": "bad"})

    async with host_with(around("worse", worse, "find"), no_bad) as host:
        result = await call(host, query="fine")

    assert (result.error.type, RAN) == ("GuardrailBlocked", [])


async def test_other_arguments_are_refused_for_a_call_that_is_not_a_read():
    async def other(invocation, next):
        return await next({"text": "other"})

    async with host_with(around("other", other), mode="auto") as host:
        result = await call(host, "write", text="x")

    assert (result.error.type, RAN) == ("Refused", [])


async def test_other_arguments_are_refused_that_a_person_would_be_asked_about():
    @tool(
        effect="read",
        required_access=PUBLIC,
        intervention=[InterventionRule(match={"$.path": "/etc/*"}, policy="always")],
    )
    async def read(path: str) -> str:
        """Read."""
        RAN.append(path)
        return path

    async def other(invocation, next):
        return await next({"path": "/etc/passwd"})

    async with host_with(read, around("other", other, "read")) as host:
        result = await call(host, "read", path="/tmp/a")

    assert (result.error.type, RAN) == ("Refused", [])


async def test_changing_the_arguments_in_place_changes_nothing():
    async def change(invocation, next):
        invocation.arguments["query"] = "changed"
        return await next()

    async with host_with(around("change", change)) as host:
        await call(host, query="x")

    assert RAN == [("find", "x", 5)]


async def test_nested_calls_meet_it_too():
    depths = []

    async def note(invocation, next):
        depths.append((invocation.name, invocation.depth))
        return await next()

    async with host_with(around("note", note)) as host:
        await call(host, "nesting")

    assert depths == [("nesting", 0), ("find", 1)]


async def test_a_call_is_cancelled_through_it():
    began = asyncio.Event()

    @tool(effect="read", required_access=PUBLIC)
    async def waits() -> str:
        """Wait."""
        began.set()
        await asyncio.Event().wait()

    attempts = []

    async def retry(invocation, next):
        for _ in range(3):
            attempts.append(await next())
        return attempts[-1]

    async with host_with(waits, around("retry", retry)) as host:
        task = asyncio.create_task(host.tools.process_tool_call(ToolCall("waits", {}, id="c1"), ANN))
        await began.wait()
        was_found = await host.tools.cancel("c1")
        result = await task

    assert was_found
    assert result.error.type == "Cancelled"


async def test_a_caller_that_is_cancelled_is_cancelled_though_middleware_runs():
    began = asyncio.Event()

    async def wait(invocation, next):
        began.set()
        await asyncio.Event().wait()

    async with host_with(around("wait", wait)) as host:
        task = asyncio.create_task(call(host, query="x"))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_next_can_t_be_called_when_the_call_is_over():
    kept = []

    async def keep(invocation, next):
        kept.append(next)
        return await next()

    async with host_with(around("keep", keep)) as host:
        await call(host, query="x")
        with pytest.raises(RuntimeError, match="over"):
            await kept[0]()

    assert len(RAN) == 1


@pytest.mark.parametrize("change", ["gone", "new", "options"])
async def test_a_proposal_is_bound_to_the_middleware_that_was_in_force(change):
    pack = ExtensionPack("layers", "1", [around("layer", passes)])
    async with host_with() as host:
        if change != "new":
            await host.extensions.load_pack(pack)
        waiting = await call(host, "write", text="x")
        if change == "options":
            await host.extensions.set_override("tool-middleware", "layer", {"options": {"x": 1}})
        elif change == "gone":
            await host.extensions.unload("layers")
        else:
            await host.extensions.load_pack(pack)
        result = await host.approvals.approve(waiting.error.details["token"])

    assert (result.error.type, RAN) == ("ProposalInvalid", [])
    assert "layers:layer" in result.content


async def test_a_proposal_runs_with_the_middleware_that_was_in_force():
    async with host_with(around("layer", passes)) as host:
        waiting = await call(host, "write", text="x")
        result = await host.approvals.approve(waiting.error.details["token"])

    assert (result.success, RAN) == (True, [("write", "x")])


@pytest.mark.parametrize("payload", [5, lambda: None, ToolResult], ids=["number", "no parameters", "class"])
async def test_a_payload_that_is_no_middleware_is_refused_when_its_pack_is_loaded(payload):
    host = host_with(Descriptor("tool-middleware", "wrong", payload))
    report = await host.initialize()
    await host.shutdown()

    (outcome,) = report.failed
    assert isinstance(outcome.error, PackLoadError | DescriptorError)
    assert "tool-middleware" in str(outcome.error)


@pytest.mark.parametrize("fields", [{"tools": ()}, {"tools": ""}, {"timeout": 0}, {"timeout": "1"}])
def test_a_decorator_that_says_something_wrong_is_refused_where_it_is_written(fields):
    with pytest.raises(DescriptorError, match="tool-middleware"):
        middleware(**fields)


# -- wrappers ----------------------------------------------------------------------------------------------------------


def wrapper():
    @tool(effect="read", required_access=PUBLIC, name="find")
    async def wrapping(context: ToolContext) -> ToolResult:
        """Find, loudly."""
        result = await context.below()
        return ToolResult.ok(f"{result.output}!")

    return Descriptor("tool", "find", wrapping, wraps=True)


async def test_a_wrapper_without_parameters_of_its_own_takes_what_the_tool_beneath_takes():
    async with host_with() as host:
        await host.extensions.load_pack(ExtensionPack("loud", "1", [wrapper()]))
        (info,) = [one for one in host.tools.list_available_tools() if one.name == "find"]
        fine, wrong = await call(host, query="x", limit=2), await call(host, query=5)

    assert set(info.input_schema["properties"]) == {"query", "limit"}
    assert (fine.output, wrong.error.type) == ("found x!", "InvalidArguments")
    assert RAN == [("find", "x", 2)]


async def test_a_wrapper_follows_the_tool_beneath():
    @tool(effect="read", required_access=PUBLIC, name="find")
    async def other(place: str) -> str:
        """Find a place."""
        return place

    async with host_with() as host:
        await host.extensions.load_pack(ExtensionPack("loud", "1", [wrapper()]), priority=5)
        await host.extensions.load_pack(ExtensionPack("twice", "1", [wrapper()]), priority=6)
        await host.extensions.load_pack(ExtensionPack("other", "1", [other]), priority=1)
        result = await call(host, place="here")

    assert result.output == "here!!"


async def test_a_tool_says_itself_that_it_wraps():
    @tool(effect="read", required_access=PUBLIC, name="find", wraps=True)
    async def wrapping(context: ToolContext) -> ToolResult:
        """Find, and say with what."""
        result = await context.below()
        return ToolResult.ok([result.output, context.arguments])

    async with host_with() as host:
        await host.extensions.load_pack(ExtensionPack("loud", "1", [wrapping]))
        result = await call(host, query="x")

    assert result.output == ["found x", {"query": "x", "limit": 5}]


def wrapping_removal(context: ToolContext) -> ToolResult:
    """Remove, when asked to."""
    return context.below()


def removing():
    def would(args, context):
        return f"would remove {args['path']} of {context.options['root']}"

    @tool(effect="destructive", required_access=["files"], name="remove", dry_run=would)
    async def remove(path: str) -> str:
        """Remove."""
        raise AssertionError("nobody approved this")

    return PackEntry(factory=lambda _: ExtensionPack("files", "1", [remove]), options={"root": "home"})


@pytest.mark.parametrize(("rules", "said"), [({"files"}, "would remove x of home"), ({"other"}, None)])
async def test_a_wrapper_that_inherits_shows_what_the_tool_beneath_would_do_to_those_who_may_call_it(rules, said):
    define = tool(effect="destructive", required_access=PUBLIC, name="remove", wraps=True)
    packs = [removing(), PackEntry(factory=lambda _: ExtensionPack("loud", "1", [define(wrapping_removal)]))]
    async with AgentOS(extension_manifest=ExtensionManifest(packs)) as host:
        shown = await host.tools.preview(ToolCall("remove", {"path": "x"}), Principal("ann", access=rules))

    assert shown.output == said
    assert shown.success is (said is not None)
