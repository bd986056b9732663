"""What commands that look at packs share: how long they wait, for whom, and what they say of packs that are bad."""

from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App
from agentos.cli.probe.isolated_load import DEADLINE, ProbeReport, probe
from agentos.cli.terminal.call_progress import ProgressLine

if TYPE_CHECKING:
    from agentos.cli.layered_config import Config

deadline_option = click.option(
    "--deadline",
    type=click.FloatRange(min=0.1),
    default=DEADLINE,
    show_default=True,
    metavar="SECONDS",
    help="For how long one pack may be loading.",
)


def inspect_packs(
    app: App, deadline: float = DEADLINE, *, config: "Config | None" = None, **options: Any
) -> ProbeReport:
    """Load packs in a process of their own; at a terminal, say which one takes its time. The rest is as for `probe`."""
    progress = ProgressLine(app.out)
    try:
        waits = lambda key: progress.status(f"loading {key} ...")  # noqa: E731 - shown while it lasts
        return probe(config or app.config, deadline, waits=waits, **options)
    finally:
        progress.clear()


def warn_of_bad(app: App, report: ProbeReport) -> None:
    """Say which packs could not be loaded."""
    for pack in report.bad:
        app.out.warn(f"{pack.key} was not loaded ({pack.status}): {pack.reason}")
