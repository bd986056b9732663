"""What a workflow does by its flow."""

import asyncio
import importlib.machinery
import importlib.util
from datetime import UTC, datetime, timedelta

import attrs
import pytest

from agentos import (
    Descriptor,
    GuardVerdict,
    Principal,
    Retry,
    RunState,
    StepFailedError,
    ToolCall,
    WorkflowError,
    guardrail,
    tool,
    workflow,
)

DONE = []


@pytest.fixture(autouse=True)
def nothing_done():
    DONE.clear()


@tool(effect="read", required_access=("run",))
async def look(n: int) -> int:
    """Look."""
    DONE.append(f"look {n}")
    return n + 1


@tool(effect="mutate", required_access=("run",), intervention="never")
async def make(name: str) -> dict:
    """Make."""
    DONE.append(f"make {name}")
    return {"name": name}


@tool(effect="mutate", required_access=("run",), intervention="never")
async def remove(name: str) -> str:
    """Remove."""
    DONE.append(f"remove {name}")
    return name


@tool(effect="mutate", required_access=("run",))
async def send(to: str) -> str:
    """Send, if a person agrees."""
    DONE.append(f"send {to}")
    return to


@tool(effect="mutate", required_access=("run",), intervention="never")
async def fail(why: str) -> str:
    """Fail."""
    DONE.append(f"fail {why}")
    raise ValueError(why)


TOOLS = (look, make, remove, send, fail)


def named(steps):
    return [(step.key, step.name, step.state) for step in steps]


async def test_a_run_gives_what_its_function_returns(make_host, store_url):
    @workflow(principal="runner")
    async def onboard(flow, customer):
        made = await flow.call("make", {"name": customer})
        seen = await flow.gather(*(flow.call("look", {"n": n}) for n in range(3)))
        return {"made": made.output, "seen": [one.output for one in seen]}

    async with make_host(*TOOLS, onboard, store=store_url) as host:
        run = await host.workflows.start("onboard", {"customer": "Ann"})
        output = await host.workflows.result(run.id)
        run = await host.workflows.get(run.id)

    assert output == run.output == {"made": {"name": "Ann"}, "seen": [1, 2, 3]}
    assert (run.state, run.version, run.principal, run.started_by) == (RunState.FINISHED, "1", "service:runner", None)
    assert sorted(named(run.steps)) == [
        ("0", "make", "done"),
        ("1.0.0", "look", "done"),
        ("1.1.0", "look", "done"),
        ("1.2.0", "look", "done"),
    ]
    assert run.steps[0].tool == "p:make"
    assert run.steps[0].started_at <= run.steps[0].ended_at


async def test_what_is_done_is_told(make_host):
    @workflow(principal="runner")
    async def both(flow):
        await flow.call("look", {"n": 1})
        await flow.skipped("late", "there was no time")

    async with make_host(*TOOLS, both) as host:
        run = await host.workflows.start("both", principal="ann")
        await host.news.until("workflow:finished")
        told = [(one.type, getattr(one, "name", None), getattr(one, "state", None)) for one in host.news.told]
        records = [one async for one in _audited(host)]

    assert told == [
        ("workflow:started", None, None),
        ("workflow:step", "look", "done"),
        ("workflow:step", "late", "skipped"),
        ("workflow:finished", None, None),
    ]
    assert [(one.event, one.data["run"], one.data.get("by")) for one in records] == [
        ("workflow:started", run.id, "ann"),
        ("workflow:finished", run.id, None),
    ]


async def _audited(host):
    for record in await host.audit.records():
        if record.event.startswith("workflow:"):
            yield record


# -- people ------------------------------------------------------------------------------------------------------------


async def test_a_call_that_needs_approval_waits_in_the_inbox_and_holds_nothing(make_host, store_url):
    @workflow(principal="runner")
    async def mail(flow):
        return (await flow.call("send", {"to": "ann"})).output

    async with make_host(*TOOLS, mail, store=store_url) as host:
        run = await host.workflows.start("mail")
        await host.news.until("workflow:waiting")
        [proposal] = await host.approvals.pending()
        waiting = await host.workflows.get(run.id)
        assert DONE == []
        await host.approvals.approve(proposal.id)
        output = await host.workflows.result(run.id)
        steps = (await host.workflows.get(run.id)).steps

    assert (proposal.tool, proposal.principal.key) == ("p:send", "service:runner")
    assert (waiting.state, waiting.steps[0].state, waiting.steps[0].proposal) == ("waiting", "waiting", proposal.id)
    assert output == "ann"
    assert DONE == ["send ann"]
    assert steps[0].proposal == proposal.id


async def test_a_person_is_asked_and_answers(make_host):
    @workflow(principal="runner")
    async def ask(flow):
        said = await flow.approve("Go on?", details={"cost": 3})
        return said["by"]

    async with make_host(*TOOLS, ask) as host:
        run = await host.workflows.start("ask")
        await host.news.until("workflow:waiting")
        [proposal] = await host.approvals.pending()
        offered = [info.name for info in host.tools.list_available_tools()]
        await host.approvals.approve(proposal.id)
        by = await host.workflows.result(run.id)

    assert proposal.preview["text"] == "Go on?"
    assert proposal.preview["details"] == {"cost": 3}
    assert by == "service:runner"
    assert "workflow_approval" not in offered


async def test_what_a_person_refuses_fails_the_step(make_host):
    @workflow(principal="runner")
    async def ask(flow):
        try:
            await flow.approve("Go on?")
        except StepFailedError as error:
            return [error.type, str(error), error.step]

    async with make_host(*TOOLS, ask) as host:
        run = await host.workflows.start("ask")
        await host.news.until("workflow:waiting")
        [proposal] = await host.approvals.pending()
        await host.approvals.reject(proposal.id, "not today")
        kind, words, step = await host.workflows.result(run.id)

    assert (kind, step) == ("Refused", "approve")
    assert "not today" in words


async def test_a_question_that_expires_is_asked_again(make_host):
    @workflow(principal="runner")
    async def ask(flow):
        return (await flow.approve("Go on?"))["proposal"]

    now = [1_700_000_000.0]
    async with make_host(*TOOLS, ask, clock=lambda: now[0], proposal_ttl=60) as host:
        run = await host.workflows.start("ask")
        await host.news.until("workflow:waiting")
        [first] = await host.approvals.pending()
        now[0] += 100
        await host.news.until("workflow:waiting", count=2)
        [second] = await host.approvals.pending()
        await host.approvals.approve(second.id)
        output = await host.workflows.result(run.id)

    assert second.parent == first.id
    assert output == second.id


async def test_others_go_on_while_one_waits(make_host):
    @workflow(principal="runner")
    async def both(flow):
        calls = (flow.call("send", {"to": "x"}), flow.call("look", {"n": 1}), flow.wait_for("go"))
        sent, seen, said = await flow.gather(*calls)
        return [sent.output, seen.output, said]

    async with make_host(*TOOLS, both) as host:
        run = await host.workflows.start("both")
        await host.news.until("workflow:waiting")
        assert DONE == ["look 1"]
        await host.workflows.signal(run.id, "go", [1])
        await host.news.until("workflow:waiting", count=2)
        [proposal] = await host.approvals.pending()
        await host.approvals.approve(proposal.id)
        output = await host.workflows.result(run.id)

    assert output == ["x", 2, [1]]


async def test_guards_see_the_calls_of_a_workflow(make_host):
    @guardrail(stage="tool_call")
    async def no_eve(call, context):
        if call.arguments.get("name") == "eve":
            return GuardVerdict.block("not eve")
        return None

    @workflow(principal="runner")
    async def onboard(flow):
        await flow.call("make", {"name": "eve"}, retry=Retry(3, delay=0))

    async with make_host(*TOOLS, no_eve, onboard) as host:
        run = await host.workflows.start("onboard")
        with pytest.raises(WorkflowError) as caught:
            await host.workflows.result(run.id)

    assert caught.value.type == "GuardrailBlocked"
    assert DONE == []


# -- failing, undoing --------------------------------------------------------------------------------------------------


async def test_a_step_is_tried_again(make_host):
    tried = []

    async def flaky(word):
        tried.append(word)
        if len(tried) < 3:
            raise OSError("not yet")
        return word

    @workflow(principal="runner")
    async def patient(flow):
        return await flow.step(flaky, "x", retry=Retry(5, delay=0.001))

    async with make_host(patient) as host:
        run = await host.workflows.start("patient")
        output = await host.workflows.result(run.id)
        [step] = (await host.workflows.get(run.id)).steps

    assert (output, tried, step.attempts) == ("x", ["x", "x", "x"], 3)


async def test_what_is_not_to_be_tried_again_is_not(make_host):
    @workflow(principal="runner")
    async def once(flow):
        await flow.call("fail", {"why": "no"}, retry=Retry(5, delay=0, not_on=("ToolRaised",)))

    @workflow(principal="runner")
    async def again(flow):
        await flow.call("fail", {"why": "yes"}, retry=Retry(3, delay=0))

    async with make_host(*TOOLS, once, again) as host:
        for name in ("once", "again"):
            run = await host.workflows.start(name)
            with pytest.raises(WorkflowError):
                await host.workflows.result(run.id)

    assert ["fail no", *["fail yes"] * 3] == DONE


async def test_a_long_wait_between_attempts_holds_nothing(make_host):
    now = [1_700_000_000.0]

    @workflow(principal="runner")
    async def patient(flow):
        await flow.call("fail", {"why": "x"}, retry=Retry(2, delay=3600, max_delay=3600))

    async with make_host(*TOOLS, patient, clock=lambda: now[0]) as host:
        run = await host.workflows.start("patient")
        await host.news.until("workflow:waiting")
        now[0] += 3601
        await host.news.until("workflow:failed")
        [step] = (await host.workflows.get(run.id)).steps

    assert DONE == ["fail x", "fail x"]
    assert step.attempts == 2


async def test_a_failed_run_undoes_what_it_did_the_last_first(make_host):
    @workflow(principal="runner")
    async def onboard(flow):
        await flow.call("make", {"name": "a"}, undo=ToolCall("remove", {"name": "a"}))
        await flow.call("make", {"name": "b"}, undo=lambda made: ToolCall("remove", {"name": made.output["name"]}))
        await flow.call("fail", {"why": "no"})

    async with make_host(*TOOLS, onboard) as host:
        run = await host.workflows.start("onboard")
        with pytest.raises(WorkflowError, match="no"):
            await host.workflows.result(run.id)
        run = await host.workflows.get(run.id)

    assert DONE == ["make a", "make b", "fail no", "remove b", "remove a"]
    assert (run.state, run.error["type"]) == ("failed", "ToolRaised")
    assert [step.state for step in run.steps] == ["done", "done", "failed", "done", "done"]


async def test_what_can_not_be_undone_is_told(make_host):
    @workflow(principal="runner")
    async def onboard(flow):
        await flow.call("make", {"name": "a"}, undo=ToolCall("remove", {"name": "a"}))
        await flow.call("make", {"name": "b"}, undo=ToolCall("nothing", {}))
        raise KeyError("why")

    async with make_host(*TOOLS, onboard) as host:
        run = await host.workflows.start("onboard")
        await host.news.until("workflow:failed")
        run = await host.workflows.get(run.id)

    assert DONE == ["make a", "make b", "remove a"]
    assert run.error["type"] == "KeyError"
    assert [(one["name"], one["type"]) for one in run.error["not_undone"]] == [("make", "UnknownTool")]


async def test_a_cancelled_run_undoes_what_it_did(make_host, store_url):
    @workflow(principal="runner")
    async def onboard(flow):
        await flow.call("make", {"name": "a"}, undo=ToolCall("remove", {"name": "a"}))
        await flow.wait_for("never")

    async with make_host(*TOOLS, onboard, store=store_url) as host:
        run = await host.workflows.start("onboard")
        await host.news.until("workflow:waiting")
        await host.workflows.cancel(run.id, "changed my mind", by="ann")
        with pytest.raises(WorkflowError, match="cancelled"):
            await host.workflows.result(run.id)
        with pytest.raises(WorkflowError, match="is cancelled"):
            await host.workflows.cancel(run.id)
        found = await host.workflows.get(run.id)

    assert DONE == ["make a", "remove a"]
    assert found.state == "cancelled"


async def test_an_undo_that_needs_approval_waits_for_it(make_host):
    @workflow(principal="runner")
    async def onboard(flow):
        await flow.call("make", {"name": "a"}, undo=ToolCall("send", {"to": "sorry"}))
        raise ValueError("no")

    async with make_host(*TOOLS, onboard) as host:
        run = await host.workflows.start("onboard")
        await host.news.until("workflow:waiting")
        [proposal] = await host.approvals.pending()
        await host.approvals.approve(proposal.id)
        await host.news.until("workflow:failed")
        found = await host.workflows.get(run.id)

    assert DONE == ["make a", "send sorry"]
    assert (found.state, found.error["type"]) == ("failed", "ValueError")


async def test_a_run_that_takes_too_long_fails_and_undoes(make_host):
    now = [1_700_000_000.0]

    @workflow(principal="runner", timeout=100)
    async def slow(flow):
        await flow.call("make", {"name": "a"}, undo=ToolCall("remove", {"name": "a"}))
        await flow.wait_for("never")

    async with make_host(*TOOLS, slow, clock=lambda: now[0]) as host:
        run = await host.workflows.start("slow")
        await host.news.until("workflow:waiting")
        now[0] += 101
        await host.news.until("workflow:failed")
        found = await host.workflows.get(run.id)

    assert found.error["type"] == "Timeout"
    assert DONE == ["make a", "remove a"]


async def test_a_step_that_takes_too_long_fails(make_host):
    async def forever():
        await asyncio.Event().wait()

    @workflow(principal="runner")
    async def slow(flow):
        await flow.step(forever, timeout=0.01)

    async with make_host(slow) as host:
        run = await host.workflows.start("slow")
        with pytest.raises(WorkflowError) as caught:
            await host.workflows.result(run.id)

    assert caught.value.type == "Timeout"


# -- pausing, signals, times, runs of runs -----------------------------------------------------------------------------


async def test_a_paused_run_goes_on_when_it_is_resumed(make_host, store_url):
    @workflow(principal="runner")
    async def wait(flow):
        return await flow.wait_for("go")

    async with make_host(wait, store=store_url) as host:
        run = await host.workflows.start("wait")
        await host.news.until("workflow:waiting")
        paused = await host.workflows.pause(run.id)
        await host.workflows.signal(run.id, "go", {"n": 1})
        assert (await host.workflows.get(run.id)).state == "paused"
        await host.workflows.resume(run.id)
        output = await host.workflows.result(run.id)

    assert paused.state == "paused"
    assert output == {"n": 1}


async def test_a_running_run_is_paused_before_its_next_step(make_host):
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slow():
        begun.set()
        await goes_on.wait()

    @workflow(principal="runner")
    async def two(flow):
        await flow.step(slow)
        await flow.call("look", {"n": 1})

    async with make_host(*TOOLS, two) as host:
        run = await host.workflows.start("two")
        await begun.wait()
        await host.workflows.pause(run.id)
        goes_on.set()
        await host.news.until("workflow:paused")
        assert DONE == []
        await host.workflows.resume(run.id)
        await host.workflows.result(run.id)

    assert DONE == ["look 1"]


async def test_signals_are_taken_once_and_in_order(make_host):
    @workflow(principal="runner")
    async def three(flow):
        return [await flow.wait_for("n") for _ in range(3)]

    async with make_host(three) as host:
        run = await host.workflows.start("three")
        for n in range(3):
            await host.workflows.signal(run.id, "n", n)
        output = await host.workflows.result(run.id)

    assert output == [0, 1, 2]


async def test_a_signal_that_does_not_come_in_time(make_host):
    now = [1_700_000_000.0]

    @workflow(principal="runner")
    async def wait(flow):
        try:
            await flow.wait_for("go", timeout=100)
        except StepFailedError as error:
            return error.type

    async with make_host(wait, clock=lambda: now[0]) as host:
        run = await host.workflows.start("wait")
        await host.news.until("workflow:waiting")
        now[0] += 101
        output = await host.workflows.result(run.id)

    assert output == "Timeout"


async def test_days_pass_and_the_time_is_the_same_whenever_it_is_asked_again(make_host):
    now = [1_700_000_000.0]

    @workflow(principal="runner")
    async def late(flow):
        before = await flow.now()
        await flow.sleep(days=2, hours=1)
        return [before.isoformat(), (await flow.now() - before).total_seconds()]

    async with make_host(late, clock=lambda: now[0]) as host:
        run = await host.workflows.start("late")
        await host.news.until("workflow:waiting")
        now[0] += timedelta(days=2, hours=1).total_seconds()
        began, passed = await host.workflows.result(run.id)

    assert began == datetime.fromtimestamp(1_700_000_000, UTC).isoformat()
    assert passed == timedelta(days=2, hours=1).total_seconds()


async def test_a_run_starts_another_and_gets_its_output(make_host, store_url):
    @workflow()
    async def inner(flow, n):
        await flow.wait_for("go")
        return (await flow.call("look", {"n": n})).output

    @workflow(principal="runner")
    async def outer(flow):
        return await flow.run("inner", {"n": 5})

    async with make_host(*TOOLS, inner, outer, store=store_url) as host:
        run = await host.workflows.start("outer")
        await host.news.until("workflow:waiting", run.id)
        [child] = await host.workflows.list(workflow="inner")
        await host.workflows.signal(child.id, "go")
        output = await host.workflows.result(run.id)

    assert output == 6
    assert (child.parent, child.principal) == (run.id, "service:runner")


async def test_cancelling_a_run_cancels_those_that_it_started(make_host):
    @workflow()
    async def inner(flow):
        await flow.call("make", {"name": "in"}, undo=ToolCall("remove", {"name": "in"}))
        await flow.wait_for("never")

    @workflow(principal="runner")
    async def outer(flow):
        await flow.run("inner")

    async with make_host(*TOOLS, inner, outer) as host:
        run = await host.workflows.start("outer")
        await host.news.until("workflow:waiting", run.id)
        [child] = await host.workflows.list(workflow="inner")
        await host.news.until("workflow:waiting", child.id)
        await host.workflows.cancel(run.id)
        await host.news.until("workflow:cancelled", child.id)

    assert DONE == ["make in", "remove in"]


async def test_an_executor_executes_tasks(make_host):
    class Upper:
        async def execute(self, task, inputs, context):
            return {"task": task.upper(), "for": context.principal.key, **inputs}

    @workflow(principal="runner")
    async def loud(flow):
        return await flow.execute("upper", "hello", {"n": 1})

    async with make_host(Descriptor("workflow-executor", "upper", Upper()), loud) as host:
        run = await host.workflows.start("loud")
        output = await host.workflows.result(run.id)

    assert output == {"task": "HELLO", "for": "service:runner", "n": 1}


# -- who, and what is refused ------------------------------------------------------------------------------------------


async def test_whom_tools_are_called_for_where_nobody_is_named(make_host, caplog):
    @workflow()
    async def anybody(flow):
        return flow.principal

    @workflow(principal="ghost")
    async def haunted(flow):
        return [flow.principal, (await flow.call("secretly")).output]

    @tool(effect="read", required_access=["run"])
    async def secretly() -> str:
        """Say what not everybody may hear."""
        return "boo"

    async with make_host(anybody, haunted, secretly) as host:
        with pytest.raises(WorkflowError, match="did you mean 'ann'"):
            await host.workflows.start("anybody", principal="an")
        outputs = []
        for principal in (Principal("zoe"), None):
            run = await host.workflows.start("anybody", principal=principal)
            outputs.append(await host.workflows.result(run.id))
        run = await host.workflows.start("haunted", principal="ann")
        with pytest.raises(WorkflowError, match="no tool called 'secretly'"):
            await host.workflows.result(run.id)
        run = await host.workflows.start("haunted", principal=Principal("ghost", access={"run"}))
        seen = await host.workflows.result(run.id)

    assert outputs == ["zoe", Principal.system().key]
    assert "workflow 'anybody' is started without a principal" in caplog.text
    assert "its principal 'ghost' is not one of the manifest's" in caplog.text
    assert seen == ["ghost", "boo"]


async def test_who_starts_it_narrows_what_it_may(make_host):
    @workflow(principal="runner")
    async def onboard(flow):
        return (await flow.call("look", {"n": 1})).output

    async with make_host(*TOOLS, onboard) as host:
        for who, expected in (("ann", None), ("bob", "UnknownTool")):
            run = await host.workflows.start("onboard", principal=who)
            await host.news.until("workflow:failed" if expected else "workflow:finished", run.id)
            error = (await host.workflows.get(run.id)).error
            assert (error and error["type"]) == expected


async def test_what_can_not_be_started_is_refused(make_host):
    @workflow(principal="runner")
    async def onboard(flow, customer):
        return customer

    async with make_host(onboard) as host:
        start = host.workflows.start
        for name, inputs, words in (
            ("onbord", {}, "did you mean 'onboard'"),
            ("onboard", {}, "missing a required argument: 'customer'"),
            ("onboard", {"customer": 1, "x": 2}, "unexpected keyword argument 'x'"),
            ("onboard", {"customer": {1}}, "expected JSON"),
            ("onboard", {"customer": "x" * 1_000_001}, "at most 1,000,000"),
            ("onboard", [], "expected a mapping"),
        ):
            with pytest.raises(WorkflowError, match=words):
                await start(name, inputs)
        with pytest.raises(WorkflowError, match="no run"):
            await host.workflows.get("x")


async def test_the_same_key_is_the_same_run(make_host, store_url):
    @workflow(principal="runner")
    async def onboard(flow):
        await flow.call("make", {"name": "a"})

    async with make_host(*TOOLS, onboard, store=store_url) as host:
        first, second = await asyncio.gather(*(host.workflows.start("onboard", key="k") for _ in range(2)))
        await host.workflows.result(first.id)
        third = await host.workflows.start("onboard", key="k")
        listed = await host.workflows.list()

    assert first.id == second.id == third.id
    assert [one.id for one in listed] == [first.id]
    assert DONE == ["make a"]


async def test_what_a_step_gives_must_be_json_and_bounded(make_host):
    @workflow(principal="runner")
    async def odd(flow, what):
        return await flow.step({"set": lambda: {1}, "large": lambda: "x" * 1_000_001}[what])

    async with make_host(odd) as host:
        for what, kind in (("set", "NotJSON"), ("large", "TooLarge")):
            run = await host.workflows.start("odd", {"what": what})
            await host.news.until("workflow:failed", run.id)
            assert (await host.workflows.get(run.id)).error["type"] == kind


async def test_code_that_does_otherwise_the_second_time_is_found_out(make_host):
    steps = iter(["look", "make"])

    @workflow(principal="runner")
    async def fickle(flow):
        await flow.call(next(steps), {"n": 1})
        await flow.wait_for("go")

    async with make_host(*TOOLS, fickle) as host:
        run = await host.workflows.start("fickle")
        await host.news.until("workflow:waiting")
        await host.workflows.signal(run.id, "go")
        await host.news.until("workflow:failed")
        error = (await host.workflows.get(run.id)).error

    assert error["type"] == "Nondeterminism"
    assert "step 0 was call 'look' when the run began and is call 'make' now" in error["message"]
    assert DONE == ["look 1"]


async def test_a_schedule_starts_runs(make_host, store_url):
    now = [datetime(2026, 3, 2, 6, 59, tzinfo=UTC).timestamp()]

    @workflow(principal="runner")
    async def digest(flow, kind):
        return kind

    async with make_host(digest, store=store_url, clock=lambda: now[0]) as host:
        for missed in ("skip", "once", "all"):
            given = {"inputs": {"kind": missed}, "timezone": "Europe/Berlin", "missed": missed}
            made = await host.workflows.schedule(missed, "digest", "0 9 * * *", **given)
        now[0] = datetime(2026, 3, 2, 8, 0, 10, tzinfo=UTC).timestamp()
        await host.news.until("workflow:finished", count=3)
        now[0] = datetime(2026, 3, 5, 12, 0, tzinfo=UTC).timestamp()
        await host.news.until("workflow:finished", count=3 + 1 + 3)
        while any(one.next_at.day != 6 for one in await host.workflows.schedules()):
            await asyncio.sleep(0)
        runs = [run.inputs["kind"] for run in await host.workflows.list()]
        await host.workflows.unschedule("all")
        left = [one.id for one in await host.workflows.schedules()]

    assert made.next_at == datetime(2026, 3, 2, 8, tzinfo=UTC)
    assert {kind: runs.count(kind) for kind in runs} == {"skip": 1, "once": 2, "all": 4}
    assert left == ["once", "skip"]


async def test_schedules_that_can_not_be_kept_are_refused(make_host):
    @workflow(principal="runner")
    async def digest(flow):
        return None

    async with make_host(digest) as host:
        for words, given in (
            ("five fields", {"cron": "every day"}),
            ("five fields", {"cron": "* * * * * *"}),
            ("Europe/Berlin", {"cron": "0 9 * * *", "timezone": "Mars/Base"}),
            ("skip, once, all", {"cron": "0 9 * * *", "missed": "some"}),
        ):
            with pytest.raises(WorkflowError, match=words):
                await host.workflows.schedule("x", "digest", **given)
        with pytest.raises(WorkflowError, match="no schedule"):
            await host.workflows.unschedule("x")


def test_a_retry_says_what_is_wrong_with_it():
    assert [Retry(5, delay=1, backoff=3, max_delay=10).wait(n) for n in (1, 2, 3, 4)] == [1, 3, 9, 10]
    for bad in ({"attempts": 0}, {"attempts": True}, {"delay": -1}, {"backoff": 0.5}, {"delay": float("nan")}):
        with pytest.raises(ValueError, match="Retry"):
            Retry(**bad)
    assert attrs.asdict(Retry(not_on="X"))["not_on"] == ("X",)


async def test_without_dbos_it_is_said_what_to_install(make_host, monkeypatch):
    @workflow(principal="runner")
    async def quick(flow):
        return None

    def find_spec(name, *_):
        return None if name == "dbos" else importlib.machinery.PathFinder.find_spec(name)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    async with make_host(quick) as host:
        with pytest.raises(WorkflowError, match=r"pip install 'agentos-host\[workflows\]'"):
            await host.workflows.start("quick")
