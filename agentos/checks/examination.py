"""Every check of a host: what may be wrong, and the cure. No pack is imported for it."""

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import attrs

from agentos.checks.accepting import command_to_accept
from agentos.checks.faults import faults_of_folder, faults_of_kept, faults_of_store, is_open_to_others
from agentos.checks.probed import ProbeReport
from agentos.errors import AgentOSError, PackLoadError, StoreError
from agentos.model.isolation import WorkerInfo
from agentos.model.manifest import ExtensionManifest, PackEntry
from agentos.model.trouble import Level, Trouble

OLDEST = (3, 11)
_SERVER = "server "
"""How it begins what a trouble of an MCP server is about."""


@attrs.frozen
class Inspected:
    """What checks look at; what could not be had is None."""

    environ: Mapping[str, str] = attrs.field(repr=False)
    path: Path | None = None
    manifest: ExtensionManifest | None = None
    report: ProbeReport | None = None
    store_key: bytes | str | None = attrs.field(default=None, repr=False)
    workers: Sequence[WorkerInfo] = ()
    """What is known of packs in processes of their own that run."""


@attrs.frozen
class CheckOutcome:
    """How one check ended: all is well, something is not, or (None) it can't tell, for a reason."""

    check: str
    ok: bool | None
    reason: str | None = None


@attrs.frozen
class CheckReport:
    """What every check found."""

    troubles: list[Trouble]
    checks: list[CheckOutcome]

    @property
    def ok(self) -> bool:
        """Tell whether nothing is wrong: what only looks so does not count."""
        return not any(one.level == "error" for one in self.troubles)

    def __str__(self) -> str:
        return "\n".join(str(one) for one in self.troubles) or "nothing is wrong"


class NotChecked(Exception):  # noqa: N818 - nothing is wrong
    """Raised by a check that can't tell: why it can't."""


Check = Callable[[Inspected], Iterable[Trouble]]


def examine(found: Inspected, checks: Mapping[str, Check]) -> CheckReport:
    """Make all *checks*, in their order."""
    troubles: list[Trouble] = []
    outcomes: list[CheckOutcome] = []
    for name, check in checks.items():
        try:
            some = list(_run_check(name, check, found))
        except NotChecked as reason:
            outcomes.append(CheckOutcome(name, None, str(reason)))
            continue
        outcomes.append(CheckOutcome(name, not some))
        troubles += some
    return CheckReport(troubles, outcomes)


def _run_check(name: str, check: Check, found: Inspected) -> Iterator[Trouble]:
    """Run a check. One that fails is a trouble too: the others are still heard."""
    try:
        yield from check(found)
    except (AgentOSError, OSError, ValueError) as error:
        yield Trouble("error", name, f"could not be checked: {error}", "mend that first, then look again")


def python_version() -> str:
    """Return the version of Python, for people."""
    return ".".join(map(str, sys.version_info[:3]))


# -- checks ------------------------------------------------------------------------------------------------------------


def check_python(found: Inspected) -> Iterator[Trouble]:  # noqa: ARG001 - a check's signature
    """Check that Python is new enough, and that it has nobody else's `agentos`."""
    if sys.version_info < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        yield Trouble("error", "python", f"Python {python_version()} is too old", f"use Python {wanted} or newer")
    yield from _other_distribution()


def _other_distribution() -> Iterator[Trouble]:
    from agentos.base.other_distribution import CURE, NAME, OURS
    from agentos.loading.installed import find_distribution

    if (other := find_distribution(NAME)) is not None:
        message = f"another project's distribution, {NAME} {other.version}, is installed beside {OURS}"
        yield Trouble("error", "distribution", f"{message}; both write into the folder {NAME}", CURE)


def check_files(found: Inspected) -> Iterator[Trouble]:
    """Check that files that the settings name are there."""
    settings = None if found.manifest is None else found.manifest.settings
    if settings is not None and settings.dotenv and not Path(settings.dotenv).is_file():
        yield Trouble("warning", "dotenv", f"there is no file {settings.dotenv}", "make it, or correct dotenv")


EXTRAS: tuple[tuple[str, str, Callable[[ExtensionManifest], bool], str], ...] = (
    ("mcp", "mcp", lambda manifest: bool(manifest.mcp_servers), "mcpServers"),
    ("psycopg", "postgres", lambda manifest: (manifest.store or "").startswith("postgres"), "the store"),
    ("dbos", "workflows", lambda manifest: bool(manifest.settings.workflows), "workflows"),
    (
        "httpx",
        "http",
        lambda manifest: any(one.package == "openapi" for one in manifest.packs),
        "the pack openapi",
    ),
)
"""Modules that a manifest may ask for: the extra that brings each, and when it is needed."""


def check_extras(found: Inspected) -> Iterator[Trouble]:
    """Check that what the manifest asks for is installed."""
    for module, extra, is_needed, what in EXTRAS:
        if found.manifest is not None and is_needed(found.manifest) and importlib.util.find_spec(module) is None:
            cure = f"pip install 'agentos-host[{extra}]'"
            yield Trouble("error", "extras", f"{what} needs {module}, which is not installed", cure)


def check_packs(found: Inspected) -> Iterator[Trouble]:
    """Check that every pack could be loaded, with nothing to look at, and finds nothing wrong with itself."""
    if found.report is None:
        return
    for one in found.report.packs:
        for said in one.warnings:
            yield Trouble("warning", f"pack {one.key}", said, f"tell its author, or leave {quote(one.key)} out")
    for one in found.report.bad:
        cure = f"mend it, or keep it away: agentos packs disable --in-manifest {quote(one.key)}"
        yield Trouble("error", f"pack {one.key}", f"{one.status}: {one.reason}", cure)
    yield from (one for one in found.report.troubles if not one.about.startswith(_SERVER))


def check_servers(found: Inspected) -> Iterator[Trouble]:
    """Check that MCP servers are connected, and have what is said of them."""
    if found.report is not None:
        yield from (one for one in found.report.troubles if one.about.startswith(_SERVER))


def check_entry_points(found: Inspected) -> Iterator[Trouble]:
    """Check that what installed distributions announce is there."""
    from agentos.loading.entry_points import PackEntryPoints
    from agentos.loading.pack_files import files_of

    wanted = {one.package for one in found.manifest.packs} if found.manifest else set()
    installed = PackEntryPoints()
    announced = {one.name: one.distribution for name in installed.names() for one in installed.find(name)}
    for name, distribution in announced.items():
        try:
            files_of(PackEntry(package=name), installed)
        except PackLoadError as error:
            if name not in wanted:  # else the pack itself is a trouble already
                cure = f"install {distribution} again, or uninstall it"
                yield Trouble("warning", f"entry point {name}", str(error), cure)


def check_secrets(found: Inspected) -> Iterator[Trouble]:
    """Check that no secret is missing that something waits for."""
    waiting: dict[str, list[str]] = {}
    for stack in found.report.stacks if found.report else ():
        for entry in stack.entries:
            for one in entry.secrets:
                if one["origin"] is None and not one["optional"] and entry.state != "disabled":
                    waiting.setdefault(one["id"], []).append(f"{entry.pack}:{entry.id}")
    first = "mend the kept secrets first, then: " if waiting and any(faults_of_kept()) else ""
    described = found.report.secrets if found.report else {}
    for id, who in waiting.items():
        known = described.get(id)
        cure = f"{first}agentos secrets add {quote(id)}"
        if known is not None:
            cure += f", or set {' or '.join(known.variables)}" if known.variables else ""
            cure += f"; get one at {known.docs_url}" if known.docs_url else ""
        yield Trouble("error", f"secret {id}", f"it is missing; {', '.join(who)} waits for it", cure)


def check_pins(found: Inspected) -> Iterator[Trouble]:
    """Check that no definition waits to be accepted."""
    if found.manifest is None or found.report is None:
        return
    for one in found.report.pending:
        cure = f"read what it says now, then: {command_to_accept(found.manifest.settings, one['tool'])}"
        yield Trouble("error", f"tool {one['tool']}", one["reason"], cure)


def check_stacks(found: Inspected) -> Iterator[Trouble]:
    """Check that no tool stands in the shadow of another pack's, without wrapping, and that who wraps has whom to."""
    for stack in found.report.stacks if found.report else ():
        active = stack.active
        if stack.hollow is not None:
            cure = f"load a pack that offers {stack.kind}:{stack.id}, or leave {stack.hollow.pack} out"
            message = f"{stack.hollow.pack}'s is gated: {stack.hollow.reason}"
            yield Trouble("warning", f"{stack.kind}:{stack.id}", message, cure)
        for entry in stack.entries:
            if active is not None and entry.state == "shadowed" and entry.pack != active.pack:
                message = f"{entry.pack}'s is in the shadow of {active.pack}'s"
                named = quote(f"{stack.kind}:{stack.id}")
                cure = f"if that is not meant: agentos why {named}, then override a priority"
                yield Trouble("warning", f"{stack.kind}:{stack.id}", message, cure)


def check_names(found: Inspected) -> Iterator[Trouble]:
    """Check that whatever overrides, denies or grants something is about something that is there."""
    if found.report is None:
        return
    if found.report.unmatched and found.report.bad:
        names = ", ".join(one.key for one in found.report.bad)
        raise NotChecked(f"because what {names} would offer is not known")
    yield from found.report.unmatched


def check_workers(found: Inspected) -> Iterator[Trouble]:
    """Check that packs in processes of their own can be started, and that those that run do not die."""
    from agentos.checks.worker_faults import faults_of_entries, faults_of_running

    if found.manifest is not None:
        yield from faults_of_entries(found.manifest)
    yield from faults_of_running(found.workers)


def check_store(found: Inspected) -> Iterator[Trouble]:
    """Check that the store can be reached, read and written, and that its key is nobody else's."""
    if found.manifest is None or found.manifest.store is None:
        return
    from agentos.store.locations import place_of

    try:
        place = place_of(found.manifest.store)
    except StoreError as error:
        yield Trouble("error", "store", str(error), "correct store in the manifest")
        return
    # Where nothing can be written, what else fails there has that cause.
    faults = [] if place.path is None else list(faults_of_folder(place.path.parent))
    faults = faults or list(faults_of_store(place, found.store_key))
    yield from (Trouble("error", "store", message, cure) for message, cure in faults)
    if found.store_key is None:
        yield from _faults_of_key(place, found.environ)


def _faults_of_key(place: Any, environ: Mapping[str, str]) -> Iterator[Trouble]:
    from agentos.store.sealing_key import VARIABLE, key_file

    file = key_file(place) if place.is_durable and VARIABLE not in environ else None
    if file is not None and is_open_to_others(file):
        yield Trouble("error", "store", f"its key {file} can be read by others", f"chmod 600 {quote(str(file))}")


def check_lock(found: Inspected) -> Iterator[Trouble]:
    """Check that packs are as the lock file says."""
    from agentos.access.lock import Lock, check_files
    from agentos.loading.pack_files import files_of

    settings = found.manifest.settings if found.manifest else None
    if found.manifest is None or settings is None or settings.lock is None:
        return
    if isinstance(settings.lock, str | Path) and not Path(settings.lock).exists():
        yield Trouble("error", "lock", f"there is no file {settings.lock}", "agentos lock, or take lock out")
        return
    lock = settings.lock if isinstance(settings.lock, Lock) else Lock.read(settings.lock)
    level: Level = "error" if settings.pins == "strict" else "warning"
    for entry in found.manifest.packs:
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
    "files": check_files,
    "extras": check_extras,
    "packs": check_packs,
    "entry points": check_entry_points,
    "secrets": check_secrets,
    "pins": check_pins,
    "stacks": check_stacks,
    "overrides": check_names,
    "servers": check_servers,
    "workers": check_workers,
    "store": check_store,
    "lock": check_lock,
}
"""Every check of a host, in the order in which they are made."""
