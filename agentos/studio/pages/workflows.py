"""Workflows of the host, where it has them."""

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from starlette.responses import Response

from agentos.studio.page import Page
from agentos.studio.row_table import Cell, TableRow, table
from agentos.studio.view import PageView


async def show(view: PageView) -> Response:
    """Show which workflows there are."""
    listed = view.host.workflows.list()  # type: ignore[attr-defined]  # is_there has looked
    found = await listed if inspect.isawaitable(listed) else listed
    return table(
        view,
        ("workflow", "what it does"),
        list(_rows(found)),
        empty="No loaded pack offers a workflow.",
        topic="workflows",
    )


def _rows(found: Iterable[Any]) -> Iterator[TableRow]:
    for one in found:
        name = getattr(one, "id", None) or getattr(one, "name", None) or str(one)
        yield TableRow(cells=(Cell(name), Cell(getattr(one, "description", ""), "wide")), detail=one)


WORKFLOWS = Page(
    id="workflows",
    title="Workflows",
    question="What runs in steps?",
    group="What happens",
    show=show,
    is_there=lambda host: hasattr(host, "workflows"),
)
