"""Whatever guardrails do, at whatever stage: nothing unguarded passes, and every call has exactly one result."""

import asyncio
import random

import pytest
from thorough import examples

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    ExtensionPack,
    GuardAction,
    GuardrailBlockedError,
    GuardVerdict,
    Principal,
    ToolCall,
    ToolContext,
    ToolResult,
    tool,
)

STAGES = ("input", "output", "tool_call", "tool_result")
FORBIDDEN = "forbidden"
ANN = Principal("ann", access={"*"})


class Panic(BaseException):
    """What foreign code may raise that is no Exception."""


class Faulty:
    """A guardrail that fails as its plan says, and else blocks what is forbidden."""

    def __init__(self, number, timeout):
        self.sanitizes = number % 2 == 0
        self.timeout = timeout
        self.plan = "work"

    async def answer(self, subject):
        plan = self.plan
        if plan == "raise":
            raise ValueError(FORBIDDEN)
        if plan == "panic":
            raise Panic
        if plan == "exit":
            raise SystemExit(1)
        if plan == "cancel":
            raise asyncio.CancelledError
        if plan == "cancel itself":
            asyncio.current_task().cancel()
            await asyncio.sleep(0)
        if plan == "hang":
            await asyncio.Event().wait()
        if plan == "garbage":
            return {"action": "allow"}
        if plan == "bad replacement":
            return GuardVerdict.sanitize(object(), "garbage")
        await asyncio.sleep(0)
        return GuardVerdict.block("no") if FORBIDDEN in str(subject) else None

    async def evaluate_input(self, text, context):
        return await self.answer(text)

    async def evaluate_output(self, text, context):
        return await self.answer(text)

    async def evaluate_tool_call(self, call, context):
        return await self.answer(call.arguments)

    async def evaluate_tool_result(self, result, context):
        return await self.answer(result.content)


FAULTS = ("raise", "panic", "exit", "cancel", "cancel itself", "garbage", "bad replacement")


@tool(effect="read", required_access=PUBLIC)
async def read(text: str) -> str:
    """Read."""
    return text


@tool(effect="read", required_access=PUBLIC)
async def nest(context: ToolContext, text: str) -> ToolResult:
    """Call another tool."""
    return await context.call("read", {"text": text})


def is_silent(fault, guard):
    """Tell whether what a guardrail does counts as an answer that lets things pass."""
    return fault == "work" or (fault == "bad replacement" and not guard.sanitizes)


def host_of(guards):
    names = [Descriptor("guardrail", f"g{number}", guard) for number, guard in enumerate(guards)]
    pack = ExtensionPack("p", "1", [read, nest, *names])
    return AgentOS(budget=None, extension_manifest={"packs": [{"factory": lambda: pack}]})


@pytest.mark.proof
async def test_of_ten_thousand_faults_not_one_lets_anything_pass():
    dice, results = random.Random(15), 0
    patient, impatient = ([Faulty(number, timeout) for number in range(5)] for timeout in (120.0, 0.2))
    async with host_of(patient) as waiting, host_of(impatient) as hurrying:
        for turn in range(examples(10_000)):
            hangs = turn % 500 == 499
            host, guards = (hurrying, impatient) if hangs else (waiting, patient)
            fault, chosen = "hang" if hangs else dice.choice(FAULTS), dice.choice(guards)
            for guard in guards:
                guard.plan = fault if guard is chosen else "work"
            passes = is_silent(fault, chosen)
            text = f"text {turn}" if passes or dice.random() < 0.5 else f"{FORBIDDEN} {turn}"
            match turn % 5:
                case 0:
                    outcome = await host.guardrails.check_input(text)
                    passed = outcome.value if outcome.action is not GuardAction.BLOCK else ""
                case 1:
                    outcome = await host.guardrails.check_output(text)
                    passed = outcome.value if outcome.action is not GuardAction.BLOCK else ""
                case 2:
                    passed = ""
                    try:
                        async for part in host.guardrails.stream(text):
                            passed += part
                    except GuardrailBlockedError:
                        assert not passes
                case number:
                    call = ToolCall("read" if number == 3 else "nest", {"text": text}, id=str(turn))
                    (result,) = await host.tools.process_tool_calls([call], ANN)
                    assert result.call_id == str(turn)
                    assert result.success is passes
                    passed = result.output or ""
            results += 1

            assert FORBIDDEN not in passed
            assert (passed == text) is passes, (fault, turn)

    assert results == examples(10_000)


@pytest.mark.proof
async def test_a_caller_cancelled_at_any_moment_gets_no_unguarded_result():
    dice, guard = random.Random(16), Faulty(1, 60.0)
    pack = ExtensionPack("p", "1", [read, nest, Descriptor("guardrail", "g", guard)])
    async with AgentOS(budget=None, extension_manifest={"packs": [{"factory": lambda: pack}]}) as host:
        for turn in range(examples(1_000)):
            call = host.tools.process_tool_call(ToolCall("nest", {"text": f"{FORBIDDEN} {turn}"}), ANN)
            task = asyncio.ensure_future(call)
            for _ in range(dice.randint(0, 12)):
                await asyncio.sleep(0)
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)

            assert isinstance(result, asyncio.CancelledError) or result.error.type == "GuardrailBlocked"
