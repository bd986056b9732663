"""What a request must be to be let in, whose token it carries, and how it is refused."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import parse_qsl

import attrs
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agentos.base.foreign import Border
from agentos.mcp.auth import TOKEN_LIMIT, Verified, Verifier, is_loopback
from agentos.mcp.http.resource_metadata import (
    HOST,
    QUOTED,
    as_list,
    comparable_url,
    metadata_url,
    parse_resource_url,
)
from agentos.model.principal import EVERYTHING

METHODS = ("GET", "POST", "DELETE")
"""What an endpoint takes."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_FORWARDED = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"})
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s\"\\]+")

_TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")

_logger = logging.getLogger("agentos.mcp.http.serving")

Check: TypeAlias = Callable[[Scope], None]


# -- Refusals


class RequestRefused(Exception):  # noqa: N818 - an answer, not an error
    """An answer that ends a request before it reaches the protocol."""

    def __init__(self, status: int, error: str, description: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {error}")
        self.status = status
        self.body = {"error": error, "error_description": description}
        self.headers = headers

    def response(self) -> JSONResponse:
        """Return the refusal as it is sent."""
        return JSONResponse(self.body, self.status, {"Cache-Control": "no-store", **(self.headers or {})})

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the refusal."""
        await self.response()(scope, receive, send)


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


def check_page(allowed: frozenset[str], scope: Scope) -> None:
    """Refuse a request from a page of another origin, where pages are served as well: those of this server may ask.

    What a page of another site only embeds has no Origin; browsers say of it where it comes from.
    """
    origins, hosts = header_values(scope, b"origin"), header_values(scope, b"host")
    if len(origins) == 1 and origins[0].partition(b"://")[2].lower() == hosts[0].lower():
        return
    check_origin(allowed, scope)
    is_foreign = header_values(scope, b"sec-fetch-site") in ([b"cross-site"], [b"same-site"])
    if is_foreign and not origins and header_values(scope, b"sec-fetch-mode") != [b"navigate"]:
        raise RequestRefused(403, "forbidden", "This page may not call")


def check_local(scope: Scope) -> None:
    """Refuse requests of other machines; those that a proxy passes on are known by its headers."""
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


# -- Bearer tokens


@attrs.frozen
class AdmittedToken:
    """A token that was accepted, and what it stands for."""

    token: str = attrs.field(repr=False)
    verified: Verified


class BearerTokens:
    """Accepts a token that is valid, is meant for this resource, and has the required scopes."""

    def __init__(self, verifier: Verifier, resource_url: str | None, required_scopes: Sequence[str]) -> None:
        self._verifier = verifier
        self._resource_url = resource_url
        self._scopes = as_list(required_scopes)
        if bad := [scope for scope in self._scopes if not QUOTED.fullmatch(scope)]:
            raise ValueError(f"required_scopes: expected names without spaces and quotes, got {bad[0]!r}")
        self._hints = {"scope": " ".join(self._scopes)} if self._scopes else {}
        if resource_url is not None:
            self._hints["resource_metadata"] = metadata_url(resource_url)

    async def admit(self, scope: Scope) -> AdmittedToken:
        """Return who sent the request; raise RequestRefused if its token is missing or invalid."""
        token = _token_of(scope)
        if token is None:
            raise self._challenge(401, "unauthorized", "Expected a bearer token", names_error=False)
        verified = await self._verified(token)
        if verified is None:
            raise self._challenge(401, "invalid_token", "The token is invalid")
        missing = self._missing(verified)
        if missing:
            raise self._challenge(403, "insufficient_scope", f"The token lacks the scope {missing[0]}")
        return AdmittedToken(token, verified)

    async def stands_for(self, token: str) -> Verified | None:
        """Return what a token stands for that was not sent in a header; None if it would not be let in."""
        try:
            verified = await self._verified(token)
        except RequestRefused:
            return None
        return None if verified is None or self._missing(verified) else verified

    def _missing(self, verified: Verified) -> list[str]:
        held = verified.scopes
        return [] if EVERYTHING in held else [one for one in self._scopes if one not in held]

    async def is_still_valid(self, admitted: AdmittedToken) -> bool:
        """Tell whether a token would be accepted again, for the same principal."""
        try:
            again = await self._verified(admitted.token)
        except RequestRefused:
            return False
        return again is not None and again.principal.key == admitted.verified.principal.key

    async def _verified(self, token: str) -> Verified | None:
        if len(token) > TOKEN_LIMIT or not _TOKEN.fullmatch(token.encode("latin-1", "replace")):
            return None
        with Border() as border:  # one that fails neither lets anybody in, nor makes clients discard their tokens
            verified = await self._verifier.verify(token)
        if border.error is not None:
            _logger.error("the verifier failed", exc_info=border.error)
            refusal = RequestRefused(503, "unavailable", "Tokens can't be checked now", {"Retry-After": "5"})
            raise refusal from border.error
        if verified is None or verified.audience is None or self._is_this_resource(verified.audience):
            return verified
        return None

    def _is_this_resource(self, audience: str) -> bool:
        resource = self._resource_url
        return audience == resource or (resource is not None and comparable_url(audience) == comparable_url(resource))

    def _challenge(self, status: int, error: str, description: str, *, names_error: bool = True) -> RequestRefused:
        """Return a refusal that says where tokens come from. Where none was sent it names no error (RFC 6750)."""
        details = {"error": error, "error_description": description} if names_error else {}
        parts = ", ".join(f'{name}="{value}"' for name, value in {**details, **self._hints}.items())
        return RequestRefused(status, error, description, {"WWW-Authenticate": f"Bearer {parts}".strip()})


def _token_of(scope: Scope) -> str | None:
    """Return the bearer token of the Authorization header; None if it is missing."""
    values = header_values(scope, b"authorization")
    if len(values) > 1:
        raise RequestRefused(400, "invalid_request", "Expected one Authorization header")
    scheme, _, token = (values[0] if values else b"").partition(b" ")
    return token.strip(b" ").decode("latin-1") if scheme.lower() == b"bearer" else None


def sdk_user(verified: Verified) -> AuthenticatedUser:
    """Return the principal as the SDK knows it: sessions and sealed states are bound to client and subject."""
    token = AccessToken(
        token="",  # what handlers don't see they can't pass on
        client_id=verified.client,
        scopes=sorted(verified.scopes),
        expires_at=None if verified.expires_at is None else int(verified.expires_at),
        subject=verified.principal.key,
    )
    return AuthenticatedUser(token)
