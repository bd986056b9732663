"""The kind `planning-strategy`: makes a plan of a goal, and keeps it true while it is carried out.

A payload is an object with `plan(goal, context)` and `refine(plan, results, context)`, sync or async, each of which
returns a Plan, and, if wanted, a `timeout`. Its context has, besides what every payload is given, the `tools` that may
be called, and `ask(text)`, which asks the model of the turn and is None where there is no model.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from agentos.base.foreign import type_name
from agentos.errors import DescriptorError, PlanningError
from agentos.extensions.event import Event
from agentos.model.descriptor import Descriptor
from agentos.model.field_checks import did_you_mean
from agentos.model.guarding import fault_of_parameters, fault_of_seconds
from agentos.model.kind import Kind, declare_own_kind
from agentos.model.planning import Plan
from agentos.model.principal import SYSTEM, Principal
from agentos.model.tool_call import ToolResult
from agentos.payloads.asked_payload import ask_payload
from agentos.payloads.foreign_job import Threads, took_too_long
from agentos.payloads.payload_context import PayloadContext, active_in_order
from agentos.stacks.entry import Entry

if TYPE_CHECKING:
    from agentos.extensions.manager import ExtensionManager
    from agentos.tools.listing import ToolInfo

Ask = Callable[[str], Awaitable[str]]
"""Asks a model, and returns what it answers."""
_TIMEOUT = 60.0


def _timeout(payload: Any) -> Any:
    return getattr(payload, "timeout", _TIMEOUT)


def _check(descriptor: Descriptor[Any]) -> None:
    payload = descriptor.payload
    fault = "expected an object, got a class" if isinstance(payload, type) else None
    for name, count in (("plan", 2), ("refine", 3)):
        method = getattr(payload, name, None)
        fault = fault or (f"it has no method {name}" if method is None else fault_of_parameters(method, count))
    fault = fault or fault_of_seconds(_timeout(payload))
    if fault is not None:
        expected = "expected an object with plan(goal, context) and refine(plan, results, context)"
        raise DescriptorError(f"planning-strategy {descriptor.id!r}: {expected}; {fault}")


class PlanContext(PayloadContext):
    """What a planning-strategy is given with a goal or a plan."""

    __slots__ = ("ask", "tools")

    def __init__(
        self,
        entry: Entry,
        principal: Principal,
        session: Mapping[str, Any],
        tools: "Sequence[ToolInfo]",
        ask: Ask | None,
    ) -> None:
        super().__init__(entry, principal, session)
        self.tools = tuple(tools)
        """What may be called."""
        self.ask = ask
        """Asks the model; None if there is none."""


@attrs.frozen(kw_only=True)
class PlanChanged(Event):
    """A plan was made, or a step of it changed."""

    type: ClassVar[str] = "plan:changed"
    strategy: str
    plan: Plan
    principal: str


class Planning:
    """Makes plans and keeps them true, by the planning-strategies in force."""

    def __init__(
        self, manager: "ExtensionManager", threads: Threads, offered: "Callable[[Principal], Sequence[ToolInfo]]"
    ) -> None:
        self._manager = manager
        self._registry = manager.registry(PLANNING_STRATEGY.name)
        self._threads = threads
        self._offered = offered

    @property
    def strategies(self) -> list[str]:
        """Return the ids of the strategies in force, in their order; the first is used where none is named."""
        return [entry.id for entry in active_in_order(self._registry)]

    async def plan(
        self,
        goal: str,
        *,
        strategy: str | None = None,
        principal: Principal | None = None,
        session: Mapping[str, Any] | None = None,
        ask: Ask | None = None,
    ) -> Plan:
        """Return a plan for *goal*; raise PlanningError if there is no such strategy, or it fails."""
        entry, who = self._named(strategy), principal or SYSTEM
        made = await self._ask(entry, "plan", (goal,), who, session, ask)
        return await self._told(entry, attrs.evolve(made, goal=goal, strategy=entry.id), who)

    async def refine(
        self,
        plan: Plan,
        results: Sequence[ToolResult],
        *,
        principal: Principal | None = None,
        session: Mapping[str, Any] | None = None,
        ask: Ask | None = None,
    ) -> Plan:
        """Return *plan* as it is after *results*, by the strategy that made it; raise PlanningError if that fails."""
        entry, who = self._named(plan.strategy), principal or SYSTEM
        made = await self._ask(entry, "refine", (plan, tuple(results)), who, session, ask)
        refined = attrs.evolve(made, goal=plan.goal, strategy=entry.id)
        return plan if refined == plan else await self._told(entry, refined, who)

    def _named(self, strategy: str | None) -> Entry:
        active = active_in_order(self._registry)
        found = next((one for one in active if strategy in (None, one.id)), None)
        if found is not None:
            return found
        named = "planning-strategy" if strategy is None else f"planning-strategy {strategy!r}"
        hint = "" if strategy is None else did_you_mean(strategy, [one.id for one in active])
        raise PlanningError(strategy, f"no {named} is active{hint}")

    async def _ask(
        self,
        entry: Entry,
        act: str,
        given: tuple[Any, ...],
        principal: Principal,
        session: Mapping[str, Any] | None,
        ask: Ask | None,
    ) -> Plan:
        tools = self._offered(principal)
        context = PlanContext(entry, principal, {} if session is None else session, tools, ask)
        answer, error = await ask_payload(entry, act, *given, context, threads=self._threads, seconds=_TIMEOUT)
        if error is None and type(answer) is Plan:
            mask = self._manager.masker.mask
            return attrs.evolve(answer, steps=[attrs.evolve(one, text=mask(one.text)) for one in answer.steps])
        raise PlanningError(entry.id, f"{act} of the planning-strategy {entry.id!r} {_fault(answer, error)}") from error

    async def _told(self, entry: Entry, plan: Plan, principal: Principal) -> Plan:
        events = self._manager.events
        if events.is_heard:
            events.post(PlanChanged(source=entry.source, strategy=entry.id, plan=plan, principal=principal.key))
            await events.deliver()
        return plan


def _fault(answer: Any, error: BaseException | None) -> str:
    if error is None:
        return f"answered with a {type_name(answer)}; expected a Plan"
    return "took too long" if took_too_long(error) else f"raised {type_name(error)}"


PLANNING_STRATEGY = declare_own_kind(
    Kind("planning-strategy", check=_check, reader="`host.planning`, and turns with a plan")
)
