"""What a request must be before a page sees it, and the headers that every answer has."""

from collections.abc import Mapping
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentos.mcp.http.gateway import HTTPLimits, TimedChannel, refusals_answered
from agentos.mcp.http.request_checks import RequestRefused, check_host, check_page, header_values

BODY: Final = 1024 * 1024
"""How many bytes the form of a page may have."""
_METHODS: Final = ("GET", "HEAD", "POST")
_POLICY: Final = "; ".join(
    (
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"),
        *("form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "object-src 'none'"),
    )
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class GuardedApp:
    """An app that requests reach only from a page of its own, within bounds of size, number and time.

    hosts: what Host may say; empty where whoever mounts the app checks that.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], limits: HTTPLimits) -> None:
        self._app = app
        self._hosts = hosts
        self._limits = limits
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        async with refusals_answered(scope, receive, with_headers(send)):
            self._check(scope)
            if self._active >= self._limits.requests:
                raise RequestRefused(503, "unavailable", "Too many requests at once", {"Retry-After": "1"})
            self._active += 1
            try:
                channel = TimedChannel(BoundedBody(receive), with_headers(send), self._limits)
                await self._app(scope, channel.receive, channel.send)
            finally:
                self._active -= 1

    def _check(self, scope: Scope) -> None:
        if self._hosts:
            check_host(self._hosts, scope)
        if scope["method"] not in _METHODS:
            raise RequestRefused(405, "method_not_allowed", "Expected GET or POST", {"Allow": ", ".join(_METHODS)})
        check_page(frozenset(), scope)
        if scope["method"] == "POST" and not header_values(scope, b"origin"):
            raise RequestRefused(403, "forbidden", "A change needs an Origin header, as browsers send it")


def with_headers(send: Send) -> Send:
    """Return *send* with the headers that every answer has."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


class BoundedBody:
    """What a request sends, up to a number of bytes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._size = 0

    async def __call__(self) -> Message:
        """Return the next part, or refuse what is too much."""
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > BODY:
            raise RequestRefused(413, "content_too_large", f"A form may have {BODY} bytes", {"Connection": "close"})
        return message
