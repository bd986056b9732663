"""What a run under way uses of its host."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from agentos.access.idempotency import Idempotency
from agentos.calls.approvals import Approvals
from agentos.calls.orchestrator import ToolOrchestrator
from agentos.secrets.masking import Masker
from agentos.workflows.dbos_engine import DbosEngine
from agentos.workflows.run_store import RunStore


@attrs.define(kw_only=True)
class FlowServices:
    """The door, the inbox, the store, the engine, and what is told of steps."""

    tools: ToolOrchestrator
    approvals: Approvals
    idempotency: Idempotency
    runs: RunStore
    engine: DbosEngine
    masker: Masker
    is_fresh: Callable[[], bool]
    """Tells whether the last sign of life of this host is so recent that nobody can have taken it for dead."""
    execute: Callable[..., Awaitable[Any]]
    """Has an executor execute a task: its id, the task, the inputs, the principal, the run's id."""
    start_child: Callable[..., Awaitable[None]]
    """Starts a run for another: the parent's claim, the id, the workflow, the inputs, the principal."""
    tell_step: Callable[..., Awaitable[None]]
    """Tells that a step ended: the claim, its key, kind and name, and what it came to."""
