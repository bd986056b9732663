"""`agentos lint`: what packs could say better. They are loaded in a process of their own."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.inspection import deadline_option, inspect_packs
from agentos.cli.manifest_entries import complete_pack, entries_in, find_entries
from agentos.cli.probe.isolated_load import ProbedPack
from agentos.cli.terminal.harmless_text import counted
from agentos.loading.modules import is_path

if TYPE_CHECKING:
    from agentos.cli.layered_config import Config

SEVERITIES = ("error", "warning", "info")
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@click.command(
    epilog=examples("agentos lint", "agentos lint hello --fail-on info", "agentos lint ./my-pack/agentos_pack_my_pack")
)
@click.argument("packs", nargs=-1, shell_complete=complete_pack)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="From which severity on to exit 1.",
)
@deadline_option
@pass_app
def lint(app: App, *, packs: tuple[str, ...], fail_on: str, deadline: float) -> None:
    """Find what packs could say better: all of the manifest's, some of them, or files and folders anywhere."""
    probed = list(_probe_chosen(app, packs, deadline))
    findings = [{"pack": one.key, **finding} for one in probed for finding in one.findings]
    bad = [one for one in probed if one.is_bad]
    app.out.data({"findings": findings, "failed": [{"pack": one.key, "reason": one.reason} for one in bad]})
    rows = [
        ((one["severity"], _STYLES[one["severity"]]), one["place"], f"{one['message']}; {one['cure']} [{one['rule']}]")
        for one in findings
    ]
    if rows:
        app.out.table(("severity", "place", "finding"), rows)
    for one in bad:
        app.out.fail(f"{one.key}: {one.reason}")
    serious = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    if bad or any(one["severity"] in serious for one in findings):
        raise click.exceptions.Exit(1)
    if not rows:
        app.out.say(f"Nothing to say better in {counted(len(probed), 'pack')}.")


def _probe_chosen(app: App, packs: tuple[str, ...], deadline: float) -> Iterator[ProbedPack]:
    paths = [Path(name) for name in packs if _is_path(app, name)]
    named = [name for name in packs if Path(name) not in paths]
    if paths:
        with _temporary_manifest(paths) as config:
            yield from inspect_packs(app, deadline, config=config, lint=True).packs
    if named or not paths:
        keys = {find_entries(app.config.path, name)[0].key for name in named}
        indexes = [index for index, entry in enumerate(app.config.entries) if not keys or entry.key in keys]
        yield from (
            one for one in inspect_packs(app, deadline, only=indexes, lint=True).packs if one.status != "skipped"
        )


def _is_path(app: App, name: str) -> bool:
    """Tell a file or a folder from the name of a pack: a folder that is no package may be called as one is."""
    path = Path(name)
    if path.is_dir():
        return (path / "__init__.py").is_file() or not _is_in_manifest(app, name)
    is_there = path.suffix == ".py" and path.exists()
    if not is_there and is_path(name) and not _is_in_manifest(app, name):
        raise Fail(f"there is no pack at {path.absolute()}: expected a .py file, or a folder with an __init__.py")
    return is_there


def _is_in_manifest(app: App, name: str) -> bool:
    path = app.find_manifest()
    return path is not None and any(name in (one.key, *one.names()) for one in entries_in(path))


@contextmanager
def _temporary_manifest(paths: list[Path]) -> "Iterator[Config]":
    """Give a manifest of packs that are in none."""
    from agentos.cli.layered_config import load_config

    entries = [{"module": str(path.absolute()), "identifier": str(path).replace(" ", "_")} for path in paths]
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "agentos.json"
        manifest.write_text(json.dumps({"packs": entries}), "utf-8")
        yield load_config(manifest)
