"""Search without a key, by the library ddgs.

It brings its own HTTP client, speaks to several search engines and has no asynchronous form. So it runs in a process of
its own, which is ended when it takes too long, and which gets nothing of the environment.
"""

import importlib.util
import json
import sys
from pathlib import Path

from agentos_pack_common import Limits, ProcessError, run_python

from agentos_pack_web_search.hits import Hit, read_hit
from agentos_pack_web_search.providers import NotResultsError, Query

NAME = "ddgs"
INSTALL = "pip install 'agentos-pack-web-search[ddgs]'"
_CHILD = Path(__file__).with_name("_ddgs_child.py")
_READ = 100
_START = 10.0
"""Seconds for the process to start and import what it needs."""


class LimitedError(Exception):
    """The search engines want to be left alone for a while."""


def is_installed() -> bool:
    """Tell whether ddgs is there, without importing it."""
    return NAME in sys.modules or importlib.util.find_spec(NAME) is not None


async def search(query: Query, seconds: float) -> list[Hit]:
    """Return the results; raise NotResultsError or LimitedError if there are none to be had."""
    asked = {
        "query": query.with_site,
        "limit": query.limit,
        "timelimit": query.recency[0] if query.recency else None,
        "timeout": max(1, int(seconds)),
    }
    try:
        done = await run_python(
            _CHILD,
            stdin=json.dumps(asked).encode(),
            limits=Limits(seconds=seconds + _START, cpu_seconds=30, memory_bytes=4_000_000_000, output_bytes=2_000_000),
        )
    except ProcessError as error:
        raise NotResultsError(str(error)) from None
    if done.timed_out:
        raise NotResultsError(f"it did not answer within {seconds:g} s")
    return _read(done.stdout)


def _read(said: bytes) -> list[Hit]:
    try:
        answer = json.loads(said)
        error, results = answer.get("error"), answer.get("results")
    except (ValueError, AttributeError, RecursionError):
        raise NotResultsError("it broke off") from None
    if error == "RatelimitException":
        raise LimitedError
    if error is not None or not isinstance(results, list):
        raise NotResultsError(f"it failed ({str(error)[:50]})")
    items = [item for item in results[:_READ] if isinstance(item, dict)]
    hits = (read_hit(item.get("title"), item.get("href"), item.get("body")) for item in items)
    return [hit for hit in hits if hit is not None]
