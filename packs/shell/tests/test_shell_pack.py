"""The pack as a host sees it."""

import doctest
import inspect
import os
import tomllib
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_shell
import jsonschema
import pytest
from agentos_pack_common import find_program
from agentos_pack_shell.policy import read_policy
from agentos_pack_shell.tools import create_tools

from agentos import AgentOS, Principal, ToolCall, lint_pack

TOOLS = create_tools(read_policy({}))
ECHO = os.path.realpath(find_program("echo"))


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

    def test_it_describes_itself(self, tool):
        assert tool.description == inspect.getdoc(tool.function)

    def test_it_needs_access_and_has_a_timeout(self, tool):
        assert (tool.required_access, bool(tool.timeout)) == (("shell:run",), True)


def test_running_is_destructive_and_looking_is_not():
    assert [(tool.name, tool.effect) for tool in TOOLS] == [("run_command", "destructive"), ("which", "read")]


async def test_a_command_runs_when_it_was_approved(hosting, run):
    async with hosting("echo *") as host:
        output = (await run(host, "echo", "hello")).output

    assert {**output, "seconds": 0} == {
        "exit_code": 0,
        "signal": None,
        "stdout": "hello\n",
        "stderr": "",
        "truncated": False,
        "timed_out": False,
        "seconds": 0,
    }


@pytest.mark.parametrize("mode", ["approve", "auto"])
async def test_no_mode_or_grant_runs_a_command_unasked(hosting, mode):
    async with hosting("echo *", settings={"mode": mode}) as host:
        await host.grants.add("shell:run_command", "always")
        result = await host.tools.process_tool_call(ToolCall("run_command", {"argv": ["echo", "x"]}))

    assert result.error.type == "ApprovalRequired"


async def test_what_is_approved_is_shown_before(hosting, root):
    (root / "sub").mkdir()
    arguments = {"argv": ["echo", "a b", "x\u202ey"], "cwd": "sub", "stdin": "input", "timeout": 5}
    async with hosting({"command": "echo *", "forbid": ["-e"]}) as host:
        shown = await host.tools.preview(ToolCall("run_command", arguments))

    assert shown.output == {
        "would": "run echo with 2 arguments in 'sub', for at most 5 s",
        "command": r"echo 'a b' 'x\u202ey'",
        "program": ECHO,
        "cwd": "sub",
        "stdin": "input",
        "seconds": 5,
        "allowed_by": "echo * (never: -e)",
    }


async def test_a_preview_runs_nothing(hosting, root):
    async with hosting("touch *") as host:
        assert (await host.tools.preview(ToolCall("run_command", {"argv": ["touch", "made"]}))).success

    assert list(root.iterdir()) == []


@pytest.mark.parametrize("arguments", [{"argv": ["rm", "x"]}, {"argv": ["echo", "x"], "cwd": ".."}])
async def test_a_preview_refuses_what_running_would_refuse(hosting, arguments):
    async with hosting("echo *") as host:
        assert not (await host.tools.preview(ToolCall("run_command", arguments))).success


async def test_without_rules_nothing_runs_and_the_way_out_is_told(run):
    async with AgentOS(extension_manifest={"packs": [{"module": "agentos_pack_shell", "required": True}]}) as host:
        result = await run(host, "ls")

    assert result.error.type == "ToolRaised"
    assert "nothing may be run here, since the operator allowed nothing" in result.error.message
    assert '"allow": ["ls", "ls *", "git status"]' in result.error.message


async def test_what_is_allowed_is_told_to_who_asks_for_something_else(hosting, run):
    async with hosting("echo *", "ls") as host:
        other = await run(host, "rm", "-rf", "/")
        wrong = await run(host, "ls", "-l")

    assert "'rm' is not allowed; allowed are `echo *`, `ls`. The operator adds others" in other.error.message
    assert "'ls' with these arguments is not allowed; allowed are `ls`." in wrong.error.message


async def test_an_option_that_is_not_allowed_is_named(hosting, run):
    async with hosting({"command": "ls *", "flags": ["-l"]}) as host:
        result = await run(host, "ls", "-la")

    assert "the option '-la' is not allowed for `ls *`; options that are: -l." in result.error.message


async def test_an_exit_code_is_an_answer(hosting, run):
    async with hosting("ls *") as host:
        result = await run(host, "ls", "missing")

    assert result.success
    assert result.output["exit_code"] == 2
    assert "missing" in result.output["stderr"]


async def test_a_program_reads_its_input(hosting, run):
    async with hosting("cat") as host:
        assert (await run(host, "cat", stdin="über\n")).output["stdout"] == "über\n"


async def test_a_program_without_input_meets_its_end(hosting, run):
    async with hosting("cat") as host:
        assert (await run(host, "cat")).output["stdout"] == ""


async def test_which_tells_what_is_allowed(hosting):
    async with hosting("git log *", "git status", "no-such-program") as host:
        listed = (await host.tools.process_tool_call(ToolCall("which"))).output["programs"]
        other = (await host.tools.process_tool_call(ToolCall("which", {"program": "ls"}))).output["programs"]

    assert listed == [
        {"program": "git", "path": find_program("git"), "allowed": True, "commands": ["git log *", "git status"]},
        {"program": "no-such-program", "path": None, "allowed": True, "commands": ["no-such-program"]},
    ]
    assert other == [{"program": "ls", "path": find_program("ls"), "allowed": False, "commands": []}]


async def test_which_takes_names_only(hosting):
    async with hosting() as host:
        result = await host.tools.process_tool_call(ToolCall("which", {"program": "../etc/passwd"}))

    assert "program: expected a plain name such as git" in result.content


async def test_who_lacks_the_rule_sees_no_tool(hosting):
    async with hosting("ls") as host:
        assert host.tools.list_available_tools(Principal("ann", access={"files:read"})) == []
        assert len(host.tools.list_available_tools(Principal("bob", access={"shell:run"}))) == 2


def pack(**options):
    return agentos_pack_shell.create_extension_pack(SimpleNamespace(options=options))


def test_the_pack_offers_its_tools():
    found = pack()

    assert (found.name, found.version) == ("shell", agentos_pack_shell.__version__)
    assert [d.id for d in found.descriptors] == ["run_command", "which"]


def test_the_pack_is_clean():
    assert [str(finding) for finding in lint_pack(pack()) if finding.severity != "info"] == []


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"shell": "agentos_pack_shell"}}
    assert project["version"] == agentos_pack_shell.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = "import sys\nimport agentos_pack_shell\nprint({'attrs', 'agentos', 'subprocess'} & set(sys.modules))"

    assert run_python(code) == "set()"
