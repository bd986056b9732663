"""`agentos doctor`: everything that may be wrong, with the cure. No pack is imported by this process."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import attrs
import click

from agentos._version import __version__
from agentos.cli.app import App, Fail, examples, pass_app
from agentos.cli.inspection import deadline_option, inspect_packs
from agentos.cli.probe.isolated_load import HOLLOW, ProbeReport
from agentos.errors import AgentOSError, PackLoadError, StoreError
from agentos.model.field_checks import did_you_mean, nearest
from agentos.model.manifest import PackEntry

if TYPE_CHECKING:
    from agentos.cli.layered_config import Config

OLDEST = (3, 11)
_PREFIX = "AGENTOS_"
_KEPT = "kept secrets"
_SIGNS = {"error": ("✗", "bold red"), "warning": ("!", "yellow")}


@attrs.frozen
class Trouble:
    """Something that is wrong (`error`) or looks so (`warning`), and what to do about it."""

    level: str
    about: str
    message: str
    cure: str


@attrs.frozen
class Inspected:
    """What checks look at; what could not be had is None."""

    environ: Mapping[str, str] = attrs.field(repr=False)
    path: Path | None = None
    config: "Config | None" = None
    report: ProbeReport | None = None


class NotChecked(Exception):  # noqa: N818 - nothing is wrong
    """Raised by a check that can't tell: why it can't."""


Check = Callable[[Inspected], Iterable[Trouble]]


@click.command(epilog=examples("agentos doctor", "agentos doctor --strict", "agentos doctor --json | jq .troubles"))
@deadline_option
@click.option("--strict", is_flag=True, help="Exit 1 for what only looks wrong, too.")
@pass_app
def doctor(app: App, *, deadline: float, strict: bool) -> None:
    """Find what is wrong, with the cure: exit 1 if something is. Packs are loaded in a process of their own."""
    found, troubles = _gather(app, deadline)
    checked: list[dict[str, Any]] = []
    for name, check in CHECKS.items():
        try:
            some = list(_run_check(name, check, found))
        except NotChecked as reason:
            checked.append({"check": name, "ok": None, "reason": str(reason)})
            continue
        checked.append({"check": name, "ok": not some})
        troubles += some
    is_wrong = any(one.level == "error" or strict for one in troubles)
    app.out.data(
        {"ok": not is_wrong, "agentos": __version__, "python": _python(), "troubles": troubles, "checks": checked}
    )
    _print_report(app, found, checked, troubles)
    if is_wrong:
        raise click.exceptions.Exit(1)


def _gather(app: App, deadline: float) -> tuple[Inspected, list[Trouble]]:
    """Gather what there is to look at; what can't be had is a trouble itself."""
    found = Inspected(os.environ)
    try:
        found = attrs.evolve(found, path=app.manifest_path)
        found = attrs.evolve(found, config=app.config)
        found = attrs.evolve(found, report=inspect_packs(app, deadline))
    except Fail as error:
        problems = (error.data or {}).get("problems") or [error.message]
        about = "manifest" if found.config is None else "packs"
        cure = error.hint or "correct it; `agentos config show` says what counts then"
        return found, [Trouble("error", about, problem, cure) for problem in problems]
    return found, []


def _run_check(name: str, check: Check, found: Inspected) -> Iterator[Trouble]:
    """Run a check. One that fails is a trouble too: the others are still heard."""
    try:
        yield from check(found)
    except (AgentOSError, OSError, ValueError) as error:
        yield Trouble("error", name, f"could not be checked: {error}", "mend that first, then look again")


def _print_report(app: App, found: Inspected, checked: list[dict[str, Any]], troubles: list[Trouble]) -> None:
    out = app.out
    out.say(f"agentos {__version__}, Python {_python()}, manifest {found.path or 'none'}")
    out.items([(_SIGNS[one.level], f"{one.about}: {one.message}\ncure: {one.cure}") for one in troubles])
    if found.report is not None:
        out.items([(("✓", "green"), ", ".join(one["check"] for one in checked if one["ok"]))])
        out.items(
            [(("·", "yellow"), f"{one['check']}: not checked, {one['reason']}") for one in checked if one["ok"] is None]
        )
    if not troubles:
        out.say("Nothing is wrong.", "bold green")


def _python() -> str:
    return ".".join(map(str, sys.version_info[:3]))


# -- checks ------------------------------------------------------------------------------------------------------------


def check_python(found: Inspected) -> Iterator[Trouble]:  # noqa: ARG001 - a check's signature
    """Check that Python is new enough."""
    if sys.version_info < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        yield Trouble("error", "python", f"Python {_python()} is too old", f"use Python {wanted} or newer")


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

    if found.path is None:
        return
    if len(names := [path.name for path in manifests_in(found.path.parent)]) > 1:
        yield Trouble("warning", "manifest", f"there are {' and '.join(names)}; {names[0]} counts", "keep one of them")
    settings = found.config.manifest.settings if found.config else None
    if settings is not None and settings.dotenv and not Path(settings.dotenv).is_file():
        yield Trouble("warning", "dotenv", f"there is no file {settings.dotenv}", "make it, or correct dotenv")


EXTRAS: tuple[tuple[str, str, Callable[["Config"], bool], str], ...] = (
    ("mcp", "mcp", lambda config: bool(config.manifest.mcp_servers), "mcpServers"),
    ("psycopg", "postgres", lambda config: (config.manifest.store or "").startswith("postgres"), "the store"),
    (
        "httpx",
        "http",
        lambda config: any(one.package == "openapi" for one in config.manifest.packs),
        "the pack openapi",
    ),
)
"""Modules that a manifest may ask for: the extra that brings each, and when it is needed."""


def check_extras(found: Inspected) -> Iterator[Trouble]:
    """Check that what the manifest asks for is installed."""
    for module, extra, is_needed, what in EXTRAS:
        if found.config is not None and is_needed(found.config) and importlib.util.find_spec(module) is None:
            cure = f"pip install 'agentos[{extra}]'"
            yield Trouble("error", "extras", f"{what} needs {module}, which is not installed", cure)


def check_packs(found: Inspected) -> Iterator[Trouble]:
    """Check that every pack can be loaded."""
    for one in found.report.bad if found.report else ():
        cure = f"mend it, or keep it away: agentos packs disable --in-manifest {quote(one.key)}"
        yield Trouble("error", f"pack {one.key}", f"{one.status}: {one.reason}", cure)


def check_entry_points(found: Inspected) -> Iterator[Trouble]:
    """Check that what installed distributions announce is there."""
    from agentos.cli.manifest_entries import announced
    from agentos.loading.pack_files import files_of

    wanted = {one.package for one in found.config.manifest.packs} if found.config else set()
    for name, distribution in {one.name: one.distribution for one in announced()}.items():
        try:
            files_of(PackEntry(package=name))
        except PackLoadError as error:
            if name not in wanted:  # else the pack itself is a trouble already
                cure = f"install {distribution} again, or uninstall it"
                yield Trouble("warning", f"entry point {name}", str(error), cure)


def check_secrets(found: Inspected) -> Iterator[Trouble]:
    """Check that no secret is missing that something waits for."""
    from agentos.cli.faults import faults_of_kept
    from agentos.secrets.catalog import SecretCatalog

    waiting: dict[str, list[str]] = {}
    for stack in found.report.stacks if found.report else ():
        for entry in stack.entries:
            for one in entry.secrets:
                if one["origin"] is None and not one["optional"] and entry.state != "disabled":
                    waiting.setdefault(one["id"], []).append(f"{entry.pack}:{entry.id}")
    catalog = SecretCatalog.shipped() if waiting else None
    first = f"mend the {_KEPT} first, then: " if waiting and any(faults_of_kept()) else ""
    for id, who in waiting.items():
        known = catalog.get(id) if catalog else None
        cure = f"{first}agentos secrets set {quote(id)}"
        if known is not None:
            cure += f", or set {' or '.join(known.variables)}"
            cure += f"; get one at {known.docs_url}" if known.docs_url else ""
        yield Trouble("error", f"secret {id}", f"it is missing; {', '.join(who)} waits for it", cure)


def check_pins(found: Inspected) -> Iterator[Trouble]:
    """Check that no definition waits to be accepted."""
    from agentos.cli.held_back import way_to_accept

    if found.config is None or found.report is None:
        return
    for one in found.report.pending:
        cure = f"read what it says now, then: {way_to_accept(found.config, one['tool'])}"
        yield Trouble("error", f"tool {one['tool']}", one["reason"], cure)


def check_stacks(found: Inspected) -> Iterator[Trouble]:
    """Check that no tool stands in the shadow of another pack's, without wrapping, and that who wraps has whom to."""
    for stack in found.report.stacks if found.report else ():
        active = stack.active
        if stack.hollow is not None:
            cure = f"load a pack that offers {stack.kind}:{stack.id}, or leave {stack.hollow.pack} out"
            yield Trouble("warning", f"{stack.kind}:{stack.id}", f"{stack.hollow.pack}'s {HOLLOW}", cure)
        for entry in stack.entries:
            if active is not None and entry.state == "shadowed" and entry.pack != active.pack:
                message = f"{entry.pack}'s is in the shadow of {active.pack}'s"
                named = quote(f"{stack.kind}:{stack.id}")
                cure = f"if that is not meant: agentos why {named}, then override a priority"
                yield Trouble("warning", f"{stack.kind}:{stack.id}", message, cure)


def check_overrides(found: Inspected) -> Iterator[Trouble]:
    """Check that every override and denial is about something that is there."""
    if found.config is None or found.report is None:
        return
    troubles = list(_without_target(found.config, found.report))
    if troubles and found.report.bad:
        names = ", ".join(one.key for one in found.report.bad)
        raise NotChecked(f"because what {names} would offer is not known")
    yield from troubles


def _without_target(config: "Config", report: ProbeReport) -> Iterator[Trouble]:
    stacks = report.stacks
    for overrides in (config.manifest.overrides, config.overrides):
        for kind, group in overrides.by_kind.items():
            ids = {name for one in stacks if one.kind == kind for name in _names_on(one)}
            for key in group:
                if key not in ids:
                    message = f"the override {key!r} of {kind} is about nothing that is there{did_you_mean(key, ids)}"
                    yield Trouble("warning", "overrides", message, "correct it, or take it out")
    yield from _unmatched_denials(config, {name for one in stacks if one.kind == "tool" for name in _names_on(one)})


def _names_on(stack: Any) -> list[str]:
    return [stack.id, *(f"{entry.pack}:{stack.id}" for entry in stack.entries)]


def _unmatched_denials(config: "Config", ids: set[str]) -> Iterator[Trouble]:
    for pattern in config.manifest.settings.deny or ():
        if not any(fnmatchcase(name, pattern) for name in ids):
            message = f"{pattern!r} denies nothing that is there{did_you_mean(pattern, ids)}"
            yield Trouble("warning", "deny", message, "correct it, or take it out")


def check_store(found: Inspected) -> Iterator[Trouble]:
    """Check that the store can be reached, read and written, and that its key is nobody else's."""
    if found.config is None or found.config.manifest.store is None:
        return
    from agentos.cli.faults import faults_of_folder, faults_of_store
    from agentos.store.locations import place_of

    try:
        place = place_of(found.config.manifest.store)
    except StoreError as error:
        yield Trouble("error", "store", str(error), "correct store in the manifest")
        return
    # Where nothing can be written, what else fails there has that cause.
    faults = [] if place.path is None else list(faults_of_folder(place.path.parent))
    faults = faults or list(faults_of_store(place))
    yield from (Trouble("error", "store", message, cure) for message, cure in faults)
    yield from _faults_of_key(place, found.environ)


def _faults_of_key(place: Any, environ: Mapping[str, str]) -> Iterator[Trouble]:
    from agentos.cli.faults import is_open_to_others
    from agentos.store.sealing_key import VARIABLE, key_file

    file = key_file(place) if place.is_durable and VARIABLE not in environ else None
    if file is not None and is_open_to_others(file):
        yield Trouble("error", "store", f"its key {file} can be read by others", f"chmod 600 {quote(str(file))}")


def check_data(found: Inspected) -> Iterator[Trouble]:
    """Check that the user's data folder can be written, and that the secrets that are kept there can be read."""
    from agentos.cli.faults import faults_of_folder, faults_of_kept
    from agentos.store.locations import data_folder, place_of

    folder = data_folder()
    store = None if found.config is None else found.config.manifest.store
    path = None if store is None else place_of(store).path
    if path is None or path.parent != folder:  # else the store tells
        cure = "; or set AGENTOS_DATA to another folder"
        yield from (Trouble("error", "data folder", message, way + cure) for message, way in faults_of_folder(folder))
    yield from (Trouble("error", _KEPT, message, way) for message, way in faults_of_kept())


def check_servers(found: Inspected) -> Iterator[Trouble]:
    """Check that the commands of MCP servers are there: they are started when they are first needed."""
    from agentos.mcp.client.manifest_servers import parse_servers

    servers = {} if found.config is None else found.config.manifest.mcp_servers
    for one in parse_servers(servers):
        if one.enabled and one.command is not None and not _is_program(one.command, one.env, one.cwd):
            where = "on PATH" if os.sep not in one.command else f"at {Path(one.cwd or '.', one.command).absolute()}"
            cure = f"install it, or correct mcpServers.{one.name}.command"
            yield Trouble("error", f"server {one.name}", f"there is no program {one.command!r} {where}", cure)


def _is_program(command: str, env: Mapping[str, str], cwd: str | None) -> bool:
    if os.sep in command:
        return os.access(Path(cwd or ".", command), os.X_OK)
    return shutil.which(command, path=env.get("PATH")) is not None


def check_lock(found: Inspected) -> Iterator[Trouble]:
    """Check that packs are as the lock file says."""
    from agentos.access.lock import Lock, check_files
    from agentos.loading.pack_files import files_of

    settings = found.config.manifest.settings if found.config else None
    if found.config is None or settings is None or settings.lock is None:
        return
    if not Path(settings.lock).exists():
        yield Trouble("error", "lock", f"there is no file {settings.lock}", "agentos lock, or take lock out")
        return
    lock = Lock.read(settings.lock)
    level = "error" if settings.pins == "strict" else "warning"
    for entry in found.config.manifest.packs:
        if entry.key is None or not entry.enabled:
            continue
        try:
            differences = check_files(lock.pack(entry.key), entry.key, files_of(entry))
        except PackLoadError:
            continue  # it can't be loaded either, which is told already
        yield from (
            Trouble(level, "lock", str(one), "put it back, or agree to it: agentos lock") for one in differences
        )


CHECKS: dict[str, Check] = {
    "python": check_python,
    "environment": check_environment,
    "files": check_files,
    "extras": check_extras,
    "packs": check_packs,
    "entry points": check_entry_points,
    "secrets": check_secrets,
    "pins": check_pins,
    "stacks": check_stacks,
    "overrides": check_overrides,
    "servers": check_servers,
    "store": check_store,
    "data folder": check_data,
    "lock": check_lock,
}
"""Every check, in the order in which they are made."""
