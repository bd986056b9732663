"""Packs in processes of their own: how each is, and what it said last."""

from datetime import UTC, datetime

from starlette.responses import Response

from agentos.model.isolation import MIB, WorkerInfo
from agentos.studio.markup import counted, took
from agentos.studio.page import Page
from agentos.studio.row_table import Cell, RowForm, TableRow, table
from agentos.studio.view import PageView


async def show(view: PageView) -> Response:
    """Show the workers of this host."""
    return table(
        view,
        ("pack", "state", "process", "memory", "calls", "why"),
        [_row(view, one) for one in view.host.workers.list()],
        empty='No pack has a process of its own. `isolation = "process"` in its manifest entry gives it one.',
        topic="workers",
    )


def _row(view: PageView, one: WorkerInfo) -> TableRow:
    said = [] if one.since is None else [f"for {took((datetime.now(UTC) - one.since).total_seconds())}"]
    said += [counted(one.restarts, "restart")] if one.restarts else []
    said += [counted(one.strikes, "strike")] if one.strikes else []
    lines = view.host.workers.logs(one.pack)
    return TableRow(
        cells=(
            Cell(one.pack),
            Cell(one.state.value.lower(), "state"),
            Cell(one.pid),
            Cell("" if one.rss is None else f"{one.rss / MIB:.0f} MiB"),
            Cell(one.calls),
            Cell("; ".join([*said, *([one.reason] if one.reason else [])]), "wide"),
        ),
        forms=(RowForm(path="/workers/restart", label="Restart", fields={"pack": one.pack}),),
        detail="\n".join(lines) if lines else None,
    )


async def restart(view: PageView) -> Response:
    """End a pack's process and mount it anew."""
    pack = (await view.form()).get("pack", "")
    await view.host.workers.restart(pack)
    return await view.changed(f"{pack} is mounted anew.")


WORKERS = Page(
    id="workers",
    title="Workers",
    question="How are packs in processes of their own?",
    group="How it runs",
    show=show,
    changes={"restart": restart},
)
