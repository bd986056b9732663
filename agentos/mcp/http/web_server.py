"""A web server that runs until it is cancelled and then comes to its end."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from starlette.applications import Starlette

from agentos.base.foreign import to_the_end
from agentos.mcp.http.connection_table import ConnectionTable, OpenConnection, descriptor_limit
from agentos.mcp.http.gateway import HTTPLimits

_BACKLOG: Final = 2048
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RETRY: Final = 0.1

_logger = logging.getLogger("agentos.mcp.http.serving")


def host_in_url(bind: str) -> str:
    """Return an address as it stands in a URL."""
    return f"[{bind}]" if ":" in bind else bind


@contextmanager
def listening_socket(bind: str, port: int) -> Iterator[socket.socket]:
    """Listen at an address for the time of the block."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        listener = socket.create_server((bind, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise OSError(error.errno, f"can't listen on {host_in_url(bind)}:{port}: {error.strerror}") from None
    with listener:
        # What is accepted inherits it. asyncio sets it by itself only on sockets that name their protocol; without it
        # an answer in two parts waits 40 ms for the client's acknowledgement of the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


class Acceptor:
    """Accepts connections, one after the other, as far as there are places for them.

    asyncio's own servers accept whatever comes, and stop accepting for a second once descriptors have run out.
    make_protocol: makes what speaks on a connection, which gives the place back in the end.
    """

    def __init__(
        self,
        make_protocol: Callable[[OpenConnection], asyncio.Protocol],
        limits: HTTPLimits,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._make_protocol = make_protocol
        self._table = ConnectionTable(limits, descriptor_limit())
        self._tls = tls
        self._handshake = None if tls is None else limits.headers
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, listener: socket.socket) -> None:
        """Accept what comes to *listener*, until `stop`."""
        listener.setblocking(False)
        self._listeners.append(listener)
        self._keep(asyncio.create_task(self._accept_all(listener)))

    async def stop(self) -> None:
        """Accept nothing any more. Connections that are open stay so."""
        for listener in self._listeners:
            with suppress(NotImplementedError):  # on Windows
                asyncio.get_running_loop().remove_reader(listener)
        await asyncio.sleep(0)  # what was accepted just now is taken in, or its socket would be lost
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept_all(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, address = await asyncio.get_running_loop().sock_accept(listener)
            except OSError as error:  # of one connection that is gone again, or of descriptors that have run out
                has_made_room = error.errno in _EXHAUSTED and self._table.shrink()
                await asyncio.sleep(0 if has_made_room else _RETRY)
            else:
                self._take_in(connection, address[0])
                await asyncio.sleep(0)  # what was dropped is closed now

    def _take_in(self, connection: socket.socket, host: str) -> None:
        place = self._table.admit(host, connection.close)
        if place is None:
            connection.close()
            return
        handing = asyncio.create_task(self._hand_over(connection, place))
        place.close = handing.cancel
        handing.add_done_callback(partial(_clean_up, connection, place))
        self._keep(handing)

    async def _hand_over(self, connection: socket.socket, place: OpenConnection) -> None:
        connection.setblocking(False)
        await asyncio.get_running_loop().connect_accepted_socket(
            partial(self._make_protocol, place), connection, ssl=self._tls, ssl_handshake_timeout=self._handshake
        )


def _clean_up(connection: socket.socket, place: OpenConnection, handing: asyncio.Task[None]) -> None:
    """Let a connection go that was dropped, or whose handshake failed, before anything was said on it."""
    failure = None if handing.cancelled() else handing.exception()
    if handing.cancelled() or failure is not None:
        place.leave()
        connection.close()
    if failure is not None and not isinstance(failure, OSError):
        _logger.error("a connection could not be served", exc_info=failure)


def make_web_server(
    app: Starlette,
    limits: HTTPLimits,
    cert: str | Path | None,
    key: str | Path | None,
    password: str | None,
) -> "WebServer":
    """Return uvicorn with nothing but what we ask of it. Signals stay the program's own business."""
    import uvicorn

    from agentos.mcp.http.bounded_protocol import BoundedProtocol

    class UvicornServer(uvicorn.Server):
        startup_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            common = {"config": config, "server_state": self.server_state, "app_state": {}}
            self.acceptor = Acceptor(lambda place: BoundedProtocol(place, limits.send, **common), limits, config.ssl)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup([])
            for listener in sockets or ():
                self.acceptor.start(listener)
            self.startup_done.set_result(None)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await app.state.end_streams()
            await self.acceptor.stop()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        lifespan="off",  # entered by serve_http: what fails there is raised rather than logged
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # what a client says of where it comes from counts for nothing
        server_header=False,
        timeout_graceful_shutdown=limits.stop,
        ssl_certfile=cert,
        ssl_keyfile=key,
        ssl_keyfile_password=password,
    )
    try:
        config.load()
    except OSError as error:
        raise ValueError(f"serve_http: {cert} and {key} can't be used for TLS: {error}") from None
    return UvicornServer(config)


async def run_web_server(server: "WebServer", listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve until cancelled, and then to the end."""
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await asyncio.wait([serving, server.startup_done], return_when=asyncio.FIRST_COMPLETED)
        if server.started:
            started()
        await asyncio.shield(serving)
    except BaseException:
        server.should_exit = True
        await to_the_end(_wait_for_end(serving))
        raise


async def _wait_for_end(serving: asyncio.Task[None]) -> None:
    await asyncio.wait([serving])


class WebServer(Protocol):
    """The part of uvicorn's server that is used here."""

    startup_done: asyncio.Future[None]
    started: bool
    should_exit: bool

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit` is set."""
        ...
