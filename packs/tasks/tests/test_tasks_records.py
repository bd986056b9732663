"""The tasks themselves: what is kept, what is refused, and who wins when two change one."""

import asyncio
import sqlite3
import stat

import pytest
from agentos_pack_tasks import records, runs
from agentos_pack_tasks.arguments import Edit, New
from agentos_pack_tasks.records import open_book
from agentos_pack_tasks.values import (
    Actor,
    BlockedError,
    CycleError,
    NeededError,
    Question,
    StaleError,
    TaskError,
    UnknownTaskError,
)

ANN = Actor("user:ann", at="2024-07-01T12:00:00+00:00")
BOB = Actor("user:bob", at="2024-07-02T12:00:00+00:00")
SYSTEM = Actor("system:system", sees_all=True, at="2024-07-03T12:00:00+00:00")


@pytest.fixture
def add(book):
    async def adding(*needs, title="x", actor=ANN, **more):
        new = New(title=title, depends_on=list(needs), **more)
        return (await book.write(lambda db: records.add(db, new, actor, 100))).id

    return adding


@pytest.fixture
def edit(book):
    async def editing(id, version=None, actor=ANN, **fields):
        now = (await book.read(lambda db: records.get(db, id, actor))).version
        wanted = Edit(id=id, version=version or now, **fields)
        return await book.write(lambda db: records.edit(db, wanted, actor))

    return editing


@pytest.fixture
def start(book):
    async def starting(id, actor=ANN):
        now = (await book.read(lambda db: records.get(db, id, actor))).version
        return await book.write(lambda db: runs.start(db, id, now, actor))

    return starting


@pytest.fixture
def delete(book):
    async def deleting(id, version=1, actor=ANN):
        return await book.write(lambda db: records.delete(db, id, version, actor))

    return deleting


@pytest.fixture
def get(book):
    async def getting(id, actor=ANN):
        return await book.read(lambda db: records.get(db, id, actor))

    return getting


@pytest.fixture
def search(book):
    async def searching(actor=ANN, **asked):
        return await book.read(lambda db: records.search(db, Question(**asked), actor))

    return searching


# -- creating and reading ----------------------------------------------------------------------------------------


async def test_a_new_task_has_all_it_was_given(add, get):
    first = await add(title="Plan")
    second = await add(first, title="Book", notes="by train", tool="book_train", arguments={"to": "Bern"})
    task = await get(second)

    assert (task.title, task.notes, task.tool, task.arguments) == ("Book", "by train", "book_train", {"to": "Bern"})
    assert (task.status, task.version, task.ready, task.runs) == ("open", 1, False, 0)
    assert (task.owner, task.created_at, task.result) == ("user:ann", ANN.at, None)
    assert [(one.id, one.title, one.status) for one in task.depends_on] == [(first, "Plan", "open")]


async def test_a_task_shows_who_depends_on_it(add, get):
    first = await add()
    others = [await add(first), await add(first)]

    assert [one.id for one in (await get(first)).needed_by] == others


async def test_of_very_many_dependents_some_are_shown(add, get, monkeypatch):
    monkeypatch.setattr(records, "MAX_SHOWN", 2)
    first = await add()
    for _ in range(3):
        await add(first)
    task = await get(first)

    assert ([one.id for one in task.needed_by], task.needed_by_total, task.truncated) == ([2, 3], 3, True)


async def test_a_tool_without_arguments_gets_none(add, get):
    await add(tool="now")

    assert (await get(1)).arguments == {}


async def test_arguments_without_a_tool_are_refused(add):
    with pytest.raises(TaskError, match="arguments: there is no tool to call with them"):
        await add(arguments={"a": 1})


@pytest.mark.parametrize("name", ["two words", "a\u200bb", "a\nb", "\u202ea"])
async def test_a_tool_needs_a_name_that_a_tool_can_have(add, name):
    with pytest.raises(TaskError, match="tool: expected the name of a tool"):
        await add(tool=name)


async def test_arguments_have_a_largest_size(add):
    with pytest.raises(TaskError, match=r"arguments: 8,0\d\d characters of JSON; at most 8,000"):
        await add(tool="echo", arguments={"text": "x" * 8_000})


async def test_arguments_have_a_largest_depth(add):
    deep = []
    for _ in range(20):
        deep = [deep]

    with pytest.raises(TaskError, match="arguments: nested deeper than 16 levels"):
        await add(tool="echo", arguments={"text": deep})


async def test_half_a_character_in_arguments_is_refused(add):
    with pytest.raises(TaskError, match="arguments: has half a character"):
        await add(tool="echo", arguments={"text": "\ud800"})


async def test_the_number_of_tasks_of_one_owner_has_an_end(book, add):
    await add()
    new = New(title="one more")

    with pytest.raises(TaskError, match="you have 1 tasks, which is the limit"):
        await book.write(lambda db: records.add(db, new, ANN, 1))
    assert (await book.write(lambda db: records.add(db, new, BOB, 1))).id == 2


async def test_the_number_of_dependencies_has_an_end(add, monkeypatch):
    monkeypatch.setattr(records, "MAX_NEEDS", 2)
    ids = [await add() for _ in range(3)]

    with pytest.raises(TaskError, match="depends_on: 3 tasks; at most 2"):
        await add(*ids)


async def test_a_dependency_named_twice_counts_once(add, get):
    first = await add()

    assert len((await get(await add(first, first))).depends_on) == 1


async def test_a_dependency_has_to_be_there(add, search):
    with pytest.raises(UnknownTaskError, match="depends_on: there is no task 7"):
        await add(7)
    assert (await search()).total == 0


async def test_a_new_task_can_not_depend_on_the_number_it_will_get(add):
    with pytest.raises(CycleError, match="1 -> 1"):
        await add(1)


# -- the list ----------------------------------------------------------------------------------------------------


async def test_the_list_is_the_oldest_first_and_pages(add, search):
    for n in range(5):
        await add(title=f"n{n}")
    first, last = await search(limit=2), await search(limit=2, after=4)

    assert [line.title for line in first.tasks] == ["n0", "n1"]
    assert (first.total, first.truncated) == (5, True)
    assert ([line.title for line in last.tasks], last.truncated) == (["n4"], False)


async def test_the_list_is_filtered(add, edit, start, search):
    done, running, ready = await add(title="one"), await add(notes="One more"), await add()
    blocked = await add(running)
    await edit(done, status="done")
    await start(running)

    async def found(**asked):
        return [line.id for line in (await search(**asked)).tasks]

    assert await found(status="unfinished") == [running, ready, blocked]
    assert await found(status="open") == [ready, blocked]
    assert await found(status="running") == [running]
    assert await found(status="done") == [done]
    assert await found(ready_only=True) == [ready]
    assert await found(text="ONE") == [done, running]


async def test_a_line_says_what_its_task_waits_for(add, edit, search):
    done, open_one = await add(), await add()
    await add(done, open_one)
    await edit(done, status="done")
    line = (await search(after=2)).tasks[0]

    assert (line.ready, line.waits_for) == (False, [open_one])


@pytest.mark.parametrize("text", ["%", "_", "\\", "' OR 1=1 --", '"', "*", "a%b"])
async def test_searched_text_stands_for_itself(add, search, text):
    await add(title="plain")
    await add(title=f"with {text} in it")

    assert [line.id for line in (await search(text=text)).tasks] == [2]


# -- whose tasks -------------------------------------------------------------------------------------------------


async def test_nobody_sees_the_tasks_of_others(add, search, get):
    await add(actor=ANN)
    await add(actor=BOB)

    assert [line.id for line in (await search(BOB)).tasks] == [2]
    with pytest.raises(UnknownTaskError):
        await get(1, BOB)


async def test_the_system_sees_every_task(add, search):
    await add(actor=ANN)
    await add(actor=BOB)

    assert [line.owner for line in (await search(SYSTEM)).tasks] == ["user:ann", "user:bob"]


async def test_what_others_own_can_not_be_changed(book, add, delete):
    await add()
    for change in (
        lambda db: records.edit(db, Edit(id=1, version=1, title="mine"), BOB),
        lambda db: records.delete(db, 1, 1, BOB),
        lambda db: runs.start(db, 1, 1, BOB),
    ):
        with pytest.raises(UnknownTaskError):
            await book.write(change)


async def test_what_others_own_is_as_unknown_as_what_is_not_there(add, get):
    await add()
    with pytest.raises(UnknownTaskError) as foreign:
        await get(1, BOB)
    with pytest.raises(UnknownTaskError) as missing:
        await get(2, BOB)

    assert str(foreign.value) == str(missing.value).replace("2", "1")


async def test_nobody_depends_on_the_tasks_of_others(add):
    await add(actor=ANN)

    with pytest.raises(UnknownTaskError, match="depends_on: there is no task 1"):
        await add(1, actor=BOB)


async def test_not_even_the_system_lets_tasks_of_two_owners_depend_on_each_other(add, edit):
    await add(actor=ANN)
    await add(actor=BOB)

    with pytest.raises(TaskError, match="task 2 is of user:bob, and a task of user:ann depends on none but its own"):
        await edit(1, actor=SYSTEM, depends_on=[2])


async def test_the_system_can_edit_and_delete_the_tasks_of_others(add, edit, delete, get):
    await add(actor=ANN)
    await edit(1, actor=SYSTEM, title="mended")

    assert ((await get(1)).title, (await get(1)).owner) == ("mended", "user:ann")
    assert (await delete(1, 2, SYSTEM)).title == "mended"


async def test_the_system_does_not_call_a_tool_for_somebody_else(add, start):
    await add(tool="wipe", actor=ANN)

    with pytest.raises(TaskError, match="belongs to user:ann and would call wipe with your rights"):
        await start(1, SYSTEM)


# -- editing -----------------------------------------------------------------------------------------------------


async def test_an_edit_says_what_changed(add, edit):
    first = await add()
    id = await add(first, title="Old", notes="abc")
    changed = await edit(id, title="New", notes="", depends_on=[], tool="echo", arguments={"a": 1})

    assert changed.changes == [
        "title: 'Old' -> 'New'",
        "tool: none -> echo",
        "notes: 0 characters instead of 3",
        "arguments: 8 characters instead of 0",
        "depends on: 1 -> nothing",
    ]
    assert (changed.version, changed.ready) == (2, True)


async def test_an_edit_leaves_what_it_does_not_name(add, edit, get):
    first = await add()
    id = await add(first, notes="abc", tool="echo", arguments={"a": 1})
    await edit(id, title="New")
    task = await get(id)

    assert (task.notes, task.tool, task.arguments, len(task.depends_on)) == ("abc", "echo", {"a": 1}, 1)


async def test_an_edit_without_effect_is_refused(add, edit, get):
    await add(title="same")

    with pytest.raises(TaskError, match="task 1 is like that already"):
        await edit(1, title="same", status="open", depends_on=[])
    assert (await get(1)).version == 1


async def test_an_edit_for_another_version_is_refused(add, edit):
    await add()
    await edit(1, title="first")

    with pytest.raises(StaleError, match="task 1 is at version 2, and this call was made for version 1; nothing was"):
        await edit(1, version=1, title="late")


async def test_of_many_edits_for_one_version_one_is_done(book, add, path, get):
    await add()
    other = open_book(path)
    await other.open()
    edits = [
        one.write(lambda db, n=n: records.edit(db, Edit(id=1, version=1, title=f"n{n}"), ANN))
        for n, one in enumerate([book, other] * 5)
    ]
    outcomes = await asyncio.gather(*edits, return_exceptions=True)
    await other.close()

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Changed"] + 9 * ["StaleError"]
    assert (await get(1)).version == 2


async def test_two_that_depend_on_each_other_at_once_do_not_make_a_cycle(book, add, path):
    await add()
    await add()
    other = open_book(path)
    await other.open()
    outcomes = await asyncio.gather(
        book.write(lambda db: records.edit(db, Edit(id=1, version=1, depends_on=[2]), ANN)),
        other.write(lambda db: records.edit(db, Edit(id=2, version=1, depends_on=[1]), ANN)),
        return_exceptions=True,
    )
    await other.close()

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Changed", "CycleError"]


async def test_a_cycle_is_refused_and_named(add, edit, get):
    a = await add()
    b = await add(a)
    c = await add(b)

    with pytest.raises(CycleError, match="depends_on: this would make a cycle, 1 -> 3 -> 2 -> 1, in which") as caught:
        await edit(a, depends_on=[c])
    assert caught.value.cycle == (a, c, b, a)
    assert (await get(a)).depends_on == []


async def test_a_task_can_not_depend_on_itself(add, edit):
    await add()

    with pytest.raises(CycleError, match="1 -> 1"):
        await edit(1, depends_on=[1])


async def test_a_task_can_be_marked_as_done_with_a_result(add, edit, get):
    await add()
    await edit(1, status="done", result="all watered")
    task = await get(1)

    assert (task.status, task.result, task.done_at) == ("done", "all watered", ANN.at)


async def test_a_result_needs_a_task_that_is_done(add, edit):
    await add()

    with pytest.raises(TaskError, match="result: only a task that is done has one"):
        await edit(1, result="early")


async def test_a_task_can_not_be_marked_as_done_before_what_it_depends_on(add, edit, get):
    await add()
    await add(1)

    with pytest.raises(BlockedError, match="task 2 can't be done while what it depends on is not done: 1"):
        await edit(2, status="done")
    assert (await get(2)).status == "open"


async def test_what_was_started_can_not_come_to_depend_on_something_open(add, edit, start):
    await add()
    await add()
    await start(2)

    with pytest.raises(BlockedError, match="task 2 can't be running while"):
        await edit(2, depends_on=[1])


async def test_a_reopened_task_has_no_result_any_more(add, edit, get):
    await add()
    await edit(1, status="done", result="all watered")
    await edit(1, status="open")
    task = await get(1)

    assert (task.status, task.result, task.done_at, task.ready) == ("open", None, None, True)


async def test_a_task_is_not_reopened_while_what_depends_on_it_is_started(add, edit, start):
    await add()
    await add(1)
    await edit(1, status="done")
    await start(2)

    with pytest.raises(NeededError, match="task 1 can't be opened again while what depends on it has been started: 2"):
        await edit(1, status="open")


async def test_a_dependency_can_be_dropped_and_the_task_done_in_one_edit(add, edit):
    await add()
    await add(1)

    assert (await edit(2, depends_on=[], status="done")).status == "done"


async def test_what_a_started_task_calls_stays(add, edit, start):
    await add(tool="echo")
    await start(1)

    with pytest.raises(TaskError, match="tool: task 1 is running; what it calls can be changed only while it is open"):
        await edit(1, arguments={"text": "other"})


async def test_an_empty_tool_takes_tool_and_arguments_out(add, edit, get):
    await add(tool="echo", arguments={"text": "a"})
    await edit(1, tool="")

    assert ((await get(1)).tool, (await get(1)).arguments) == (None, None)


async def test_arguments_can_not_be_given_to_a_task_without_a_tool(add, edit):
    await add()

    with pytest.raises(TaskError, match="arguments: there is no tool"):
        await edit(1, arguments={"a": 1})


# -- deleting ----------------------------------------------------------------------------------------------------


async def test_a_task_that_others_depend_on_stays(add, delete, get):
    await add()
    await add(1)
    await add(1)

    with pytest.raises(NeededError, match="task 1 stays while other tasks depend on it: 2, 3; take it out"):
        await delete(1)
    assert (await get(1)).id == 1


async def test_of_very_many_dependents_a_message_names_the_first(add, delete):
    await add()
    for _ in range(13):
        await add(1)

    with pytest.raises(NeededError, match="8, 9, 10, 11 and 3 more;"):
        await delete(1)


async def test_a_task_that_depends_on_others_can_be_deleted(add, delete):
    await add()
    await add(1)
    await delete(2)

    assert (await delete(1)).id == 1


async def test_a_running_task_stays(add, delete, start):
    await add()
    await start(1)

    with pytest.raises(TaskError, match="task 1 is running; set it to open or done"):
        await delete(1, 2)


async def test_a_deletion_for_another_version_is_refused(add, delete, edit):
    await add()
    await edit(1, title="new")

    with pytest.raises(StaleError):
        await delete(1, 1)


async def test_a_number_is_never_given_again(add, delete):
    await add()
    await delete(1)

    assert await add() == 2


async def test_nothing_of_a_deleted_task_stays_in_the_file(book, add, delete, path):
    await add(notes="the-customer-was-Rosalind")
    await delete(1)
    await book.close()

    assert all(b"Rosalind" not in file.read_bytes() for file in path.parent.iterdir())


# -- the file ----------------------------------------------------------------------------------------------------


async def test_the_file_is_its_owners_alone(book, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_tables_take_no_other_status(book, add):
    def forge(db):
        db.execute("UPDATE tasks SET status = 'cancelled'")

    await add()
    with pytest.raises(sqlite3.IntegrityError):
        await book.write(forge)


async def test_the_tables_keep_what_is_depended_on(book, add):
    def forge(db):
        db.execute("DELETE FROM tasks WHERE id = 1")

    await add()
    await add(1)
    with pytest.raises(sqlite3.IntegrityError):
        await book.write(forge)
