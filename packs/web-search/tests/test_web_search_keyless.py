"""Search by ddgs, in a process of its own. The library is not here, and its servers are not ours: a stand-in is."""

import importlib.util
import json
import os
import sys
import textwrap

import pytest

from agentos import ToolCall


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that puts a library `ddgs` on the path whose search runs *code*."""

    def put(code):
        lines = textwrap.indent(textwrap.dedent(code).strip(), " " * 8)
        (tmp_path / "ddgs.py").write_text(
            "class DDGSException(Exception): pass\n"
            "class RatelimitException(DDGSException): pass\n"
            "class DDGS:\n"
            "    def __init__(self, **settings): self.settings = settings\n"
            f"    def text(self, query, **asked):\n{lines}\n",
            encoding="utf-8",
        )
        monkeypatch.syspath_prepend(str(tmp_path))

    return put


ONE = "return [{'title': 'one', 'href': 'https://a.example/', 'body': 'about one'}]"


async def search(host, **arguments):
    return await host.tools.process_tool_call(ToolCall("web_search", {"query": "agent os", **arguments}))


@pytest.mark.skipif(importlib.util.find_spec("ddgs") is not None, reason="ddgs is installed here")
async def test_without_the_library_the_extra_is_named(hosting):
    async with hosting("ddgs") as host:
        result = await search(host)

    assert "pip install 'agentos-pack-web-search[ddgs]'" in result.content


async def test_it_needs_no_key(hosting, install):
    install(ONE)
    async with hosting("ddgs") as host:
        result = await search(host)

    (found,) = result.output["results"]
    assert (found["title"], found["url"], found["snippet"]) == ("one", "https://a.example/", "about one")
    assert result.output["providers"] == ["ddgs"]


async def test_it_is_asked_last_and_takes_over(hosting, install, providers):
    install(ONE)
    providers["brave"].page = (500, {}, b"")
    async with hosting("brave", "ddgs") as host:
        result = await search(host)

    assert result.output["providers"] == ["ddgs"]


async def test_it_is_asked_as_documented(hosting, install, tmp_path):
    seen = tmp_path / "seen.json"
    install(f"import json; open({str(seen)!r}, 'w').write(json.dumps([query, asked, self.settings])); return []")
    async with hosting("ddgs") as host:
        await search(host, site="a.example", recency="week", limit=3)

    assert json.loads(seen.read_text("utf-8")) == [
        "site:a.example agent os",
        {"safesearch": "moderate", "timelimit": "w", "max_results": 3},
        {"timeout": 10},
    ]


async def test_it_gets_nothing_of_the_environment(hosting, install, tmp_path, monkeypatch):
    monkeypatch.setenv("BRAVE_API_KEY", "bk-not-told")
    seen = tmp_path / "seen.json"
    install(f"import json, os; open({str(seen)!r}, 'w').write(json.dumps(dict(os.environ))); return []")
    async with hosting("ddgs") as host:
        await search(host)

    environment = json.loads(seen.read_text("utf-8"))
    assert not environment.keys() & {"BRAVE_API_KEY", "HOME", "USER"}
    assert "bk-not-told" not in str(environment)


async def test_its_process_is_another_one(hosting, install, tmp_path):
    seen = tmp_path / "pid"
    install(f"import os; open({str(seen)!r}, 'w').write(str(os.getpid())); return []")
    async with hosting("ddgs") as host:
        await search(host)

    assert int(seen.read_text("utf-8")) != os.getpid()
    assert "ddgs" not in sys.modules


async def test_when_its_engines_limit_requests_it_is_left_alone(hosting, install):
    install("raise RatelimitException('202')")
    async with hosting("ddgs", pause=30) as host:
        first = await search(host)
        second = await search(host)

    assert "ddgs: it wants to be left alone for a while" in first.content
    assert "ddgs: it asked to be left alone for 30 more seconds" in second.content


async def test_no_results_are_an_answer(hosting, install):
    install("raise DDGSException('No results found.')")
    async with hosting("ddgs") as host:
        result = await search(host)

    assert (result.success, result.output["results"]) == (True, [])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise RuntimeError('secret path')", "ddgs: it failed (RuntimeError)"),
        ("import os; os.abort()", "ddgs: it broke off"),
        ("print('noise'); return []", "ddgs: it broke off"),
        ("return [object()]", "ddgs: it broke off"),
        ("return ['x' * 5_000_000]", "ddgs: it broke off"),
        ("return 7", "ddgs: it broke off"),
        ("return bytearray(8 * 10**9)", "ddgs: it failed (MemoryError)"),
    ],
)
async def test_what_goes_wrong_in_it_stays_there(hosting, install, code, words):
    install(code)
    async with hosting("ddgs") as host:
        result = await search(host)

    assert words in result.content
    assert "secret path" not in str(result)


async def test_hostile_results_are_left_out(hosting, install):
    install("return [None, {'title': 'x', 'href': 'javascript:1'}, {'title': 'ok', 'href': 'https://a.example/'}]")
    async with hosting("ddgs") as host:
        result = await search(host)

    assert [found["title"] for found in result.output["results"]] == ["ok"]


async def test_a_library_that_hangs_is_ended(hosting, install, monkeypatch):
    from agentos_pack_web_search import keyless

    monkeypatch.setattr(keyless, "_START", 1.0)
    install("import threading; threading.Event().wait()")
    async with hosting("ddgs", timeout=0.5) as host:
        result = await search(host)

    assert "ddgs: it did not answer within 0.5 s" in result.content
