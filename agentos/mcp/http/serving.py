"""Streamable HTTP: who may speak to the server, and within which bounds.

A request passes, in this order: its Host, its path, its Origin, its method, its token, then the
limits on requests at once and on time.
Then it reaches the SDK's session manager. A refusal quotes nothing of the request.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.lowlevel import Server
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Scope

from agentos.mcp.auth import Verifier, is_loopback
from agentos.mcp.http.gateway import (
    DEFAULT_LIMITS,
    Close,
    Gateway,
    HTTPLimits,
    SessionManager,
    anonymous_account,
    principal_of,
)
from agentos.mcp.http.pack_handlers import HANDLER_METHODS, PackHandlers, handler_route
from agentos.mcp.http.request_checks import (
    METHODS,
    BearerTokens,
    CheckedApp,
    allowed_host_names,
    allowed_origin_names,
    check_host,
    check_origin,
    check_page,
)
from agentos.mcp.http.resource_metadata import WELL_KNOWN, metadata_routes
from agentos.mcp.http.status_routes import (
    OPEN_PATHS,
    READERS,
    CountedApp,
    Readers,
    ServerStatus,
    metrics_route,
    status_routes,
)
from agentos.mcp.http.web_server import host_in_url, listening_socket, make_web_server, run_web_server
from agentos.mcp.server.served_host import ServedHost
from agentos.model.principal import Principal

if TYPE_CHECKING:
    from agentos.mcp.server.mcp_server import Resolver

_logger = logging.getLogger("agentos.mcp.http.serving")

MakeApp: TypeAlias = Callable[[BearerTokens | None], Starlette]
"""Makes an app that is served beside the endpoint: it is given what accepts tokens, None where none are asked for."""


def http_app(
    host: ServedHost,
    *,
    verifier: Verifier | None,
    principal: "Principal | Resolver | None" = None,
    resource_url: str | None = None,
    authorization_servers: Sequence[str] = (),
    path: str = "/mcp",
    allowed_hosts: Sequence[str] | None = None,
    allowed_origins: Sequence[str] = (),
    required_scopes: Sequence[str] = (),
    limits: HTTPLimits = DEFAULT_LIMITS,
    metrics: Readers = "callers",
    mounts: Mapping[str, MakeApp] | None = None,
    **server_options: Any,
) -> Starlette:
    """Return an app that serves what *host* offers to whom each token stands for.

    verifier: finds out whom a token stands for. None takes requests from this machine alone, all of them for
        *principal*, or for whom that function finds.
    resource_url: the address by which clients know the endpoint. Tokens may be bound to it, and its metadata is
        advertised and served.
    authorization_servers: where clients get tokens; left out, a JWTVerifier's issuer.
    allowed_hosts: what Host may say: `name` for any port, or `name:port`. Left out: this machine and *resource_url*'s.
    allowed_origins: which web pages may call; none unless named.
    required_scopes: what every token must have.
    metrics: who may read `/metrics`: whoever may call the endpoint, `anybody`, or nobody (`off`). `/health` and
        `/ready` answer everybody.
    mounts: what else is served, by its path, such as the studio. Host is checked for it, all else is its own business.

    A parent that mounts the app enters `app.router.lifespan_context(app)` in its own lifespan and adds
    `root_routes(app)` to its routes.
    """
    from agentos.mcp.server.mcp_server import MCPServer

    if verifier is not None and principal is not None:
        raise ValueError("http_app: with a verifier the token says who calls; leave principal out")
    caller = principal_of if verifier is not None else principal
    account = anonymous_account if verifier is None else None
    mcp = MCPServer(host, principal=caller, account=account, **server_options)
    return app_for(
        mcp.server,
        verifier=verifier,
        close=mcp.close,
        resource_url=resource_url,
        authorization_servers=authorization_servers,
        path=path,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        required_scopes=required_scopes,
        limits=limits,
        metrics=metrics,
        host=host,
        principal=principal,
        mounts=mounts,
    )


def app_for(
    server: Server[Any],
    *,
    verifier: Verifier | None,
    close: Close | None = None,
    resource_url: str | None = None,
    authorization_servers: Sequence[str] = (),
    path: str = "/mcp",
    allowed_hosts: Sequence[str] | None = None,
    allowed_origins: Sequence[str] = (),
    required_scopes: Sequence[str] = (),
    limits: HTTPLimits = DEFAULT_LIMITS,
    metrics: Readers = "callers",
    host: ServedHost | None = None,
    principal: "Principal | Resolver | None" = None,
    mounts: Mapping[str, MakeApp] | None = None,
) -> Starlette:
    """Return the app for a server of the SDK: see `http_app`. Its handlers learn who calls by `principal_of`.

    close: ends the server's subscriptions in good order, when the app stops.
    host: whose packs, tools and calls are counted, and whose http-handlers are served, if any.
    principal: for whom those are asked, without a verifier; a function is given an object with the `request` alone.
    """
    if not path.startswith("/"):
        raise ValueError(f"path: expected a path such as /mcp, got {path!r}")
    if verifier is None and required_scopes:
        raise ValueError("required_scopes: without a verifier there are no tokens that could have them; give one")
    hosts = allowed_host_names(allowed_hosts, resource_url, is_open=verifier is None)
    origins = allowed_origin_names(allowed_origins)
    sessions = SessionManager(server, close, limits)
    bearer = None if verifier is None else BearerTokens(verifier, resource_url, required_scopes)
    gateway = Gateway(AuthContextMiddleware(sessions), bearer, limits)
    status = ServerStatus(host)
    endpoint = _for_pages(CountedApp(gateway, status.answers), origins, METHODS)
    handlers = None if host is None else PackHandlers(host, gateway, limits, principal)
    metadata = metadata_routes(verifier, resource_url, authorization_servers, required_scopes)
    routes = [Route(path, CheckedApp(endpoint, partial(check_origin, origins))), *metadata]
    if handlers is not None:
        app_of_handlers = _for_pages(CountedApp(handlers, status.answers), origins, HANDLER_METHODS)
        routes.append(handler_route(CheckedApp(app_of_handlers, partial(check_page, origins))))
    if metadata:
        routes.append(Route(WELL_KNOWN, metadata[0].app))
    routes += [*status_routes(status), *_metrics_routes(metrics, status, gateway, sessions)]
    mounted = {place: make(bearer) for place, make in (mounts or {}).items()}
    app = Starlette(
        routes=[*routes, *(Mount(place, one) for place, one in mounted.items())],
        middleware=[Middleware(CheckedApp, partial(_check_host, hosts, OPEN_PATHS - {path}))],
        lifespan=lambda _: _running(sessions, status, mounted.values()),
    )
    app.router.redirect_slashes = False  # an address that is not ours is not found, rather than sent elsewhere
    app.state.root_routes = metadata
    app.state.end_streams = partial(_end_streams, gateway, handlers, status, close, mounted.values())
    return app


def _for_pages(app: ASGIApp, origins: frozenset[str], methods: Sequence[str]) -> ASGIApp:
    """Return *app* as web pages of other origins can call it, where some may."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=sorted(origins),
        allow_methods=methods,
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
    )


def _metrics_routes(
    readers: Readers, status: ServerStatus, gateway: Gateway, sessions: SessionManager
) -> Iterator[Route]:
    if readers not in READERS:
        raise ValueError(f"metrics: expected {', '.join(map(repr, READERS))}, got {readers!r}")

    async def admit_anybody(_: Scope) -> None:
        return

    def figures() -> str:
        return status.figures(requests=gateway.active_requests, sessions=sessions.count)

    if readers != "off":
        yield metrics_route(figures, admit_anybody if readers == "anybody" else gateway.admit_caller)


def _check_host(allowed: frozenset[str], open_paths: frozenset[str], scope: Scope) -> None:
    """Refuse a request for a host that is not this server, but for what says the same to everybody."""
    if scope["path"].removeprefix(scope.get("root_path", "")) not in open_paths:
        check_host(allowed, scope)


@asynccontextmanager
async def _running(sessions: SessionManager, status: ServerStatus, mounted: Iterable[Starlette]) -> AsyncIterator[None]:
    async with AsyncExitStack() as running:
        await running.enter_async_context(sessions.run())
        for app in mounted:
            await running.enter_async_context(app.router.lifespan_context(app))
        with status.kept():
            yield


async def _end_streams(
    gateway: Gateway,
    handlers: PackHandlers | None,
    status: ServerStatus,
    close: Close | None,
    mounted: Iterable[Starlette],
) -> None:
    status.is_ready = False
    gateway.end_streams()
    if handlers is not None:
        handlers.end_streams()
    for app in mounted:
        await app.state.end_streams()
    if close is not None:
        await close()


def root_routes(app: Starlette) -> list[Route]:
    """Return what a parent that mounts *app* serves at its root: the metadata, where refusals say that it is."""
    return list(app.state.root_routes)


async def serve_http(
    host: ServedHost,
    *,
    bind: str = "127.0.0.1",
    port: int = 8000,
    path: str = "/mcp",
    verifier: Verifier | None = None,
    resource_url: str | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    tls_key_password: str | None = None,
    ready: asyncio.Event | Callable[[str], object] | None = None,
    limits: HTTPLimits = DEFAULT_LIMITS,
    **options: Any,
) -> None:
    """Serve *host* over HTTP until cancelled; streams are ended and requests get a moment to finish.

    bind, port: where to listen; port 0 takes a free one. Another address than loopback needs a verifier and the
        *resource_url* by which clients know the server.
    tls_cert, tls_key: files for https; both or none.
    ready: an event that is set, or what is called with the address, when requests are taken.
    options: as of `http_app`.
    """
    _check_bind(bind, verifier, resource_url)
    if (tls_cert is None) != (tls_key is None):
        raise ValueError("serve_http: tls_cert and tls_key go together; give both or none")
    with listening_socket(bind, port) as listener:
        scheme = "http" if tls_cert is None else "https"
        address = f"{scheme}://{host_in_url(bind)}:{listener.getsockname()[1]}{path}"
        if verifier is not None and resource_url is None:
            resource_url = address
        app = http_app(host, verifier=verifier, resource_url=resource_url, path=path, limits=limits, **options)
        server = make_web_server(app, limits, tls_cert, tls_key, tls_key_password)
        async with app.router.lifespan_context(app):
            await run_web_server(server, listener, partial(_report_ready, ready, address))


def _check_bind(bind: str, verifier: Verifier | None, resource_url: str | None) -> None:
    if is_loopback(bind):
        return
    if verifier is None:
        way = "give a verifier (TokenFile or JWTVerifier), or bind 127.0.0.1"
        raise ValueError(f"serve_http: {bind!r} can be reached by others; {way}")
    if resource_url is None:
        raise ValueError(f"serve_http: with {bind!r} give resource_url, the address by which clients know this server")
    if urlsplit(resource_url).scheme != "https":
        _logger.warning(
            "tokens for %s travel in the clear: use https, by tls_cert and tls_key or a proxy", resource_url
        )


def _report_ready(ready: asyncio.Event | Callable[[str], object] | None, address: str) -> None:
    if isinstance(ready, asyncio.Event):
        ready.set()
    elif ready is not None:
        ready(address)
