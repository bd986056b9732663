"""A server that is a process: messages on its input and output, one to a line.

Its standard error is always read, so that it can't block, and kept for people.
"""

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage

from agentos.base.foreign import to_the_end
from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.server_text import DisconnectReason, ServerText
from agentos.mcp.client.unreadable_tools import with_stand_ins
from agentos.mcp.json_rpc import MessageOutline, failure_answer, first_line, parse_message
from agentos.model.pack_context import PackLogger
from agentos.processes.lines import EXCERPT_SIZE, LineSplitter
from agentos.processes.spawned_process import LINGER, ChildProcess, start

_WAITING_BYTES = 256 * 1024
"""How much may wait to be read here before the process has to wait."""
_TAIL = 10
_ERROR_LINE = 4096
"""How much of a line of standard error is kept to look for secrets in it; less is shown."""


class ServerProcess(ChildProcess):
    """A process that speaks on its input and output."""

    endings: ClassVar[tuple[signal.Signals | None, ...]] = (None, signal.SIGTERM, signal.SIGKILL)

    def __init__(self, limits: ServerLimits, text: ServerText, logger: PackLogger, on_end: Callable[..., None]) -> None:
        super().__init__(grace=limits.grace, line_limit=_ERROR_LINE, note=self._note_error)
        self._limits = limits
        self._text = text
        self._logger = logger
        self._on_end = on_end
        self._lines = LineSplitter(limits.message)
        self._error_lines = 0
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._backlog = 0
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_paused = False
        self._is_over = False
        self.tail: deque[str] = deque(maxlen=_TAIL)
        """The last lines of its standard error, masked."""

    # -- called by the event loop -----------------------------------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the process wrote."""
        if fd != 1:
            super().pipe_data_received(fd, data)
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

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that a pipe is closed: without input or output there is nobody to talk to."""
        super().pipe_connection_lost(fd, exc)
        if fd in (0, 1):
            self._lost()

    def process_exited(self) -> None:
        """Note that the process is gone. What it started may hold its pipes open: they are not waited for."""
        super().process_exited()
        asyncio.get_running_loop().call_later(LINGER, self._lost)

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
        self._set_reading(1, is_reading=not is_paused)

    def _note_error(self, _: int, line: bytes, is_whole: bool) -> None:
        clip = self._text.clip if is_whole else self._text.clip_beginning
        text = clip(line[:_ERROR_LINE].decode("utf-8", "replace"), EXCERPT_SIZE)
        if not text.strip():
            return
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
        how, code = await self.how_it_ended()
        return DisconnectReason(how, f"{how}: {self.tail[-1]}" if self.tail and code != 0 else how)

    async def stop(self) -> None:
        """End the process and all that it started: politely, then firmly. It takes a bounded time."""
        self.end()
        await super().stop()


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
    """Start a server in a group of its own, and end it with everything it started."""
    process = ServerProcess(limits, text, logger, on_end)
    await start(process, command, args, env, cwd)
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
