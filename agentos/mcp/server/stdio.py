"""MCP over stdin and stdout: one client, which started this process."""

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE

from agentos.mcp.json_rpc import MessageOutline, both_ends, failure_answer, first_line, load_json, message_of

MESSAGE_LIMIT = DEFAULT_MAX_REQUEST_BODY_SIZE
"""How many bytes one message may have: as many as over HTTP."""
FLUSH_TIMEOUT = 5.0
"""How many seconds a client has to read what was answered before the end."""
ANSWER_TIMEOUT = 2.0
"""How many seconds calls that run go on after a client has closed its end: who pipes requests in waits for answers."""
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK = 65_536
_LISTEN, _CANCELLED = "subscriptions/listen", "notifications/cancelled"
_served: set[int] = set()


async def run(server: Server[Any], stdin: int = _STDIN, stdout: int = _STDOUT) -> int | None:
    """Serve one client over two descriptors until it closes the first, or SIGTERM or SIGINT comes; return the signal.

    Both are put out of reach meanwhile: what a tool or a child process prints goes to stderr, not between messages.
    """
    with _moved_away(stdin, os.O_RDONLY) as read_from, _moved_away(stdout, os.O_WRONLY) as write_to:
        async with _client_writer(write_to) as writer, _client_messages(read_from, writer) as lines:
            with _end_on_signals(lines.end) as signals, anyio.CancelScope() as scope:
                async with stdio_server(lines, writer) as (read, write):  # type: ignore[arg-type]  # as files of anyio
                    await server.run(read, write, server.create_initialization_options())
                    scope.deadline = anyio.current_time() + FLUSH_TIMEOUT
            return signals[0] if signals else None


# -- descriptors ---------------------------------------------------------------------------------------------------


@contextmanager
def _moved_away(fd: int, mode: int) -> Iterator[int]:
    """Move a descriptor away for as long as it is served, and leave nothing to read or stderr in its place."""
    if fd in _served:
        raise RuntimeError(f"descriptor {fd} is served already; a process has one stdin and one stdout")
    sys.stdout.flush()
    private, is_blocking = os.dup(fd), os.get_blocking(fd)
    _served.add(fd)
    try:
        _divert(fd, mode)
        yield private
    finally:
        sys.stdout.flush()
        os.set_blocking(private, is_blocking)
        os.dup2(private, fd)
        os.close(private)
        _served.discard(fd)


def _divert(fd: int, mode: int) -> None:
    if mode == os.O_WRONLY:
        with suppress(OSError):
            os.dup2(_STDERR, fd)
            return
    nothing = os.open(os.devnull, mode)
    os.dup2(nothing, fd)
    os.close(nothing)


@contextmanager
def _end_on_signals(end: Callable[[], None]) -> Iterator[list[int]]:
    """Call *end* on SIGTERM or SIGINT, and yield the signals that came; only a main thread gets signals."""
    loop, signals = asyncio.get_running_loop(), []
    numbers = []

    def note_request(number: int) -> None:
        signals.append(number)
        end()

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, note_request, number)
            numbers.append(number)
    try:
        yield signals
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


# -- reading -------------------------------------------------------------------------------------------------------


class ClientMessages:
    """The messages of a client, one a line. An invalid one is answered with an error here."""

    def __init__(self, stream: asyncio.StreamReader, writer: "StdoutWriter", close: Callable[[], Any]) -> None:
        self._stream = stream
        self._writer = writer
        self._close = close

    def end(self) -> None:
        """Read no more, and wait for no answer."""
        self._writer.pending.give_up()
        self._close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while True:
            line, is_whole = await self._line()
            if not line:
                await self._writer.pending.wait_answered()
                raise StopAsyncIteration
            if line.strip() and (message := await self._checked(line, is_whole=is_whole)) is not None:
                return message

    async def _line(self) -> tuple[bytes, bool]:
        """Return the next line; of one that is too long its beginning and its end. Nothing is left when it is empty."""
        kept = b""
        while True:
            try:
                line = await self._stream.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                kept = both_ends(kept + await self._stream.readexactly(error.consumed))
                continue
            except asyncio.IncompleteReadError as error:
                line = error.partial
            return kept + line, not kept

    async def _checked(self, line: bytes, *, is_whole: bool) -> str | None:
        """Return a message for the server; None if the line is invalid; then the client gets an error."""
        try:
            if not is_whole:
                raise _InvalidMessage(types.INVALID_REQUEST, f"a message has at most {MESSAGE_LIMIT} bytes")
            data = _checked_message(line)
            self._writer.pending.note_request(data)
            return line.decode()
        except _InvalidMessage as bad:
            return await self._refuse(line, bad)

    async def _refuse(self, line: bytes, bad: "_InvalidMessage") -> str | None:
        """Answer a request with an error. An answer to a question of the server's comes to an end for the server."""
        outline = MessageOutline.of(line)
        await self._writer.refuse(None if outline.is_answer else outline.id, bad.code, str(bad))
        failure = failure_answer(line, str(bad)) if outline.is_answer else None
        return None if failure is None else failure.model_dump_json(by_alias=True, exclude_none=True)


class _InvalidMessage(Exception):  # noqa: N818 - an answer, not an error of ours
    """An invalid line, and its JSON-RPC error code."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


def _checked_message(line: bytes) -> dict[str, Any]:
    """Return what a line says that the SDK can read as a message."""
    try:
        data = load_json(line)
    except (ValueError, RecursionError) as error:
        raise _InvalidMessage(types.PARSE_ERROR, f"the message can't be read: {first_line(error)}") from None
    if isinstance(data, list):
        raise _InvalidMessage(types.INVALID_REQUEST, "batches are not taken; send one message a line")
    try:
        message_of(data)
    except ValueError:
        raise _InvalidMessage(types.INVALID_REQUEST, "this is not a message of JSON-RPC 2.0") from None
    return data  # type: ignore[no-any-return]  # a message is an object


@asynccontextmanager
async def _client_messages(fd: int, writer: "StdoutWriter") -> AsyncIterator[ClientMessages]:
    """Read what may keep one waiting as the event loop does, and a regular file in a thread."""
    stream = asyncio.StreamReader(limit=MESSAGE_LIMIT)
    if _is_pollable(fd):
        loop, protocol = asyncio.get_running_loop(), asyncio.StreamReaderProtocol(stream)
        pipe, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(os.dup(fd), "rb", buffering=0))
        lines = ClientMessages(stream, writer, pipe.close)
    else:
        lines = ClientMessages(stream, writer, asyncio.create_task(_pump(fd, stream)).cancel)
    writer.on_lost = lines.end
    try:
        yield lines
    finally:
        lines.end()
        await asyncio.sleep(0)  # closing is done by the loop


def _is_pollable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


async def _pump(fd: int, stream: asyncio.StreamReader) -> None:
    try:
        while data := await asyncio.to_thread(os.read, fd, _CHUNK):
            stream.feed_data(data)
    finally:
        stream.feed_eof()


# -- writing -------------------------------------------------------------------------------------------------------


class PendingRequests:
    """The requests of a client that wait for an answer; subscriptions are not counted, they last."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._is_over = False
        self._all_answered = asyncio.Event()
        self._all_answered.set()

    def note_request(self, message: Mapping[str, Any]) -> None:
        """Note a request, or that the client does not wait for one any more."""
        method, id = message.get("method"), message.get("id")
        if method == _CANCELLED:
            self._forget((message.get("params") or {}).get("requestId"))
        elif method is not None and id is not None and method != _LISTEN:
            self._ids.add(id)
            self._all_answered.clear()

    def note_answer(self, text: bytes) -> None:
        """Note the answer in a message for the client."""
        if self._ids and (outline := MessageOutline.of(text)).is_answer:
            self._forget(outline.id)

    def _forget(self, id: Any) -> None:
        with suppress(TypeError):  # an unhashable id is invalid
            self._ids.discard(id)
        if not self._ids:
            self._all_answered.set()

    def give_up(self) -> None:
        """Wait for nothing from now on."""
        self._is_over = True
        self._all_answered.set()

    async def wait_answered(self) -> None:
        """Wait until every request has its answer, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self._is_over else ANSWER_TIMEOUT):
                await self._all_answered.wait()


class StdoutWriter:
    """Writes messages to the client. When the client is gone, reading ends too; that is not an error."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._turn = asyncio.Lock()
        self.pending = PendingRequests()
        self.on_lost: Callable[[], Any] = lambda: None

    async def write(self, text: str) -> None:
        """Send a message; return when the client can be given more."""
        data = text.encode("utf-8", "replace")
        try:
            async with self._turn:
                await self._send(data)
        except OSError:
            self.on_lost()
        self.pending.note_answer(data)

    async def flush(self) -> None:
        """Do nothing: what is written is on its way."""

    async def refuse(self, id: str | int | None, code: int, why: str) -> None:
        """Tell the client that a message was not taken; without an id nobody knows which request it was."""
        refusal = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}}
        await self.write(json.dumps(refusal) + "\n")


@asynccontextmanager
async def _client_writer(fd: int) -> AsyncIterator[StdoutWriter]:
    """Write what may keep one waiting as the event loop does, and a regular file in a thread."""
    if not _is_pollable(fd):
        yield StdoutWriter(lambda data: asyncio.to_thread(_write_all, fd, data))
        return
    loop, protocol = asyncio.get_running_loop(), asyncio.StreamReaderProtocol(asyncio.StreamReader())
    pipe, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(os.dup(fd), "wb", buffering=0))
    stream = asyncio.StreamWriter(pipe, protocol, None, loop)

    async def send(data: bytes) -> None:
        stream.write(data)
        await stream.drain()

    try:
        yield StdoutWriter(send)
    finally:
        await _closed(pipe, stream)


async def _closed(pipe: asyncio.WriteTransport, stream: asyncio.StreamWriter) -> None:
    """Close a pipe after what was written is read, or after a while."""
    pipe.close()
    with anyio.CancelScope(shield=True), suppress(OSError):
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await stream.wait_closed()
        except TimeoutError:
            pipe.abort()
            await asyncio.sleep(0)  # closing is done by the loop


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
