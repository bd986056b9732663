"""The pack as a host sees it, on a GIPHY of our own on loopback."""

import asyncio
import doctest
import gzip
import inspect
import json
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import agentos_pack_giphy
import jsonschema
import pytest
from agentos_pack_giphy.search import BASE_URL, Options
from loopback import speaking

from agentos import PUBLIC, AgentOS, PackEntry, SecretCatalog, ToolCall, lint_pack

KEY = "gk-not-for-others"
JSON = {"Content-Type": "application/json"}


def picture(id="WoWm8", **fields):
    return {
        "type": "gif",
        "id": id,
        "url": f"https://giphy.com/gifs/{id}",
        "title": "Happy Dance GIF",
        "rating": "g",
        "images": {
            "original": {"url": f"https://media0.giphy.com/media/{id}/giphy.gif", "width": "499", "height": "365"},
            "fixed_height_small": {"url": f"https://media0.giphy.com/media/{id}/100.gif"},
        },
        **fields,
    }


async def search(host, **arguments):
    return await host.tools.process_tool_call(ToolCall("giphy_search", {"query": "happy dance", **arguments}))


def asked(giphy):
    """Return the parameters of the last request."""
    return {name: values[0] for name, values in parse_qs(urlsplit(giphy.seen[-1].path).query).items()}


# -- the tool ----------------------------------------------------------------------------------------------------


@pytest.fixture
def tool():
    pack = agentos_pack_giphy.create_extension_pack(type("Context", (), {"options": {}}))
    (descriptor,) = pack.descriptors
    return descriptor.payload


def test_its_schema_is_closed_valid_documented_and_bounded(tool):
    jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    parameters = [name for name in inspect.signature(tool.function).parameters if name != "context"]

    assert tool.input_schema["additionalProperties"] is False
    assert parameters == list(tool.input_schema["properties"])
    for name, schema in tool.input_schema["properties"].items():
        inner = {key for option in schema.get("anyOf", ()) for key in option}
        assert schema["description"], name
        assert {"maxLength", "maximum", "enum"} & {*schema, *inner}, name


def test_it_reads_and_is_public(tool):
    assert (tool.effect, tool.required_access, tool.timeout) == ("read", PUBLIC, 20)


def test_the_pack_lints_clean():
    pack = agentos_pack_giphy.create_extension_pack(type("Context", (), {"options": {}}))

    assert [finding for finding in lint_pack(pack) if finding.severity != "info"] == []


# -- the key -----------------------------------------------------------------------------------------------------


def test_its_secret_is_in_the_catalog():
    pack = agentos_pack_giphy.create_extension_pack(type("Context", (), {"options": {}}))

    assert [secret.id for one in pack.descriptors for secret in one.required_secrets] == ["giphy.apiKey"]
    assert "giphy.apiKey" in SecretCatalog.shipped().definitions


async def test_without_its_key_the_tool_is_not_there_and_says_which_is_missing(hosting, monkeypatch):
    monkeypatch.delenv("GIPHY_API_KEY", raising=False)
    async with hosting(key=None) as host:
        offered = host.tools.list_available_tools()
        result = await search(host)
        (entry,) = host.extensions.explain("tool", "giphy_search").entries

    assert (offered, result.error.type, str(entry.state)) == ([], "UnknownTool", "gated")
    assert "giphy.apiKey" in entry.reason


async def test_a_key_that_arrives_brings_the_tool(hosting, monkeypatch):
    monkeypatch.delenv("GIPHY_API_KEY", raising=False)
    async with hosting(key=None) as host:
        await host.extensions.set_secret("giphy.apiKey", KEY)
        result = await search(host)

    assert result.success, result.content


FAILURES = {
    "401": (401, JSON, b'{"meta": {"status": 401, "msg": "Unauthorized"}}'),
    "403 that echoes": (403, JSON, f'{{"message": "bad key {KEY}"}}'.encode()),
    "429": (429, {**JSON, "Retry-After": "60"}, b"{}"),
    "500": (500, {}, KEY.encode()),
    "a redirect": (302, {"Location": f"http://127.0.0.1:1/?api_key={KEY}"}, b""),
    "garbage": (200, JSON, b"<html>"),
    "no pictures": (200, JSON, b'{"data": "none"}'),
    "a list": (200, JSON, b"[]"),
    "deep": (200, JSON, b"[" * 100_000),
    "a number beyond all": (200, JSON, b'{"data": [1' + b"0" * 5_000 + b"]}"),
    "NaN": (200, JSON, b'{"data": NaN}'),
    "huge": (200, JSON, b" " * 4_000_001),
    "a bomb": (200, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(b" " * 50_000_000)),
}


@pytest.mark.parametrize("page", FAILURES.values(), ids=FAILURES.keys())
async def test_a_failure_is_told_without_the_key(hosting, giphy, page):
    giphy.pages["/v1/gifs/search"] = page
    async with hosting() as host:
        result = await search(host)

    assert result.error.type == "ToolRaised"
    assert KEY not in str(result)
    assert "api_key" not in str(result)
    assert len(giphy.seen) == 1


@pytest.mark.parametrize(("status", "words"), [(401, "another giphy.apiKey"), (429, "try again later")])
async def test_a_failure_says_what_to_do(hosting, giphy, status, words):
    giphy.pages["/v1/gifs/search"] = (status, JSON, b"{}")
    async with hosting() as host:
        result = await search(host)

    assert f"GIPHY answered with status {status}" in result.content
    assert words in result.content


async def test_a_server_that_never_answers_is_told_without_the_key():
    async def silent(writer):
        await asyncio.Event().wait()

    async with speaking(silent) as port:
        options = {"baseUrl": f"http://127.0.0.1:{port}", "timeout": 0.2}
        manifest = {"packs": [{"module": "agentos_pack_giphy", "options": options}]}
        async with AgentOS(extension_manifest=manifest, extension_secrets={"giphy.apiKey": KEY}) as host:
            result = await search(host)

    assert "did not answer within 0.2 s" in result.content
    assert KEY not in str(result)


async def test_no_connection_is_told_without_the_key(hosting, giphy):
    async with hosting(baseUrl="http://127.0.0.1:1") as host:
        result = await search(host)

    assert "can't be connected to" in result.content
    assert KEY not in str(result)


# -- the search --------------------------------------------------------------------------------------------------


async def test_a_search_is_sent_as_giphy_documents_it(hosting, giphy):
    async with hosting() as host:
        await search(host, query="a&b=c é", limit=3, rating="pg-13", offset=10)

    assert giphy.seen[0].method == "GET"
    assert asked(giphy) == {"api_key": KEY, "q": "a&b=c é", "limit": "3", "offset": "10", "rating": "pg-13"}


async def test_a_picture_has_its_addresses_title_and_size(hosting, giphy):
    giphy.found = [picture()]
    async with hosting() as host:
        result = await search(host)

    assert result.output == {
        "gifs": [
            {
                "id": "WoWm8",
                "title": "Happy Dance GIF",
                "url": "https://media0.giphy.com/media/WoWm8/giphy.gif",
                "preview_url": "https://media0.giphy.com/media/WoWm8/100.gif",
                "page_url": "https://giphy.com/gifs/WoWm8",
                "width": 499,
                "height": 365,
                "rating": "g",
            }
        ],
        "total": 1,
        "truncated": False,
    }


async def test_more_than_asked_for_is_left_out_and_said(hosting, giphy):
    giphy.found = [picture(str(number)) for number in range(10)]
    async with hosting() as host:
        result = await search(host, limit=2)

    assert [gif["id"] for gif in result.output["gifs"]] == ["0", "1"]
    assert (result.output["total"], result.output["truncated"]) == (10, True)


async def test_the_rating_of_the_options_counts_if_a_call_names_none(hosting, giphy):
    async with hosting(rating="pg") as host:
        await search(host)

    assert asked(giphy)["rating"] == "pg"


async def test_no_call_gets_more_explicit_than_the_operator_allows(hosting, giphy):
    async with hosting(rating="r", maxRating="pg") as host:
        await search(host)
        refused = await search(host, rating="pg-13")

    assert (asked(giphy)["rating"], len(giphy.seen)) == ("pg", 1)
    assert "rating: the operator allows pg at most" in refused.content


@pytest.mark.parametrize(
    "arguments", [{"rating": "x"}, {"limit": 0}, {"limit": 26}, {"query": ""}, {"query": "a" * 51}]
)
async def test_arguments_beyond_the_bounds_are_refused(hosting, giphy, arguments):
    async with hosting() as host:
        result = await search(host, **arguments)

    assert (result.error.type, giphy.seen) == ("InvalidArguments", [])


HOSTILE = [
    None,
    "text",
    {},
    {"images": None},
    {"images": {"original": {"url": "javascript:alert(1)"}}},
    {"images": {"original": {"url": "http://media.giphy.com/plain.gif"}}},
    {"images": {"original": {"url": "https://user:pass@giphy.com/a.gif"}}},
    {"images": {"original": {"url": "https://giphy.com/" + "a" * 2_000}}},
    {"images": {"original": {"url": ["https://giphy.com/a.gif"]}}},
]


@pytest.mark.parametrize("item", HOSTILE)
async def test_what_is_no_picture_is_left_out(hosting, giphy, item):
    giphy.found = [item, picture()]
    async with hosting() as host:
        result = await search(host)

    assert [gif["id"] for gif in result.output["gifs"]] == ["WoWm8"]


async def test_foreign_text_is_made_plain_and_short(hosting, giphy):
    giphy.found = [picture(title="a\x1b[2J\u202eb\n\u200bc" + "d" * 500, url="javascript:x", rating=7)]
    async with hosting() as host:
        result = await search(host)

    (gif,) = result.output["gifs"]
    assert gif["title"].startswith("ab cd")
    assert (len(gif["title"]), gif["page_url"], gif["rating"]) == (200, None, "")


@pytest.mark.parametrize("width", ["-1", "9" * 5_000, "\u0661", "1.5", None, True, 10**30, [1]])
async def test_a_size_that_is_none_is_zero(hosting, giphy, width):
    found = picture()
    found["images"]["original"]["width"] = width
    giphy.found = [found]
    async with hosting() as host:
        result = await search(host)

    assert result.output["gifs"][0]["width"] == 0


# -- options and distribution ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"baseurl": "x"}, "options.baseurl: is not known; did you mean `baseUrl`?"),
        ({"baseUrl": "ftp://x"}, "options.baseUrl: the address is refused"),
        ({"baseUrl": "https://x.example/?a=1"}, "options.baseUrl: expected an address without a query"),
        ({"rating": "x"}, "options.rating: expected one of 'g', 'pg', 'pg-13', 'r'"),
        ({"timeout": 0}, "options.timeout"),
    ],
)
async def test_a_wrong_option_fails_the_load_and_is_named(options, words):
    async with AgentOS() as host:
        outcome = await host.extensions.load(PackEntry(module="agentos_pack_giphy", options=options))

    assert outcome.status == "failed"
    assert words in str(outcome.error)


def test_only_an_address_of_the_operator_may_be_private():
    ours, theirs = Options().policy(), Options(base_url="http://10.0.0.7:8080").policy()

    assert (ours.allow, ours.allow_private) == ((f"{BASE_URL}",), ())
    assert theirs.allow_private == ("10.0.0.7:8080",)


def test_the_distribution_says_where_the_pack_is():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"] == {"agentos.packs": {"giphy": "agentos_pack_giphy"}}
    assert project["version"] == agentos_pack_giphy.__version__


def test_the_examples_of_the_readme_are_true():
    readme = Path(__file__).parents[1] / "README.md"

    assert doctest.testfile(str(readme), module_relative=False).failed == 0
    json.loads(readme.read_text("utf-8").split("```json\n")[1].split("```")[0])


def test_loading_it_imports_nothing_heavy(run_python):
    code = (
        "import sys\n"
        "import agentos_pack_giphy\n"
        "light = set(sys.modules)\n"
        "import agentos_pack_giphy.search\n"
        "print({'attrs', 'agentos_pack_common'} & light, {'httpx', 'httpcore'} & set(sys.modules))"
    )

    assert run_python(code) == "set() set()"
