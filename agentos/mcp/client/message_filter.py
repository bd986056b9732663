"""What a client takes from a server and what it does not, whatever the transport.

A list of tools reaches the SDK as placeholders: a name and an input schema that can't fail, with the server's own
definition inside. One bad tool would otherwise cost the whole list, and outputs would be checked twice, by the SDK and
by the pipeline of calls.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Self

import anyio
from mcp import MCPError
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.progress_reports import ProgressReports
from agentos.mcp.client.server_questions import refusal_in

RAW_TOOL = "agentos/raw"
"""Where a placeholder keeps the server's own definition of a tool."""

_LIST_CHANGED = "notifications/tools/list_changed"
_DOCUMENTS_CHANGED = frozenset({"notifications/resources/list_changed", "notifications/prompts/list_changed"})
_CANCELLED = "notifications/cancelled"
_PROGRESS = "notifications/progress"
_PASSED_ON = frozenset({"notifications/subscriptions/acknowledged", _CANCELLED, _LIST_CHANGED})
_PARSE_FAILURE = "Failed to parse "
"""How the SDK begins what it says of an answer that can't be read; further down it quotes it, with parts left out."""
_AT_ONCE = 500
"""After how many messages others may run: what has arrived can be read without waiting."""


class MessageFilter:
    """A transport around another one, which lets through what a client has use for."""

    def __init__(
        self,
        transport: AbstractAsyncContextManager[Any],
        limits: ServerLimits,
        *,
        on_list_changed: Callable[[], bool],
        on_documents_changed: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._limits = limits
        self._on_list_changed = on_list_changed
        self._on_documents_changed = on_documents_changed
        self._list_requests: set[Any] = set()
        self._open_requests: set[Any] = set()
        self._progress: dict[Any, ProgressReports] = {}
        self._tokens = itertools.count(1)

    async def __aenter__(self) -> "tuple[_FilteredReader, _FilteredWriter]":
        read, write = await self._transport.__aenter__()
        return _FilteredReader(self, read), _FilteredWriter(self, write)

    async def __aexit__(self, *failure: object) -> bool | None:
        transport: Any = self._transport
        ended: bool | None = await transport.__aexit__(*failure)
        return ended

    @contextmanager
    def reporting_to(self, progress: ProgressReports) -> Iterator[int]:
        """Give a token, and hand what the server says under it to *progress*.

        The SDK would start two tasks for each report, however many come.
        """
        token = next(self._tokens)
        self._progress[token] = progress
        try:
            yield token
        finally:
            del self._progress[token]

    # -- sent ------------------------------------------------------------------------------------------

    def note_sent(self, message: JSONRPCMessage) -> None:
        """Remember which answers will be lists of tools, and which requests of the server are answered.

        One that is refused is told why.
        """
        if isinstance(message, JSONRPCRequest):
            if message.method == "tools/list":
                self._list_requests.add(message.id)
        elif isinstance(message, JSONRPCResponse | JSONRPCError):
            self._open_requests.discard(message.id)
            if isinstance(message, JSONRPCError) and (reason := refusal_in(message.error.message)) is not None:
                message.error.message = f"Refused: {reason}"

    def awaits_list(self, id: Any) -> bool:
        """Tell whether the answer with that id will be a list of tools."""
        return id in self._list_requests

    # -- received -----------------------------------------------------------------------------------------

    def accepts(self, message: JSONRPCMessage) -> bool:
        """Tell whether the SDK shall see a message; a list of tools in it becomes placeholders."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and not _is_ours(message.id):
            return False
        if isinstance(message, JSONRPCResponse):
            if message.id in self._list_requests:
                self._list_requests.discard(message.id)
                message.result = self._in_placeholders(message.result)
            return True
        if isinstance(message, JSONRPCRequest):
            return self._accepts_request(message)
        if isinstance(message, JSONRPCNotification):
            return self._accepts_notification(message)
        self._list_requests.discard(message.id)
        if message.error.code == CONNECTION_CLOSED:
            message.error.data = _AnswerErrorData(message.error.data)
        if message.error.message.startswith(_PARSE_FAILURE):
            message.error.message = message.error.message.partition("\n")[0]
        return True

    def _accepts_request(self, message: JSONRPCRequest) -> bool:
        """Take no more requests than can be answered: a server that does not read must not fill our memory."""
        if message.id in self._open_requests or len(self._open_requests) >= self._limits.requests:
            return False
        self._open_requests.add(message.id)
        return True

    def _accepts_notification(self, message: JSONRPCNotification) -> bool:
        if message.method == _LIST_CHANGED:
            return self._on_list_changed()
        if message.method in _DOCUMENTS_CHANGED:
            self._on_documents_changed()
        if message.method == _PROGRESS:
            return self._note_progress(message.params or {})
        if message.method == _CANCELLED:
            id = (message.params or {}).get("requestId")
            self._open_requests.discard(id if isinstance(id, str | int) else None)
        return message.method in _PASSED_ON

    def _note_progress(self, params: dict[str, Any]) -> bool:
        token = params.get("progressToken")
        progress = self._progress.get(token) if type(token) is int else None
        if progress is not None:
            progress.note(params)
        return False

    def _in_placeholders(self, result: dict[str, Any]) -> dict[str, Any]:
        tools = result.get("tools")
        if not isinstance(tools, list):
            return result
        return {**result, "tools": [_placeholder(tool) for tool in tools[: self._limits.tools + 1]]}


class _AnswerErrorData:
    """The data of an error that answers one request with the code by which the SDK says that the connection is closed.

    A server can use that code, and the SDK itself does where the stream of one answer breaks off.
    """

    def __init__(self, data: Any) -> None:
        self.data = data


def is_closed(error: BaseException) -> bool:
    """Tell whether *error* says that the connection is closed: an answer with the same code does not."""
    return (
        isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and not isinstance(error.data, _AnswerErrorData)
    )


def _is_ours(id: Any) -> bool:
    """Tell whether a request of ours can have had that id. The SDK would take the text of a number for the number."""
    return not isinstance(id, str) or coerce_request_id(id) is id


def _placeholder(tool: Any) -> dict[str, Any]:
    """Return a tool that the SDK takes as it is. It mirrors arguments into headers as the input schema says."""
    said = tool if isinstance(tool, dict) else {}
    name, schema = said.get("name"), said.get("inputSchema")
    return {
        "name": name if isinstance(name, str) else "",
        "inputSchema": schema if isinstance(schema, dict) and schema.get("type") == "object" else {"type": "object"},
        "_meta": {RAW_TOOL: tool},
    }


class _FilteredStream:
    """What both directions share."""

    def __init__(self, filter: MessageFilter, inner: Any) -> None:
        self._filter = filter
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> bool | None:
        ended: bool | None = await self._inner.__aexit__(*failure)
        return ended


class _FilteredReader(_FilteredStream):
    def __init__(self, filter: MessageFilter, inner: Any) -> None:
        super().__init__(filter, inner)
        self._count = 0

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage:
        while True:
            item = await self._inner.receive()
            self._count += 1
            if self._count % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if isinstance(item, SessionMessage) and self._filter.accepts(item.message):
                return item


class _FilteredWriter(_FilteredStream):
    async def send(self, item: SessionMessage, /) -> None:
        self._filter.note_sent(item.message)
        await self._inner.send(item)
