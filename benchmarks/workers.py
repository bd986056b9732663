"""Packs in processes of their own: a call, beside a bare pipe with the same framing and an MCP server over stdio.

The bare pipe is the least there can be: one line of JSON goes to a child that reads lines and adds two numbers, one
comes back. A call of ours goes the whole way of a call besides. The SDK's bare server checks no arguments and records
nothing. What is counted is the CPU time of both ends; elapsed time stands beside it.
"""

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from agentos import AgentOS, ExtensionManifest, PackEntry, ToolCall
from benchmarks import peers
from benchmarks._measure import ROOT, Effort, Figure, Goal, Measurement, Row, cpu_below, ratio_at_most, take_turns

CALLS = 200
ARGUMENTS = {"a": 17, "b": 25}
EXPECTED = {"sum": 42}
BARE = """
import json, sys
for line in sys.stdin.buffer:
    asked = json.loads(line)
    numbers = asked["body"]["args"]
    answer = {"id": asked["id"], "ok": {"sum": numbers["a"] + numbers["b"]}}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""
MIB = 1024 * 1024


@attrs.frozen
class Line:
    """A way to a tool: how it is called, and the process at its other end."""

    call: Callable[[], Awaitable[Any]]
    pid: int | None = None


@contextlib.asynccontextmanager
async def host_of(isolation: Any) -> AsyncIterator[AgentOS]:
    """Give a host whose pack is in its own process, or in a worker."""
    entry = PackEntry(module="benchmarks._worker_pack", identifier="measured", isolation=isolation)
    host = AgentOS(extension_manifest=ExtensionManifest(packs=[entry]), budget=None)
    try:
        await host.initialize(strict=True)
        yield host
    finally:
        await host.shutdown()


@contextlib.asynccontextmanager
async def through_host(isolation: Any) -> AsyncIterator[Line]:
    """Give the way of a call through a host."""
    async with host_of(isolation) as host:
        call = ToolCall("add_numbers", ARGUMENTS)

        async def once() -> Any:
            result = await host.tools.process_tool_call(call)
            return result.output

        await once()
        yield Line(once, next((one.pid for one in host.workers.list()), None))


@contextlib.asynccontextmanager
async def through_pipe() -> AsyncIterator[Line]:
    """Give the way of a line to a child that reads lines."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, "-u", "-c", BARE, stdin=pipe, stdout=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    write, read = child.stdin.write, child.stdout.readline

    async def once() -> Any:
        write(json.dumps({"id": 1, "op": "call", "body": {"tool": "add_numbers", "args": ARGUMENTS}}).encode() + b"\n")
        return json.loads(await read())["ok"]

    try:
        yield Line(once, child.pid)
    finally:
        child.stdin.close()
        await child.wait()


@contextlib.asynccontextmanager
async def through_mcp() -> AsyncIterator[Line]:
    """Give the way of a call to the SDK's bare server over stdio."""
    from benchmarks.mcp import Case, _linked, _list_all, _names

    case = Case("sdk", "stdio", 1)
    async with _linked(case) as link:
        await _list_all(link.client, case)
        [name] = _names(1)

        async def once() -> Any:
            return (await link.client.call_tool(name, ARGUMENTS)).structured_content

        yield Line(once, link.pid)


# -- measuring ---------------------------------------------------------------------------------------------------


@attrs.frozen
class Taken:
    """Seconds for each call: CPU time of both ends, and elapsed."""

    both: float
    elapsed: float


def cpu_of(pid: int | None) -> int:
    """Return the CPU time of a process in ns, by the clock that Linux has for each."""
    return 0 if pid is None else time.clock_gettime_ns((~pid << 3) | 2)


async def _take(line: Line, calls: int) -> Taken:
    gc.collect()
    theirs, busy, began = cpu_of(line.pid), time.process_time_ns(), time.perf_counter_ns()
    for _ in range(calls):
        await line.call()
    elapsed, own = time.perf_counter_ns() - began, time.process_time_ns() - busy
    return Taken((own + cpu_of(line.pid) - theirs) / 1e9 / calls, elapsed / 1e9 / calls)


async def _measured(ways: dict[str, Any], calls: int, rounds: int) -> dict[str, list[Taken]]:
    """Let every way take turns, all of them open at once; the first turn warms up."""
    taken: dict[str, list[Taken]] = {name: [] for name in ways}
    async with contextlib.AsyncExitStack() as stack:
        lines = {name: await stack.enter_async_context(way) for name, way in ways.items()}
        for name, line in lines.items():
            if (found := await line.call()) != EXPECTED:
                raise RuntimeError(f"{name}: expected {EXPECTED}, got {found!r}")
        for turn in range(rounds + 1):
            for name in reversed(lines) if turn % 2 else lines:
                one = await _take(lines[name], calls)
                taken[name] += [one] if turn else []
    return taken


def _figure(taken: Sequence[Taken], field: str) -> Figure:
    return Figure([getattr(one, field) for one in taken])


def call_in_worker(effort: Effort) -> Iterator[Row]:
    """Measure a call through a worker beside a bare pipe, a call in the host's process, and one over MCP."""
    ways = {"worker": through_host("process"), "inline": through_host("inline"), "pipe": through_pipe()}
    if peers.is_installed("mcp"):
        ways["mcp"] = through_mcp()
    else:
        peers.skipped("not installed: mcp")
    taken = asyncio.run(_measured(ways, effort.size(CALLS), effort.rounds))
    ours = taken["worker"]
    goals: dict[str, tuple[str, Goal | None]] = {
        "pipe": ("a bare pipe", ratio_at_most(2)),
        "inline": ("in the host's process", None),
        "mcp": ("MCP SDK over stdio", ratio_at_most(0.2)),
    }
    for field, counted in (("both", "CPU"), ("elapsed", "elapsed")):
        for name, (beside, goal) in goals.items():
            if name in taken:
                theirs = _figure(taken[name], field)
                yield Row(
                    what=f"a call in a worker, {counted}",
                    ours=_figure(ours, field),
                    beside=beside,
                    theirs=theirs,
                    goal=goal if field == "both" else None,
                )


# -- mounting ----------------------------------------------------------------------------------------------------


def mount_of_worker(effort: Effort) -> Iterator[Row]:
    """Measure how long a worker takes to be ready, and what its process holds then, beside a bare interpreter."""
    found = asyncio.run(_mounts(effort.rounds))
    bare = take_turns({"bare": _bare_start}, effort.rounds)["bare"]
    yield Row(
        what="a cold mount, elapsed",
        ours=Figure([one[0] for one in found]),
        beside="python -S -c pass",
        theirs=bare,
        goal=cpu_below(0.25),
    )
    yield Row(what="a cold mount, CPU of the child", ours=Figure([one[1] for one in found]))
    limit = Goal(20 * MIB, "ours", "B")
    yield Row(what="a mounted worker, resident", ours=Figure([one[2] for one in found], "B"), goal=limit)


def _bare_start() -> float:
    import subprocess

    began = time.perf_counter_ns()
    subprocess.run([sys.executable, "-S", "-c", "pass"], check=True, cwd=ROOT)
    return (time.perf_counter_ns() - began) / 1e9


async def _mounts(rounds: int) -> list[tuple[float, float, float]]:
    """Mount a worker again and again; return seconds elapsed, seconds of the child's CPU, and bytes, of each."""
    found = []
    async with host_of("process") as host:
        for _ in range(rounds + 1):
            await _killed(host)
            began = time.perf_counter_ns()
            await host.workers.restart("measured")
            elapsed = (time.perf_counter_ns() - began) / 1e9
            [worker] = host.workers.list()
            found.append((elapsed, cpu_of(worker.pid) / 1e9, _resident(worker.pid)))
    return found[1:]


async def _killed(host: AgentOS) -> None:
    """End the process before the clock starts: a restart waits for the end of the one before."""
    while (pid := host.workers.list()[0].pid) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.01)


def _resident(pid: int | None) -> float:
    return float(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))


MEASUREMENTS = [
    Measurement("worker-call", "a call to a pack in a process of its own", call_in_worker),
    Measurement("worker-mount", "how soon a pack in a process of its own is ready, and what it holds", mount_of_worker),
]
