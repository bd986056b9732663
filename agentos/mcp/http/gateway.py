"""The gateway: runs the checks of a request, bounds its time, and passes it to the SDK's session manager."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import anyio
import attrs
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentos.mcp.auth import Verified
from agentos.mcp.http.request_checks import (
    AdmittedToken,
    BearerTokens,
    ClientGone,
    RequestRefused,
    check_local,
    check_method,
    check_query,
    header_values,
    sdk_user,
)
from agentos.model.principal import Principal

VERIFIED = "agentos.verified"
"""Where a request's scope holds what its token stands for."""

_SESSION = b"mcp-session-id"
_RETRY_SOON = {"Retry-After": "1"}

_logger = logging.getLogger("agentos.mcp.http.serving")

Close: TypeAlias = Callable[[], Awaitable[None]]


@attrs.frozen(kw_only=True)
class HTTPLimits:
    """How much the server takes.

    body: bytes of a request. sessions: open ones of the handshake era; further ones are answered 503.
    sessions_per_principal, requests_per_principal: of those, what the tokens of one principal get; further ones are
    answered 429. idle: seconds until a session that nobody uses is closed. requests: at once, open streams included.
    connections: open ones, at most three quarters of the descriptors that the process may have; of those,
    connections_per_address is the share of one address. Where a place is needed, connections without a request under
    way lose theirs. These two and *headers* are kept by `serve_http`, not by an app within another server.
    headers: seconds until the headers of a request are complete, from the connection's start or their first byte.
    receive, send: seconds that a client may take to send its request, and to take in one piece of an answer.
    requests_per_handler: at once at one http-handler of a pack; further ones are answered 503.
    answer, stream: seconds until the answer of such a handler begins, and until it is complete.
    recheck: after how many seconds the token of an open stream is looked at again.
    stop: seconds that requests have to finish when the server stops.
    """

    body: int = 4 * 1024 * 1024
    sessions: int = 1000
    sessions_per_principal: int = 100
    idle: float = 1800.0
    requests: int = 1000
    requests_per_principal: int = 250
    requests_per_handler: int = 250
    connections: int = 2000
    connections_per_address: int = 1000
    headers: float = 10.0
    receive: float = 30.0
    send: float = 30.0
    answer: float = 60.0
    stream: float = 3600.0
    recheck: float = 60.0
    stop: int = 5

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(HTTPLimits):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"HTTPLimits.{field.name}: expected a positive number")


DEFAULT_LIMITS = HTTPLimits()


class Gateway:
    """Checks each request before the app gets it, and ends streams whose token is no longer valid."""

    def __init__(self, app: ASGIApp, bearer: BearerTokens | None, limits: HTTPLimits) -> None:
        self._app = app
        self._bearer = bearer
        self._limits = limits
        self._active_requests: Counter[str | None] = Counter()
        self._streams: set[anyio.CancelScope] = set()

    @property
    def active_requests(self) -> int:
        """Return how many requests are under way."""
        return self._active_requests.total()

    def end_streams(self) -> None:
        """End the streams of sessions, which have no end of their own. Subscriptions are the server's to end."""
        for stream in list(self._streams):
            stream.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why it is refused."""
        async with refusals_answered(scope, receive, send):
            admitted = await self._admit(scope)
            with self.counted(admitted):
                await self._handle(
                    admitted, scope, TimedChannel(receive, _SessionHeaderFilter.around(scope, send), self._limits)
                )

    async def _admit(self, scope: Scope) -> AdmittedToken | None:
        check_method(scope)
        return await self.admit_caller(scope)

    async def admit_caller(self, scope: Scope) -> AdmittedToken | None:
        """Return whose token a request has, None where none is asked for; raise RequestRefused if it may not call."""
        check_query(scope)
        if self._bearer is not None:
            return await self._bearer.admit(scope)
        check_local(scope)
        return None

    @contextmanager
    def counted(self, admitted: AdmittedToken | None) -> Iterator[None]:
        """Count a request among all, and among those of its principal where tokens tell them apart."""
        active, who = self._active_requests, None if admitted is None else admitted.verified.principal.key
        if active.total() >= self._limits.requests:
            raise RequestRefused(503, "unavailable", "Too many requests at once", _RETRY_SOON)
        if who is not None and active[who] >= self._limits.requests_per_principal:
            raise RequestRefused(429, "too_many_requests", "Too many requests at once for one principal", _RETRY_SOON)
        active[who] += 1
        try:
            yield
        finally:
            active[who] -= 1
            if not active[who]:
                del active[who]

    async def _handle(self, admitted: AdmittedToken | None, scope: Scope, paced: "TimedChannel") -> None:
        headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        scope = {**scope, "headers": headers}
        if admitted is not None:
            scope |= {VERIFIED: admitted.verified, "user": sdk_user(admitted.verified)}
        if _is_stream(scope):
            await self._stream(admitted, scope, paced)
        else:
            await self._app(scope, paced.receive, paced.send)

    async def _stream(self, admitted: AdmittedToken | None, scope: Scope, paced: "TimedChannel") -> None:
        """Serve a stream until the client leaves, the server stops, or the token is no longer valid."""
        with anyio.CancelScope() as stream:
            if scope["method"] == "GET":
                self._streams.add(stream)
            watch = asyncio.create_task(self.recheck_token(admitted, stream.cancel))
            try:
                await self._app(scope, paced.receive, paced.send)
            finally:
                watch.cancel()
                self._streams.discard(stream)
        await paced.finish()

    async def recheck_token(self, admitted: AdmittedToken | None, end: Callable[[], None]) -> None:
        """Call *end* once a token is no longer valid."""
        while admitted is not None and self._bearer is not None:
            await asyncio.sleep(self._limits.recheck)
            if not await self._bearer.is_still_valid(admitted):
                end()
                return


@asynccontextmanager
async def refusals_answered(scope: Scope, receive: Receive, send: Send) -> AsyncIterator[None]:
    """Answer a refusal that is raised in the block; a client that hung up needs no answer."""
    try:
        yield
    except* RequestRefused as refusals:
        await _first_refusal(refusals).answer(scope, receive, send)
    except* ClientGone:
        _logger.debug("a client hung up")


def _first_refusal(group: BaseExceptionGroup[RequestRefused]) -> RequestRefused:
    inner = group.exceptions[0]
    return _first_refusal(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _is_stream(scope: Scope) -> bool:
    """Tell whether an answer lasts: a session's stream, or a subscription. The SDK refuses headers that lie."""
    return scope["method"] == "GET" or header_values(scope, b"mcp-method") == [b"subscriptions/listen"]


@attrs.frozen
class _SessionHeaderFilter:
    """Names no session in the refusal of a request that belonged to none: what the SDK made for it is gone already."""

    _send: Send

    @classmethod
    def around(cls, scope: Scope, send: Send) -> Send:
        return send if header_values(scope, _SESSION) else cls(send)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:  # noqa: PLR2004 - a refusal
            kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() != _SESSION]
            message = {**message, "headers": kept}
        await self._send(message)


class TimedChannel:
    """What a request reads and writes, each within its time."""

    def __init__(self, receive: Receive, send: Send, limits: HTTPLimits) -> None:
        self._receive = receive
        self._send = send
        self._limits = limits
        self._deadline = asyncio.get_running_loop().time() + limits.receive
        self._is_read = False
        self._is_answering = False

    async def receive(self) -> Message:
        """Return the next part of the request, within the limits."""
        if self._is_read:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise RequestRefused(408, "request_timeout", "The request took too long", {"Connection": "close"}) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        self._is_read = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer, within the limits."""
        try:
            async with asyncio.timeout(self._limits.send):
                await self._send(message)
        except TimeoutError:
            raise ClientGone from None
        self._is_answering = message["type"] == "http.response.start" or bool(message.get("more_body", False))

    async def finish(self) -> None:
        """End an answer that was cut off."""
        if self._is_answering:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})


# -- Sessions


def principal_of(context: ServerRequestContext[Any, Any]) -> Principal | None:
    """Return whom the request's token stands for. Without one it is nobody: None, which a server refuses."""
    verified = verified_of(context)
    return None if verified is None else verified.principal


def anonymous_account(context: ServerRequestContext[Any, Any], who: Principal) -> str | None:
    """Return the budget of a client without a token: that of its address, since all of them are one principal."""
    scope = getattr(context.request, "scope", None)
    client = scope.get("client") if isinstance(scope, Mapping) else None
    return None if client is None else f"{who.key} at {client[0]}"


def verified_of(context: ServerRequestContext[Any, Any]) -> Verified | None:
    """Return what the request's token stands for; None where no token is asked for."""
    scope = getattr(context.request, "scope", None)
    found = scope.get(VERIFIED) if isinstance(scope, Mapping) else None
    return found if isinstance(found, Verified) else None


class _SharedSessions(StreamableHTTPSessionManager):
    """The SDK's manager, where one principal has a share of the sessions."""

    def __init__(self, server: Server[Any], limits: HTTPLimits) -> None:
        super().__init__(
            server,
            session_idle_timeout=limits.idle,
            max_request_body_size=limits.body,
            max_sessions=limits.sessions,
        )
        self._share = limits.sessions_per_principal

    @property
    def count(self) -> int:
        """Return how many sessions are open."""
        return len(self._server_instances)

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        """Open a session: here the SDK counts them, with those whose opening request is still on its way."""
        if requestor is not None:
            held = sum(owner["subject"] == requestor["subject"] for owner in self._session_owners.values())
            if held >= self._share:
                raise RequestRefused(429, "too_many_sessions", "Too many open sessions for one principal")
        return super()._admit_session(requestor)


class SessionManager:
    """The SDK's session manager, made anew each time the app starts: one runs only once."""

    def __init__(self, server: Server[Any], close: Close | None, limits: HTTPLimits) -> None:
        self._server = server
        self._close = close
        self._limits = limits
        self._manager: _SharedSessions | None = None

    @property
    def count(self) -> int:
        """Return how many sessions are open."""
        return 0 if self._manager is None else self._manager.count

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Handle requests until the end of the block."""
        if self._manager is not None:
            raise RuntimeError("this app is running already; make another one with http_app")
        manager = _SharedSessions(self._server, self._limits)
        failure: Exception | None = None
        async with manager.run():
            self._manager = manager
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below: the manager would wrap it in a group
                failure = error
            finally:
                self._manager = None
                if self._close is not None:
                    await self._close()
        if failure is not None:
            raise failure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the SDK."""
        if self._manager is None:
            _logger.error("the app is not running: enter app.router.lifespan_context(app) in the parent's lifespan")
            raise RequestRefused(503, "unavailable", "The server is not running")
        await self._manager.handle_request(scope, receive, send)
