"""The one result that a call comes to: JSON, bounded, masked, and as the tool's output schema says."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import attrs

from agentos.base.foreign import let_outside_pass
from agentos.calls.invocation import Invocation, Next
from agentos.model.tool_call import ToolResult
from agentos.schema.validation import problems_of
from agentos.schema.work import TooMuchWorkError


def check_output(invocation: Invocation, next: Next) -> Awaitable[ToolResult]:
    """Make the result of what the tool returned, and hold its output against the output schema."""
    if invocation.result is None:
        try:
            invocation.result = _checked(invocation, invocation.value)
        except BaseException as error:  # noqa: BLE001 - what a tool returned has methods of its own
            let_outside_pass(error)
            described = invocation.services.masker.describe(error)
            message = f"the tool did run, but what it returned could not be used: {described}"
            invocation.result = invocation.failure("ResultNotSerialisable", message)
        if any(one.path is not None for one in invocation.result.media):
            return _with_files(invocation, invocation.result, next)
    return next(invocation)


async def _with_files(invocation: Invocation, result: ToolResult, next: Next) -> ToolResult:
    """Read the files among a result's media, away from the event loop, before anybody is asked about it."""
    invocation.result = await asyncio.to_thread(invocation.services.results.with_files, result)
    return await next(invocation)


def fitting_result(invocation: Invocation, result: ToolResult) -> ToolResult:
    """Bring a result that a guardrail gave into shape; output that does not fit the output schema is left out."""
    ready = invocation.ready
    results = invocation.services.results
    made = results.without_files(results.success(result, ready.meta))
    if ready.output_is_valid is None or not made.success or made.output is None:
        return made
    try:
        is_fitting = ready.output_is_valid(made.output)
    except TooMuchWorkError:
        is_fitting = False
    return made if is_fitting else attrs.evolve(made, output=None)


def _checked(invocation: Invocation, value: Any) -> ToolResult:
    ready = invocation.ready
    result = invocation.services.results.success(value, ready.meta)
    if ready.output_is_valid is None or not result.success or "output_dropped" in result.meta:
        return result
    try:
        if ready.output_is_valid(result.output):
            return result
        problems = problems_of(ready.output_validator, ready.output_validator.schema, result.output)
        lines = "; ".join(str(problem) for problem in problems)
        message = f"the tool did run, but its output does not fit its output schema: {lines}"
    except TooMuchWorkError:
        message = (
            "the tool did run, but checking its output against its output schema takes too much work; ask for less"
        )
    return invocation.services.results.failure("InvalidOutput", message, ready.meta, state=result.state)


async def finish(invocation: Invocation, next: Next) -> ToolResult:  # noqa: ARG001 - nothing is next
    """Give the result back, the same way."""
    assert invocation.result is not None  # noqa: S101 - the step before made it
    return invocation.result
