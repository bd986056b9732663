"""What commands that look at packs share: how long they wait, for whom, and what they say of packs that are bad."""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentos.checks.probed import ProbeReport
from agentos.cli.app import App
from agentos.cli.probe.isolated_load import DEADLINE, probe

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
    from agentos.cli.known_names import remember_probe
    from agentos.cli.terminal.call_progress import ProgressLine

    progress, began = ProgressLine(app.out), time.time()
    try:
        waits = lambda key: progress.status(f"loading {key} ...")  # noqa: E731 - shown while it lasts
        report = probe(config or app.config, deadline, waits=waits, **options)
    finally:
        progress.clear()
    if config is None:
        remember_probe(app.config, report, began)
    return report


@contextmanager
def manifest_of(entries: Sequence[Mapping[str, str]]) -> "Iterator[Config]":
    """Give a configuration of packs that are in no manifest."""
    from agentos.cli.layered_config import load_config

    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "agentos.json"
        manifest.write_text(json.dumps({"packs": entries}), "utf-8")
        yield load_config(manifest)


def warn_of_bad(app: App, report: ProbeReport) -> None:
    """Say which packs could not be loaded."""
    for pack in report.bad:
        app.out.warn(f"{pack.key} was not loaded ({pack.status}): {pack.reason}")
