"""The pack as a host sees it."""

import doctest
import inspect
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_git_repo
import jsonschema
import pytest
from agentos_pack_common import OptionsError
from agentos_pack_git_repo.options import Options
from agentos_pack_git_repo.tools import create_tools

from agentos import Principal, lint_pack

TOOLS = create_tools(Options(root=Path("/")))
EXPECTED = {
    **dict.fromkeys(["git_status", "git_log", "git_diff", "git_show", "git_blame"], ("read", ("git:read",))),
    **dict.fromkeys(["git_commit", "git_branch"], ("mutate", ("git:write",))),
    "git_reset": ("destructive", ("git:write",)),
}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_its_schema_has_the_parameters(self, tool):
        assert list(inspect.signature(tool.function).parameters) == list(tool.input_schema["properties"])

    def test_every_parameter_is_documented_and_bounded(self, tool):
        bounds = {"maxLength", "maximum", "maxItems", "enum"}

        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"], name
            known = {*schema, *(key for option in schema.get("anyOf", ()) for key in option)}
            assert bounds & known or schema["type"] == "boolean", name

    def test_its_effect_and_access_are_said(self, tool):
        assert EXPECTED[tool.name] == (tool.effect, tool.required_access)

    def test_it_can_be_previewed_if_it_changes_something(self, tool):
        assert (tool.effect == "read") == (tool.dry_run is None)

    def test_it_describes_itself(self, tool):
        assert tool.description == inspect.getdoc(tool.function)


def pack(**options):
    return agentos_pack_git_repo.create_extension_pack(SimpleNamespace(options=options))


def test_the_pack_offers_its_tools(root):
    found = pack(root=str(root))

    assert (found.name, found.version) == ("git-repo", agentos_pack_git_repo.__version__)
    assert [d.id for d in found.descriptors] == list(EXPECTED)


def test_the_pack_is_clean(root):
    assert [str(finding) for finding in lint_pack(pack(root=str(root))) if finding.severity != "info"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"root": "/no/such/folder"}, r"options\.root: is not a folder that exists"),
        ({"root": "/", "rot": 1}, r"options\.rot: is not known; did you mean `root`\?"),
        ({"root": "/", "authorName": "a\nb"}, r"options\.authorName: expected at most 200 characters, on one line"),
        ({"root": "/", "authorEmail": "<a@b>"}, r"options\.authorEmail: expected .* without < and >"),
        ({"root": "/", "hooks": "yes"}, r"options\.hooks: expected true or false, got text"),
        ({"root": "/", "maxSeconds": 0}, r"options\.maxSeconds: "),
        ({"root": "/", "maxBytes": 10}, r"options\.maxBytes: "),
    ],
)
def test_wrong_options_fail_the_load(options, message):
    with pytest.raises(OptionsError, match=message):
        pack(**options)


async def test_a_mutating_call_waits_for_approval(hosting, repo):
    repo.write("a", "changed\n")
    before = repo.head
    async with hosting(mode="approve") as host:
        call = {"name": "git_commit", "arguments": {"repo": "repo", "message": "x", "paths": ["a"]}}
        asked = await host.tools.process_tool_call(call)
        proposal = await host.approvals.describe(asked.error.details["proposal_id"])
        unchanged = repo.head
        done = await host.approvals.approve(proposal.id)

    assert (asked.error.type, unchanged) == ("ApprovalRequired", before)
    assert proposal.preview["details"] == ["modified: a (+1 -2)"]
    assert done.output["commit"] == repo.head


async def test_who_may_only_read_sees_what_reads(hosting):
    async with hosting() as host:
        names = [info.name for info in host.tools.list_available_tools(Principal("ann", access={"git:read"}))]

    assert names == ["git_status", "git_log", "git_diff", "git_show", "git_blame"]


async def test_nothing_is_left_behind(ask, repo, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "desks"))
    (tmp_path / "desks").mkdir()
    await ask("git_status")

    assert list((tmp_path / "desks").iterdir()) == []


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"git-repo": "agentos_pack_git_repo"}}
    assert project["version"] == agentos_pack_git_repo.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = "import sys\nimport agentos_pack_git_repo\nprint({'attrs', 'agentos', 'subprocess'} & set(sys.modules))"

    assert run_python(code) == "set()"
