"""A server that is a process: started with the environment it is given and nothing else, and never outliving us.

What the process writes is untrusted. Lines are bounded while they arrive; its standard error is always read, so that
it can't block; when it ends, or is ended, everything that it started in its own process group ends with it.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage

from agentos.base.foreign import to_the_end
from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.server_text import DisconnectReason, ServerText
from agentos.mcp.client.unreadable_tools import with_stand_ins
from agentos.mcp.json_rpc import EXCERPT_SIZE, LineSplitter, MessageOutline, failure_answer, first_line, parse_message
from agentos.model.pack_context import PackLogger

_WAITING_BYTES = 256 * 1024
"""How much may wait to be read here before the process has to wait."""
_LINGER = 0.2
"""How long what a process wrote last may take to arrive after its end."""
_TAIL = 10
_ERROR_LINE = 4096
"""How much of a line of standard error is kept to look for secrets in it; less is shown."""
_REAP = 5.0


class ServerProcess(asyncio.SubprocessProtocol):
    """A process, its three pipes, and when they end."""

    def __init__(self, limits: ServerLimits, text: ServerText, logger: PackLogger, on_end: Callable[..., None]) -> None:
        self._limits = limits
        self._text = text
        self._logger = logger
        self._on_end = on_end
        self._transport: asyncio.SubprocessTransport
        self._lines = LineSplitter(limits.message)
        self._errors = LineSplitter(_ERROR_LINE, ends=_ERROR_LINE)
        self._error_lines = 0
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._backlog = 0
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_paused = False
        self._is_over = False
        self.exited = asyncio.Event()
        self.tail: deque[str] = deque(maxlen=_TAIL)
        """The last lines of its standard error, masked."""

    # -- called by the event loop -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport  # type: ignore[assignment]  # of a process, as this protocol is

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the process wrote."""
        if fd != 1:
            self._note_errors(data)
        elif not self._is_over:
            for line in self._lines.feed(data):
                if line[0]:
                    self._waiting.append(line)
                    self._backlog += len(line[0])
            self._arrived.set()
            if self._lines.is_endless:
                self._lost("it sends a message without end")
            elif self._backlog > _WAITING_BYTES and not self._is_paused:
                self._pause(is_paused=True)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        """Note that a pipe is closed: without input or output there is nobody to talk to."""
        if fd in (0, 1):
            self._lost()

    def process_exited(self) -> None:
        """Note that the process is gone. What it started may hold its pipes open: they are not waited for."""
        self.exited.set()
        asyncio.get_running_loop().call_later(_LINGER, self._lost)

    def pause_writing(self) -> None:
        """Wait: the process does not read what was written."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on."""
        self._writable.set()

    def _lost(self, *reason: str) -> None:
        if not self._is_over:
            self.end()
            self._on_end(*reason)

    def end(self) -> None:
        """Note that nothing more is to be read or written; what had arrived is still handed out."""
        self._is_over = True
        self._arrived.set()
        self._writable.set()
        if self._is_paused:
            self._pause(is_paused=False)  # so that a process that still writes is not held up

    def _pause(self, *, is_paused: bool) -> None:
        self._is_paused = is_paused
        pipe: Any = self._transport.get_pipe_transport(1)
        if not pipe.is_closing():
            (pipe.pause_reading if is_paused else pipe.resume_reading)()

    def _note_errors(self, data: bytes) -> None:
        for line, is_whole in self._errors.feed(data):
            clip = self._text.clip if is_whole else self._text.clip_beginning
            text = clip(line[:_ERROR_LINE].decode("utf-8", "replace"), EXCERPT_SIZE)
            if not text.strip():
                continue
            self.tail.append(text)
            self._error_lines += 1
            if self._error_lines <= self._limits.noise:
                self._logger.debug("stderr: %s", text)
            elif self._error_lines == self._limits.noise + 1:
                self._logger.debug("stderr: more than %s lines; the rest is not logged", self._limits.noise)

    # -- what the connection asks ------------------------------------------------------------------------------

    async def line(self) -> tuple[bytes, bool] | None:
        """Return the next line and whether it is whole; None at the end."""
        while not self._waiting:
            if self._is_over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        line = self._waiting.popleft()
        self._backlog -= len(line[0])
        if self._is_paused and not self._waiting and not self._is_over:
            self._pause(is_paused=False)
        return line

    async def write(self, line: bytes) -> None:
        """Write one line, and wait until the process reads."""
        pipe: Any = self._transport.get_pipe_transport(0)
        if self._is_over or pipe.is_closing():
            self._lost()
            raise anyio.BrokenResourceError
        pipe.write(line)
        await self._writable.wait()

    async def why_ended(self) -> DisconnectReason:
        """Say how the process ended, with the last line of its standard error for people."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                await self.exited.wait()
        code = self._transport.get_returncode()
        if code is None:
            how = "the process closed its output"
        elif code < 0:
            how = f"the process was ended by signal {-code}"
        else:
            how = f"the process exited with code {code}"
        return DisconnectReason(how, f"{how}: {self.tail[-1]}" if self.tail and code != 0 else how)

    async def stop(self) -> None:
        """End the process and all that it started: politely, then firmly. It takes a bounded time."""
        self.end()
        await self._wait_for_end()
        self._signal(signal.SIGKILL)  # whatever of its group is left
        self._transport.close()

    async def _wait_for_end(self) -> None:
        pipe: Any = self._transport.get_pipe_transport(0)
        pipe.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.grace if number != signal.SIGKILL else _REAP):
                    await self.exited.wait()
                    return
        self._logger.warning("a process can't be ended; it is left alone")  # pragma: no cover - not even by the system

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)


# -- starting ----------------------------------------------------------------------------------------------------


class CannotStartError(Exception):
    """A process that could not be started; the message says why."""


def process_environment(command: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a process: what is given, and PATH if the command has to be looked for."""
    if os.sep in command or "PATH" in given:
        return dict(given)
    return {"PATH": os.environ.get("PATH", os.defpath), **given}


@contextlib.asynccontextmanager
async def started_process(
    command: str,
    args: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    *,
    limits: ServerLimits,
    text: ServerText,
    logger: PackLogger,
    on_end: Callable[..., None],
) -> AsyncIterator[ServerProcess]:
    """Start a process in a group of its own, and end it with everything it started."""
    if sys.platform == "win32":  # pragma: no cover - it has no process groups that could be ended whole
        raise CannotStartError("servers are started on POSIX systems only; use one with a url")
    whole = process_environment(command, env)
    program = command if os.sep in command else shutil.which(command, path=whole.get("PATH"))
    if program is None:
        raise CannotStartError(f"the command {command!r} is not on PATH")
    process = ServerProcess(limits, text, logger, on_end)
    try:
        await asyncio.get_running_loop().subprocess_exec(
            lambda: process, program, *args, env=whole, cwd=cwd, start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = (error.strerror or "") if isinstance(error, OSError) else str(error)
        place = f" in {cwd}" if cwd is not None else ""
        raise CannotStartError(f"the command {command!r} can't be started{place}: {reason}") from None
    try:
        yield process
    finally:
        await to_the_end(process.stop())


# -- the streams of the SDK --------------------------------------------------------------------------------------


class _ProcessStream:
    """What both directions share: they are closed by ending the child."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process

    async def aclose(self) -> None:
        self._process.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class ProcessReader(_ProcessStream):
    """Reads the messages of the process; an invalid line is dropped."""

    def __init__(
        self, process: ServerProcess, limits: ServerLimits, logger: PackLogger, *, awaits_list: Callable[[Any], bool]
    ) -> None:
        super().__init__(process)
        self._limits = limits
        self._awaits_list = awaits_list
        self._logger = logger

    async def receive(self) -> SessionMessage:
        """Return the next message of the child; raise when there are no more."""
        while (found := await self._process.line()) is not None:
            message = self._message(*found)
            if message is not None:
                return SessionMessage(message)
        raise anyio.EndOfStream

    def _message(self, line: bytes, is_whole: bool) -> JSONRPCMessage | None:
        if not line.strip():
            return None
        why = f"it is longer than {self._limits.message:,} bytes"
        if is_whole:
            try:
                return self._parsed(line)
            except (ValueError, RecursionError) as error:
                why = f"it is not JSON-RPC: {first_line(error)}"
        self._logger.debug("a line of the server's output is left out: %s", why)
        return failure_answer(line, why)

    def _parsed(self, line: bytes) -> JSONRPCMessage:
        """Return the message in *line*; of a list of tools, what can be read of it."""
        try:
            return parse_message(line)
        except (ValueError, RecursionError):
            if not self._awaits_list(MessageOutline.of(line).id):
                raise
            return parse_message(with_stand_ins(line))


class ProcessWriter(_ProcessStream):
    """Writes messages to the process."""

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message to the child."""
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        await self._process.write(text.encode("utf-8", "replace") + b"\n")
