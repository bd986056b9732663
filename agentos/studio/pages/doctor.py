"""What is wrong, with the cure."""

from starlette.responses import Response

from agentos.studio.page import Page
from agentos.studio.row_table import Cell, TableRow, table
from agentos.studio.view import PageView


async def show(view: PageView) -> Response:
    """Show what every check of the host found."""
    report = await view.host.check()
    rows = [
        TableRow(
            cells=(Cell(one.level, "state"), Cell(one.about), Cell(one.message), Cell(one.cure, "wide")),
            traits={"level": one.level},
        )
        for one in report.troubles
    ]
    return table(
        view,
        ("level", "about", "what is wrong", "cure"),
        rows,
        empty="Nothing is wrong.",
        template="doctor.html",
        checks=report.checks,
        is_ok=report.ok,
    )


DOCTOR = Page(id="doctor", title="Doctor", question="What is wrong, and what helps?", group="How it runs", show=show)
