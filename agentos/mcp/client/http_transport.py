"""A server at an address: streamable HTTP, with bounds on what comes back.

Redirects are followed within the address's own origin only, which is the SDK's doing. Proxies and passwords of the
environment are not used.
"""

import contextlib
import functools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INTERNAL_ERROR

from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.unreadable_tools import readable_list

_CONNECT = 15.0
_SESSION = "mcp-session-id"
_GONE = 404
_FAILED = 400
_NO_ANSWER = 502
_PORTS = {"http": 80, "https": 443}
_HEAD = 400
_METHOD = re.compile(rb'"method"\s*:\s*"([^"]*)"')
_EVENTS = "text/event-stream"
_EXCHANGE_ERRORS = (
    httpx2.ReadError,
    httpx2.WriteError,
    httpx2.CloseError,
    httpx2.RemoteProtocolError,
    httpx2.ReadTimeout,
    httpx2.WriteTimeout,
)
"""What goes wrong with one exchange; that nobody can be reached at all is another matter."""


class _CheckedBody(httpx2.AsyncByteStream):
    """A body that breaks off with an error that the SDK takes for that of one answer.

    *look* is awaited before. A stream of events breaks off also where it ends: whoever has its answer does not read on.
    """

    def __init__(self, body: Any, check_alive: Callable[[], Awaitable[None]], *, is_events: bool) -> None:
        self._body = body
        self._check_alive = check_alive
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._body:
                yield chunk
        except _EXCHANGE_ERRORS as error:
            await self._check_alive()
            raise httpx2.StreamError(_broken_off(error)) from None
        if self._is_events:
            await self._check_alive()

    async def aclose(self) -> None:
        await self._body.aclose()


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that ends with an error when it is too long."""

    def __init__(self, body: Any, limit: int) -> None:
        self._body = body
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > self._limit:
                raise httpx2.StreamError(f"it is longer than {self._limit:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


class _ToolListBody(httpx2.AsyncByteStream):
    """The body of a list of tools, with stand-ins for those that can't be read."""

    def __init__(self, body: Any) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield readable_list(b"".join([chunk async for chunk in self._body]))

    async def aclose(self) -> None:
        await self._body.aclose()


class _ToolListEvents(_ToolListBody):
    """The same as a stream of events. A line that is too long is passed on in pieces: the SDK refuses it."""

    def __init__(self, body: Any, limit: int) -> None:
        super().__init__(body)
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest = bytearray()
        async for chunk in self._body:
            *lines, last = chunk.split(b"\n")
            for line in lines:
                yield _readable_event(bytes(rest + line)) + b"\n"
                rest.clear()
            rest += last
            if len(rest) > self._limit:
                yield bytes(rest)
                rest.clear()
        yield bytes(rest)


def _readable_event(line: bytes) -> bytes:
    field, colon, value = line.partition(b":")
    return line if field != b"data" else field + colon + readable_list(value)


def _broken_off(error: Exception) -> str:
    return f"the connection broke off: {type(error).__name__}"


def _failure(why: str) -> httpx2.Response:
    """Return an answer in the server's place, for one request alone: an error here would end them all."""
    error = {"code": INTERNAL_ERROR, "message": f"there is no answer that can be used: {why}"}
    return httpx2.Response(_NO_ANSWER, json={"jsonrpc": "2.0", "id": None, "error": error})


async def _asks_for_list(request: httpx2.Request) -> bool:
    found = _METHOD.search((await request.aread())[:_HEAD]) if request.method == "POST" else None
    return found is not None and found[1] == b"tools/list"


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Sends requests, bounds what comes back, and notes what went wrong."""

    def __init__(self, limits: ServerLimits, on_lost: Callable[[str], None]) -> None:
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)
        self._limits = limits
        self._on_lost = on_lost
        self.status: int | None = None
        """The last status that was an error; None after a good answer."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        is_for_list = await _asks_for_list(request)
        try:
            response = await self._inner.handle_async_request(request)
        except _EXCHANGE_ERRORS as error:
            await self._check_alive(request.url)
            return _failure(_broken_off(error))
        self.status = response.status_code if response.status_code >= _FAILED else None
        if response.status_code == _GONE and _SESSION in request.headers:
            self._on_lost("the server forgot the session")
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return _failure("the answer is compressed, which was not asked for")
        self._wrap_body(request, response, is_for_list=is_for_list)
        return response

    def _wrap_body(self, request: httpx2.Request, response: httpx2.Response, *, is_for_list: bool) -> None:
        limit = self._limits.message
        is_events = response.headers.get("content-type", "").lower().startswith(_EVENTS)
        body = _CheckedBody(response.stream, functools.partial(self._check_alive, request.url), is_events=is_events)
        if is_events:
            response.stream = _ToolListEvents(body, limit) if is_for_list else body
        else:
            bounded = _BoundedBody(body, limit)
            response.stream = _ToolListBody(bounded) if is_for_list else bounded

    async def _check_alive(self, url: httpx2.URL) -> None:
        """Find out after a broken exchange whether the server is still there: other calls go on if it is."""
        try:
            with anyio.fail_after(_CONNECT):
                found = await anyio.connect_tcp(url.host, url.port or _PORTS[url.scheme])
                await found.aclose()
        except (OSError, TimeoutError):
            self._on_lost("the connection broke off, and nobody takes another one")

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


@contextlib.asynccontextmanager
async def http_streams(
    url: str, headers: Mapping[str, str], transport: BoundedTransport, *, limits: ServerLimits, patience: float
) -> AsyncIterator[Any]:
    """Talk to the server at *url*, which may take *patience* seconds before it sends anything."""
    async with (
        httpx2.AsyncClient(
            transport=transport,
            headers={**headers, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(_CONNECT, read=patience + _CONNECT),
            trust_env=False,
        ) as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=limits.message) as streams,
    ):
        yield streams
