"""ToolExecutor: finds a tool, checks its arguments, runs it where it belongs, and makes one result."""

import asyncio
import copy
import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Protocol, cast

import attrs

from agentos.base.foreign import to_the_end
from agentos.calls.results import PLAIN, Funnel
from agentos.calls.running import Running, Watch
from agentos.calls.threads import Threads, TooManyAbandonedError
from agentos.extensions.events import EventBus
from agentos.model.field_checks import did_you_mean
from agentos.model.principal import SYSTEM, Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.schema.build import BuildError
from agentos.schema.validation import BadArguments, problems_of, show_path
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.entry import Entry, EntryState
from agentos.stacks.rank import rank
from agentos.stacks.registry import Registry
from agentos.tools.listing import ToolInfo, info_of
from agentos.tools.ready import Prepared
from agentos.tools.tool import Tool, as_tool
from agentos.tools.tool_context import ToolContext
from agentos.tools.tool_events import ToolApproval, ToolContent, ToolFinished, ToolProgress, ToolsChanged, ToolStarted

DEPTH_LIMIT = 8
_TOLD: Mapping[str, Callable[..., Any]] = {
    "progress": ToolProgress,
    "content": ToolContent,
    "approval": ToolApproval,
}
_NAMES_SEARCHED = 2_000
_NO_SESSION: Mapping[str, Any] = {}


class Backstage(Protocol):
    """The part of the manager that an executor needs."""

    masker: Masker

    @property
    def events(self) -> EventBus:
        """Return the bus of events."""
        ...

    def watch(self, watcher: Callable[[Collection[tuple[str, str]]], None]) -> None:
        """Call *watcher* with the stacks of every switch."""
        ...

    def held_back(self, entry: Entry) -> str | None:
        """Say why an entry waits for a person."""
        ...

    def shut(self, entry: Entry) -> str | None:
        """Say why an entry's own gate keeps it out of force."""
        ...


class ToolExecutor:
    """Runs tools of a registry by name, alias or `pack:tool`.

    It checks arguments and outputs and contains whatever a tool does. Who may call what is the orchestrator's business.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        default_timeout: float | None = 300.0,
        threads: Threads | None = None,
        funnel: Funnel | None = None,
    ) -> None:
        if not isinstance(registry, Registry):
            found = getattr(registry, "registry", None)
            if not callable(found):
                raise TypeError(
                    f"ToolExecutor takes a Registry, such as manager.registry('tool'), got {type(registry).__name__}"
                )
            registry = found("tool")
        self.registry = registry
        self._backstage = cast("Backstage", registry.writer)
        self._masker = self._backstage.masker
        self._events = self._backstage.events
        self._logger = MaskingLogger("agentos.tools", self._masker)
        self.funnel = funnel or Funnel(self._masker)
        self.threads = threads or Threads()
        self._default_timeout = default_timeout
        self._watch = Watch()
        self._prepared: dict[str, Prepared] = {}
        self._beneath: dict[tuple[str, int], Prepared] = {}
        self._aliases: dict[str, str] = {}
        self._warned: set[str] = set()
        self._offered: dict[str, tuple[Entry, Tool]] = {}
        self._running: dict[str, list[Running]] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._listed: tuple[int, list[ToolInfo]] | None = None
        self._note([(registry.kind, id) for id in registry.ids()])
        self._backstage.watch(self._note_switch)

    # -- what is there -----------------------------------------------------------------------------------------

    def list_available_tools(self) -> list[ToolInfo]:
        """Return every tool that can be called, in the order of first registration; kept until something changes."""
        if self._listed is None or self._listed[0] != self.registry.version:
            infos = [info_of(entry, tool) for entry, tool in self.offered()]
            self._listed = (self.registry.version, infos)
        return list(self._listed[1])

    def offered(self) -> Iterator[tuple[Entry, Tool]]:
        """Yield the active tools."""
        for entry in self.registry.list_active():
            if (known := self._offered.get(entry.id)) is not None:
                yield known

    def get_tool(self, name: str) -> Tool | None:
        """Return the tool that a call of *name* would run, or None."""
        found = self.find(name)
        return found.tool if found is not None else None

    def find(self, name: str) -> Prepared | None:
        """Return the tool in force for a name, an alias or a `pack:tool`, made ready for calls."""
        try:
            prepared = self._prepared.get(name)
        except TypeError:  # a name that is no string at all
            return None
        if prepared is not None:
            return prepared
        if (known := self._offered.get(name)) is None:
            return self._find_otherwise(name)
        prepared = self._prepared[name] = Prepared(*known, self._default_timeout)
        return prepared

    def _find_otherwise(self, name: str) -> Prepared | None:
        if not isinstance(name, str):
            return None
        owner, colon, id = name.partition(":")
        if colon:
            return next((self.ready(entry) for entry in self.registry.stack(id) if _is_owned(entry, owner)), None)
        target = self._aliases.get(name)
        if target is None:
            return None
        if name not in self._warned:
            self._warned.add(name)
            self._logger.warning("the tool name %r is an alias of %r; use that", name, target)
        return self.find(target)

    def ready(self, entry: Entry) -> Prepared | None:
        """Return an entry that is in force, active or wrapped, made ready for calls."""
        if entry.state is EntryState.ACTIVE:
            return self.find(entry.id)
        key = (entry.id, entry.sequence)
        prepared = self._beneath.get(key)
        if prepared is None or prepared.entry is not entry:
            tool = as_tool(entry.payload)
            if tool is None:
                return None
            prepared = self._beneath[key] = Prepared(entry, tool, self._default_timeout)
        return prepared

    def why_not(self, name: str, known: Collection[str], principal: Principal = SYSTEM) -> ToolResult:
        """Return the result of a call that found no tool: declared without handler, or unknown."""
        if isinstance(name, str):
            id = name.partition(":")[2] or name
            for entry in self.registry.stack(id):
                tool = as_tool(entry.payload)
                if tool is not None and principal.may_call(tool) and (refusal := self._why_idle(entry)) is not None:
                    return refusal
        shown = name if isinstance(name, str) else type(name).__name__
        hint = did_you_mean(str(shown), itertools.islice(known, _NAMES_SEARCHED))
        return self.funnel.failure("UnknownTool", f"there is no tool called {str(shown)[:100]!r}{hint}", {})

    def _why_idle(self, entry: Entry) -> ToolResult | None:
        if entry.state is EntryState.UNBOUND:
            message = f"the tool {entry.id!r} is declared, but no handler is bound to it yet; try again later"
            return self.funnel.failure("HandlerMissing", message, {})
        if entry.state is EntryState.GATED and (reason := self._backstage.held_back(entry)) is not None:
            return self.funnel.failure("DefinitionChanged", reason, {})
        if entry.state is EntryState.GATED and (reason := self._backstage.shut(entry)) is not None:
            return self.funnel.failure("WorkerDied", reason, {})
        return None

    # -- calls -------------------------------------------------------------------------------------------------

    async def execute_tool(self, call: ToolCall, context: ToolContext | None = None) -> ToolResult:
        """Run one call. Whatever happens, it ends in one result; only the caller's own cancellation is raised."""
        prepared = self.find(call.name)
        if prepared is None:
            return _of(self.why_not(call.name, self._offered), call)
        arguments = self.arguments(prepared, call)
        if isinstance(arguments, ToolResult):
            return _of(arguments, call)
        made = self.context(
            prepared,
            call,
            context.principal if context else SYSTEM,
            context.session if context else None,
            context.depth if context else 0,
        )
        return _of(await self.run(prepared, arguments, made), call)

    def context(
        self,
        prepared: Prepared,
        call: ToolCall,
        principal: Principal,
        session: Mapping[str, Any] | None,
        depth: int = 0,
        door: Any = None,
    ) -> ToolContext:
        """Return what the tool of *prepared* is given for one call."""
        return ToolContext(door or self, prepared, principal, call, _NO_SESSION if session is None else session, depth)

    def arguments(self, prepared: Prepared, call: ToolCall) -> dict[str, Any] | ToolResult:
        """Return the call's arguments, parsed, checked and completed; a result says what is wrong with them."""
        try:
            return prepared.checker.arguments(call.arguments)
        except BadArguments as error:
            lines = [str(problem) for problem in error.problems]
            message = f"{error}{': ' if lines else ''}{'; '.join(lines)}"
            details = {"problems": [{"path": one.path, "message": one.message} for one in error.problems]}
            return self.funnel.failure("InvalidArguments", message, prepared.meta, details)

    @property
    def is_heard(self) -> bool:
        """Tell whether anybody listens to what is told of calls."""
        return self._events.is_heard

    def is_in_force(self, prepared: Prepared) -> bool:
        """Tell whether what was found is still what stands on its stack: it may have gone while somebody thought."""
        known = self._prepared.get(prepared.entry.id)
        if known is prepared:
            return True
        stack = self.registry.stack(prepared.entry.id)
        return any(entry._slot is prepared.seat and entry.state.in_force for entry in stack)  # noqa: SLF001 - our own

    async def run(self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run a tool whose arguments are good, and make its result."""
        told = self._events.is_heard
        began = time.perf_counter() if told else 0.0
        users = prepared.users
        lease = users.enter()
        running = Running(context, self._watch)
        call_id = context.tool_call.id
        if call_id is not None:
            self._running.setdefault(call_id, []).append(running)
        result: ToolResult | None = None
        try:
            if told:
                self._events.post(ToolStarted(**_who(context)))
                await self._events.deliver()
            result = await self._outcome(prepared, arguments, context, running)
        except asyncio.CancelledError:
            result = self.funnel.failure("Cancelled", "the caller was cancelled", prepared.meta)
            raise
        finally:
            users.leave(lease)
            if call_id is not None:
                self._forget_running(call_id, running)
            if told and result is not None:
                await to_the_end(self._tell_of_end(context, result, time.perf_counter() - began))
        return result

    async def preview(self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext) -> ToolResult | None:
        """Return what the tool's dry run says of a call that does not run yet; None if it has none."""
        tool = prepared.tool
        if tool.dry_run is None:
            return None
        dry = attrs.evolve(tool, execute=tool.dry_run, function=None, output_schema=None, placement=None)
        rehearsal = Prepared(prepared.entry, dry, self._default_timeout)
        with rehearsal.users.use():
            return await self._outcome(rehearsal, copy.deepcopy(arguments), context, Running(context, self._watch))

    async def _tell_of_end(self, context: ToolContext, result: ToolResult, seconds: float) -> None:
        error = result.error.type if result.error else None
        self._events.post(ToolFinished(**_who(context), success=result.success, error=error, seconds=seconds))
        await self._events.deliver()

    async def _outcome(
        self, prepared: Prepared, arguments: dict[str, Any], context: ToolContext, running: Running
    ) -> ToolResult:
        try:
            if prepared.is_async:
                value = await running.on_loop(prepared, arguments, context)
            else:
                value = await running.in_thread(prepared, arguments, context, self.threads)
            if type(value) not in PLAIN and running.ended_by is None:
                value = await running.gathered(value, context, prepared)
        except asyncio.CancelledError as error:
            if running.ended_by is not None:
                return self._ended(prepared, running)
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return self._raised(prepared, error)  # the tool raised it by itself: nobody cancelled the caller
        except BuildError as error:
            return self._not_built(prepared, error)
        except TooManyAbandonedError as error:
            return self.funnel.failure("BudgetExceeded", str(error), prepared.meta)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and prepared.is_async:
                raise
            return self._raised(prepared, error)
        if running.ended_by is not None:
            return self._ended(prepared, running)
        try:
            return self._checked(prepared, value)
        except Exception as error:  # noqa: BLE001 - what a tool returned has methods of its own; no call goes without result
            message = f"the tool did run, but what it returned could not be used: {self._masker.describe(error)}"
            return self.funnel.failure("ResultNotSerialisable", message, prepared.meta)

    def _not_built(self, prepared: Prepared, error: BuildError) -> ToolResult:
        """Return the result of arguments that fit the schema, but not the types that the function declared."""
        path = show_path(error.path)
        message = f"the arguments do not fit: {path}: {error.message}"
        details = {"problems": [{"path": path, "message": error.message}]}
        return self.funnel.failure("InvalidArguments", message, prepared.meta, details)

    def _ended(self, prepared: Prepared, running: Running) -> ToolResult:
        if running.ended_by == "timeout":
            message = f"{prepared.tool.name} did not finish within {prepared.timeout} s; try a smaller request"
            return self.funnel.failure("TimedOut", message, prepared.meta, {"timeout": prepared.timeout})
        return self.funnel.failure("Cancelled", "the call was cancelled before it finished", prepared.meta)

    def _raised(self, prepared: Prepared, error: BaseException) -> ToolResult:
        self._logger.warning("tool %s raised", prepared.qualified_id, exc_info=error)
        details = {"exception": type(error).__name__}
        return self.funnel.failure("ToolRaised", self._masker.describe(error), prepared.meta, details)

    def _checked(self, prepared: Prepared, value: Any) -> ToolResult:
        """Make the result, and hold its output against the tool's output schema."""
        result = self.funnel.success(value, prepared.meta)
        if prepared.output_is_valid is None or not result.success or "output_dropped" in result.meta:
            return result
        if prepared.output_is_valid(result.output):
            return result
        problems = problems_of(prepared.output_validator, prepared.tool.output_schema, result.output)
        lines = "; ".join(str(problem) for problem in problems)
        message = f"the tool did run, but its output does not fit its output schema: {lines}"
        return self.funnel.failure("InvalidOutput", message, prepared.meta, state=result.state)

    async def cancel(self, call_id: str) -> bool:
        """Cancel the calls of that id; each then returns a Cancelled result. False if none runs."""
        found = list(self._running.get(call_id, ()))
        for running in found:
            running.cancel()
        return bool(found)

    def _forget_running(self, call_id: str, running: Running) -> None:
        others = self._running[call_id]
        others.remove(running)
        if not others:
            del self._running[call_id]

    # -- the door of ToolContext -------------------------------------------------------------------------------

    async def call_from(self, context: ToolContext, name: str, arguments: Any) -> ToolResult:
        """Run a call that a tool makes."""
        if (refusal := self.too_deep(context)) is not None:
            return refusal
        prepared = self.find(name)
        if prepared is None:
            return self.why_not(name, self._offered)
        return await self._nested(prepared, ToolCall(name, arguments), context)

    async def below_from(self, context: ToolContext, arguments: Any) -> ToolResult:
        """Run the tool beneath the one that asks."""
        if (refusal := self.too_deep(context)) is not None:
            return refusal
        prepared = self.beneath(context)
        if isinstance(prepared, ToolResult):
            return prepared
        return await self._nested(prepared, ToolCall(prepared.tool.name, arguments), context)

    async def _nested(self, prepared: Prepared, call: ToolCall, context: ToolContext) -> ToolResult:
        arguments = self.arguments(prepared, call)
        if isinstance(arguments, ToolResult):
            return arguments
        made = self.context(prepared, call, context.principal, context.session, context.depth + 1)
        return await self.run(prepared, arguments, made)

    def too_deep(self, context: ToolContext) -> ToolResult | None:
        """Return a refusal if a tool's call would be nested too deep."""
        if context.depth < DEPTH_LIMIT:
            return None
        message = f"tools call tools {DEPTH_LIMIT} deep; this is probably a cycle"
        return self.funnel.failure("Refused", message, {})

    def beneath(self, context: ToolContext) -> Prepared | ToolResult:
        """Return the next tool in force beneath the one of *context*, as the stack is now."""
        mine = context._prepared.entry  # noqa: SLF001 - the context is this package's own
        for entry in self.registry.stack(mine.id):
            if rank(entry) < rank(mine) and entry.state.in_force:
                prepared = self.ready(entry)
                if prepared is not None:
                    return prepared
        return self.funnel.failure("UnknownTool", f"there is no tool beneath {mine.id!r}", {})

    def chain(self, prepared: Prepared) -> list[Prepared]:
        """Return the tools in force beneath one, the strongest first: what it may call as `below`."""
        mine = prepared.entry
        if not mine.descriptor.wraps:
            return []
        below = [one for one in self.registry.stack(mine.id) if rank(one) < rank(mine) and one.state.in_force]
        return [ready for entry in below if (ready := self.ready(entry)) is not None]

    def tell(self, context: ToolContext, kind: str, told: Mapping[str, Any]) -> Callable[[], Any]:
        """Post what a tool tells while it runs; safe from any thread."""
        if not self._events.is_heard:
            return _nothing
        safe = self._masker.mask_data(dict(told))
        event = _TOLD[kind](**_who(context), **safe)
        loop = context._loop  # noqa: SLF001 - set while the tool runs in a thread
        if loop is None:
            self._events.post(event)
            return self._events.deliver
        loop.call_soon_threadsafe(self._post_and_deliver, event)
        return _nothing

    def _post_and_deliver(self, event: Any) -> None:
        self._events.post(event)
        task = asyncio.ensure_future(self._events.deliver())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    # -- changes -----------------------------------------------------------------------------------------------

    def _note_switch(self, keys: Collection[tuple[str, str]]) -> None:
        added, removed, changed = self._note(keys)
        if added or removed or changed:
            self._events.post(ToolsChanged(added=tuple(added), removed=tuple(removed), changed=tuple(changed)))

    def _note(self, keys: Collection[tuple[str, str]]) -> tuple[list[str], list[str], list[str]]:
        """Look again at the stacks that changed: what is offered, and which aliases count."""
        added: list[str] = []
        removed: list[str] = []
        changed: list[str] = []
        for kind, id in keys:
            if kind != self.registry.kind:
                continue
            before = self._offered.pop(id, None)
            self._drop_stale(id, before[1].aliases if before else ())
            now = self._look(id)
            if now is not None:
                self._offered[id] = now
                for alias in now[1].aliases:
                    self._aliases.setdefault(alias, id)
            if before is None or now is None:
                (added if now else removed).extend([id] if before or now else [])
            elif before[0].descriptor is not now[0].descriptor:
                changed.append(id)
        return added, removed, changed

    def _look(self, id: str) -> tuple[Entry, Tool] | None:
        entry = self.registry.get_active(id)
        tool = as_tool(entry.payload) if entry is not None else None
        return None if entry is None or tool is None else (entry, tool)

    def _drop_stale(self, id: str, aliases: Collection[str]) -> None:
        self._prepared.pop(id, None)
        for alias in aliases:
            if self._aliases.get(alias) == id:
                del self._aliases[alias]
        if self._beneath:
            standing = {entry.sequence for entry in self.registry.stack(id)}
            for key in [key for key in self._beneath if key[0] == id and key[1] not in standing]:
                del self._beneath[key]


def _is_owned(entry: Entry, owner: str) -> bool:
    return entry.source.pack == owner and entry.state.in_force


def _of(result: ToolResult, call: ToolCall) -> ToolResult:
    return result if call.id is None else attrs.evolve(result, call_id=call.id)


def _who(context: ToolContext) -> dict[str, Any]:
    prepared = context._prepared  # noqa: SLF001 - the context is this package's own
    return {
        "tool": prepared.qualified_id,
        "call_id": context.tool_call.id,
        "principal": context.principal.key,
        "source": prepared.entry.source,
    }


def _nothing() -> None:
    """Deliver nothing."""
