"""Checks of how calls end: cancelled, out of time, many at once, and in success at least once."""

import asyncio
from collections.abc import Iterator
from typing import Any

import attrs

from agentos import Descriptor, Tool, ToolCall, ToolResult
from agentos.testing._candidate import Candidate, CandidateHost
from agentos.testing._check_registry import Findings, can_run, changes_things, is_bound, tool_check
from agentos.testing._leftovers import ActivitySnapshot
from agentos.testing._transcript import faults_of, is_success, text_of, transcript_of
from agentos.testing._watchdog import SkippedCall, break_off, wait_until_idle
from agentos.tools.tool import as_tool

_AT_ONCE = 8
_PATIENCE = 0.05
_TINY = 0.001


@tool_check("cancel", can_run)
async def cancel(candidate: Candidate, tool: Tool) -> Findings:
    """End when it is cancelled, in a result, with nothing left running, and be there for the next call."""
    found: list[tuple[str, str]] = []
    async with candidate.sandbox():
        for arguments in candidate.arguments(tool)[:1]:
            async with candidate.host() as session:
                usual = await session.bounded_call(tool, arguments)  # what is made once is made now
                candidate.cache[_WORKS, tool.name] = is_success(usual)
                before = ActivitySnapshot.now()
                found += [_went_on(candidate)] if tool.name in candidate.uncancellable else []
                found += [] if found else await _ways_to_end(session, tool, arguments, _error_of(usual), before)
                if not found and _is_repeatable(candidate, tool):
                    found += _no_longer_callable(candidate, tool, await session.bounded_call(tool, arguments))
            found += await before.left_over(candidate.grace)
    if not found and not _is_repeatable(candidate, tool):
        found += _no_longer_callable(candidate, tool, await _call_alone(candidate, tool))
    for message, cure in found:
        yield candidate.finding("cancel", f"after a call was cancelled {message}", cure, tool=tool.name)


async def _ways_to_end(
    session: CandidateHost, tool: Tool, arguments: Any, usual: tuple[str, str] | None, before: ActivitySnapshot
) -> list[tuple[str, str]]:
    """End calls in one way after another, until something is wrong with how one ends."""
    for patience in (0.0, _PATIENCE):
        if found := await _cancelled(session, tool, arguments, patience, usual):
            return found
    return [*await _abandoned(session, tool, arguments), *await _still_running(session, before)]


_WORKS = "works"
"""What is kept of a tool: whether a call alone, with the first of its arguments, succeeded."""


async def _call_alone(candidate: Candidate, tool: Tool) -> Any:
    """Return the result of one call, in a sandbox and a host of its own."""
    async with candidate.sandbox(), candidate.host() as session:
        for arguments in candidate.arguments(tool)[:1]:
            return await session.bounded_call(tool, arguments)
    return SkippedCall("no arguments could be made")


async def _check_works(candidate: Candidate, tool: Tool) -> None:
    if (_WORKS, tool.name) not in candidate.cache:
        candidate.cache[_WORKS, tool.name] = is_success(await _call_alone(candidate, tool))


def _no_longer_callable(candidate: Candidate, tool: Tool, again: Any) -> list[tuple[str, str]]:
    """Say if a call that used to succeed does so no more. Then no other is made: all would say the same."""
    if not candidate.cache[_WORKS, tool.name] or is_success(again) or isinstance(again, SkippedCall):
        return []
    candidate.uncancellable.add(tool.name)
    message = again.content if isinstance(again, ToolResult) else again
    return [(f"it can't be called any more: {message[:200]}", "let go in `finally` of what a call holds")]


_LET_THROUGH = "let CancelledError through"
_LOOK = "look at context.cancelled, and bound what a call may do"


def _went_on(candidate: Candidate) -> tuple[str, str]:
    return f"it went on for more than {candidate.grace:g} s", _LET_THROUGH


def _error_of(result: Any) -> tuple[str, str] | None:
    error = result.error if isinstance(result, ToolResult) else None
    return None if error is None else (error.type, error.message)


async def _cancelled(
    session: CandidateHost, tool: Tool, arguments: Any, patience: float, usual: tuple[str, str] | None
) -> list[tuple[str, str]]:
    """Cancel a call that runs, and say what is wrong with how it ends; it may have ended as usual just before."""
    host, id, grace = session.host, f"call-{patience}", session.candidate.grace
    task = asyncio.create_task(host.tools.process_tool_call(ToolCall(session.qualified(tool), arguments, id)))
    await asyncio.wait([task], timeout=patience)
    was_running = await host.tools.cancel(id)
    await asyncio.wait([task], timeout=grace)
    if not task.done():
        await break_off([task])
        session.candidate.uncancellable.add(tool.name)
        return [_went_on(session.candidate)]
    if task.cancelled() or task.exception() is not None:
        return [("it ended without a result", _LET_THROUGH)]
    error = _error_of(task.result())
    if was_running and error not in (None, usual) and error[0] != "Cancelled":
        return [(f"it ended as {error[0]}", _LET_THROUGH)]
    return []


async def _abandoned(session: CandidateHost, tool: Tool, arguments: Any) -> list[tuple[str, str]]:
    """Cancel the task that waits for a call, and say if it does not end."""
    task = asyncio.create_task(session.host.tools.process_tool_call(ToolCall(session.qualified(tool), arguments)))
    await asyncio.wait([task], timeout=0)
    task.cancel()
    await asyncio.wait([task], timeout=session.candidate.grace)
    if task.done():
        return []
    await break_off([task])
    return [("by its caller's own end, it went on", _LET_THROUGH)]


async def _still_running(session: CandidateHost, before: ActivitySnapshot) -> list[tuple[str, str]]:
    """Say if a call that nobody waits for any more goes on: its result was told, and the host waits when it ends."""
    threads, grace = session.host.tools.executor.threads, session.candidate.grace
    found = [] if await wait_until_idle(lambda: threads.abandoned, grace) else [("its thread went on", _LOOK)]
    if await wait_until_idle(before.tasks_ignoring_cancel, grace):
        return found
    await break_off(before.tasks_ignoring_cancel())
    return [*found, ("it went on", _LET_THROUGH)]


@tool_check("timeout", can_run)
async def timeout(candidate: Candidate, tool: Tool) -> Findings:
    """End when its time is up, in a result, with nothing left running, and be there for the next call."""
    found: list[tuple[str, str]] = []
    await _check_works(candidate, tool)
    async with candidate.sandbox():
        for arguments in candidate.arguments(tool)[:1]:
            async with candidate.host(alter=_with_tiny_timeouts) as session:
                hurried = session.tool(tool.name)
                await session.bounded_call(hurried, arguments)  # what is made once is made now
                before = ActivitySnapshot.now()
                result = await session.bounded_call(hurried, arguments)
                is_told = isinstance(result, ToolResult | SkippedCall)
                found += [] if is_told else [(f"{result}", "await something now and then")]
                found += await _still_running(session, before)
            found += await before.left_over(candidate.grace)
    found += [] if found else _no_longer_callable(candidate, tool, await _call_alone(candidate, tool))
    for message, cure in found:
        yield candidate.finding("timeout", f"after its time was up {message}", cure, tool=tool.name)


def _with_tiny_timeouts(descriptors: list[Descriptor[Any]]) -> Iterator[Descriptor[Any]]:
    """Give every tool next to no time."""
    for one in descriptors:
        tool = as_tool(one.payload) if one.kind == "tool" else None
        yield one if tool is None else attrs.evolve(one, payload=attrs.evolve(tool, timeout=_TINY))


@tool_check("parallel", is_bound)
async def parallel(candidate: Candidate, tool: Tool) -> Findings:
    """Answer the same call eight times at once as it answers it once."""
    alone, results = await _at_once(candidate, tool)
    found = [*_differing(tool, alone, results, is_same=_is_repeatable(candidate, tool))]
    if _has_worked(candidate, tool) and not isinstance(alone, SkippedCall) and not is_success(alone):
        found.append(f"a call alone succeeded before, and fails now: {text_of(alone)[:200]}")
    for message in found:
        cure = "keep what belongs to one call out of what all calls share"
        yield candidate.finding("parallel", message, cure, tool=tool.name)


def _has_worked(candidate: Candidate, tool: Tool) -> bool:
    """Tell whether a call with the same arguments succeeded before: it was seen, or is a sample of its author."""
    is_sampled = tool.name in candidate.samples and tool.name in candidate.succeeded
    return is_sampled or bool(candidate.cache.get((_WORKS, tool.name)))


def _is_repeatable(candidate: Candidate, tool: Tool) -> bool:
    """Tell whether the same call can be made again with the same result: what was deleted can't be deleted again."""
    return tool.idempotent or tool.effect == "read" or not candidate.may_run(tool)


async def _at_once(candidate: Candidate, tool: Tool) -> tuple[Any, list[Any]]:
    """Return the result of a call alone, and those of eight at once, in another sandbox if they change something."""
    alone: Any = None
    async with candidate.sandbox(), candidate.host() as session:
        for arguments in candidate.arguments(tool)[:1]:
            alone = await session.bounded_call(tool, arguments)
            if _is_repeatable(candidate, tool):
                return alone, await _calls_at_once(session, tool, arguments)
    async with candidate.sandbox(), candidate.host() as session:
        for arguments in candidate.arguments(tool)[:1]:
            return alone, await _calls_at_once(session, tool, arguments)
    return alone, []


async def _calls_at_once(session: CandidateHost, tool: Tool, arguments: Any) -> list[Any]:
    return await asyncio.gather(*(session.bounded_call(tool, arguments) for _ in range(_AT_ONCE)))


def _differing(tool: Tool, alone: Any, results: list[Any], *, is_same: bool) -> Iterator[str]:
    """Say how calls at once differ from one alone. If they get into each other's way by nature, one must succeed."""
    for number, result in enumerate(results, 1):
        if not isinstance(result, ToolResult | SkippedCall):
            yield f"call {number} of {_AT_ONCE} at once: {result}"
        elif is_same and is_success(alone) and not isinstance(result, SkippedCall) and not result.success:
            yield f"call {number} of {_AT_ONCE} at once failed: {result.content[:200]}"
        elif not is_same:
            yield from (f"call {number} of {_AT_ONCE} at once: {message}" for message, _ in faults_of(result))
    if not is_same and is_success(alone) and results and not any(map(is_success, results)):
        yield f"of {_AT_ONCE} calls of {tool.name} at once none succeeded, although one alone does"


# -- what the checks are worth -----------------------------------------------------------------------------------------


@tool_check("succeeds", can_run)
async def succeeds(candidate: Candidate, tool: Tool) -> Findings:
    """Succeed at least once: of a tool that only ever fails, the other checks say next to nothing."""
    if tool.name in candidate.succeeded:
        return
    async with candidate.sandbox(), candidate.host() as session:
        results = [await session.bounded_call(tool, arguments) for arguments in candidate.arguments(tool)]
    if not any(isinstance(result, SkippedCall) for result in results):
        await transcript_of(candidate, tool)
    if tool.name not in candidate.succeeded | candidate.uncancellable:
        last = next((text_of(one) for one in results if not isinstance(one, ToolResult)), "")
        message = last or next((one.content for one in results), "no arguments could be made")
        message = f"no call of it succeeded, so little is known of it: {message[:120]}"
        cure = "give samples= that succeed, and what they need by options=, seed= or prepare="
        yield candidate.finding("succeeds", message, cure, tool=tool.name, severity="warning")


@tool_check("runs", changes_things)
async def runs(candidate: Candidate, tool: Tool) -> Findings:
    """Be run for real, if it changes something: a preview says little of what a call does."""
    if not candidate.may_run(tool):
        message = "it was never run: it changes something, and was only asked what it would do"
        cure = "lead it into {tmp} or to a fake by options=, and say sandboxed=True"
        yield candidate.finding("runs", message, cure, tool=tool.name, severity="warning")
