"""One call under way: everything a step may need, and what became of it. Calls that can be cancelled, by their ids."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

import attrs

from agentos.access.audit import Audit, shortened
from agentos.access.budgets import Budgets
from agentos.access.denials import Denials
from agentos.access.gate import Decision
from agentos.access.grants import Grant, Grants
from agentos.access.idempotency import Idempotency
from agentos.access.policy import Policy
from agentos.calls.call_plans import CallPlans
from agentos.calls.results import Results
from agentos.calls.threads import ThreadJob, ToolThreads
from agentos.calls.time_limits import TimeLimits
from agentos.calls.tool_catalog import ToolCatalog
from agentos.extensions.events import EventBus
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.secrets.masking import Masker, MaskingLogger
from agentos.stacks.in_use import Users
from agentos.tools.ready import ReadyTool
from agentos.tools.tool_context import Approval, ToolContext
from agentos.tools.tool_events import ToolApproval, ToolContent, ToolProgress

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

DEPTH_LIMIT = 8
"""How deep tools may call tools."""
NO_SESSION: Mapping[str, Any] = {}
_EVENTS: Mapping[str, Callable[..., Any]] = {
    "progress": ToolProgress,
    "content": ToolContent,
    "approval": ToolApproval,
}

Next = Callable[["Invocation"], Awaitable[ToolResult]]
"""What is left to do with a call after one step."""
Step = Callable[["Invocation", Next], Awaitable[ToolResult]]
"""One thing that happens to a call. It ends the call with a result, or goes on with what is next."""


class Recorder(Protocol):
    """Writes down that a call begins and how it ended."""

    async def begin(self, invocation: "Invocation") -> ToolResult | None:
        """Write down that the call begins, before it does; return why it must not, if that is so."""
        ...

    async def end(self, invocation: "Invocation", result: ToolResult) -> None:
        """Write down how the call ended."""
        ...


class Proposer(Protocol):
    """Makes a proposal of a call that needs approval."""

    async def propose(self, invocation: "Invocation") -> ToolResult:
        """Ask for approval of a call; return the call's own result if somebody answers at once."""
        ...


class InFlight:
    """The calls that can be cancelled now, by their ids. Several may have the same id."""

    def __init__(self) -> None:
        self._calls: dict[str, list[Invocation]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, invocation: "Invocation") -> None:
        """Let `cancel` find a call, if it has an id."""
        call_id = invocation.call.id
        if call_id is not None and invocation not in (others := self._calls.setdefault(call_id, [])):
            others.append(invocation)

    def remove(self, invocation: "Invocation") -> None:
        """Let `cancel` find a call no more."""
        call_id = invocation.call.id
        if call_id is None or invocation not in (others := self._calls.get(call_id, [])):
            return
        others.remove(invocation)
        if not others:
            del self._calls[call_id]

    def cancel(self, call_id: str) -> bool:
        """Cancel the calls of that id; False if there are none."""
        found = list(self._calls.get(call_id, ()))
        for invocation in found:
            invocation.cancel()
        return bool(found)


@attrs.define(eq=False, kw_only=True)
class AccessServices:
    """What decides about calls and keeps account of them. A registry without a host has none of it."""

    audit: Audit
    grants: Grants
    denials: Denials
    policy: Policy
    budgets: Budgets
    asking_budgets: Budgets
    """Asking has accounts of its own: who approves a call later must not lack the slot that its asking took."""
    idempotency: Idempotency
    is_shared: bool
    """Other hosts may write to the same store."""
    recorder: Recorder
    recording: Users = attrs.field(factory=Users)
    """The calls whose end is not on record yet."""
    proposer: Proposer = attrs.field(init=False)


@attrs.define(eq=False, kw_only=True)
class CallServices:
    """What steps work with: one object for all calls of a host."""

    catalog: ToolCatalog
    results: Results
    threads: ToolThreads
    time_limits: TimeLimits = attrs.field(factory=TimeLimits)
    in_flight: InFlight = attrs.field(factory=InFlight)
    events: EventBus
    masker: Masker
    logger: MaskingLogger
    access: AccessServices = attrs.field(init=False)
    """There only where `has_access`; no step that asks for it is composed elsewhere."""
    has_access: bool = attrs.field(default=False, init=False)
    known_names: Callable[[Principal], Collection[str]]
    """The names of the tools that a principal is offered."""
    plans: CallPlans = attrs.field(init=False)
    """Which guardrails and middleware the calls of each tool meet."""
    start: Next = attrs.field(init=False)
    """Take a call through all steps."""
    start_found: Next = attrs.field(init=False)
    """Take a call whose tool is known already through all steps but the first."""
    run_tool: Next = attrs.field(init=False)
    """Run the tool of a call alone, and check its output."""
    start_validated: Next = attrs.field(init=False)
    """Take a call whose arguments are good already through the rest of the steps."""
    telling: set["asyncio.Task[None]"] = attrs.field(factory=set)

    def decide_by(self, access: AccessServices) -> None:
        """Have calls decided on, counted and recorded."""
        self.access, self.has_access = access, True

    def note(self, event: str, arguments: Any = None, **facts: Any) -> None:
        """Have something recorded, if there is an audit log."""
        if self.has_access:
            self.access.audit.note(event, arguments, **facts)

    def note_refusal(self, tool: object, principal: Principal, step: str, reason: str) -> None:
        """Record a call that did not get as far as the gate."""
        named = shortened(str(tool), self.masker)
        self.note("decision", tool=named, principal=principal.key, answer="refuse", step=step, reason=reason)


@attrs.define(eq=False)
class Invocation:
    """One call under way."""

    services: CallServices = attrs.field(repr=False)
    call: ToolCall
    principal: Principal
    session: Mapping[str, Any] = attrs.field(default=NO_SESSION, repr=False)
    depth: int = 0
    approval: Approval | None = None
    rejoins: bool = False
    """If the same call waits for a person already, it is that one: no second proposal is made."""
    counted_on: str | None = None
    only_if: "Callable[[Connection], bool] | None" = attrs.field(default=None, repr=False, kw_only=True)
    """Whether its idempotency key may still be claimed, asked in the transaction that claims it: for workflows."""
    ready: ReadyTool = attrs.field(init=False)
    """The tool; there after the step `find`."""
    arguments: dict[str, Any] = attrs.field(init=False, repr=False)
    """What it is called with; there after the step `validate`."""
    decision: Decision | None = None
    grant: Grant | None = None
    recorder: Recorder | None = None
    approved_run: "Invocation | None" = None
    """The call that a person allowed while this one waited for an answer."""
    value: Any = attrs.field(default=None, repr=False)
    """What the tool returned."""
    result: ToolResult | None = attrs.field(default=None, repr=False)
    has_run: bool = False
    """The tool has begun, whatever came of it."""
    is_recorded: bool = False
    """How the call ended is written down, or is being written down."""
    is_gone: bool = False
    """Its tool went out of force before it could run."""
    searches_left: int = 10
    """How often what answers to its name may be looked up again if that happens."""
    is_guarded: bool = False
    """The guardrails let its arguments pass."""
    flags: tuple[Mapping[str, Any], ...] = ()
    """What guardrails found strange about it."""
    held_content: list[Any] = attrs.field(factory=list, repr=False)
    """Parts of the result that its tool told, and that wait for the guardrails of the result."""
    is_answered: bool = False
    """Middleware gave the result, whether the tool ran or not."""
    is_grant_used_up: bool = False
    """Another call took the grant that this one was to run by."""
    ended_by: Literal["timeout", "cancel"] | None = None
    is_cancelled: bool = False
    """Nobody waits for the result any more."""
    _context: ToolContext | None = attrs.field(default=None, repr=False)
    stop: Callable[[], Any] | None = attrs.field(default=None, repr=False)
    """How the call is to be stopped now, if it can be."""
    job: ThreadJob | None = attrs.field(default=None, repr=False)
    """What runs the tool, if that is a thread."""

    # -- what steps ask ----------------------------------------------------------------------------------------

    @property
    def context(self) -> ToolContext:
        """Return what the tool is given."""
        if self._context is None:
            self._context = ToolContext(self)
        return self._context

    @property
    def account(self) -> str:
        """Return on whose budget the call is counted: its principal's, unless the caller says another."""
        return self.counted_on or self.principal.key

    @property
    def itself_or_approved(self) -> "Invocation":
        """Return the call that a person allowed while this one waited, if that is so; else this one."""
        return self if self.approved_run is None else self.approved_run

    def forget_context(self) -> None:
        """Let go of what the tool was given, which knows this call: a cycle would be left to the garbage collector."""
        self._context = None

    def begin_anew(self) -> None:
        """Forget what was found and decided; the tool has not run."""
        self.decision = self.grant = self.recorder = self.result = None
        self.is_gone = self.is_recorded = self.is_guarded = self.is_grant_used_up = False
        self.flags = ()

    def facts(self) -> dict[str, Any]:
        """Return who called what, for the audit log."""
        facts = {"tool": self.ready.qualified_id, "principal": self.principal.key}
        call_id = self.call.id
        return facts if call_id is None else {**facts, "call_id": shortened(str(call_id), self.services.masker)}

    def failure(self, type: str, message: str, details: Mapping[str, Any] | None = None) -> ToolResult:
        """Return the result of a call that failed."""
        return self.services.results.failure(type, message, self.ready.meta, details)

    # -- ending it from outside --------------------------------------------------------------------------------

    def cancel(self) -> None:
        """End the call from outside: it has a Cancelled result then, and a tool that has not begun never does."""
        self._end("cancel")

    def expire(self) -> None:
        """End the call because its time is up."""
        self._end("timeout")

    def _end(self, by: Literal["timeout", "cancel"]) -> None:
        if self.ended_by is not None:
            if by == "cancel":
                self.ended_by = by  # it has timed out and is ending: nobody begins it once more
            return
        self.ended_by = by
        self.is_cancelled = True
        if self.stop is not None:
            self.stop()

    # -- what its tool asks for --------------------------------------------------------------------------------

    async def call_nested(self, name: str, arguments: Any) -> ToolResult:
        """Run a call that the tool makes, for the same principal."""
        nested = self._nested(ToolCall(name, arguments))
        return self._too_deep() or _without_token(await self.services.start(nested))

    async def call_below(self, arguments: Any) -> ToolResult:
        """Run the tool beneath this one, looked up now."""
        services, beneath = self.services, self.services.catalog.beneath(self.ready)
        if beneath is None:
            return services.results.failure("UnknownTool", f"there is no tool beneath {self.ready.entry.id!r}", {})
        if missing := self.principal.missing(beneath.tool):
            reason = f"{beneath.qualified_id} requires {', '.join(missing)}"
            services.note_refusal(beneath.qualified_id, self.principal, "access", reason)
            return services.results.failure("UnknownTool", "nothing stands beneath this tool", {})
        if any(one.denies(beneath.tool, beneath.qualified_id) for one in self.principal.bounds):
            services.note_refusal(beneath.qualified_id, self.principal, "access", "the persona of this turn denies it")
            return services.results.failure("UnknownTool", "nothing stands beneath this tool", {})
        given = self.arguments if arguments is None and self.ready.tool.inherits else arguments
        nested = self._nested(ToolCall(beneath.tool.name, given))
        nested.ready = beneath
        # Who approved the wrapper was shown what it wraps: nobody is asked twice about one call.
        nested.approval = self.approval
        nested.searches_left = 0  # its name means what stands on top
        return self._too_deep() or _without_token(await services.start_found(nested))

    def wait_in_thread(self, call: Coroutine[Any, Any, ToolResult], loop: asyncio.AbstractEventLoop) -> ToolResult:
        """Run a call that the tool makes from its thread; it works no more until that has ended, and needs no place."""
        assert self.job is not None  # noqa: S101 - it runs in a thread
        with self.services.threads.waiting(self.job):
            return asyncio.run_coroutine_threadsafe(call, loop).result()

    def _too_deep(self) -> ToolResult | None:
        if self.depth < DEPTH_LIMIT:
            return None
        message = f"tools call tools {DEPTH_LIMIT} deep; this is probably a cycle"
        return self.services.results.failure("Refused", message, {})

    def _nested(self, call: ToolCall) -> "Invocation":
        session = self.session if self._context is None else self._context.session
        nested = Invocation(self.services, call, self.principal, session, self.depth + 1, rejoins=self.rejoins)
        nested.counted_on = self.counted_on
        return nested

    def tell(self, kind: str, loop: asyncio.AbstractEventLoop | None, said: Mapping[str, Any]) -> Callable[[], Any]:
        """Post what the tool tells while it runs; safe from any thread if *loop* is given."""
        services = self.services
        if not services.events.is_heard:
            return _nothing
        event = _EVENTS[kind](**self.named(), **services.masker.mask_data(dict(said)))
        if kind == "content" and services.plans.of(self.ready).result_guards:
            self.held_content.append(event)
            return _nothing
        if loop is None:
            services.events.post(event)
            return services.events.deliver
        loop.call_soon_threadsafe(self._post_and_deliver, event)
        return _nothing

    def _post_and_deliver(self, event: Any) -> None:
        services = self.services
        services.events.post(event)
        task = asyncio.ensure_future(services.events.deliver())
        services.telling.add(task)
        task.add_done_callback(services.telling.discard)

    def named(self) -> dict[str, Any]:
        """Return who called what, for events."""
        return {
            "tool": self.ready.qualified_id,
            "call_id": self.call.id,
            "principal": self.principal.key,
            "source": self.ready.entry.source,
        }


async def answered(result: ToolResult) -> ToolResult:
    """Return *result*: for steps that have nothing to wait for."""
    return result


def _without_token(result: ToolResult) -> ToolResult:
    """Take the token of a proposal out of a result that a tool gets: it is for a person."""
    if result.error is None or "token" not in result.error.details:
        return result
    details = {key: value for key, value in result.error.details.items() if key != "token"}
    return attrs.evolve(result, error=attrs.evolve(result.error, details=details))


def _nothing() -> None:
    """Deliver nothing."""
