"""A process that is started here: with the environment it is given and nothing else, and never outliving us.

What it writes is untrusted. Lines are bounded while they arrive, and so is how much is read of them in a second; when
it ends, or is ended, everything that it started in its own process group ends with it.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from agentos.processes.guardian import Guardian
from agentos.processes.lines import LineSplitter

LINGER = 0.2
"""How long what a process wrote last may take to arrive after its end."""
_REAP = 5.0
_AT_ONCE = 1024 * 1024
"""How many bytes of what a process says for people are read within a second; then it has to wait."""
_WINDOW = 1.0


class ChildProcess(asyncio.SubprocessProtocol):
    """A process in a group of its own, what it writes for people, and its end.

    *note* is called with each line of its output: the number of the stream, the line, and whether it is whole.
    """

    endings: ClassVar[tuple[signal.Signals | None, ...]] = (signal.SIGTERM, signal.SIGKILL)
    """How it is asked to end, one after the other; None closes its input."""

    def __init__(self, *, grace: float, line_limit: int, note: Callable[[int, bytes, bool], None]) -> None:
        self._grace = grace
        self._note = note
        self._transport: asyncio.SubprocessTransport
        self._guardian: Guardian | None = None
        self._output = {fd: LineSplitter(line_limit, ends=line_limit) for fd in (1, 2)}
        self._read = dict.fromkeys((1, 2), 0)
        self._is_counting = False
        self.exited = asyncio.Event()

    # -- called by the event loop -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport  # type: ignore[assignment]  # of a process, as this protocol is

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the process wrote for people."""
        for line, is_whole in self._output[fd].feed(data):
            self._note(fd, line, is_whole)
        self._count(fd, len(data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        """Note that a pipe is closed; what came behind the last line is a line."""
        for line, is_whole in self._output[fd].rest() if fd in self._output else ():
            self._note(fd, line, is_whole)

    def process_exited(self) -> None:
        """Note that the process is gone."""
        self.exited.set()

    def _count(self, fd: int, size: int) -> None:
        """Stop reading for the rest of a second of what floods: the process has to wait then."""
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_later(_WINDOW, self._count_anew)
        self._read[fd] += size
        if self._read[fd] > _AT_ONCE:
            self._set_reading(fd, is_reading=False)

    def _count_anew(self) -> None:
        self._is_counting = False
        for fd, size in self._read.items():
            self._read[fd] = 0
            if size > _AT_ONCE:
                self._set_reading(fd, is_reading=True)

    def _set_reading(self, fd: int, *, is_reading: bool) -> None:
        pipe: Any = self._transport.get_pipe_transport(fd)
        if not pipe.is_closing():
            (pipe.resume_reading if is_reading else pipe.pause_reading)()

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Return the number of the process, which is that of its group as well."""
        return self._transport.get_pid()

    async def how_it_ended(self) -> tuple[str, int | None]:
        """Say how the process ended, with its exit code if it has one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                await self.exited.wait()
        code = self._transport.get_returncode()
        if code is None:
            return "the process closed its output", None
        if code < 0:
            return f"the process was ended by signal {-code}", code
        return f"the process exited with code {code}", code

    def watch(self) -> None:
        """Have the process end with this one, however this one ends."""
        self._guardian = Guardian(self.pid)

    # -- the end -------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """End the process and all that it started: politely, then firmly. It takes a bounded time."""
        await self._wait_for_end()
        self._signal(signal.SIGKILL)  # whatever of its group is left
        self._transport.close()
        if self._guardian is not None:
            self._guardian.dismiss()

    def kill(self) -> None:
        """End the process and all that it started at once; `stop` waits for that."""
        self._signal(signal.SIGKILL)

    async def _wait_for_end(self) -> None:
        for ending in self.endings:
            if self.exited.is_set():
                return
            self._ask_to_end(ending)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._grace if ending != signal.SIGKILL else _REAP):
                    await self.exited.wait()
                    return
        _logger.warning("a process can't be ended; it is left alone")  # pragma: no cover - not even by the system

    def _ask_to_end(self, ending: signal.Signals | None) -> None:
        if ending is not None:
            self._signal(ending)
        elif (pipe := self._transport.get_pipe_transport(0)) is not None:
            pipe.close()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


_logger = logging.getLogger("agentos")


# -- starting ----------------------------------------------------------------------------------------------------


class CannotStartError(Exception):
    """A process that could not be started; the message says why."""


def process_environment(command: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a process: what is given, and PATH if the command has to be looked for."""
    if os.sep in command or "PATH" in given:
        return dict(given)
    return {"PATH": os.environ.get("PATH", os.defpath), **given}


async def start(
    process: ChildProcess,
    command: str,
    args: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    *,
    stdin: int = subprocess.PIPE,
    pass_fds: Collection[int] = (),
) -> None:
    """Start *process* in a group of its own; whoever starts one stops it."""
    if sys.platform == "win32":  # pragma: no cover - it has no process groups that could be ended whole
        raise CannotStartError("processes are started on POSIX systems only")
    whole = process_environment(command, env)
    program = command if os.sep in command else shutil.which(command, path=whole.get("PATH"))
    if program is None:
        raise CannotStartError(f"the command {command!r} is not on PATH")
    try:
        await asyncio.get_running_loop().subprocess_exec(
            lambda: process,
            program,
            *args,
            env=whole,
            cwd=cwd,
            stdin=stdin,
            pass_fds=tuple(pass_fds),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = (error.strerror or "") if isinstance(error, OSError) else str(error)
        place = f" in {cwd}" if cwd is not None else ""
        raise CannotStartError(f"the command {command!r} can't be started{place}: {reason}") from None
    process.watch()
