"""The pack as a host sees it."""

import asyncio
import doctest
import inspect
import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_files
import attrs
import jsonschema
import pytest
from agentos_pack_common import OptionsError

from agentos import AgentOS, PackEntry, Principal, ToolCall, lint_pack

NAMES = {
    "read_file": "read",
    "list_dir": "read",
    "search_files": "read",
    "grep_files": "read",
    "write_file": "mutate",
    "edit_file": "mutate",
    "move_file": "mutate",
    "delete_file": "destructive",
}
CALLS = {
    "read_file": {"path": "a.txt"},
    "list_dir": {},
    "search_files": {"query": "*.py"},
    "grep_files": {"pattern": "hello"},
    "write_file": {"path": "new.txt", "content": "new\n"},
    "edit_file": {"path": "a.txt", "old_text": "two", "new_text": "2"},
    "move_file": {"source": "a.txt", "destination": "b/a.txt"},
    "delete_file": {"path": "a.txt"},
}


def pack(root, **options):
    return agentos_pack_files.create_extension_pack(SimpleNamespace(options={"root": str(root), **options}))


def entry(root, **options):
    return PackEntry(module="agentos_pack_files", options={"root": str(root), **options}, required=True)


@pytest.fixture
async def host(tree):
    async with AgentOS(mode="auto") as made:
        await made.extensions.load(entry(tree))
        yield made


@pytest.mark.parametrize("name", NAMES)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tools, name):
        schema = tools()[name].input_schema

        jsonschema.Draft202012Validator.check_schema(schema)

        assert schema["additionalProperties"] is False

    def test_every_parameter_is_told_and_bounded(self, tools, name):
        bounds = {"maxLength", "maximum", "maxItems", "enum"}

        for parameter, schema in tools()[name].input_schema["properties"].items():
            words = {*schema, *(key for option in schema.get("anyOf", ()) for key in option)}
            assert schema["description"], parameter
            assert bounds & words or schema.get("type") == "boolean", parameter

    def test_it_says_its_effect_and_whom_it_is_for(self, tools, name):
        tool = tools()[name]
        rule = "files:read" if NAMES[name] == "read" else "files:write"

        assert (NAMES[name], (rule,)) == (tool.effect, tool.required_access)

    def test_what_changes_something_can_be_previewed(self, tools, name):
        assert (tools()[name].dry_run is not None) is (NAMES[name] != "read")

    def test_it_describes_itself(self, tools, name):
        tool = tools()[name]

        assert tool.description == inspect.getdoc(tool.function)

    def test_its_result_is_a_frozen_value(self, tools, name):
        result = tools()[name](**CALLS[name])
        result = asyncio.run(result) if inspect.iscoroutine(result) else result

        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(result, attrs.fields(type(result))[0].name, None)


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_through_a_host_gives_json_that_fits_its_output_schema(host, tools, name):
    result = await host.tools.process_tool_call(ToolCall(name, json.dumps(CALLS[name])))
    if not result.success:
        result = await host.approvals.approve(result.error.details["token"])

    assert result.success, result.content
    jsonschema.validate(result.output, tools()[name].output_schema)


async def test_deleting_waits_for_approval_and_shows_what_would_go(host, tree):
    asked = await host.tools.process_tool_call(ToolCall("delete_file", {"path": "a.txt"}))

    (proposal,) = await host.approvals.pending()
    assert (asked.error.type, (tree / "a.txt").exists()) == ("ApprovalRequired", True)
    assert (proposal.preview["path"], proposal.preview["applied"]) == ("a.txt", False)

    done = await host.approvals.approve(asked.error.details["token"])
    assert (done.success, (tree / "a.txt").exists()) == (True, False)


async def test_in_approve_mode_a_change_waits_and_shows_its_diff(tree):
    async with AgentOS() as host:
        await host.extensions.load(entry(tree))
        await host.tools.process_tool_call(ToolCall("edit_file", CALLS["edit_file"]))
        (proposal,) = await host.approvals.pending()

        assert "-two\n+2\n" in proposal.preview["diff"]
        assert (tree / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_without_the_rule_there_are_no_tools(host):
    nobody = Principal("nobody", access=frozenset({"files:read"}))

    assert {"read_file", "list_dir", "search_files", "grep_files"} == {
        info.name for info in host.tools.list_available_tools(nobody)
    }


async def test_an_error_names_neither_the_folder_nor_a_traceback(host, tree):
    result = await host.tools.process_tool_call(ToolCall("read_file", {"path": "missing.txt"}))

    assert not result.success
    assert str(tree) not in result.content
    assert "Traceback" not in result.content


def test_the_pack_offers_its_tools(tree):
    found = pack(tree)

    assert ("files", agentos_pack_files.__version__) == (found.name, found.version)
    assert [("tool", name) for name in NAMES] == [(d.kind, d.id) for d in found.descriptors]


def test_a_pack_that_only_reads_has_no_tools_that_change(tree):
    reading = [name for name, effect in NAMES.items() if effect == "read"]

    assert reading == [d.id for d in pack(tree, writable=False).descriptors]


def test_lint_has_no_complaints(tree):
    assert [finding for finding in lint_pack(pack(tree)) if finding.severity != "info"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxFileByte": 5_000}, r"options\.maxFileByte.*maxFileBytes"),
        ({"maxFileBytes": "5"}, r"options\.maxFileBytes: expected a whole number"),
        ({"maxFileBytes": 5}, r"options\.maxFileBytes"),
        ({"regexSeconds": 0}, r"options\.regexSeconds"),
        ({"hidden": "*.txt"}, r"options\.hidden: expected a list"),
    ],
)
def test_a_wrong_option_is_refused_with_its_place(tree, options, message):
    with pytest.raises(OptionsError, match=message):
        pack(tree, **options)


def test_a_root_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a folder that exists"):
        pack(tmp_path / "missing")


def test_more_can_be_hidden(tree, tools):
    with pytest.raises(ValueError, match="is hidden"):
        tools(hidden=("*.md",))["read_file"]("src/deep/notes.md")


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"files": "agentos_pack_files"}}
    assert project["version"] == agentos_pack_files.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    outcome = doctest.testfile(str(readme), module_relative=False)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_files\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_files._tools\n"
        "print({'attrs', 'agentos'} & light, {'pathspec', 'rapidfuzz', 'httpx'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"
