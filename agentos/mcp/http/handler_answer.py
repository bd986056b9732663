"""What a pack's handler reads and writes: the request's body, and messages that are HTTP and come in their order."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.types import Message

from agentos.mcp.http.gateway import TimedChannel
from agentos.mcp.http.request_checks import ClientGone, RequestRefused

_PIECE: Final = 256 * 1024
"""How much of a body is handed over at once."""
_MOST_HEADERS: Final = 200
_HEADER_BYTES: Final = 64 * 1024
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"(?:[\x21-\x7e\x80-\xff]+(?:[ \t]+[\x21-\x7e\x80-\xff]+)*)?")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_OF_THE_CONNECTION: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)
"""Headers that are the server's own business."""
_LOWEST, _HIGHEST = 200, 599
_BODILESS: Final = (204, 304)


class HandlerFaultError(Exception):
    """What a handler sent is not an answer."""


async def read_body(channel: TimedChannel, limit: int) -> bytes:
    """Return the whole body of a request; raise RequestRefused if it is too large, or comes too slowly."""
    body, is_more = bytearray(), True
    while is_more:
        message = await channel.receive()
        body += message.get("body", b"")
        is_more = message.get("more_body", False)
        if len(body) > limit:
            raise RequestRefused(413, "too_large", "The request is too large", {"Connection": "close"})
    return bytes(body)


class HandlerAnswer:
    """The two functions that a handler is given. Both let others run, whatever the handler does between them."""

    def __init__(self, channel: TimedChannel, body: bytes, *, is_head: bool) -> None:
        self._channel = channel
        self._pieces = [body[start : start + _PIECE] for start in range(0, len(body), _PIECE)] or [b""]
        self._is_head = is_head
        self._gone = asyncio.Event()
        self._turn = asyncio.Lock()
        self._status = 0
        self._due: int | None = None
        """How many bytes of the answer are still to come, where the handler said how many there are."""
        self.is_over = False
        self.is_complete = False
        self.is_event_stream = False

    @property
    def has_started(self) -> bool:
        """Tell whether something of the answer was sent."""
        return self._status > 0

    def close(self) -> None:
        """Take nothing more: the exchange is over, even where the handler is not."""
        self.is_over = True
        self._gone.set()

    async def receive(self) -> Message:
        """Return the next piece of the request, then nothing until the client is gone."""
        await asyncio.sleep(0)
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Send a part of the answer. After one that is not as it should be nothing more is taken."""
        await asyncio.sleep(0)
        async with self._turn:
            if self.is_over:
                raise ClientGone("nobody takes an answer any more")
            try:
                await self._channel.send(self._checked(message))
            except BaseException:
                self.is_over = True
                raise

    def _checked(self, message: Any) -> Message:
        if not isinstance(message, Mapping):
            raise HandlerFaultError(f"it sent a {type(message).__name__}; expected a message of ASGI")
        kind = message.get("type")
        if kind == "http.response.start" and not self.has_started:
            return self._start(message)
        if kind == "http.response.body" and self.has_started and not self.is_complete:
            return self._part(message)
        raise HandlerFaultError("it sent a message that is unknown, or comes at the wrong time")

    def _start(self, message: Mapping[str, Any]) -> Message:
        status = message.get("status")
        if not (isinstance(status, int) and _LOWEST <= status <= _HIGHEST):
            raise HandlerFaultError("its status is not one of an answer")
        headers = _checked_headers(message.get("headers", ()))
        lengths = [value for name, value in headers if name == b"content-length"]
        if len(lengths) > 1 or not all(_LENGTH.fullmatch(value) for value in lengths):
            raise HandlerFaultError("its content-length is not one number")
        self._due = int(lengths[0]) if lengths and not self._has_no_body(status) else None
        self.is_event_stream = any(
            name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers
        )
        self._status = int(status)
        return {"type": "http.response.start", "status": self._status, "headers": headers}

    def _has_no_body(self, status: int) -> bool:
        return self._is_head or status in _BODILESS

    def _part(self, message: Mapping[str, Any]) -> Message:
        body, is_more = message.get("body", b""), bool(message.get("more_body", False))
        if not isinstance(body, bytes | bytearray | memoryview):
            raise HandlerFaultError(f"its body is a {type(body).__name__}; expected bytes")
        part = b"" if self._is_head else bytes(body)
        if part and self._status in _BODILESS:
            raise HandlerFaultError(f"an answer {self._status} has no body")
        if self._due is not None:
            self._due -= len(part)
            if self._due < 0 or (self._due > 0 and not is_more):
                raise HandlerFaultError("its body is not as long as its content-length says")
        self.is_complete = not is_more
        return {"type": "http.response.body", "body": part, "more_body": is_more}


def _checked_headers(given: Iterable[Any]) -> list[tuple[bytes, bytes]]:
    headers = [_checked_header(one) for one in given]
    if len(headers) > _MOST_HEADERS or sum(len(name) + len(value) for name, value in headers) > _HEADER_BYTES:
        raise HandlerFaultError("its headers are too many, or too large")
    return [pair for pair in headers if pair[0] not in _OF_THE_CONNECTION]


def _checked_header(given: Any) -> tuple[bytes, bytes]:
    try:
        name, value = given
        name, value = bytes(memoryview(name)).lower(), bytes(memoryview(value)).strip(b" \t")
    except (TypeError, ValueError):
        raise HandlerFaultError("a header is not a pair of bytes") from None
    if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
        raise HandlerFaultError("a header has characters that may not stand in one")
    return name, value
