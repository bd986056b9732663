"""The pack as a host sees it."""

import doctest
import inspect
import tomllib
from pathlib import Path

import agentos_pack_web_extract
import jsonschema
import pytest

from agentos import PUBLIC, AgentOS, PackEntry, Principal, ToolCall, lint_pack


def pack(**options):
    return agentos_pack_web_extract.create_extension_pack(type("Context", (), {"options": options}))


PACK = pack()
TOOLS = [descriptor.payload for descriptor in PACK.descriptors]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_its_parameters_are_documented_and_bounded(self, tool):
        assert list(inspect.signature(tool.function).parameters) == list(tool.input_schema["properties"])
        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"], name
            assert {"maxLength", "maximum", "enum"} & schema.keys(), name

    def test_it_reads_and_is_public(self, tool):
        assert (tool.effect, tool.required_access, tool.timeout) == ("read", PUBLIC, 110)

    def test_it_describes_itself(self, tool):
        assert tool.description == inspect.getdoc(tool.function)


def test_the_pack_offers_its_three_tools():
    assert (PACK.name, PACK.version) == ("web-extract", agentos_pack_web_extract.__version__)
    assert [tool.name for tool in TOOLS] == ["fetch_page", "extract_links", "extract_pdf"]


def test_without_a_root_no_path_can_be_named():
    assert "path" not in TOOLS[2].input_schema["properties"]


def test_with_a_root_files_need_the_right_to_read_files(tmp_path):
    tool = pack(root=str(tmp_path)).descriptors[2].payload

    assert list(tool.input_schema["properties"]) == ["url", "path", "pages", "max_chars"]
    assert tool.required_access == ("files:read",)


async def test_who_may_not_read_files_is_not_offered_them(hosting, tmp_path):
    async with hosting(root=str(tmp_path)) as host:
        offered = [info.name for info in host.tools.list_available_tools(Principal("ann"))]

    assert offered == ["fetch_page", "extract_links"]


def test_the_pack_lints_clean(tmp_path):
    for one in (PACK, pack(root=str(tmp_path))):
        assert [finding for finding in lint_pack(one) if finding.severity != "info"] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"roots": "."}, "options.roots: is not known; did you mean `root`?"),
        ({"root": "/nowhere/at/all"}, "options.root"),
        ({"root": 7}, "options.root: expected a path"),
        ({"maxBytes": 10_000_001}, "options.maxBytes: expected at most 10,000,000"),
        ({"maxBytes": 0}, "options.maxBytes: expected a number of bytes"),
        ({"extractSeconds": 0}, "options.extractSeconds"),
        ({"allow": ["a b"]}, "options.allow"),
    ],
)
async def test_a_wrong_option_fails_the_load_and_is_named(options, words):
    async with AgentOS() as host:
        outcome = await host.extensions.load(PackEntry(module="agentos_pack_web_extract", options=options))

    assert outcome.status == "failed"
    assert words in str(outcome.error)


async def test_the_pack_can_be_put_down_and_taken_up_again(hosting, site):
    site.pages["/"] = (200, {"Content-Type": "text/plain"}, b"hello")
    async with hosting(site) as host:
        (record,) = host.extensions.packs()
        results = []
        for _ in range(2):
            results.append(await host.tools.process_tool_call(ToolCall("fetch_page", {"url": f"{site.url}/"})))
            await host.extensions.disable(record.key)
            await host.extensions.enable(record.key)

    assert [result.output["text"] for result in results] == ["hello", "hello"]


def test_the_distribution_says_where_the_pack_is_and_names_what_trafilatura_forgets():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"web-extract": "agentos_pack_web_extract"}}
    assert project["version"] == agentos_pack_web_extract.__version__
    assert any(one.startswith("lxml_html_clean") for one in project["dependencies"])


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_web_extract\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_web_extract.tools\n"
        "heavy = {'httpx', 'httpcore', 'trafilatura', 'lxml', 'pypdf'}\n"
        "print({'attrs', 'agentos_pack_common'} & light, heavy & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"
