"""The way of every call: read STEPS from the top to the bottom, and back out by the same way.

Reads, calls that change something, approved and nested calls, calls of a bridged server's tools: all go through it.
A call pays only for the steps that its tool needs; they are composed when the tool is first called, and kept.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from types import FunctionType
from typing import cast

import attrs

from agentos.calls.invocation import AccessServices, CallServices, Invocation, Next, Step
from agentos.calls.steps.announce import announce
from agentos.calls.steps.check_output import check_output, finish
from agentos.calls.steps.decide import decide, see_new_denials
from agentos.calls.steps.find import authorize, find, find_again
from agentos.calls.steps.guard import guard_call, guard_result
from agentos.calls.steps.once import once
from agentos.calls.steps.record import note, record
from agentos.calls.steps.reserve_budget import reserve_budget
from agentos.calls.steps.run import run, swallow_cancellation
from agentos.calls.steps.validate import validate
from agentos.calls.steps.wrap import wrap
from agentos.model.tool_call import ToolResult
from agentos.tools.ready import ReadyTool

STEPS: tuple[Step, ...] = (
    find,  # the tool of a name
    find_again,  # what answers to the name then, if that goes out of force before it can run
    authorize,  # whether it exists for the caller
    validate,  # its arguments, with defaults filled in
    guard_call,  # what guardrails say of the call; an approved call enters the list again here
    see_new_denials,  # what another host forbade meanwhile
    decide,  # run, ask a person, or refuse
    reserve_budget,  # a slot, given back if the call does not run
    once,  # the first result again, for a repeat
    record,  # on record before it begins, and how it ended
    note,  # how a read ended
    announce,  # events for listeners
    wrap,  # middleware of packs, which runs the tool
    run,  # the tool itself
    check_output,  # one result: JSON, bounded, masked, as the schema says
    guard_result,  # what guardrails say of the result
    finish,
)


@attrs.frozen
class _Need:
    """What decides which steps the calls of a tool need."""

    ready: ReadyTool
    services: CallServices
    is_plain: bool
    """Its calls run whatever their arguments are: nobody has to decide."""


_NEEDED: Mapping[Step, Callable[[_Need], bool]] = {
    find_again: lambda need: need.services.has_access and not need.is_plain,
    authorize: lambda need: not need.ready.is_public,
    guard_call: lambda need: bool(need.services.plans.of(need.ready).call_guards),
    wrap: lambda need: bool(need.services.plans.of(need.ready).middleware),
    run: lambda need: not need.services.plans.of(need.ready).middleware,
    guard_result: lambda need: bool(need.services.plans.of(need.ready).result_guards),
    see_new_denials: lambda need: need.services.has_access and need.is_plain and need.services.access.is_shared,
    decide: lambda need: need.services.has_access and not need.is_plain,
    reserve_budget: lambda need: (
        need.services.has_access and need.services.access.budgets.of(need.ready.tool.effect).has_any
    ),
    once: lambda need: need.services.has_access and not need.is_plain,
    record: lambda need: need.services.has_access and not need.is_plain,
    note: lambda need: need.services.has_access and need.is_plain,
}
"""When a step is needed; a step that is not named here always is."""


def steps_for(ready: ReadyTool, services: CallServices, *, is_plain: bool) -> tuple[Step, ...]:
    """Return the steps that calls of a tool need, in their order."""
    need = _Need(ready, services, is_plain)
    return tuple(step for step in STEPS if step not in _NEEDED or _NEEDED[step](need))


@lru_cache
def compose(steps: tuple[Step, ...]) -> Next:
    """Return one function that takes a call through *steps*; tools that need the same steps share it."""
    handler: Next = _nowhere
    for step in reversed(steps):
        handler = _before(handler, step)
    return handler


def _before(next: Next, step: Step) -> Next:
    """Return *step* with what is next filled in: as a default of a copy, which costs a call nothing."""
    function = cast("FunctionType", step)
    return FunctionType(function.__code__, function.__globals__, function.__name__, (next,), function.__closure__)


def _nowhere(invocation: Invocation) -> Awaitable[ToolResult]:
    raise AssertionError(f"the last step of {invocation.call.name} went on")


class Pipeline:
    """Takes calls through the steps that their tools need."""

    def __init__(self, services: CallServices) -> None:
        self._services = services
        self.start: Next = _before(self.start_found, find)
        """Take a call through all its steps."""
        services.start, services.start_found = self.start, self.start_found
        services.start_validated = self.start_validated
        services.run_tool = compose((run, check_output, finish))

    def start_found(self, invocation: Invocation) -> Awaitable[ToolResult]:
        """Take a call whose tool is known already through the steps that this tool needs."""
        ready, services = invocation.ready, self._services
        if services.has_access and invocation.call.idempotency_key is None:
            access = services.access
            if ready.plain_version != access.grants.version:
                ready.plain_version = access.grants.version
                ready.plain_handler = self._composed(ready, is_plain=True) if _is_plain(ready, access) else None
            if ready.plain_handler is not None:
                return ready.plain_handler(invocation)
        if ready.handler is None:
            ready.handler = self._composed(ready, is_plain=False)
        return ready.handler(invocation)

    def start_validated(self, invocation: Invocation) -> Awaitable[ToolResult]:
        """Take a call whose arguments are good already through the rest of the steps: as when a person approved it."""
        steps = steps_for(invocation.ready, self._services, is_plain=False)
        return compose(steps[steps.index(validate) + 1 :])(invocation)

    def _composed(self, ready: ReadyTool, *, is_plain: bool) -> Next:
        return compose(steps_for(ready, self._services, is_plain=is_plain)[1:])

    async def preview(self, invocation: Invocation) -> ToolResult | None:
        """Return what the tool's dry run says of a call that does not run yet; None if it has none."""
        ready = self._rehearsing(invocation.ready)
        tool = ready.tool
        if tool.dry_run is None or invocation.principal.missing(tool):
            return None
        dry = attrs.evolve(tool, execute=tool.dry_run, function=None, output_schema=None, placement=None)
        rehearsal = Invocation(
            self._services, invocation.call, invocation.principal, invocation.session, invocation.depth
        )
        rehearsal.ready = ReadyTool(ready.entry, dry, self._services.catalog.default_timeout)
        rehearsal.arguments = copy.deepcopy(invocation.arguments)
        rehearsal.approval = invocation.approval
        return await compose((run, check_output, guard_result, finish))(rehearsal)

    def _rehearsing(self, ready: ReadyTool) -> ReadyTool:
        """Return whose dry run a tool has: its own, or of what it stands above, which runs with its own options."""
        dry_run = ready.tool.dry_run
        while ready.tool.inherits and (beneath := self._services.catalog.beneath(ready)) is not None:
            if beneath.tool.dry_run is not dry_run:
                break
            ready = beneath
        return ready

    async def start_cancellable(self, invocation: Invocation, start: Next) -> ToolResult:
        """Take a call through its steps by *start*; `in_flight.cancel` finds it by its id until its tool has ended."""
        task, interrupted = asyncio.current_task(), False

        def interrupt() -> None:
            nonlocal interrupted
            interrupted = task is not None and task.cancel()

        invocation.stop = interrupt
        self._services.in_flight.add(invocation)
        try:
            result = await start(invocation)
        except asyncio.CancelledError:
            if task is None or not interrupted or task.uncancel() > 0:
                raise
            when = "while" if invocation.itself_or_approved.has_run else "before"
            result = invocation.failure("Cancelled", f"the call was cancelled {when} it ran")
        else:
            if task is not None and interrupted:
                await swallow_cancellation(task)
        finally:
            self._services.in_flight.remove(invocation)
        return result


def _is_plain(ready: ReadyTool, access: AccessServices) -> bool:
    """Tell whether every call of a tool runs, whatever its arguments are, as long as no grant changes."""
    tool = ready.tool
    return (
        tool.effect == "read"
        and tool.intervention in (None, "never")
        and access.denials.of_tool(ready) is None
        and not access.grants.mentions(ready)
    )
