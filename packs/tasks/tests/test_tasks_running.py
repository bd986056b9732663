"""Running tasks through a host: when they may, what is called, for whom, and what becomes of them."""

import asyncio
import contextlib
import sqlite3

import pytest
from agentos_pack_common import sqlite
from agentos_pack_tasks import records, runs
from agentos_pack_tasks.arguments import Edit, New
from agentos_pack_tasks.values import Actor

from agentos import ToolCall, ToolResult


@pytest.fixture
def ran(call):
    """Return a function that runs a task at its present version, and returns the result."""

    async def running(host, id, principal=None):
        version = (await call(host, "task_view", principal, id=id)).output["version"]
        return await call(host, "task_run", principal, id=id, version=version)

    return running


@pytest.fixture
def view(call):
    async def viewing(host, id, principal=None):
        return (await call(host, "task_view", principal, id=id)).output

    return viewing


# -- without a tool ----------------------------------------------------------------------------------------------


async def test_a_task_without_a_tool_is_marked_as_running(hosting, done, ran, view, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="Water the plants")
        result = await ran(host, 1)
        task = await view(host, 1)

    assert (result.output["status"], result.output["called"], result.output["version"]) == ("running", None, 2)
    assert (task["status"], task["runs"], workshop.made) == ("running", 1, [])
    assert task["started_at"] is not None


async def test_what_runs_is_ended_by_an_edit(hosting, done, ran, view):
    async with hosting() as host:
        await done(host, "task_create", title="Water the plants")
        await ran(host, 1)
        await done(host, "task_edit", id=1, version=2, status="done", result="they were thirsty")
        task = await view(host, 1)

    assert (task["status"], task["result"]) == ("done", "they were thirsty")


# -- when it may -------------------------------------------------------------------------------------------------


async def test_a_task_is_not_run_while_dependencies_are_open(hosting, done, ran, view, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="one")
        await done(host, "task_create", title="two")
        await done(host, "task_create", title="three", depends_on=[1, 2], tool="echo", arguments={"text": "a"})
        await done(host, "task_edit", id=1, version=1, status="done")
        result = await ran(host, 3)
        task = await view(host, 3)

    assert result.error.details == {"exception": "BlockedError"}
    assert "task 3 can't be run while what it depends on is not done: 2; finish that first" in result.content
    assert (task["status"], task["version"], workshop.made) == ("open", 1, [])


async def test_a_task_is_not_run_while_a_dependency_is_running(hosting, done, ran):
    async with hosting() as host:
        await done(host, "task_create", title="one")
        await done(host, "task_create", title="two", depends_on=[1])
        await ran(host, 1)

        assert "not done: 1" in (await ran(host, 2)).content


async def test_a_task_is_run_when_its_dependencies_are_done(hosting, done, ran):
    async with hosting() as host:
        await done(host, "task_create", title="one", tool="echo", arguments={"text": "a"})
        await done(host, "task_create", title="two", depends_on=[1], tool="echo", arguments={"text": "b"})
        results = [await ran(host, 1), await ran(host, 2)]

    assert [result.output["status"] for result in results] == ["done", "done"]


async def test_a_task_is_run_once(hosting, done, ran, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="one", tool="echo", arguments={"text": "a"})
        await ran(host, 1)
        again = await ran(host, 1)

    assert "task 1 is done already; task_edit with status open lets it be run again" in again.content
    assert len(workshop.made) == 1


async def test_a_run_for_another_version_is_refused(hosting, done, call, workshop):
    """What a run calls is part of a version: nothing else is called than what was looked at."""
    async with hosting() as host:
        await done(host, "task_create", title="one", tool="echo", arguments={"text": "a"})
        await done(host, "task_edit", id=1, version=1, tool="post")
        result = await call(host, "task_run", id=1, version=1)

    assert result.error.details == {"exception": "StaleError"}
    assert workshop.made == []


async def test_of_many_runs_at_once_one_calls_the_tool(hosting, done, call, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="one", tool="post", arguments={"text": "a"})
        results = await asyncio.gather(*(call(host, "task_run", id=1, version=1) for _ in range(8)))

    assert sum(result.success for result in results) == 1
    assert len(workshop.made) == 1


# -- what is called ----------------------------------------------------------------------------------------------


async def test_the_tool_is_called_and_its_result_kept(hosting, done, ran, view, workshop, people):
    async with hosting() as host:
        await done(host, "task_create", people.ann, title="Post it", tool="post", arguments={"text": "hello"})
        result = await ran(host, 1, people.ann)
        task = await view(host, 1, people.ann)

    assert result.success
    assert result.output == {
        "id": 1,
        "version": 3,
        "title": "Post it",
        "status": "done",
        "called": "post",
        "result": "posted hello",
        "result_truncated": False,
        "problem": None,
        "proposal": None,
        "kept": True,
    }
    assert (task["status"], task["result"], task["version"], task["runs"]) == ("done", "posted hello", 3, 1)
    assert workshop.made == [("post", "hello", "ann")]


async def test_a_long_result_is_cut_and_says_so(hosting, done, ran, view):
    async with hosting() as host:
        await done(host, "task_create", title="long", tool="repeat", arguments={"text": "x" * 1_000, "times": 17})
        await ran(host, 1)
        task = await view(host, 1)

    assert (len(task["result"]), task["result_truncated"]) == (runs.MAX_RESULT, True)


async def test_a_result_is_kept_without_hidden_characters(hosting, done, ran, view):
    async with hosting() as host:
        await done(host, "task_create", title="hidden", tool="echo", arguments={"text": "a\u202eb\u200bc"})
        await ran(host, 1)

        assert (await view(host, 1))["result"] == "abc"


async def test_a_task_can_have_another_task_created(hosting, done, ran, view):
    async with hosting() as host:
        arguments = {"title": "made by a task"}
        await done(host, "task_create", title="make one", tool="task_create", arguments=arguments)
        await ran(host, 1)

        assert (await view(host, 2))["title"] == "made by a task"


async def test_a_task_that_runs_itself_does_not(hosting, done, ran, view):
    async with hosting() as host:
        await done(host, "task_create", title="again", tool="task_run", arguments={"id": 1, "version": 2})
        result = await ran(host, 1)

    assert "task 1 is running since" in result.content


# -- when it fails -----------------------------------------------------------------------------------------------


async def test_a_task_whose_tool_fails_is_open_again(hosting, done, ran, view):
    async with hosting() as host:
        await done(host, "task_create", title="fails", tool="fail", arguments={"text": "no luck"})
        result = await ran(host, 1)
        task = await view(host, 1)

    assert (result.success, result.error.type) == (False, "ToolRaised")
    assert "fail, called for task 1: ValueError: no luck. The task is open again; the tool may have" in result.content
    assert (task["status"], task["problem"], task["version"]) == ("open", "ToolRaised: ValueError: no luck", 3)
    assert (task["started_at"], task["ready"]) == (None, True)


async def test_a_task_can_be_mended_and_run_again(hosting, done, ran, view):
    async with hosting() as host:
        await done(host, "task_create", title="fails", tool="fail", arguments={"text": "no luck"})
        await ran(host, 1)
        await done(host, "task_edit", id=1, version=3, tool="echo")
        await ran(host, 1)
        task = await view(host, 1)

    assert (task["status"], task["problem"], task["result"], task["runs"]) == ("done", None, "no luck", 2)


@pytest.mark.parametrize(
    ("named", "arguments", "error"),
    [
        ("ecko", {"text": "a"}, "UnknownTool"),
        ("echo", {"txt": "a"}, "InvalidArguments"),
        ("echo", {"text": 5}, "InvalidArguments"),
    ],
)
async def test_a_call_that_never_reached_its_tool_says_so(hosting, done, ran, view, named, arguments, error):
    async with hosting() as host:
        await done(host, "task_create", title="wrong", tool=named, arguments=arguments)
        result = await ran(host, 1)
        task = await view(host, 1)

    assert result.error.type == error
    assert "Nothing was done, and the task is open again." in result.content
    assert (task["status"], task["problem"].partition(":")[0]) == ("open", error)


async def test_the_output_of_a_failed_run_has_the_task(hosting, done, ran):
    async with hosting() as host:
        await done(host, "task_create", title="fails", tool="fail", arguments={"text": "no luck"})
        result = await ran(host, 1)

    assert (result.output["version"], result.output["status"], result.output["called"]) == (3, "open", "fail")
    assert result.error.details == {"task": 1, "version": 3}


# -- for whom ----------------------------------------------------------------------------------------------------


async def test_a_tool_that_its_owner_may_not_call_is_not_called(hosting, done, ran, people, workshop):
    async with hosting() as host:
        await done(host, "task_create", people.tim, title="sneak", tool="post", arguments={"text": "a"})
        result = await ran(host, 1, people.tim)

    assert result.error.type == "UnknownTool"
    assert workshop.made == []


async def test_the_system_does_not_lend_its_rights(hosting, done, ran, people, workshop):
    async with hosting() as host:
        await done(host, "task_create", people.tim, title="sneak", tool="post", arguments={"text": "a"})
        result = await ran(host, 1)

    assert "belongs to user:tim and would call post with your rights; its owner has to run it" in result.content
    assert workshop.made == []


async def test_a_tool_that_the_host_denies_is_not_called(hosting, done, ran, workshop):
    async with hosting(deny=["workshop:post"]) as host:
        await done(host, "task_create", title="denied", tool="post", arguments={"text": "a"})
        result = await ran(host, 1)

    assert result.error.type in ("Refused", "UnknownTool")
    assert workshop.made == []


# -- approval ----------------------------------------------------------------------------------------------------


async def test_a_tool_that_needs_approval_waits_and_its_task_stays_running(hosting, done, ran, view, people, workshop):
    async with hosting() as host:
        await done(host, "task_create", people.ann, title="wipe", tool="wipe", arguments={"text": "all"})
        result = await ran(host, 1, people.ann)
        task = await view(host, 1, people.ann)
        again = await ran(host, 1, people.ann)

    assert result.error.type == "ApprovalRequired"
    assert result.error.details["proposal_id"] == task["proposal"]
    assert "token" not in result.error.details
    assert (task["status"], workshop.made) == ("running", [])
    assert f"waits for approval as proposal {task['proposal']}; when that is over, task_edit" in again.content


async def test_what_waited_is_approved_by_itself_and_then_written_down(hosting, done, ran, view, people, workshop):
    async with hosting() as host:
        await done(host, "task_create", people.ann, title="wipe", tool="wipe", arguments={"text": "all"})
        proposal = (await ran(host, 1, people.ann)).error.details["proposal_id"]
        wiped = await host.approvals.approve(proposal, by=people.ann)
        await done(host, "task_edit", people.ann, id=1, version=3, status="done", result=wiped.content)
        task = await view(host, 1, people.ann)

    assert workshop.made == [("wipe", "all")]
    assert (task["status"], task["result"], task["proposal"]) == ("done", "wiped", None)


async def test_the_proposal_is_for_the_tool_and_shows_its_arguments(hosting, done, ran, people):
    async with hosting() as host:
        await done(host, "task_create", people.ann, title="wipe", tool="wipe", arguments={"text": "all"})
        waiting = await ran(host, 1, people.ann)
        proposal = await host.approvals.describe(waiting.error.details["proposal_id"])

    assert (proposal.tool, dict(proposal.arguments), proposal.principal.id) == ("workshop:wipe", {"text": "all"}, "ann")


async def test_running_a_task_whose_tool_only_reads_needs_no_approval(hosting, done, ran):
    async with hosting(mode="approve") as host:
        await done(host, "task_create", title="read", tool="echo", arguments={"text": "a"})

        assert (await ran(host, 1)).output["status"] == "done"


async def test_running_a_task_asks_once_where_its_tool_asks(hosting, done, ran):
    async with hosting(mode="approve") as host:
        await done(host, "task_create", title="post", tool="post", arguments={"text": "a"})
        await ran(host, 1)
        pending = await host.approvals.pending()

    assert [proposal.tool for proposal in pending] == ["workshop:post"]


async def test_starting_a_task_without_a_tool_needs_approval(hosting, done, ran, view):
    async with hosting(mode="approve") as host:
        await done(host, "task_create", title="by hand")
        asked = await ran(host, 1)
        proposal = await host.approvals.describe(asked.error.details["proposal_id"])
        before = (await view(host, 1))["status"]
        await host.approvals.approve(proposal.id)
        after = (await view(host, 1))["status"]

    assert proposal.preview == {
        "would": "mark task 1 'by hand' (open, version 1) as running",
        "details": ["it names no tool, so nothing is called"],
    }
    assert (before, after) == ("open", "running")


async def test_nobody_is_asked_about_a_task_that_can_not_be_run(hosting, done, ran):
    async with hosting(mode="approve") as host:
        await done(host, "task_create", title="one")
        await done(host, "task_create", title="two", depends_on=[1])

        assert (await ran(host, 2)).error.details == {"exception": "BlockedError"}


async def test_where_nobody_can_be_asked_a_tool_that_changes_something_is_refused(hosting, done, ran, view, path):
    async with hosting() as host:
        await done(host, "task_create", title="post", tool="post", arguments={"text": "a"})

    async with hosting(mode="unattended") as host:
        result = await ran(host, 1)
        task = await view(host, 1)

    assert (result.error.type, task["status"]) == ("Refused", "open")
    assert task["problem"].startswith("Refused: ")


# -- when it is cut off ------------------------------------------------------------------------------------------


async def test_a_run_that_is_cancelled_leaves_its_task_running(hosting, done, ran, view, workshop):
    """Nobody knows what the tool has done by then: it must not be called again before somebody has looked."""
    async with hosting() as host:
        await done(host, "task_create", title="slow", tool="slow", arguments={"text": "a"})
        running = asyncio.create_task(host.tools.process_tool_call(ToolCall("task_run", {"id": 1, "version": 1}, "c1")))
        await workshop.begun.wait()
        await host.tools.cancel("c1")
        result = await running
        task = await view(host, 1)
        again = await ran(host, 1)

    assert (result.error.type, task["status"]) == ("Cancelled", "running")
    assert (
        "its call of slow has not come back; if that call is over, see what it has done, then task_edit"
        in again.content
    )


async def test_a_task_that_was_cut_off_can_be_opened_and_run_again(hosting, done, ran, view, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="slow", tool="slow", arguments={"text": "a"})
        running = asyncio.create_task(host.tools.process_tool_call(ToolCall("task_run", {"id": 1, "version": 1}, "c1")))
        await workshop.begun.wait()
        await host.tools.cancel("c1")
        await running
        await done(host, "task_edit", id=1, version=2, status="open")
        workshop.gate.set()
        await ran(host, 1)

        assert (await view(host, 1))["status"] == "done"


async def test_a_task_is_still_running_after_a_restart(hosting, done, ran, view):
    async with hosting() as host:
        await done(host, "task_create", title="by hand")
        await ran(host, 1)

    async with hosting() as host:
        assert (await view(host, 1))["status"] == "running"


async def test_what_a_run_came_to_is_not_kept_in_a_task_that_was_settled_meanwhile(hosting, done, view, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="slow", tool="slow", arguments={"text": "late"})
        running = asyncio.create_task(host.tools.process_tool_call(ToolCall("task_run", {"id": 1, "version": 1})))
        await workshop.begun.wait()
        await done(host, "task_edit", id=1, version=2, status="done", result="by hand")
        workshop.gate.set()
        result = await running
        task = await view(host, 1)

    assert (result.output["kept"], result.output["result"], result.output["status"]) == (False, "late", "done")
    assert (task["result"], task["version"]) == ("by hand", 3)


async def test_what_a_run_came_to_is_told_even_if_its_task_is_gone(hosting, done, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="slow", tool="slow", arguments={"text": "late"})
        running = asyncio.create_task(host.tools.process_tool_call(ToolCall("task_run", {"id": 1, "version": 1})))
        await workshop.begun.wait()
        await done(host, "task_edit", id=1, version=2, status="open")
        await done(host, "task_delete", id=1, version=3)
        workshop.gate.set()
        result = await running

    assert (result.output["kept"], result.output["result"]) == (False, "late")


async def test_a_failure_of_a_run_that_was_settled_meanwhile_changes_nothing(hosting, done, view, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="slow", tool="slow_to_fail", arguments={"text": "late"})
        running = asyncio.create_task(host.tools.process_tool_call(ToolCall("task_run", {"id": 1, "version": 1})))
        await workshop.begun.wait()
        await done(host, "task_edit", id=1, version=2, status="done")
        workshop.gate.set()
        result = await running
        task = await view(host, 1)

    assert "late. The task was changed meanwhile and does not have this." in result.content
    assert (task["status"], task["problem"]) == ("done", None)


async def test_an_earlier_run_does_not_end_a_later_one(book):
    answer, actor = ToolResult.ok("the first"), Actor("user:ann")
    await book.write(lambda db: records.add(db, New(title="x", tool="slow"), actor, 10))
    first = await book.write(lambda db: runs.start(db, 1, 1, actor))
    await book.write(lambda db: records.edit(db, Edit(id=1, version=2, status="open"), actor))
    await book.write(lambda db: runs.start(db, 1, 3, actor))
    ran = await book.write(lambda db: runs.settle(db, first, answer, actor))
    task = await book.read(lambda db: records.get(db, 1, actor))

    assert (ran.kept, ran.result, ran.version) == (False, "the first", 4)
    assert (task.status, task.result, task.runs) == ("running", None, 2)


async def test_a_title_can_change_while_a_tool_runs(hosting, done, view, workshop):
    async with hosting() as host:
        await done(host, "task_create", title="slow", tool="slow", arguments={"text": "late"})
        running = asyncio.create_task(host.tools.process_tool_call(ToolCall("task_run", {"id": 1, "version": 1})))
        await workshop.begun.wait()
        await done(host, "task_edit", id=1, version=2, title="slower")
        workshop.gate.set()
        result = await running

    assert (result.output["title"], result.output["status"], result.output["version"]) == ("slower", "done", 4)
    assert result.output["kept"]


async def test_a_result_that_can_not_be_kept_is_not_lost_in_silence(hosting, done, view, workshop, path, monkeypatch):
    async with hosting() as host:
        await done(host, "task_create", title="slow", tool="slow", arguments={"text": "late"})
        running = asyncio.create_task(host.tools.process_tool_call(ToolCall("task_run", {"id": 1, "version": 1})))
        await workshop.begun.wait()
        monkeypatch.setattr(sqlite, "PATIENCE", 0.1)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as somebody_else:
            somebody_else.execute("BEGIN IMMEDIATE")
            workshop.gate.set()
            result = await running
        task = await view(host, 1)

    assert "slow succeeded, but task 1 stays running, because the database 'tasks.db' is busy" in result.content
    assert (task["status"], task["runs"]) == ("running", 1)
