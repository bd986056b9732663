"""A descriptor's own gate: out of force with a reason, for as long as whoever gave it says so."""

import pytest
from kit import Recorder, descriptor, pack, states

from agentos import (
    Descriptor,
    DescriptorError,
    ExtensionManager,
    PackEntry,
    PackLoadError,
    Tool,
    ToolCall,
    ToolExecutor,
)
from agentos.model.source import Source
from agentos.stacks.decide import Facts, judge
from agentos.stacks.slot import Owner, Slot
from agentos.tools.service import ToolsService


class Valve:
    """A gate that a test opens and shuts."""

    def __init__(self, reason=None):
        self.reason = reason

    def __call__(self):
        return self.reason


def tool(name="t"):
    return Tool.from_schema(
        name=name,
        description="",
        input_schema={"type": "object"},
        effect="read",
        required_access="any",
        execute=lambda args, context: "ran",
    )


@pytest.fixture
def valve():
    return Valve()


def reason_of(manager, id="a", kind="tool"):
    return manager.explain(kind, id).entries[0].reason


# -- deciding ------------------------------------------------------------------------------------------------------


def test_judging_asks_the_gate(valve):
    valve.reason = "closed for lunch"
    owner = Owner(Source("p"), scope=None, context=None)
    judged = judge(Slot(descriptor("a", gate=valve), owner, 1), Facts())

    assert judged.obstacle == ("gated", "closed for lunch")


def test_facts_ask_a_descriptor_without_a_gate_nothing():
    assert Facts().shut(descriptor("a")) is None


def test_a_gate_that_is_no_function_is_refused():
    with pytest.raises(DescriptorError, match="gate: expected a function, got str"):
        descriptor("a", gate="shut")


# -- on the stacks -------------------------------------------------------------------------------------------------


async def test_an_open_gate_changes_nothing(manager, valve):
    await manager.load_pack(pack("p", descriptor("a", gate=valve)))

    assert states(manager, "a") == {"p": "active"}


async def test_a_shut_gate_keeps_its_entry_out_of_force_with_the_reason(manager, valve):
    valve.reason = "the machine is off"
    await manager.load_pack(pack("p", descriptor("a", gate=valve)))

    assert states(manager, "a") == {"p": "gated"}
    assert reason_of(manager) == "the machine is off"


async def test_a_gate_is_asked_again_when_it_is_said_to_have_changed(manager, valve):
    log = []
    await manager.load_pack(pack("p", descriptor("a", gate=valve, log=log)))
    valve.reason = "off"
    await manager.reconsider("tool", "a")
    valve.reason = None
    await manager.reconsider("tool", "a")

    assert states(manager, "a") == {"p": "active"}
    assert log == [("+", "a"), ("-", "a"), ("+", "a")]


async def test_what_lies_beneath_comes_into_force_while_the_gate_is_shut(manager, valve):
    await manager.load_pack(pack("low", descriptor("a")))
    await manager.load_pack(pack("high", descriptor("a", gate=valve)))
    valve.reason = "off"
    await manager.reconsider("tool", "a")

    assert states(manager, "a") == {"high": "gated", "low": "active"}


async def test_a_gate_that_raises_is_shut_and_says_so(manager):
    def broken():
        raise ValueError("no idea")

    await manager.load_pack(pack("p", descriptor("a", gate=broken)))

    assert states(manager, "a") == {"p": "gated"}
    assert reason_of(manager) == "its gate raised ValueError: no idea"


async def test_a_secret_in_a_gates_reason_is_masked(valve):
    async with ExtensionManager(secrets={"key": "s3cr3t-value"}) as manager:
        valve.reason = "refused s3cr3t-value"
        await manager.load_pack(pack("p", descriptor("a", gate=valve)))

        assert reason_of(manager) == "refused ***"


async def test_a_shut_gate_is_told_once_and_a_new_reason_is_shown(manager, valve):
    recorder = manager.on(Recorder())
    await manager.load_pack(pack("p", descriptor("a", gate=valve)))
    for reason in ("off", "still off"):
        valve.reason = reason
        await manager.reconsider("tool", "a")

    assert [event.reason for event in recorder.of("descriptor:gated")] == ["off"]
    assert reason_of(manager) == "still off"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"enabled_by_default": False}, "disabled"), ({"required_secrets": ["key"]}, "gated")],
)
async def test_what_people_decide_is_told_before_what_a_gate_says(manager, fields, expected):
    await manager.load_pack(pack("p", descriptor("a", gate=Valve("off"), **fields)))

    assert states(manager, "a") == {"p": expected}
    assert "off" not in reason_of(manager).split()


# -- for running code ----------------------------------------------------------------------------------------------


def entry_of(made, **fields):
    return PackEntry(factory=lambda: made, identifier=made.name, permissions=("tools:register",), **fields)


async def loaded(manager, **fields):
    """Load a pack that hands out its ToolsService."""
    kept = {}
    made = pack("p", on_activate=lambda context: kept.update(tools=context.tools), **fields)
    await manager.load(entry_of(made))
    return kept["tools"]


async def test_sync_takes_descriptors_with_gates_and_priorities(manager, valve):
    tools = await loaded(manager)
    valve.reason = "off"
    await tools.sync([Descriptor("tool", "t", tool(), gate=valve, priority=7)])

    assert [(str(one.state), one.priority) for one in manager.explain("tool", "t").entries] == [("gated", 7)]


async def test_refresh_asks_the_gates_of_all_the_owners_tools(manager):
    valves = {name: Valve() for name in "ab"}
    tools = await loaded(manager)
    await tools.sync([Descriptor("tool", name, tool(name), gate=valve) for name, valve in valves.items()])
    for valve in valves.values():
        valve.reason = "off"
    await tools.refresh()

    assert [states(manager, name) for name in "ab"] == [{"p": "gated"}] * 2


async def test_refresh_of_some_leaves_the_others(manager, valve):
    tools = await loaded(manager)
    await tools.sync([Descriptor("tool", name, tool(name), gate=valve) for name in "ab"])
    valve.reason = "off"
    await tools.refresh(["b"])

    assert [states(manager, name) for name in "ab"] == [{"p": "active"}, {"p": "gated"}]


async def test_refresh_of_an_owner_without_tools_does_nothing(manager):
    await (await loaded(manager)).refresh()

    assert manager.kinds() == []


async def test_the_same_descriptor_again_is_not_touched(manager):
    log = []
    tools = await loaded(manager)
    given = [Descriptor("tool", "t", tool(), on_activate=lambda: log.append("+"))]
    await tools.sync(given)
    await tools.sync(given)

    assert log == ["+"]


async def test_the_same_tool_with_something_else_said_of_it_is_replaced(manager, valve):
    tools = await loaded(manager)
    made = tool()
    await tools.sync([made])
    valve.reason = "off"
    await tools.sync([Descriptor("tool", "t", made, gate=valve)])

    assert states(manager, "t") == {"p": "gated"}


async def test_a_tool_given_as_itself_twice_is_not_touched(manager):
    tools = await loaded(manager)
    made = tool()
    await tools.sync([made])
    before = manager.explain("tool", "t").entries
    await tools.sync([made])

    assert manager.explain("tool", "t").entries == before


async def test_refresh_from_a_hook_of_the_same_change_is_seen_at_its_end(manager, valve):
    """What a hook opens further down is open when the change that runs the hook is done."""
    valve.reason = "not yet"
    kept = {}

    async def connect(context):
        valve.reason = None
        await kept["tools"].refresh()

    made = pack(
        "p",
        Descriptor("line", "l", None, required_secrets=["key"], on_activate=connect),
        on_activate=lambda context: kept.update(tools=context.tools),
    )
    await manager.load(entry_of(made))
    await kept["tools"].sync([Descriptor("tool", "t", tool(), gate=valve, required_secrets=["key"])])
    await manager.set_secret("key", "v-a-l-u-e")

    assert states(manager, "t") == {"p": "active"}


async def test_an_owner_that_is_gone_refreshes_nothing(manager, valve):
    tools = await loaded(manager)
    await tools.sync([Descriptor("tool", "t", tool(), gate=valve)])
    await manager.unload("p")
    await tools.refresh()

    with pytest.raises(PackLoadError, match="not loaded any more"):
        await tools.sync([tool()])


# -- calls ---------------------------------------------------------------------------------------------------------


async def test_a_call_behind_a_shut_gate_says_why(manager, valve):
    valve.reason = "the machine is off"
    executor = ToolExecutor(manager.registry("tool"))
    await ToolsService(manager.port("guest")).sync([Descriptor("tool", "t", tool(), gate=valve)])
    result = await executor.execute_tool(ToolCall("t"))

    assert (result.error.type, result.error.message) == ("WorkerDied", "the machine is off")


async def test_a_call_in_the_moment_when_a_gate_opens_is_told_to_come_again(manager, valve):
    valve.reason = "the machine is off"
    executor = ToolExecutor(manager.registry("tool"))
    await ToolsService(manager.port("guest")).sync([Descriptor("tool", "t", tool(), gate=valve)])
    valve.reason = None
    result = await executor.execute_tool(ToolCall("t"))

    assert (result.error.type, result.error.message) == ("WorkerDied", "it is just coming back; try again")


async def test_a_call_of_something_gated_by_a_secret_says_nothing_of_gates(manager, valve):
    executor = ToolExecutor(manager.registry("tool"))
    await ToolsService(manager.port("guest")).sync(
        [Descriptor("tool", "t", tool(), gate=valve, required_secrets=["key"])]
    )
    result = await executor.execute_tool(ToolCall("t"))

    assert result.error.type == "UnknownTool"
