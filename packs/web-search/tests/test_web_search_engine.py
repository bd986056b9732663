"""Who is asked: choice, fallback, pauses by an injected clock, and the fusion of several lists."""

import json
from email.utils import formatdate

import pytest
from agentos_pack_web_search.fusion import fuse
from agentos_pack_web_search.hits import Hit
from agentos_pack_web_search.pauses import Pauses, rate_limit_reset, retry_after

from agentos import ToolCall

JSON = {"Content-Type": "application/json"}
NAMES = ("brave", "tavily", "serper", "searxng")


async def search(host, **arguments):
    return await host.tools.process_tool_call(ToolCall("web_search", {"query": "agent os", **arguments}))


async def states(host):
    result = await host.tools.process_tool_call(ToolCall("search_providers"))
    return {one["name"]: (one["state"], one["pause_seconds"]) for one in result.output["providers"]}


def limited(status=429, **headers):
    return (status, {**JSON, **headers}, b'{"error": "slow down"}')


# -- choice and fallback -----------------------------------------------------------------------------------------


async def test_the_first_of_the_options_is_asked_and_no_other(hosting, providers):
    async with hosting("serper", "brave") as host:
        result = await search(host)

    assert result.output["providers"] == ["serper"]
    assert providers["brave"].seen == []


async def test_one_without_a_key_is_passed_over(hosting):
    async with hosting("serper", providers=["brave", "serper"]) as host:
        result = await search(host)

    assert (result.output["providers"], result.output["problems"]) == (["serper"], [])


async def test_when_one_fails_the_next_takes_over_and_the_problem_is_told(hosting, providers):
    providers["brave"].page = (500, {}, b"")
    providers["tavily"].page = (200, JSON, b"garbage")
    async with hosting("brave", "tavily", "serper", "searxng") as host:
        result = await search(host)

    assert result.output["providers"] == ["serper"]
    assert [problem.partition(":")[0] for problem in result.output["problems"]] == ["brave", "tavily"]
    assert providers["searxng"].seen == []


async def test_one_asked_by_name_is_asked_alone(hosting, providers):
    providers["serper"].page = (500, {}, b"")
    async with hosting("brave", "serper") as host:
        result = await search(host, provider="serper")

    assert "no search provider answered. serper: it answered with status 500" in result.content
    assert providers["brave"].seen == []


async def test_one_asked_by_name_that_is_not_set_up_says_who_is(hosting):
    async with hosting("brave", providers=["brave", "tavily"]) as host:
        result = await search(host, provider="tavily")

    assert "tavily: set the secret tavily.apiKey (TAVILY_API_KEY). Ready: brave" in result.content


async def test_one_that_the_options_leave_out_is_refused(hosting):
    async with hosting("brave") as host:
        result = await search(host, provider="serper")

    assert "serper is not among those that the operator allows: brave" in result.content


# -- pauses ------------------------------------------------------------------------------------------------------


async def test_one_that_limits_requests_is_left_alone_for_as_long_as_it_says(hosting, providers, clock):
    providers["brave"].page = limited(**{"Retry-After": "120"})
    async with hosting("brave", "serper") as host:
        first = await search(host)
        providers["brave"].page = None
        second = await search(host)
        waiting = await states(host)
        clock.now += 119.5
        almost = await states(host)
        clock.now += 0.5
        third = await search(host)

    assert [one.output["providers"] for one in (first, second, third)] == [["serper"], ["serper"], ["brave"]]
    assert (waiting["brave"], almost["brave"]) == (("paused", 120), ("paused", 1))
    assert second.output["problems"] == ["brave: it asked to be left alone for 120 more seconds"]
    assert len(providers["brave"].seen) == 2


async def test_a_date_to_retry_after_counts_too(hosting, providers, clock):
    providers["brave"].page = limited(**{"Retry-After": formatdate(clock.now + 90, usegmt=True)})
    async with hosting("brave", "serper") as host:
        await search(host)
        waiting = await states(host)

    assert waiting["brave"] == ("paused", 90)


async def test_without_a_word_the_pause_of_the_options_counts(hosting, providers):
    providers["brave"].page = limited()
    async with hosting("brave", "serper", pause=45) as host:
        await search(host)
        waiting = await states(host)

    assert waiting["brave"] == ("paused", 45)


@pytest.mark.parametrize("status", [432, 433])
async def test_a_plan_that_is_used_up_pauses_tavily(hosting, providers, status):
    providers["tavily"].page = limited(status)
    async with hosting("tavily", "serper") as host:
        result = await search(host)
        waiting = await states(host)

    assert result.output["providers"] == ["serper"]
    assert waiting["tavily"] == ("paused", 60)


async def test_an_outage_with_retry_after_is_a_pause_too(hosting, providers):
    providers["brave"].page = limited(503, **{"Retry-After": "30"})
    async with hosting("brave", "serper") as host:
        await search(host)
        waiting = await states(host)

    assert waiting["brave"] == ("paused", 30)


async def test_an_outage_without_it_is_none_whatever_the_limits_say(hosting, providers):
    providers["brave"].page = limited(500, **{"X-RateLimit-Remaining": "0, 5", "X-RateLimit-Reset": "1, 1419704"})
    async with hosting("brave", "serper") as host:
        await search(host)
        waiting = await states(host)

    assert waiting["brave"] == ("ready", 0)


async def test_asked_by_name_while_it_pauses_it_is_not_asked(hosting, providers):
    providers["brave"].page = limited(**{"Retry-After": "120"})
    async with hosting("brave", "serper") as host:
        await search(host)
        result = await search(host, provider="brave")

    assert "brave: it asked to be left alone for 120 more seconds. Ready: serper" in result.content
    assert len(providers["brave"].seen) == 1


async def test_when_all_pause_nobody_is_asked_and_each_is_told(hosting, providers):
    for name in ("brave", "serper"):
        providers[name].page = limited(**{"Retry-After": "10"})
    async with hosting("brave", "serper") as host:
        first = await search(host)
        second = await search(host)

    assert "brave: it limits requests (status 429); serper: it limits requests (status 429)" in first.content
    assert "no search provider can be used now" in second.content
    assert [len(providers[name].seen) for name in ("brave", "serper")] == [1, 1]


async def test_a_new_key_may_be_used_at_once(hosting, providers):
    providers["brave"].page = limited(**{"Retry-After": "120"})
    async with hosting("brave") as host:
        await search(host)
        providers["brave"].page = None
        await host.extensions.set_secret("brave.apiKey", "bk-another")
        result = await search(host)

    assert result.success, result.content
    assert providers["brave"].seen[-1].header("X-Subscription-Token") == "bk-another"


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        (formatdate(NOW + 5, usegmt=True), 5.0),
        (formatdate(NOW - 5, usegmt=True), 0.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1e9", None),
        ("9" * 400, None),
        ("Fri, 99 Foo 99999 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_read_in_either_form(said, seconds):
    assert retry_after({"retry-after": said}, NOW) == seconds


@pytest.mark.parametrize(
    ("left", "reset", "seconds"),
    [
        ("0, 1000", "1, 1419704", 1.0),
        ("1, 0", "1, 1419704", 1419704.0),
        ("0, 0", "1, 1419704", 1419704.0),
        ("", "3", 3.0),
        ("0", "", None),
        ("x", "y", None),
        ("", "", None),
    ],
)
def test_the_limit_that_is_used_up_counts(left, reset, seconds):
    assert rate_limit_reset({"x-ratelimit-remaining": left, "x-ratelimit-reset": reset}) == seconds


@pytest.mark.parametrize(("asked", "left"), [(0, 1.0), (1e9, 3_600.0), (60, 60.0)])
def test_a_pause_is_a_second_at_least_and_an_hour_at_most(clock, asked, left):
    pauses = Pauses(clock)
    pauses.begin("brave", "key", asked)

    assert pauses.left("brave", "key") == left


def test_a_clock_that_is_set_back_stretches_a_pause_to_an_hour_at_most(clock):
    pauses = Pauses(clock)
    pauses.begin("brave", "key", 60)
    clock.now -= 1_000_000

    assert pauses.left("brave", "key") == 3_600


# -- fusion ------------------------------------------------------------------------------------------------------


async def test_all_asks_everyone_and_what_several_found_comes_first(hosting, providers):
    providers["brave"].found = [("only brave", "https://a.example/"), ("both", "https://b.example/x?utm_source=s#top")]
    providers["serper"].found = [("only serper", "https://c.example/"), ("both", "http://www.b.example/x/")]
    async with hosting("brave", "serper") as host:
        result = await search(host, provider="all")

    assert [(found["title"], found["providers"]) for found in result.output["results"]] == [
        ("both", ["brave", "serper"]),
        ("only brave", ["brave"]),
        ("only serper", ["serper"]),
    ]
    assert result.output["providers"] == ["brave", "serper"]


async def test_all_goes_on_with_those_that_answer(hosting, providers):
    providers["brave"].page = limited()
    providers["tavily"].page = (200, JSON, b"garbage")
    async with hosting(*NAMES) as host:
        result = await search(host, provider="all")

    assert result.output["providers"] == ["serper", "searxng"]
    assert [problem.partition(":")[0] for problem in result.output["problems"]] == ["brave", "tavily"]


async def test_all_fails_only_if_everyone_does(hosting, providers):
    for name in NAMES:
        providers[name].page = (500, {}, b"")
    async with hosting(*NAMES) as host:
        result = await search(host, provider="all")

    assert all(f"{name}: it answered with status 500" in result.content for name in NAMES)


async def test_more_than_asked_for_is_left_out_and_said(hosting, providers):
    providers["searxng"].found = [(str(number), f"https://a.example/{number}") for number in range(30)]
    async with hosting("searxng") as host:
        result = await search(host, limit=5)

    assert [found["title"] for found in result.output["results"]] == ["0", "1", "2", "3", "4"]
    assert result.output["truncated"] is True


def hits(*urls):
    return [Hit(url, url) for url in urls]


def test_a_page_counts_once_for_each_provider():
    found = fuse([("x", hits("https://a.example", "https://a.example/", "https://b.example"))])

    assert [(one.url, one.providers) for one in found] == [("https://a.example", ["x"]), ("https://b.example", ["x"])]


def test_a_second_place_twice_beats_a_first_place_once():
    found = fuse(
        [("x", hits("https://a.example", "https://b.example")), ("y", hits("https://c.example", "https://b.example"))]
    )

    assert [one.url for one in found] == ["https://b.example", "https://a.example", "https://c.example"]


def test_what_one_provider_lacks_another_fills_in():
    one, two = Hit("t", "https://a.example"), Hit("t", "https://a.example", "words", "today")
    (found,) = fuse([("x", [one]), ("y", [two])])

    assert (found.snippet, found.published) == ("words", "today")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.example/x", "http://a.example/x/"),
        ("https://www.a.example/", "https://a.example"),
        ("https://a.example/?b=1&a=2", "https://a.example/?a=2&b=1"),
        ("https://a.example/?gclid=1&fbclid=2&utm_medium=3", "https://a.example/#part"),
    ],
)
def test_addresses_of_the_same_page_have_the_same_key(one, other):
    assert Hit("", one).key == Hit("", other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.example/x", "https://a.example/X"),
        ("https://a.example/?a=1", "https://a.example/?a=2"),
        ("https://a.example/", "https://b.a.example/"),
        ("https://a.example/", "https://a.example:8443/"),
    ],
)
def test_addresses_of_other_pages_have_other_keys(one, other):
    assert Hit("", one).key != Hit("", other).key


async def test_two_hosts_do_not_share_their_pauses(hosting, providers):
    providers["brave"].page = limited(**{"Retry-After": "120"})
    async with hosting("brave") as one, hosting("brave") as two:
        await search(one)
        waiting, free = await states(one), await states(two)

    assert (waiting["brave"], free["brave"]) == (("paused", 120), ("ready", 0))


async def test_results_are_json(hosting):
    async with hosting(*NAMES) as host:
        result = await search(host, provider="all")

    assert json.loads(result.content) == result.output
