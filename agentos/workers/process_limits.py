"""What a worker may use, set by its own process before it imports anything foreign; and what its end says about it.

Imports the standard library alone: it runs before the paths of the pack are known.
"""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, Protocol

OUT_OF_MEMORY = 86
"""The exit code of a worker that had no memory left of what its limit gives it."""

_PR_SET_PDEATHSIG = 1
_has_memory_limit = False


class ProcessLimits(Protocol):
    """The limits of a worker that are the system's."""

    @property
    def memory(self) -> int | None:
        """Return how many bytes of memory it may write to."""
        ...

    @property
    def cpu_seconds(self) -> int | None:
        """Return for how many seconds it may compute, in its whole life."""
        ...


def prepare_process(spec: Mapping[str, Any]) -> None:
    """Set on this process what *spec* says: it ends with its host, and is limited and confined from here on."""
    end_with_parent(spec["parent"])
    _limit(spec["limits"])
    if (environment := spec.get("environment")) is not None:
        _hold(environment)
    if (confinement := spec.get("confine")) is not None:
        from agentos.workers.confinement import confine

        confine(network=confinement["network"], write=confinement["write"])


def end_with_parent(parent: int) -> None:
    """See that this process is killed when *parent* ends, however that ends, where the system can."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before it was asked for; elsewhere the closed pipe tells
        os._exit(0)


def _limit(limits: Mapping[str, int | None]) -> None:
    global _has_memory_limit  # noqa: PLW0603 - it is the process that has it
    import resource

    memory, cpu = limits.get("memory"), limits.get("cpu_seconds")
    # On Linux RLIMIT_DATA counts what can be written, mapped memory too. Elsewhere only addresses can be counted.
    which = resource.RLIMIT_DATA if sys.platform.startswith("linux") else resource.RLIMIT_AS
    asked = [(which, memory, memory), (resource.RLIMIT_CPU, cpu, None if cpu is None else cpu + 1)]
    asked += [
        (resource.RLIMIT_NOFILE, limits.get("open_files"), limits.get("open_files")),
        (resource.RLIMIT_CORE, 0, 0),
    ]
    for number, soft, hard in asked:
        if soft is not None and hard is not None:
            resource.setrlimit(number, _capped(resource.getrlimit(number)[1], soft, hard))
    _has_memory_limit = memory is not None


def _capped(most: int, soft: int, hard: int) -> tuple[int, int]:
    """Return limits that are not above what holds already: only root could raise that."""
    if most < 0:  # there is none
        return soft, hard
    return min(soft, most), min(hard, most)


def _hold(file: str) -> None:
    """Keep an environment from being removed for as long as this process lives, by a lock that ends with it."""
    import fcntl

    fcntl.flock(os.open(file, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH)


def end_if_out_of_memory() -> None:
    """End this process, after a MemoryError, if it has a memory limit: what else failed on the way is not known."""
    if _has_memory_limit:
        os._exit(OUT_OF_MEMORY)


def limit_reached(code: int | None, limits: ProcessLimits) -> str | None:
    """Say which of its limits ended a worker, by its exit code as `subprocess` tells it; None if none did."""
    if code == OUT_OF_MEMORY and limits.memory is not None:
        return f"it needed more than its {limits.memory:,} bytes of memory (worker.memory)"
    if code == -signal.SIGXCPU and limits.cpu_seconds is not None:
        return f"it computed for more than its {limits.cpu_seconds:,} seconds (worker.cpu_seconds)"
    return None
