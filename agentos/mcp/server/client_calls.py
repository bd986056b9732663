"""A call under way: its progress goes to the client, the client's cancellation goes to the tool."""

import asyncio
import itertools
import math
import secrets
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio
from mcp.server.context import ServerRequestContext

from agentos.mcp.report_queue import ReportQueue, is_number, retrieve_exception
from agentos.mcp.server.served_host import ServedHost
from agentos.mcp.server.wire_format import clipped, encodable
from agentos.secrets.masking import MaskingLogger
from agentos.tools.tool_events import ToolProgress

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]

END_GRACE = 5.0
"""How long a cancelled tool may clean up, and how long a client may take to read its last progress."""
_MESSAGE_LIMIT = 2_000
_BACKLOG = 100
"""How many reports of one call wait for a client that reads slowly; older ones are dropped."""


def wants_progress(ctx: Context) -> bool:
    """Tell whether the client asked for progress: by a token, or in the same process by a callback."""
    if ctx.meta is not None and ctx.meta.get("progress_token") is not None:
        return True
    outbound = ctx.session._request_outbound  # noqa: SLF001 - in memory there is no token, and no public sign
    return getattr(getattr(outbound, "_inner", outbound), "_on_progress", None) is not None


class _ProgressSender(ReportQueue):
    """The progress of one call on its way to one client."""

    def __init__(self, ctx: Context) -> None:
        super().__init__(lambda report: ctx.session.report_progress(*report[:2], report[2] or None), _BACKLOG)
        self._last_sent = -math.inf

    def take(self, event: ToolProgress) -> None:
        """Send a report. The protocol wants progress to grow: one that does not is left out."""
        if is_number(event.done) and event.done > self._last_sent:
            self._last_sent = event.done
            total = event.total if is_number(event.total) else None
            self.push((event.done, total, encodable(clipped(str(event.message), _MESSAGE_LIMIT))))


class ClientCalls:
    """Runs calls for clients. Listens to the host's events only while a client wants progress."""

    def __init__(self, host: ServedHost, logger: MaskingLogger) -> None:
        self._host = host
        self._logger = logger
        self._prefix = f"mcp-{secrets.token_hex(4)}"
        self._numbers = itertools.count(1)
        self._senders: dict[str, _ProgressSender] = {}
        self._abandoned: set[asyncio.Task[Any]] = set()

    def new_id(self) -> str:
        """Return an id that no other call has: clients number their requests from 1, each for itself."""
        return f"{self._prefix}-{next(self._numbers)}"

    async def run(self, ctx: Context, id: str, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await the call of that *id* for a client, which may want to see its progress and may cancel it."""
        if not wants_progress(ctx) or id in self._senders:
            return await self._run_shielded(id, coroutine)
        sender = self._start_sending(id, ctx)
        try:
            result = await self._run_shielded(id, coroutine)
            await sender.finish(END_GRACE)
        finally:
            sender.stop()
            self._stop_sending(id)
        return result

    # -- progress ----------------------------------------------------------------------------------------------

    def _start_sending(self, id: str, ctx: Context) -> _ProgressSender:
        if not self._senders:
            self._host.extensions.on(self._on_event)
        sender = self._senders[id] = _ProgressSender(ctx)
        return sender

    def _stop_sending(self, id: str) -> None:
        del self._senders[id]
        if not self._senders:
            self._host.extensions.off(self._on_event)

    def _on_event(self, event: Any) -> None:
        if type(event) is ToolProgress and (sender := self._senders.get(event.call_id or "")) is not None:
            sender.take(event)

    # -- cancellation ------------------------------------------------------------------------------------------

    async def _run_shielded(self, id: str, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await in a task of its own: the SDK cancels again at every await, and a tool could not clean up."""
        ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(_hand_on_result(coroutine, ended))
        try:
            return await ended
        except asyncio.CancelledError:
            if not task.done():
                await self._cancel(id, task)
            raise

    async def _cancel(self, id: str, task: "asyncio.Task[Any]") -> None:
        """Cancel a call whose client does not wait any more, once, and let it clean up."""
        with anyio.CancelScope(shield=True):
            if not await self._host.tools.cancel(id):
                task.cancel()
            await asyncio.wait([task], timeout=END_GRACE)
        if not task.done():
            self._logger.warning("a tool goes on after its call %s was cancelled", id)
            self._abandoned.add(task)
            task.add_done_callback(self._abandoned.discard)
        task.add_done_callback(retrieve_exception)

    async def close(self) -> None:
        """Cancel what goes on although its client is gone."""
        for task in self._abandoned:
            task.cancel()
        if self._abandoned:
            await asyncio.wait(set(self._abandoned), timeout=END_GRACE)


async def _hand_on_result(coroutine: Coroutine[Any, Any, T], ended: "asyncio.Future[T]") -> None:
    """Hand on how *coroutine* ends, at once: waiting for its task would take another turn of the loop."""
    try:
        result = await coroutine
    except Exception as error:  # noqa: BLE001 - raised where the result is awaited
        if not ended.done():
            ended.set_exception(error)
    else:
        if not ended.done():
            ended.set_result(result)
    finally:
        ended.cancel()
