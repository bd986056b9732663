"""ToolOrchestrator: what principals are offered, and their calls. Every call by name ends in exactly one result."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from agentos.access.gate import Question, decide
from agentos.calls.executor import ToolExecutor, of_call
from agentos.calls.invocation import NO_SESSION, AccessServices, Invocation
from agentos.calls.snapshots import snapshot
from agentos.calls.steps.find import unknown
from agentos.calls.steps.guard import ask_about_call
from agentos.extensions.manager import ExtensionManager
from agentos.model.principal import SYSTEM, Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.model.tool_pattern import ToolBounds
from agentos.stacks.entry import Entry, EntryState, Explanation
from agentos.tools.listing import ToolInfo, info_of
from agentos.tools.ready import ReadyTool
from agentos.tools.tool import Tool, as_tool

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

CONCURRENCY = 16
_LISTS_KEPT = 64

_Audience = tuple[frozenset[str], tuple[ToolBounds, ...], Hashable]
"""The rules that count, what personas leave, and what else decides: whom these are alike for is offered the same."""


class ToolOrchestrator:
    """Lists tools for a principal, and takes its calls through the steps of `calls.pipeline`.

    A tool that a principal may not call does not exist for it: it is not listed, and calling it says what calling an
    unknown name says. Listing, prompting and calling ask the same predicate.
    """

    def __init__(
        self,
        manager: ExtensionManager,
        *,
        executor: ToolExecutor | None = None,
        concurrency: int = CONCURRENCY,
        access: AccessServices | None = None,
    ) -> None:
        self._manager = manager
        self.executor = executor or ToolExecutor(manager.registry("tool"), access=access)
        self.catalog = self.executor.catalog
        self._services = self.executor.services
        self._services.known_names = lambda principal: [info.name for info in self.listed(principal)]
        self._registry = self.catalog.registry
        self._concurrency = concurrency
        self._lists: dict[_Audience, list[ToolInfo]] = {}
        self._lists_version = -1

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
        services = self._services
        audience = (who.held, who.bounds, services.access.grants.barring(who.key) if services.has_access else None)
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
        for entry, tool in self.catalog.offered():
            id = f"{entry.source.pack}:{tool.name}"
            if principal.may_call(tool) and principal.reaches(tool, id) and self._denial(tool, id, principal) is None:
                yield entry, tool

    def _denial(self, tool: Tool, qualified_id: str, principal: Principal) -> str | None:
        """Say what denies every call of a tool to *principal*."""
        services = self._services
        if not principal.reaches(tool, qualified_id):
            return f"the persona leaves {qualified_id} out"
        return services.access.denials.bar(tool, qualified_id, principal.key) if services.has_access else None

    def explain(
        self, name: str, principal: Principal | None = None, *, asked_by: Principal | None = None
    ) -> "ToolExplanation":
        """Say who answers a call of *name*, and whether *principal* may make it; if not, what it lacks or what denies.

        Asked by a principal that may not call the tool itself, there is no such tool; of those that stand beneath one
        that it may call, it sees what it may call as well.
        """
        id = name.partition(":")[2] or name
        stack = self._manager.explain(self._registry.kind, id)
        found = self.catalog.find(name)
        if asked_by is not None:
            found = found if found is not None and asked_by.may_call(found.tool) else None
            stack = _as_seen_by(asked_by, stack, found)
            found = found if stack.entries else None
        who = _caller(principal)
        if found is None:
            refusal = self.catalog.why_unreached(name, who if asked_by is None else asked_by)
            return ToolExplanation(stack=stack, principal=who.key, tool=None, refusal=refusal)
        id, missing = found.qualified_id, who.missing(found.tool)
        return ToolExplanation(
            stack=stack,
            principal=who.key,
            tool=id,
            missing=missing,
            denial=self._denial(found.tool, id, who),
            is_reached_by_id=found.entry.state is EntryState.SHADOWED,
        )

    async def preview(self, call: ToolCall | Mapping[str, Any], principal: Principal | None = None) -> ToolResult:
        """Return what the tool's dry run says of a call, without running it; Refused if it has no dry run."""
        call = _as_call(call) if type(call) is not ToolCall else call
        invocation = self.executor.invocation(call, _caller(principal))
        who, ready = invocation.principal, self.catalog.find(call.name)
        if ready is None or not (who.may_call(ready.tool) and who.reaches(ready.tool, ready.qualified_id)):
            return unknown(invocation)
        invocation.ready = ready
        arguments = self.executor.arguments(ready, call)
        if isinstance(arguments, ToolResult):
            return arguments
        invocation.arguments = arguments
        if self._services.has_access:
            access = self._services.access
            if (denied := access.denials.of_call(ready, who.key, None, arguments)) is not None:
                return invocation.failure("Refused", denied)
            access.audit.note("preview", snapshot(arguments), tool=ready.qualified_id, principal=who.key)
        if (refusal := await ask_about_call(invocation)) is not None:
            return refusal
        shown = await self.executor.pipeline.preview(invocation)
        return shown or invocation.failure("Refused", f"{ready.qualified_id} has no dry run")

    def get_tool(self, name: str, principal: Principal | None = None) -> Tool | None:
        """Return the tool that a call of *name* would run for *principal*, or None."""
        found, who = self.catalog.find(name), _caller(principal)
        if found is None or not who.may_call(found.tool):
            return None
        return found.tool if self._denial(found.tool, found.qualified_id, who) is None else None

    def may_wait(self, tool: Tool) -> bool:
        """Tell whether a call of *tool* may have to wait for a person."""
        if not self._services.has_access or (tool.effect == "read" and tool.intervention is None):
            return False
        given, mode = tool.intervention, self._services.access.policy.mode
        policy = given if given is None or isinstance(given, str) else "always"  # by rules or a function: it depends
        question = Question(
            tool=tool.name,
            effect=tool.effect,
            policy=policy,  # type: ignore[arg-type]  # which words there are was checked when the tool was made
            mode=mode,
        )
        return decide(question).answer == "ask"

    # -- calls -------------------------------------------------------------------------------------------------

    async def process_tool_call(
        self,
        call: ToolCall | Mapping[str, Any],
        principal: Principal | None = None,
        *,
        session: Mapping[str, Any] | None = None,
        rejoin: bool = False,
        account: str | None = None,
        only_if: "Callable[[Connection], bool] | None" = None,
    ) -> ToolResult:
        """Run one call for *principal*: by default the host itself, which may call everything.

        rejoin: a call that is the same as one that waits for a person is that one, and makes no second proposal. For
            calls of models, which try again: `agentos.interop`, turns and MCP servers call so.
        account: on which budget the call is counted: by default its principal's.
        only_if: of a call with an idempotency key, whether it may still run, asked in the transaction that claims it.
        """
        invocation = self._invocation(call, principal, session, rejoin=rejoin)
        invocation.only_if = only_if
        invocation.counted_on = account
        if invocation.call.id is None:
            return await self._services.start(invocation)
        return await self.executor.process(invocation)

    def _invocation(
        self,
        call: ToolCall | Mapping[str, Any],
        principal: Principal | None,
        session: Mapping[str, Any] | None,
        *,
        rejoin: bool,
    ) -> Invocation:
        if type(call) is not ToolCall:
            call = _as_call(call)
        if session is None:
            session = NO_SESSION
        elif not isinstance(session, Mapping):
            raise TypeError(f"session: expected a mapping, got {type(session).__name__}")
        return Invocation(self._services, call, _caller(principal), session, 0, None, rejoin)

    async def process_tool_calls(
        self,
        calls: Iterable[ToolCall | Mapping[str, Any]],
        principal: Principal | None = None,
        *,
        session: Mapping[str, Any] | None = None,
        rejoin: bool = False,
    ) -> list[ToolResult]:
        """Run calls side by side, `ordered` tools one after another; results are in the order of the calls."""
        given = [self._invocation(call, principal, session, rejoin=rejoin) for call in calls]
        if len(given) == 1:
            return [await self.executor.process(given[0])]
        results: dict[Invocation, ToolResult] = {}
        waiting = set(given)
        places = asyncio.Semaphore(self._concurrency)
        for invocation in given:
            self._services.in_flight.add(invocation)

        async def run(invocations: Iterable[Invocation]) -> None:
            for invocation in invocations:
                async with places:
                    waiting.discard(invocation)
                    results[invocation] = await self._run_in_turn(invocation)

        in_order = [one for one in given if self._is_ordered(one.call)]
        alone = [[one] for one in given if one not in set(in_order)]
        try:
            async with asyncio.TaskGroup() as group:
                for invocations in (in_order, *alone):
                    if invocations:
                        group.create_task(run(invocations))
        finally:
            for invocation in given:
                self._services.in_flight.remove(invocation)
            for invocation in waiting:
                self._note_never_begun(invocation)
        return [results[invocation] for invocation in given]

    async def _run_in_turn(self, invocation: Invocation) -> ToolResult:
        """Run a call that waited for its turn, or answer for one that was cancelled meanwhile."""
        if invocation.ended_by is None:
            return await self.executor.process(invocation)
        self._note_never_begun(invocation)
        result = self.executor.results.failure("Cancelled", "the call was cancelled before it began", {})
        return of_call(result, invocation.call.id)

    def _note_never_begun(self, invocation: Invocation) -> None:
        reason = "cancelled before it began"
        self._services.note_refusal(invocation.call.name, invocation.principal, "cancelled", reason)

    def _is_ordered(self, call: ToolCall) -> bool:
        found = self.catalog.find(call.name)
        return found is not None and found.tool.ordered

    async def cancel(self, call_id: str) -> bool:
        """Cancel the call of that id, which then returns a Cancelled result. False if none runs."""
        return self._services.in_flight.cancel(call_id)


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
    is_reached_by_id: bool = False
    """Another tool answers to the name alone; this one is shadowed, and its fully-qualified id reaches it."""
    refusal: str | None = None
    """Why the fully-qualified id of a shadowed tool does not reach it, if so."""

    @property
    def is_allowed(self) -> bool:
        """Tell whether the principal may call it."""
        return self.tool is not None and not self.missing and self.denial is None

    def __str__(self) -> str:
        return "\n".join([str(self.stack), *self._way(), *self._access()])

    def _way(self) -> Iterator[str]:
        """Say how a shadowed tool is reached, or why it is not."""
        if self.is_reached_by_id:
            yield f"{self.tool} is shadowed; its full id reaches it"
        if self.refusal is not None:
            yield self.refusal

    def _access(self) -> Iterator[str]:
        if self.tool is None:
            return
        if self.missing:
            noun = "rule" if len(self.missing) == 1 else "rules"
            yield f"{self.principal} may not call {self.tool}: it lacks the {noun} {', '.join(self.missing)}"
        elif self.denial is not None:
            yield f"{self.principal} may not call {self.tool}: {self.denial}"
        else:
            yield f"{self.principal} may call {self.tool}"


def _as_seen_by(who: Principal, stack: Explanation, found: ReadyTool | None) -> Explanation:
    """Leave out of *stack* what *who* may not call: if that is so of the active entry, all but what was *found*."""
    tools = [(entry, as_tool(entry.payload)) for entry in stack.entries]
    seen = [entry for entry, tool in tools if tool is not None and who.may_call(tool)]
    if stack.active is not None and stack.active not in seen:
        is_named = found is not None and found.entry.state is EntryState.SHADOWED
        named = [attrs.evolve(found.entry, reason="shadowed by a tool that is not yours")] if found and is_named else []
        return Explanation(stack.kind, stack.id, None, named)
    return Explanation(stack.kind, stack.id, stack.active, seen)


def _prompts(tool: Tool) -> Iterable[str]:
    for prompt in (tool.toolset.system_prompt if tool.toolset else None, tool.system_prompt):
        if prompt and prompt.strip():
            yield prompt.strip()


def _caller(principal: Principal | None) -> Principal:
    """Return who calls: the host itself where nobody is named. What is not a Principal is an error, never the host."""
    if principal is None:
        return SYSTEM
    if type(principal) is not Principal:  # a subclass could say for itself what it may call
        raise TypeError(f"principal: expected a Principal, got {type(principal).__name__}")
    return principal


def _as_call(call: Any) -> ToolCall:
    """Take a call in the shape of a mapping; anything else is a call of something unknown, with its one result."""
    if isinstance(call, Mapping):
        id = call.get("id")
        key = call.get("idempotency_key")
        return ToolCall(call.get("name", ""), call.get("arguments"), None if id is None else str(id), key)
    return ToolCall(name=str(call))
