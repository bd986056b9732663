"""Access: what the guard adds to a call, and what asking and recording cost on a disk.

What waits for a disk is measured in elapsed time as well, and its rows say which of the two they are. The goals are
those of the issue that asked for access.
"""

import asyncio
import contextlib
import functools
import gc
import itertools
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from agentos import PUBLIC, AgentOS, Budget, ExtensionPack, Principal, Tool, ToolCall, ToolResult, tool
from agentos.access.audit import Audit
from agentos.calls.orchestrator import ToolOrchestrator
from benchmarks._measure import Effort, Figure, Goal, Measurement, Probe, Row, cpu_below, ratio_at_most, take_turns
from benchmarks.tools import EXPECTED, TEXT, Call, _calling, _floor

CALLS = 900
"""Fewer than a batch of the audit log: what is measured is a call, not the writing of a batch."""
READS = 20_000
BATCH = 1_000
APPLIED = 100
MUTATIONS = 200
SIDE_BY_SIDE = 16
RULE = "numbers:add"
ADA = Principal("ada", access={RULE})

ADDED_GOAL = cpu_below(2e-6)
READS_GOAL = cpu_below(1 / 5_000)
MUTATION_GOAL = ratio_at_most(3)
PROPOSAL_GOAL = ratio_at_most(6)
GROUP_GOAL = ratio_at_most(1 / 4)
"""Side by side, a call takes at most a quarter of the time that it takes alone."""

AMPLE = Budget(calls=60, window=1e-9)
"""A budget that counts as any other does, and is never used up."""


async def _add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def _add_later(a: int, b: int) -> int:
    """Add two numbers, after everybody else had a turn."""
    await asyncio.sleep(0)
    return a + b


def _tool(function: Callable[..., Any], **fields: Any) -> Tool:
    return tool(**{"effect": "read", "required_access": PUBLIC, "name": "add", **fields})(function)


# -- hosts, each with a loop of its own --------------------------------------------------------------------------


@attrs.frozen
class Place:
    """A host and its event loop: what one host has yet to write does not disturb the measuring of another."""

    runner: asyncio.Runner
    host: AgentOS

    def run(self, work: Awaitable[Any]) -> Any:
        """Run *work* in the host's loop, and nothing but what else that loop has to do."""
        return self.runner.run(_awaited(work))


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


@contextlib.contextmanager
def _place(*tools: Tool, **options: Any) -> Iterator[Place]:
    """Make a host with *tools*, and shut it down in the end."""
    with asyncio.Runner() as runner:
        host = runner.run(_opened(tools, options))
        try:
            yield Place(runner, host)
        finally:
            runner.run(host.shutdown())


async def _opened(tools: tuple[Tool, ...], options: dict[str, Any]) -> AgentOS:
    host = AgentOS(**options)
    await host.extensions.load_pack(ExtensionPack("ours", "1.0", tools))
    await host.initialize()
    return host


async def _quiet(host: AgentOS) -> None:
    """Write what was recorded, and wait until the log has nothing more to do."""
    await host.audit.head()
    while host.audit._timer is not None or host.audit._batches:  # noqa: ASYNC110 - nobody else needs an event for it
        await asyncio.sleep(0.01)


def _through(orchestrator: ToolOrchestrator, principal: Principal | None = None) -> Call:
    process = orchestrator.process_tool_call

    async def call(text: str) -> ToolResult:
        return await process(ToolCall("add", text), principal)

    return call


# -- one call ----------------------------------------------------------------------------------------------------


def guarded(effort: Effort) -> Iterator[Row]:
    times = effort.size(CALLS)
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        enter, add = stack.enter_context, _tool(_add)
        bare = enter(_place(add))
        ruled = enter(_place(_tool(_add, required_access=RULE), budget=None))
        gate = enter(_place(add, budget=None))
        budget = enter(_place(add, budget=AMPLE))
        for place in (ruled, gate, budget):
            _mute(place.host.audit)
        noted = enter(_place(add, budget=None))
        whole = enter(_place(add, budget=AMPLE))
        stored = enter(_place(add, budget=AMPLE, store=Path(folder, "agentos.db")))
        probes = {
            "floor": _calling(bare.runner, _floor(_add), times),
            "bare": _reading(bare, _through(ToolOrchestrator(bare.host.extensions)), times),
            "gate": _reading(gate, _through(gate.host.tools), times),
            "bare ruled": _reading(ruled, _through(ToolOrchestrator(ruled.host.extensions), ADA), times),
            "ruled": _reading(ruled, _through(ruled.host.tools, ADA), times),
            "budget": _reading(budget, _through(budget.host.tools), times),
            "noted": _reading(noted, _through(noted.host.tools), times),
            "whole": _reading(whole, _through(whole.host.tools), times),
            "stored": _reading(stored, _through(stored.host.tools), times),
        }
        took = take_turns(probes, effort.rounds * 3)
    yield from _rows_of_a_call(took)


def _rows_of_a_call(took: dict[str, Figure]) -> Iterator[Row]:
    bare = {"beside": "the same without a guard", "theirs": took["bare"]}
    beside = "floor: json, jsonschema-rs, await"
    yield Row(what="a read of two ints without a guard", ours=took["bare"], beside=beside, theirs=took["floor"])
    yield Row(what="a read of two ints through the gate alone", ours=took["gate"], **bare)
    yield Row(what="the same with a budget and the audit log, in memory", ours=took["whole"], **bare)
    yield Row(what="the same with a budget and the audit log, SQLite file", ours=took["stored"], **bare)
    yield _added("what the gate and the access check add", took, "gate", "bare", goal=ADDED_GOAL)
    yield _added("what they add for a principal that holds its rule", took, "ruled", "bare ruled", goal=ADDED_GOAL)
    yield _added("what a budget adds", took, "budget", "gate")
    yield _added("what a note for the audit log adds", took, "noted", "gate")
    yield _added("what all of it adds, in memory", took, "whole", "bare")
    yield _added("what all of it adds, SQLite file", took, "stored", "bare")


def _mute(audit: Audit) -> None:
    """Let a log record nothing, so that the rest can be measured without it."""
    for name in dir(Audit):
        if name.startswith("note"):
            setattr(audit, name, _nothing)


def _nothing(*given: Any, **facts: Any) -> None:
    """Record nothing."""


def _reading(place: Place, call: Call, times: int) -> Probe:
    """Measure calls alone: what they left to write is written when the clock has stopped."""
    if (result := place.run(call(TEXT))).output != EXPECTED:
        raise RuntimeError(f"expected {EXPECTED}, got {result!r}")
    probe = _calling(place.runner, call, times)

    def measured() -> float:
        place.run(_quiet(place.host))
        return probe()

    return measured


def _added(what: str, took: dict[str, Figure], more: str, less: str, goal: Goal | None = None) -> Row:
    """Subtract turn by turn: what slows the machine down for a while slows both."""
    pairs = zip(took[more].samples, took[less].samples, strict=True)
    return Row(what=what, ours=Figure([one - other for one, other in pairs]), goal=goal)


# -- on a disk ---------------------------------------------------------------------------------------------------

Spent = tuple[float, float]
"""Elapsed seconds and CPU seconds."""


def _spent(work: Callable[[], object], pieces: int) -> Spent:
    gc.collect()
    gc.freeze()
    try:
        began, busy = time.perf_counter_ns(), time.process_time_ns()
        work()
        return (time.perf_counter_ns() - began) / 1e9 / pieces, (time.process_time_ns() - busy) / 1e9 / pieces
    finally:
        gc.unfreeze()


def _take_both(probes: dict[str, Callable[[], Spent]], rounds: int) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """Take turns, and keep the elapsed and the CPU time of each."""
    busy: dict[str, list[float]] = {name: [] for name in probes}

    def elapsed(name: str) -> float:
        taken = probes[name]()
        busy[name].append(taken[1])
        return taken[0]

    took = take_turns({name: functools.partial(elapsed, name) for name in probes}, rounds)
    return took, {name: Figure(samples[1:]) for name, samples in busy.items()}


def _rows_of_both(
    what: str,
    both: tuple[dict[str, Figure], dict[str, Figure]],
    name: str,
    beside: str,
    floor: str,
    goal: Goal | None = None,
) -> Iterator[Row]:
    """Yield what passed on the clock, which is what a goal beside a floor is about, and what the processor did."""
    for kind, took in zip(("elapsed", "CPU"), both, strict=True):
        limit = goal if kind == "elapsed" or goal is None or goal.of == "ours" else None
        yield Row(what=f"{what}, {kind}", ours=took[name], beside=beside, theirs=took[floor], goal=limit)


class Raw:
    """The floor of a disk: sqlite3 itself, with the settings that the store has."""

    def __init__(self, file: Path) -> None:
        self._numbers = itertools.count()
        self._connection = sqlite3.connect(file, isolation_level=None)
        for setting in ("journal_mode=WAL", "synchronous=FULL"):
            self._connection.execute(f"PRAGMA {setting}").close()
        self._connection.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, prev TEXT, hash TEXT, body TEXT)").close()

    def write(self, transactions: int, rows: int = 1, size: int = 230) -> None:
        """Write that many transactions of *rows*, each as large as a record of the audit log."""
        for _ in range(transactions):
            self._connection.execute("BEGIN IMMEDIATE").close()
            given = [(next(self._numbers), "0" * 64, "0" * 64, "x" * size) for _ in range(rows)]
            self._connection.executemany("INSERT INTO raw VALUES (?, ?, ?, ?)", given).close()
            self._connection.execute("COMMIT").close()

    def probe(self, pieces: int, transactions: int, rows: int = 1, size: int = 230) -> Callable[[], Spent]:
        """Return what measures such transactions, for each of *pieces*."""
        return lambda: _spent(lambda: self.write(transactions, rows, size), pieces)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


@contextlib.contextmanager
def _disk() -> Iterator[tuple[Path, Raw]]:
    """Make a folder for a store, and the floor beside it on the same disk."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Raw(Path(folder, "raw.db"))) as raw:
        yield Path(folder, "agentos.db"), raw


def _working(place: Place, work: Callable[[], Awaitable[Any]], pieces: int) -> Callable[[], Spent]:
    def measured() -> Spent:
        place.run(_quiet(place.host))
        return _spent(lambda: place.run(work()), pieces)

    return measured


# -- asking ------------------------------------------------------------------------------------------------------


def proposals(effort: Effort) -> Iterator[Row]:
    times = effort.size(APPLIED)
    with _disk() as (file, raw), _place(_tool(_add, effect="mutate"), store=file, budget=None) as place:
        probes = {
            "ours": _working(place, lambda: _asked_and_approved(place.host, times), times),
            "floor": raw.probe(times, 3 * times, size=1_000),
        }
        both = _take_both(probes, effort.rounds)
    beside = "raw: three transactions (propose, take, end)"
    yield from _rows_of_both("propose and approve, SQLite file", both, "ours", beside, "floor", goal=PROPOSAL_GOAL)


async def _asked_and_approved(host: AgentOS, times: int) -> None:
    for _ in range(times):
        asked = await host.tools.process_tool_call(ToolCall("add", TEXT), ADA)
        if asked.error is None or asked.error.type != "ApprovalRequired":
            raise RuntimeError(f"expected a proposal, got {asked!r}")
        result = await host.approvals.approve(asked.error.details["token"], by=ADA)
        if result.output != EXPECTED:
            raise RuntimeError(f"expected {EXPECTED}, got {result!r}")


# -- recording ---------------------------------------------------------------------------------------------------


def reads(effort: Effort) -> Iterator[Row]:
    times = effort.size(READS)
    with _disk() as (file, raw), contextlib.ExitStack() as stack:
        bare = stack.enter_context(_place(_tool(_add_later)))
        place = stack.enter_context(_place(_tool(_add_later), store=file, budget=AMPLE))
        plain = ToolOrchestrator(bare.host.extensions)
        probes = {
            "ours": _working(place, lambda: _read_all(place.host, times), times),
            "bare": _working(bare, lambda: _call_all(plain, times), times),
            "floor": raw.probe(times, times // BATCH, BATCH),
        }
        both = _take_both(probes, effort.rounds)
    what = f"a read, one of {times:,} with the last of them on disk"
    floor = f"raw: as many rows, {BATCH:,} to a transaction"
    yield from _rows_of_both(what, both, "ours", "the same without a guard", "bare", goal=READS_GOAL)
    yield from _rows_of_both("the same", both, "ours", floor, "floor", goal=READS_GOAL)


async def _call_all(orchestrator: ToolOrchestrator, times: int) -> None:
    for _ in range(times):
        await orchestrator.process_tool_call(ToolCall("add", TEXT))


async def _read_all(host: AgentOS, times: int) -> None:
    """Call, write what is left, and refuse to measure a log that has lost something."""
    before = (await host.audit.head()).seq
    await _call_all(host.tools, times)
    written = (await host.audit.head()).seq - before
    if written != times:
        raise RuntimeError(f"{times:,} calls, {written:,} records")


# -- changing ----------------------------------------------------------------------------------------------------


def mutations(effort: Effort) -> Iterator[Row]:
    times = effort.size(MUTATIONS)
    with _disk() as (file, raw), _place(_tool(_add, effect="mutate"), store=file, budget=None, mode="auto") as place:
        probes = {
            "alone": _working(place, lambda: _changed(place.host, times, 1), times),
            "many": _working(place, lambda: _changed(place.host, times * 4, SIDE_BY_SIDE), times * 4),
            "floor": raw.probe(times, 2 * times),
        }
        both = _take_both(probes, effort.rounds)
    what, beside = "a call that changes something, mode auto, SQLite file", "raw: two transactions (begun, ended)"
    yield from _rows_of_both(what, both, "alone", beside, "floor", goal=MUTATION_GOAL)
    what, beside = f"the same, {SIDE_BY_SIDE} callers side by side", "the same, one after another"
    yield from _rows_of_both(what, both, "many", beside, "alone", goal=GROUP_GOAL)


async def _changed(host: AgentOS, times: int, callers: int) -> None:
    """Share that many calls among the callers, each of which makes one after the other."""

    async def caller() -> None:
        for _ in range(times // callers):
            result = await host.tools.process_tool_call(ToolCall("add", TEXT), ADA)
            if result.output != EXPECTED:
                raise RuntimeError(f"expected {EXPECTED}, got {result!r}")

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller())


MEASUREMENTS = [
    Measurement("access_call", "what the guard adds to a read: gate, budget, audit note", guarded),
    Measurement("access_proposals", "propose and approve on SQLite, beside three raw transactions", proposals),
    Measurement("access_reads", "20,000 reads with their audit records on disk", reads),
    Measurement("access_mutations", "calls that change something, recorded before and after", mutations),
]
