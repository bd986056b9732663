"""The pack as a host sees it."""

import doctest
import inspect
import tomllib
from pathlib import Path

import agentos_pack_web_search
import jsonschema
import pytest
from agentos_pack_web_search.providers import PROVIDERS

from agentos import PUBLIC, AgentOS, PackEntry, SecretCatalog, ToolCall, lint_pack

PACK = agentos_pack_web_search.create_extension_pack(type("Context", (), {"options": {}}))
TOOLS = [descriptor.payload for descriptor in PACK.descriptors]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_closed_and_valid(self, tool):
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)

        assert tool.input_schema["additionalProperties"] is False

    def test_its_parameters_are_documented_and_bounded(self, tool):
        bounds = {"maxLength", "maximum", "enum"}
        parameters = [name for name in inspect.signature(tool.function).parameters if name != "context"]

        assert parameters == list(tool.input_schema["properties"])
        for name, schema in tool.input_schema["properties"].items():
            inner = {key for option in schema.get("anyOf", ()) for key in option}
            assert schema["description"], name
            assert bounds & {*schema, *inner}, name

    def test_it_reads_and_is_public(self, tool):
        assert (tool.effect, tool.required_access, tool.timeout) == ("read", PUBLIC, 80)


def test_the_pack_offers_its_two_tools():
    assert (PACK.name, PACK.version) == ("web-search", agentos_pack_web_search.__version__)
    assert [tool.name for tool in TOOLS] == ["web_search", "search_providers"]


def test_the_pack_lints_clean():
    assert [finding for finding in lint_pack(PACK) if finding.severity != "info"] == []


def test_every_secret_is_in_the_catalog_under_the_variable_that_messages_name():
    known = SecretCatalog.shipped().definitions

    assert {provider.secret: provider.variable for provider in PROVIDERS.values()} == {
        id: known[id].env_var for id in ("brave.apiKey", "tavily.apiKey", "serper.apiKey", "searxng.url")
    }
    assert all(secret.optional for one in PACK.descriptors for secret in one.required_secrets)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"provders": []}, "options.provders: is not known; did you mean `providers`?"),
        ({"providers": ["bing"]}, "options.providers[0]: expected one of"),
        ({"providers": []}, "options.providers: expected one or more"),
        ({"providers": ["brave", "brave"]}, "options.providers: expected one or more providers, each once"),
        ({"timeout": 0}, "options.timeout"),
        ({"pause": 0}, "options.pause"),
        ({"baseUrls": {"brave": "x"}}, "options.baseUrls: brave: the address is refused"),
        (
            {"baseUrls": {"brave": "https://x.example/?a"}},
            "options.baseUrls: brave: expected an address without a query",
        ),
        ({"baseUrls": {"searxng": "https://x.example"}}, "options.baseUrls.searxng: expected one of"),
        ({"clock": 5}, "options.clock: expected a function"),
    ],
)
async def test_a_wrong_option_fails_the_load_and_is_named(options, words):
    async with AgentOS() as host:
        outcome = await host.extensions.load(PackEntry(module="agentos_pack_web_search", options=options))

    assert outcome.status == "failed"
    assert words in str(outcome.error)


async def test_search_providers_says_who_is_ready_and_what_the_others_lack(hosting):
    async with hosting("brave", providers=["brave", "serper", "searxng"]) as host:
        result = await host.tools.process_tool_call(ToolCall("search_providers"))

    assert [(one["name"], one["state"], one["detail"]) for one in result.output["providers"]] == [
        ("brave", "ready", "can be used"),
        ("serper", "not set up", "set the secret serper.apiKey (SERPER_API_KEY)"),
        ("searxng", "not set up", "set the secret searxng.url (SEARXNG_URL)"),
    ]


async def test_a_key_that_arrives_brings_its_provider(hosting):
    async with hosting("brave", providers=["serper"]) as host:
        before = await host.tools.process_tool_call(ToolCall("web_search", {"query": "q"}))
        await host.extensions.set_secret("serper.apiKey", "sk-later")
        after = await host.tools.process_tool_call(ToolCall("web_search", {"query": "q"}))

    assert "serper: set the secret serper.apiKey (SERPER_API_KEY)" in before.content
    assert after.output["providers"] == ["serper"]


async def test_the_pack_can_be_put_down_and_taken_up_again(hosting):
    async with hosting("brave") as host:
        (record,) = host.extensions.packs()
        results = []
        for _ in range(2):
            results.append(await host.tools.process_tool_call(ToolCall("web_search", {"query": "q"})))
            await host.extensions.disable(record.key)
            await host.extensions.enable(record.key)

    assert [result.success for result in results] == [True, True]


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"web-search": "agentos_pack_web_search"}}
    assert project["version"] == agentos_pack_web_search.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_web_search\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_web_search.tools\n"
        "print({'attrs', 'agentos_pack_common'} & light, {'httpx', 'httpcore', 'ddgs'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"
