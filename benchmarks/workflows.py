"""Workflows: what a step costs beside a bare one of DBOS, and how soon runs begin, wait and are taken over.

Steps are compared within one process, on one SQLite file, with DBOS as agentos sets it up: a run of many steps beside a
workflow of DBOS itself with as many. Times are elapsed where the row says so, and CPU time of all threads else. Hosts
in processes of their own say what they saw: `python -m benchmarks.workflows <command> ...`.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agentos import AgentOS, ExtensionPack, tool, workflow
from benchmarks._measure import ROOT, Effort, Figure, Measurement, Row, cpu_below, ratio_at_most

STEPS = 100
WAITING = 1_000
WATCHED = 10.0
LEASE = 5.0
RUNS = 24
RUN_STEPS = 20
HOSTS = 4

_BEGAN: list[float] = []


@tool(effect="read", required_access=("run",))
async def look(n: int) -> int:
    """Look."""
    return n


@tool(effect="mutate", required_access=("run",), intervention="never")
async def change(n: int) -> int:
    """Change."""
    return n


async def nothing(n: int) -> int:
    """Do nothing."""
    return n


@workflow(principal="runner")
async def steps(flow: Any, number: int) -> int:
    """Do steps that do nothing."""
    for n in range(number):
        await flow.step(nothing, n)
    return number


@workflow(principal="runner")
async def calls(flow: Any, number: int, named: str) -> int:
    """Call a tool."""
    for n in range(number):
        await flow.call(named, {"n": n})
    return number


@workflow(principal="runner")
async def first(flow: Any) -> None:
    """Note when the first step begins."""
    await flow.step(_note)


def _note() -> None:
    _BEGAN.append(time.perf_counter())


@workflow(principal="runner")
async def wait(flow: Any) -> None:
    """Wait for a signal that never comes."""
    await flow.wait_for("never")


@workflow(principal="runner")
async def hang(flow: Any) -> None:
    """Begin a step that only another host ends."""
    await flow.step(_hang)


async def _hang() -> None:
    print("began", flush=True)
    await asyncio.sleep(3600 if len(sys.argv) > 2 and sys.argv[2] == "hang" else 0)


@contextlib.asynccontextmanager
async def running(store: str | Path) -> AsyncIterator[AgentOS]:
    """Give a host with all of these."""
    pack = ExtensionPack("bench", "1", [look, change, steps, calls, first, wait, hang])
    principals = {"runner": {"kind": "service", "access": ["run"]}}
    manifest = {"packs": [{"factory": pack}], "principals": principals}
    async with AgentOS(extension_manifest=manifest, store=store, budget=[]) as host:
        host.workflows.lease = LEASE
        await host.workflows.open()
        yield host


def in_a_host(measured: Callable[[AgentOS], Any]) -> Any:
    """Run *measured* with a host on a SQLite file."""

    async def run(store: Path) -> Any:
        async with running(store) as host:
            return await measured(host)

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder) / "store.db"))


# -- steps -------------------------------------------------------------------------------------------------------------


async def _done(host: AgentOS, name: str, **inputs: Any) -> None:
    run = await host.workflows.start(name, inputs)
    await host.workflows.result(run.id)


def overhead(effort: Effort) -> Iterator[Row]:
    """Measure steps of a run beside steps of DBOS itself."""
    number = effort.size(STEPS)

    async def measured(host: AgentOS) -> dict[str, list[tuple[float, float]]]:
        await _done(host, "steps", number=1)
        from dbos import DBOS

        @DBOS.workflow(name="bare")
        async def bare() -> int:
            for n in range(number):
                await DBOS.run_step_async({"name": "nothing"}, nothing, n)
            return number

        sides: dict[str, Callable[[], Any]] = {
            "bare": bare,
            "steps": lambda: _done(host, "steps", number=number),
            "reads": lambda: _done(host, "calls", number=number, named="look"),
            "changes": lambda: _done(host, "calls", number=number, named="change"),
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for turn in range(effort.rounds + 1):
            for name in list(sides)[:: -1 if turn % 2 else 1]:
                cpu, elapsed = time.process_time(), time.perf_counter()
                await sides[name]()
                if turn:
                    cpu, elapsed = time.process_time() - cpu, time.perf_counter() - elapsed
                    found[name].append((cpu / number, elapsed / number))
        return found

    found = in_a_host(measured)
    words = {"steps": "a step", "reads": "a call of a tool that reads", "changes": "a call of a tool that changes"}
    for name, what in words.items():
        for place, clock in enumerate(("CPU", "elapsed")):
            ours, theirs = (Figure([one[place] for one in found[side]]) for side in (name, "bare"))
            goal = ratio_at_most(1.3) if name != "changes" else None
            yield Row(what=f"{what}, {clock}", ours=ours, beside="a bare step of DBOS", theirs=theirs, goal=goal)


def beginning(effort: Effort) -> Iterator[Row]:
    """Measure how long it takes from the start to the first step."""

    async def measured(host: AgentOS) -> list[float]:
        await _done(host, "first")
        found = []
        for _ in range(effort.size(50)):
            _BEGAN.clear()
            before = time.perf_counter()
            await _done(host, "first")
            found.append(_BEGAN[0] - before)
        return found

    yield Row(what="from the start to the first step, elapsed", ours=Figure(in_a_host(measured)), goal=cpu_below(50e-3))


def waiting(effort: Effort) -> Iterator[Row]:
    """Measure what a host costs in a second, without runs and with many that wait."""

    async def measured(host: AgentOS) -> tuple[float, float]:
        await _done(host, "steps", number=1)
        idle = await _cost(WATCHED / (10 if effort.quick else 1))
        for _ in range(effort.size(WAITING)):
            await host.workflows.start("wait")
        while len(await host.workflows.list(state="waiting", limit=1000)) < effort.size(WAITING):  # noqa: ASYNC110 - as from outside
            await asyncio.sleep(0.5)
        return idle, await _cost(WATCHED / (10 if effort.quick else 1))

    idle, busy = in_a_host(measured)
    what = f"a second with {effort.size(WAITING):,} runs that wait, CPU"
    yield Row(what=what, ours=Figure([busy]), beside="without runs", theirs=Figure([idle]))


async def _cost(seconds: float) -> float:
    await asyncio.sleep(1)
    cpu, elapsed = time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    return (time.process_time() - cpu) / (time.perf_counter() - elapsed)


# -- several hosts -----------------------------------------------------------------------------------------------------


def takeover(effort: Effort) -> Iterator[Row]:
    """Measure how long a run is nobody's when its host is killed, and when it is stopped."""
    for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
        found = [_taken_over(number) for _ in range(effort.few)]
        yield Row(
            what=f"a run of a host that is {name} goes on elsewhere, elapsed",
            ours=Figure(found),
            goal=cpu_below(2 * LEASE),
        )


def _taken_over(number: signal.Signals) -> float:
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/store.db"
        owner = _child("owner", "hang", store)
        other = None
        try:
            _until(owner, "began")
            other = _child("other", "go", store)
            _until(other, "ready")
            before = time.perf_counter()
            os.kill(owner.pid, number)
            _until(other, "began")
            return time.perf_counter() - before
        finally:
            for one in filter(None, [owner, other]):
                one.kill()
                one.communicate()


def spreading(effort: Effort) -> Iterator[Row]:
    """Measure how many steps a second one host and several do on one PostgreSQL."""
    sys.path.insert(0, str(ROOT / "tests"))
    import pg

    with pg.start_postgres() as server:
        found = {number: _rate(pg.fresh_database(server), number, effort) for number in (1, HOSTS)}
    what = f"a step of {HOSTS} hosts on one PostgreSQL, elapsed, {os.cpu_count()} cores"
    yield Row(
        what=what,
        ours=Figure([1 / found[HOSTS]]),
        beside="of one host",
        theirs=Figure([1 / found[1]]),
        goal=ratio_at_most(1 / 3),
    )


def _rate(url: str, hosts: int, effort: Effort) -> float:
    runs = effort.size(RUNS)
    working = [_child("worker", "work", url, str(max(1, runs // hosts))) for _ in range(hosts)]
    for one in working:
        _until(one, "ready")
    before = time.perf_counter()
    for one in working:
        one.stdin.write("go\n")  # type: ignore[union-attr]  # it has a pipe
        one.stdin.flush()  # type: ignore[union-attr]
    for one in working:
        _until(one, "done")
    elapsed = time.perf_counter() - before
    for one in working:
        one.communicate()
    return max(1, runs // hosts) * hosts * RUN_STEPS / elapsed


def _child(role: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.workflows", role, *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, cwd=ROOT, **pipes)  # type: ignore[call-overload,no-any-return]


def _until(process: "subprocess.Popen[str]", word: str) -> None:
    for line in process.stdout or ():
        if line.strip() == word:
            return
    raise RuntimeError(f"a host ended before it said {word!r}")


async def _be_host(role: str, arguments: Sequence[str]) -> None:
    async with running(arguments[1]) as host:
        await _done(host, "steps", number=1)
        if role == "owner":
            await host.workflows.start("hang")
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        if role == "worker":
            number = int(arguments[2])
            await asyncio.gather(*(_done(host, "steps", number=RUN_STEPS) for _ in range(number)))
            print("done", flush=True)


MEASUREMENTS = [
    Measurement("workflow-steps", "Steps of workflows", overhead, default=False),
    Measurement("workflow-start", "The start of a run", beginning, default=False),
    Measurement("workflow-waiting", "Runs that wait", waiting, default=False),
    Measurement("workflow-takeover", "Runs of hosts that are gone", takeover, default=False),
    Measurement("workflow-hosts", "Several hosts", spreading, default=False),
]

if __name__ == "__main__":
    asyncio.run(_be_host(sys.argv[1], sys.argv[2:]))
