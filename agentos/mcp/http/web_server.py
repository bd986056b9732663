"""A web server that runs until it is cancelled and then comes to its end."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from starlette.applications import Starlette

from agentos.base.foreign import to_the_end
from agentos.mcp.http.gateway import HTTPLimits


def host_in_url(bind: str) -> str:
    """Return an address as it stands in a URL."""
    return f"[{bind}]" if ":" in bind else bind


@contextmanager
def listening_socket(bind: str, port: int) -> Iterator[socket.socket]:
    """Listen at an address for the time of the block."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        listener = socket.create_server((bind, port), family=family)
    except OSError as error:
        raise OSError(error.errno, f"can't listen on {host_in_url(bind)}:{port}: {error.strerror}") from None
    with listener:
        # What is accepted inherits it. asyncio sets it by itself only on sockets that name their protocol; without it
        # an answer in two parts waits 40 ms for the client's acknowledgement of the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def make_web_server(
    app: Starlette,
    limits: HTTPLimits,
    cert: str | Path | None,
    key: str | Path | None,
    password: str | None,
) -> "WebServer":
    """Return uvicorn with nothing but what we ask of it. Signals stay the program's own business."""
    import uvicorn

    class UvicornServer(uvicorn.Server):
        startup_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            self.startup_done.set_result(None)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await app.state.end_streams()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
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
