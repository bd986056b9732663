"""Many tasks in one call: each done or refused by itself, and all told in the order asked."""

import pytest


@pytest.fixture
def view(call):
    async def viewing(host, id):
        return (await call(host, "task_view", id=id)).output

    return viewing


def numbers(output):
    return [one["output"] and one["output"]["id"] for one in output["results"]]


def errors(output):
    return [one.get("error", {}).get("type") for one in output["results"]]


# -- creating ----------------------------------------------------------------------------------------------------


async def test_tasks_created_together_depend_on_each_other_by_keys(hosting, done, view):
    tasks = [
        {"title": "Go", "depends_on_keys": ["book", "pack"]},
        {"title": "Book", "key": "book", "depends_on_keys": ["plan"]},
        {"title": "Pack", "key": "pack"},
        {"title": "Plan", "key": "plan"},
    ]
    async with hosting() as host:
        output = await done(host, "task_create_many", tasks=tasks)
        ids = dict(zip(["Go", "Book", "Pack", "Plan"], numbers(output), strict=True))
        needs = {title: {need["title"] for need in (await view(host, id))["depends_on"]} for title, id in ids.items()}

    assert (output["succeeded"], output["failed"]) == (4, 0)
    assert [one["output"]["title"] for one in output["results"]] == ["Go", "Book", "Pack", "Plan"]
    assert needs == {"Go": {"Book", "Pack"}, "Book": {"Plan"}, "Pack": set(), "Plan": set()}


async def test_keys_and_numbers_can_be_mixed(hosting, done, view):
    async with hosting() as host:
        await done(host, "task_create", title="there already")
        tasks = [{"title": "a", "key": "a"}, {"title": "b", "depends_on": [1], "depends_on_keys": ["a"]}]
        output = await done(host, "task_create_many", tasks=tasks)
        task = await view(host, numbers(output)[1])

    assert [need["title"] for need in task["depends_on"]] == ["there already", "a"]


async def test_a_batch_with_failures_is_a_partial_failure(hosting, call):
    tasks = [{"title": "good"}, {"title": "bad", "depends_on": [99]}, {"title": "good too"}]
    async with hosting() as host:
        result = await call(host, "task_create_many", tasks=tasks)

    assert (result.success, result.error.type) == (False, "PartialFailure")
    assert result.error.details == {"succeeded": 2, "failed": 1}
    assert (result.output["succeeded"], result.output["failed"]) == (2, 1)
    assert errors(result.output) == [None, "UnknownTaskError", None]
    assert result.output["results"][1] == {
        "success": False,
        "output": None,
        "error": {
            "type": "UnknownTaskError",
            "message": "tasks[1]: depends_on: there is no task 99; task_list shows those that there are",
        },
    }


async def test_what_succeeded_in_a_partial_failure_stays(hosting, call):
    async with hosting() as host:
        await call(host, "task_create_many", tasks=[{"title": "good"}, {"title": "bad", "depends_on": [99]}])
        listed = (await call(host, "task_list")).output

    assert [line["title"] for line in listed["tasks"]] == ["good"]


async def test_a_cycle_of_keys_is_refused_and_named(hosting, call):
    tasks = [
        {"title": "a", "key": "a", "depends_on_keys": ["c"]},
        {"title": "b", "key": "b", "depends_on_keys": ["a"]},
        {"title": "c", "key": "c", "depends_on_keys": ["b"]},
        {"title": "d", "depends_on_keys": ["c"]},
        {"title": "e"},
    ]
    async with hosting() as host:
        output = (await call(host, "task_create_many", tasks=tasks)).output

    assert errors(output) == ["CycleError", "CycleError", "CycleError", "TaskError", None]
    assert "a cycle, 'a' -> 'c' -> 'b' -> 'a'" in output["results"][0]["error"]["message"]
    assert "'c' was not created, so this was not either" in output["results"][3]["error"]["message"]


async def test_a_task_can_not_depend_on_its_own_key(hosting, call):
    async with hosting() as host:
        result = await call(host, "task_create_many", tasks=[{"title": "a", "key": "a", "depends_on_keys": ["a"]}])

    assert "'a' -> 'a'" in result.output["results"][0]["error"]["message"]


async def test_what_depends_on_a_refused_task_is_refused(hosting, call):
    tasks = [
        {"title": "c", "depends_on_keys": ["b"]},
        {"title": "b", "key": "b", "depends_on_keys": ["a"]},
        {"title": "a", "key": "a", "depends_on": [99]},
    ]
    async with hosting() as host:
        output = (await call(host, "task_create_many", tasks=tasks)).output

    assert (output["succeeded"], errors(output)) == (0, ["TaskError", "TaskError", "UnknownTaskError"])


async def test_an_unknown_key_is_refused(hosting, call):
    async with hosting() as host:
        result = await call(host, "task_create_many", tasks=[{"title": "a", "depends_on_keys": ["b"]}])

    assert "no task of this call has the key 'b'; depends_on takes numbers" in result.content


async def test_a_key_given_twice_refuses_the_whole_call(hosting, call):
    async with hosting() as host:
        result = await call(host, "task_create_many", tasks=[{"title": "a", "key": "k"}, {"title": "b", "key": "k"}])

        assert "tasks: the key 'k' is given more than once" in result.content
        assert (await call(host, "task_list")).output["total"] == 0


async def test_the_limit_holds_within_a_batch(hosting, call):
    async with hosting(options={"maxTasks": 2}) as host:
        output = (await call(host, "task_create_many", tasks=[{"title": str(n)} for n in range(4)])).output

    assert errors(output) == [None, None, "TaskError", "TaskError"]


# -- editing -----------------------------------------------------------------------------------------------------


async def test_edits_are_made_one_after_another(hosting, call, done):
    """The second edit is possible only because of the first."""
    async with hosting() as host:
        await done(
            host, "task_create_many", tasks=[{"title": "a", "key": "a"}, {"title": "b", "depends_on_keys": ["a"]}]
        )
        edits = [{"id": 1, "version": 1, "status": "done"}, {"id": 2, "version": 1, "status": "done"}]
        output = await done(host, "task_edit_many", edits=edits)

    assert [one["output"]["status"] for one in output["results"]] == ["done", "done"]


async def test_each_edit_is_made_or_refused_by_itself(hosting, call, done):
    async with hosting() as host:
        await done(host, "task_create_many", tasks=[{"title": "a"}, {"title": "b"}, {"title": "c"}])
        edits = [
            {"id": 1, "version": 9, "title": "x"},
            {"id": 2, "version": 1, "title": "y"},
            {"id": 3, "version": 1, "depends_on": [3]},
            {"id": 4, "version": 1, "title": "z"},
        ]
        result = await call(host, "task_edit_many", edits=edits)
        titles = [line["title"] for line in (await call(host, "task_list")).output["tasks"]]

    assert result.error.type == "PartialFailure"
    assert errors(result.output) == ["StaleError", None, "CycleError", "UnknownTaskError"]
    assert titles == ["a", "y", "c"]


async def test_a_task_named_twice_refuses_the_whole_call(hosting, call, done):
    async with hosting() as host:
        await done(host, "task_create", title="a")
        edits = [{"id": 1, "version": 1, "title": "x"}, {"id": 1, "version": 2, "title": "y"}]

        assert (
            "edits: 1 named more than once; name each once" in (await call(host, "task_edit_many", edits=edits)).content
        )


# -- deleting ----------------------------------------------------------------------------------------------------


async def test_tasks_that_depend_on_each_other_are_deleted_together(hosting, done, call):
    tasks = [
        {"title": "a", "key": "a"},
        {"title": "b", "key": "b", "depends_on_keys": ["a"]},
        {"title": "c", "depends_on_keys": ["a", "b"]},
    ]
    async with hosting() as host:
        await done(host, "task_create_many", tasks=tasks)
        targets = [{"id": id, "version": 1} for id in (1, 2, 3)]
        output = await done(host, "task_delete_many", tasks=targets)

        assert numbers(output) == [1, 2, 3]
        assert (await call(host, "task_list")).output["total"] == 0


async def test_what_a_task_that_stays_depends_on_stays_too(hosting, done, call):
    tasks = [{"title": "a", "key": "a"}, {"title": "b", "depends_on_keys": ["a"]}, {"title": "c"}]
    async with hosting() as host:
        await done(host, "task_create_many", tasks=tasks)
        targets = [{"id": 1, "version": 1}, {"id": 2, "version": 7}, {"id": 3, "version": 1}]
        asked = await call(host, "task_delete_many", tasks=targets)
        result = await host.approvals.approve(asked.error.details["proposal_id"])

    assert result.error.type == "PartialFailure"
    assert errors(result.output) == ["NeededError", "StaleError", None]


async def test_deleting_always_asks_and_shows_what_is_lost(hosting, done, call):
    tasks = [{"title": "a", "key": "a"}, {"title": "b", "depends_on_keys": ["a"]}, {"title": "c"}]
    async with hosting(mode="auto") as host:
        await done(host, "task_create_many", tasks=tasks)
        targets = [{"id": 1, "version": 1}, {"id": 3, "version": 1}]
        asked = await call(host, "task_delete_many", tasks=targets)
        preview = (await host.approvals.describe(asked.error.details["proposal_id"])).preview

    assert asked.error.type == "ApprovalRequired"
    assert preview["would"] == "delete 1 task, and refuse 1; they can't be had back"
    assert preview["details"][0].startswith("refused: tasks[0]: task 1 stays while other tasks depend on it: 2;")
    assert preview["details"][1] == "lost: 3 'c'"


# -- running -----------------------------------------------------------------------------------------------------


def echo(text, **fields):
    return {"title": text, "tool": "echo", "arguments": {"text": text}, **fields}


def at_first(*ids):
    return [{"id": id, "version": 1} for id in ids]


async def test_tasks_run_together_run_after_what_they_depend_on(hosting, done, workshop):
    tasks = [echo("plan", key="plan"), echo("book", key="book", depends_on_keys=["plan"]), echo("pack")]
    async with hosting() as host:
        plan, book, pack = numbers(await done(host, "task_create_many", tasks=tasks))
        output = await done(host, "task_run_many", tasks=at_first(book, plan, pack))

    assert (output["succeeded"], output["failed"], numbers(output)) == (3, 0, [book, plan, pack])
    assert [text for _, text, _ in workshop.made] == ["plan", "book", "pack"]
    assert [(one["output"]["status"], one["output"]["result"]) for one in output["results"]] == [
        ("done", "book"),
        ("done", "plan"),
        ("done", "pack"),
    ]


async def test_a_run_that_fails_leaves_the_others_alone_and_stops_what_depends_on_it(hosting, done, call, workshop):
    tasks = [
        {"title": "fails", "key": "a", "tool": "fail", "arguments": {"text": "no"}},
        echo("waits", depends_on_keys=["a"]),
        echo("goes"),
    ]
    async with hosting() as host:
        ids = numbers(await done(host, "task_create_many", tasks=tasks))
        result = await call(host, "task_run_many", tasks=at_first(*sorted(ids)))
        listed = (await call(host, "task_list", status="any")).output

    assert (result.error.type, errors(result.output)) == ("PartialFailure", ["ToolRaised", "BlockedError", None])
    assert [text for _, text, _ in workshop.made] == ["goes"]
    assert [line["status"] for line in listed["tasks"]] == ["open", "open", "done"]


async def test_a_task_that_changed_or_is_not_there_is_refused_by_itself(hosting, done, call):
    async with hosting() as host:
        await done(host, "task_create_many", tasks=[echo("one"), echo("two")])
        result = await call(host, "task_run_many", tasks=[{"id": 1, "version": 7}, *at_first(2, 99)])

    assert errors(result.output) == ["StaleError", None, "UnknownTaskError"]
    assert result.output["results"][0]["error"]["message"].startswith("tasks[0]: version: task 1 is at version 1")


async def test_a_task_is_run_once_in_a_batch(hosting, done, call, workshop):
    async with hosting() as host:
        await done(host, "task_create_many", tasks=[echo("one")])
        result = await call(host, "task_run_many", tasks=at_first(1, 1))

    assert "tasks: 1 named more than once; name each once" in result.content
    assert workshop.made == []


async def test_each_call_of_a_batch_is_asked_about_by_itself(hosting, done, call, workshop):
    tasks = [{"title": "post", "tool": "post", "arguments": {"text": "a"}}, echo("read")]
    async with hosting(mode="approve") as host:
        await done(host, "task_create_many", tasks=tasks)
        result = await call(host, "task_run_many", tasks=at_first(1, 2))

    assert errors(result.output) == ["ApprovalRequired", None]
    assert result.output["results"][0]["output"]["proposal"]
    assert [name for name, *_ in workshop.made] == ["echo"]


async def test_a_batch_with_a_task_without_a_tool_is_asked_about(hosting, done, call, workshop):
    async with hosting(mode="approve") as host:
        await done(host, "task_create_many", tasks=[{"title": "by hand"}, echo("read")])
        result = await call(host, "task_run_many", tasks=at_first(1, 2))

    assert (result.error.type, workshop.made) == ("ApprovalRequired", [])
