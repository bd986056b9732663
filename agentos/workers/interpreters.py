"""Which Python a worker runs in: the host's, or one that a manifest entry names, once it has said what it is."""

import functools
import json
import os
import shutil
import sys
from pathlib import Path

import attrs

from agentos.errors import PackLoadError
from agentos.model.manifest import PackEntry
from agentos.processes.programs import ProgramLimits, run_process

LEAST_VERSION = (3, 11)
_LIMITS = ProgramLimits(seconds=30)
"""What an interpreter may take to say what it is."""
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "AGENTOS_DATA")

_QUESTION = """
import json, os, sys
from importlib import metadata
try:
    agentos = metadata.version("agentos-host")
except metadata.PackageNotFoundError:
    agentos = None
print(json.dumps([sys.version_info[:3], os.path.realpath(sys.prefix), agentos]))
"""


@attrs.frozen
class Interpreter:
    """A Python: where it is, its version, the folder of its environment, and the agentos that is installed there."""

    path: str
    version: tuple[int, int, int]
    prefix: str
    agentos: str | None = None

    @property
    def is_host(self) -> bool:
        """Tell whether it is the host's own, by whatever path it was named."""
        return self.prefix == host_interpreter().prefix

    @property
    def shares_packages(self) -> bool:
        """Tell whether it can import what is installed for the host."""
        return self.version[:2] == host_interpreter().version[:2]


@functools.cache
def host_interpreter() -> Interpreter:
    """Return the Python of this process."""
    from agentos._version import __version__

    return Interpreter(sys.executable, sys.version_info[:3], os.path.realpath(sys.prefix), __version__)


def minimal_environment() -> dict[str, str]:
    """Return the variables that a child of ours needs from our own; none of them is a secret."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


async def interpreter_for(entry: PackEntry) -> Interpreter:
    """Return the Python that *entry* names, else the host's; raise PackLoadError if it can't run a worker."""
    if entry.python is None:
        return host_interpreter()
    path = _located(entry, entry.python)
    found = await _examined(entry, path)
    if found.version < LEAST_VERSION:
        raise PackLoadError(
            entry.label,
            f"its python {path} is {_dotted(found.version)}; a worker needs {_dotted(LEAST_VERSION)} or later",
        )
    return found


def check_packages(entry: PackEntry, found: Interpreter) -> None:
    """Raise PackLoadError if a worker in *found* could not import agentos and what that needs."""
    if not found.shares_packages and found.agentos is None:
        raise PackLoadError(
            entry.label,
            f"its python {found.path} is {_dotted(found.version)} and the host's is "
            f"{_dotted(host_interpreter().version)}, so it can't use what is installed for the host; "
            "install agentos-host there, or add it to `requirements`",
        )


def _located(entry: PackEntry, name: str) -> str:
    """Return the path of an interpreter: a plain name is looked for on PATH, a path is relative to the manifest."""
    if os.sep not in name and not name.startswith("~"):
        found = shutil.which(name)
        if found is None:
            raise PackLoadError(entry.label, f"its python {name!r} is not on PATH; name one that is, or give its path")
        return found
    path = (entry.base_path or Path.cwd()) / Path(name).expanduser()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise PackLoadError(entry.label, f"its python {path} is no program that may be run")
    return str(path.absolute())


_known: dict[tuple[str, int, int], Interpreter] = {}


async def _examined(entry: PackEntry, path: str) -> Interpreter:
    """Return what the interpreter at *path* says of itself; it is asked again when its file has changed."""
    stamp = _stamp(path)
    if stamp not in _known:
        try:
            said = json.loads(await _answer(path))
            _known[stamp] = Interpreter(path, tuple(said[0]), said[1], said[2])
        except (ValueError, LookupError, TypeError):  # it can't be started, takes too long, or is something else
            raise PackLoadError(entry.label, f"its python {path} does not answer as a Python would") from None
    return _known[stamp]


def _stamp(path: str) -> tuple[str, int, int]:
    stat = Path(path).stat()
    return path, stat.st_ino, stat.st_mtime_ns


async def _answer(path: str) -> bytes:
    done = await run_process([path, "-I", "-c", _QUESTION], env=minimal_environment(), limits=_LIMITS)
    return done.stdout.strip().rpartition(b"\n")[2]  # what is installed there may have said something before


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
