"""How each provider is asked, and where its results stand in its answer: as their makers document it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import attrs

from agentos_pack_web_search.hits import Hit, read_hit

Recency = Literal["day", "week", "month", "year"]
MAX_RESULTS = 20
_READ = 100
"""How many results of an answer are looked at."""


@attrs.frozen
class Query:
    """What is searched for."""

    text: str
    limit: int
    site: str | None = None
    recency: Recency | None = None

    @property
    def with_site(self) -> str:
        """Return the words with the site as an operator, for providers that have no field for it."""
        return f"site:{self.site} {self.text}" if self.site else self.text


@attrs.frozen
class Asking:
    """A request to a provider."""

    method: Literal["GET", "POST"]
    path: str
    params: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    json: Mapping[str, Any] | None = None


@attrs.frozen
class Provider:
    """A provider over HTTP. The secret is its key, or for SearXNG its address."""

    name: str
    secret: str
    variable: str
    base_url: str | None
    ask: Callable[[Query, str], Asking]
    read: Callable[[Mapping[str, Any]], Iterable[Hit | None]]
    forbidden: str = "it does not accept the key"


class NotResultsError(ValueError):
    """An answer that is not as documented."""


def read_answer(provider: Provider, answer: Any) -> list[Hit]:
    """Return the results of an answer; raise NotResultsError if it is something else."""
    if not isinstance(answer, dict):
        raise NotResultsError
    return [hit for hit in provider.read(answer) if hit is not None]


def _items(answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list; a list that is missing is an empty one."""
    found = answer.get(key, [])
    if not isinstance(found, list):
        raise NotResultsError
    return [item for item in found[:_READ] if isinstance(item, dict)]


# -- Brave: https://api-dashboard.search.brave.com/api-reference/web/search/get ------------------------------------

_BRAVE_FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


def _ask_brave(query: Query, key: str) -> Asking:
    params = {
        "q": query.with_site,
        "count": query.limit,
        "result_filter": "web",
        "text_decorations": False,
        "freshness": _BRAVE_FRESHNESS.get(query.recency or ""),
    }
    headers = {"Accept": "application/json", "X-Subscription-Token": key}
    return Asking("GET", "/res/v1/web/search", params=params, headers=headers)


def _read_brave(answer: Mapping[str, Any]) -> Iterable[Hit | None]:
    web = answer.get("web")
    if web is not None and not isinstance(web, dict):
        raise NotResultsError
    for item in _items(web or {}, "results"):
        yield read_hit(item.get("title"), item.get("url"), item.get("description"), item.get("page_age"))


# -- Tavily: https://docs.tavily.com/api-reference/endpoint/search -------------------------------------------------


def _ask_tavily(query: Query, key: str) -> Asking:
    asked: dict[str, Any] = {"query": query.text, "max_results": query.limit, "search_depth": "basic"}
    if query.recency:
        asked["time_range"] = query.recency
    if query.site:
        asked["include_domains"] = [query.site]
    return Asking("POST", "/search", headers={"Authorization": f"Bearer {key}"}, json=asked)


def _read_tavily(answer: Mapping[str, Any]) -> Iterable[Hit | None]:
    for item in _items(answer, "results"):
        yield read_hit(item.get("title"), item.get("url"), item.get("content"), item.get("published_date"))


# -- Serper: https://serper.dev (playground) -----------------------------------------------------------------------

_SERPER_TIMES = {"day": "qdr:d", "week": "qdr:w", "month": "qdr:m", "year": "qdr:y"}


def _ask_serper(query: Query, key: str) -> Asking:
    asked: dict[str, Any] = {"q": query.with_site, "num": query.limit}
    if query.recency:
        asked["tbs"] = _SERPER_TIMES[query.recency]
    return Asking("POST", "/search", headers={"X-API-KEY": key}, json=asked)


def _read_serper(answer: Mapping[str, Any]) -> Iterable[Hit | None]:
    for item in _items(answer, "organic"):
        yield read_hit(item.get("title"), item.get("link"), item.get("snippet"), item.get("date"))


# -- SearXNG: https://docs.searxng.org/dev/search_api.html ---------------------------------------------------------

_SEARXNG_RANGES = {"day": "day", "week": "month", "month": "month", "year": "year"}
"""No week is documented, so the month that it is part of is asked for."""


def _ask_searxng(query: Query, _: str) -> Asking:
    asked = {"q": query.with_site, "format": "json", "time_range": _SEARXNG_RANGES.get(query.recency or "")}
    return Asking("GET", "/search", params=asked, headers={"Accept": "application/json"})


def _read_searxng(answer: Mapping[str, Any]) -> Iterable[Hit | None]:
    for item in _items(answer, "results"):
        yield read_hit(item.get("title"), item.get("url"), item.get("content"), item.get("publishedDate"))


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("brave", "brave.apiKey", "BRAVE_API_KEY", "https://api.search.brave.com", _ask_brave, _read_brave),
        Provider("tavily", "tavily.apiKey", "TAVILY_API_KEY", "https://api.tavily.com", _ask_tavily, _read_tavily),
        Provider("serper", "serper.apiKey", "SERPER_API_KEY", "https://google.serper.dev", _ask_serper, _read_serper),
        Provider(
            "searxng",
            "searxng.url",
            "SEARXNG_URL",
            None,
            _ask_searxng,
            _read_searxng,
            "it does not offer JSON; its operator adds json to search.formats in its settings",
        ),
    )
}
