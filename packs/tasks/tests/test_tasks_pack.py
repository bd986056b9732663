"""The pack as a host sees it: its tools, their dry runs, its options, and who may use what."""

import doctest
import inspect
import logging
import sqlite3
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_tasks
import jsonschema
import pytest
from agentos_pack_common import OptionsError
from agentos_pack_tasks.records import open_book
from agentos_pack_tasks.tools import create_tools

from agentos import AgentOS, lint_pack

TOOLS = tuple(create_tools(open_book(None), 10))
EXPECTED = {
    "task_list": ("read", ("tasks:read",)),
    "task_view": ("read", ("tasks:read",)),
    "task_create": ("mutate", ("tasks:write",)),
    "task_edit": ("mutate", ("tasks:write",)),
    "task_delete": ("destructive", ("tasks:write",)),
    "task_run": ("mutate", ("tasks:write",)),
    "task_create_many": ("mutate", ("tasks:write",)),
    "task_edit_many": ("mutate", ("tasks:write",)),
    "task_delete_many": ("destructive", ("tasks:write",)),
    "task_run_many": ("mutate", ("tasks:write",)),
}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_every_parameter_is_documented(self, tool):
        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"], name

    def test_its_effect_and_access_are_said(self, tool):
        assert EXPECTED[tool.name] == (tool.effect, tool.required_access)

    def test_it_can_be_previewed_if_it_changes_something(self, tool):
        assert (tool.effect == "read") == (tool.dry_run is None)

    def test_it_has_a_timeout_and_an_output_schema(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)

        assert tool.timeout
        assert tool.output_schema["additionalProperties"] is False

    def test_it_describes_itself(self, tool):
        assert tool.description == inspect.getdoc(tool.function)

    def test_it_belongs_to_the_toolset(self, tool):
        assert tool.toolset.id == "tasks"


async def test_every_output_fits_its_schema(hosting, done):
    async def made():
        return (await done(host, "task_create", title="one more"))["id"]

    async with hosting() as host:
        outputs = {
            "task_create": await done(host, "task_create", title="one", tool="echo", arguments={"text": "a"}),
            "task_edit": await done(host, "task_edit", id=1, version=1, title="two"),
            "task_run": await done(host, "task_run", id=1, version=2),
            "task_create_many": await done(host, "task_create_many", tasks=[{"title": "three", "depends_on": [1]}]),
            "task_edit_many": await done(host, "task_edit_many", edits=[{"id": 2, "version": 1, "notes": "n"}]),
            "task_run_many": await done(host, "task_run_many", tasks=[{"id": 2, "version": 2}]),
            "task_view": await done(host, "task_view", id=1),
            "task_list": await done(host, "task_list", status="any"),
            "task_delete": await done(host, "task_delete", id=await made(), version=1),
            "task_delete_many": await done(host, "task_delete_many", tasks=[{"id": await made(), "version": 1}]),
        }

    assert set(outputs) == set(EXPECTED)
    for tool in TOOLS:
        jsonschema.validate(outputs[tool.name], tool.output_schema)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("task_create", {"title": ""}),
        ("task_create", {"title": "x" * 201}),
        ("task_create", {"title": "x", "notes": "x" * 4001}),
        ("task_create", {"title": "x", "depends_on": [0]}),
        ("task_create", {"title": "x", "depends_on": list(range(1, 52))}),
        ("task_create", {"title": "x", "tool": "echo", "arguments": "text"}),
        ("task_create", {"title": "x", "owner": "somebody"}),
        ("task_edit", {"id": 1, "title": "x"}),
        ("task_edit", {"id": 1, "version": 1, "status": "running"}),
        ("task_run", {"id": 1}),
        ("task_view", {"id": 2**64}),
        ("task_list", {"limit": 101}),
        ("task_create_many", {"tasks": []}),
        ("task_create_many", {"tasks": [{"title": "x"}] * 51}),
        ("task_delete_many", {"tasks": [{"id": 1}]}),
        ("task_run_many", {"tasks": [{"id": 1}]}),
    ],
)
async def test_arguments_that_do_not_fit_are_refused(hosting, call, name, arguments):
    async with hosting() as host:
        assert (await call(host, name, **arguments)).error.type == "InvalidArguments"


@pytest.mark.parametrize("title", ["\u200b", "\x00", "\u202e \u2066", "\n"])
async def test_a_title_must_be_visible(hosting, call, title):
    async with hosting() as host:
        result = await call(host, "task_create", title=title)

    assert "title: expected text that can be seen, got none" in result.content


async def test_what_is_written_is_plain(hosting, done):
    """What one model writes another will read: nothing hidden goes from the one to the other."""
    async with hosting() as host:
        await done(host, "task_create", title="a\x1b[31m\u202eb\nc", notes="one\x00\ntwo\u200b ")
        task = await done(host, "task_view", id=1)

    assert (task["title"], task["notes"]) == ("ab c", "one\ntwo")


# -- dry runs ----------------------------------------------------------------------------------------------------


@pytest.fixture
def previewed(done):
    """Return a function that asks what a call would do, in a host with two tasks, and sees that nothing changed."""

    async def previewing(host, name, **arguments):
        first = await done(host, "task_list", status="any")
        shown = await host.tools.preview({"name": name, "arguments": arguments})
        assert await done(host, "task_list", status="any") == first
        return shown.output

    return previewing


@pytest.fixture
def pair(done):
    async def making(host):
        await done(host, "task_create", title="Plan", notes="where to")
        await done(host, "task_create", title="Book", depends_on=[1], tool="post", arguments={"text": "Bern"})

    return making


async def test_creating_is_previewed(hosting, pair, previewed):
    async with hosting() as host:
        await pair(host)
        new = {"title": "Go", "notes": "by train", "depends_on": [1, 2], "tool": "wipe", "arguments": {"text": "all"}}
        shown = await previewed(host, "task_create", **new)

    assert shown == {
        "would": "create the task 'Go'",
        "details": [
            "depends on: 1 'Plan' (open)",
            "depends on: 2 'Book' (open)",
            'its tool: wipe with {"text": "all"}',
            "notes: by train",
        ],
    }


async def test_editing_is_previewed(hosting, pair, previewed):
    async with hosting() as host:
        await pair(host)
        wanted = {"notes": "to Bern", "depends_on": [], "arguments": {"text": "Basel"}}
        shown = await previewed(host, "task_edit", id=2, version=1, **wanted)

    assert shown == {
        "would": "change task 2 'Book' (open, version 1); it will be at version 2",
        "details": [
            "notes: 7 characters instead of 0",
            "arguments: 17 characters instead of 16",
            "depends on: 1 -> nothing",
            "new notes: to Bern",
            'new arguments: {"text": "Basel"}',
        ],
    }


async def test_deleting_is_previewed(hosting, pair, previewed, done):
    async with hosting() as host:
        await pair(host)
        await done(host, "task_edit", id=2, version=1, depends_on=[])
        shown = await previewed(host, "task_delete", id=1, version=1)

    assert shown == {
        "would": "delete task 1 'Plan' (open, version 1); it can't be had back",
        "details": ["lost: its notes of 8 characters"],
    }


async def test_running_is_previewed_without_calling_anything(hosting, pair, previewed, done, workshop):
    async with hosting() as host:
        await pair(host)
        await done(host, "task_edit", id=1, version=1, status="done")
        shown = await previewed(host, "task_run", id=2, version=1)

    assert shown == {
        "would": "call post for task 2 'Book' (open, version 1), and keep what comes of it",
        "details": [
            'arguments: {"text": "Bern"}',
            "the call is made with the rights of system:system, and is asked about by itself if it needs approval",
        ],
    }
    assert workshop.made == []


async def test_hidden_characters_in_arguments_are_shown(hosting, previewed):
    async with hosting() as host:
        shown = await previewed(host, "task_create", title="x", tool="echo", arguments={"text": "a\u202eb"})

    assert shown["details"] == [r'its tool: echo with {"text": "a\u202eb"}']


async def test_creating_many_is_previewed(hosting, previewed):
    tasks = [
        {"title": "b", "depends_on_keys": ["a"]},
        {"title": "a", "key": "a", "tool": "echo"},
        {"title": "c", "depends_on": [99]},
    ]
    async with hosting() as host:
        shown = await previewed(host, "task_create_many", tasks=tasks)

    assert shown == {
        "would": "create 2 tasks, and refuse 1",
        "details": [
            "create 'b'; depends on: 1 'a' (open)",
            "create 'a'; its tool: echo with {}",
            "refused: tasks[2]: depends_on: there is no task 99; task_list shows those that there are",
        ],
    }


async def test_editing_many_is_previewed(hosting, pair, previewed):
    edits = [{"id": 1, "version": 1, "status": "done", "result": "Bern"}, {"id": 2, "version": 5, "title": "x"}]
    async with hosting() as host:
        await pair(host)
        shown = await previewed(host, "task_edit_many", edits=edits)

    assert shown["would"] == "change 1 task, and refuse 1"
    assert shown["details"][0] == (
        "change 1 'Plan': status: open -> done; result: 4 characters instead of 0; new result: Bern"
    )
    assert shown["details"][1].startswith("refused: edits[1]: version: task 2 is at version 1")


async def test_deleting_many_is_previewed(hosting, pair, previewed):
    async with hosting() as host:
        await pair(host)
        both = await previewed(host, "task_delete_many", tasks=[{"id": 1, "version": 1}, {"id": 2, "version": 1}])
        none = await previewed(host, "task_delete_many", tasks=[{"id": 1, "version": 1}])

    assert both == {"would": "delete 2 tasks; they can't be had back", "details": ["lost: 1 'Plan'", "lost: 2 'Book'"]}
    assert none["would"] == "delete nothing, and refuse 1"


async def test_running_many_is_previewed(hosting, done, previewed):
    async with hosting() as host:
        await done(host, "task_create", title="Plan", tool="echo", arguments={"text": "a"})
        await done(host, "task_create", title="Book", depends_on=[1])
        await done(host, "task_create", title="Go", depends_on=[2])
        targets = [{"id": 3, "version": 1}, {"id": 2, "version": 1}, {"id": 1, "version": 1}]
        shown = await previewed(host, "task_run_many", tasks=targets)

    assert shown["would"] == "run 2 tasks, and refuse 1"
    assert shown["details"][0].startswith("refused: tasks[0]: task 3 can't be run while what it depends on is not done")
    assert shown["details"][1].startswith("mark task 2 'Book' (open, version 1) as running")
    assert shown["details"][2].startswith("call echo for task 1 'Plan' (open, version 1)")


async def test_what_would_be_refused_is_refused_in_its_preview(hosting, pair):
    async with hosting() as host:
        await pair(host)
        shown = await host.tools.preview({"name": "task_run", "arguments": {"id": 2, "version": 1}})

    assert "task 2 can't be run while what it depends on is not done: 1" in shown.content


# -- approval and access -----------------------------------------------------------------------------------------


async def test_a_change_waits_for_approval_by_default(hosting, call, people):
    async with hosting(mode="approve") as host:
        asked = await call(host, "task_create", people.ann, title="Plan")
        before = (await call(host, "task_list", people.ann)).output["total"]
        approved = await host.approvals.approve(asked.error.details["proposal_id"], by=people.ann)

    assert (asked.error.type, before) == ("ApprovalRequired", 0)
    assert approved.output["id"] == 1


async def test_an_edit_that_went_stale_while_it_waited_is_not_made(hosting, done, call):
    async with hosting(mode="approve") as host:
        await done(host, "task_create", title="Plan")
        late = await call(host, "task_edit", id=1, version=1, tool="wipe")
        await done(host, "task_edit", id=1, version=1, title="Other")
        stale = await host.approvals.approve(late.error.details["proposal_id"])

    assert stale.error.details == {"exception": "StaleError"}


async def test_deleting_asks_in_every_mode(hosting, done, call):
    async with hosting(mode="auto") as host:
        await done(host, "task_create", title="Plan")
        await host.grants.add("tasks:task_delete", "always")

        assert (await call(host, "task_delete", id=1, version=1)).error.type == "ApprovalRequired"


async def test_who_may_only_read_is_offered_only_that(hosting, people):
    async with hosting() as host:
        names = [info.name for info in host.tools.list_available_tools(people.ria)]

    assert names == ["task_list", "task_view"]


async def test_everybody_has_tasks_of_their_own(hosting, done, people):
    async with hosting() as host:
        await done(host, "task_create", people.ann, title="ann's")
        await done(host, "task_create", people.service, title="the service's")
        seen = {
            who: [line["title"] for line in (await done(host, "task_list", principal))["tasks"]]
            for who, principal in {"ann": people.ann, "bob": people.bob, "service": people.service, "all": None}.items()
        }

    assert seen == {
        "ann": ["ann's"],
        "bob": [],
        "service": ["the service's"],
        "all": ["ann's", "the service's"],
    }


async def test_the_prompt_tells_confusable_tools_apart_once(hosting, people):
    async with hosting() as host:
        prompt = host.tools.system_prompt(people.ann)

    assert prompt.count("task_edit calls nothing") == 1
    assert all(f"{name} " in prompt for name in ("task_list", "task_view", "task_run", "task_edit", "task_delete"))


# -- the pack ----------------------------------------------------------------------------------------------------


def pack(**options):
    return agentos_pack_tasks.create_extension_pack(SimpleNamespace(options=options))


def test_the_pack_offers_its_tools():
    found = pack()

    assert (found.name, found.version) == ("tasks", agentos_pack_tasks.__version__)
    assert [("tool", name) for name in EXPECTED] == [(d.kind, d.id) for d in found.descriptors]


def test_the_pack_is_clean():
    assert [str(finding) for finding in lint_pack(pack()) if finding.severity != "info"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": 5}, r"options\.path: expected a path, got a whole number"),
        ({"pth": "y.db"}, r"options\.pth: is not known; did you mean `path`\?"),
        ({"maxTasks": 0}, r"options\.maxTasks: must be >= 1"),
        ({"maxTasks": "many"}, r"options\.maxTasks: expected a whole number"),
    ],
)
def test_wrong_options_fail_the_load(options, message):
    with pytest.raises(OptionsError, match=message):
        pack(**options)


async def test_without_a_path_it_works_in_memory_and_warns(hosting, done, caplog):
    with caplog.at_level(logging.WARNING):
        async with hosting(options={}) as host:
            await done(host, "task_create", title="fleeting")

    assert "tasks has no option `path`: its tasks are gone with the process" in caplog.text


async def test_with_a_path_nothing_is_warned_of(hosting, caplog):
    with caplog.at_level(logging.WARNING):
        async with hosting():
            pass

    assert "path" not in caplog.text


async def test_the_tasks_outlive_the_host(hosting, done):
    async with hosting() as host:
        await done(host, "task_create", title="stays")

    async with hosting() as host:
        assert (await done(host, "task_view", id=1))["title"] == "stays"


async def test_hosts_share_a_file(hosting, done):
    async with hosting() as first, hosting() as second:
        await done(first, "task_create", title="shared")

        assert (await done(second, "task_view", id=1))["title"] == "shared"


async def test_a_file_of_something_else_is_left_alone(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE accounts (id)")
    db.close()
    before = path.read_bytes()
    async with AgentOS() as host:
        outcome = await host.extensions.load({"module": "agentos_pack_tasks", "options": {"path": str(path)}})

    assert outcome.status == "failed"
    assert "belongs to another program" in str(outcome.error)
    assert before == path.read_bytes()


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"tasks": "agentos_pack_tasks"}}
    assert project["version"] == agentos_pack_tasks.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = "import sys\nimport agentos_pack_tasks\nprint({'attrs', 'sqlite3', 'agentos'} & set(sys.modules))"

    assert run_python(code) == "set()"
