"""The pack as a host sees it."""

import doctest
import inspect
import sqlite3
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_incidents
import jsonschema
import pytest
from agentos_pack_common import OptionsError
from agentos_pack_incidents.records import open_book
from agentos_pack_incidents.tools import create_tools

from agentos import AgentOS, lint_pack

TOOLS = tuple(create_tools(open_book(Path("unused.db"))))
EXPECTED = {
    "incident_list": ("read", ("incidents:read",)),
    "incident_get": ("read", ("incidents:read",)),
    "incident_open": ("mutate", ("incidents:write",)),
    "incident_update": ("mutate", ("incidents:write",)),
    "incident_resolve": ("mutate", ("incidents:write",)),
    "incident_purge": ("destructive", ("incidents:admin",)),
}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_every_parameter_is_documented_and_bounded(self, tool):
        bounds = {"maxLength", "maximum", "maxItems", "enum"}

        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"], name
            assert bounds & {*schema, *(key for option in schema.get("anyOf", ()) for key in option)}, name

    def test_its_effect_and_access_are_said(self, tool):
        assert EXPECTED[tool.name] == (tool.effect, tool.required_access)

    def test_it_can_be_previewed_if_it_changes_something(self, tool):
        assert (tool.effect == "read") == (tool.dry_run is None)

    def test_it_has_a_timeout_and_an_output_schema(self, tool):
        assert tool.timeout
        assert tool.output_schema["additionalProperties"] is False

    def test_it_describes_itself(self, tool):
        assert tool.description == inspect.getdoc(tool.function)


async def test_every_output_fits_its_schema(hosting, call):
    async with hosting(mode="auto") as host:
        results = [
            await call(host, "incident_open", title="One", severity="low"),
            await call(host, "incident_update", id=1, version=1, title="Two"),
            await call(host, "incident_resolve", id=1, version=2, resolution="done"),
            await call(host, "incident_get", id=1),
            await call(host, "incident_list", status="any"),
        ]
        asked = await call(host, "incident_purge", incidents=[{"id": 1, "version": 3}])
        purged = await host.approvals.approve(asked.error.details["token"])

    assert all(result.success for result in results), [result.content for result in results]
    assert purged.output == {
        "succeeded": 1,
        "failed": 0,
        "results": [{"success": True, "output": {"id": 1, "title": "Two", "timeline_total": 3}}],
    }


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("incident_open", {"title": "x", "severity": "urgent"}),
        ("incident_open", {"title": "", "severity": "low"}),
        ("incident_open", {"title": "x" * 201, "severity": "low"}),
        ("incident_open", {"title": "x", "severity": "low", "summary": "x" * 4001}),
        ("incident_open", {"title": "x", "severity": "low", "opened_by": "somebody"}),
        ("incident_update", {"id": 1, "version": 1, "status": "resolved"}),
        ("incident_update", {"id": 1, "version": 0}),
        ("incident_get", {"id": 2**64}),
        ("incident_list", {"limit": 101}),
        ("incident_purge", {"incidents": []}),
        ("incident_purge", {"incidents": [{"id": 1}]}),
    ],
)
async def test_arguments_that_do_not_fit_are_refused(hosting, call, name, arguments):
    async with hosting(mode="auto") as host:
        assert (await call(host, name, **arguments)).error.type == "InvalidArguments"


@pytest.mark.parametrize("title", ["\u200b", "\x00", "\u202e \u2066", "\n"])
async def test_a_title_must_be_visible(hosting, call, title):
    async with hosting(mode="auto") as host:
        result = await call(host, "incident_open", title=title, severity="low")

    assert "title: expected text that can be seen, got none" in result.content


async def test_what_is_written_is_plain(hosting, call, opened):
    """What one model writes another will read: nothing hidden goes from the one to the other."""
    async with hosting(mode="auto") as host:
        await opened(host, "a\x1b[31m\u202eb\nc", summary="one\x00\ntwo\u200b ")
        found = (await call(host, "incident_get", id=1)).output

    assert (found["title"], found["summary"]) == ("ab c", "one\ntwo")


async def test_an_incident_named_twice_is_not_purged_by_halves(hosting, call, opened):
    async with hosting(mode="auto") as host:
        await opened(host)
        await call(host, "incident_resolve", id=1, version=1, resolution="done")
        twice = [{"id": 1, "version": 2}, {"id": 1, "version": 2}]
        asked = await call(host, "incident_purge", incidents=twice)
        result = await host.approvals.approve(asked.error.details["token"])

        assert "incidents: 1 named more than once" in result.content
        assert (await call(host, "incident_get", id=1)).success


async def test_opening_tells_of_what_may_be_the_same(hosting, opened):
    async with hosting(mode="auto") as host:
        await opened(host, "Slow login", service="auth")
        arguments = {"title": "Login fails", "severity": "high", "service": "auth"}
        shown = await host.tools.preview({"name": "incident_open", "arguments": arguments})

    assert shown.output["details"] == ["service: auth", "may be the same: 1 'Slow login' (high, open)"]


def pack(**options):
    return agentos_pack_incidents.create_extension_pack(SimpleNamespace(options=options))


def test_the_pack_offers_its_tools(path):
    found = pack(path=str(path))

    assert (found.name, found.version) == ("incidents", agentos_pack_incidents.__version__)
    assert [("tool", name) for name in EXPECTED] == [(d.kind, d.id) for d in found.descriptors]


def test_the_pack_is_clean(path):
    assert [str(finding) for finding in lint_pack(pack(path=str(path))) if finding.severity != "info"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": 5}, r"options\.path: expected a path, got a whole number"),
        ({"path": "x.db", "pth": "y.db"}, r"options\.pth: is not known; did you mean `path`\?"),
    ],
)
def test_wrong_options_fail_the_load(options, message):
    with pytest.raises(OptionsError, match=message):
        pack(**options)


async def test_a_file_of_something_else_is_left_alone(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE accounts (id)")
    db.close()
    before = path.read_bytes()
    entry = {"module": "agentos_pack_incidents", "options": {"path": str(path)}}
    async with AgentOS() as host:
        outcome = await host.extensions.load(entry)

    assert outcome.status == "failed"
    assert "belongs to another program" in str(outcome.error)
    assert str(path.parent) not in str(outcome.error)
    assert before == path.read_bytes()


async def test_hosts_share_a_file(hosting, opened, call):
    async with hosting(mode="auto") as first, hosting(mode="auto") as second:
        await opened(first, "Login fails")

        assert (await call(second, "incident_get", id=1)).output["title"] == "Login fails"


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"incidents": "agentos_pack_incidents"}}
    assert project["version"] == agentos_pack_incidents.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = "import sys\nimport agentos_pack_incidents\nprint({'attrs', 'sqlite3', 'agentos'} & set(sys.modules))"

    assert run_python(code) == "set()"
