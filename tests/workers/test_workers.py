"""A pack in a process of its own: it comes when it is needed, dies alone, and leaves nothing behind."""

import asyncio
import os
import random
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from bridging import children, descriptors, eventually, tasks
from kit import Recorder
from working import DEADLINE, PACKS, PATIENT, call, entry, notes, state_of, worker_of, working

from agentos import PUBLIC, AgentOS, Descriptor, ExtensionPack, PackEntry, ToolCall, tool
from agentos.model.isolation import WorkerState
from agentos.processes.supervision import SupervisionRules

QUICK = SupervisionRules(strikes=1, first_delay=0.05, longest_delay=0.1)
SLOW = SupervisionRules(strikes=1, first_delay=3_000.0)


@tool(effect="read", required_access=PUBLIC)
def pid() -> str:
    """Say that this is the host's own."""
    return "inline"


async def until(host, condition):
    """Wait until *condition* holds, looking again whenever something happened."""
    happened = asyncio.Event()
    listener = host.extensions.on(lambda _: happened.set())
    try:
        async with asyncio.timeout(DEADLINE):
            while not condition():
                happened.clear()
                await happened.wait()
    finally:
        host.extensions.off(listener)


# -- calls ---------------------------------------------------------------------------------------------------------


async def test_a_tool_runs_in_another_process(tmp_path):
    async with working(entry(tmp_path)) as host:
        found = (await call(host, "pid")).output

        assert found == worker_of(host).pid != os.getpid()


async def test_a_call_in_flight_when_its_worker_dies_has_one_result_that_says_that_it_may_have_run(tmp_path):
    async with working(entry(tmp_path)) as host:
        result = await call(host, "die")

    assert (result.error.type, dict(result.error.details)) == ("WorkerDied", {"may_have_run": True})
    assert result.error.message == (
        "the worker of pack 'fragile': the process exited with code 3; what was asked for may have been done"
    )
    assert notes(tmp_path).count("die") == 1


async def test_the_next_call_starts_it_anew_and_hooks_run_again(tmp_path):
    async with working(entry(tmp_path)) as host:
        before = (await call(host, "pid")).output
        await call(host, "die")
        after = (await call(host, "pid")).output

        assert (before != after, worker_of(host).restarts, worker_of(host).strikes) == (True, 1, 1)
        assert notes(tmp_path) == ["activated", "die", "activated"]


async def test_an_idempotent_tool_is_tried_once_more(tmp_path):
    async with working(entry(tmp_path), rules=PATIENT) as host:
        once, always = await call(host, "die_once"), await call(host, "die_always")

    assert (once.output, always.error.type) == ("the second time", "WorkerDied")
    assert (notes(tmp_path).count("ran"), notes(tmp_path).count("always")) == (2, 2)


async def test_all_calls_in_flight_have_one_result_each(tmp_path):
    async with working(entry(tmp_path)) as host:
        calls = [asyncio.create_task(call(host, "wait", id=str(number))) for number in range(20)]
        await eventually(lambda: worker_of(host).calls >= 20)
        os.kill(worker_of(host).pid, signal.SIGKILL)
        results = await asyncio.gather(*calls)

    assert [one.error.type for one in results] == ["WorkerDied"] * 20
    assert {one.error.details["may_have_run"] for one in results} == {True}


async def test_a_tool_that_a_hook_registered_is_found_again_in_the_next_process(tmp_path):
    """The call that starts the process uses the tool that the hook registers again: neither waits for the other."""
    file = tmp_path / "registering.py"
    file.write_text("""
import os
from agentos import PUBLIC, ExtensionPack, tool

@tool(effect="read", required_access=PUBLIC)
def die() -> str:
    \"\"\"End the process.\"\"\"
    os._exit(3)

@tool(effect="read", required_access=PUBLIC)
def late() -> int:
    \"\"\"Return the number of the process.\"\"\"
    return os.getpid()

async def activate(context):
    await context.tools.register_tool(late)

def create_extension_pack():
    return ExtensionPack("registering", descriptors=[die], on_activate=activate)
""")
    registering = PackEntry(module=str(file), isolation="process", mount_timeout=60.0, permissions=["tools:register"])
    async with working(registering) as host:
        before = (await call(host, "late")).output
        await call(host, "die")
        after = await call(host, "late")

        assert (after.success, after.output != before) == (True, True)


# -- degraded ------------------------------------------------------------------------------------------------------


async def test_what_a_degraded_worker_offers_is_gated_and_what_it_shadowed_is_back(tmp_path):
    inline = PackEntry(factory=ExtensionPack("inline", descriptors=[pid]))
    async with working(inline, entry(tmp_path), rules=SLOW) as host:
        assert (await call(host, "pid")).output != "inline"
        await call(host, "die")

        state, reason = state_of(host, "pid")
        assert state == "gated"
        assert "is degraded: the process exited with code 3; the next try is at 2" in reason
        assert worker_of(host).reason.startswith("the process exited with code 3: my last words; the next try is at 2")
        assert (await call(host, "pid")).output == "inline"
        assert worker_of(host).state is WorkerState.DEGRADED
        gone = await call(host, "echo", {"text": "x"})
        assert (gone.error.type, "degraded" in gone.error.message) == ("WorkerDied", True)
        assert dict(gone.error.details) == {"may_have_run": False}


async def test_a_degraded_worker_is_tried_again_and_recovers(tmp_path):
    recorder = Recorder()
    host = AgentOS(extension_manifest=[entry(tmp_path)], budget=None, mode="auto")
    host.workers.rules = QUICK
    host.extensions.on(recorder)
    async with host:
        await call(host, "die")
        await until(host, lambda: worker_of(host).state is WorkerState.READY and state_of(host, "pid")[0] == "active")
        found = await call(host, "pid")

        assert found.success
        await until(host, lambda: "worker:recovered" in [event.type for event in recorder.events])
    told = [event.type for event in recorder.events if event.type.startswith("worker:")]
    assert told == [
        *("worker:mounting", "worker:ready", "worker:died", "worker:degraded"),
        *("worker:mounting", "worker:ready", "worker:recovered"),
    ]


async def test_a_worker_on_trial_that_answers_with_an_error_has_done_its_work(tmp_path):
    host = AgentOS(extension_manifest=[entry(tmp_path)], budget=None, mode="auto")
    host.workers.rules = QUICK
    async with host:
        await call(host, "die")
        await until(host, lambda: worker_of(host).state is WorkerState.READY and state_of(host, "pid")[0] == "active")
        worker = host.workers._find("fragile")
        before = worker._supervision.is_on_trial
        with pytest.raises(ValueError, match="knows no operation"):
            await worker.ask("nothing", None)

        assert (before, worker._supervision.is_on_trial) == (True, False)


async def test_a_restart_by_hand_brings_a_degraded_worker_back(tmp_path):
    """Whoever awaited it finds its tools in force: a call reaches them, not what they shadow, nor nothing."""
    inline = PackEntry(factory=ExtensionPack("inline", descriptors=[pid]))
    async with working(inline, entry(tmp_path), rules=SLOW) as host:
        await call(host, "die")
        await host.workers.restart("fragile")

        assert state_of(host, "pid")[0] == "active"
        assert (await call(host, "pid")).output != "inline"
        assert (worker_of(host).state, worker_of(host).strikes) == (WorkerState.READY, 0)


# -- secrets -------------------------------------------------------------------------------------------------------


async def test_a_factory_that_asks_for_a_secret_runs_again_once_it_is_found(tmp_path):
    file = tmp_path / "asking.py"
    file.write_text("""
from agentos import PUBLIC, ExtensionPack, SecretRequirement, tool

def create_extension_pack(context):
    key = context.secret("asked-key")

    @tool(effect="read", required_access=PUBLIC, required_secrets=["asked-key"])
    def length() -> int:
        \"\"\"Return how long the secret is that the factory read.\"\"\"
        return len(key)

    return ExtensionPack("asking", descriptors=[length])
""")

    async def vault(id):
        return "twelve-chars" if id == "asked-key" else None

    asking = PackEntry(module=str(file), isolation="process", mount_timeout=60.0)
    async with working(asking, extension_secrets=vault) as host:
        assert (await call(host, "length")).output == 12
    assert children() == []


async def test_many_calls_at_once_that_ask_for_a_secret_on_the_loop_all_end(tmp_path):
    """What the loop was told has come may have been read by then, by a call that waited for its own answer."""
    file = tmp_path / "asking.py"
    file.write_text("""
import asyncio
from agentos import PUBLIC, ExtensionPack, tool

@tool(effect="read", required_access=PUBLIC, required_secrets=["asked-key"])
async def length(context) -> int:
    \"\"\"Return how long the secret is, read twice.\"\"\"
    first = context.secret("asked-key")
    await asyncio.sleep(0)
    return (len(first) + len(context.secret("asked-key"))) // 2

def create_extension_pack(context):
    return ExtensionPack("asking", descriptors=[length])
""")
    asking = PackEntry(module=str(file), isolation="process", mount_timeout=60.0)
    async with working(asking, extension_secrets={"asked-key": "twelve-chars"}) as host:
        for _ in range(20):
            results = await asyncio.gather(*(call(host, "length") for _ in range(8)))
            assert {one.output for one in results} == {12}


# -- mounting --------------------------------------------------------------------------------------------------------


async def test_a_pack_that_is_not_ready_in_time_is_not_loaded(tmp_path):
    slow = entry(tmp_path, mount_timeout=0.05)
    async with working(slow) as host:
        [outcome] = host.extensions.report.outcomes

    assert "it was not ready within 0.05 s" in outcome.reason
    assert children() == []


async def test_a_factory_that_another_process_can_not_import_is_refused():
    async with working(PackEntry(factory=lambda: ExtensionPack("x"), isolation="process")) as host:
        [outcome] = host.extensions.report.outcomes

    assert "can't import its factory by name" in outcome.reason


async def test_a_pack_whose_factory_raises_is_not_loaded(tmp_path):
    (tmp_path / "bad.py").write_text("def create_extension_pack():\n    raise ValueError('no such thing')\n")
    bad = PackEntry(module=str(tmp_path / "bad.py"), isolation="process", mount_timeout=60)
    async with working(bad) as host:
        [outcome] = host.extensions.report.outcomes

    assert "it could not be made: ValueError: no such thing" in outcome.reason
    assert children() == []


async def test_calls_wait_for_a_worker_that_mounts_bounded_in_number(tmp_path, monkeypatch):
    monkeypatch.setattr("agentos.workers.worker.MOST_WAITING", 3)
    async with working(entry(tmp_path)) as host:
        await call(host, "die")
        results = await asyncio.gather(*(call(host, "echo", {"text": "x"}) for _ in range(5)))

    assert [one.success for one in results].count(True) == 3
    refused = [one.error for one in results if not one.success]
    assert {(one.type, one.details["may_have_run"]) for one in refused} == {("WorkerDied", False)}


# -- dormant -----------------------------------------------------------------------------------------------------------


async def test_a_pack_that_is_known_from_the_store_is_listed_without_a_process(tmp_path):
    store = tmp_path / "store.db"
    async with working(entry(tmp_path), store=store):
        pass
    async with working(entry(tmp_path), store=store) as host:
        dormant = worker_of(host)
        result = await call(host, "pid")

        assert (dormant.state, dormant.pid, dormant.restarts) == (WorkerState.DORMANT, None, 0)
        assert result.output == worker_of(host).pid
    assert notes(tmp_path) == ["activated", "deactivated", "activated", "deactivated"]


@pytest.mark.parametrize("change", ["file", "option"])
async def test_what_is_known_counts_only_for_the_same_files_and_options(tmp_path, change):
    file = tmp_path / "mine.py"
    file.write_bytes((PACKS / "fragile.py").read_bytes())
    fields = {"isolation": "process", "mount_timeout": 60.0}
    said = {"folder": str(tmp_path)}
    async with working(PackEntry(module=str(file), options=said, **fields), store=tmp_path / "store.db"):
        pass
    if change == "file":
        file.write_bytes(file.read_bytes() + b"\n")
    else:
        said["other"] = 1
    async with working(PackEntry(module=str(file), options=said, **fields), store=tmp_path / "store.db") as host:
        assert worker_of(host).state is WorkerState.READY


async def test_a_pack_that_declares_something_else_than_last_time_is_not_asked_until_it_is_reloaded(tmp_path):
    (tmp_path / "pack").mkdir()
    file = tmp_path / "pack" / "moody.py"
    file.write_text(f"""
from pathlib import Path
from agentos import PUBLIC, ExtensionPack, tool

@tool(effect="read", required_access=PUBLIC, description=Path({str(tmp_path / "mood")!r}).read_text())
def feel() -> str:
    return "well"

def create_extension_pack():
    return ExtensionPack("moody", descriptors=[feel])
""")
    (tmp_path / "mood").write_text("good")
    moody = PackEntry(module=str(file), isolation="process", mount_timeout=60.0)
    async with working(moody, store=tmp_path / "store.db", pins="off"):
        pass
    (tmp_path / "mood").write_text("bad")
    async with working(moody, store=tmp_path / "store.db", pins="off") as host:
        refused = await call(host, "feel")
        await host.extensions.reload("moody")
        felt = await call(host, "feel")

    assert (refused.error.type, refused.error.details["may_have_run"]) == ("WorkerDied", False)
    assert "it declares something else than before; reload it" in refused.error.message
    assert felt.output == "well"


async def test_an_eager_pack_is_started_with_its_host(tmp_path):
    store = tmp_path / "store.db"
    async with working(entry(tmp_path), store=store):
        pass
    async with working(entry(tmp_path, eager=True), store=store) as host:
        assert worker_of(host).state is WorkerState.READY


async def test_a_pack_that_was_disabled_has_no_process_after_a_restart_of_its_host(tmp_path):
    store = tmp_path / "store.db"
    async with working(entry(tmp_path), store=store) as host:
        await host.extensions.disable("fragile")
        assert children() == []
    async with working(entry(tmp_path, options={"other": 1}), store=store) as host:
        assert (worker_of(host).state, children()) == (WorkerState.DORMANT, [])


# -- the end -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["unload", "disable", "shutdown"])
async def test_nothing_is_left_of_a_pack_that_goes(tmp_path, how):
    async with working(entry(tmp_path)) as host:
        await call(host, "pid")
        if how != "shutdown":
            await getattr(host.extensions, how)("fragile")
            assert children() == []
            assert (await call(host, "pid")).error.type == "UnknownTool"

    assert notes(tmp_path) == ["activated", "deactivated"]
    assert children() == []


async def test_a_disabled_pack_comes_back(tmp_path):
    async with working(entry(tmp_path)) as host:
        await host.extensions.disable("fragile")
        await host.extensions.enable("fragile")

        assert (await call(host, "pid")).success


async def test_a_reload_exchanges_the_process(tmp_path):
    async with working(entry(tmp_path)) as host:
        before = (await call(host, "pid")).output
        outcome = await host.extensions.reload("fragile")
        after = (await call(host, "pid")).output

        assert (outcome.status, before != after, len(host.workers.list())) == ("loaded", True, 1)


@pytest.mark.parametrize("what", ["worker", "server"])
def test_a_host_that_is_killed_leaves_no_process_behind(tmp_path, what):
    """Neither a worker in the middle of a call nor what its pack started, nor a server that ignores its input's end."""
    command = [sys.executable, str(Path(__file__).parents[1] / "killed_host.py"), what]
    folder = [str(tmp_path)] if what == "worker" else []
    host = subprocess.Popen([*command, *folder], stdout=subprocess.PIPE, text=True)
    try:
        watches = [os.pidfd_open(int(pid)) for pid in host.stdout.readline().split()]
        os.kill(host.pid, signal.SIGKILL)
        for watch in watches:
            assert select.select([watch], [], [], DEADLINE)[0]
            os.close(watch)
    finally:
        host.kill()
        host.wait()
        host.stdout.close()

    assert len(watches) == {"worker": 2, "server": 1}[what]


# -- what it says --------------------------------------------------------------------------------------------------


async def test_what_it_prints_and_logs_is_its_packs_log_and_masked(tmp_path, caplog):
    caplog.set_level("INFO")
    secrets = {"TOKEN": "s3cret-value-of-mine"}
    asking = ExtensionPack("asking", descriptors=[Descriptor("thing", "x", 1, required_secrets=["TOKEN"])])
    packs = (PackEntry(factory=asking), entry(tmp_path))
    async with working(*packs, extension_secrets=secrets) as host:
        await call(host, "say", {"text": secrets["TOKEN"]})
        await eventually(lambda: len(host.workers.logs("fragile")) >= 3)
        said = "\n".join(host.workers.logs("fragile"))

    assert all(word in said for word in ("printed", "wrote", "logged"))
    assert secrets["TOKEN"] not in said + caplog.text
    assert "agentos.packs.fragile" in {record.name for record in caplog.records}


async def test_a_log_record_says_its_level_and_its_logger_once(tmp_path, caplog):
    caplog.set_level("DEBUG")
    async with working(entry(tmp_path)) as host:
        await call(host, "say", {"text": "it"})
        await eventually(lambda: "warning: fragile: logged it" in host.workers.logs("fragile"))

        assert "info: noted it" in host.workers.logs("fragile")
    found = {(one.name, one.levelname, one.getMessage()) for one in caplog.records if "it" in one.getMessage().split()}
    assert found >= {
        ("agentos.packs.fragile", "WARNING", "fragile: logged it"),
        ("agentos.packs.fragile", "INFO", "noted it"),
        ("agentos.packs.fragile", "Level 33", "fragile: at a level of its own it"),
    }


# -- the proof -----------------------------------------------------------------------------------------------------


def succeeded(results):
    return sum(one.success for one in results.values())


def held():
    """Count the descriptors and threads of this process, but for the store's own, which comes with its work."""
    return len(descriptors()), sum(one.name != "agentos-store" for one in threading.enumerate())


@pytest.mark.proof
@pytest.mark.timeout(500)
async def test_two_hundred_kills_at_random_moments_under_load_lose_no_call_and_leave_nothing(tmp_path):
    chance = random.Random(16)
    async with working(entry(tmp_path), rules=PATIENT) as host:
        await call(host, "pid")
        files, threads = held()
        results, is_over = {}, asyncio.Event()

        async def load(number):
            turn = 0
            while not is_over.is_set():
                made = ToolCall("pid", {}, id=f"{number}-{turn}")
                results[made.id] = await host.tools.process_tool_call(made)
                turn += 1
            return turn

        loads = [asyncio.create_task(load(number)) for number in range(8)]
        for turn in range(200):
            if turn % 5 == 0:  # in between, it may well be killed while it mounts
                so_far = succeeded(results)
                await eventually(lambda so_far=so_far: succeeded(results) > so_far, DEADLINE)
            await eventually(lambda: worker_of(host).pid is not None, DEADLINE)
            await asyncio.sleep(chance.random() * 0.1)
            if (victim := worker_of(host).pid) is not None:
                os.kill(victim, signal.SIGKILL)
                await eventually(lambda victim=victim: worker_of(host).pid != victim, DEADLINE)
        is_over.set()
        made = sum(await asyncio.gather(*loads))
        failed = [one for one in results.values() if not one.success]

        assert made == len(results) > len(failed) >= 100
        assert {one.error.type for one in failed} == {"WorkerDied"}
        assert (await call(host, "pid")).success
        await eventually(lambda: held()[0] <= files and held()[1] <= threads, DEADLINE)
    assert (children(), tasks()) == ([], set())
