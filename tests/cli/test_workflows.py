"""`agentos workflows`: list, start, show, draw, decide and schedule."""

import json
import signal
from xml.etree import ElementTree as ET

import pytest
from commanding import Project

PACK = '''
from agentos import PUBLIC, ExtensionPack, tool, workflow


@tool(effect="mutate", required_access=PUBLIC, intervention="never")
async def create_account(name: str) -> dict:
    """Create an account."""
    return {"id": f"a-{name}"}


@tool(effect="mutate", required_access=PUBLIC, intervention="never")
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    if to == "nobody":
        raise ValueError("there is no such address")
    return f"sent to {to}"


@workflow(version="3", principal="runner")
async def wait(flow, word: str = "go"):
    """Wait for a signal."""
    return {"got": await flow.wait_for(word)}


def create_extension_pack():
    return ExtensionPack("office", "1.0", [create_account, send_mail, wait])
'''
MANIFEST = """
mode = "auto"
store = "store.db"

[principals.runner]
kind = "service"
access = ["*"]

[[packs]]
module = "office.py"

[workflows.onboard]
version = "1"
description = "Make an account and tell."
principal = "runner"

[workflows.onboard.inputs]
required = ["customer"]
properties = { customer = { type = "string" }, n = { type = "integer", default = 1 } }

[[workflows.onboard.tasks]]
id = "account"
tool = "create_account"
arguments = { name = "${inputs.customer}" }

[[workflows.onboard.tasks]]
id = "tell"
tool = "send_mail"
arguments = { to = "${inputs.customer}", text = "${account.output.id} of ${inputs.n}" }

[workflows.ask]
version = "1"
principal = "runner"

[[workflows.ask.tasks]]
id = "ok"
human = "Go on?"
"""
WRONG = """
[workflows.wrong]
version = "1"

[[workflows.wrong.tasks]]
id = "a"
tool = "send_mial"
arguments = { to = "${b.output}" }
"""


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, MANIFEST, office=PACK)


def data(ended):
    return json.loads(ended.out)


def test_list_shows_workflows_and_runs(project):
    assert project.run("workflows", "start", "onboard", "customer=Ada").code == 0
    told = data(project.run("workflows", "list", "--json"))

    assert [(one["id"], one["version"], one["isData"], one["principal"]) for one in told["workflows"]] == [
        ("wait", "3", False, "runner"),
        ("onboard", "1", True, "runner"),
        ("ask", "1", True, "runner"),
    ]
    assert [(one["workflow"], one["state"], one["inputs"]) for one in told["runs"]] == [
        ("onboard", "finished", {"customer": "Ada", "n": 1})
    ]
    shown = project.run("workflows", "list", "--state", "failed").out
    assert "Make an account and tell." in shown
    assert "There are no runs." in shown


def test_start_waits_tells_the_steps_and_prints_the_output(project):
    done = project.run("workflows", "start", "onboard", "customer=Ada", "n=3")

    assert (done.code, json.loads(done.out)) == (0, {"tell": "sent to Ada"})
    assert done.err.index("✓ account") < done.err.index("✓ tell")


def test_a_run_that_fails_is_exit_code_1_and_says_which_task(project):
    done = project.run("workflows", "start", "onboard", "customer=nobody")

    assert done.code == 1
    assert "the task 'tell' failed" in done.err
    assert "✗ tell: failed, ToolRaised" in done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["onboard"], 2, "inputs.customer: missing; expected a string"),
        (["onboard", "customer=Ada", "n=x"], 2, "n: expected an integer, got 'x'"),
        (["onboard", "customer=Ada", "m=1"], 2, "inputs.m: unknown key"),
        (["onbord"], 1, "no workflow 'onbord' is in force; did you mean 'onboard'?"),
        (["onboard", "--args", "[1]"], 2, "expected a JSON object"),
        (["wrong", "--principal", "runner"], 3, "no tool 'send_mial' is there"),
        (["wrong"], 3, "no tool 'send_mial' is there"),
    ],
)
def test_what_can_not_be_started_is_told_with_its_code(tmp_path, words, code, said):
    done = Project(tmp_path, MANIFEST + WRONG, office=PACK).run("workflows", "start", *words)

    assert done.code == code
    assert said in done.err


def test_check_tells_everything_that_is_wrong(tmp_path):
    project = Project(tmp_path, MANIFEST + WRONG, office=PACK)
    done = project.run("workflows", "check", "--json")

    assert done.code == 1
    assert [one["path"] for one in data(done)["problems"]["wrong"]] == [
        *("tasks[0].arguments.to", "tasks[0].tool"),
    ]
    assert data(done)["problems"]["onboard"] == []
    assert project.run("workflows", "check", "onboard").out.strip() == "Nothing is wrong."


def test_a_run_that_asks_somebody_waits_and_goes_on_once_that_is_approved(project):
    done = project.run("workflows", "start", "ask")
    run = data(project.run("workflows", "list", "--state", "waiting", "--json"))["runs"][0]["id"]
    proposal = data(project.run("approvals", "list", "--json"))["proposals"][0]["id"]

    assert done.code == 4
    assert f"agentos approvals approve {proposal[:8]} --principal runner" in done.err
    assert "… ok  a person: Go on?  waiting" in project.run("workflows", "show", run[:8]).out
    assert project.run("approvals", "approve", proposal[:8], "--yes", "--principal", "runner").code == 0
    assert project.run("workflows", "follow", run[:8]).code == 0
    assert data(project.run("workflows", "show", run, "--json"))["state"] == "finished"


def test_signal_pause_resume_and_cancel(project):
    run = data(project.run("workflows", "start", "wait", "--no-wait", "--json"))["id"]
    other = data(project.run("workflows", "start", "wait", "--no-wait", "--json"))["id"]

    assert data(project.run("workflows", "pause", run[:8], "--json"))["state"] == "paused"
    assert project.run("workflows", "follow", run).code == 1
    assert data(project.run("workflows", "resume", run[:8], "--json"))["state"] == "queued"
    assert project.run("workflows", "signal", run[:8], "go", "--value", '{"n": 1}').code == 0
    assert json.loads(project.run("workflows", "follow", run).out) == {"got": {"n": 1}}
    assert project.run("workflows", "cancel", other[:8], "--reason", "enough").code == 0
    assert data(project.run("workflows", "show", other, "--json"))["state"] == "cancelled"
    assert project.run("workflows", "signal", run, "go").code == 1
    assert project.run("workflows", "signal", run, "go", "x", "--value", "1").code == 2
    assert project.run("workflows", "show", "zzzz").code == 1
    assert project.run("workflows", "show", "z").code == 2


def test_the_same_key_is_the_same_run(project):
    runs = [
        data(project.run("workflows", "start", "onboard", "customer=A", "--key", "k", "--json"))["id"] for _ in "ab"
    ]

    assert runs[0] == runs[1]


def test_graphs_of_workflows_and_runs(project, tmp_path):
    assert project.run("workflows", "graph", "onboard").out.splitlines() == [
        "onboard, version 1",
        "· account  create_account",
        "· tell  send_mail",
    ]
    run = data(project.run("workflows", "start", "onboard", "customer=Ada", "--json"))["id"]
    assert ":::done" in project.run("workflows", "graph", run[:8], "--format", "mermaid").out
    assert project.run("workflows", "graph", run, "--format", "svg", "--output", str(tmp_path / "run.svg")).code == 0
    assert ET.fromstring((tmp_path / "run.svg").read_text()).tag.endswith("svg")
    assert data(project.run("workflows", "graph", "onboard", "--json"))["graph"].startswith("onboard, version 1\n")
    of_function = project.run("workflows", "graph", "wait")
    assert (of_function.code, "only its runs have a graph" in of_function.err) == (1, True)


def test_schedules_come_and_go(project):
    made = project.run(
        "workflows", "schedule", "nightly", "onboard", "0 22 * * *", "customer=Ada", "--timezone", "Europe/Zurich"
    )
    found = data(project.run("workflows", "schedules", "--json"))["schedules"]

    assert made.code == 0
    assert [(one["id"], one["cron"], one["timezone"], one["inputs"]) for one in found] == [
        ("nightly", "0 22 * * *", "Europe/Zurich", {"customer": "Ada", "n": 1})
    ]
    assert project.run("workflows", "schedule", "x", "onboard", "never", "customer=Ada").code == 3
    assert project.run("workflows", "unschedule", "nightly").code == 0
    assert project.run("workflows", "schedules").out.strip() == "There are no schedules."
    assert project.run("workflows", "unschedule", "nightly").code == 1


def test_without_a_store_nothing_is_left_behind(tmp_path):
    project = Project(tmp_path, MANIFEST.replace('store = "store.db"', ""), office=PACK)

    assert project.run("workflows", "start", "onboard", "customer=Ada").code == 0
    assert project.run("workflows", "start", "onboard", "customer=Ada", "--no-wait").code == 3
    assert project.run("workflows", "schedule", "n", "onboard", "0 7 * * *", "customer=Ada").code == 3


def test_ctrl_c_leaves_the_run_going_and_says_how_to_look_at_it(project, started):
    child = started("workflows", "start", "wait", cwd=project.folder, env=project.env)
    child.until("waits for the signal 'go'")
    code, _, told = child.end(signal.SIGINT)
    run = data(project.run("workflows", "list", "--json"))["runs"][0]

    assert code == 130
    assert f"agentos workflows show {run['id'][:8]}" in told
    assert run["state"] in ("queued", "waiting")
    project.run("workflows", "signal", run["id"], "go", "at last")
    assert json.loads(project.run("workflows", "follow", run["id"]).out) == {"got": "at last"}
