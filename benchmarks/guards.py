"""Guardrails: what a call and a stream cost with them, and what a call costs without."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionPack, ToolCall, guardrail, tool
from benchmarks._measure import Effort, Measurement, Probe, Row, Work, cpu_below, take_turns, timed

CALLS = 2_000
GUARDS = 5
STREAM = 1_000_000
MORE = 10e-6
"""How much more a call with five silent guardrails may cost."""
SPEED = 5e6
"""How many characters a second a stream has to make."""


@tool(effect="read", required_access=PUBLIC)
async def echo(text: str) -> str:
    """Give back what it got."""
    return text


def silent(stage: Any, number: int) -> Descriptor[Any]:
    """Return a guardrail that has nothing to say."""

    @guardrail(stage=stage)
    async def nothing(subject: Any, context: Any) -> None:
        """Have nothing to say."""

    return Descriptor("guardrail", f"g{number}", nothing)


@contextlib.contextmanager
def host_with(stage: str | None) -> Iterator[tuple[AgentOS, asyncio.AbstractEventLoop]]:
    """Give a host whose guardrails, if any, are silent."""
    guards = [] if stage is None else [silent(stage, number) for number in range(GUARDS)]
    loop, host = asyncio.new_event_loop(), AgentOS(budget=None)
    loop.run_until_complete(host.initialize())
    loop.run_until_complete(host.extensions.load_pack(ExtensionPack("bench", "1", [echo, *guards])))
    try:
        yield host, loop
    finally:
        loop.run_until_complete(host.shutdown())
        loop.close()


def calling(host: AgentOS, loop: asyncio.AbstractEventLoop, calls: int) -> Probe:
    """Return what measures one call."""
    call = ToolCall("echo", {"text": "x"})

    async def run() -> None:
        for _ in range(calls):
            await host.tools.process_tool_call(call)

    return timed(lambda: lambda: loop.run_until_complete(run()), calls)


def of_calls(effort: Effort) -> Iterator[Row]:
    """Measure a call with five silent guardrails beside one without."""
    calls = effort.size(CALLS)
    with contextlib.ExitStack() as stack:
        hosts = {stage: stack.enter_context(host_with(stage)) for stage in (None, "tool_call", "tool_result")}
        probes = {str(stage): calling(*made, calls) for stage, made in hosts.items()}
        figures = take_turns(probes, effort.rounds)
    for stage in ("tool_call", "tool_result"):
        goal = cpu_below(figures["None"].median + MORE)
        what = f"a call with 5 silent guardrails on {stage}"
        yield Row(what=what, ours=figures[stage], beside="the same without", theirs=figures["None"], goal=goal)


def streaming(host: AgentOS, loop: asyncio.AbstractEventLoop, text: str, size: int) -> Callable[[], Work]:
    """Return what streams *text* in chunks of *size*."""
    chunks = [text[place : place + size] for place in range(0, len(text), size)]

    async def run() -> None:
        async for _ in host.guardrails.stream(chunks):
            pass

    return lambda: lambda: loop.run_until_complete(run())


def of_streams(effort: Effort) -> Iterator[Row]:
    """Measure a stream through one silent guardrail, by the size of its chunks."""
    text = "Lorem ipsum dolor sit amet, " * (effort.size(STREAM) // 28)
    sizes = (4, 16, 64, 1_000)
    loop, host = asyncio.new_event_loop(), AgentOS()
    loop.run_until_complete(host.initialize())
    loop.run_until_complete(host.extensions.load_pack(ExtensionPack("bench", "1", [silent("output", 0)])))
    probes = {str(size): timed(streaming(host, loop, text, size)) for size in sizes}
    figures = take_turns(probes, effort.rounds)
    loop.run_until_complete(host.shutdown())
    loop.close()
    for size in sizes:
        goal = cpu_below(len(text) / SPEED)
        yield Row(what=f"a stream of {len(text):,} characters, chunks of {size}", ours=figures[str(size)], goal=goal)


MEASUREMENTS = [
    Measurement("guards", "calls with guardrails", of_calls),
    Measurement("guard-streams", "streams behind guardrails", of_streams),
]
