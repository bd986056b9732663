"""The pack as a host sees it."""

import doctest
import inspect
import tomllib
from pathlib import Path

import agentos_pack_http_request
import jsonschema
import pytest
from agentos_pack_common import WebClient
from agentos_pack_http_request.settings import read_settings
from agentos_pack_http_request.tools import create_descriptors

from agentos import PackEntry, PackLoadError, Principal, ToolCall, lint_pack

SETTINGS = read_settings({"allow": ["api.example.org"]})
TOOLS = [descriptor.payload for descriptor in create_descriptors(SETTINGS, WebClient(SETTINGS.policy))]
READER = Principal("ann", access={"http:read"})


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_its_schema_has_the_parameters_and_their_docs(self, tool):
        parameters = [name for name in inspect.signature(tool.function).parameters if name != "context"]

        assert parameters == list(tool.input_schema["properties"])
        assert all(schema["description"] for schema in tool.input_schema["properties"].values())

    def test_every_parameter_is_bounded(self, tool):
        bounds = {"maxLength", "maximum", "maxItems", "maxProperties", "enum"}

        for name, schema in tool.input_schema["properties"].items():
            assert bounds & schema.keys(), name

    def test_it_has_an_output_schema_and_a_timeout(self, tool):
        assert tool.output_schema["type"] == "object"
        assert tool.timeout == 40


def test_the_one_that_reads_says_so_and_the_other_says_that_it_changes_things():
    assert [(tool.name, tool.effect, tool.required_access) for tool in TOOLS] == [
        ("http_get", "read", ("http:read",)),
        ("http_request", "mutate", ("http:request",)),
    ]


async def test_the_pack_loads_by_its_module_and_lints_clean(hosting):
    async with hosting() as host:
        (record,) = host.extensions.packs()
        offered = [info.name for info in host.tools.list_available_tools()]
    pack = agentos_pack_http_request.create_extension_pack(type("Context", (), {"options": {}}))

    assert (record.name, record.version) == ("http-request", agentos_pack_http_request.__version__)
    assert offered == ["http_get", "http_request"]
    assert [finding for finding in lint_pack(pack) if finding.severity != "info"] == []


async def test_who_may_only_read_is_not_offered_the_other_one(hosting):
    async with hosting() as host:
        offered = [info.name for info in host.tools.list_available_tools(READER)]
        result = await host.tools.process_tool_call(ToolCall("http_request", {"method": "GET", "url": "x"}), READER)

    assert (offered, result.error.type) == (["http_get"], "UnknownTool")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alow": ["a.example"]}, r"options\.alow: is not known; did you mean `allow`\?"),
        ({"allow": ["exa mple"]}, r"options\.allow: 'exa mple'"),
        ({"maxBytes": 0}, r"options\.maxBytes: expected a number of bytes"),
        ({"timeout": 0}, r"options\.timeout: expected seconds"),
        ({"maxRedirects": 21}, r"options\.maxRedirects"),
        (
            {"hosts": {"a.example": {"secret": "github.token"}}},
            r"options\.hosts: 'a\.example' may not be reached; name",
        ),
        ({"hosts": {"b.example": {"secret": "x"}}, "allow": ["a.example"]}, r"options\.hosts: 'b\.example': .*`allow`"),
        ({"hosts": {"a.example/v1": {"secret": "x"}}, "allow": ["a.example"]}, r"without a path"),
        ({"hosts": {"*.example": {"secret": "x"}}, "allow": ["a.example"]}, r"expected a host such as"),
        (
            {"hosts": {"a.example": {"secret": "x"}, "https://A.example:443": {"secret": "y"}}, "allow": ["a.example"]},
            r"the same place as 'a\.example'",
        ),
        (
            {"hosts": {"a.example": {"secret": " "}}, "allow": ["a.example"]},
            r"options\.hosts\.a\.example\.secret: name",
        ),
        ({"hosts": {"a.example": {}}, "allow": ["a.example"]}, r"options\.hosts\.a\.example\.secret: is needed"),
        (
            {"hosts": {"a.example": {"secert": "x"}}, "allow": ["a.example"]},
            r"secert: is not known; did you mean `secret`",
        ),
        (
            {"hosts": {"a.example": {"secret": "x", "format": "Bearer"}}, "allow": ["a.example"]},
            r"options\.hosts\.a\.example\.format: expected one line of ASCII with one \{\}",
        ),
        (
            {"hosts": {"a.example": {"secret": "x", "format": "{} {base64}"}}, "allow": ["a.example"]},
            r"format: expected",
        ),
        ({"hosts": {"a.example": {"secret": "x", "format": "a\n{}"}}, "allow": ["a.example"]}, r"format: expected"),
    ],
)
async def test_a_wrong_option_fails_the_load_and_is_named(hosting, options, message):
    async with hosting() as host:
        outcome = await host.extensions.load(
            PackEntry(module="agentos_pack_http_request", options=options, identifier="second")
        )

    assert isinstance(outcome.error, PackLoadError)
    with pytest.raises(PackLoadError, match=message):
        raise outcome.error


def test_no_header_that_follows_a_redirect_can_carry_a_secret():
    from agentos.web._outgoing import _KEPT, _OURS

    for header in (*_KEPT, *_OURS, "Proxy-Authorization", "bad name", "x\ny"):
        entry = {"secret": "github.token", "header": header}
        with pytest.raises(ValueError, match="can't carry a secret"):
            read_settings({"allow": ["a.example"], "hosts": {"a.example": entry}})


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"http-request": "agentos_pack_http_request"}}
    assert project["version"] == agentos_pack_http_request.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_http_request\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_http_request.tools\n"
        "print({'attrs', 'agentos_pack_common'} & light, {'httpx', 'httpcore'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"
