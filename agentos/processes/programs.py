"""Programs, run by argv and within limits: no shell takes anything apart, nothing of the environment is passed on."""

import asyncio
import contextlib
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from agentos.processes.guardian import Guardian
from agentos.processes.program_pipes import Exit, Pipes
from agentos.processes.program_start import FAILED, ProcessError, read_start, spawn

_MAX_SECONDS = 3_600
_MAX_OUTPUT = 100_000_000
_STDIN_LIMIT = 10_000_000
_GRACE = 0.5
"""Seconds that a process has to end by itself when it is told to, and its pipes to close when it has ended."""
_LAST_WAIT = 5.0


def _whole(least: int, most: int | None = None) -> Any:
    def check(_: Any, attribute: "attrs.Attribute[Any]", value: Any) -> None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value
        if not fits or (most is not None and value > most):
            upper = "" if most is None else f" and at most {most:,}"
            raise ValueError(f"{attribute.name}: expected a whole number, at least {least:,}{upper}")

    return check


def _seconds(_: Any, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 < value <= _MAX_SECONDS:
        raise ValueError(f"{attribute.name}: expected seconds, more than 0 and at most {_MAX_SECONDS:,}")


@attrs.frozen(kw_only=True)
class ProgramLimits:
    """What a process may use. All but `seconds` and `output_bytes` are the system's and hold for each process.

    seconds: until it is ended. cpu_seconds: of computing. memory_bytes: of addresses, which is more than what is used.
    file_bytes: of any file it writes. output_bytes: of stdout and stderr together; it is ended when there is more.
    """

    seconds: float = attrs.field(default=30.0, validator=_seconds)
    cpu_seconds: int | None = attrs.field(default=None, validator=attrs.validators.optional(_whole(1)))
    memory_bytes: int | None = attrs.field(default=None, validator=attrs.validators.optional(_whole(1_000_000)))
    file_bytes: int | None = attrs.field(default=None, validator=attrs.validators.optional(_whole(0)))
    output_bytes: int = attrs.field(default=1_000_000, validator=_whole(0, _MAX_OUTPUT))
    open_files: int | None = attrs.field(default=None, validator=attrs.validators.optional(_whole(8)))

    def bounds(self) -> dict[str, tuple[int, int]]:
        """Return the limits of the system, soft and hard, never above those that hold already."""
        asked = {"CPU": self.cpu_seconds, "AS": self.memory_bytes, "FSIZE": self.file_bytes, "NOFILE": self.open_files}
        said = {name: value for name, value in asked.items() if value is not None}
        return {name: _capped(name, value) for name, value in {**said, "CORE": 0}.items()} if said else {}


def _capped(name: str, value: int) -> tuple[int, int]:
    import resource

    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
    most = value + 1 if name == "CPU" else value  # SIGXCPU first, and a second later SIGKILL
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    return min(value, limit), limit


@attrs.frozen
class ProcessResult:
    """How a process ended, and what it said."""

    exit_code: int | None
    """None if a signal ended it."""
    signal: str | None
    """Such as SIGKILL."""
    stdout: bytes = attrs.field(repr=False)
    stderr: bytes = attrs.field(repr=False)
    truncated: bool
    """It said more than was allowed, and was ended for it."""
    timed_out: bool
    seconds: float


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | int | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    limits: ProgramLimits | None = None,
) -> ProcessResult:
    """Run a program to its end, or to its limits; raise ProcessError if it can't be started.

    argv: the program, as a plain name that is looked for in SAFE_PATH or as a whole path, and its arguments. cwd: a
    folder, or the descriptor of one (see Root.open_folder). env: all of its environment, but PATH. When it ends, is
    cancelled or exceeds a limit, every process of its group ends with it.
    """
    bounds = limits or ProgramLimits()
    if not isinstance(stdin, bytes) or len(stdin) > _STDIN_LIMIT:
        raise ProcessError(f"stdin: expected bytes, at most {_STDIN_LIMIT:,}; give the program a file instead")
    process = spawn(read_start(argv, cwd, env), bounds.bounds(), has_input=bool(stdin))
    with contextlib.ExitStack() as undo:
        undo.callback(_close, process)
        undo.callback(_kill, process)
        running = _Running(process, stdin, bounds)
        undo.pop_all()
    try:
        return await running.to_its_end()
    finally:
        await running.aclose()


async def run_python(
    script: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    limits: ProgramLimits | None = None,
) -> ProcessResult:
    """Run a file of Python to its end, as `run_process` does; it imports what this process can import."""
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-P", str(script), *arguments]
    return await run_process(argv, env={**paths, **(env or {})}, stdin=stdin, limits=limits)


class _Running:
    """A process, its group and its pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]", stdin: bytes, limits: ProgramLimits) -> None:
        self._began = time.monotonic()
        self._process = process
        self._limits = limits
        self._pipes = Pipes(process, stdin, limits.output_bytes)
        self._exit = Exit(process)
        self._guardian = Guardian(process.pid)
        self._is_over = False

    async def to_its_end(self) -> ProcessResult:
        """Wait until it ends, or end it when it has had its time or has said too much."""
        ended, full = self._exit.done, self._pipes.full
        await asyncio.wait({ended, full}, timeout=self._limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        timed_out = not ended.done() and not full.done()
        await self._stop()
        await asyncio.wait({self._pipes.ended}, timeout=_GRACE)
        return self._result(timed_out=timed_out)

    async def _stop(self) -> None:
        """End the whole group: ask first, so that locks and temporary files are cleared away."""
        ended = self._exit.done
        if not ended.done():
            self._signal(signal.SIGTERM)
            await asyncio.wait({ended}, timeout=_GRACE)
        self._signal(signal.SIGKILL)
        await asyncio.wait({ended}, timeout=_LAST_WAIT)
        self._process.poll()
        self._is_over = True

    def _signal(self, number: int) -> None:
        """Signal the group. Its leader is not reaped yet, so that the number is not another one's by now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _result(self, *, timed_out: bool) -> ProcessResult:
        code, pipes = self._process.returncode, self._pipes
        ended_by = None if code is None or code >= 0 else _signal_name(-code)
        if code in _NOT_STARTED and pipes.stderr.startswith(FAILED):
            why = pipes.stderr.decode("utf-8", "replace").rpartition(": ")[2].strip()
            raise ProcessError(f"argv[0]: can't be started: {why[:_SHOWN]}")
        return ProcessResult(
            exit_code=None if ended_by else code,
            signal=ended_by,
            stdout=bytes(pipes.stdout),
            stderr=bytes(pipes.stderr),
            truncated=pipes.full.done(),
            timed_out=timed_out,
            seconds=time.monotonic() - self._began,
        )

    async def aclose(self) -> None:
        """Leave nothing behind, also when whoever waited is cancelled, once or several times."""
        if self._is_over:
            self._release()
            return
        task = asyncio.create_task(self._end())
        _ENDING.add(task)
        task.add_done_callback(_ENDING.discard)
        await asyncio.shield(task)

    async def _end(self) -> None:
        try:
            await self._stop()
        finally:
            if not self._is_over:  # the loop itself is ending
                _kill(self._process)
            self._release()

    def _release(self) -> None:
        self._pipes.close()
        self._exit.close()
        self._guardian.dismiss()


_ENDING: set[asyncio.Task[None]] = set()
_NOT_STARTED = (126, 127)
_SHOWN = 200


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a group at once, and wait for its leader; for when nothing can be awaited."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _close(process: "subprocess.Popen[bytes]") -> None:
    for file in (process.stdin, process.stdout, process.stderr):
        if file is not None:
            file.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
