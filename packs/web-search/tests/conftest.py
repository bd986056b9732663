"""Serve providers of our own on loopback."""

import json
from contextlib import ExitStack, asynccontextmanager

import pytest
from loopback import Site, serving

from agentos import AgentOS

KEYS = {"brave": "bk-not-told", "tavily": "tvly-not-told", "serper": "sk-not-told"}
PATHS = {"brave": "/res/v1/web/search", "tavily": "/search", "serper": "/search", "searxng": "/search"}


def shape(name, found):
    """Return an answer in the form of a provider's own; *found* are pairs of title and address."""
    if name == "brave":
        results = [{"title": t, "url": u, "description": f"about {t}", "page_age": "2026-01-02"} for t, u in found]
        return {"type": "search", "query": {"original": "q"}, "web": {"type": "search", "results": results}}
    if name == "serper":
        organic = [
            {"title": t, "link": u, "snippet": f"about {t}", "position": 1, "date": "2 days ago"} for t, u in found
        ]
        return {"searchParameters": {"q": "q"}, "organic": organic, "credits": 1}
    if name == "tavily":
        results = [{"title": t, "url": u, "content": f"about {t}", "score": 0.9} for t, u in found]
        return {"query": "q", "results": results, "response_time": 0.5}
    results = [{"title": t, "url": u, "content": f"about {t}", "engine": "x", "publishedDate": None} for t, u in found]
    return {"query": "q", "number_of_results": 0, "results": results, "unresponsive_engines": []}


class Provider(Site):
    """A provider on loopback. Set `found` to pairs of title and address, or `page` to a whole answer."""

    def __init__(self, name):
        super().__init__()
        self.name, self.found, self.page = name, [(f"{name} one", f"https://{name}.example/1")], None
        self.pages[PATHS[name]] = self._answer

    def _answer(self, request):
        if self.page is not None:
            return self.page
        return 200, {"Content-Type": "application/json"}, json.dumps(shape(self.name, self.found)).encode()


@pytest.fixture
def providers():
    """Serve all four, by name."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(serving(Provider(name))) for name in PATHS}


class Clock:
    now = 1_800_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def hosting(providers, clock, monkeypatch):
    """Return a context manager for a host with the pack, on the named providers; ddgs only if it is named."""
    for variable in ("BRAVE_API_KEY", "TAVILY_API_KEY", "SERPER_API_KEY", "SEARXNG_URL"):
        monkeypatch.delenv(variable, raising=False)

    @asynccontextmanager
    async def host(*names, secrets=None, **options):
        known = {f"{name}.apiKey": key for name, key in KEYS.items()} | {"searxng.url": providers["searxng"].url}
        given = {id: value for id, value in known.items() if id.partition(".")[0] in names}
        settings = {
            "providers": list(names) or ["brave"],
            "baseUrls": {name: providers[name].url for name in KEYS},
            "clock": clock,
            **options,
        }
        entry = {"module": "agentos_pack_web_search", "options": settings, "required": True}
        async with AgentOS(
            extension_manifest={"packs": [entry]}, extension_secrets={**given, **(secrets or {})}
        ) as made:
            yield made

    return host
