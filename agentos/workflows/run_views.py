"""Runs and their steps as they are shown."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentos.access.stored_results import result_from_text
from agentos.errors import WorkflowError
from agentos.model.workflow import RunState, StepRecord
from agentos.workflows.dbos_engine import RecordedStep
from agentos.workflows.live_flow import LiveFlow
from agentos.workflows.run_store import Wait


def time_of(seconds: float | None) -> datetime | None:
    """Return a time that was stored."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def output_of(row: Mapping[str, Any]) -> Any:
    """Return what came of a run that is over; raise WorkflowError if it was not finished."""
    result = {} if row["result"] is None else json.loads(row["result"])
    if row["state"] == RunState.FINISHED:
        return result.get("output")
    error = result.get("error") or {"type": row["state"], "message": ""}
    message = f"the run {row['id']} of {row['workflow']!r} {_ENDED[row['state']]}: {error['message']}"
    raise WorkflowError(message, run=row["id"], type=error["type"])


_ENDED = {RunState.FAILED: "failed", RunState.CANCELLED: "was cancelled"}


def records_of(
    recorded: Sequence[RecordedStep], waits: Sequence[Wait], flow: LiveFlow | None, row: Mapping[str, Any]
) -> list[StepRecord]:
    """Return the steps of a run, as far as they are recorded, wait, or run here in *flow*."""
    steps = [_record_of(step) for step in recorded]
    known = {step.key for step in steps}
    waiting = [_waiting(wait) for wait in waits if wait.step not in known]
    known |= {wait.key for wait in waiting}
    if flow is not None and not RunState(row["state"]).is_over:
        steps += [
            StepRecord(key=key, name=name, kind=kind, state="running")  # type: ignore[arg-type]  # it is one of them
            for key, (kind, name) in flow.running.items()
            if key not in known
        ]
    return sorted([*steps, *waiting], key=lambda step: (step.started_at or _LATEST, step.key))


_LATEST = datetime.max.replace(tzinfo=UTC)


def _record_of(step: RecordedStep) -> StepRecord:
    payload = step.payload
    result = result_from_text(payload["result"]) if "result" in payload else None
    skipped = payload.get("skipped")
    return StepRecord(
        key=step.key,
        name=step.name,
        kind=step.kind,  # type: ignore[arg-type]  # it was recorded as one
        state="skipped" if skipped is not None else "done" if payload["ok"] else "failed",
        tool=None if result is None else result.meta.get("tool"),
        output=payload.get("output") if result is None else result.output,
        error=payload.get("error"),
        reason=skipped,
        proposal=payload.get("proposal"),
        attempts=payload.get("attempts", 1),
        started_at=time_of(payload.get("at")),
        ended_at=time_of(step.ended_at),
    )


def _waiting(wait: Wait) -> StepRecord:
    kinds = {"proposal": "call", "retry": "call", "unknown": "call"}
    return StepRecord(
        key=wait.step,
        name=wait.name,
        kind=kinds.get(wait.kind, wait.kind),  # type: ignore[arg-type]  # it is one of them
        state="unknown" if wait.kind == "unknown" else "waiting",
        reason=wait.reason,
        proposal=wait.ref if wait.kind == "proposal" else None,
        started_at=time_of(wait.since),
    )
