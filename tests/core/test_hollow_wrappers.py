"""An entry that wraps and has nothing beneath it is gated: not offered, and its hooks do not run."""

import pytest

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionManager, ExtensionPack, HookError, ToolCall, ToolContext, tool

GATED = "it wraps, but nothing is beneath it"


@tool(effect="read", required_access=PUBLIC)
async def search(query: str) -> str:
    """Search for something in what is known."""
    return f"found {query}"


@tool(effect="read", required_access=PUBLIC, name="search", wraps=True)
async def cached(query: str, *, context: ToolContext) -> str:
    """Search for something in what is known, once."""
    return f"cached: {(await context.below({'query': query})).content}"


def wrapper(log=None, priority=None, **more):
    if log is not None:
        more |= {"on_activate": lambda: log.append("on"), "on_deactivate": lambda: log.append("off")}
    return Descriptor("x", "a", "wrapper", wraps=True, priority=priority, **more)


def states(manager):
    return [(entry.payload, str(entry.state)) for entry in manager.registry("x").stack("a")]


async def test_it_is_gated_and_says_why():
    log = []
    async with ExtensionManager() as manager:
        entry = await manager.register(wrapper(log))

    assert (entry.state, entry.reason.startswith(GATED), log) == ("gated", True, [])


async def test_it_comes_into_force_with_something_beneath_it_and_goes_with_it():
    log = []
    async with ExtensionManager() as manager:
        await manager.register(wrapper(log, priority=5))
        base = await manager.register(Descriptor("x", "a", "base"))
        with_base = states(manager)
        await manager.remove(base)

        assert with_base == [("wrapper", "active"), ("base", "wrapped")]
        assert (states(manager), log) == ([("wrapper", "gated")], ["on", "off"])
        assert manager.registry("x").get_active("a") is None


async def test_two_that_wrap_each_other_only_are_both_gated():
    async with ExtensionManager() as manager:
        await manager.register(wrapper())
        await manager.register(wrapper())

        assert states(manager) == [("wrapper", "gated"), ("wrapper", "gated")]


async def test_one_in_the_shadow_is_gated_when_the_shadow_goes_and_shadowed_when_it_comes():
    async with ExtensionManager() as manager:
        await manager.register(wrapper(priority=-5))
        alone = states(manager)
        base = await manager.register(Descriptor("x", "a", "base"))
        shadowed = states(manager)
        await manager.remove(base)

        assert (alone, states(manager)) == ([("wrapper", "gated")], [("wrapper", "gated")])
        assert shadowed == [("base", "active"), ("wrapper", "shadowed")]


async def test_it_is_gated_when_what_is_beneath_it_can_not_be_activated():
    def fail():
        raise RuntimeError("broken")

    async with ExtensionManager() as manager:
        await manager.register(wrapper(priority=5))
        with pytest.raises(HookError):
            await manager.register(Descriptor("x", "a", "base", on_activate=fail))

        assert states(manager) == [("wrapper", "gated")]


async def test_its_gate_is_told():
    seen = []
    async with ExtensionManager() as manager:
        manager.on(lambda event: seen.append((event.type, getattr(event, "reason", ""))))
        await manager.register(wrapper())

    assert [kind for kind, reason in seen if reason.startswith(GATED)] == ["descriptor:gated"]


async def test_a_tool_that_wraps_nothing_is_not_offered():
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("cache", descriptors=[cached]))
        offered = [info.name for info in host.tools.list_available_tools()]
        result = await host.tools.process_tool_call(ToolCall("search", {"query": "x"}))

    assert (offered, result.success) == ([], False)


async def test_a_tool_that_says_wraps_calls_the_one_beneath():
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("base", descriptors=[search]))
        await host.extensions.load_pack(ExtensionPack("cache", descriptors=[cached]))
        result = await host.tools.process_tool_call(ToolCall("search", {"query": "x"}))

    assert result.content == "cached: found x"
