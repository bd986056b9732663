"""`host.planning` asks the planning-strategies in force for a plan, and keeps it true."""

import asyncio

import attrs
import pytest
from kit import Recorder

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    DescriptorError,
    ExtensionPack,
    Persona,
    Plan,
    PlanningError,
    PlanStep,
    Principal,
    ToolResult,
    tool,
)


class Steps:
    """A strategy that makes a step of each word."""

    def plan(self, goal, context):
        return Plan([PlanStep(str(number), word) for number, word in enumerate(goal.split(), 1)])

    async def refine(self, plan, results, context):
        if not results:
            return plan
        return attrs.evolve(plan, steps=[attrs.evolve(step, status="done") for step in plan.steps])


def host_with(**strategies):
    offered = [Descriptor("planning-strategy", id, one) for id, one in strategies.items()]
    return AgentOS(extension_manifest=[ExtensionPack("p", "1", offered)])


async def test_a_plan_is_made_refined_and_told():
    told = Recorder()
    async with host_with(steps=Steps()) as host:
        host.extensions.on(told)
        plan = await host.planning.plan("look think", principal=Principal("ann"))
        same = await host.planning.refine(plan, [])
        done = await host.planning.refine(plan, [ToolResult.ok("x")])

    assert plan.as_text() == "[ ] 1. look\n[ ] 2. think"
    assert (plan.goal, plan.strategy) == ("look think", "steps")
    assert same is plan
    assert done.is_done
    assert [(event.strategy, event.plan, event.principal) for event in told.of("plan:changed")] == [
        ("steps", plan, "ann"),
        ("steps", done, "system"),
    ]


async def test_a_strategy_sees_the_tools_that_may_be_called_and_may_ask():
    class Asking(Steps):
        async def plan(self, goal, context):
            answer = await context.ask(goal)
            return Plan([PlanStep("1", f"{answer} with {' '.join(info.name for info in context.tools)}")])

    @tool(effect="read", required_access=PUBLIC)
    async def look() -> str:
        """Look."""
        return ""

    @tool(effect="read", required_access=PUBLIC)
    async def hide() -> str:
        """Hide."""
        return ""

    async def ask(text):
        return text.upper()

    async with host_with(asking=Asking()) as host:
        await host.extensions.load_pack(ExtensionPack("t", "1", [look, hide, Persona("p", tools="look")]))
        plan = await host.planning.plan("go", principal=host.personas.narrow("p"), ask=ask)

    assert plan.steps[0].text == "GO with look"


async def test_a_strategy_that_fails_is_told():
    class Broken(Steps):
        async def plan(self, goal, context):
            raise RuntimeError("no idea")

        async def refine(self, plan, results, context):
            return "done"

    class Slow(Steps):
        timeout = 0.05

        async def plan(self, goal, context):
            await asyncio.Event().wait()

    async with host_with(broken=Broken(), slow=Slow()) as host:
        for strategy, why in (("broken", "raised RuntimeError"), ("slow", "took too long"), ("brokn", "did you mean")):
            with pytest.raises(PlanningError, match=why) as caught:
                await host.planning.plan("x", strategy=strategy)
            assert caught.value.strategy == strategy
        with pytest.raises(PlanningError, match="answered with a str"):
            await host.planning.refine(Plan(strategy="broken"), [])
    async with AgentOS() as host:
        with pytest.raises(PlanningError, match="no planning-strategy is active"):
            await host.planning.plan("x")


class NoRefine:
    def plan(self, goal, context): ...


class NoContext(Steps):
    def plan(self, goal): ...


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        (Steps, "got a class"),
        (3, "no method plan"),
        (NoRefine(), "no method refine"),
        (NoContext(), "function of 2 arguments"),
    ],
)
async def test_a_payload_that_is_no_strategy_is_refused(payload, fault):
    async with AgentOS() as host:
        with pytest.raises(DescriptorError, match=fault):
            await host.extensions.register(Descriptor("planning-strategy", "s", payload))


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlanStep("", "x"),
        lambda: PlanStep("1", " "),
        lambda: PlanStep("1", "x" * 501),
        lambda: PlanStep("1", "x", "dun"),
        lambda: Plan([PlanStep("1", "x"), PlanStep("1", "y")]),
        lambda: Plan(["x"]),
        lambda: Plan([PlanStep(str(number), "x") for number in range(51)]),
    ],
)
def test_a_plan_is_checked_where_it_is_made(make):
    with pytest.raises(ValueError, match=r"expected|twice"):
        make()


async def test_explain_says_who_reads_a_strategy():
    async with host_with(steps=Steps()) as host:
        assert "host.planning" in str(host.extensions.explain("planning-strategy", "steps"))
