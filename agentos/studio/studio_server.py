"""The studio on a port of its own."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentos.mcp.auth import is_loopback
from agentos.mcp.http.gateway import DEFAULT_LIMITS, HTTPLimits
from agentos.mcp.http.web_server import host_in_url, listening_socket, make_web_server, run_web_server
from agentos.studio.sign_in import Who
from agentos.studio.web_app import studio_app

if TYPE_CHECKING:
    from agentos.host import AgentOS

_logger = logging.getLogger("agentos.studio")


async def serve_studio(
    host: "AgentOS",
    *,
    principal: Who,
    bind: str = "127.0.0.1",
    port: int = 0,
    url: str | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    tls_key_password: str | None = None,
    ready: Callable[[str], object] | None = None,
    limits: HTTPLimits = DEFAULT_LIMITS,
    **options: Any,
) -> None:
    """Serve the studio of *host* until cancelled.

    principal: for whom the link lets in that *ready* is called with.
    bind, port: where to listen; port 0 takes a free one. Another address than loopback needs *url*.
    url: the address by which browsers know the studio, if it is not where it listens: https, by *tls_cert* and
        *tls_key* or by a proxy in front of it.
    options: as of `studio_app`.
    """
    _check_place(bind, url, tls_cert, tls_key)
    with listening_socket(bind, port) as listener:
        scheme = "http" if tls_cert is None else "https"
        address = url or f"{scheme}://{host_in_url(bind)}:{listener.getsockname()[1]}"
        is_secure = urlsplit(address).scheme == "https"
        app = studio_app(host, principal=principal, url=address, is_secure=is_secure, limits=limits, **options)
        server = make_web_server(app, limits, tls_cert, tls_key, tls_key_password)
        link = f"{address.rstrip('/')}/sign-in?token={app.state.sign_in.token}"
        async with app.router.lifespan_context(app):
            await run_web_server(server, listener, partial(_report, ready, link))


def _report(ready: Callable[[str], object] | None, link: str) -> None:
    if ready is not None:
        ready(link)


def _check_place(bind: str, url: str | None, cert: object, key: object) -> None:
    if (cert is None) != (key is None):
        raise ValueError("serve_studio: tls_cert and tls_key go together; give both or none")
    if is_loopback(bind):
        return
    if url is None or urlsplit(url).scheme != "https":
        way = "give url, the https address by which browsers know it (by tls_cert and tls_key, or a proxy)"
        raise ValueError(f"serve_studio: {bind!r} can be reached by others, so {way}; or bind 127.0.0.1")
