"""Which definitions changed and wait for a person: old and new side by side."""

from collections.abc import Sequence

import attrs
from starlette.responses import Response

from agentos.access.pins import Pin
from agentos.studio.page import Page
from agentos.studio.pages.approvals import differences
from agentos.studio.row_table import Cell, TableRow, table
from agentos.studio.view import PageView


@attrs.frozen
class HeldDefinition:
    """A definition that waits, and in which lines it differs from the one that was accepted."""

    pin: Pin
    differences: Sequence[tuple[str, str]]


async def show(view: PageView) -> Response:
    """Show what waits, and what is accepted."""
    pending = await view.host.pins.pending()
    held = [
        HeldDefinition(pin, differences({"before": dict(pin.before), "after": dict(pin.data)}) or ()) for pin in pending
    ]
    rows = [
        TableRow(
            cells=(
                Cell(pin.tool),
                Cell(pin.state, "state"),
                Cell(pin.reason, "wide"),
                Cell(pin.definition[:12], "code"),
            ),
        )
        for pin in await view.host.pins.accepted()
    ]
    return table(
        view,
        ("definition", "state", "why", "hash"),
        rows,
        empty="No definition is pinned yet.",
        template="pins.html",
        topic="pins",
        held=held,
    )


async def accept(view: PageView) -> Response:
    """Let a definition in."""
    id = (await view.form()).get("id", "")
    await view.host.pins.accept(id, by=view.by)
    return await view.changed(f"The definition of {id} is accepted.")


PINS = Page(
    id="pins",
    title="Pins",
    question="Which definitions changed?",
    group="Who may",
    show=show,
    changes={"accept": accept},
)
