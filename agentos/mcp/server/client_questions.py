"""Questions of a bridged server, put before the person at the client whose call it runs.

In the era of sessions the client is asked while its call waits. In the era without, the answer to the call is the
question: the call goes on when the client calls again with what the person said.
"""

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from agentos.mcp.questions import Ask, asking
from agentos.mcp.report_queue import retrieve_exception
from agentos.mcp.server.client_calls import ClientCalls
from agentos.mcp.server.served_host import BRIDGES, ServedHost
from agentos.mcp.server.shown_tools import is_modern
from agentos.model.tool_call import ToolResult
from agentos.secrets.masking import MaskingLogger

Context = ServerRequestContext[Any, Any]
Answer = ToolResult | types.InputRequiredResult

PAUSED_LIMIT = 1_000
"""How many calls may wait for what a person says."""
_STATE, _KEY = "question", "question"
_ELICITS_SINCE = "2025-06-18"


def can_elicit(ctx: Context) -> bool:
    """Tell whether the client said that it can put a form before a person, and can be reached with one."""
    declared = ctx.session.client_capabilities
    elicitation = None if declared is None else declared.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    if is_modern(ctx):
        return True
    return is_version_at_least(ctx.protocol_version, _ELICITS_SINCE) and ctx.session.can_send_request


class ClientQuestions:
    """Runs calls of clients that can be asked. A call whose client does not come back ends by its own time limit."""

    def __init__(self, host: ServedHost, calls: ClientCalls, logger: MaskingLogger) -> None:
        self._bridges = host.extensions.registry(BRIDGES)
        self._calls = calls
        self._logger = logger
        self._paused: OrderedDict[str, _PausedCall] = OrderedDict()

    async def run(self, ctx: Context, id: str, coroutine: Coroutine[Any, Any, ToolResult]) -> Answer:
        """Await the call of that *id*: its result, or what is asked before there can be one."""
        if not self._may_ask() or not can_elicit(ctx):
            return await self._calls.run(ctx, id, coroutine)
        paused = _PausedCall() if is_modern(ctx) else None
        token = asking.set(self._asking_in_place(ctx) if paused is None else paused.ask)
        try:
            if paused is None:
                return await self._calls.run(ctx, id, coroutine)
            paused.start(self._calls.run(ctx, id, coroutine))
        finally:
            asking.reset(token)
        return await self._go_on(paused)

    async def resume(self, params: types.CallToolRequestParams) -> Answer | None:
        """Return how a call goes on that a client calls again; None if its sealed state is about no question."""
        id = _question_in(params.request_state)
        if id is None:
            return None
        paused = self._paused.pop(id, None)
        if paused is None:
            return ToolResult.fail("Cancelled", "the call that asked is not under way any more; make it again")
        answer = (params.input_responses or {}).get(_KEY)
        paused.answer(answer if isinstance(answer, types.ElicitResult) else types.ElicitResult(action="cancel"))
        return await self._go_on(paused)

    def _may_ask(self) -> bool:
        return any(entry.payload.server.may_ask for entry in self._bridges.list_active())

    def _asking_in_place(self, ctx: Context) -> Ask:
        async def ask(params: types.ElicitRequestFormParams) -> types.ElicitResult | None:
            try:
                schema = params.requested_schema
                return await ctx.session.elicit_form(params.message, schema, related_request_id=ctx.request_id)
            except (MCPError, ValidationError) as error:
                self._logger.info("a client could not be asked for a server: %s", error)
                return None

        return ask

    async def _go_on(self, paused: "_PausedCall") -> Answer:
        """Wait until the call has ended, or asks."""
        question = await paused.ended_or_asked()
        if question is None:
            return await paused.task
        id = secrets.token_hex(16)
        self._paused[id] = paused
        while len(self._paused) > PAUSED_LIMIT:
            self._paused.popitem(last=False)[1].task.cancel()
        request = types.ElicitRequest(params=question)
        return types.InputRequiredResult(input_requests={_KEY: request}, request_state=json.dumps({_STATE: id}))

    async def close(self) -> None:
        """End the calls that wait for what a person says."""
        paused = [one.task for one in self._paused.values()]
        self._paused.clear()
        for task in paused:
            task.cancel()
        if paused:
            await asyncio.wait(paused)


class _PausedCall:
    """A call that goes on while its client is asked; one question at a time."""

    task: "asyncio.Task[ToolResult]"

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._is_asked = asyncio.Event()
        self._question: types.ElicitRequestFormParams | None = None
        self._answered: asyncio.Future[types.ElicitResult] | None = None

    def start(self, coroutine: Coroutine[Any, Any, ToolResult]) -> None:
        self.task = asyncio.create_task(coroutine)
        self.task.add_done_callback(retrieve_exception)

    async def ask(self, params: types.ElicitRequestFormParams) -> types.ElicitResult | None:
        """Wait for what the person says to a question."""
        async with self._turn:
            self._question, self._answered = params, asyncio.get_running_loop().create_future()
            self._is_asked.set()
            return await self._answered

    def answer(self, said: types.ElicitResult) -> None:
        self._is_asked.clear()
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(said)

    async def ended_or_asked(self) -> types.ElicitRequestFormParams | None:
        """Return what is asked; None if the call has ended."""
        asked = asyncio.create_task(self._is_asked.wait())
        try:
            await asyncio.wait([self.task, asked], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the client does not wait any more
            self.task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self.task])
            raise
        finally:
            asked.cancel()
        return None if self.task.done() else self._question


def _question_in(state: str | None) -> str | None:
    try:
        named = json.loads(state or "")
    except ValueError:
        return None
    found = named.get(_STATE) if isinstance(named, dict) else None
    return found if isinstance(found, str) else None
