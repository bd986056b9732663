"""Every path of the pipeline: exactly one result, content that is not empty, no traceback, no secret, no exception."""

import asyncio
import dataclasses
import enum
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import Recorder
from thorough import examples

from agentos import (
    PUBLIC,
    AgentOS,
    Batch,
    Descriptor,
    ExtensionPack,
    Principal,
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
    tool,
)

SECRET = "sk-very-secret-0123456789"


def read(**fields):
    return tool(effect="read", required_access=PUBLIC, **fields)


@attrs.frozen
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Size:
    width: int


class Colour(enum.Enum):
    RED = "red"


@read()
async def add(a: int, b: int = 10) -> int:
    """Add two numbers."""
    return a + b


@read()
def add_in_thread(a: int, b: int = 10) -> int:
    """Add two numbers in a thread."""
    return a + b


@read()
async def raises() -> None:
    """Raise."""
    raise ValueError(f"with {SECRET} in it")


@read()
def raises_in_thread() -> None:
    """Raise in a thread."""
    raise KeyError(SECRET)


@read()
async def leaves() -> None:
    """Leave."""
    raise SystemExit(3)


@read(timeout=60)
async def leaves_in_time() -> None:
    """Leave, in a task of its own."""
    raise SystemExit(3)


@read()
def interrupts_in_thread() -> None:
    """Interrupt."""
    raise KeyboardInterrupt


@read()
async def stops_iteration() -> None:
    """Raise what generators raise."""
    raise StopAsyncIteration


@read()
def stops_iteration_in_thread() -> None:
    """Raise what generators raise."""
    raise StopIteration


@read()
async def cancels_itself() -> None:
    """Raise CancelledError without being cancelled."""
    raise asyncio.CancelledError


@read(timeout=0.01)
async def hangs() -> None:
    """Hang."""
    await asyncio.Event().wait()


@read(timeout=0.01)
async def hangs_and_ignores_cancellation() -> None:
    """Hang, whatever happens."""
    while not RELEASE.is_set():
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


@read(timeout=0.01)
def hangs_in_thread() -> None:
    """Hang in a thread until the test lets it go."""
    RELEASE.wait(20)


RELEASE = threading.Event()


@read()
async def leaks() -> dict[str, Any]:
    """Return a secret."""
    return {"text": f"the key is {SECRET}", SECRET: [SECRET]}


@read()
async def unserialisable():
    """Return what is not JSON."""
    return {"deep": [object()]}


@read()
async def endless_nesting():
    """Return what contains itself."""
    value: list[Any] = []
    value.append(value)
    return value


@read()
async def not_a_number():
    """Return NaN."""
    return {"x": float("nan")}


@read()
async def lies() -> int:
    """Return something else than promised."""
    return "not a number"  # type: ignore[return-value]


@read()
async def lies_about_nothing() -> int:
    """Return nothing where a number was promised."""
    return None  # type: ignore[return-value]


class Hostile:
    """An object whose every method raises."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


@read()
async def hostile_object():
    """Return an object that fights back."""
    return Hostile()


@read()
async def own_failure() -> ToolResult:
    """Fail in its own words."""
    return ToolResult.fail("QuotaExceeded", f"no more today {SECRET}", {"key": SECRET}, state={"kept": 1})


@read()
async def silent_failure() -> ToolResult:
    """Fail without a word."""
    return ToolResult(success=False)


@read()
async def own_state() -> ToolResult:
    """Return state beside the output."""
    return ToolResult.ok({"n": 1}, content="one", state={"shown": [1, 2]})


@read()
async def batch() -> ToolResult:
    """Do three things, one of which fails."""
    return Batch.of([ToolResult.ok(1), ToolResult.fail("Nope", "no"), ToolResult.ok(2)])


@read()
async def huge() -> str:
    """Return a lot."""
    return "x" * 200_000


@read()
async def far_too_huge() -> list[str]:
    """Return more than is kept."""
    return ["y" * 1000] * 3000


@read()
async def nothing() -> None:
    """Return nothing."""


@read()
async def blank() -> str:
    """Return blank text."""
    return "   "


DECLARED = Tool.from_schema(
    name="declared",
    description="Declared, not bound.",
    input_schema={"type": "object", "properties": {}},
    effect="read",
    required_access=PUBLIC,
)


@tool(effect="read", required_access=("admin",))
async def restricted() -> str:
    """Only for administrators."""
    return "ok"


@read()
async def calls_itself(context: ToolContext) -> Any:
    """Call itself for ever."""
    result = await context.call("calls_itself")
    return result.error.type if result.error else result.output


PACK = [value for value in list(globals().values()) if isinstance(value, Tool)]

# name, arguments, expected error type (None: success)
PATHS = [
    ("add", '{"a": 1, "b": 2}', None),
    ("add", {"a": 1}, None),
    ("add", b'{"a": 1}', None),
    ("add_in_thread", {"a": 1}, None),
    ("p:add", {"a": 1}, None),
    ("add", None, "InvalidArguments"),
    ("add", "", "InvalidArguments"),
    ("add", '{"a": 1', "InvalidArguments"),
    ("add", "not json", "InvalidArguments"),
    ("add", "[1, 2]", "InvalidArguments"),
    ("add", "null", "InvalidArguments"),
    ("add", '{"a": NaN}', "InvalidArguments"),
    ("add", {"a": "1"}, "InvalidArguments"),
    ("add", {"a": 1, "c": 1}, "InvalidArguments"),
    ("add", {"a": Ellipsis}, "InvalidArguments"),
    ("add", {1: 1}, "InvalidArguments"),
    ("add", 5, "InvalidArguments"),
    ("add", "[" * 100_000, "InvalidArguments"),
    ("add", '{"a": 1, "pad": "' + "x" * 1_100_000 + '"}', "InvalidArguments"),
    ("ad", {}, "UnknownTool"),
    ("", {}, "UnknownTool"),
    (None, {}, "UnknownTool"),
    (["add"], {}, "UnknownTool"),
    ("other:add", {}, "UnknownTool"),
    ("p:add:x", {}, "UnknownTool"),
    ("x" * 100_000, {}, "UnknownTool"),
    ("raises", {}, "ToolRaised"),
    ("raises_in_thread", {}, "ToolRaised"),
    ("leaves", {}, "ToolRaised"),
    ("leaves_in_time", {}, "ToolRaised"),
    ("interrupts_in_thread", {}, "ToolRaised"),
    ("stops_iteration", {}, "ToolRaised"),
    ("stops_iteration_in_thread", {}, "ToolRaised"),
    ("cancels_itself", {}, "ToolRaised"),
    ("hangs", {}, "TimedOut"),
    ("hangs_and_ignores_cancellation", {}, "TimedOut"),
    ("hangs_in_thread", {}, "TimedOut"),
    ("leaks", {}, None),
    ("unserialisable", {}, "ResultNotSerialisable"),
    ("endless_nesting", {}, "ResultNotSerialisable"),
    ("not_a_number", {}, "ResultNotSerialisable"),
    ("hostile_object", {}, "ResultNotSerialisable"),
    ("lies", {}, "InvalidOutput"),
    ("lies_about_nothing", {}, "InvalidOutput"),
    ("own_failure", {}, "QuotaExceeded"),
    ("silent_failure", {}, "ToolRaised"),
    ("own_state", {}, None),
    ("batch", {}, "PartialFailure"),
    ("huge", {}, None),
    ("far_too_huge", {}, None),
    ("nothing", {}, None),
    ("blank", {}, None),
    ("declared", {}, "HandlerMissing"),
    ("calls_itself", {}, None),
]


@pytest.fixture
async def host(anyio_backend):
    RELEASE.clear()
    secrets = {"openai.apiKey": SECRET}
    manifest = {"packs": [{"factory": lambda: ExtensionPack("p", "1.0", PACK)}]}
    async with AgentOS(extension_manifest=manifest, extension_secrets=secrets) as host:
        host.extensions.report.raise_on_failure()
        yield host
        RELEASE.set()


def is_json(value):
    if isinstance(value, dict):
        return all(type(key) is str and is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(is_json, value))
    return value is None or type(value) in (str, int, float, bool)


def assert_is_a_result(result, expected):
    assert type(result) is ToolResult
    assert (result.error.type if result.error else None) == expected
    assert result.success is (expected is None)
    assert result.content.strip()
    assert is_json(result.output)
    told = f"{result!r}{result.content}"
    assert SECRET not in told
    assert "Traceback" not in told
    assert 'File "' not in told


@pytest.mark.parametrize(("name", "arguments", "expected"), PATHS, ids=lambda value: repr(value)[:40])
@pytest.mark.parametrize("how", ["orchestrator", "executor", "batch of one", "batch of two"])
async def test_every_path_ends_in_exactly_one_result(host, name, arguments, expected, how):
    call = ToolCall(name, arguments, id="call-1")
    if how == "orchestrator":
        results = [await host.tools.process_tool_call(call)]
    elif how == "executor":
        results = [await host.tools.executor.execute_tool(call)]
    elif how == "batch of one":
        results = await host.tools.process_tool_calls([call])
    else:
        results = await host.tools.process_tool_calls([call, ToolCall("add", {"a": 1})])
        assert results.pop().output == 11

    assert len(results) == 1
    assert results[0].call_id == "call-1"
    assert_is_a_result(results[0], expected)


@settings(max_examples=examples(300))
@given(
    name=st.one_of(
        st.text(), st.sampled_from([one.name for one in PACK if "hang" not in one.name]), st.none(), st.integers()
    ),
    arguments=st.one_of(
        st.none(),
        st.text(),
        st.binary(),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
            lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
        ),
    ),
)
def test_garbage_never_raises(name, arguments):
    async def main():
        async with AgentOS(extension_manifest={"packs": [{"factory": lambda: ExtensionPack("p", "1", PACK)}]}) as host:
            result = await host.tools.process_tool_call(ToolCall(name, arguments))
            assert type(result) is ToolResult
            assert result.content.strip()

    asyncio.run(main())


# -- what a model reads ------------------------------------------------------------------------------------------


async def call(host, name, arguments=None, **fields):
    return await host.tools.process_tool_call(ToolCall(name, arguments), **fields)


async def test_an_unknown_name_suggests_the_nearest(host):
    result = await call(host, "add_in_thred")

    assert "did you mean 'add_in_thread'?" in result.content


async def test_bad_arguments_are_told_with_path_expectation_and_nearest_key(host):
    result = await call(host, "add", '{"a": "1", "bb": 2}')

    assert "$.a: expected an integer, got a string" in result.content
    assert "$.bb: unknown key; did you mean 'b'?" in result.content or "$.bb: unknown key" in result.content
    assert {problem["path"] for problem in result.error.details["problems"]} == {"$.a", "$.bb"}


async def test_oversized_content_is_cut_with_a_note_and_the_whole_is_kept_in_output(host):
    result = await call(host, "huge")

    assert len(result.content) <= 60_000
    assert "of 200000 characters are shown" in result.content
    assert len(result.output) == 200_000


async def test_output_past_its_limit_is_dropped_and_said_so(host):
    result = await call(host, "far_too_huge")

    assert result.output is None
    assert result.meta["output_dropped"] > 2_000_000
    assert "too large to keep" in result.content


async def test_state_is_kept_beside_the_output_and_when_a_call_fails(host):
    assert (await call(host, "own_state")).state == {"shown": [1, 2]}
    assert (await call(host, "own_failure")).state == {"kept": 1}


async def test_a_batch_counts_and_carries_each_result(host):
    result = await call(host, "batch")

    assert result.output["succeeded"] == 2
    assert result.output["failed"] == 1
    assert [one["success"] for one in result.output["results"]] == [True, False, True]


async def test_a_tool_can_have_foreign_text_masked_before_it_cuts_it():
    value = "a-secret-value-of-some-length"

    @tool(effect="read", required_access=PUBLIC)
    async def quote(text: str, *, context: ToolContext) -> str:
        """Quote the beginning of a text."""
        return context.mask(text)[:10]

    pack = ExtensionPack("p", "1.0", [quote, Descriptor("x", "x", payload=1, required_secrets=["x.key"])])
    async with AgentOS(extension_secrets={"x.key": value}) as host:
        await host.extensions.load_pack(pack)
        result = await host.tools.process_tool_call(ToolCall("quote", {"text": f"1234{value}"}))

        assert result.output == "1234***"


async def test_known_secrets_are_masked_in_output_and_content(host):
    result = await call(host, "leaks")

    assert result.output == {"text": "the key is ***", "***": ["***"]}


async def test_a_result_tells_which_pack_and_version_answered(host):
    result = await call(host, "add", {"a": 1})

    assert result.meta == {"tool": "p:add", "pack_version": "1.0"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1, 2), {"x": 1, "y": 2}),
        (Size(3), {"width": 3}),
        (Colour.RED, "red"),
        ({Colour.RED: 1}, {"red": 1}),
        ((1, "a"), [1, "a"]),
        ({3, 1, 2}, [1, 2, 3]),
        (b"abc", "YWJj"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (Decimal("1.50"), "1.50"),
        (Path("a/b"), "a/b"),
        ({1: {"deep": Point(1)}}, {"1": {"deep": {"x": 1, "y": 0}}}),
        (True, True),
        (1.5, 1.5),
    ],
    ids=repr,
)
async def test_whatever_a_tool_returns_becomes_json(value, expected):
    given = Tool.from_schema(
        name="give",
        description="Give a value.",
        input_schema={"type": "object"},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: value,
    )
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[given]))
        result = await call(host, "give")

    assert result.output == expected


async def test_a_pydantic_model_becomes_json():
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        n: int
        when: datetime

    given = Tool.from_schema(
        name="give",
        description="Give a model.",
        input_schema={"type": "object"},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: Model(n=1, when=datetime(2026, 1, 1, tzinfo=UTC)),
    )
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[given]))
        result = await call(host, "give")

    assert result.output == {"n": 1, "when": "2026-01-01T00:00:00Z"}


# -- authoring ---------------------------------------------------------------------------------------------------


async def test_arguments_reach_the_function_as_the_types_it_declared():
    seen = []

    @read()
    async def draw(point: Point, colour: Colour, points: list[Point]) -> int:
        """Draw points."""
        seen.extend([point, colour, points])
        return len(points)

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[draw]))
        result = await call(host, "draw", {"point": {"x": 1}, "colour": "red", "points": [{"x": 2, "y": 3}]})

    assert result.output == 1
    assert seen == [Point(1), Colour.RED, [Point(2, 3)]]


async def test_a_method_is_a_tool_of_its_instance():
    class Counter:
        def __init__(self, start):
            self.count = start

        @read()
        async def increase(self, by: int = 1) -> int:
            """Increase the counter."""
            self.count += by
            return self.count

    counter = Counter(5)
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[counter.increase]))
        result = await call(host, "increase", {"by": 2})

    assert result.output == 7
    assert counter.count == 7


async def test_an_object_with_a_tools_parts_is_a_tool():
    class Echo:
        name = "echo"
        description = "Echo a text."
        input_schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        effect = "read"
        required_access = PUBLIC

        async def execute(self, args, context):
            return args["text"]

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[Echo()]))

        assert (await call(host, "echo", {"text": "hi"})).output == "hi"
        assert (await call(host, "echo", {"text": "hi", "more": 1})).error.type == "InvalidArguments"


async def test_a_context_is_injected_and_never_in_the_schema():
    seen = []

    @read()
    async def look(n: int, *, context: ToolContext) -> str:
        """Look at the context."""
        seen.append(context)
        return context.principal.id

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[look]), options={"depth": 3})
        await host.extensions.set_override("tools", "look", {"options": {"width": 4}})
        result = await call(host, "look", {"n": 1}, principal=Principal("ada"), session={"id": "s1"})

    assert set(look.input_schema["properties"]) == {"n"}
    assert result.output == "ada"
    assert dict(seen[0].options) == {"depth": 3, "width": 4}
    assert seen[0].session == {"id": "s1"}
    assert seen[0].tool is look
    assert seen[0].tool_call.name == "look"


@attrs.frozen
class Sized:
    n: int
    doubled: int = attrs.field(init=False, default=0)


async def test_what_a_declared_type_returns_fits_its_own_schema():
    @read()
    async def lasts() -> timedelta:
        """Tell how long."""
        return timedelta(seconds=90)

    @read()
    async def sized() -> Sized:
        """Tell how large."""
        return Sized(3)

    @read()
    async def counts() -> Iterator[int]:
        """Count."""
        return iter([1, 2])

    @read()
    async def generates() -> Any:
        """Generate."""
        return (n for n in range(2))

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[lasts, sized, counts, generates]))
        results = [await call(host, name) for name in ("lasts", "sized", "counts", "generates")]

    assert [result.output for result in results] == ["PT90S", {"n": 3}, [1, 2], [0, 1]]


async def test_numbers_arrive_as_the_type_that_was_declared():
    seen = []

    @read()
    async def take(n: int, x: float, many: list[int], maybe: int | None = None) -> None:
        """Take numbers."""
        seen.extend([n, x, *many, maybe])

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[take]))
        await call(host, "take", '{"n": 3.0, "x": 2, "many": [1.0, 2], "maybe": 5.0}')

    assert [type(value) for value in seen] == [int, float, int, int, int]


async def test_a_sync_tool_calls_tools_from_its_thread(host):
    @read()
    def outer(context: ToolContext) -> int:
        """Call another tool."""
        return context.call("add", {"a": 1}).output

    await host.extensions.load_pack(ExtensionPack("q", descriptors=[outer]))

    assert (await call(host, "outer")).output == 11


def test_a_result_made_by_hand_has_content():
    assert ToolResult.ok({"a": 1}).content == '{"a": 1}'
    assert ToolResult.ok().content
    assert Batch.of([ToolResult.ok(1), ToolResult.fail("X", "y")]).content


async def test_a_decorated_function_can_still_be_called():
    assert await add(1, 2) == 3


# -- threads, timeouts, cancellation -----------------------------------------------------------------------------


async def test_a_sync_tool_does_not_block_the_loop(host):
    here = threading.get_ident()
    seen = []

    @read()
    def where() -> int:
        """Tell the thread."""
        return threading.get_ident()

    await host.extensions.load_pack(ExtensionPack("q", descriptors=[where]))
    result = await call(host, "where")

    assert result.output != here
    assert seen == []


STARTED = threading.Event()


@read()
def waits_in_thread() -> None:
    """Wait in a thread until the test lets it go."""
    STARTED.set()
    RELEASE.wait(20)


async def abandon_a_thread(executor):
    """Cancel a call whose thread has begun: nobody waits for that any more."""
    RELEASE.clear()
    STARTED.clear()
    running = asyncio.create_task(executor.execute_tool(ToolCall("waits_in_thread", id="abandoned")))
    await asyncio.to_thread(STARTED.wait)
    await executor.cancel("abandoned")
    assert (await running).error.type == "Cancelled"


async def test_an_abandoned_thread_is_counted_until_it_ends(host):
    await host.tools_service().register_tool(waits_in_thread)
    await abandon_a_thread(host.tools.executor)
    threads = host.tools.executor.threads
    assert threads.abandoned == 1
    RELEASE.set()
    while threads.abandoned:
        await asyncio.sleep(0.001)

    assert (await call(host, "add_in_thread", {"a": 1})).output == 11


async def test_past_the_limit_of_abandoned_threads_no_sync_tool_is_started():
    from agentos import ToolExecutor
    from agentos.calls.threads import ToolThreads

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[waits_in_thread, add_in_thread, add]))
        executor = ToolExecutor(host.extensions.registry("tool"), threads=ToolThreads(limit=2, abandoned_limit=2))
        for _ in range(2):
            await abandon_a_thread(executor)
        refused = await executor.execute_tool(ToolCall("add_in_thread", {"a": 1}))
        still = await executor.execute_tool(ToolCall("add", {"a": 1}))
        RELEASE.set()

    assert refused.error.type == "BudgetExceeded"
    assert "have not come back" in refused.content
    assert still.success


async def test_a_tool_that_names_no_timeout_is_ended_by_the_houses_own(monkeypatch):
    from agentos import ToolExecutor
    from agentos.calls.time_limits import TimeLimits

    @read()
    async def wait() -> None:
        """Wait."""
        await asyncio.Event().wait()

    monkeypatch.setattr(TimeLimits, "PERIOD", 0.005)
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[wait]))
        executor = ToolExecutor(host.extensions.registry("tool"), default_timeout=0.01)
        results = [await executor.execute_tool(ToolCall("wait")) for _ in range(2)]

    assert [result.error.type for result in results] == ["TimedOut", "TimedOut"]


async def test_a_call_cancelled_by_its_id_returns_a_cancelled_result():
    reached = asyncio.Event()
    log = []

    @read()
    async def wait() -> None:
        """Wait."""
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cleaned up")

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[wait]))
        task = asyncio.create_task(host.tools.process_tool_call(ToolCall("wait", id="c1")))
        await reached.wait()
        assert await host.tools.cancel("c1") is True
        result = await task
        assert await host.tools.cancel("c1") is False

    assert result.error.type == "Cancelled"
    assert log == ["cleaned up"]


@pytest.mark.parametrize("name", ["inline", "apart", "in_thread"])
async def test_cancelling_the_caller_raises_there_and_the_events_see_one_cancelled_result(name):
    reached = asyncio.Event()
    release = threading.Event()
    loop = asyncio.get_running_loop()

    async def wait() -> None:
        """Wait."""
        reached.set()
        await asyncio.Event().wait()

    def block() -> None:
        """Block."""
        loop.call_soon_threadsafe(reached.set)
        release.wait(20)

    fields = {"timeout": 10} if name == "apart" else {}
    made = read(name="wait", **fields)(block if name == "in_thread" else wait)
    recorder = Recorder()
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[made]))
        host.extensions.on(recorder)
        task = asyncio.create_task(call(host, "wait"))
        await reached.wait()
        task.cancel()
        assert recorder.types == ["tool:started"]
        with pytest.raises(asyncio.CancelledError):
            await task
        told = list(recorder.types)
        release.set()

    assert told == ["tool:started", "tool:finished"]
    finished = recorder.of("tool:finished")
    assert [(event.success, event.error) for event in finished] == [(False, "Cancelled")]


async def test_a_tool_that_cancels_its_own_call_leaves_no_cancellation_behind():
    async with AgentOS() as host:

        @read()
        async def suicidal(context: ToolContext) -> str:
            """Cancel itself and return."""
            await host.tools.cancel(context.tool_call.id)
            return "still here"

        await host.extensions.load_pack(ExtensionPack("p", descriptors=[suicidal]))
        result = await host.tools.process_tool_call(ToolCall("suicidal", id="me"))
        await asyncio.sleep(0)

    assert result.error.type == "Cancelled"


async def test_ordered_tools_run_one_after_another_and_others_side_by_side():
    log = []
    both = asyncio.Barrier(2)

    @read(ordered=True)
    async def step(n: int) -> int:
        """Take a step."""
        log.append(("in", n))
        await asyncio.sleep(0)
        log.append(("out", n))
        return n

    @read()
    async def meet() -> str:
        """Meet another call of this."""
        await both.wait()
        return "met"

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[step, meet]))
        calls = [
            ToolCall("step", {"n": 1}),
            ToolCall("meet"),
            ToolCall("step", {"n": 2}),
            ToolCall("meet"),
            ToolCall("step", {"n": 3}),
        ]
        results = await asyncio.wait_for(host.tools.process_tool_calls(calls), 5)

    assert [result.output for result in results] == [1, "met", 2, "met", 3]
    assert log == [("in", 1), ("out", 1), ("in", 2), ("out", 2), ("in", 3), ("out", 3)]


async def test_a_call_that_waits_for_its_turn_can_be_cancelled():
    begun, go_on = asyncio.Event(), asyncio.Event()
    log = []

    @read(ordered=True)
    async def step(n: int) -> int:
        """Take a step."""
        log.append(n)
        begun.set()
        await go_on.wait()
        return n

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[step]))
        calls = [ToolCall("step", {"n": n}, id=f"c{n}") for n in range(3)]
        task = asyncio.create_task(host.tools.process_tool_calls(calls))
        await begun.wait()
        assert await host.tools.cancel("c1")
        go_on.set()
        results = await task
        assert not await host.tools.cancel("c1")

    assert [result.error.type if result.error else result.output for result in results] == [0, "Cancelled", 2]
    assert log == [0, 2]


async def test_calls_side_by_side_are_limited():
    from agentos import ToolOrchestrator

    now, most = 0, 0

    @read()
    async def count() -> None:
        """Count who is here."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[count]))
        tools = ToolOrchestrator(host.extensions, concurrency=3)
        results = await tools.process_tool_calls([ToolCall("count")] * 30)

    assert len(results) == 30
    assert most == 3


# -- progress, streams, calls of calls ---------------------------------------------------------------------------


async def test_progress_and_partial_content_reach_the_host_as_events():
    @read()
    async def work(context: ToolContext) -> str:
        """Work."""
        await context.report_progress(1, 2, f"half, with {SECRET}")
        await context.send_content("part")
        return "whole"

    recorder = Recorder()
    async with AgentOS(extension_secrets={"openai.apiKey": SECRET}) as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[work]))
        host.extensions.on(recorder)
        await host.tools.process_tool_call(ToolCall("work", id="c1"), Principal("ada"))

    assert recorder.types[:4] == ["tool:started", "tool:progress", "tool:content", "tool:finished"]
    progress = recorder.of("tool:progress")[0]
    assert (progress.done, progress.total, progress.message) == (1, 2, "half, with ***")
    assert (progress.tool, progress.call_id, progress.principal) == ("p:work", "c1", "ada")


async def test_a_sync_tool_reports_progress_from_its_thread():
    @read()
    def work(context: ToolContext) -> str:
        """Work."""
        for n in range(3):
            context.report_progress(n, 3)
        return "done"

    recorder = Recorder()
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[work]))
        host.extensions.on(recorder)
        result = await call(host, "work")

    assert result.output == "done"
    assert [event.done for event in recorder.of("tool:progress")] == [0, 1, 2]


async def test_what_a_generator_yields_is_told_at_once_and_is_the_output():
    @read()
    async def async_parts() -> Any:
        """Yield parts."""
        for n in range(3):
            yield {"n": n}

    @read()
    def parts() -> Iterator[str]:
        """Yield parts from a thread."""
        yield from ("a", "b")

    recorder = Recorder()
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("p", descriptors=[async_parts, parts]))
        host.extensions.on(recorder)
        first, second = await call(host, "async_parts"), await call(host, "parts")

    assert first.output == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert second.output == ["a", "b"]
    assert [event.content for event in recorder.of("tool:content")] == ['{"n": 0}', '{"n": 1}', '{"n": 2}', "a", "b"]


async def test_tools_call_tools_for_the_same_principal(host):
    @read()
    async def try_restricted(context: ToolContext) -> Any:
        """Call a restricted tool."""
        result = await context.call("restricted")
        return result.error.type if result.error else result.output

    await host.extensions.load_pack(ExtensionPack("q", descriptors=[try_restricted]))

    assert (await call(host, "try_restricted", principal=Principal("guest"))).output == "UnknownTool"
    assert (await call(host, "try_restricted", principal=Principal("boss", access={"admin"}))).output == "ok"


async def test_tools_that_call_each_other_without_end_are_refused_at_a_depth(host):
    assert (await call(host, "calls_itself")).output == "Refused"


async def test_a_wrapper_calls_the_tool_beneath_through_the_same_checks():
    @read(name="search")
    async def search(query: str) -> str:
        """Search the web."""
        return f"found {query}"

    @read(name="search")
    async def shout(query: str, context: ToolContext) -> str:
        """Search the web, loudly."""
        result = await context.below({"query": query.upper()})
        bad = await context.below({"quary": 1})
        return f"{result.output}, {bad.error.type}"

    from agentos import Descriptor

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("base", descriptors=[search]))
        await host.extensions.load_pack(
            ExtensionPack("loud", descriptors=[Descriptor("tool", "search", shout, wraps=True)])
        )
        wrapped = await call(host, "search", {"query": "cats"})
        direct = await call(host, "base:search", {"query": "cats"})
        await host.extensions.unload("base")
        alone = await call(host, "search", {"query": "cats"})

    assert wrapped.output == "found CATS, InvalidArguments"
    assert direct.output == "found cats"
    assert alone.error.type == "UnknownTool"  # a wrapper with nothing beneath is gated


# -- many at once ------------------------------------------------------------------------------------------------


async def test_a_thousand_calls_with_timeouts_cancellations_and_a_supersede_give_a_thousand_results():
    before = threading.active_count()
    tasks_before = asyncio.all_tasks()
    used = []

    def make(version):
        @read(name="work", timeout=30)
        async def work(n: int) -> str:
            """Work for a while."""
            for _ in range(n % 7):
                await asyncio.sleep(0)
            if n % 10 == 2:
                raise ValueError("three")
            return version

        return work

    @read(name="slow", timeout=0.005)
    async def slow() -> None:
        """Take too long."""
        await asyncio.Event().wait()

    @read(name="threaded", timeout=5)
    def threaded(n: int) -> int:
        """Work in a thread."""
        return n

    def note(context):
        used.append(context.entry.source.pack)

    from agentos import Descriptor

    async with AgentOS() as host:
        await host.extensions.load_pack(
            ExtensionPack(
                "old", descriptors=[Descriptor("tool", "work", make("old"), on_deactivate=note), slow, threaded]
            )
        )

        async def one(n):
            if n % 5 == 4:
                return await call(host, "slow")
            if n % 5 == 3:
                return await call(host, "threaded", {"n": n})
            result = asyncio.create_task(host.tools.process_tool_call(ToolCall("work", {"n": n}, id=f"c{n}")))
            if n % 11 == 0:
                await asyncio.sleep(0)
                await host.tools.cancel(f"c{n}")
            return await result

        async def supersede():
            for _ in range(3):
                await asyncio.sleep(0)
            await host.extensions.load_pack(ExtensionPack("new", descriptors=[make("new")]))

        tasks = [asyncio.create_task(one(n)) for n in range(1000)]
        await supersede()
        results = await asyncio.wait_for(asyncio.gather(*tasks), 60)
        kinds = {result.error.type if result.error else result.output for result in results}
        host.tools.executor.threads.close()

    assert len(results) == 1000
    assert all(result.content for result in results)
    assert {"old", "TimedOut", "ToolRaised", "Cancelled"} <= kinds
    assert used == ["old"]
    assert asyncio.all_tasks() <= tasks_before | {asyncio.current_task()}
    while threading.active_count() > before:
        time.sleep(0.001)


async def test_a_tool_can_unload_its_own_pack_without_waiting_for_itself():
    async with AgentOS() as host:

        @read()
        async def goodbye() -> str:
            """Unload this pack."""
            await host.extensions.unload("p")
            return "gone"

        await host.extensions.load_pack(ExtensionPack("p", descriptors=[goodbye]))
        result = await asyncio.wait_for(call(host, "goodbye"), 10)

    assert result.output == "gone"
