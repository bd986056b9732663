"""The connections: httpcore's pool, on a network that connects only to addresses that were checked.

Of httpx only its certificates are used here. Its client is not: that would log whole addresses, keep
cookies and ask the environment for proxies.
"""

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any, TypeVar

import httpcore
import httpx

from agentos.web._addresses import Address
from agentos.web._outgoing import Departure, OutgoingRequest
from agentos.web._urls import Target
from agentos.web.reach_policy import WebPolicy
from agentos.web.web_errors import WebError, host_name, refused

T = TypeVar("T")
Resolve = Callable[[str, int], Awaitable[Iterable[str]]]

_CONNECTIONS = 32
_IDLE = 8
_IDLE_SECONDS = 5.0
_ATTEMPTS = 6
_ATTEMPT_SECONDS = 5.0
"""How long one of several addresses is tried; the last one has until the end of the whole exchange."""


async def resolve_name(host: str, port: int) -> list[str]:
    """Return the addresses of *host*, as the system knows them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class _CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Resolves a name once, checks every answer, and connects to one of those and to nothing else."""

    def __init__(self, policy: WebPolicy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to *host*, at an address that may be connected to."""
        addresses = await self._addresses(host, port)
        for address in addresses:
            self._policy.check_address(address, host, port)
        *others, last = addresses[:_ATTEMPTS]
        for address in others:
            with contextlib.suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return await self._network.connect_tcp(
                    str(address), port, _ATTEMPT_SECONDS, local_address, socket_options
                )
        return await self._network.connect_tcp(str(last), port, timeout, local_address, socket_options)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        with contextlib.suppress(ValueError):
            return [ip_address(host)]
        try:
            answers = list(await self._resolve(host, port))
        except (OSError, UnicodeError):
            answers = []
        if not answers:
            raise WebError("unreachable", f"{host_name(host)} is not known; correct the name", host)
        return list(dict.fromkeys(_read_address(answer, host) for answer in answers))


def _read_address(answer: str, host: str) -> Address:
    try:
        return ip_address(answer)
    except ValueError:
        raise refused(host, "its name leads to something that is not an address") from None


class ConnectionPool:
    """The connections of one client."""

    def __init__(self, policy: WebPolicy, resolve: Resolve | None, tls: ssl.SSLContext | None) -> None:
        self._policy = policy
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls or default_tls(),
            network_backend=_CheckedNetwork(policy, resolve or resolve_name),
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_IDLE,
            keepalive_expiry=_IDLE_SECONDS,
        )

    async def exchange(
        self,
        outgoing: OutgoingRequest,
        target: Target,
        departure: Departure,
        read: Callable[[httpcore.Response], Awaitable[T]],
    ) -> T:
        """Send one request and *read* the answer; what httpcore raises on the way becomes a WebError."""
        request = httpcore.Request(
            outgoing.method,
            httpcore.URL(
                scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
            ),
            headers=outgoing.lines(target, self._policy.user_agent),
            content=outgoing.body,
            extensions={"trace": departure.note},
        )
        try:
            response = await self._pool.handle_async_request(request)
            try:
                return await read(response)
            finally:
                await response.aclose()
        except _FAILURES as error:
            failure = _web_error(error, target.host)
        raise failure  # outside of the handler: it carries nothing of what was sent or received

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


_FAILURES = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    ssl.SSLError,
    OSError,
)


def _web_error(error: BaseException, host: str) -> WebError:
    name = host_name(host)
    if isinstance(error, httpcore.ProtocolError):
        return WebError("bad_response", f"{name} broke off, or did not answer in HTTP", host)
    why = _certificate_fault(error)
    if why:
        return WebError("unreachable", f"{name} can't be trusted: {why}", host)
    if isinstance(error, httpcore.ReadError | httpcore.WriteError):
        return WebError("unreachable", f"{name} broke the connection off; try again later", host)
    return WebError("unreachable", f"{name} can't be connected to; see whether it runs, and on this port", host)


def _certificate_fault(error: BaseException | None) -> str:
    """Say what is wrong with a server's certificate, if that is what went wrong."""
    for _ in range(_CAUSES):
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is invalid ({host_name(str(error.verify_message))})"
        if isinstance(error, ssl.SSLError):
            return "it does not speak TLS as expected"
        error = error.__cause__ or error.__context__ if error is not None else None
    return ""


_CAUSES = 8


@functools.cache
def default_tls() -> ssl.SSLContext:
    """Return the certificates that are trusted; reading them takes a while, so they are read once."""
    return httpx.create_ssl_context()
