"""One connection to a server, from its beginning to its end."""

import asyncio
import contextlib
import functools
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import attrs
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import CallToolResult, Implementation
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agentos._version import __version__
from agentos.base.foreign import Border
from agentos.mcp.client.http_transport import BoundedTransport, http_streams
from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.message_filter import RAW_TOOL, MessageFilter, is_closed
from agentos.mcp.client.progress_reports import ProgressReports
from agentos.mcp.client.server_process import ProcessReader, ProcessWriter, started_process
from agentos.mcp.client.server_questions import ServerQuestions
from agentos.mcp.client.server_spec import (
    MissingSecretError,
    ReadSecret,
    ServerSpec,
    UnfitSecretError,
    header_reader,
    with_secrets,
)
from agentos.mcp.client.server_text import DisconnectReason, ServerText
from agentos.model.pack_context import PackLogger
from agentos.processes.backoff import Backoff
from agentos.processes.spawned_process import CannotStartError

T = TypeVar("T")
_LISTEN = 5.0
_ENDED = "the connection ended"
_CLIENT_INFO = Implementation(name="agentos", version=__version__)


class ConnectionLostError(Exception):
    """The connection was lost, or is not there; the message says why."""

    def __init__(self, message: str | None, *, may_have_run: bool = False) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run


@attrs.frozen(kw_only=True)
class ToolListing:
    """What a server said of its tools, not checked yet, and what was left out of the list."""

    tools: tuple[Any, ...] = attrs.field(repr=False)
    cut: str | None = None
    documents_version: int = 0
    """Goes up when the server says that its resources or prompts changed."""
    instructions: str | None = attrs.field(default=None, repr=False)


class ServerSession:
    """A connection: made once, used until it ends, and never mended.

    *publish* is called with every list of tools; before the first one, no calls are taken. *lost* is called with the
    reason when it is over, before it is taken down.
    """

    def __init__(
        self,
        server: ServerSpec,
        *,
        secret: ReadSecret,
        text: ServerText,
        logger: PackLogger,
        limits: ServerLimits,
        on_listing: Callable[["ServerSession", ToolListing], None],
        on_lost: Callable[["ServerSession", DisconnectReason], None],
    ) -> None:
        self._server = server
        self._secret = text.reading(secret)
        self._text = text
        self._logger = logger
        self._limits = limits
        self._on_listing = on_listing
        self._on_lost = on_lost
        self.has_answered = False
        """A call was answered: the server does work."""
        self._client: Client | None = None
        self._filter: MessageFilter | None = None
        self._wake = asyncio.Event()
        self._ended: str | None = None
        self._has_changed = False
        self._documents_version = 0
        self._questions = ServerQuestions(server, text)
        self._reason_of_process: Callable[[], Awaitable[DisconnectReason]] | None = None
        self._transport: BoundedTransport | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether calls can be made."""
        return self._client is not None and self._ended is None

    @property
    def protocol(self) -> str | None:
        """Return the version of the protocol that is spoken, once it is agreed on."""
        return None if self._client is None else self._client.protocol_version

    def end(self, reason: str = _ENDED) -> None:
        """Note that the connection is over, or ask it to be. The first reason counts."""
        if self._ended is None:
            self._ended = reason
        self._wake.set()

    async def run(self) -> DisconnectReason:
        """Connect and stay connected; return why that ended, when nothing of it is left."""
        try:
            with Border() as border:  # a server is foreign code, and so is what talks to it
                async with contextlib.AsyncExitStack() as stack:
                    with Border() as serving:  # with what is left of the process at hand
                        await self._serve(stack)
                    reason = await self._reason(serving.error)
                    self.end()
                    self._on_lost(self, reason)
                    return reason
            return self._noted_reason or self._reason_for(border.raised)
        finally:
            self.end()

    async def _serve(self, stack: contextlib.AsyncExitStack) -> None:
        async with asyncio.timeout(self._limits.connect):
            client = await self._connect(stack)
            await self._listen(client, stack)
            listing = await self._list(client)
        self._client = client
        stack.callback(self.end)  # first of all: no new call while the connection is taken down
        self._on_listing(self, listing)
        await self._stay(client)

    async def _stay(self, client: Client) -> None:
        """Wait for the end; list the tools again when they changed, not too often."""
        listed = time.monotonic()
        while self._ended is None:
            self._wake.clear()
            if not self._has_changed:
                await self._wake.wait()
            elif await self._waited_until(listed + self._limits.pause):
                self._has_changed = False
                async with asyncio.timeout(self._limits.connect):
                    listing = await self._list(client)
                self._on_listing(self, listing)
                listed = time.monotonic()

    async def _waited_until(self, until: float) -> bool:
        """Wait for a moment; False if something happened first."""
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await self._wake.wait()
        except TimeoutError:
            return True
        return False

    def _note_list_changed(self) -> bool:
        """Note that the list of tools changed; tell whether it was not noted before."""
        if self._has_changed:
            return False
        self._has_changed = True
        self._wake.set()
        return True

    def _note_documents_changed(self) -> None:
        """Note that resources or prompts changed: it is told with the next list of tools."""
        self._documents_version += 1
        self._note_list_changed()

    # -- connecting --------------------------------------------------------------------------------------------

    async def _connect(self, stack: contextlib.AsyncExitStack) -> Client:
        """Start the process or reach the address, and agree on a version of the protocol."""
        transport = await self._process(stack) if self._server.command is not None else self._address()
        self._filter = MessageFilter(
            transport,
            self._limits,
            on_list_changed=self._note_list_changed,
            on_documents_changed=self._note_documents_changed,
        )
        ask = self._questions.elicit if self._server.may_ask else None
        client = Client(self._filter, client_info=_CLIENT_INFO, cache=None, elicitation_callback=ask)
        return await stack.enter_async_context(client)

    async def _process(self, stack: contextlib.AsyncExitStack) -> contextlib.AbstractAsyncContextManager[Any]:
        server = self._server
        child = await stack.enter_async_context(
            started_process(
                str(server.command),
                server.args,
                with_secrets(server.env, self._secret),
                server.cwd,
                limits=self._limits,
                text=self._text,
                logger=self._logger,
                on_end=self.end,
            )
        )
        self._reason_of_process = child.why_ended
        awaits_list = lambda id: self._filter is not None and self._filter.awaits_list(id)  # noqa: E731 - made later
        output = ProcessReader(child, self._limits, self._logger, awaits_list=awaits_list)
        return contextlib.nullcontext((output, ProcessWriter(child)))

    def _address(self) -> contextlib.AbstractAsyncContextManager[Any]:
        headers = with_secrets(self._server.headers, header_reader(self._secret))
        self._transport = BoundedTransport(self._limits, self.end)
        url = str(self._server.url)
        return http_streams(url, headers, self._transport, limits=self._limits, patience=self._server.timeout)

    async def _listen(self, client: Client, stack: contextlib.AsyncExitStack) -> None:
        """Hear of changes of the lists. In the newer era of the protocol that has to be asked for."""
        wanted = _lists_that_change(client)
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not wanted:
            return
        heard = asyncio.Event()
        task = asyncio.create_task(self._keep_listening(client, heard, wanted), name=f"{self._server.owner} changes")
        stack.push_async_callback(_finish, task)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LISTEN):
                await heard.wait()

    async def _keep_listening(self, client: Client, heard: asyncio.Event, wanted: Mapping[str, Any]) -> None:
        backoff = Backoff(self._limits.first_delay, self._limits.longest_delay, jitter=0.5)
        while True:
            try:
                async with client.listen(**wanted) as events:
                    if heard.is_set():
                        self._note_documents_changed()  # changes in between were not reported
                    heard.set()
                    async for _ in events:
                        backoff.reset()
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                self._logger.debug("changes of the list are not reported: %s", self._reason_for(error).whole)
            heard.set()
            await asyncio.sleep(backoff.next())

    # -- listing -----------------------------------------------------------------------------------------------

    async def _list(self, client: Client) -> ToolListing:
        tools: list[Any] = []
        cut = None
        if client.server_capabilities.tools is not None:
            cut = await self._gather(client, tools)
        version = self._documents_version
        return ToolListing(tools=tuple(tools), cut=cut, documents_version=version, instructions=client.instructions)

    async def _gather(self, client: Client, tools: list[Any]) -> str | None:
        """Put what the server says of each tool in *tools*; say why not all of it is there, if it is not."""
        limits = self._limits
        cursor: str | None = None
        seen: set[int] = set()
        room = limits.listing
        for _ in range(limits.pages):
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            for placeholder in page.tools:
                raw = (placeholder.meta or {}).get(RAW_TOOL)
                room -= len(json.dumps(raw))
                if len(tools) == limits.tools or room < 0:
                    return f"only the first {len(tools):,} tools are taken"
                tools.append(raw)
            cursor = page.next_cursor
            if cursor is None:
                return None
            if hash(cursor) in seen:
                return "the list of tools leads back to its own beginning"
            seen.add(hash(cursor))
        return f"the list of tools has more than {limits.pages} pages"

    # -- calls -------------------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: ProgressReports) -> CallToolResult:
        """Call a tool of the server while the session is open; LostError if it does not last until the answer."""
        assert self._filter is not None  # noqa: S101 - it is open
        with self._questions.of_call(), self._filter.reporting_to(progress) as token:
            meta = types.RequestParamsMeta(progress_token=token)
            call = functools.partial(self._call_with, tool, dict(arguments), meta)
            return await self.ask(call, "the call", "; it may have taken effect")

    async def _call_with(
        self, tool: str, arguments: dict[str, Any], meta: types.RequestParamsMeta, client: Client
    ) -> CallToolResult:
        return await client.call_tool(tool, arguments, meta=meta)

    async def ask(self, question: Callable[[Client], Awaitable[T]], what: str, note: str = "") -> T:
        """Ask the server *what* while the session is open; LostError if it does not last until the answer."""
        assert self._client is not None  # noqa: S101 - it is open
        try:
            answer = await question(self._client)
        except Exception as error:
            if not is_closed(error) and self._ended is None:
                self.has_answered = True
                raise
            why = await self._reason(error)
            message = f"{self._server.owner} went away during {what}: {why.brief}{note}"
            raise ConnectionLostError(message, may_have_run=bool(note)) from None
        self.has_answered = True
        return answer

    # -- reasons -------------------------------------------------------------------------------------------------

    async def _reason(self, error: BaseException | None = None) -> DisconnectReason:
        """Say why the connection is over: what was noted, else what became of the process, else the error."""
        if self._noted_reason is not None:
            return self._noted_reason
        if self._reason_of_process is not None and self._ended is not None:
            return await self._reason_of_process()
        return DisconnectReason.plain(_ENDED) if error is None else self._reason_for(error)

    @property
    def _noted_reason(self) -> DisconnectReason | None:
        """Return the reason of the end, if somebody knew one."""
        return None if self._ended in (None, _ENDED) else DisconnectReason.plain(str(self._ended))

    def _reason_for(self, error: BaseException) -> DisconnectReason:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, TimeoutError | httpx2.TimeoutException):
            return DisconnectReason.plain(f"it did not answer within {self._limits.connect:g} s")
        if isinstance(error, CannotStartError | MissingSecretError | UnfitSecretError):
            return DisconnectReason.plain(self._text.clip(str(error)))
        if isinstance(error, MCPError):
            status = self._transport.status if self._transport is not None else None
            code = f" (HTTP {status})" if status is not None else ""
            brief = _ENDED if is_closed(error) else f"it answers with the error {error.code}"
            return DisconnectReason(f"{brief}{code}", self._text.clip(f"{error.message}{code}"))
        name = type(error).__name__
        return DisconnectReason(f"it failed with {name}", self._text.clip(f"{name}: {error}"))


def _lists_that_change(client: Client) -> dict[str, Any]:
    """Return the lists of which a server says that it tells when they change."""
    said = client.server_capabilities
    lists = {"tools": said.tools, "prompts": said.prompts, "resources": said.resources}
    return {f"{name}_list_changed": True for name, one in lists.items() if one is not None and one.list_changed}


async def _finish(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
