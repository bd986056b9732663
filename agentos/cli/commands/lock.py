"""`agentos lock`: agree on packs and tools as they are, or check that they are still so."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from agentos.checks.probed import ProbeReport
from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.host_session import UNUSABLE
from agentos.cli.inspection import deadline_option, inspect_packs
from agentos.cli.terminal.harmless_text import counted
from agentos.errors import ManifestError, PackLoadError

if TYPE_CHECKING:
    from agentos.access.lock import Difference, Lock
    from agentos.cli.layered_config import Config

NAME = "agentos.lock"


@attrs.frozen
class Unloaded:
    """A pack that can't be compared, or not in full: nobody knows whether it is as locked."""

    pack: str
    reason: str
    what: str = "not loaded"

    def __str__(self) -> str:
        return f"pack {self.pack!r} can't be compared with the lock: {self.reason}"


@click.command(epilog=examples("agentos lock", "agentos lock --check", "agentos lock --output locks/production.lock"))
@click.option("--check", "is_check", is_flag=True, help="Change nothing; exit 1 if something is not as locked.")
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False), help="The lock file; else the manifest's, else agentos.lock."
)
@deadline_option
@pass_app
def lock(app: App, *, is_check: bool, output: str | None, deadline: float) -> None:
    """Write down which packs are there: versions, hashes of their files, and definitions of their tools.

    With `lock` and `pins = "strict"` in the manifest, a host refuses whatever differs. --check compares files first:
    no pack runs unless all of them are as locked, and then in a process of its own.
    """
    path = _path(app, output)
    if is_check:
        _check(app, path, deadline)
        return
    present = _lock_of_loaded(app, deadline)
    _write(present, path)
    app.out.data({"lock": path, "packs": [{"key": one.key, "version": one.version} for one in present.packs]})
    tools = sum(len(one.tools) for one in present.packs)
    app.out.say(f"Locked {counted(len(present.packs), 'pack')} with {counted(tools, 'tool')} in {path.name}.")
    if app.config.manifest.settings.lock is None:
        app.out.say(f'To hold hosts to it, add lock = "{path.name}" and pins = "strict" to {app.config.path.name}.')


def _path(app: App, output: str | None) -> Path:
    if output is not None:
        return Path(output).expanduser().absolute()
    return Path(app.config.manifest.settings.lock or app.config.folder / NAME)


def _lock_of_loaded(app: App, deadline: float) -> "Lock":
    """Load everything in a process of its own, whatever a lock or the store says of it, and return what is there."""
    report = inspect_packs(app, deadline, locks=True)
    if report.bad:
        lines = "\n".join(f"  {one.key}: {one.reason}" for one in report.bad)
        raise Fail(f"what can't be loaded can't be locked:\n{lines}", hint="mend or disable it, then lock again")
    return _lock_from(report)


def _lock_from(report: ProbeReport) -> "Lock":
    from agentos.access.lock import Lock, LockedPack

    return Lock([LockedPack(**one) for one in report.locked])


def _write(present: "Lock", path: Path) -> None:
    try:
        present.write(path)
    except ManifestError as error:
        if isinstance(error.__cause__, OSError):  # the disk's fault, and no configuration's
            raise Fail(str(error)) from None
        raise


# -- check -------------------------------------------------------------------------------------------------------------


def _check(app: App, path: Path, deadline: float) -> None:
    from agentos.access.lock import Lock

    if not path.exists():
        raise Fail(f"there is no lock file at {path}", code=UNUSABLE, hint="`agentos lock` makes one")
    agreed = Lock.read(path)
    # A changed pack could answer whatever it likes: only where all files are as locked, any code runs.
    differences = list(_file_differences(app.config, agreed)) or list(_definition_differences(app, agreed, deadline))
    app.out.data({"lock": path, "ok": not differences, "differences": differences})
    for one in differences:
        app.out.say(one, "yellow")
    if differences:
        raise click.exceptions.Exit(1)
    app.out.say(f"Everything is as locked in {path.name}.")


def _file_differences(config: "Config", agreed: "Lock") -> "Iterator[Difference | Unloaded]":
    """Compare what can be compared before any code runs: which packs there are, their versions and files."""
    from agentos.access.lock import Difference, check_files
    from agentos.loading.pack_files import files_of

    present = {entry.label: entry for entry in config.entries if entry.enabled}
    for key in sorted(present.keys() | {one.key for one in agreed.packs}):
        locked = agreed.pack(key)
        if key not in present and locked is not None:
            yield Difference(key, "removed", locked.name, str(locked), None)
            continue
        try:
            yield from check_files(locked, key, files_of(present[key]))
        except PackLoadError as error:
            yield Unloaded(key, error.message)


def _definition_differences(app: App, agreed: "Lock", deadline: float) -> "Iterator[Difference | Unloaded]":
    """Compare what packs say of themselves, once their files are known to be the agreed ones."""
    report = inspect_packs(app, deadline, locks=True)
    bad = {one.key: one.reason or one.status for one in report.bad}
    yield from (Unloaded(key, reason) for key, reason in bad.items())
    yield from (one for one in agreed.differences(_lock_from(report)) if one.pack not in bad)
