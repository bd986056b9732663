"""ToolOrchestrator: the one door for calls. Every call by name, for a principal, ends in exactly one result."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from agentos.manager import ExtensionManager
from agentos.model.principal import SYSTEM, Principal
from agentos.tools.calls import ToolCall, ToolResult
from agentos.tools.context import ToolContext
from agentos.tools.executor import ToolExecutor
from agentos.tools.listing import ToolInfo, info_of
from agentos.tools.prepared import Prepared
from agentos.tools.tool import Tool

CONCURRENCY = 16
_LISTS_KEPT = 64

_Held = frozenset[str]


class ToolOrchestrator:
    """Lists tools for a principal, and runs its calls through one pipeline.

    A tool that a principal may not call does not exist for it: it is not listed, and calling it says what calling an
    unknown name says. Listing, prompting and calling ask the same predicate.
    """

    def __init__(
        self, manager: ExtensionManager, *, executor: ToolExecutor | None = None, concurrency: int = CONCURRENCY
    ) -> None:
        self.executor = executor or ToolExecutor(manager.registry("tool"))
        self._registry = self.executor.registry
        self._concurrency = concurrency
        self._lists: dict[_Held, list[ToolInfo]] = {}
        self._lists_version = -1
        self._waiting: dict[str, list[_Waiting]] = {}

    # -- what is offered ---------------------------------------------------------------------------------------

    def list_available_tools(self, principal: Principal | None = None) -> list[ToolInfo]:
        """Return what *principal* may call; kept until what is offered changes."""
        return list(self.listed(principal))

    def listed(self, principal: Principal | None = None) -> Sequence[ToolInfo]:
        """Return the kept list itself: the same object until what is offered changes. Not to be written to."""
        if self._lists_version != self._registry.version:
            self._lists.clear()
            self._lists_version = self._registry.version
        who = principal or SYSTEM
        held = who.held
        infos = self._lists.get(held)
        if infos is None:
            if len(self._lists) >= _LISTS_KEPT:
                self._lists.clear()
            infos = [info_of(entry, tool) for entry, tool in self.executor.offered() if who.may_call(tool)]
            self._lists[held] = infos
        return infos

    def system_prompt(self, principal: Principal | None = None) -> str:
        """Return the prompts of what *principal* is offered, each toolset's once, in the order of the list."""
        who = principal or SYSTEM
        prompts: dict[str, None] = {}
        for _, tool in self.executor.offered():
            if who.may_call(tool):
                prompts.update(dict.fromkeys(_prompts(tool)))
        return "\n\n".join(prompts)

    def get_tool(self, name: str, principal: Principal | None = None) -> Tool | None:
        """Return the tool that a call of *name* would run for *principal*, or None."""
        found = self.executor.find(name)
        return found.tool if found is not None and (principal or SYSTEM).may_call(found.tool) else None

    # -- calls -------------------------------------------------------------------------------------------------

    async def process_tool_call(
        self,
        call: ToolCall | Mapping[str, Any],
        principal: Principal | None = None,
        *,
        session: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Run one call for *principal*: by default the host itself, which may call everything."""
        if type(call) is not ToolCall:
            call = _as_call(call)
        if principal is not None and type(principal) is not Principal:
            raise TypeError(f"expected a Principal, got {type(principal).__name__}")
        result = await self._process(call, principal or SYSTEM, session, 0)
        return result if call.id is None else attrs.evolve(result, call_id=call.id)

    async def process_tool_calls(
        self,
        calls: Iterable[ToolCall | Mapping[str, Any]],
        principal: Principal | None = None,
        *,
        session: Mapping[str, Any] | None = None,
    ) -> list[ToolResult]:
        """Run calls side by side, `ordered` tools one after another; results are in the order of the calls."""
        given = [call if isinstance(call, ToolCall) else _as_call(call) for call in calls]
        if len(given) == 1:
            return [await self.process_tool_call(given[0], principal, session=session)]
        results: list[ToolResult | None] = [None] * len(given)
        places = asyncio.Semaphore(self._concurrency)

        waiting = [_Waiting() for _ in given]
        for call, place in zip(given, waiting, strict=True):
            if call.id is not None:
                self._waiting.setdefault(call.id, []).append(place)

        async def run(positions: Iterable[int]) -> None:
            for position in positions:
                async with places:
                    results[position] = await self._run_unless_cancelled(
                        given[position], waiting[position], principal, session
                    )

        in_order = [position for position, call in enumerate(given) if self._is_ordered(call)]
        alone = [[position] for position in range(len(given)) if position not in set(in_order)]
        async with asyncio.TaskGroup() as group:
            for positions in (in_order, *alone):
                if positions:
                    group.create_task(run(positions))
        return [result for result in results if result is not None]

    async def _run_unless_cancelled(
        self, call: ToolCall, place: "_Waiting", principal: Principal | None, session: Mapping[str, Any] | None
    ) -> ToolResult:
        """Run a call that waited for its turn, or answer for one that was cancelled meanwhile."""
        if call.id is not None:
            others = self._waiting[call.id]
            others.remove(place)
            if not others:
                del self._waiting[call.id]
        if place.is_cancelled:
            result = self.executor.funnel.failure("Cancelled", "the call was cancelled before it began", {})
            return attrs.evolve(result, call_id=call.id)
        return await self.process_tool_call(call, principal, session=session)

    def _is_ordered(self, call: ToolCall) -> bool:
        found = self.executor.find(call.name)
        return found is not None and found.tool.ordered

    async def cancel(self, call_id: str) -> bool:
        """Cancel the call of that id, which then returns a Cancelled result. False if none runs."""
        waiting = self._waiting.get(call_id, ())
        for place in waiting:
            place.is_cancelled = True
        return await self.executor.cancel(call_id) or bool(waiting)

    async def _process(
        self, call: ToolCall, principal: Principal, session: Mapping[str, Any] | None, depth: int
    ) -> ToolResult:
        prepared = self.executor.find(call.name)
        if prepared is None or not (prepared.is_public or principal.may_call(prepared.tool)):
            return self._unknown(call.name, principal)
        return await self._checked(prepared, call, principal, session, depth)

    async def _checked(
        self, prepared: Prepared, call: ToolCall, principal: Principal, session: Mapping[str, Any] | None, depth: int
    ) -> ToolResult:
        executor = self.executor
        arguments = executor.arguments(prepared, call)
        if isinstance(arguments, ToolResult):
            return arguments
        context = executor.context(prepared, call, principal, session, depth, self)
        return await executor.run(prepared, arguments, context)

    def _unknown(self, name: str, principal: Principal) -> ToolResult:
        return self.executor.why_not(name, [info.name for info in self.listed(principal)], principal)

    # -- the door of ToolContext -------------------------------------------------------------------------------

    async def call_from(self, context: ToolContext, name: str, arguments: Any) -> ToolResult:
        """Run a call that a tool makes, for the same principal."""
        refusal = self.executor.too_deep(context)
        if refusal is not None:
            return refusal
        return await self._process(ToolCall(name, arguments), context.principal, context.session, context.depth + 1)

    async def below_from(self, context: ToolContext, arguments: Any) -> ToolResult:
        """Run the tool beneath the one that asks, through the same checks."""
        refusal = self.executor.too_deep(context)
        if refusal is not None:
            return refusal
        prepared = self.executor.beneath(context)
        if isinstance(prepared, ToolResult):
            return prepared
        if not context.principal.may_call(prepared.tool):
            return self._unknown(prepared.tool.name, context.principal)
        call = ToolCall(prepared.tool.name, arguments)
        return await self._checked(prepared, call, context.principal, context.session, context.depth + 1)

    def tell(self, context: ToolContext, kind: str, told: Mapping[str, Any]) -> Any:
        """Post what a tool tells while it runs."""
        return self.executor.tell(context, kind, told)


class _Waiting:
    """A call that waits for its turn, and may be cancelled before it comes."""

    __slots__ = ("is_cancelled",)

    def __init__(self) -> None:
        self.is_cancelled = False


def _prompts(tool: Tool) -> Iterable[str]:
    for prompt in (tool.toolset.system_prompt if tool.toolset else None, tool.system_prompt):
        if prompt and prompt.strip():
            yield prompt.strip()


def _as_call(call: Any) -> ToolCall:
    """Take a call in the shape of a mapping; anything else is a call of something unknown, with its one result."""
    if isinstance(call, Mapping):
        id = call.get("id")
        return ToolCall(name=call.get("name", ""), arguments=call.get("arguments"), id=None if id is None else str(id))
    return ToolCall(name=str(call))
