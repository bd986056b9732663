"""`agentos doctor`: everything that may be wrong, with the cure. No pack is imported by this process."""

import os
from collections.abc import Iterator

import attrs
import click

from agentos._version import __version__
from agentos.checks.examination import CHECKS, Check, CheckReport, Inspected, examine, python_version
from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.inspection import deadline_option, inspect_packs
from agentos.cli.unread_kinds import unread_kinds
from agentos.model.field_checks import nearest
from agentos.model.isolation import WorkerInfo
from agentos.model.trouble import Trouble

_PREFIX = "AGENTOS_"
_SIGNS = {"error": ("✗", "bold red"), "warning": ("!", "yellow")}


@click.command(epilog=examples("agentos doctor", "agentos doctor --strict", "agentos doctor --json | jq .troubles"))
@deadline_option
@click.option("--strict", is_flag=True, help="Exit 1 for what only looks wrong, too.")
@pass_app
def doctor(app: App, *, deadline: float, strict: bool) -> None:
    """Find what is wrong, with the cure: exit 1 if something is. Packs are loaded in a process of their own."""
    found, troubles = _gather(app, deadline)
    checked = examine(found, all_checks())
    troubles += checked.troubles
    is_wrong = any(one.level == "error" or strict for one in troubles)
    app.out.data(
        {
            "ok": not is_wrong,
            "agentos": __version__,
            "python": python_version(),
            "troubles": troubles,
            "checks": checked.checks,
        }
    )
    _print_report(app, found, checked, troubles)
    if is_wrong:
        raise click.exceptions.Exit(1)


def _gather(app: App, deadline: float) -> tuple[Inspected, list[Trouble]]:
    """Gather what there is to look at; what can't be had is a trouble itself."""
    found = Inspected(environ=os.environ)
    try:
        found = attrs.evolve(found, path=app.manifest_path)
        found = attrs.evolve(found, manifest=app.config.manifest)
        found = attrs.evolve(found, workers=app.run(_workers(app), logs=False))
        found = attrs.evolve(found, report=inspect_packs(app, deadline))
    except Fail as error:
        problems = (error.data or {}).get("problems") or [error.message]
        about = "manifest" if found.manifest is None else "packs"
        cure = error.hint or "correct it; `agentos config show` says what counts then"
        return found, [Trouble("error", about, problem, cure) for problem in problems]
    return found, []


async def _workers(app: App) -> list[WorkerInfo]:
    """Return what hosts that are served tell of their workers."""
    from agentos.cli.worker_boards import served_hosts

    return [one for host in await served_hosts(app.config.path) for one in host.workers]


def _print_report(app: App, found: Inspected, checked: CheckReport, troubles: list[Trouble]) -> None:
    out = app.out
    out.say(f"agentos {__version__}, Python {python_version()}, manifest {found.path or 'none'}")
    out.items([(_SIGNS[one.level], f"{one.about}: {one.message}\ncure: {one.cure}") for one in troubles])
    if found.report is not None:
        out.items([(("✓", "green"), ", ".join(one.check for one in checked.checks if one.ok))])
        out.items(
            [(("·", "yellow"), f"{one.check}: not checked, {one.reason}") for one in checked.checks if one.ok is None]
        )
    for line in unread_kinds(found.report.stacks if found.report else ()):
        out.say(line)
    if not troubles:
        out.say("Nothing is wrong.", "bold green")


# -- what only the command reads ---------------------------------------------------------------------------------------


def check_environment(found: Inspected) -> Iterator[Trouble]:
    """Check that every AGENTOS_ variable is one that is read."""
    from agentos.cli.layered_config import OF_MANIFESTS, VARIABLES

    settings = {key.lower(): key for key in OF_MANIFESTS}
    for name in sorted(found.environ):
        if name.startswith(_PREFIX) and name not in VARIABLES:
            meant = nearest(name.removeprefix(_PREFIX), [one.removeprefix(_PREFIX) for one in VARIABLES])
            setting = settings.get(name.removeprefix(_PREFIX).replace("_", "").lower())
            hint = f"; did you mean {_PREFIX + meant!r}?" if meant and not setting else ""
            cure = f"unset it, and say `{setting}` in the manifest" if setting else "correct its name, or unset it"
            yield Trouble("error", "environment", f"nobody reads the variable {name}{hint}", cure)


def check_files(found: Inspected) -> Iterator[Trouble]:
    """Check that there is one manifest, and that files it names are there."""
    from agentos.cli.manifest_files import manifests_in

    names = [] if found.path is None else [path.name for path in manifests_in(found.path.parent)]
    if len(names) > 1:
        yield Trouble("warning", "manifest", f"there are {' and '.join(names)}; {names[0]} counts", "keep one of them")
    yield from CHECKS["files"](found)


def check_data(found: Inspected) -> Iterator[Trouble]:
    """Check that the user's data folder can be written, and that the secrets that are kept there can be read."""
    from agentos.checks.faults import faults_of_folder, faults_of_kept
    from agentos.store.locations import data_folder, place_of

    folder = data_folder()
    store = None if found.manifest is None else found.manifest.store
    path = None if store is None else place_of(store).path
    if path is None or path.parent != folder:  # else the store tells
        cure = "; or set AGENTOS_DATA to another folder"
        yield from (Trouble("error", "data folder", message, way + cure) for message, way in faults_of_folder(folder))
    yield from (Trouble("error", "kept secrets", message, way) for message, way in faults_of_kept())


def all_checks() -> dict[str, Check]:
    """Return the checks of every host, and those of the command's own variables and files, in their order."""
    rest = {**CHECKS, "files": check_files}
    first, last = rest.pop("python"), rest.pop("lock")
    return {"python": first, "environment": check_environment, **rest, "data folder": check_data, "lock": last}
