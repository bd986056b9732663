"""What the host says of the contexts that it gives to functions of a pack in another process.

Each crosses as its data, and as functions for what can be done with it; these live as long as the call they came with.
`child_contexts.py` makes the same contexts of it in the other process.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from agentos.model.kind import kind_of
from agentos.workers.wire_values import is_told_by


@is_told_by("agentos.tools.tool_context", "ToolContext")
def _tool_context(context: Any) -> Mapping[str, Any]:
    under_way = context._call  # noqa: SLF001 - a context of our own
    call, arguments, ready = under_way.call, under_way.arguments, under_way.ready
    said = {
        "id": ready.tool.name,
        "call": [call.name, call.id, call.idempotency_key],
        "principal": under_way.principal,
        "depth": under_way.depth,
        "arguments": arguments,
        "nested": under_way.call_nested,
        "beneath": under_way.call_below,
        "tell": lambda kind, told: under_way.tell(kind, asyncio.get_running_loop(), told),
    }
    if call.arguments != arguments:
        said["raw"] = call.arguments
    if under_way.approval is not None:
        said["approved"] = under_way.approval.proposal
    return said | _if_any(session=under_way.session, options=ready.entry.options)


@is_told_by("agentos.payloads.payload_context", "PayloadContext")
def _payload_context(context: Any) -> Mapping[str, Any]:
    entry = context._entry  # noqa: SLF001 - a context of our own
    said = {"kind": entry.kind, "id": entry.id, "principal": context.principal}
    return said | _if_any(session=context.session, options=entry.options)


@is_told_by("agentos.guards.guard_context", "GuardContext", "WaitingGuardContext")
def _guard_context(context: Any) -> Mapping[str, Any]:
    return {
        **_payload_context(context),
        "stage": context.stage,
        "call": context.call,
        "preceding": context.preceding,
        "is_final": context.is_final,
        "call_tool": context.call_tool,
    }


@is_told_by("agentos.kinds.planning_strategy", "PlanContext")
def _plan_context(context: Any) -> Mapping[str, Any]:
    return {**_payload_context(context), "tools": context.tools, "ask": context.ask}


@is_told_by("agentos.model.guarding", "GuardedCall")
def _guarded_call(call: Any) -> Mapping[str, Any]:
    return {"tool": call.tool, "name": call.name, "arguments": call.arguments, "effect": call.effect}


@is_told_by("agentos.calls.active_middleware", "MiddlewareCall")
def _middleware_call(call: Any) -> Mapping[str, Any]:
    names = ("tool", "name", "arguments", "effect", "idempotent", "depth", "context")
    return {name: getattr(call, name) for name in names}


def _if_any(**values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(value) for name, value in values.items() if value}


def entry_said(entry: Any) -> dict[str, Any]:
    """Say of an entry on a stack what a pack may know of it: its payload as far as it can be told."""
    return {
        "kind": entry.kind,
        "id": entry.id,
        "payload": dict(kind_of(entry.kind).crossing.describe(entry.payload)),
        "sequence": entry.sequence,
        "source": entry.source,
        "priority": entry.priority,
        "state": str(entry.state),
        "reason": entry.reason,
        "activated_at": entry.activated_at,
        "options": dict(entry.options),
    }
