"""The pack as a host sees it."""

import contextlib
import doctest
import gc
import inspect
import json
import threading
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_sqlite_memory
import jsonschema
import pytest

from agentos import AgentOS, EntryState, PackEntry, Principal, ToolCall, lint_pack

NAMES = ["memory_save", "memory_search", "memory_forget"]
ADA = Principal("ada", access={"memory:read", "memory:write"})
BOB = Principal("bob", access={"memory:read", "memory:write"})


@contextlib.asynccontextmanager
async def hosted(path=None, *, mode="auto", **options):
    given = options if path is None else {"path": str(path), **options}
    entry = PackEntry(module="agentos_pack_sqlite_memory", options=given, required=True)
    async with AgentOS(extension_manifest=[entry], mode=mode) as host:
        yield host


async def call(host, name, principal=ADA, **arguments):
    return await host.tools.process_tool_call(ToolCall(name, json.dumps(arguments)), principal)


async def approved(host, name, principal=ADA, **arguments):
    result = await call(host, name, principal, **arguments)
    assert result.error.type == "ApprovalRequired", result.content
    return await host.approvals.approve(result.error.details["token"], by=principal)


def made(**options):
    return agentos_pack_sqlite_memory.create_extension_pack(SimpleNamespace(options=options))


TOOLS = [one.payload for one in made().descriptors if one.kind == "tool"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_every_parameter_is_described_and_bounded(self, tool):
        bounds = {"maxLength", "maximum", "maxItems", "maxProperties", "enum"}

        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"]
            said = {*schema, *(key for option in schema.get("anyOf", ()) for key in option)}
            assert schema.get("type") == "boolean" or bounds & said, name

    def test_it_describes_itself(self, tool):
        assert tool.description == inspect.getdoc(tool.function)

    def test_it_has_an_output_schema_and_a_timeout(self, tool):
        assert tool.output_schema is not None
        assert tool.timeout


def test_effects_and_access_are_right():
    assert {tool.name: (tool.effect, tool.required_access) for tool in TOOLS} == {
        "memory_save": ("mutate", ("memory:write",)),
        "memory_search": ("read", ("memory:read",)),
        "memory_forget": ("destructive", ("memory:write",)),
    }


def test_the_pack_lints_clean():
    assert [str(one) for one in lint_pack(made()) if one.severity != "info"] == []


async def test_save_search_and_forget(tmp_path):
    async with hosted(tmp_path / "m.db") as host:
        saved = await call(host, "memory_save", text="Ada likes tea", tags=["drink"])
        found = await call(host, "memory_search", query="tea")
        gone = await approved(host, "memory_forget", ids=[saved.output["id"]])
        after = await call(host, "memory_search", query="tea")

    assert saved.output["durable"] is True
    assert [memory["text"] for memory in found.output["memories"]] == ["Ada likes tea"]
    assert gone.output == {"count": 1, "ids": [saved.output["id"]], "missing": []}
    assert after.output == {"memories": [], "truncated": False}


async def test_memories_last_longer_than_the_host(tmp_path):
    async with hosted(tmp_path / "m.db") as host:
        await call(host, "memory_save", text="Ada likes tea")
    async with hosted(tmp_path / "m.db") as host:
        found = await call(host, "memory_search", query="tea")

    assert len(found.output["memories"]) == 1


async def test_principals_do_not_see_each_others_memories(tmp_path):
    async with hosted(tmp_path / "m.db") as host:
        await call(host, "memory_save", text="my salary is a secret")
        found = await call(host, "memory_search", BOB, query="salary")

    assert found.output["memories"] == []


async def test_forgetting_what_is_not_mine_forgets_nothing(tmp_path):
    async with hosted(tmp_path / "m.db") as host:
        saved = await call(host, "memory_save", text="mine")
        gone = await approved(host, "memory_forget", BOB, ids=[saved.output["id"]])
        found = await call(host, "memory_search")

    assert gone.output["missing"] == [saved.output["id"]]
    assert len(found.output["memories"]) == 1


async def test_without_the_rules_there_is_no_memory():
    async with hosted() as host:
        result = await call(host, "memory_search", Principal("guest"))

    assert result.error.type == "UnknownTool"


async def test_sharing_without_the_rule_is_an_error_with_a_way_out():
    async with hosted() as host:
        result = await call(host, "memory_save", text="x", shared=True)

    assert result.error.type == "ToolRaised"
    assert "needs the access rule memory:share" in result.content


async def test_saving_waits_for_approval_and_shows_what_it_would_do():
    async with hosted(mode="approve") as host:
        await call(host, "memory_save", text="Ada likes tea")
        (proposal,) = await host.approvals.pending(ADA)
        found = await call(host, "memory_search")

    assert proposal.preview["action"] == "remember a new text"
    assert (proposal.preview["text"], proposal.preview["characters"]) == ("Ada likes tea", 13)
    assert found.output["memories"] == []


async def test_saving_the_same_again_previews_a_refresh():
    async with hosted() as host:
        saved = await call(host, "memory_save", text="tea")
        dry = await host.tools.preview(ToolCall("memory_save", {"text": "tea"}), ADA)

    assert dry.output["action"] == f"refresh {saved.output['id']}, which has the same text"


async def test_forgetting_shows_what_would_go():
    async with hosted() as host:
        ids = [(await call(host, "memory_save", text=text)).output["id"] for text in ("tea", "milk " * 100)]
        result = await call(host, "memory_forget", namespace="default")
        (proposal,) = await host.approvals.pending(ADA)

    assert result.error.type == "ApprovalRequired"
    assert proposal.preview["action"] == "delete 2 memories"
    assert proposal.preview["memories"] == {ids[0]: "tea", ids[1]: ("milk " * 100)[:80]}


@pytest.mark.parametrize("query", ['"', "a AND", "NEAR(", "scope:x", "\0", "*"])
async def test_no_query_breaks_the_search(query):
    async with hosted() as host:
        await call(host, "memory_save", text="x")
        result = await call(host, "memory_search", query=query)

    assert result.success, result.content


async def test_a_lone_surrogate_is_refused():
    async with hosted() as host:
        result = await host.tools.process_tool_call(ToolCall("memory_save", '{"text": "a\\ud800"}'), ADA)

    assert result.error.type == "InvalidArguments"


async def test_a_memory_without_a_path_is_told_of_in_the_log(caplog):
    async with hosted():
        pass

    assert "what it remembers is gone with the process" in caplog.text


async def test_the_provider_is_there_for_hosts(tmp_path):
    async with hosted(tmp_path / "m.db") as host:
        saved = await host.memory.remember("from the host", principal=ADA)
        found = await call(host, "memory_search", query="host")
        gone = await host.memory.forget([saved], principal=ADA)
        stats = await host.memory.stats(principal=ADA)

    assert f"sqlite-memory:{found.output['memories'][0]['id']}" == saved
    assert (gone, stats["sqlite-memory"].memories) == (1, 0)


async def test_disabling_closes_the_file_and_enabling_opens_it_again(tmp_path):
    async with hosted(tmp_path / "m.db") as host:
        await call(host, "memory_save", text="tea")
        await host.extensions.disable("agentos_pack_sqlite_memory")
        assert open_files(tmp_path) == []
        await host.extensions.enable("agentos_pack_sqlite_memory")
        found = await call(host, "memory_search", query="tea")

    assert len(found.output["memories"]) == 1


async def test_nothing_is_left_when_the_host_ends(tmp_path):
    async with hosted(tmp_path / "m.db") as host:
        await call(host, "memory_save", text="tea")
        await call(host, "memory_search", query="tea")

    gc.collect()
    assert open_files(tmp_path) == []
    assert [one.name for one in threading.enumerate() if one.name.startswith("agentos-sqlite")] == []


def open_files(folder):
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return [name for name in found if name.startswith(str(folder))]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"pth": "x"}, "options.pth"),
        ({"path": 3}, "options.path"),
        ({"trigram": "yes"}, "options.trigram"),
        ({"maxMemories": 0}, "options.maxMemories"),
        ({"halfLifeDays": 0}, "options.halfLifeDays"),
        ({"maxMegabytes": True}, "options.maxMegabytes"),
    ],
)
async def test_a_wrong_option_fails_the_load_and_is_named(options, text):
    async with AgentOS(extension_manifest=[PackEntry(module="agentos_pack_sqlite_memory", options=options)]) as host:
        (outcome,) = host.extensions.report.outcomes

    assert outcome.status == "failed"
    assert text in outcome.reason


async def test_a_file_of_somebody_else_fails_the_load(tmp_path):
    (tmp_path / "m.db").write_text("not a database, and long enough to be seen as none" * 20)
    entry = PackEntry(module="agentos_pack_sqlite_memory", options={"path": str(tmp_path / "m.db")})
    async with AgentOS(extension_manifest=[entry]) as host:
        (outcome,) = host.extensions.report.outcomes

    assert outcome.status == "failed"
    assert "is no SQLite database" in outcome.reason
    assert str(tmp_path) not in outcome.reason


def test_the_pack_offers_a_provider_and_three_tools():
    pack = made()

    assert (pack.name, pack.version) == ("sqlite-memory", agentos_pack_sqlite_memory.__version__)
    expected = [("memory-provider", "sqlite-memory"), *(("tool", name) for name in NAMES)]
    assert [one.key for one in pack.descriptors] == expected


async def test_all_of_it_is_active(tmp_path):
    async with hosted(tmp_path / "m.db") as host:
        states = [host.extensions.explain("tool", name).entries[0].state for name in NAMES]

    assert states == [EntryState.ACTIVE] * 3


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"sqlite-memory": "agentos_pack_sqlite_memory"}}
    assert project["version"] == agentos_pack_sqlite_memory.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_the_module_imports_nothing_heavy(child):
    code = "import sys, agentos_pack_sqlite_memory; print({'attrs', 'sqlite3', 'agentos'} & set(sys.modules))"

    assert child(code).communicate(timeout=60) == ("set()\n", "")
