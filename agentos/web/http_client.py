"""A request, its redirects, and its answer."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import attrs

from agentos.base.extras import import_extra
from agentos.web._outgoing import Departure, File, OutgoingRequest, Pairs, make_request, with_params
from agentos.web._responses import WebResponse, bad_response, read_body, read_headers
from agentos.web._urls import Target, parse_url, redirect_target
from agentos.web.reach_policy import WebPolicy
from agentos.web.web_errors import WebError, host_name, refused

if TYPE_CHECKING:
    import httpcore

    from agentos.web._connections import ConnectionPool

_SEE_OTHER = (301, 302, 303)
_SAME_AGAIN = (307, 308)


class WebClient:
    """Sends requests within a policy. Nothing is kept between requests but connections: no cookies, no credentials.

    resolve: a function (host, port) that returns the addresses of a name, awaited; the system's by default.
    tls: which certificates are trusted; the usual ones by default.
    """

    def __init__(
        self,
        policy: WebPolicy | None = None,
        *,
        resolve: Callable[[str, int], Awaitable[Iterable[str]]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.policy = policy or WebPolicy()
        self._resolve = resolve
        self._tls = tls
        self._pool: ConnectionPool | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, Any] | Pairs | None = None,
        headers: Mapping[str, str] | Pairs | None = None,
        json: Any = None,
        content: bytes | str | None = None,
        data: Mapping[str, Any] | Pairs | None = None,
        files: Mapping[str, File] | None = None,
        max_bytes: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - narrows the policy's
        max_redirects: int | None = None,
    ) -> WebResponse:
        """Send a request and return the answer, whatever its status; raise WebError if no answer came.

        A redirect is followed to where the policy allows it: without credentials and with no other headers of the
        caller when the origin changes, never from https to http. Of `max_redirects=0` the redirect is the answer.
        The limits can be made smaller than the policy's, not larger.
        """
        target = parse_url(with_params(url, params))
        sent = make_request(method, headers, json=json, content=content, data=data, files=files)
        policy = self._narrowed(max_bytes=max_bytes, timeout=timeout, max_redirects=max_redirects)
        departure = Departure()
        try:
            async with asyncio.timeout(policy.timeout):
                return await self._follow(sent, target, policy, departure)
        except TimeoutError:
            name = host_name(target.host)
            message = f"{name} did not answer within {policy.timeout:g} s; try again later, or ask for less"
            failure = WebError("timeout", message, target.host)
        except WebError as error:
            failure = error
        failure.is_sent = departure.is_sent
        raise failure

    def _narrowed(self, **asked: float | None) -> WebPolicy:
        """Return the policy with the limits of one request."""
        given = {name: min(value, getattr(self.policy, name)) for name, value in asked.items() if value is not None}
        return attrs.evolve(self.policy, **given) if given else self.policy

    async def _follow(
        self, sent: OutgoingRequest, target: Target, policy: WebPolicy, departure: Departure
    ) -> WebResponse:
        """Send a request, and again to wherever it is redirected, each time checked anew."""
        for _ in range(policy.max_redirects + 1):
            policy.check(target)
            response = await self._exchange(sent, target, policy.max_bytes, departure)
            location = response.headers.get("location")
            is_redirect = response.status in (*_SEE_OTHER, *_SAME_AGAIN)
            if policy.max_redirects == 0 or not is_redirect or location is None:
                return response
            sent, target = _redirected(sent, target, response.status, location)
        raise bad_response(target.host, f"redirects more than {policy.max_redirects} times")

    async def _exchange(
        self, sent: OutgoingRequest, target: Target, max_bytes: int, departure: Departure
    ) -> WebResponse:
        """Send one request and read the answer to its end."""

        async def read(response: "httpcore.Response") -> WebResponse:
            headers = read_headers(response.headers, target.host)
            stream = cast("AsyncGenerator[bytes, None]", response.aiter_stream())
            async with contextlib.aclosing(stream) as chunks:
                is_head = sent.method == "HEAD"  # says how long a body would be, and has none
                body = b"" if is_head else await read_body(chunks, headers, max_bytes, target.host)
            return WebResponse(response.status, headers, body, str(target), target.host)

        return await self._connections().exchange(sent, target, departure, read)

    def _connections(self) -> "ConnectionPool":
        if self._pool is None:
            for library in ("httpcore", "httpx"):
                import_extra(library, "http")
            from agentos.web._connections import ConnectionPool

            self._pool = ConnectionPool(self.policy, self._resolve, self._tls)
        return self._pool

    async def aclose(self) -> None:
        """Close all connections. A request after that opens new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _redirected(sent: OutgoingRequest, target: Target, status: int, location: str) -> tuple[OutgoingRequest, Target]:
    """Return what is sent next, and where to."""
    new = redirect_target(target, location)
    if target.scheme == "https" and new.scheme == "http":
        raise refused(new.host, f"{host_name(target.host)} redirects there from https to http")
    if status in _SEE_OTHER and sent.method not in ("GET", "HEAD"):
        sent = sent.as_get()
    if new.origin != target.origin:
        if sent.body is not None:
            raise refused(new.host, f"{host_name(target.host)} redirects there and wants what was sent to go with it")
        sent = sent.without_credentials()
    return sent, new
