"""A connection to one MCP server, kept up for as long as it is wanted.

One long-lived task connects, and connects again when the connection breaks; each connection is a `Session`. Calls are
made from the tasks of their callers: each ends when its answer comes, when its caller gives up, or when the session it
was made in is lost.
"""

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from mcp import Client
from mcp_types import CallToolResult

from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.progress_reports import ProgressReports
from agentos.mcp.client.server_spec import ReadSecret, ServerSpec
from agentos.mcp.client.server_text import DisconnectReason, ServerText
from agentos.mcp.client.session import ConnectionLostError, ServerSession, ToolListing
from agentos.model.pack_context import PackLogger
from agentos.processes.supervision import Supervision, SupervisionRules

T = TypeVar("T")


class ServerConnection:
    """Keeps one server connected and hands calls to it.

    `listing` is the last list of tools, kept while the connection is down. `changed` is set whenever it, or what
    `why_not` says, is another one than before.
    """

    def __init__(
        self, server: ServerSpec, *, secret: ReadSecret, text: ServerText, logger: PackLogger, limits: ServerLimits
    ) -> None:
        self.server = server
        self.listing: ToolListing | None = None
        self.changed = asyncio.Event()
        self.epoch = 0
        """Goes up when the connection comes or goes."""
        self._secret = secret
        self._text = text
        self._logger = logger
        self._limits = limits
        self._session: ServerSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._reason = DisconnectReason.plain("it was not reached yet")
        self._supervision = Supervision(_rules(limits), time.monotonic)
        self._attempted = asyncio.Event()
        self._reached = asyncio.Event()
        self._closing = asyncio.Event()

    # -- what is known -----------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Tell whether calls can be made."""
        return self._session is not None and self._session.is_open

    @property
    def is_closing(self) -> bool:
        """Tell whether it is being closed for good."""
        return self._closing.is_set()

    @property
    def protocol(self) -> str | None:
        """Return the version of the protocol that is spoken; None while not connected."""
        return self._session.protocol if self._session is not None else None

    def why_not(self, *, is_whole: bool = True) -> str | None:
        """Say why no call can be made now; None if one can. What a model may read is not whole."""
        if self.is_open:
            return None
        why = self._reason.whole if is_whole else self._reason.brief
        at = self._supervision.retry_at
        retry = "" if at is None else f"; retry in {max(0.0, at - time.monotonic()):.1f} s"
        return f"{self.server.owner} is not connected: {why}{retry}"

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: ProgressReports) -> CallToolResult:
        """Call a tool of the server; LostError if the connection is not there, or does not last until the answer."""
        session = self._session
        if session is None or not session.is_open:
            raise ConnectionLostError(self.why_not(is_whole=False))
        return await session.call(tool, arguments, progress)

    async def ask(self, question: Callable[[Client], Awaitable[T]], what: str) -> T:
        """Ask the server *what*; LostError if the connection is not there, or does not last until the answer."""
        session = self._session
        if session is None or not session.is_open:
            raise ConnectionLostError(self.why_not(is_whole=False))
        return await session.ask(question, what)

    # -- life --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to connect."""
        # In a context of its own: what the task does later is no part of the change that is under way here.
        self._task = asyncio.create_task(self._run(), name=self.server.owner, context=contextvars.Context())

    async def wait(self, seconds: float, *, for_success: bool) -> bool:
        """Wait until the server is connected, or until the first attempt has ended; tell whether it is connected."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (self._reached if for_success else self._attempted).wait()
        return self.is_open

    async def close(self) -> None:
        """End the connection: calls under way end, a process ends, and nothing is left."""
        was_open = self.is_open
        self._closing.set()
        self._reason = DisconnectReason.plain("it was closed")
        self._supervision.stopped()
        if self._session is not None:
            self._session.end("it was closed")
        if self._task is None:
            return
        if was_open:
            await asyncio.wait([self._task], timeout=2 * self._limits.grace + 0.5)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while not self._closing.is_set():
            self._supervision.begin()
            session = self._session = self._new_session()
            self._note_lost(session, await session.run())
            await self._wait()

    def _new_session(self) -> ServerSession:
        return ServerSession(
            self.server,
            secret=self._secret,
            text=self._text,
            logger=self._logger,
            limits=self._limits,
            on_listing=self._publish,
            on_lost=self._note_lost,
        )

    def _publish(self, session: ServerSession, listing: ToolListing) -> None:
        if session is self._session and not self._closing.is_set():
            self.epoch += self._supervision.mounted(self._supervision.mount)
            self.listing = listing
            self._attempted.set()
            self._reached.set()
            self.changed.set()

    def _note_lost(self, session: ServerSession, reason: DisconnectReason) -> None:
        """Tell why no call can be made from now on; what is left of the session may still be taken down."""
        if session is not self._session:  # noted already
            return
        supervision = self._supervision
        if session.has_answered:
            supervision.succeeded(supervision.mount)
        self._session = None
        self.epoch += 1
        if not self._closing.is_set():
            self._reason = reason
            supervision.struck(supervision.mount, reason.brief)
            self._logger.warning("%s", self.why_not())
        self._attempted.set()
        self.changed.set()

    async def _wait(self) -> None:
        """Wait for the next attempt, or for the end."""
        retry_at = self._supervision.retry_at
        while retry_at is not None and time.monotonic() < retry_at and not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(retry_at - time.monotonic()):
                    await self._closing.wait()


def _rules(limits: ServerLimits) -> SupervisionRules:
    """Return how a server is supervised: each loss counts, and is waited for."""
    return SupervisionRules(
        strikes=1,
        first_delay=limits.first_delay,
        longest_delay=limits.longest_delay,
        steady=limits.steady,
        jitter=0.5,
    )
