"""`nightly-digest`: what is new in feeds, pages and files, sent as one message. Made to be scheduled."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from agentos import Flow, Retry, StepFailedError, workflow
from agentos_pack_recipes.feeds import entries_of, new_entries

MOST_SOURCES = 50
MOST_CHARACTERS = 9_000
_READ = 50_000
_SHOWN = 500
_AGAIN = Retry(3, delay=5)


def digest_workflow(principal: str | None) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return the workflow, for a principal of the manifest if one is named."""

    @workflow(version="1", principal=principal, name="nightly-digest")
    async def nightly_digest(
        flow: Flow,
        urls: list[str] | None = None,
        files: list[str] | None = None,
        to: list[str] | None = None,
        target: str | None = None,
        hours: float = 24,
        subject: str = "Digest",
    ) -> dict[str, Any]:
        """Read feeds, pages and files, and send what is new: by mail to *to*, or to the *target* of the pack notify."""
        pages, paths = list(urls or ()), list(files or ())
        if not 0 < len(pages) + len(paths) <= MOST_SOURCES or bool(to) == bool(target):
            raise ValueError(f"expected up to {MOST_SOURCES} urls and files, and either to or target")
        now = await flow.now()
        texts = await flow.gather(*(_page(flow, one) for one in pages), *(_file(flow, one) for one in paths))
        sections = [section_of(one, now - timedelta(hours=hours)) for one in texts]
        body = digest_of(sections)
        line = f"{subject}, {now:%Y-%m-%d}"
        if to:
            await flow.call("email_send", {"to": to, "subject": line, "body": body}, retry=_AGAIN)
        else:
            await flow.call("notify_send", {"target": target, "title": line, "body": body}, retry=_AGAIN)
        unread = [source for source, _, problem in texts if problem]
        return {"subject": line, "sources": len(texts), "unread": unread, "characters": len(body)}

    return nightly_digest


Source = tuple[str, str, str]
"""Where something is from, what it says, and why it could not be read."""


async def _page(flow: Flow, url: str) -> Source:
    return await _tried(flow, "fetch_page", {"url": url, "format": "text", "max_chars": _READ}, url)


async def _file(flow: Flow, path: str) -> Source:
    return await _tried(flow, "read_file", {"path": path}, path)


async def _tried(flow: Flow, tool: str, arguments: dict[str, Any], source: str) -> Source:
    """Read a source; one that can't be read is told in the digest, which is sent all the same."""
    try:
        result = await flow.call(tool, arguments, retry=_AGAIN)
    except StepFailedError as error:
        return source, "", " ".join(error.message.split())[:200]
    output = result.output if isinstance(result.output, dict) else {}
    return source, str(output.get("text") or output.get("content") or result.content), ""


def section_of(read: Source, since: datetime) -> str:
    """Return what a digest says of one source."""
    source, text, problem = read
    head = f"* {source}"
    if problem:
        return f"{head}\n  could not be read: {problem}"
    entries = entries_of(text)
    if entries is None:
        shown = " ".join(text.split())
        return f"{head}\n  {shown[:_SHOWN]}{'…' if len(shown) > _SHOWN else ''}"
    fresh = new_entries(entries, since)
    lines = [f"  - {one.title}{f' <{one.link}>' if one.link else ''}" for one in fresh]
    return "\n".join([head, *(lines or ["  nothing new"])])


def digest_of(sections: list[str]) -> str:
    """Return the message: as many whole sections as fit, and how many are left out."""
    taken: list[str] = []
    for section in sections:
        if sum(map(len, taken)) + len(section) + 2 * len(taken) > MOST_CHARACTERS:
            break
        taken.append(section)
    left = len(sections) - len(taken)
    return "\n\n".join([*taken, *([f"and {left} more that did not fit"] if left else [])])
