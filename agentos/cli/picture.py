"""A readable picture of every stack: who is active, who is not, and why."""

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentos.manager import ExtensionManager
from agentos.model.report import LoadReport
from agentos.stacks.entry import Entry, EntryState

_STYLES = {
    EntryState.ACTIVE: ("●", "bold green"),
    EntryState.WRAPPED: ("◐", "green"),
    EntryState.SHADOWED: ("○", "bright_black"),
    EntryState.GATED: ("◇", "yellow"),
    EntryState.DISABLED: ("-", "bright_black"),
    EntryState.FAILED: ("✗", "bold red"),
    EntryState.UNBOUND: ("…", "yellow"),
}
_STATUSES = {"loaded": "green", "skipped": "bright_black", "failed": "bold red"}


def draw_report(report: LoadReport) -> RenderableType:
    """Draw what became of every entry of a manifest."""
    table = Table("pack", "outcome", "why", box=None, header_style="bold", pad_edge=False)
    for outcome in report.outcomes:
        style = _STATUSES[outcome.status]
        table.add_row(Text(outcome.key), Text(outcome.status, style), Text(outcome.reason or "", overflow="fold"))
    return table


def draw_stacks(manager: ExtensionManager, kinds: Iterable[str] | None = None) -> RenderableType:
    """Draw the stacks of *kinds*, or of every kind there is."""
    chosen = list(kinds) if kinds is not None else manager.kinds()
    return Group(*(_draw_kind(manager, kind) for kind in chosen))


def _draw_kind(manager: ExtensionManager, kind: str) -> RenderableType:
    registry = manager.registry(kind)
    table = Table(title=kind, title_justify="left", title_style="bold cyan", header_style="bold", box=SIMPLE_HEAD)
    for name in ("id", "state", "pack", "priority", "why"):
        table.add_column(name, overflow="fold", no_wrap=name in ("state", "priority"))
    for id in registry.ids():
        for position, entry in enumerate(registry.stack(id)):
            table.add_row(Text(id if position == 0 else "", "bold"), *_cells(entry))
    return table


def _cells(entry: Entry) -> tuple[Text, ...]:
    sign, style = _STYLES[entry.state]
    return (
        Text(f"{sign} {entry.state}", style),
        Text(str(entry.source)),
        Text(str(entry.priority)),
        Text(entry.reason),
    )
