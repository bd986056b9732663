"""What a tool that yields comes to: a list of its items, of each of which the host hears at once."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from agentos.calls.results import NotSerialisableError, to_json
from agentos.tools.tool_context import ToolContext

ITEM_LIMIT = 10_000
"""How many items a tool that yields may yield."""


async def collected(items: AsyncIterator[Any], context: ToolContext) -> list[Any]:
    """Gather what an async tool yields; the host hears of each item at once."""
    found: list[Any] = []
    async for item in items:
        found.append(item)
        await context.send_content(_text(item))
        _bound(found)
    return found


def gathered(items: Iterator[Any], context: ToolContext) -> list[Any]:
    """Gather what a sync tool yields; the host hears of each item at once."""
    found: list[Any] = []
    for item in items:
        found.append(item)
        context.send_content(_text(item))
        _bound(found)
        if context.cancelled:
            break
    return found


def _bound(collected: list[Any]) -> None:
    if len(collected) > ITEM_LIMIT:
        raise ValueError(f"the tool yielded more than {ITEM_LIMIT} items")


def _text(item: Any) -> str:
    if isinstance(item, str):
        return item
    try:
        return json.dumps(to_json(item), ensure_ascii=False)
    except NotSerialisableError:
        return ""
