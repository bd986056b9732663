"""What a manifest says of a pack in a process of its own, and what is known of that process while the host runs."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import attrs

from agentos.errors import ManifestError, Problem

MIB = 1024 * 1024
MOUNT_TIMEOUT = 3.0
LONGEST_MOUNT = 600
"""The most seconds that a worker may be given to mount."""
_LEAST = {"memory": 32 * MIB, "cpu_seconds": 1, "open_files": 16, "message": 64 * 1024}
_OPTIONAL = ("memory", "cpu_seconds")


def _texts(value: Any) -> Any:
    if isinstance(value, str) or not isinstance(value, Iterable | None):
        raise _refused("Confinement", "write", f"expected a list of folders, got {type(value).__name__}")
    return None if value is None else tuple(value)


@attrs.frozen(kw_only=True)
class Confinement:
    """What a worker is kept from by the operating system: hardening, not a boundary against hostile code.

    `write` lists the only folders it may write in, relative to the manifest's; None lets it write as the host may.
    """

    network: bool = True
    write: tuple[str, ...] | None = attrs.field(default=None, converter=_texts)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.network, bool):
            raise _refused("Confinement", "network", f"expected a bool, got {type(self.network).__name__}")
        if any(not isinstance(folder, str) or not folder.strip() for folder in self.write or ()):
            raise _refused("Confinement", "write", "expected a list of folders")


def _refused(what: str, path: str, message: str) -> ManifestError:
    return ManifestError(what, [Problem(path, message)])


def _confinement(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _made(Confinement, value, "confine")
    return value


@attrs.frozen(kw_only=True)
class WorkerLimits:
    """What a worker may use; None is no limit.

    memory: bytes that it may write to, mapped memory too; on systems other than Linux, bytes of address space.
    cpu_seconds: seconds of CPU time in its whole life. open_files: descriptors at once. message: bytes of one message,
    either way. confine: what the operating system keeps it from.
    """

    memory: int | None = None
    cpu_seconds: int | None = None
    open_files: int = 256
    message: int = 8 * MIB
    confine: Confinement | None = attrs.field(default=None, converter=_confinement)

    def __attrs_post_init__(self) -> None:
        if problems := list(self._problems()):
            raise ManifestError("WorkerLimits", problems)

    def _problems(self) -> Iterable[Problem]:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                yield Problem(name, f"expected a whole number from {least} on, got {value!r:.40}")
        if not isinstance(self.confine, Confinement | None):
            yield Problem("confine", f"expected a Confinement, got {type(self.confine).__name__}")


def as_worker_limits(value: Any) -> Any:
    """Return limits from a mapping of their fields; what is neither stays, for the entry to refuse."""
    return _made(WorkerLimits, value, "worker") if isinstance(value, Mapping) else value


def _made(cls: type[Any], fields: Mapping[str, Any], path: str) -> Any:
    known = [field.name for field in attrs.fields(cls)]
    if unknown := [name for name in fields if name not in known]:
        problems = [Problem(f"{path}.{name}", f"unknown field; known: {', '.join(known)}") for name in unknown]
        raise ManifestError(cls.__name__, problems)
    return cls(**fields)


def problems_of_process_fields(given: Mapping[str, Any], isolation: object) -> Iterable[Problem]:
    """Find what is wrong with the fields of an entry that count for a process of its own; *given* by their names."""
    if isolation in (None, "inline"):
        for name in given:
            yield Problem(name, "counts only with isolation = 'process'; the pack runs in the host's process")
    requirements = given.get("requirements")
    for index, text in enumerate(requirements if isinstance(requirements, list | tuple) else ()):
        if fault := _fault_of_requirement(text):
            yield Problem(f"requirements[{index}]", fault)


def _fault_of_requirement(text: object) -> str | None:
    """Say what keeps *text* from being a PEP 508 requirement; None if nothing does."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(str(text))
    except InvalidRequirement:
        return f"expected a requirement such as 'httpx<0.28', got {text!r:.80}"
    return None


class WorkerState(StrEnum):
    """What a worker is doing."""

    DORMANT = "dormant"
    MOUNTING = "mounting"
    READY = "ready"
    DEGRADED = "degraded"


@attrs.frozen(kw_only=True)
class WorkerInfo:
    """What is known of the worker of one pack.

    pid: None while it has no process. since: when it came into its state. strikes: deaths and missed deadlines that
    count against it. reason: what it died of, or why it is degraded and when it is tried again. calls: requests it was
    sent since it was mounted last. restarts: how often it was mounted after the first time. rss: bytes of memory
    in use.
    """

    pack: str
    state: WorkerState
    pid: int | None = None
    since: datetime | None = None
    strikes: int = 0
    reason: str | None = None
    calls: int = 0
    restarts: int = 0
    rss: int | None = None
