"""What a request must be before anybody asks who sent it, and how it is refused."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agentos.mcp.auth import is_loopback
from agentos.mcp.http.resource_metadata import HOST, as_list, parse_resource_url

METHODS = ("GET", "POST", "DELETE")
"""What an endpoint takes."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_FORWARDED = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"})
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s\"\\]+")

Check: TypeAlias = Callable[[Scope], None]


# -- Refusals


class RequestRefused(Exception):  # noqa: N818 - an answer, not an error
    """An answer that ends a request before it reaches the protocol."""

    def __init__(self, status: int, error: str, description: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {error}")
        self.status = status
        self.body = {"error": error, "error_description": description}
        self.headers = headers

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the refusal."""
        headers = {"Cache-Control": "no-store", **(self.headers or {})}
        await JSONResponse(self.body, self.status, headers)(scope, receive, send)


class ClientGone(OSError):  # noqa: N818 - not an error of ours
    """The client hung up, or does not read what it is sent."""


class CheckedApp:
    """An app that requests reach only if a check lets them."""

    def __init__(self, app: ASGIApp, check: Check) -> None:
        self._app = app
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request before anything else sees it."""
        if scope["type"] == "http":
            try:
                self._check(scope)
            except RequestRefused as refused:
                await refused.answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


# -- Host and Origin: a page that points its own name at this machine must not reach it


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """Return every value of one header."""
    return [value for key, value in scope["headers"] if key == name]


def allowed_host_names(given: Sequence[str] | None, resource_url: str | None, *, is_open: bool) -> frozenset[str]:
    """Return what Host may say. A server that asks for no token answers to this machine's names alone."""
    named = [] if resource_url is None else [parse_resource_url(resource_url).netloc]
    allowed = frozenset(name.lower() for name in ([*_LOOPBACK, *named] if given is None else as_list(given)))
    for name in allowed:
        match = HOST.fullmatch(name)
        if match is None:
            raise ValueError(f"allowed_hosts: expected a name or name:port, got {name!r}")
        if is_open and not is_loopback(match[1].strip("[]")):
            raise ValueError(f"{name!r} can be reached by others: give a verifier, so that they need a token")
    return allowed


def check_host(allowed: frozenset[str], scope: Scope) -> None:
    """Refuse a request for a host that is not this server."""
    values = header_values(scope, b"host")
    if len(values) != 1:
        raise RequestRefused(400, "invalid_request", "Expected one Host header")
    said = values[0].decode("latin-1").lower()
    match = HOST.fullmatch(said)
    if match is None or (match[1] not in allowed and said not in allowed):
        raise RequestRefused(421, "misdirected_request", "This Host is not served here")


def allowed_origin_names(given: Sequence[str]) -> frozenset[str]:
    """Return the allowed origins; raise if one is not an origin."""
    allowed = frozenset(origin.lower() for origin in as_list(given))
    for origin in allowed:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(f"allowed_origins: expected an origin such as https://app.example.com, got {origin!r}")
    return allowed


def check_origin(allowed: frozenset[str], scope: Scope) -> None:
    """Refuse a request from a page of another origin."""
    values = header_values(scope, b"origin")
    if values and (len(values) > 1 or values[0].decode("latin-1").lower() not in allowed):
        raise RequestRefused(403, "forbidden", "This Origin may not call")


def check_local(scope: Scope) -> None:
    """Let requests of this machine pass; behind a proxy all look so, and the proxy's own headers tell."""
    client = scope.get("client")
    is_passed_on = any(name in _FORWARDED for name, _ in scope["headers"])
    if is_passed_on or (client is not None and not is_loopback(client[0])):
        raise RequestRefused(403, "forbidden", "This server answers its own machine only")


def check_query(scope: Scope) -> None:
    """Refuse a token in an address, whether tokens are asked for or not: addresses are written to logs."""
    try:
        asked = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise RequestRefused(400, "invalid_request", "The query has too many fields") from None
    if any(name == "access_token" for name, _ in asked):
        raise RequestRefused(400, "invalid_request", "Send the token in the Authorization header, never in an address")


def check_method(scope: Scope) -> None:
    """Refuse methods that the transport does not know."""
    if scope["method"] not in METHODS:
        raise RequestRefused(405, "method_not_allowed", "Expected GET, POST or DELETE", {"Allow": ", ".join(METHODS)})
    kinds = [value.partition(b";")[0].strip().lower() for value in header_values(scope, b"content-type")]
    if scope["method"] == "POST" and kinds != [b"application/json"]:
        raise RequestRefused(415, "unsupported_media_type", "Expected application/json")
