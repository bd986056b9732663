"""The kind `workflow`: what runs step by step and survives its process.

A payload is a function with `@workflow`, or a WorkflowDefinition. `agentos.workflows` runs it.
"""

from collections.abc import Sequence
from typing import Any

from agentos.errors import DescriptorError
from agentos.model.descriptor import Descriptor
from agentos.model.kind import Kind, declare_own_kind
from agentos.model.workflow import WorkflowSettings, workflow_settings
from agentos.model.workflow_definition import WorkflowDefinition


def settings_of_workflow(payload: Any) -> WorkflowSettings | None:
    """Return what a payload says of itself; None if it is no workflow."""
    if isinstance(payload, WorkflowDefinition):
        return WorkflowSettings(
            version=payload.version, principal=payload.principal, timeout=payload.timeout, name=payload.id
        )
    return workflow_settings(payload)


def _check(descriptor: Descriptor[Any]) -> None:
    if settings_of_workflow(descriptor.payload) is None:
        got = type(descriptor.payload).__name__
        raise DescriptorError(
            f"workflow {descriptor.id!r}: expected a function with @workflow or a WorkflowDefinition, got {got}"
        )


def _adapt(offered: object) -> Sequence[Descriptor[Any]]:
    settings = settings_of_workflow(offered)
    if settings is None:
        return ()
    own_name: str = getattr(offered, "__name__", type(offered).__name__)
    return [Descriptor("workflow", settings.name or own_name, offered)]


WORKFLOW = declare_own_kind(Kind("workflow", check=_check, adapt=_adapt, reader="`host.workflows`"))
