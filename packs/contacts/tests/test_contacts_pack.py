"""The pack as a host sees it: declared, bound, and unbound with a reason."""

import contextlib
import doctest
import gc
import shutil
import threading
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_contacts
import jsonschema
import pytest

from agentos import AgentOS, EntryState, PackEntry, Principal, ToolCall, lint_pack

FIVE = ["contacts_search", "contacts_get", "contacts_create", "contacts_update", "contacts_delete"]


def made(**options):
    return agentos_pack_contacts.create_extension_pack(SimpleNamespace(options=options))


def states(host):
    return {name: host.extensions.explain("tool", name).entries[0].state for name in FIVE}


def offered(host):
    return [info.name for info in host.tools.list_available_tools()]


ALL_UNBOUND = dict.fromkeys(FIVE, EntryState.UNBOUND)
ALL_ACTIVE = dict.fromkeys(FIVE, EntryState.ACTIVE)

# -- the life of a binding ---------------------------------------------------------------------------------------


def test_the_tools_are_declared_without_handlers():
    payloads = {one.id: one.payload for one in made().descriptors}

    assert list(payloads) == [*FIVE, "contacts_status"]
    assert [payloads[name].execute for name in FIVE] == [None] * 5
    assert payloads["contacts_status"].execute is not None


async def test_with_a_database_they_are_bound_when_the_pack_is_loaded(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        status = await call(host, "contacts_status")

        assert states(host) == ALL_ACTIVE
        assert sorted(offered(host)) == sorted([*FIVE, "contacts_status"])
        assert status.output == {
            "bound": True,
            "reason": "the database is open, and all tools are bound",
            "contacts": 0,
        }


async def test_each_stack_has_one_entry(tmp_path, hosted):
    async with hosted(tmp_path / "book.db", create=True) as host:
        assert [len(host.extensions.explain("tool", name).entries) for name in FIVE] == [1] * 5


async def test_without_a_database_they_stay_unbound_and_the_reason_is_told(tmp_path, hosted, call, caplog):
    async with hosted(tmp_path / "book.db") as host:
        status = await call(host, "contacts_status")
        missing = await call(host, "contacts_search", query="ada")

        assert states(host) == ALL_UNBOUND
        assert offered(host) == ["contacts_status"]
    assert (status.output["bound"], status.output["contacts"]) == (False, None)
    assert status.output["reason"] == "the database 'book.db' does not exist; create it, or correct the path"
    assert missing.error.type == "HandlerMissing"
    assert "the contacts tools stay unbound: the database 'book.db' does not exist" in caplog.text
    assert list(tmp_path.iterdir()) == []


async def test_without_a_path_the_reason_is_that(hosted, call):
    async with hosted() as host:
        status = await call(host, "contacts_status")

    assert "option `path`" in status.output["reason"]


async def test_without_the_permission_the_reason_is_that_and_nothing_stays_open(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True, permissions=()) as host:
        status = await call(host, "contacts_status")

        assert states(host) == ALL_UNBOUND
        assert open_files(tmp_path) == []
    assert "lacks the permission 'tools:register'; add it to `permissions`" in status.output["reason"]


async def test_a_file_of_somebody_else_is_the_reason(tmp_path, hosted, call):
    (tmp_path / "book.db").write_text("my diary, long enough to be seen as no database" * 20)
    async with hosted(tmp_path / "book.db") as host:
        status = await call(host, "contacts_status")

    assert "is no SQLite database" in status.output["reason"]
    assert str(tmp_path) not in status.content


async def test_when_the_database_appears_contacts_status_binds_them(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        await call(host, "contacts_create", name="Ada Lovelace")
    shutil.move(tmp_path / "book.db", tmp_path / "away.db")

    async with hosted(tmp_path / "book.db") as host:
        before = states(host)
        shutil.move(tmp_path / "away.db", tmp_path / "book.db")
        status = await call(host, "contacts_status")
        found = await call(host, "contacts_search", query="ada")

        assert (before, states(host)) == (ALL_UNBOUND, ALL_ACTIVE)
    assert status.output == {"bound": True, "reason": "the database is open, and all tools are bound", "contacts": 1}
    assert found.output["matches"][0]["contact"]["name"] == "Ada Lovelace"


async def test_a_host_hears_when_tools_come(tmp_path, hosted, call):
    heard = []
    async with hosted(tmp_path / "book.db") as host:
        host.extensions.on(lambda event: heard.append(event) if event.type == "tools:changed" else None)
        async with hosted(tmp_path / "book.db", create=True):
            pass
        await call(host, "contacts_status")

    assert set(heard[0].added) == set(FIVE)


async def test_disabling_takes_them_out_of_force_and_closes_the_file(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        await host.extensions.disable("agentos_pack_contacts")
        result = await call(host, "contacts_search", query="ada")

        assert offered(host) == []
        assert open_files(tmp_path) == []
    assert result.error.type == "UnknownTool"


async def test_enabling_binds_them_again(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        await call(host, "contacts_create", name="Ada")
        await host.extensions.disable("agentos_pack_contacts")
        await host.extensions.enable("agentos_pack_contacts")
        found = await call(host, "contacts_search", query="ada")

        assert states(host) == ALL_ACTIVE
    assert len(found.output["matches"]) == 1


async def test_enabling_without_the_database_leaves_them_unbound(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True):
        pass
    async with hosted(tmp_path / "book.db") as host:
        await host.extensions.disable("agentos_pack_contacts")
        (tmp_path / "book.db").unlink()
        await host.extensions.enable("agentos_pack_contacts")
        status = await call(host, "contacts_status")

        assert states(host) == ALL_UNBOUND
    assert "does not exist" in status.output["reason"]


async def test_reloading_binds_them_again(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        await host.extensions.reload("agentos_pack_contacts")
        result = await call(host, "contacts_create", name="Ada")

        assert states(host) == ALL_ACTIVE
    assert result.success


async def test_binding_is_no_change_of_a_definition(tmp_path, hosted):
    """What a person accepted is what the tool says of itself; a handler is not part of that."""
    for create in (True, False):
        async with hosted(tmp_path / "book.db", create=create, store=tmp_path / "store.db") as host:
            assert await host.pins.pending() == []
            assert states(host) == ALL_ACTIVE


async def test_nothing_is_left_when_the_host_ends(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        await call(host, "contacts_create", name="Ada")

    gc.collect()
    assert open_files(tmp_path) == []
    assert [one.name for one in threading.enumerate() if one.name.startswith("agentos-sqlite")] == []


def open_files(folder):
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return [name for name in found if name.startswith(str(folder))]


# -- calls -------------------------------------------------------------------------------------------------------


async def test_create_get_update_and_search(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        ada = (await call(host, "contacts_create", name="Ada Lovelace", email="ada@example.org")).output
        got = (await call(host, "contacts_get", id=ada["id"])).output
        changed = (await call(host, "contacts_update", id=ada["id"], email=None, phone="12345")).output
        found = (await call(host, "contacts_search", query="ada lovelase", limit=5)).output

    assert got == ada
    assert (changed["name"], changed["email"], changed["phone"]) == ("Ada Lovelace", None, "12345")
    assert [(match["contact"]["id"], match["by"]) for match in found["matches"]] == [(ada["id"], "similar name")]


async def test_deleting_always_asks_and_shows_whom(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        ada = (await call(host, "contacts_create", name="Ada", notes="tea")).output
        result = await call(host, "contacts_delete", id=ada["id"])
        (proposal,) = await host.approvals.pending()
        done = await host.approvals.approve(result.error.details["token"])
        status = await call(host, "contacts_status")

    assert proposal.preview["action"] == "delete 'Ada' for good"
    assert proposal.preview["contact"]["notes"] == "tea"
    assert done.output == {"id": ada["id"], "name": "Ada"}
    assert status.output["contacts"] == 0


async def test_changes_wait_for_approval_and_show_what_would_change(tmp_path, hosted, call):
    async with hosted(tmp_path / "book.db", create=True) as host:
        ada = (await call(host, "contacts_create", name="Ada", phone="12345")).output
    async with hosted(tmp_path / "book.db", mode="approve") as host:
        await call(host, "contacts_update", id=ada["id"], phone=None, email="ada@example.org")
        await call(host, "contacts_create", name="Bob")
        update, create = await host.approvals.pending()
        status = await call(host, "contacts_status")

    assert update.preview == {
        "action": "change 'Ada'",
        "changes": {"email": {"from": None, "to": "ada@example.org"}, "phone": {"from": "12345", "to": None}},
    }
    assert create.preview["action"] == "add 'Bob' to the book"
    assert status.output["contacts"] == 1


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("contacts_get", {"id": "c_nobody"}, "id: there is no contact 'c_nobody'"),
        ("contacts_create", {"name": "Ada", "email": "x"}, "email: expected an address"),
        ("contacts_create", {"name": "Ada", "mail": "x"}, "did you mean 'email'"),
        ("contacts_create", {}, "name"),
        ("contacts_search", {"query": ""}, "query"),
        ("contacts_search", {"query": "a", "limit": 51}, "limit"),
        ("contacts_update", {"id": "c_1"}, "the arguments do not fit"),
    ],
)
async def test_mistakes_are_answered_with_a_way_out(tmp_path, hosted, call, name, arguments, words):
    async with hosted(tmp_path / "book.db", create=True) as host:
        result = await call(host, name, **arguments)

    assert not result.success
    assert words in result.content


async def test_without_its_rules_there_is_no_book(tmp_path, hosted):
    async with hosted(tmp_path / "book.db", create=True) as host:
        reader = Principal("bob", access={"contacts:read"})
        names = [info.name for info in host.tools.list_available_tools(reader)]
        guest = await host.tools.process_tool_call(ToolCall("contacts_search", {"query": "a"}), Principal("guest"))

    assert sorted(names) == ["contacts_get", "contacts_search", "contacts_status"]
    assert guest.error.type == "UnknownTool"


# -- definitions -------------------------------------------------------------------------------------------------

TOOLS = [one.payload for one in made().descriptors]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schemas_are_closed_and_valid(self, tool):
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["additionalProperties"] is False

    def test_every_parameter_is_described_and_bounded(self, tool):
        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"]
            assert {"maxLength", "maximum"} & set(schema), name

    def test_it_has_a_timeout(self, tool):
        assert tool.timeout

    def test_what_changes_something_has_a_dry_run(self, tool):
        assert (tool.dry_run is None) == (tool.effect == "read")


def test_effects_and_access_are_right():
    assert {tool.name: (tool.effect, tool.required_access) for tool in TOOLS} == {
        "contacts_search": ("read", ("contacts:read",)),
        "contacts_get": ("read", ("contacts:read",)),
        "contacts_create": ("mutate", ("contacts:write",)),
        "contacts_update": ("mutate", ("contacts:write",)),
        "contacts_delete": ("destructive", ("contacts:write",)),
        "contacts_status": ("read", ("contacts:read",)),
    }


def test_the_pack_lints_clean():
    assert [str(one) for one in lint_pack(made()) if one.severity != "info"] == []


@pytest.mark.parametrize(
    ("options", "text"),
    [({"pat": "x"}, "options.pat"), ({"create": "yes"}, "options.create"), ({"maxContacts": 0}, "options.maxContacts")],
)
async def test_a_wrong_option_fails_the_load_and_is_named(options, text):
    async with AgentOS(extension_manifest=[PackEntry(module="agentos_pack_contacts", options=options)]) as host:
        (outcome,) = host.extensions.report.outcomes

    assert outcome.status == "failed"
    assert text in outcome.reason


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"contacts": "agentos_pack_contacts"}}
    assert project["version"] == agentos_pack_contacts.__version__ == made().version
    assert made().name == "contacts"


def test_the_examples_of_the_readme_are_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_contacts\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_contacts.binding\n"
        "print({'attrs', 'agentos'} & light, {'rapidfuzz', 'numpy'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"
