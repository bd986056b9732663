"""Definitions that run: by the same engine, step by step, with the same records as functions."""

import contextlib

import pytest

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    ExtensionPack,
    Flow,
    Principal,
    Retry,
    RunState,
    Task,
    UndoCall,
    WorkflowDefinition,
    WorkflowError,
    tool,
    workflow,
)
from agentos.workflows.graphs import graph_of_run

pytestmark = pytest.mark.anyio
ANN = Principal("ann", access={"*"})


@pytest.fixture
def calls():
    return []


@pytest.fixture
def tools(calls):
    @tool(effect="mutate", required_access=PUBLIC, intervention="never")
    async def create_account(name: str, seats: int = 1) -> dict:
        """Create an account."""
        calls.append(("create", name, seats))
        return {"id": f"a-{name}", "seats": seats}

    @tool(effect="destructive", required_access=PUBLIC)
    async def delete_account(id: str) -> None:
        """Delete an account."""
        calls.append(("delete", id))

    @tool(effect="mutate", required_access=PUBLIC, intervention="never", idempotent=True)
    async def close_account(id: str) -> None:
        """Close an account."""
        calls.append(("close", id))

    @tool(effect="mutate", required_access=PUBLIC, intervention="never")
    async def send_mail(to: str, text: str) -> str:
        """Send a mail."""
        calls.append(("mail", to, text))
        if to == "nobody":
            raise ValueError("there is no such address")
        return f"sent to {to}"

    return [create_account, delete_account, close_account, send_mail]


class Billing:
    async def execute(self, task, inputs, context):
        return {"task": task.id, "for": context.principal.id, **inputs}


@workflow(version="1")
async def greet(flow: Flow, who: str) -> str:
    return f"hello {who}"


@pytest.fixture
async def host(tmp_path, tools):
    pack = ExtensionPack("office", "1.0", [*tools, Descriptor("workflow-executor", "billing", Billing()), greet])
    async with AgentOS(store=tmp_path / "store.db", mode="auto", extension_manifest=[pack]) as host:
        yield host


async def run(host, *tasks, inputs=None, given=None, **fields):
    """Start a definition of these tasks and return the run, once it is over."""
    properties = {name: {} for name in given or {}}
    made = WorkflowDefinition("any", "1", tasks, inputs=inputs or {"properties": properties}, **fields)
    await host.extensions.load_pack(ExtensionPack("defined", "1.0", [made]))
    started = await host.workflows.start("any", given or {}, principal=ANN)
    with contextlib.suppress(WorkflowError):
        await host.workflows.result(started.id)
    return await host.workflows.get(started.id)


def states(run):
    return {step.name: step.state for step in run.steps}


async def test_tasks_run_as_their_references_say_and_whole_values_keep_their_type(host, calls):
    over = await run(
        host,
        Task("tell", tool="send_mail", arguments={"to": "${inputs.who}", "text": "${account.output.seats} seats"}),
        Task("account", tool="create_account", arguments={"name": "${inputs.who}", "seats": "${inputs.seats}"}),
        Task("bill", executor="billing", arguments={"account": "${account.output}"}, needs=["tell"]),
        Task("hello", workflow="greet", arguments={"who": "${account.output.id}"}),
        given={"who": "bob", "seats": 3},
        output={"said": "${hello.output}", "bill": "${bill.output}", "read": "${tell.content}", "s": "${tell.state}"},
    )

    assert over.state == RunState.FINISHED
    assert calls == [("create", "bob", 3), ("mail", "bob", "3 seats")]
    assert over.output == {
        "said": "hello a-bob",
        "bill": {"task": "bill", "for": "ann", "account": {"id": "a-bob", "seats": 3}},
        "read": "sent to bob",
        "s": "succeeded",
    }
    assert states(over) == {"account": "done", "tell": "done", "bill": "done", "hello": "done"}


async def test_without_an_output_the_last_tasks_say_it(host):
    over = await run(
        host,
        Task("a", tool="send_mail", arguments={"to": "x", "text": "y"}),
        Task("b", tool="send_mail", arguments={"to": "z", "text": "${a.output}"}),
    )

    assert over.output == {"b": "sent to z"}


async def test_the_dependants_of_a_failed_task_are_skipped_with_the_reason_and_others_go_on(host, calls):
    over = await run(
        host,
        Task("first", tool="send_mail", arguments={"to": "nobody", "text": "x"}),
        Task("second", tool="send_mail", arguments={"to": "bob", "text": "${first.output}"}),
        Task("third", tool="send_mail", arguments={"to": "bob", "text": "z"}, needs=["second"]),
        Task("other", tool="create_account", arguments={"name": "eve"}),
    )
    reasons = {step.name: step.reason for step in over.steps if step.state == "skipped"}

    assert over.state == RunState.FAILED
    assert over.error["type"] == "ToolRaised"
    assert over.error["step"] == "first"
    assert "the task 'first' failed: " in over.error["message"]
    assert reasons == {
        "second": "the task 'first', which it needs, failed",
        "third": "the task 'second', which it needs, was skipped",
    }
    assert ("create", "eve", 1) in calls


async def test_a_task_that_asks_for_the_state_of_another_handles_its_failure(host, calls):
    over = await run(
        host,
        Task("mail", tool="send_mail", arguments={"to": "nobody", "text": "x"}),
        Task(
            "sorry",
            tool="send_mail",
            arguments={"to": "ops", "text": "${mail.error.type}: ${mail.error.message}"},
            when="${mail.state} == 'failed'",
        ),
        Task("never", tool="send_mail", arguments={"to": "x", "text": "x"}, when="${mail.state} == 'succeeded'"),
        output={"sorry": "${sorry.output}", "mail": "${mail.output}", "state": "${never.state}"},
    )

    assert over.state == RunState.FINISHED
    assert over.output == {"sorry": "sent to ops", "mail": None, "state": "skipped"}
    assert calls[-1][1] == "ops"
    assert "ToolRaised" in calls[-1][2]
    assert next(one.reason for one in over.steps if one.name == "never") == (
        "its condition does not hold: ${mail.state} == 'succeeded'"
    )


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (Task("x", tool="send_mail", arguments={"to": "${inputs.list[9]}", "text": "t"}), "BadReferenceError"),
        (Task("x", tool="send_mail", arguments={"to": "a", "text": "t"}, when="${inputs.list} > 3"),
         "BadConditionError"),
    ],
)  # fmt: skip
async def test_what_can_not_be_filled_in_fails_the_task_and_is_recorded(host, calls, task, kind):
    over = await run(host, task, given={"list": [1]})

    assert (over.state, over.error["type"], states(over)) == (RunState.FAILED, kind, {"x": "failed"})
    assert calls == []


async def test_what_was_done_is_undone_when_the_run_fails(host, calls):
    over = await run(
        host,
        Task(
            "account",
            tool="create_account",
            arguments={"name": "bob"},
            undo=UndoCall("close_account", {"id": "${account.output.id}"}),
        ),
        Task("tell", tool="send_mail", arguments={"to": "nobody", "text": "${account.output.id}"}),
    )

    assert over.state == RunState.FAILED
    assert calls == [("create", "bob", 1), ("mail", "nobody", "a-bob"), ("close", "a-bob")]
    assert (
        next(node.note for node in graph_of_run(over, host_definition(host)).nodes if node.id == "account") == "undone"
    )


def host_definition(host):
    return host.extensions.registry("workflow").get_active("any").payload


async def test_a_task_is_tried_again_as_it_says(host, calls):
    over = await run(
        host,
        Task("t", tool="send_mail", arguments={"to": "nobody", "text": "x"}, retry=Retry(3, delay=0)),
    )

    assert [call[0] for call in calls] == ["mail"] * 3
    assert over.steps[0].attempts == 3


async def test_the_time_of_a_run_is_recorded_once(host):
    over = await run(host, Task("t", tool="send_mail", arguments={"to": "a", "text": "${run.date} ${run.id}"}),
                     output=["${run.time}", "${run.workflow}", "${run.version}", "${run.principal}"])  # fmt: skip

    assert over.output[1:] == ["any", "1", "ann"]
    assert [one.kind for one in over.steps] == ["now", "call"]


async def test_nothing_starts_while_something_is_wrong_and_all_of_it_is_told(host, calls):
    made = WorkflowDefinition(
        "wrong",
        "1",
        [Task("a", tool="send_mial", arguments={}), Task("b", tool="send_mail", arguments={"to": "${c.output}"})],
        inputs={"properties": {"n": {"type": "integer"}}, "required": ["n"]},
    )
    await host.extensions.load_pack(ExtensionPack("defined", "1.0", [made]))
    with pytest.raises(WorkflowError) as caught:
        await host.workflows.start("wrong", {"m": 1}, principal=ANN)

    assert [one.path for one in caught.value.problems] == [
        *("tasks[0].tool", "tasks[1].arguments.to", "tasks[1].arguments", "inputs.m", "inputs.n"),
    ]
    assert "did you mean 'send_mail'?" in str(caught.value)
    assert [one.path for one in host.workflows.check("wrong")] == [one.path for one in caught.value.problems[:3]]
    assert await host.workflows.list() == []


async def test_a_tool_that_its_principal_may_not_call_is_not_there(host):
    @tool(effect="mutate", required_access="secret:write")
    async def hidden() -> None:
        """Do what few may do."""

    made = WorkflowDefinition("closed", "1", [Task("a", tool="hidden")])
    await host.extensions.load_pack(ExtensionPack("defined", "1.0", [hidden, made]))
    with pytest.raises(WorkflowError, match="no tool 'hidden' is there for the workflow's principal"):
        await host.workflows.start("closed", principal=Principal("bob", access=set()))


async def test_defaults_of_inputs_are_filled_in(host):
    inputs = {"properties": {"who": {"type": "string", "default": "eve"}}}
    over = await run(host, Task("t", tool="create_account", arguments={"name": "${inputs.who}"}), inputs=inputs)

    assert over.inputs == {"who": "eve"}


async def test_a_person_is_asked_and_everything_else_goes_on_meanwhile(tmp_path, tools, calls, news_of):
    made = WorkflowDefinition(
        "any",
        "1",
        [
            Task("account", tool="create_account", arguments={"name": "${inputs.who}"}),
            Task("ok", human="Welcome ${account.output.id}?", arguments={"seats": "${account.output.seats}"}),
            Task("tell", tool="send_mail", arguments={"to": "bob", "text": "approved by ${ok.output.by}"}),
            Task("beside", tool="send_mail", arguments={"to": "eve", "text": "${slow.output.id}"}),
            Task("slow", tool="create_account", arguments={"name": "slow"}),
        ],
        inputs={"properties": {"who": {"type": "string"}}},
    )
    packs = [ExtensionPack("office", "1.0", [*tools, made])]

    async with AgentOS(store=tmp_path / "store.db", mode="auto", extension_manifest=packs) as host:
        news = news_of(host)
        started = await host.workflows.start("any", {"who": "ann"}, principal=ANN)
        await news.until("workflow:waiting", started.id)
        waiting = states(await host.workflows.get(started.id))
        proposal = (await host.approvals.pending())[0]
    assert waiting == {"account": "done", "ok": "waiting", "slow": "done", "beside": "done"}
    assert proposal.arguments["text"] == "Welcome a-ann?"
    assert proposal.arguments["details"] == {"seats": 1}

    async with AgentOS(store=tmp_path / "store.db", mode="auto", extension_manifest=packs) as host:
        await host.approvals.approve(proposal.id, by=ANN)
        assert await host.workflows.result(started.id) == {"tell": "sent to bob", "beside": "sent to eve"}
    assert sorted(call[:2] for call in calls) == [
        *(("create", "ann"), ("create", "slow"), ("mail", "bob"), ("mail", "eve")),
    ]


async def test_a_run_goes_on_with_the_tasks_that_it_began_with(tmp_path, tools, calls, news_of):
    def manifest(version, text):
        ask, tell = (
            Task("ok", human="Go?"),
            Task("t", tool="send_mail", arguments={"to": "a", "text": text}, needs=["ok"]),
        )
        return [ExtensionPack("office", "1.0", [*tools, WorkflowDefinition("any", version, [ask, tell])])]

    async with AgentOS(store=tmp_path / "store.db", mode="auto", extension_manifest=manifest("1", "old")) as host:
        news = news_of(host)
        started = await host.workflows.start("any", principal=ANN)
        await news.until("workflow:waiting", started.id)
        proposal = (await host.approvals.pending())[0]
    for version in ("1", "2"):
        async with AgentOS(
            store=tmp_path / "store.db", mode="auto", extension_manifest=manifest(version, "new")
        ) as host:
            if version == "2":
                await host.approvals.approve(proposal.id, by=ANN)
                await host.workflows.result(started.id)

    assert calls == [("mail", "a", "old")]


async def test_a_workflow_of_the_manifest_runs(tmp_path, tools, calls):
    manifest = {
        "packs": [{"factory": lambda: ExtensionPack("office", "1.0", tools)}],
        "principals": {"runner": {"kind": "service", "access": ["*"]}},
        "workflows": {
            "welcome": {
                "version": "1",
                "principal": "runner",
                "inputs": {"properties": {"who": {"type": "string"}}, "required": ["who"]},
                "tasks": [{"id": "mail", "tool": "send_mail", "arguments": {"to": "${inputs.who}", "text": "hi"}}],
            }
        },
    }
    async with AgentOS(store=tmp_path / "store.db", mode="auto", extension_manifest=manifest) as host:
        started = await host.workflows.start("welcome", {"who": "bob"})
        assert await host.workflows.result(started.id) == {"mail": "sent to bob"}
        assert (started.principal, host.extensions.packs()[-1].name) == ("service:runner", "manifest/workflows")


async def test_a_workflow_that_another_one_runs_and_that_fails_fails_the_task(host):
    over = await run(
        host,
        Task("hello", workflow="greet", arguments={"whom": "${inputs.x}"}),
        Task("after", tool="create_account", arguments={"name": "x"}, when="${hello.state} == 'failed'"),
        given={"x": 1},
    )

    assert states(over) == {"hello": "failed", "after": "done"}
    assert over.state == RunState.FINISHED


async def test_cancelling_undoes_what_was_done(host, calls, news_of):
    made = WorkflowDefinition(
        "any",
        "1",
        [
            Task(
                "account",
                tool="create_account",
                arguments={"name": "bob"},
                undo=UndoCall("close_account", {"id": "${account.output.id}"}),
            ),
            Task("ok", human="Go on with ${account.output.id}?"),
        ],
    )
    await host.extensions.load_pack(ExtensionPack("defined", "1.0", [made]))
    news = news_of(host)
    started = await host.workflows.start("any", principal=ANN)
    await news.until("workflow:waiting", started.id)
    await host.workflows.cancel(started.id)
    with pytest.raises(WorkflowError):
        await host.workflows.result(started.id)

    assert calls == [("create", "bob", 1), ("close", "a-bob")]
