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


class _ResponseBody(httpx2.AsyncByteStream):
    """The body of a response, with its chunks as something else passes them on."""

    def __init__(self, body: Any, chunks: AsyncIterator[bytes]) -> None:
        self._body = body
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._body.aclose()


async def _checked(body: Any, check_alive: Callable[[], Awaitable[None]], *, is_events: bool) -> AsyncIterator[bytes]:
    """Yield chunks; a body that breaks off raises an error that ends one answer only.

    *check_alive* is awaited before that, and where a stream of events ends: a reader who has its answer stops earlier.
    """
    try:
        async for chunk in body:
            yield chunk
    except _EXCHANGE_ERRORS as error:
        await check_alive()
        raise httpx2.StreamError(_broken_off(error)) from None
    if is_events:
        await check_alive()


async def _bounded(chunks: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Yield chunks; raise when there are more than *limit* bytes."""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise httpx2.StreamError(f"it is longer than {limit:,} bytes")
        yield chunk


async def _readable(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a list of tools, with stand-ins for those that can't be read."""
    yield readable_list(b"".join([chunk async for chunk in chunks]))


async def readable_events(chunks: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Yield events with a list of tools in the same way. A line that is too long is passed on: the SDK refuses it."""
    rest = bytearray()
    async for chunk in chunks:
        *lines, last = chunk.split(b"\n")
        for line in lines:
            yield _readable_event(bytes(rest + line)) + b"\n"
            rest.clear()
        rest += last
        if len(rest) > limit:
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
        chunks = _checked(response.stream, functools.partial(self._check_alive, request.url), is_events=is_events)
        if not is_events:
            chunks = _bounded(chunks, limit)
        if is_for_list:
            chunks = readable_events(chunks, limit) if is_events else _readable(chunks)
        response.stream = _ResponseBody(response.stream, chunks)

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
