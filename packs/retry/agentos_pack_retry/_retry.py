"""The middleware."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
from attrs import validators

from agentos import Descriptor, ToolResult, Trouble, middleware, read_options
from agentos_pack_retry._breaker import Breaker

Next = Callable[..., Awaitable[ToolResult]]
_OWN_TIME = 5.0
_CALLERS_FAULT = frozenset(
    {
        "InvalidArguments",
        "Refused",
        "UnknownTool",
        "ApprovalRequired",
        "BudgetExceeded",
        "Cancelled",
        "GuardrailBlocked",
    }
)
"""Failures that say nothing of the tool."""


@attrs.frozen
class RetryOptions:
    """The options of the pack."""

    tools: tuple[str, ...] = ()
    """Patterns of tools that are tried again, such as `web-search:*`."""
    attempts: int = attrs.field(default=3, validator=[validators.ge(2), validators.le(10)])
    """How often a tool is called at most, the first time included."""
    backoff: float = attrs.field(default=0.5, validator=[validators.ge(0), validators.le(60)])
    """After how many seconds at most it is called again; twice as many each time, and a random part of that."""
    max_backoff: float = attrs.field(default=10.0, validator=[validators.ge(0), validators.le(300)])
    errors: tuple[str, ...] = ("ToolRaised", "TimedOut")
    """After which types of errors it is called again; `*` stands for all but those that are the caller's fault."""
    breaker: tuple[str, ...] = ()
    """Patterns of tools that are left alone when they go on failing."""
    breaker_failures: int = attrs.field(default=5, validator=[validators.ge(1), validators.le(1_000)])
    """How many failures in a row open it."""
    breaker_seconds: float = attrs.field(default=30.0, validator=[validators.gt(0), validators.le(86_400)])
    """For how long nothing is let through then."""


def create_descriptors(
    options: Mapping[str, Any],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> tuple[Descriptor[Any], ...]:
    """Return the middleware that *options* ask for, the breaker outermost: it counts what failed after all attempts."""
    chosen = read_options(RetryOptions, options)
    made = []
    if chosen.breaker:
        breaker = Breaker(chosen.breaker_failures, chosen.breaker_seconds, clock)
        made.append(Descriptor("tool-middleware", "circuit-breaker", _circuit_breaker(chosen, breaker)))
    if chosen.tools:
        made.append(Descriptor("tool-middleware", "retry", _retry(chosen, sleep)))
    return tuple(made)


def troubles(options: Mapping[str, Any]) -> list[Trouble]:
    """Say so if the pack does nothing: no tool is tried again, and none is left alone."""
    chosen = read_options(RetryOptions, options)
    if chosen.tools or chosen.breaker:
        return []
    cure = 'say `tools` or `breaker` in its options, such as ["web-search:*"], or leave the pack out'
    return [Trouble("warning", "pack retry", "it does nothing: its options name neither `tools` nor `breaker`", cure)]


def _retry(options: RetryOptions, sleep: Callable[[float], Awaitable[None]]) -> Callable[..., Awaitable[ToolResult]]:
    waits = [min(options.backoff * 2**number, options.max_backoff) for number in range(options.attempts - 1)]

    @middleware(tools=options.tools, timeout=sum(waits) + _OWN_TIME)
    async def retry(invocation: Any, next: Next) -> ToolResult:
        """Call the tool again while it fails in a way that may pass."""
        result = await next()
        if invocation.effect != "read" and not invocation.idempotent:
            return result
        for number, wait in enumerate(waits, 2):
            if not _may_pass(result, options.errors):
                break
            await sleep(random.uniform(0, wait))  # noqa: S311 - spreads callers, hides nothing
            again = await next()
            result = attrs.evolve(again, meta={**again.meta, "attempts": number})
        return result

    return retry


def _may_pass(result: ToolResult, errors: tuple[str, ...]) -> bool:
    if result.success or result.error is None or result.error.type in _CALLERS_FAULT:
        return False
    return result.error.type in errors or "*" in errors


def _circuit_breaker(options: RetryOptions, breaker: Breaker) -> Callable[..., Awaitable[ToolResult]]:
    @middleware(tools=options.breaker, timeout=_OWN_TIME)
    async def circuit_breaker(invocation: Any, next: Next) -> ToolResult:
        """Let nothing through to a tool that goes on failing."""
        tool = invocation.tool
        if wait := breaker.wait(tool):
            message = f"{tool} failed {breaker.failures(tool)} times in a row; it is not called for {wait:.0f} s more"
            return ToolResult.fail("CircuitOpen", message, {"tool": tool, "retry_after": round(wait, 1)})
        has_failed = None
        try:
            result = await next()
            is_tools_fault = result.error is not None and result.error.type not in _CALLERS_FAULT
            has_failed = True if is_tools_fault else False if result.success else None
        finally:
            breaker.note(tool, has_failed=has_failed)
        return result

    return circuit_breaker
