"""ToolExecutor: calls of a registry's tools by name, and nothing else. A host decides about them as well."""

from collections.abc import Awaitable, Mapping
from typing import Any

from agentos.calls.active_middleware import MiddlewareStacks
from agentos.calls.call_plans import CallPlans
from agentos.calls.invocation import NO_SESSION, AccessServices, CallServices, Invocation
from agentos.calls.pipeline import Pipeline
from agentos.calls.results import Results
from agentos.calls.steps.validate import checked_arguments
from agentos.calls.threads import ToolThreads
from agentos.calls.tool_catalog import DEFAULT_TIMEOUT, ToolCatalog
from agentos.guards.guard_context import GuardContext
from agentos.guards.guardrails import Guardrails
from agentos.model.principal import SYSTEM, Principal
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.registry import Registry
from agentos.tools.listing import ToolInfo
from agentos.tools.ready import ReadyTool
from agentos.tools.tool import Tool
from agentos.tools.tool_context import ToolContext


class ToolExecutor:
    """Runs tools of a registry by name, alias or `pack:tool`.

    Every call takes the steps of `calls.pipeline`. Without *access* nobody is asked and nothing is counted or recorded.
    """

    def __init__(
        self,
        registry: Registry | ToolCatalog,
        *,
        default_timeout: float | None = DEFAULT_TIMEOUT,
        threads: ToolThreads | None = None,
        results: Results | None = None,
        access: AccessServices | None = None,
    ) -> None:
        self.catalog = _catalog_of(registry, default_timeout)
        self.registry = self.catalog.registry
        manager = self.catalog.manager
        self.results = results or Results(manager.masker)
        self.threads = threads or ToolThreads()
        self.pack_principals: Mapping[str, Principal] = {}
        """What packs hold that call tools of their own accord, by their names; one that is not here holds nothing."""
        self.services = CallServices(
            catalog=self.catalog,
            results=self.results,
            threads=self.threads,
            events=manager.events,
            masker=manager.masker,
            logger=MaskingLogger("agentos.tools", manager.masker),
            known_names=lambda _: [tool.name for _, tool in self.catalog.offered()],
        )
        if access is not None:
            self.services.decide_by(access)
        self.guardrails = Guardrails(
            manager.registry("guardrail"),
            events=manager.events,
            masker=manager.masker,
            threads=ToolThreads(),
            note=self.services.note,
            call_tool=self._call_for_guard,
        )
        self.services.plans = CallPlans(
            self.catalog, self.guardrails, MiddlewareStacks(manager.registry("tool-middleware"))
        )
        self.pipeline = Pipeline(self.services)

    def list_available_tools(self) -> list[ToolInfo]:
        """Return every tool that can be called, in the order of first registration; kept until something changes."""
        return self.catalog.infos()

    def get_tool(self, name: str) -> Tool | None:
        """Return the tool that a call of *name* would run, or None."""
        found = self.catalog.find(name)
        return None if found is None else found.tool

    async def execute_tool(self, call: ToolCall, context: ToolContext | None = None) -> ToolResult:
        """Run one call. Whatever happens, it ends in one result; only the caller's own cancellation is raised."""
        if context is None:
            return await self.process(Invocation(self.services, call, SYSTEM))
        return await self.process(Invocation(self.services, call, context.principal, context.session, context.depth))

    async def process(self, invocation: Invocation) -> ToolResult:
        """Take a call from outside through all steps; one with an id can be cancelled by it."""
        call_id = invocation.call.id
        if call_id is None:
            return await self.pipeline.start(invocation)
        return of_call(await self.pipeline.start_cancellable(invocation, self.pipeline.start), call_id)

    def invocation(self, call: ToolCall, principal: Principal, session: Any = None) -> Invocation:
        """Return a call of *principal* that has not begun."""
        return Invocation(self.services, call, principal, NO_SESSION if session is None else session)

    def arguments(self, ready: ReadyTool, call: ToolCall) -> dict[str, Any] | ToolResult:
        """Return the arguments of a call that is not made yet, as they would run; or what is wrong with them."""
        return checked_arguments(self.results, ready, call)

    def _call_for_guard(self, context: GuardContext, name: str, arguments: Any) -> Awaitable[ToolResult]:
        """Run a call that a guardrail makes: as its pack, with what this principal is said to hold."""
        pack = context.guard.pack
        principal = self.pack_principals.get(pack) or Principal(pack, "service")
        depth = len(context.chain())
        return self.process(Invocation(self.services, ToolCall(name, arguments), principal, NO_SESSION, depth))

    async def cancel(self, call_id: str) -> bool:
        """Cancel the calls of that id; each then returns a Cancelled result. False if none runs."""
        return self.services.in_flight.cancel(call_id)


def of_call(result: ToolResult, call_id: str | None) -> ToolResult:
    """Return *result* as that of the call with that id. By hand, since this is done for every call."""
    if call_id is None:
        return result
    return ToolResult(
        *(result.success, result.output, result.content, result.state, result.error, result.stop, result.meta),
        *(call_id, result.media),
    )


def _catalog_of(registry: Any, default_timeout: float | None) -> ToolCatalog:
    if isinstance(registry, ToolCatalog):
        return registry
    if not isinstance(registry, Registry):
        found = getattr(registry, "registry", None)
        if not callable(found):
            raise TypeError(
                f"ToolExecutor takes a Registry, such as manager.registry('tool'), got {type(registry).__name__}"
            )
        registry = found("tool")
    return ToolCatalog(registry, default_timeout=default_timeout)
