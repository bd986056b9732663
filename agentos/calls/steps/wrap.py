"""Middleware of packs, around the tool: it may answer itself, run the tool again, or change its result."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agentos.base.foreign import type_name
from agentos.calls.active_middleware import ActiveMiddleware, MiddlewareCall
from agentos.calls.invocation import Invocation, Next
from agentos.calls.steps.decide import why_not_run
from agentos.calls.steps.guard import ask_about_call
from agentos.calls.steps.validate import invalid_arguments
from agentos.model.guarding import copied_json
from agentos.model.tool_call import ToolResult
from agentos.payloads.foreign_job import ForeignJob, took_too_long
from agentos.payloads.payload_context import PayloadContext
from agentos.schema.validation import BadArguments

Rest = Callable[..., Awaitable[ToolResult]]


async def wrap(invocation: Invocation, next: Next) -> ToolResult:
    """Run the tool inside of its middleware; what comes out is checked like what a tool returned."""
    around = _Around(invocation, invocation.services.plans.of(invocation.ready).middleware)
    try:
        result = await around.run(0)
    finally:
        around.close()
    invocation.is_answered = True
    if result is around.last:  # it is as the tool gave it, and was checked then
        invocation.result = result
    else:
        invocation.result, invocation.value = None, result
    return await next(invocation)


class _Around:
    """The middleware of one call, under way."""

    def __init__(self, invocation: Invocation, layers: Sequence[ActiveMiddleware]) -> None:
        self._invocation = invocation
        self._layers = layers
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Future[ToolResult]] = set()
        self._is_over = False
        self.last: ToolResult | None = None
        """What the tool itself came to last."""

    def close(self) -> None:
        """Run nothing any more."""
        self._is_over = True
        for task in self._tasks:
            task.cancel()

    async def run(self, number: int) -> ToolResult:
        """Run the rest, from one layer inwards."""
        if number < len(self._layers):
            return await _Layer(self, self._invocation, self._layers[number], number).run()
        async with self._turn:  # one after another: there is one call
            self.last = await self._run_tool()
        return self.last

    async def _run_tool(self) -> ToolResult:
        invocation = self._invocation
        if self._is_over:
            raise RuntimeError("the call is over; `next` can't be called any more")
        if invocation.ended_by == "timeout":  # that was an earlier attempt
            invocation.ended_by, invocation.is_cancelled = None, False
        invocation.result = invocation.value = None
        invocation.services.in_flight.add(invocation)
        return await invocation.services.run_tool(invocation)

    async def with_arguments(self, arguments: Any, number: int) -> ToolResult:
        """Run the rest with other arguments, if they may run: only reads, checked and guarded like those before."""
        invocation, before = self._invocation, self._invocation.arguments
        if arguments == before:
            return await self.run(number)
        if invocation.ready.tool.effect != "read" or invocation.recorder is not None:
            message = "middleware can't change the arguments of a call that changes something or was approved"
            return invocation.failure("Refused", message)
        try:
            invocation.arguments = invocation.ready.checker.arguments(arguments)
            return await self._refusal() or await self.run(number)
        except BadArguments as error:
            return invalid_arguments(invocation.services.results, invocation.ready, error)
        finally:
            invocation.arguments = before

    async def _refusal(self) -> ToolResult | None:
        invocation = self._invocation
        refusal = await ask_about_call(invocation)
        if refusal is not None or not invocation.services.has_access:
            return refusal
        reason = await why_not_run(invocation)
        return None if reason is None else invocation.failure("Refused", reason)

    def in_loop(self, call: Awaitable[ToolResult], loop: asyncio.AbstractEventLoop) -> ToolResult:
        """Run the rest for middleware that runs in a thread, and wait for it there."""
        return asyncio.run_coroutine_threadsafe(self._kept(call), loop).result()

    async def _kept(self, call: Awaitable[ToolResult]) -> ToolResult:
        task = asyncio.ensure_future(call)
        self._tasks.add(task)
        try:
            return await task
        finally:
            self._tasks.discard(task)


class _Layer:
    """One middleware of a call. Its time limit counts its own time: what is beneath it has limits of its own."""

    def __init__(self, around: _Around, invocation: Invocation, layer: ActiveMiddleware, number: int) -> None:
        self._around = around
        self._invocation = invocation
        self._layer = layer
        self._number = number
        services = invocation.services
        self._job = ForeignJob(
            lambda: layer.function(_shown(invocation, layer), self.next if layer.is_async else self.next_in_thread),
            is_async=layer.is_async,
            seconds=layer.timeout,
            threads=services.threads,
            users=layer.users,
            depth=invocation.depth,
        )

    async def run(self) -> ToolResult:
        answer, error = await self._job.start().outcome()
        if error is None and type(answer) is ToolResult:
            return answer
        layer, invocation = self._layer, self._invocation
        if error is None:
            what = f"answered with a {type_name(answer)}; expected a ToolResult"
        elif took_too_long(error):
            what = f"took longer than {layer.timeout} s"
        else:
            what = f"raised {type_name(error)}: {invocation.services.masker.describe(error)}"
        invocation.services.logger.warning("middleware %s %s", layer.qualified_id, what, exc_info=error)
        did = "the tool did run, but" if invocation.has_run else "the tool did not run:"
        return invocation.failure("MiddlewareFailed", f"{did} the middleware {layer.qualified_id} {what}")

    async def next(self, arguments: Any = None) -> ToolResult:
        """Run the rest and return its result; with other arguments only where a call only reads."""
        around, inner = self._around, self._number + 1
        with self._job.paused():
            return await (around.run(inner) if arguments is None else around.with_arguments(arguments, inner))

    def next_in_thread(self, arguments: Any = None) -> ToolResult:
        """Run the rest for middleware in a thread."""
        with self._job.waiting():
            return self._around.in_loop(self.next(arguments), self._job.future.get_loop())


def _shown(invocation: Invocation, layer: ActiveMiddleware) -> MiddlewareCall:
    ready = invocation.ready
    return MiddlewareCall(
        tool=ready.qualified_id,
        name=ready.tool.name,
        arguments=copied_json(invocation.arguments),
        effect=ready.tool.effect,
        idempotent=ready.tool.idempotent,
        principal=invocation.principal,
        session=invocation.session,
        depth=invocation.depth,
        context=PayloadContext(layer.entry, invocation.principal, invocation.session),
    )
