"""The pack as a host sees it."""

import doctest
import inspect
import json
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import agentos_pack_archive
import attrs
import jsonschema
import pytest
from agentos_pack_common import OptionsError

from agentos import AgentOS, PackEntry, ToolCall, lint_pack

NAMES = {"zip_create": "mutate", "zip_extract": "mutate", "zip_list": "read"}
CALLS = {
    "zip_create": {"name": "new.zip", "paths": ["src"]},
    "zip_extract": {"path": "x.zip", "dest": "out"},
    "zip_list": {"path": "x.zip"},
}


@pytest.fixture
def packed(tree):
    with zipfile.ZipFile(tree / "x.zip", "w") as archive:
        archive.writestr("one.txt", "1")
        archive.writestr("deep/two.txt", "2")
    return tree


def pack(root, **options):
    return agentos_pack_archive.create_extension_pack(SimpleNamespace(options={"root": str(root), **options}))


@pytest.fixture
async def host(packed):
    async with AgentOS(mode="auto") as made:
        await made.extensions.load(
            PackEntry(module="agentos_pack_archive", options={"root": str(packed)}, required=True)
        )
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

        assert NAMES[name] == tool.effect
        assert tool.required_access[:1] == ("files:read",)
        assert ("files:write" in tool.required_access) is (NAMES[name] == "mutate")

    def test_what_changes_something_can_be_previewed(self, tools, name):
        assert (tools()[name].dry_run is not None) is (NAMES[name] != "read")

    def test_it_describes_itself(self, tools, name):
        tool = tools()[name]

        assert tool.description == inspect.getdoc(tool.function)

    def test_its_result_is_a_frozen_value(self, packed, tools, name):
        result = tools()[name](**CALLS[name])

        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(result, attrs.fields(type(result))[0].name, None)


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_through_a_host_gives_json_that_fits_its_output_schema(host, tools, name):
    result = await host.tools.process_tool_call(ToolCall(name, json.dumps(CALLS[name])))

    assert result.success, result.content
    jsonschema.validate(result.output, tools()[name].output_schema)


async def test_in_approve_mode_unpacking_waits_and_shows_what_would_come(packed):
    async with AgentOS() as host:
        await host.extensions.load(PackEntry(module="agentos_pack_archive", options={"root": str(packed)}))
        asked = await host.tools.process_tool_call(ToolCall("zip_extract", CALLS["zip_extract"]))
        (proposal,) = await host.approvals.pending()

        assert (asked.error.type, (packed / "out").exists()) == ("ApprovalRequired", False)
        assert (proposal.preview["names"], proposal.preview["applied"]) == (["one.txt", "deep/two.txt"], False)


async def test_an_error_names_neither_the_folder_nor_a_traceback(host, packed):
    (packed / "broken.zip").write_bytes(b"PK\3\4garbage")

    result = await host.tools.process_tool_call(ToolCall("zip_list", {"path": "broken.zip"}))

    assert not result.success
    assert "path: 'broken.zip' can't be used: it is broken" in result.content
    assert str(packed) not in result.content
    assert "Traceback" not in result.content


def test_the_pack_offers_its_tools(tree):
    found = pack(tree)

    assert ("archive", agentos_pack_archive.__version__) == (found.name, found.version)
    assert [("tool", name) for name in NAMES] == [(d.kind, d.id) for d in found.descriptors]


def test_a_pack_that_only_reads_only_lists(tree):
    assert [d.id for d in pack(tree, writable=False).descriptors] == ["zip_list"]


def test_lint_has_no_complaints(tree):
    assert [finding for finding in lint_pack(pack(tree)) if finding.severity != "info"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxByte": 5_000}, r"options\.maxByte.*maxBytes"),
        ({"maxMembers": "5"}, r"options\.maxMembers: expected a whole number"),
        ({"maxRatio": 1}, r"options\.maxRatio"),
        ({"maxArchiveBytes": 1}, r"options\.maxArchiveBytes"),
    ],
)
def test_a_wrong_option_is_refused_with_its_place(tree, options, message):
    with pytest.raises(OptionsError, match=message):
        pack(tree, **options)


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"archive": "agentos_pack_archive"}}
    assert project["version"] == agentos_pack_archive.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    outcome = doctest.testfile(str(readme), module_relative=False)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_archive\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_archive._tools\n"
        "print({'attrs', 'agentos', 'zipfile'} & light, {'httpx'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"
