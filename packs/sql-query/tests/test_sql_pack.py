"""The pack as a host sees it."""

import asyncio
import doctest
import inspect
import json
import os
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_sql_query
import jsonschema
import pytest
from agentos_pack_sql_query._files import only_word
from agentos_pack_sql_query.sources import source_of_files, source_of_url

from agentos import AgentOS, EntryState, PackEntry, Principal, ToolCall, lint_pack
from agentos.testing import check_pack

CATALOG = Path(__file__).parents[3] / "extension-secrets.json"


def made(**options):
    return agentos_pack_sql_query.create_extension_pack(SimpleNamespace(options=options))


TOOLS = [one.payload for one in made().descriptors]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_every_parameter_is_described_and_bounded(self, tool):
        bounds = {"maxLength", "maximum", "maxItems"}

        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"]
            assert bounds & set(schema), name

    def test_it_reads_with_its_own_rule(self, tool):
        assert (tool.effect, tool.required_access) == ("read", ("sql:read",))

    def test_it_describes_itself(self, tool):
        assert tool.description == inspect.getdoc(tool.function)

    def test_it_has_an_output_schema_and_a_timeout_beyond_that_of_the_database(self, tool):
        assert tool.output_schema is not None
        assert tool.timeout > 10


def test_the_pack_lints_clean():
    assert [str(one) for one in lint_pack(made()) if one.severity != "info"] == []


async def test_a_query_through_a_host(shop, ask):
    result = await ask(shop, "sql_query", sql="SELECT name FROM customers WHERE id = ?", parameters=[2])

    assert result.output == {
        "columns": ["name"],
        "rows": [["Bob"]],
        "row_count": 1,
        "truncated": False,
        "dialect": "sqlite",
    }


async def test_the_schema_through_a_host(shop, ask):
    result = await ask(f"sqlite:///{shop}", "sql_schema", containing="order")

    assert [table["name"] for table in result.output["tables"]] == ["orders"]


async def test_a_refusal_is_a_result_with_a_way_out(shop, ask):
    result = await ask(shop, "sql_query", sql="DROP TABLE customers")

    assert result.error.type == "ToolRaised"
    assert "this is a DROP; only a single SELECT is allowed" in result.content


async def test_the_host_limits_rows(shop, ask):
    result = await ask(shop, "sql_query", _options={"maxRows": 1}, sql="SELECT * FROM orders", limit=100)

    assert (result.output["row_count"], result.output["truncated"]) == (1, True)


async def test_a_nul_in_sql_is_refused(shop, ask):
    result = await ask(shop, "sql_query", sql="SELECT 1\0; DROP TABLE customers")

    assert "sql: has a NUL character" in result.content


async def test_a_lone_surrogate_is_no_crash(shop, hosted):
    async with hosted(shop) as host:
        call = ToolCall("sql_query", '{"sql": "SELECT ?", "parameters": ["\\ud800"]}')
        result = await host.tools.process_tool_call(call)

    assert result.error.type == "InvalidArguments"


async def test_without_its_rule_a_principal_does_not_see_it(shop, hosted):
    async with hosted(shop) as host:
        result = await host.tools.process_tool_call(ToolCall("sql_query", {"sql": "SELECT 1"}), Principal("guest"))

    assert result.error.type == "UnknownTool"


async def test_without_db_url_the_tools_wait_and_say_for_what(hosted, monkeypatch):
    monkeypatch.delenv("DB_URL", raising=False)
    async with hosted() as host:
        (entry,) = host.extensions.explain("tool", "sql_query").entries

        assert entry.state is EntryState.GATED
        assert "DB_URL" in entry.reason


async def test_db_url_is_read_at_each_call(shop, tmp_path, hosted):
    async with hosted(shop) as host:
        await host.extensions.set_secret("db.url", str(tmp_path / "absent.db"))
        result = await host.tools.process_tool_call(ToolCall("sql_schema", {}))

    assert "db.url: its file can't be read" in result.content


async def test_with_files_no_secret_is_needed(tmp_path, hosted):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    async with hosted(files={"t": str(tmp_path / "t.csv")}) as host:
        result = await host.tools.process_tool_call(ToolCall("sql_query", {"sql": "SELECT b FROM t"}))

    assert result.output["rows"] == [["x"]]


async def test_the_url_is_in_no_result(hosted):
    async with hosted("postgresql://ada:hunter2@127.0.0.1:1/shop") as host:
        result = await host.tools.process_tool_call(ToolCall("sql_query", {"sql": "SELECT 1"}))

    assert not result.success
    assert "hunter2" not in result.content
    assert "127.0.0.1" not in result.content


async def test_a_cancelled_call_leaves_no_process(shop, hosted):
    sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    async with hosted(shop, timeoutSeconds=60) as host:
        task = asyncio.create_task(host.tools.process_tool_call(ToolCall("sql_query", {"sql": sql}, id="slow")))
        await until(children)
        await host.tools.cancel("slow")
        result = await task

    assert result.error.type == "Cancelled"
    await until(lambda: not children())


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - another process sets no event
            await asyncio.sleep(0)


def children():
    """Return the processes of this pack that this process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, parent = (
                (folder / "cmdline").read_text(),
                (folder / "stat").read_text().rpartition(") ")[2].split()[1],
            )
        except (FileNotFoundError, ProcessLookupError):
            continue
        if "_sql_query._child" in command and int(parent) == os.getpid():
            found.append(folder.name)
    return found


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"file": {}}, "options.file"),
        ({"files": ["a.csv"]}, "options.files"),
        ({"files": {"no table": "a.csv"}}, "options.files"),
        ({"maxRows": 0}, "options.maxRows"),
        ({"timeoutSeconds": 0}, "options.timeoutSeconds"),
        ({"timeoutSeconds": "10"}, "options.timeoutSeconds"),
        ({"memoryMegabytes": 1}, "options.memoryMegabytes"),
        ({"maxBytes": 10**9}, "options.maxBytes"),
    ],
)
async def test_a_wrong_option_fails_the_load_and_is_named(options, text):
    async with AgentOS(extension_manifest=[PackEntry(module="agentos_pack_sql_query", options=options)]) as host:
        (outcome,) = host.extensions.report.outcomes

    assert outcome.status == "failed"
    assert text in outcome.reason


# -- sources -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}", "SQLite:///{path}", " {path} "])
def test_a_sqlite_file_is_named_by_path_or_url(shop, form):
    source = source_of_url(form.replace("{path}", str(shop)))

    assert (source.dialect, source.target) == ("sqlite", str(shop.resolve()))


def test_a_relative_url_is_relative_to_the_working_folder(shop, monkeypatch):
    monkeypatch.chdir(shop.parent)

    assert source_of_url("sqlite:///shop.db").target == str(shop.resolve())


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://root:hunter2@host/x", "the scheme 'mysql' is not supported; expected sqlite:///"),
        ("sqlite://", "there is no path"),
        ("sqlite:///", "there is no path"),
        ("/absent/hunter2/a.db", "its file can't be read"),
        ("/", "no regular file"),
        ("/dev/null", "no regular file"),
        ("a\0b", "is no path"),
        ("http://hunter2/x.db", "scheme 'http'"),
        ("file:///hunter2.db", "scheme 'file'"),
    ],
)
def test_other_urls_are_refused_and_not_repeated(url, words):
    with pytest.raises(ValueError, match=f"^db.url: .*{words}") as caught:
        source_of_url(url)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.txt", "'.txt' is not read; use .csv"),
        ("a[1].csv", "would match other files"),
        ("absent.csv", "can't be read"),
    ],
)
def test_files_that_can_not_be_tables_are_refused(tmp_path, name, words):
    if "absent" not in name:
        (tmp_path / name).write_text("a\n1\n")

    with pytest.raises(ValueError, match=f"^options.files.t: .*{words}"):
        source_of_files({"t": tmp_path / name}, 1)


def test_files_that_are_too_large_are_refused(tmp_path):
    with (tmp_path / "a.csv").open("wb") as file:
        file.truncate(2 << 20)

    with pytest.raises(ValueError, match=r"^options\.files: 2,097,152 bytes in all; at most 1 MB"):
        source_of_files({"t": tmp_path / "a.csv"}, 1)


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("DELETE FROM t", "DELETE"),
        ("  -- SELECT\n/* x */ drop table t;", "DROP"),
        ("begin;", "BEGIN"),
        ("SELECT 1", None),
        ("WITH x AS (SELECT 1) DELETE FROM t", None),
        ("DELETE FROM t; SELECT 1", None),
        ("-- only a comment", None),
        ("/* open", None),
        ("", None),
        ("x" * 20_000, None),
    ],
)
def test_the_first_word_tells_what_most_statements_are(sql, word):
    assert only_word(sql) == word


# -- the distribution --------------------------------------------------------------------------------------------


def test_its_secret_is_in_the_catalog():
    ids = {secret["id"] for secret in json.loads(CATALOG.read_text("utf-8"))["secrets"]}
    needed = {need.id for one in made().descriptors for need in one.required_secrets}

    assert needed == {"db.url"}
    assert needed <= ids


def test_with_a_database_it_passes_the_conformance_checks(shop):
    """Without one, as others examine it, its tools can only say that there is none."""
    good = {"sql": "SELECT name FROM customers WHERE id = ?", "parameters": [1]}
    found = check_pack(
        "agentos_pack_sql_query", strict=True, cases=2, secrets={"db.url": str(shop)}, samples={"sql_query": good}
    )

    assert found == []


def test_the_pack_offers_its_two_tools():
    pack = made()

    assert (pack.name, pack.version) == ("sql-query", agentos_pack_sql_query.__version__)
    assert [one.key for one in pack.descriptors] == [("tool", "sql_schema"), ("tool", "sql_query")]


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"sql-query": "agentos_pack_sql_query"}}
    assert project["version"] == agentos_pack_sql_query.__version__


def test_the_examples_of_the_readme_are_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_sql_query\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_sql_query._tools, agentos_pack_sql_query._files\n"
        "print({'attrs', 'agentos'} & light, {'duckdb', 'sqlglot', 'asyncpg', 'sqlite3'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"
