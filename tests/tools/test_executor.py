"""ToolExecutor by itself: over any registry, without principals."""

import asyncio
import threading
from typing import Any

import attrs
import pytest
from kit import Recorder

from agentos import (
    PUBLIC,
    Descriptor,
    ExtensionManager,
    ExtensionPack,
    PackEntry,
    Tool,
    ToolCall,
    ToolContext,
    ToolDefinitionError,
    ToolExecutor,
    ToolResult,
    Toolset,
    tool,
)


def read(**fields):
    return tool(effect="read", required_access=PUBLIC, **fields)


@read()
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
async def executor(manager):
    await manager.load_pack(ExtensionPack("p", "1.0", [add]))
    return ToolExecutor(manager.registry("tool"))


async def test_it_lists_what_can_be_called_and_keeps_the_list(executor, manager):
    first = executor.list_available_tools()
    assert [info.name for info in first] == ["add"]
    await manager.disable("p")

    assert executor.list_available_tools() == []


async def test_it_finds_a_tool_by_name_and_qualified_id(executor):
    assert executor.get_tool("add") is add
    assert executor.get_tool("p:add") is add
    assert executor.get_tool("nope") is None
    assert executor.get_tool(None) is None
    assert executor.get_tool([]) is None


async def test_it_sees_tools_that_were_there_before_it(manager):
    await manager.load_pack(ExtensionPack("p", "1.0", [add]))

    assert ToolExecutor(manager.registry("tool")).get_tool("add") is add


async def test_tools_call_tools_and_what_is_beneath_without_a_host(manager):
    @read(name="outer")
    async def outer(context: ToolContext) -> Any:
        """Call others."""
        good = await context.call("add", {"a": 1})
        bad = await context.call("add", {"a": "x"})
        unknown = await context.call("nope")
        beneath = await context.below()
        return [good.output, bad.error.type, unknown.error.type, beneath.output]

    @read(name="outer")
    async def inner() -> str:
        """Be beneath."""
        return "beneath"

    @read()
    async def endless(context: ToolContext) -> Any:
        """Call itself."""
        result = await context.call("endless")
        return result.error.type if result.error else result.output

    await manager.load_pack(ExtensionPack("base", descriptors=[add, inner, endless]))
    await manager.load_pack(ExtensionPack("top", descriptors=[Descriptor("tool", "outer", outer, wraps=True)]))
    executor = ToolExecutor(manager.registry("tool"))

    assert (await executor.execute_tool(ToolCall("outer"))).output == [2, "InvalidArguments", "UnknownTool", "beneath"]
    assert (await executor.execute_tool(ToolCall("endless"))).output == "Refused"


async def test_a_call_can_inherit_the_context_of_another(manager):
    seen = []

    @read()
    async def look(context: ToolContext) -> str:
        """Look at the context."""
        seen.append(context)
        return repr(context)

    await manager.load_pack(ExtensionPack("p", descriptors=[look]))
    executor = ToolExecutor(manager.registry("tool"))
    await executor.execute_tool(ToolCall("look"))
    await executor.execute_tool(ToolCall("look"), attrs_like(seen[0]))

    assert seen[1].session == {"id": "s"}
    assert seen[1].principal.id == "system"


def attrs_like(context):
    context.session = {"id": "s"}
    return context


async def test_a_tool_has_its_packs_services_secrets_and_logger(caplog):
    @read()
    async def use(context: ToolContext) -> str:
        """Use what the pack has."""
        memory = await context.services.get_or_create("memory", list)
        context.logger.warning("using the key %s", context.secret("giphy.apiKey"))
        memory.append(1)
        return str(len(memory))

    async with ExtensionManager(secrets={"giphy.apiKey": "a-real-value"}) as manager:
        descriptor = Descriptor("tool", "use", use, required_secrets=["giphy.apiKey"])
        await manager.load_pack(ExtensionPack("p", descriptors=[descriptor]))
        executor = ToolExecutor(manager.registry("tool"))
        results = [await executor.execute_tool(ToolCall("use")) for _ in range(2)]

    assert [result.output for result in results] == ["1", "2"]
    assert "using the key ***" in caplog.text


async def test_a_class_that_refuses_its_arguments_makes_them_invalid(manager):
    @attrs.frozen
    class Even:
        n: int = attrs.field()

        @n.validator
        def _check(self, attribute, value):
            if value % 2:
                raise ValueError("must be even")

    @read()
    async def halve(even: Even) -> float:
        """Halve an even number."""
        return even.n / 2

    await manager.load_pack(ExtensionPack("p", descriptors=[halve]))
    result = await ToolExecutor(manager.registry("tool")).execute_tool(ToolCall("halve", {"even": {"n": 3}}))

    assert result.error.type == "InvalidArguments"
    assert "must be even" in result.content
    assert result.error.details["problems"][0]["path"].startswith("$.even")


@pytest.mark.parametrize("timeout", [None, 5])
async def test_a_sync_handler_may_hand_out_an_awaitable_or_an_async_generator(manager, timeout):
    async def later():
        return "later"

    async def parts():
        yield 1
        yield 2

    def make(name, execute):
        return Tool.from_schema(
            name=name,
            description="Answer later.",
            input_schema={"type": "object"},
            effect="read",
            required_access=PUBLIC,
            execute=execute,
            timeout=timeout,
        )

    tools = [make("later", lambda args, context: later()), make("parts", lambda args, context: parts())]
    await manager.load_pack(ExtensionPack("p", descriptors=tools))
    executor = ToolExecutor(manager.registry("tool"))

    assert (await executor.execute_tool(ToolCall("later"))).output == "later"
    assert (await executor.execute_tool(ToolCall("parts"))).output == [1, 2]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_that_yields_without_end_is_stopped(manager, is_async):
    async def async_endless() -> Any:
        """Yield without end."""
        while True:
            yield 1

    def endless() -> Any:
        """Yield without end."""
        while True:
            yield 1

    await manager.load_pack(ExtensionPack("p", descriptors=[read(name="x")(async_endless if is_async else endless)]))
    result = await ToolExecutor(manager.registry("tool")).execute_tool(ToolCall("x"))

    assert result.error.type == "ToolRaised"
    assert "more than 10000 items" in result.content


async def test_an_async_function_placed_in_a_thread_is_awaited_on_the_loop(manager):
    @read(placement="thread")
    async def where() -> int:
        """Tell the thread."""
        return threading.get_ident()

    await manager.load_pack(ExtensionPack("p", descriptors=[where]))
    result = await ToolExecutor(manager.registry("tool")).execute_tool(ToolCall("where"))

    assert result.output == threading.get_ident()


async def test_a_sync_function_placed_inline_runs_on_the_loop(manager):
    @read(placement="inline")
    def where() -> int:
        """Tell the thread."""
        return threading.get_ident()

    @read(placement="inline")
    def parts() -> Any:
        """Yield parts."""
        yield "a"

    await manager.load_pack(ExtensionPack("p", descriptors=[where, parts]))
    executor = ToolExecutor(manager.registry("tool"))

    assert (await executor.execute_tool(ToolCall("where"))).output == threading.get_ident()
    assert (await executor.execute_tool(ToolCall("parts"))).output == ["a"]


async def test_a_tool_left_behind_by_its_timeout_counts_as_a_use_until_it_ends(manager):
    release = asyncio.Event()
    log = []

    @read(timeout=0.01)
    async def stubborn() -> None:
        """Ignore cancellation until released."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        log.append("ended")

    descriptor = Descriptor("tool", "stubborn", stubborn, on_deactivate=lambda context: log.append("off"))
    await manager.load_pack(ExtensionPack("p", descriptors=[descriptor]))
    result = await ToolExecutor(manager.registry("tool")).execute_tool(ToolCall("stubborn"))
    unloading = asyncio.create_task(manager.unload("p"))
    await asyncio.sleep(0)
    release.set()
    await unloading

    assert result.error.type == "TimedOut"
    assert log == ["ended", "off"]


async def test_two_calls_of_one_id_are_both_cancelled(manager):
    started = []

    @read()
    async def wait() -> None:
        """Wait."""
        started.append(1)
        await asyncio.Event().wait()

    await manager.load_pack(ExtensionPack("p", descriptors=[wait]))
    executor = ToolExecutor(manager.registry("tool"))
    tasks = [asyncio.create_task(executor.execute_tool(ToolCall("wait", id="same"))) for _ in range(2)]
    while len(started) < 2:
        await asyncio.sleep(0)
    assert await executor.cancel("same")

    assert [(await task).error.type for task in tasks] == ["Cancelled", "Cancelled"]


async def test_a_call_and_its_end_are_told_with_who_and_what(executor, manager):
    recorder = Recorder()
    manager.on(recorder)
    await executor.execute_tool(ToolCall("add", {"a": 1}, id="c"))

    assert recorder.types == ["tool:started", "tool:finished"]
    finished = recorder.events[1]
    assert (finished.tool, finished.call_id, finished.success, finished.error) == ("p:add", "c", True, None)
    assert finished.source.pack == "p"
    assert finished.seconds >= 0


async def test_what_a_tool_says_of_itself_in_meta_stays_beside_what_the_house_says(manager):
    @read()
    async def tell() -> ToolResult:
        """Tell something of itself."""
        return ToolResult(success=True, output=1, meta={"pages": 3})

    await manager.load_pack(ExtensionPack("p", "1.0", [tell]))
    result = await ToolExecutor(manager.registry("tool")).execute_tool(ToolCall("tell"))

    assert result.meta == {"tool": "p:tell", "pack_version": "1.0", "pages": 3}


def test_a_toolset_takes_tools_only():
    with pytest.raises(ToolDefinitionError, match="tools"):
        Toolset("x", ["not a tool"])
    assert len(Toolset("x", [add])) == 1


def test_a_tool_without_a_function_can_not_be_called_directly():
    made = Tool.from_schema(
        name="x", description="A tool.", input_schema={"type": "object"}, effect="read", required_access=PUBLIC
    )
    with pytest.raises(TypeError, match="through a host"):
        made()
    with pytest.raises(ToolDefinitionError, match="handler"):
        made.bind("not a function")


def test_an_object_that_lacks_parts_of_a_tool_is_told_which():
    class Half:
        name = "half"
        input_schema = {"type": "object"}
        effect = "read"

    with pytest.raises(ToolDefinitionError, match="missing description, required_access"):
        ExtensionPack("p", descriptors=[Half()])


@pytest.mark.parametrize("access", [None, 5, True, [None], b"rule", {"rule": 1}.values()], ids=repr)
def test_access_that_is_neither_rules_nor_public_is_refused_with_its_place(access):
    said = {"name": "act", "description": "Do it.", "input_schema": {"type": "object"}, "effect": "read"}

    with pytest.raises(ToolDefinitionError, match="required_access"):
        Tool.from_schema(**said, required_access=access)


async def test_context_tools_can_not_be_used_while_the_pack_is_made(manager):
    def create(context):
        context.tools.register_tool(add)
        return ExtensionPack("p")

    outcome = await manager.load(PackEntry(factory=create))

    assert "from the pack's hooks on" in outcome.reason
