"""Runs in a process of its own: one search by ddgs. Takes JSON on stdin, answers with JSON on stdout.

It imports nothing of the pack, so that it starts fast and can be run from its file.
"""

import importlib
import json
import sys
from typing import Any


def search(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the results, or the name of what went wrong."""
    library = importlib.import_module("ddgs")
    try:
        found = library.DDGS(timeout=asked["timeout"]).text(
            asked["query"], safesearch="moderate", timelimit=asked["timelimit"], max_results=asked["limit"]
        )
    except Exception as error:  # noqa: BLE001 - whatever a foreign library raises is told to the parent by name
        is_empty = "no results" in str(error).lower()
        return {"results": []} if is_empty else {"error": type(error).__name__}
    return {"results": list(found or [])}


if __name__ == "__main__":
    json.dump(search(json.load(sys.stdin)), sys.stdout)
