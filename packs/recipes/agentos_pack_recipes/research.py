"""`web-research`: a question, answered by quotations, each with the page that it is from."""

from collections.abc import Awaitable, Callable
from typing import Any

from agentos import Flow, Retry, StepFailedError, workflow
from agentos_pack_recipes.passages import best_passages, quoted

MOST_PAGES = 10
_READ = 40_000
_QUOTES = 3
_AGAIN = Retry(3, delay=2)


def research_workflow(principal: str | None) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return the workflow, for a principal of the manifest if one is named."""

    @workflow(version="1", principal=principal, name="web-research")
    async def web_research(flow: Flow, question: str, pages: int = 5, site: str | None = None) -> dict[str, Any]:
        """Search the web, read what was found, and report what it says, with citations."""
        wanted = {"query": question, "limit": max(1, min(pages, MOST_PAGES)), **({"site": site} if site else {})}
        found = (await flow.call("web_search", wanted, retry=_AGAIN)).output["results"]
        read = await flow.gather(*(_read(flow, one["url"]) for one in found))
        return report_of(question, found, read)

    return web_research


async def _read(flow: Flow, url: str) -> dict[str, Any]:
    """Read one page; that it can't be read is no reason to give up the others."""
    try:
        result = await flow.call("fetch_page", {"url": url, "format": "text", "max_chars": _READ}, retry=_AGAIN)
    except StepFailedError as error:
        return {"problem": error.message}
    return {name: result.output[name] for name in ("url", "title", "date", "site", "text")}


def report_of(question: str, found: list[dict[str, Any]], read: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a report of what was read: Markdown in which every quotation has the number of its source."""
    sources: list[dict[str, Any]] = []
    unread = []
    parts = [f"# {_line(question)}"]
    for hit, page in zip(found, read, strict=True):
        if "problem" in page:
            unread.append({"url": hit["url"], "title": hit["title"], "problem": page["problem"]})
            continue
        passages = best_passages(page["text"], question, _QUOTES)
        if not passages:
            unread.append({"url": page["url"], "title": hit["title"], "problem": "says nothing about it"})
            continue
        number = len(sources) + 1
        title = _line(page["title"] or hit["title"] or page["url"])
        sources.append({"number": number, "url": page["url"], "title": title, "date": page["date"]})
        parts.append(f"## {title} [{number}]\n\n{quoted(passages)}")
    parts.append(_listed(sources))
    return {"question": question, "report": "\n\n".join(parts) + "\n", "sources": sources, "unread": unread}


def _listed(sources: list[dict[str, Any]]) -> str:
    if not sources:
        return "Nothing was found about it."
    lines = [
        f"[{one['number']}] {', '.join(filter(None, (one['title'], _line(one['date']))))}. <{_address(one['url'])}>"
        for one in sources
    ]
    return "## Sources\n\n" + "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


def _address(url: str) -> str:
    return url.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
