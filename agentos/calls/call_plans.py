"""Which guardrails and middleware the calls of a tool meet: worked out once for every change of these, not per call."""

from collections.abc import Collection

import attrs

from agentos.calls.active_middleware import ActiveMiddleware, MiddlewareStacks
from agentos.calls.tool_catalog import ToolCatalog
from agentos.guards.active_guards import GuardSet
from agentos.guards.guardrails import Guardrails
from agentos.tools.ready import ReadyTool


@attrs.frozen(eq=False)
class CallPlan:
    """Who takes part in the calls of one tool."""

    call_guards: GuardSet
    result_guards: GuardSet
    middleware: tuple[ActiveMiddleware, ...]
    """What runs around the tool, the outermost first."""


class CallPlans:
    """Knows who takes part in the calls of each tool."""

    def __init__(self, catalog: ToolCatalog, guardrails: Guardrails, middleware: MiddlewareStacks) -> None:
        self._catalog = catalog
        self._middleware = middleware
        self._kinds = {guardrails.kind, middleware.registry.kind}
        self.guardrails = guardrails
        catalog.manager.watch(self._note_switch)

    def of(self, ready: ReadyTool) -> CallPlan:
        """Return who takes part in the calls of a tool now."""
        plan: CallPlan | None = ready.plan
        if plan is None:
            plan = ready.plan = self._made(ready)
        return plan

    def _made(self, ready: ReadyTool) -> CallPlan:
        tool, id = ready.tool, ready.qualified_id
        return CallPlan(
            self.guardrails.for_tool("tool_call", tool, id),
            self.guardrails.for_tool("tool_result", tool, id),
            self._middleware.for_tool(tool, id),
        )

    def require_guardrails(self, ids: Collection[str]) -> None:
        """Refuse every call and text while one of *ids* is not in force."""
        self.guardrails.require(ids)
        self._catalog.forget_steps()

    def _note_switch(self, keys: Collection[tuple[str, str]]) -> None:
        if any(kind in self._kinds for kind, _ in keys):
            self._catalog.forget_steps()
