"""ToolOrchestrator: the one door for calls. Every call by name, for a principal, ends in exactly one result."""

import asyncio
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from agentos.calls.executor import ToolExecutor
from agentos.calls.guard import Guard
from agentos.extensions.manager import ExtensionManager
from agentos.model.principal import SYSTEM, Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.stacks.entry import Entry, Explanation
from agentos.tools.listing import ToolInfo, info_of
from agentos.tools.ready import Prepared
from agentos.tools.tool import Tool, as_tool
from agentos.tools.tool_context import Approval, ToolContext

CONCURRENCY = 16
_LISTS_KEPT = 64

_Audience = tuple[frozenset[str], Hashable]
"""The rules that count, and what else decides what is offered: all whom these are alike for are offered the same."""


class ToolOrchestrator:
    """Lists tools for a principal, and runs its calls through one pipeline.

    A tool that a principal may not call does not exist for it: it is not listed, and calling it says what calling an
    unknown name says. Listing, prompting and calling ask the same predicate.
    """

    def __init__(
        self,
        manager: ExtensionManager,
        *,
        executor: ToolExecutor | None = None,
        concurrency: int = CONCURRENCY,
        guard: Guard | None = None,
    ) -> None:
        self._manager = manager
        self._guard = guard
        if guard is not None:
            guard.attach(self)
        self.executor = executor or ToolExecutor(manager.registry("tool"))
        self._registry = self.executor.registry
        self._concurrency = concurrency
        self._lists: dict[_Audience, list[ToolInfo]] = {}
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
        who = _caller(principal)
        audience = (who.held, None if self._guard is None else self._guard.barring(who))
        infos = self._lists.get(audience)
        if infos is None:
            if len(self._lists) >= _LISTS_KEPT:
                self._lists.clear()
            infos = [info_of(entry, tool) for entry, tool in self._offered_to(who)]
            self._lists[audience] = infos
        return infos

    def system_prompt(self, principal: Principal | None = None) -> str:
        """Return the prompts of what *principal* is offered, each toolset's once, in the order of the list."""
        who = _caller(principal)
        prompts: dict[str, None] = {}
        for _, tool in self._offered_to(who):
            prompts.update(dict.fromkeys(_prompts(tool)))
        return "\n\n".join(prompts)

    def _offered_to(self, principal: Principal) -> Iterator[tuple[Entry, Tool]]:
        """Yield what a principal may call, without what is denied to it whatever the call."""
        guard = self._guard
        for entry, tool in self.executor.offered():
            if not principal.may_call(tool):
                continue
            if guard is None or guard.denies(tool, f"{entry.source.pack}:{tool.name}", principal) is None:
                yield entry, tool

    def explain(
        self, name: str, principal: Principal | None = None, *, asked_by: Principal | None = None
    ) -> "ToolExplanation":
        """Say who answers a call of *name*, and whether *principal* may make it; if not, what it lacks or what denies.

        Asked by a principal that may not call the tool itself, there is no such tool; of those that stand beneath one
        that it may call, it sees what it may call as well.
        """
        id = name.partition(":")[2] or name
        stack = self._manager.explain(self._registry.kind, id)
        found = self.executor.find(name)
        if asked_by is not None:
            stack = _as_seen_by(asked_by, stack)
            found = found if found is not None and stack.entries and asked_by.may_call(found.tool) else None
        who = _caller(principal)
        if found is None:
            return ToolExplanation(stack=stack, principal=who.key, tool=None)
        id, missing = found.qualified_id, who.missing(found.tool)
        denial = None if self._guard is None else self._guard.denies(found.tool, id, who)
        return ToolExplanation(stack=stack, principal=who.key, tool=id, missing=missing, denial=denial)

    async def preview(self, call: ToolCall | Mapping[str, Any], principal: Principal | None = None) -> ToolResult:
        """Return what the tool's dry run says of a call, without running it; Refused if it has no dry run."""
        call = _as_call(call) if type(call) is not ToolCall else call
        who = _caller(principal)
        prepared = self.executor.find(call.name)
        if prepared is None or not who.may_call(prepared.tool):
            return self._unknown(call.name, who)
        arguments = self.executor.arguments(prepared, call)
        if isinstance(arguments, ToolResult):
            return arguments
        denied = None if self._guard is None else self._guard.denial(prepared, who, arguments)
        if denied is not None:
            return self.executor.funnel.failure("Refused", denied, prepared.meta)
        if self._guard is not None:
            self._guard.note_preview(prepared, who, arguments)
        context = self.executor.context(prepared, call, who, None, 0, self)
        shown = await self.executor.preview(prepared, arguments, context)
        if shown is not None:
            return shown
        return self.executor.funnel.failure("Refused", f"{prepared.qualified_id} has no dry run", prepared.meta)

    def get_tool(self, name: str, principal: Principal | None = None) -> Tool | None:
        """Return the tool that a call of *name* would run for *principal*, or None."""
        found, who = self.executor.find(name), _caller(principal)
        if found is None or not who.may_call(found.tool):
            return None
        denial = None if self._guard is None else self._guard.denies(found.tool, found.qualified_id, who)
        return found.tool if denial is None else None

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
        if session is not None and not isinstance(session, Mapping):
            raise TypeError(f"session: expected a mapping, got {type(session).__name__}")
        result = await self._process(call, _caller(principal), session, 0)
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
        try:
            async with asyncio.TaskGroup() as group:
                for positions in (in_order, *alone):
                    if positions:
                        group.create_task(run(positions))
        finally:
            for call, place in zip(given, waiting, strict=True):
                if not place.is_over:
                    self._end_wait(call, place)
                    self._note_cancelled(call, principal)
        return [result for result in results if result is not None]

    def _end_wait(self, call: ToolCall, place: "_Waiting") -> None:
        """Take a call that waited for its turn off the list of those that `cancel` finds."""
        place.is_over = True
        if call.id is not None:
            others = self._waiting[call.id]
            others.remove(place)
            if not others:
                del self._waiting[call.id]

    def _note_cancelled(self, call: ToolCall, principal: Principal | None) -> None:
        if self._guard is not None:
            self._guard.note_refusal(call.name, _caller(principal), "cancelled", "cancelled before it began")

    async def _run_unless_cancelled(
        self, call: ToolCall, place: "_Waiting", principal: Principal | None, session: Mapping[str, Any] | None
    ) -> ToolResult:
        """Run a call that waited for its turn, or answer for one that was cancelled meanwhile."""
        self._end_wait(call, place)
        if place.is_cancelled:
            self._note_cancelled(call, principal)
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
        slow = self._guard is not None and self._guard.cancel(call_id)
        return await self.executor.cancel(call_id) or slow or bool(waiting)

    async def _process(
        self, call: ToolCall, principal: Principal, session: Mapping[str, Any] | None, depth: int
    ) -> ToolResult:
        prepared = self.executor.find(call.name)
        if prepared is None or not (prepared.is_public or principal.may_call(prepared.tool)):
            if self._guard is not None:
                self._guard.note_refusal(call.name, principal, "access", _no_access(prepared, principal))
            return self._unknown(call.name, principal)
        return await self._checked(prepared, call, principal, session, depth)

    async def _checked(
        self,
        prepared: Prepared,
        call: ToolCall,
        principal: Principal,
        session: Mapping[str, Any] | None,
        depth: int,
        approval: Approval | None = None,
    ) -> ToolResult:
        executor, guard = self.executor, self._guard
        arguments = executor.arguments(prepared, call)
        if isinstance(arguments, ToolResult):
            if guard is not None:
                guard.note_refusal(prepared.qualified_id, principal, "arguments", "the arguments do not fit")
            return arguments
        context = executor.context(prepared, call, principal, session, depth, self)
        if guard is None:
            return await executor.run(prepared, arguments, context)
        context._approval = approval  # noqa: SLF001 - given by us alone
        return await guard.run(prepared, arguments, context)

    def _unknown(self, name: str, principal: Principal) -> ToolResult:
        return self.executor.why_not(name, [info.name for info in self.listed(principal)], principal)

    # -- the door of ToolContext -------------------------------------------------------------------------------

    async def call_from(self, context: ToolContext, name: str, arguments: Any) -> ToolResult:
        """Run a call that a tool makes, for the same principal."""
        refusal = self.executor.too_deep(context)
        if refusal is not None:
            return refusal
        call, depth = ToolCall(name, arguments), context.depth + 1
        return _tokenless(await self._process(call, context.principal, context.session, depth))

    async def below_from(self, context: ToolContext, arguments: Any) -> ToolResult:
        """Run the tool beneath the one that asks, through the same checks."""
        refusal = self.executor.too_deep(context)
        if refusal is not None:
            return refusal
        prepared = self.executor.beneath(context)
        if isinstance(prepared, ToolResult):
            return prepared
        if not context.principal.may_call(prepared.tool):
            if self._guard is not None:
                reason = _no_access(prepared, context.principal)
                self._guard.note_refusal(prepared.qualified_id, context.principal, "access", reason)
            return self.executor.funnel.failure("UnknownTool", "nothing stands beneath this tool", {})
        call = ToolCall(prepared.tool.name, arguments)
        # Who approved the wrapper was shown what it wraps: nobody is asked twice about one call.
        depth = context.depth + 1
        approval = context._approval  # noqa: SLF001 - given by us alone
        return _tokenless(await self._checked(prepared, call, context.principal, context.session, depth, approval))

    def tell(self, context: ToolContext, kind: str, told: Mapping[str, Any]) -> Any:
        """Post what a tool tells while it runs."""
        return self.executor.tell(context, kind, told)


@attrs.frozen(kw_only=True)
class ToolExplanation:
    """Who answers a call, and what keeps a principal from making it. `tool` is None if nobody answers."""

    stack: Explanation
    principal: str
    tool: str | None
    missing: tuple[str, ...] = ()
    """The rules that the tool requires and the principal does not hold."""
    denial: str | None = None
    """What denies every call of the tool to the principal: the host's `deny`, or a grant."""

    @property
    def is_allowed(self) -> bool:
        """Tell whether the principal may call it."""
        return self.tool is not None and not self.missing and self.denial is None

    def __str__(self) -> str:
        if self.tool is None:
            return str(self.stack)
        if self.missing:
            noun = "rule" if len(self.missing) == 1 else "rules"
            access = f"{self.principal} may not call {self.tool}: it lacks the {noun} {', '.join(self.missing)}"
        elif self.denial is not None:
            access = f"{self.principal} may not call {self.tool}: {self.denial}"
        else:
            access = f"{self.principal} may call {self.tool}"
        return f"{self.stack}\n{access}"


class _Waiting:
    """A call that waits for its turn, and may be cancelled before it comes."""

    __slots__ = ("is_cancelled", "is_over")

    def __init__(self) -> None:
        self.is_cancelled = False
        self.is_over = False


def _as_seen_by(who: Principal, stack: Explanation) -> Explanation:
    """Leave out of *stack* what *who* may not call: all of it, if that is so of the active entry."""
    tools = [(entry, as_tool(entry.payload)) for entry in stack.entries]
    seen = [entry for entry, tool in tools if tool is not None and who.may_call(tool)]
    if stack.active is not None and stack.active not in seen:
        return Explanation(stack.kind, stack.id, None, ())
    return Explanation(stack.kind, stack.id, stack.active, seen)


def _tokenless(result: ToolResult) -> ToolResult:
    """Take the token of a proposal out of a result that a tool gets: it is for a person."""
    if result.error is None or "token" not in result.error.details:
        return result
    details = {key: value for key, value in result.error.details.items() if key != "token"}
    return attrs.evolve(result, error=attrs.evolve(result.error, details=details))


def _prompts(tool: Tool) -> Iterable[str]:
    for prompt in (tool.toolset.system_prompt if tool.toolset else None, tool.system_prompt):
        if prompt and prompt.strip():
            yield prompt.strip()


def _caller(principal: Principal | None) -> Principal:
    """Return who calls: the host itself where nobody is named. Whatever else is given is nobody, never the host."""
    if principal is None:
        return SYSTEM
    if type(principal) is not Principal:  # a subclass could say for itself what it may call
        raise TypeError(f"principal: expected a Principal, got {type(principal).__name__}")
    return principal


def _no_access(prepared: Prepared | None, principal: Principal) -> str:
    """Say for the audit what the caller is not told: whether there is such a tool."""
    if prepared is None:
        return "there is no such tool"
    return f"{prepared.qualified_id} requires {', '.join(principal.missing(prepared.tool))}"


def _as_call(call: Any) -> ToolCall:
    """Take a call in the shape of a mapping; anything else is a call of something unknown, with its one result."""
    if isinstance(call, Mapping):
        id = call.get("id")
        key = call.get("idempotency_key")
        return ToolCall(call.get("name", ""), call.get("arguments"), None if id is None else str(id), key)
    return ToolCall(name=str(call))
