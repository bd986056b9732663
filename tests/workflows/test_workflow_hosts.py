"""Hosts of one store that end, are killed or stopped: their runs go on elsewhere, and nothing is done twice."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import Counter

import pytest
from store_fixtures import outcome, python

from agentos import ExtensionPack, PackEntry, RunState, StepFailedError, StoreError, WorkflowError, tool, workflow

KILLS = int(os.environ.get("AGENTOS_KILLS", "100"))
"""How often a host is killed, on each database."""

HOST = """
    import asyncio, os, pathlib, sys, traceback
    from agentos import AgentOS, ExtensionPack, ToolCall, tool, workflow
    from agentos.workflows import host_workflows

    folder, store, name, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]

    def note(text):
        file = os.open(folder / "done", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, (text + "\\n").encode())
        os.close(file)

    @tool(effect="mutate", required_access=("run",), intervention="never", idempotent=True)
    async def again(run: str, n: int) -> int:
        '''Take effect, as often as it is called.'''
        note(f"again {run} {n}")
        return n

    @tool(effect="mutate", required_access=("run",), intervention="never")
    async def once(run: str, n: int) -> int:
        '''Take effect; never twice.'''
        note(f"once {run} {n}")
        await asyncio.sleep(0.001)
        return n

    @tool(effect="read", required_access=("run",))
    async def look(n: int) -> int:
        '''Look.'''
        return n

    def done(run, n):
        note(f"step {run} {n}")
        return n

    @workflow(principal="runner")
    async def work(flow, steps, unsafe):
        total = 0
        for n in range(steps):
            total += (await flow.call("look", {"n": 0})).output
            total += await flow.step(done, flow.id, n)
            note(f"recorded {flow.id} {n}")
            found = await flow.gather(*(flow.call("again", {"run": flow.id, "n": 10 * n + i}) for i in range(2)))
            total += len(found)
            if unsafe:
                await flow.call("once", {"run": flow.id, "n": n})
            await flow.wait_for(f"go{n}")
        return total

    @workflow(principal="runner")
    async def ask(flow):
        await flow.call("once", {"run": flow.id, "n": 1})
        said = await flow.approve("Go on?")
        return said["by"]

    async def stop_here(run):
        note(f"stop {run}")
        print("here", flush=True)
        await asyncio.sleep(0.3)
        return name

    @tool(effect="mutate", required_access=("run",), intervention="never")
    async def slow(run: str) -> str:
        '''Begin, and take long.'''
        note(f"slow {run}")
        print("here", flush=True)
        await asyncio.sleep(3600)
        return name

    @workflow(principal="runner")
    async def stopped(flow):
        who = await flow.step(stop_here, flow.id)
        for n in range(3):
            await flow.call("once", {"run": flow.id, "n": n})
        return who

    @workflow(principal="runner")
    async def unsafe(flow):
        return (await flow.call("slow", {"run": flow.id})).output

    offered = [again, once, look, slow, work, ask, stopped, unsafe]

    async def main():
        pack = ExtensionPack("p", "1.0.0", offered)
        budget = []
        manifest = {"principals": {"runner": {"kind": "service", "access": ["run"]}}, "packs": [{"factory": pack}]}
        async with AgentOS(extension_manifest=manifest, store=store, budget=budget) as host:
            host.workflows.lease = float(os.environ.get("LEASE", "5"))
            await COMMANDS[command](host, *sys.argv[5:])

    async def start(host, workflow, key, *more):
        inputs = {"steps": int(more[0]), "unsafe": bool(int(more[1]))} if more else {}
        run = await host.workflows.start(workflow, inputs, key=key)
        print(run.id, flush=True)
        await serve(host)

    async def serve(host):
        await host.workflows.open()
        host.extensions.on(lambda event: print(event.type, getattr(event, "run", ""), flush=True))
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        line = await asyncio.to_thread(sys.stdin.readline)
        while line.strip() not in ("", "end"):
            line = await asyncio.to_thread(sys.stdin.readline)

    async def work_off(host, runs, steps, unsafe):
        '''Start runs, the same ones in every process, give them their signals, and end when they are over.'''
        for n in range(int(runs)):
            await host.workflows.start("work", {"steps": int(steps), "unsafe": unsafe == "1"}, key=f"k{n}")
            print("started", flush=True)
        while True:
            listed = await host.workflows.list(limit=1000)
            over = 0
            for run in listed:
                if run.state == "unknown":
                    note(f"unknown {run.id}")
                    try:
                        await host.workflows.resume(run.id, unknown="done", output=0)
                    except Exception:
                        pass
                over += run.state.is_over
                if run.state == "waiting" and run.reason and "signal" in run.reason:
                    await host.workflows.signal(run.id, run.reason.split("'")[1])
            print("looked", flush=True)
            if over == int(runs):
                assert {(run.state, run.output) for run in listed} == {("finished", total_of(int(steps)))}, listed
                break
            await asyncio.sleep(0.05)

    def total_of(steps):
        return sum(range(steps)) + 2 * steps

    async def approve(host):
        [proposal] = await host.approvals.pending()
        result = await host.approvals.approve(proposal.id)
        assert result.success, result

    COMMANDS = {"start": start, "serve": serve, "work": work_off, "approve": approve}

    def child():
        print("pid", os.getpid(), flush=True)
        try:
            asyncio.run(main())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def whenever_it_is_killed():
        '''Be the host again whenever it is killed: forked, so that nothing is imported again.'''
        import croniter, dbos, psycopg, sqlalchemy.dialects.postgresql.psycopg, sqlalchemy.dialects.sqlite
        import agentos.store.migrations, agentos.store.postgres, agentos.store.schema, agentos.store.sqlite
        while (status := os.waitpid(os.fork() or child(), 0)[1]):
            if not os.WIFSIGNALED(status):
                sys.exit(1)

    whenever_it_is_killed() if command == "work" else asyncio.run(main())
"""


def done(folder):
    file = folder / "done"
    return file.read_text().splitlines() if file.exists() else []


def until(process, word):
    """Read what a host prints up to a line that begins with *word*, and return that."""
    for line in process.stdout:
        if line.startswith(word):
            return line.strip()
    raise AssertionError(f"{word!r} was never printed: {process.stderr.read()}")


@contextlib.contextmanager
def hosts(*started):
    try:
        yield started
    finally:
        for one in started:
            one.kill()
            one.communicate()


def host(tmp_path, store_url, name, *command):
    return python(HOST, tmp_path, store_url, name, *command)


@pytest.mark.proof
def test_a_person_decides_in_another_process_while_no_host_has_the_run(tmp_path, store_url):
    first = host(tmp_path, store_url, "a", "start", "ask", "k")
    with hosts(first):
        run = first.stdout.readline().strip()
        until(first, "workflow:waiting")
        os.kill(first.pid, signal.SIGKILL)
    assert outcome(host(tmp_path, store_url, "b", "approve")) == ""
    second = host(tmp_path, store_url, "c", "serve")
    with hosts(second):
        assert until(second, "workflow:finished") == f"workflow:finished {run}"

    assert done(tmp_path) == [f"once {run} 1"]


@pytest.mark.proof
def test_a_person_decides_in_another_process_while_a_host_waits(tmp_path, store_url):
    first = host(tmp_path, store_url, "a", "start", "ask", "k")
    with hosts(first):
        until(first, "workflow:waiting")
        assert outcome(host(tmp_path, store_url, "b", "approve")) == ""
        until(first, "workflow:finished")


@pytest.mark.proof
def test_a_tool_that_must_not_run_twice_and_was_cut_off_stops_the_run(tmp_path, store_url):
    first = host(tmp_path, store_url, "a", "start", "unsafe", "k")
    with hosts(first):
        run = first.stdout.readline().strip()
        until(first, "here")
        os.kill(first.pid, signal.SIGKILL)
    second = host(tmp_path, store_url, "b", "serve")
    with hosts(second):
        assert until(second, "workflow:unknown") == f"workflow:unknown {run}"

    assert done(tmp_path) == [f"slow {run}"]


@pytest.mark.proof
@pytest.mark.parametrize("decision", ["done", "fail", "retry"])
async def test_a_person_decides_what_is_unknown(tmp_path, sqlite_url, make_host, decision):
    first = host(tmp_path, sqlite_url, "a", "start", "unsafe", "k")
    with hosts(first):
        run = first.stdout.readline().strip()
        until(first, "here")
        os.kill(first.pid, signal.SIGKILL)

    @tool(effect="mutate", required_access=("run",), intervention="never")
    async def slow(run: str) -> str:
        """Begin, and take long."""
        return "again"

    @workflow(principal="runner")
    async def unsafe(flow):
        try:
            return (await flow.call("slow", {"run": flow.id})).output
        except StepFailedError as error:
            return error.type

    async with make_host(slow, unsafe, store=sqlite_url) as second:
        await second.news.until("workflow:unknown")
        found = await second.workflows.get(run)
        assert (found.state, found.steps[0].state) == (RunState.UNKNOWN, "unknown")
        with pytest.raises(WorkflowError, match="retry, done, fail"):
            await second.workflows.resume(run, unknown="maybe")
        await second.workflows.resume(run, unknown=decision, output="as it was", by="ann")
        output = await second.workflows.result(run)

    assert output == {"done": "as it was", "fail": "Unknown", "retry": "again"}[decision]


@pytest.mark.proof
def test_a_host_that_was_stopped_past_its_lease_writes_nothing_any_more(tmp_path, store_url, monkeypatch):
    monkeypatch.setenv("LEASE", "1")
    first = host(tmp_path, store_url, "slow", "start", "stopped", "k")
    second = host(tmp_path, store_url, "quick", "serve")
    with hosts(first, second):
        run = first.stdout.readline().strip()
        until(second, "ready")
        until(first, "here")
        os.kill(first.pid, signal.SIGSTOP)
        until(second, "workflow:finished")
        os.kill(first.pid, signal.SIGCONT)
        out, err = first.communicate("end\n", timeout=120)
        second.stdin.write("end\n")
        second.stdin.flush()
        outcome(second)

    assert "workflow:finished" not in out
    assert [line for line in err.splitlines() if "is another host's now" not in line] == []
    assert done(tmp_path) == [f"stop {run}", f"stop {run}", *(f"once {run} {n}" for n in range(3))]


async def test_a_host_that_ends_lets_its_runs_go(store_url, make_host):
    begun = asyncio.Event()

    async def forever():
        begun.set()
        await asyncio.Event().wait()

    @workflow(principal="runner")
    async def long(flow):
        return await flow.step(forever)

    @workflow(principal="runner", name="long")
    async def quick(flow):
        return await flow.step(lambda: "done", name="forever")

    async with make_host(long, store=store_url) as first:
        run = await first.workflows.start("long")
        await begun.wait()
    async with make_host(quick, store=store_url) as second:
        assert await second.workflows.result(run.id) == "done"


async def test_a_run_goes_on_with_its_version_or_is_held(store_url, make_host):
    def made(version):
        @workflow(version=version, principal="runner")
        async def greet(flow):
            await flow.wait_for("go")
            return version

        return greet

    async with make_host(made("1"), store=store_url) as first:
        run = await first.workflows.start("greet")
        await first.news.until("workflow:waiting")
    async with make_host(made("2"), store=store_url) as second:
        await second.workflows.signal(run.id, "go")
        await second.news.until("workflow:held")
        held = await second.workflows.get(run.id)
        old = ExtensionPack("old", "1.0.0", [made("1")])
        await second.extensions.load(PackEntry(factory=old, priority=-1))
        assert await second.workflows.result(run.id) == "1"

    assert held.state == "held"
    assert "version '1'" in held.reason


@pytest.mark.proof
async def test_a_server_that_is_restarted_strands_no_run(postgres_server, postgres_url, make_host):
    done = []

    async def number(n):
        if n == 2 and done.count(2) == 0:
            await asyncio.to_thread(postgres_server.restart)
        done.append(n)
        return n

    @tool(effect="mutate", required_access=("run",), intervention="never", idempotent=True)
    async def change(n: int) -> int:
        """Change."""
        if n == 4 and done.count(4) == 0:
            await asyncio.to_thread(postgres_server.restart)
        done.append(n)
        return n

    @workflow(principal="runner")
    async def work(flow):
        found = [await flow.step(number, n) for n in range(4)]
        return [*found, *[(await flow.call("change", {"n": n})).output for n in range(4, 7)]]

    async with make_host(change, work, store=postgres_url) as host:
        run = await host.workflows.start("work")
        while not (now := await _looked_at(host, run.id)).is_over:
            await asyncio.sleep(0.05)
        output = (await host.workflows.get(run.id)).output

    assert now == "finished"
    assert output == list(range(7))


async def _looked_at(host, id):
    """Return the state of a run; while the server is away, the last one."""
    with contextlib.suppress(StoreError):
        return (await host.workflows.list())[0].state
    return RunState.RUNNING


async def test_a_host_with_other_code_does_not_keep_a_run_from_the_one_that_has_it(sqlite_url, make_host):
    @workflow(principal="runner")
    async def quick(flow):
        return await flow.wait_for("go")

    @workflow(principal="runner")
    async def other(flow):
        return None

    async with make_host(quick, store=sqlite_url) as first, make_host(other, store=sqlite_url) as second:
        runs = [await first.workflows.start("quick") for _ in range(5)]
        for run in runs:
            await first.news.until("workflow:waiting", run.id)
            await second.workflows.signal(run.id, "go", "done")
        assert [await first.workflows.result(run.id) for run in runs] == ["done"] * 5


async def test_a_host_that_carries_none_leaves_its_runs_to_others(store_url, make_host):
    @workflow(principal="runner")
    async def quick(flow):
        return "done"

    async with make_host(quick, store=store_url, carry_workflows=False) as first:
        run = await first.workflows.start("quick")
        found = await first.workflows.get(run.id)
    async with make_host(quick, store=store_url) as second:
        assert await second.workflows.result(run.id) == "done"

    assert found.state == "queued"


async def test_one_process_has_workflows_of_one_durable_store_at_a_time(tmp_path, data_folder, make_host):
    @workflow(principal="runner")
    async def quick(flow):
        return 1

    async with make_host(quick, store=tmp_path / "a.db") as first, make_host(quick, store=tmp_path / "b.db") as second:
        await first.workflows.result((await first.workflows.start("quick")).id)
        with pytest.raises(WorkflowError, match="in another process"):
            await second.workflows.start("quick")
    async with make_host(quick, store=tmp_path / "b.db") as third:
        assert await third.workflows.result((await third.workflows.start("quick")).id) == 1


async def test_hosts_of_one_process_share_a_store_and_a_host_in_memory_what_there_is(tmp_path, data_folder, make_host):
    @workflow(principal="runner")
    async def quick(flow, n):
        return await flow.step(lambda: n)

    places = {"store": tmp_path / "a.db"}
    async with make_host(quick, **places) as one, make_host(quick, **places) as two, make_host(quick) as three:
        runs = [await each.workflows.start("quick", {"n": n}) for n, each in enumerate([one, two, three])]
        assert [await each.workflows.result(run.id) for each, run in zip([two, one, three], runs, strict=True)] == [
            0,
            1,
            2,
        ]
        assert await asyncio.to_thread(lambda: 5) == 5
    assert await asyncio.to_thread(lambda: 6) == 6


# -- kills -------------------------------------------------------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize(("kind", "kills"), [("sqlite", KILLS), ("postgres", KILLS)])
@pytest.mark.timeout(500)
def test_of_two_hosts_that_are_killed_200_times_every_run_ends_and_nothing_runs_twice(request, tmp_path, kind, kills):
    store_url = request.getfixturevalue(f"{kind}_url")
    chance, runs = random.Random(29), 12
    working = [host(tmp_path, store_url, str(n), "work", runs, max(6, kills // 5), 1) for n in range(2)]
    with hosts(*working):
        pids = [int(one.stdout.readline().split()[1]) for one in working]
        killed = 0
        while killed < kills and (found := _read(working[killed % 2], chance.randrange(1, 30))) is not None:
            victim = killed % 2
            os.kill(found or pids[victim], signal.SIGKILL)
            pids[victim] = int(until(working[victim], "pid").split()[1])
            killed += 1
        for one in working:
            _, err = one.communicate(timeout=400)
            assert (one.returncode, err) == (0, "")

    lines = done(tmp_path)
    assert killed > kills / 2
    assert _twice(line for line in lines if line.startswith("once")) == []
    assert {line.split()[1] for line in lines if line.startswith("once")} == set(_runs(lines))
    assert len(_runs(lines)) == runs
    assert _after_they_were_recorded(lines) == []


def _read(process, number):
    """Read so many lines of a host; None if it ended by itself."""
    for _ in range(number):
        if not process.stdout.readline():
            return None
    return 0


def _twice(lines):
    return [line for line, number in Counter(lines).items() if number > 1]


def _runs(lines):
    return {line.split()[1] for line in lines}


def _after_they_were_recorded(lines):
    """Return the steps that ran again after the function of their workflow went on behind them."""
    recorded, wrong = set(), []
    for line in lines:
        what, *step = line.split()
        if what == "recorded":
            recorded.add(tuple(step))
        elif what == "step" and tuple(step) in recorded:
            wrong.append(line)
    return wrong


if sys.platform == "win32":  # pragma: no cover
    pytestmark = pytest.mark.skip("it has no signals to stop a process")
