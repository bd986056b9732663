"""HTTP on one connection, which keeps its place only while a request is under way."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from agentos.mcp.http.connection_table import OpenConnection


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP by h11, which bounds the size of headers (httptools does not); here their time is bounded too.

    place: what the connection holds in the table. stall: seconds until a client that does not read is left.
    """

    def __init__(self, place: OpenConnection, stall: float, **options: Any) -> None:
        super().__init__(**options)
        self._place = place
        self._stall = stall
        self._stalled: asyncio.TimerHandle | None = None

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Take over the place from whoever accepted the connection."""
        super().connection_made(transport)
        self._place.close = transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._forget_stall()
        self._place.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start the time of a further request with its first byte."""
        if not self._is_answering:
            self._place.expect_headers()
        super().data_received(data)

    def handle_events(self) -> None:
        """Keep the place if a request has begun."""
        super().handle_events()
        if self._is_answering:
            self._place.occupy()

    def on_response_complete(self) -> None:
        """Let the place go to others until the next request begins, which may be in the buffer already."""
        self._place.rest()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Leave a client that does not read what it is sent."""
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(self._stall, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        self._forget_stall()
        super().resume_writing()

    def _forget_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
