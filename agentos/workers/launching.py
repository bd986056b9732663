"""How the worker of a pack is started: which Python, by which command line, with which environment and limits.

    launch_plan    everything that starting the worker of an entry needs; makes its environment if there is none yet

The child runs `start.py`, which prepares the process before anything foreign is imported, and then the main function
of `child.py`. What follows the plan's `argv` is that function's own `sys.argv[1:]`.
"""

import json
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.base.full_disks import reason
from agentos.errors import PackLoadError
from agentos.model.isolation import Confinement
from agentos.model.manifest import PackEntry
from agentos.workers.confinement import missing_for
from agentos.workers.environments import Environments, MadeEnvironment
from agentos.workers.interpreters import (
    Interpreter,
    check_packages,
    interpreter_for,
    minimal_environment,
)

_START = Path(__file__).with_name("start.py")


@attrs.frozen(kw_only=True)
class LaunchPlan:
    """How one worker is started. `fingerprint` is another one when its Python or its environment is."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(repr=False)
    cwd: str | None
    fingerprint: str


def _quiet(text: str) -> None:
    """Tell nobody."""


async def launch_plan(
    entry: PackEntry,
    *,
    environments: Environments | None = None,
    report: Callable[[str], None] = _quiet,
    mask: Callable[[str], str] = str,
) -> LaunchPlan:
    """Plan the start of *entry*'s worker; ask anew for every start, and outside of its deadline to mount.

    An environment that is not there yet is made, which may take minutes and is told to *report*; what an installer
    says goes through *mask*. What can't be had is a PackLoadError.
    """
    confinement = _confinement(entry)
    found = await interpreter_for(entry)
    made: MadeEnvironment | None = None
    if entry.requirements:
        made = await (environments or Environments()).made_for(entry, found, report=report, mask=mask)
        found = made.interpreter
    check_packages(entry, found)
    env = minimal_environment()
    if confinement is not None and confinement["write"]:
        env["TMPDIR"] = confinement["write"][0]
    spec = _spec(entry, found, made, confinement)
    return LaunchPlan(
        argv=(found.path, "-P", "-S", "-u", str(_START), json.dumps(spec)),
        env=env,
        cwd=None,
        fingerprint=f"{found.path} {'.'.join(map(str, found.version))}{'' if made is None else f' {made.key}'}",
    )


def _spec(
    entry: PackEntry, found: Interpreter, made: MadeEnvironment | None, confinement: Mapping[str, Any] | None
) -> dict[str, Any]:
    limits = entry.worker
    return {
        "parent": os.getpid(),
        "agentos": str(_START.parents[1]),
        "is_host": found.is_host,
        "paths": _paths(found),
        "limits": {"memory": limits.memory, "cpu_seconds": limits.cpu_seconds, "open_files": limits.open_files},
        "environment": None if made is None else str(made.lock),
        "confine": confinement,
    }


def _paths(found: Interpreter) -> list[str]:
    """Return where a worker in *found* looks for modules of the host's: all of it, what is installed, or nothing."""
    paths = [str(Path(path).absolute()) for path in sys.path if isinstance(path, str)]
    if found.is_host:
        return paths
    return [path for path in paths if not _is_standard(path)] if found.shares_packages else []


def _is_standard(path: str) -> bool:
    """Tell whether *path* holds the host's standard library; a Python of its own has its own."""
    library = Path(sysconfig.get_path("stdlib"))
    archive = library.with_name(f"python{sys.version_info.major}{sys.version_info.minor}.zip")
    return Path(path) in (library, library / "lib-dynload", archive)


def _confinement(entry: PackEntry) -> dict[str, Any] | None:
    """Return how a worker is confined, with its folders made; raise PackLoadError where the system can't do it."""
    confine = entry.worker.confine
    if confine is None:
        return None
    if lack := missing_for(network=confine.network, limits_writing=confine.write is not None):
        raise PackLoadError(entry.label, f"it can't be confined here: {lack}; run it elsewhere, or without `confine`")
    return {"network": confine.network, "write": _folders(entry, confine)}


def _folders(entry: PackEntry, confine: Confinement) -> list[str] | None:
    if confine.write is None:
        return None
    folders = [(entry.base_path or Path.cwd()) / Path(name).expanduser() for name in confine.write]
    for folder in folders:
        try:
            if not folder.is_file():
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"its folder {str(folder)!r} to write in can't be made: {reason(error)}"
            raise PackLoadError(entry.label, message) from error
    return [str(folder.absolute()) for folder in folders]
