"""Each provider on loopback: asked as its maker documents it, and read whatever it answers."""

import asyncio
import gzip
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from loopback import speaking

from agentos import AgentOS, ToolCall

KEYS = {"brave": "bk-not-told", "tavily": "tvly-not-told", "serper": "sk-not-told"}
NAMES = ["brave", "tavily", "serper", "searxng"]
JSON = {"Content-Type": "application/json"}


async def search(host, **arguments):
    return await host.tools.process_tool_call(ToolCall("web_search", {"query": "agent os", **arguments}))


def query_of(request):
    return {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}


# -- as documented -----------------------------------------------------------------------------------------------


async def test_brave_is_asked_as_documented(hosting, providers):
    async with hosting("brave") as host:
        await search(host, limit=3, site="docs.example.org", recency="week")

    (sent,) = providers["brave"].seen
    assert (sent.method, sent.header("X-Subscription-Token"), sent.header("Accept")) == (
        "GET",
        KEYS["brave"],
        "application/json",
    )
    assert query_of(sent) == {
        "q": "site:docs.example.org agent os",
        "count": "3",
        "result_filter": "web",
        "text_decorations": "false",
        "freshness": "pw",
    }


async def test_tavily_is_asked_as_documented(hosting, providers):
    async with hosting("tavily") as host:
        await search(host, limit=3, site="docs.example.org", recency="month")

    (sent,) = providers["tavily"].seen
    assert (sent.method, sent.path, sent.header("Authorization")) == ("POST", "/search", f"Bearer {KEYS['tavily']}")
    assert json.loads(sent.body) == {
        "query": "agent os",
        "max_results": 3,
        "search_depth": "basic",
        "time_range": "month",
        "include_domains": ["docs.example.org"],
    }


async def test_serper_is_asked_as_documented(hosting, providers):
    async with hosting("serper") as host:
        await search(host, limit=3, site="docs.example.org", recency="year")

    (sent,) = providers["serper"].seen
    assert (sent.method, sent.path, sent.header("X-API-KEY")) == ("POST", "/search", KEYS["serper"])
    assert json.loads(sent.body) == {"q": "site:docs.example.org agent os", "num": 3, "tbs": "qdr:y"}


@pytest.mark.parametrize(
    ("recency", "range_"), [("day", "day"), ("week", "month"), ("month", "month"), ("year", "year")]
)
async def test_searxng_is_asked_as_documented(hosting, providers, recency, range_):
    async with hosting("searxng") as host:
        await search(host, site="docs.example.org", recency=recency)

    (sent,) = providers["searxng"].seen
    assert sent.method == "GET"
    assert query_of(sent) == {"q": "site:docs.example.org agent os", "format": "json", "time_range": range_}


async def test_searxng_may_live_beneath_a_path(hosting, providers):
    site = providers["searxng"]
    site.pages["/searx/search"] = site.pages["/search"]
    async with hosting("searxng", secrets={"searxng.url": f"{site.url}/searx/"}) as host:
        result = await search(host)

    assert result.success, result.content
    assert site.seen[0].path.startswith("/searx/search?")


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_not_asked_for_is_not_sent(hosting, providers, name):
    async with hosting(name) as host:
        await search(host)

    sent = str(providers[name].seen[0].path) + str(providers[name].seen[0].body)
    assert not any(word in sent for word in ("site", "freshness", "tbs", "time_range", "include_domains"))


@pytest.mark.parametrize("name", NAMES)
async def test_its_results_have_title_address_and_excerpt(hosting, providers, name):
    async with hosting(name) as host:
        result = await search(host)

    (found,) = result.output["results"]
    assert (found["title"], found["url"]) == (f"{name} one", f"https://{name}.example/1")
    assert (found["snippet"], found["providers"]) == (f"about {name} one", [name])
    assert result.output["problems"] == []


@pytest.mark.parametrize(("name", "date"), [("brave", "2026-01-02"), ("serper", "2 days ago"), ("tavily", None)])
async def test_a_date_is_in_the_words_of_the_provider(hosting, providers, name, date):
    async with hosting(name) as host:
        result = await search(host)

    assert result.output["results"][0]["published"] == date


# -- what a provider may answer ----------------------------------------------------------------------------------

FAILURES = {
    "garbage": ((200, JSON, b"<html>"), "did not answer with JSON"),
    "nothing": ((200, JSON, b""), "did not answer with JSON"),
    "a list": ((200, JSON, b"[]"), "something else than results"),
    "null": ((200, JSON, b"null"), "something else than results"),
    "deep": ((200, JSON, b"[" * 100_000), "did not answer with JSON"),
    "NaN": ((200, JSON, b'{"a": NaN}'), "did not answer with JSON"),
    "huge": ((200, JSON, b" " * 2_000_001), "more than 2000000 bytes"),
    "a bomb": ((200, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(b" " * 20_000_000)), "more than 2000000"),
    "a redirect": ((302, {"Location": "http://127.0.0.1:1/"}, b""), "status 302"),
    "a server error": ((500, {}, b"oh"), "status 500: try again later"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("page", "words"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_failure_is_told_in_words(hosting, providers, name, page, words):
    providers[name].page = page
    async with hosting(name) as host:
        result = await search(host)

    assert result.error.type == "ToolRaised"
    assert f"no search provider answered. {name}: " in result.content
    assert words in result.content


@pytest.mark.parametrize("name", ["brave", "tavily", "serper"])
@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_not_accepted_is_told_without_the_key(hosting, providers, name, status):
    providers[name].page = (status, JSON, json.dumps({"detail": f"invalid key {KEYS[name]}"}).encode())
    async with hosting(name) as host:
        result = await search(host)

    assert f"status {status}: it does not accept the key" in result.content
    assert KEYS[name] not in str(result)


async def test_a_searxng_without_json_is_told_what_it_lacks(hosting, providers):
    providers["searxng"].page = (403, {}, b"")
    async with hosting("searxng") as host:
        result = await search(host)

    assert "adds json to search.formats" in result.content


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("brave", {"web": []}),
        ("brave", {"web": {"results": {}}}),
        ("tavily", {"results": "none"}),
        ("serper", {"organic": {"0": {}}}),
        ("searxng", {"results": 7}),
    ],
)
async def test_an_answer_of_another_shape_is_no_result(hosting, providers, name, answer):
    providers[name].page = (200, JSON, json.dumps(answer).encode())
    async with hosting(name) as host:
        result = await search(host)

    assert "it answered with something else than results" in result.content


@pytest.mark.parametrize("name", NAMES)
async def test_no_results_are_an_answer(hosting, providers, name):
    providers[name].page = (200, JSON, b"{}")
    async with hosting(name) as host:
        result = await search(host)

    assert (result.success, result.output["results"], result.output["providers"]) == (True, [], [name])


HOSTILE = [
    None,
    7,
    "text",
    {},
    {"title": "x", "url": "javascript:alert(1)"},
    {"title": "x", "url": "data:text/html,x"},
    {"title": "x", "url": "file:///etc/passwd"},
    {"title": "x", "url": "https://user:pass@example.org/"},
    {"title": "x", "url": "https://example.org/" + "a" * 3_000},
    {"title": "x", "url": ["https://example.org/"]},
]


@pytest.mark.parametrize("item", HOSTILE)
async def test_a_result_without_an_address_is_left_out(hosting, providers, item):
    good = {"title": "good", "url": "https://good.example/"}
    providers["searxng"].page = (200, JSON, json.dumps({"results": [item, good]}).encode())
    async with hosting("searxng") as host:
        result = await search(host)

    assert [found["title"] for found in result.output["results"]] == ["good"]


async def test_foreign_text_is_made_plain_and_short(hosting, providers):
    title = "<strong>Tom</strong> &amp; \x1b[31mJerry\u202e\u200b <br/>std::vector<int>\nnext"
    item = {"title": title, "url": "https://a.example/", "content": "x" * 50_000, "publishedDate": "y" * 500}
    providers["searxng"].page = (200, JSON, json.dumps({"results": [item]}).encode())
    async with hosting("searxng") as host:
        result = await search(host)

    (found,) = result.output["results"]
    assert found["title"] == "Tom & Jerry std::vector<int> next"
    assert (len(found["snippet"]), len(found["published"])) == (1_500, 60)


async def test_a_result_without_title_is_called_by_its_address(hosting, providers):
    providers["searxng"].page = (200, JSON, b'{"results": [{"title": 5, "url": "https://a.example/x"}]}')
    async with hosting("searxng") as host:
        result = await search(host)

    assert result.output["results"][0]["title"] == "https://a.example/x"


async def test_a_provider_that_never_answers_is_left(providers, hosting):
    async def silent(writer):
        await asyncio.Event().wait()

    async with speaking(silent) as port:
        bases = {"brave": f"http://127.0.0.1:{port}", "serper": providers["serper"].url}
        async with hosting("brave", "serper", timeout=0.3, baseUrls=bases) as host:
            result = await search(host)

    assert result.output["providers"] == ["serper"]
    assert result.output["problems"] == [
        "brave: 127.0.0.1 did not answer within 0.3 s; try again later, or ask for less"
    ]


# -- where requests go -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("not-an-address", "its address can't be used"),
        ("http://admin:hunter22@127.0.0.1/", "a user or a password"),
        ("http://127.0.0.1/?key=hunter22", "without a query"),
        ("http://169.254.169.254/", "metadata"),
    ],
)
async def test_a_bad_searxng_address_is_told_without_it(hosting, address, words):
    async with hosting("searxng", secrets={"searxng.url": address}) as host:
        result = await search(host)

    assert words in result.content
    assert "hunter22" not in str(result)


@pytest.mark.parametrize("address", ["http://hunter22.invalid:8080/", "http://127.0.0.1:1/hunter22"])
async def test_a_searxng_that_does_not_answer_is_told_without_its_address(hosting, address):
    async with hosting("searxng", secrets={"searxng.url": address}) as host:
        result = await search(host)

    assert "searxng: its host" in result.content
    assert "hunter22" not in str(result)


async def test_a_searxng_that_moved_is_asked_at_its_new_address(hosting, providers):
    async with hosting("searxng", secrets={"searxng.url": "http://127.0.0.1:1"}) as host:
        before = await search(host)
        await host.extensions.set_secret("searxng.url", providers["searxng"].url)
        after = await search(host)

    assert "can't be connected to" in before.content
    assert after.success, after.content


async def test_the_own_address_of_a_provider_may_not_be_private():
    from agentos_pack_web_search.settings import policy_for

    assert policy_for("https://api.search.brave.com", is_private=False, timeout=5).allow_private == ()


@pytest.mark.parametrize("site", ["a.example OR site:b.example", "a.example/path", "a.example:80", "*", "a b", "-"])
async def test_a_site_that_is_no_host_is_refused(hosting, providers, site):
    async with hosting("brave") as host:
        result = await search(host, site=site)

    assert "site: expected a host such as example.org" in result.content
    assert providers["brave"].seen == []


async def test_results_of_another_site_are_left_out(hosting, providers):
    providers["searxng"].found = [
        ("in", "https://docs.example.org/"),
        ("out", "https://example.org.evil.example/"),
        ("out", "https://notexample.org/"),
        ("itself", "https://example.org/x"),
    ]
    async with hosting("searxng") as host:
        result = await search(host, site="https://Example.org/")

    assert [found["title"] for found in result.output["results"]] == ["in", "itself"]


@pytest.mark.parametrize(
    "arguments", [{"query": ""}, {"query": "   "}, {"query": "a" * 301}, {"limit": 21}, {"provider": "x"}]
)
async def test_arguments_beyond_the_bounds_are_refused(hosting, providers, arguments):
    async with hosting("brave") as host:
        result = await search(host, **arguments)

    assert (result.error.type, providers["brave"].seen) == ("InvalidArguments", [])


async def test_a_query_of_hidden_characters_alone_is_refused(hosting):
    async with hosting("brave") as host:
        result = await search(host, query="\u200b\u202e")

    assert "query: it has nothing to search for" in result.content


async def test_a_key_with_a_line_break_is_not_sent_and_not_told(hosting, providers):
    async with hosting("brave", secrets={"brave.apiKey": "bk-first\r\nX-Evil: 1"}) as host:
        result = await search(host)

    assert "X-Subscription-Token has a value that can't be sent" in result.content
    assert "bk-first" not in str(result)
    assert providers["brave"].seen == []


async def test_nothing_set_up_says_what_to_set(monkeypatch):
    for variable in ("BRAVE_API_KEY", "TAVILY_API_KEY", "SERPER_API_KEY", "SEARXNG_URL"):
        monkeypatch.delenv(variable, raising=False)
    options = {"providers": ["brave", "tavily", "serper", "searxng"]}
    manifest = {"packs": [{"module": "agentos_pack_web_search", "options": options}]}
    async with AgentOS(extension_manifest=manifest) as host:
        result = await search(host)

    for variable in ("BRAVE_API_KEY", "TAVILY_API_KEY", "SERPER_API_KEY", "SEARXNG_URL"):
        assert variable in result.content
