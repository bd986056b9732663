"""`agentos lint`: what packs could say better. They are loaded in a process of their own."""

from collections.abc import Iterator
from pathlib import Path

import click

from agentos.checks.probed import ProbedPack
from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.inspection import deadline_option, inspect_packs, manifest_of
from agentos.cli.manifest_entries import announced, complete_any_pack, find_announced, find_entries, is_in_manifest
from agentos.cli.terminal.harmless_text import counted
from agentos.loading.modules import is_path

SEVERITIES = ("error", "warning", "info")
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@click.command(
    epilog=examples(
        "agentos lint",
        "agentos lint hello --fail-on info",
        "agentos lint calculator",
        "agentos lint ./my-pack/agentos_pack_my_pack",
    )
)
@click.argument("packs", nargs=-1, shell_complete=complete_any_pack)
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
    """Find what packs could say better: all of the manifest's, some of them, others that are installed, or files."""
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
    alone = {name: entry for name in packs if (entry := _entry_of(app, name)) is not None}
    named = [name for name in packs if name not in alone]
    if alone:
        with manifest_of(list(alone.values())) as config:
            yield from inspect_packs(app, deadline, config=config, lint=True).packs
    if named or not alone:
        others = [one.name for one in announced()] if named else []
        keys = {find_entries(app.config.path, name, others)[0].key for name in named}
        indexes = [index for index, entry in enumerate(app.config.entries) if not keys or entry.key in keys]
        yield from (
            one for one in inspect_packs(app, deadline, only=indexes, lint=True).packs if one.status != "skipped"
        )


def _entry_of(app: App, name: str) -> dict[str, str] | None:
    """Return an entry for a file, a folder or an installed pack; None for what the manifest has to know."""
    if _is_path(app, name):
        return {"module": str(Path(name).absolute()), "identifier": str(Path(name)).replace(" ", "_")}
    if is_in_manifest(app, name):
        return None
    found = find_announced(name)
    return None if found is None else {"package": found.name}


def _is_path(app: App, name: str) -> bool:
    """Tell a file or a folder from the name of a pack: a folder that is no package may be called as one is."""
    path = Path(name)
    if path.is_dir():
        return (path / "__init__.py").is_file() or not _is_known(app, name)
    is_there = path.suffix == ".py" and path.exists()
    if not is_there and is_path(name) and not is_in_manifest(app, name):
        raise Fail(f"there is no pack at {path.absolute()}: expected a .py file, or a folder with an __init__.py")
    return is_there


def _is_known(app: App, name: str) -> bool:
    return is_in_manifest(app, name) or find_announced(name) is not None
