"""What listeners hear of a call: that it starts, and how it ended."""

import asyncio
import time
from collections.abc import Awaitable

from agentos.base.foreign import to_the_end
from agentos.calls.invocation import Invocation, Next
from agentos.model.tool_call import ToolResult
from agentos.tools.tool_events import ToolFinished, ToolStarted


def announce(invocation: Invocation, next: Next) -> Awaitable[ToolResult]:
    """Tell listeners, if there are any, that the call starts, and how it ended."""
    return _announced(invocation, next) if invocation.services.events.is_heard else next(invocation)


async def _announced(invocation: Invocation, next: Next) -> ToolResult:
    events, began = invocation.services.events, time.perf_counter()
    result: ToolResult | None = None
    try:
        with invocation.ready.users.use():  # it stays in force while listeners hear that it starts
            events.post(ToolStarted(**invocation.named()))
            await events.deliver()
            result = await next(invocation)
    except asyncio.CancelledError:
        result = invocation.failure("Cancelled", "the caller was cancelled")
        raise
    finally:
        if result is not None:
            await to_the_end(_tell_of_end(invocation, result, time.perf_counter() - began))
    return result


async def _tell_of_end(invocation: Invocation, result: ToolResult, seconds: float) -> None:
    events, error = invocation.services.events, result.error.type if result.error else None
    events.post(ToolFinished(**invocation.named(), success=result.success, error=error, seconds=seconds))
    await events.deliver()
