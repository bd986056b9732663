"""The kind `workflow`: what runs step by step and survives its process.

A payload is a function with `@workflow`, or a WorkflowDefinition, which may stand in a manifest as `[workflows.<id>]`
as well: one of the manifest counts before one of a pack. `agentos.workflows` runs it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agentos.errors import DescriptorError
from agentos.model.crossing import Crossing, Function
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.model.kind import Kind, declare_own_kind
from agentos.model.manifest import PackEntry
from agentos.model.workflow import WorkflowSettings, workflow_settings
from agentos.model.workflow_definition import WorkflowDefinition

_OWNER = "manifest/workflows"
"""The pack of the workflows that a manifest says."""


def settings_of_workflow(payload: Any) -> WorkflowSettings | None:
    """Return what a payload says of itself; None if it is no workflow."""
    if isinstance(payload, WorkflowDefinition):
        return WorkflowSettings(
            version=payload.version, principal=payload.principal, timeout=payload.timeout, name=payload.id
        )
    return workflow_settings(payload)


def _check(descriptor: Descriptor[Any]) -> None:
    if (fault := _fault(descriptor)) is not None:
        raise DescriptorError(f"workflow {descriptor.id!r}: {fault}")


def _fault(descriptor: Descriptor[Any]) -> str | None:
    payload = descriptor.payload
    if settings_of_workflow(payload) is None:
        return f"expected a function with @workflow or a WorkflowDefinition, got {type(payload).__name__}"
    if isinstance(payload, WorkflowDefinition) and payload.id != descriptor.id:
        return f"the WorkflowDefinition in it is called {payload.id!r}"
    return None


def _adapt(offered: object) -> Sequence[Descriptor[Any]]:
    settings = settings_of_workflow(offered)
    if settings is None:
        return ()
    own_name: str = getattr(offered, "__name__", type(offered).__name__)
    return [Descriptor("workflow", settings.name or own_name, offered)]


def workflow_entries(workflows: Mapping[str, WorkflowDefinition]) -> list[PackEntry]:
    """Return the workflows of a manifest as the entry of one pack, which is loaded last."""
    if not workflows:
        return []
    pack = ExtensionPack(_OWNER, "1", list(workflows.values()), description="The workflows that the manifest says.")
    return [PackEntry(factory=pack, identifier=_OWNER)]


def _describe(payload: Any) -> dict[str, Any]:
    """Say a definition as data; a function goes on in whatever process has its run, which is a host's."""
    if isinstance(payload, WorkflowDefinition):
        return {"definition": payload.to_dict()}
    name = getattr(payload, "__name__", type(payload).__name__)
    raise DescriptorError(
        f"the workflow {name!r} is a function, which runs in the process of a host",
        hint="load its pack without isolation, or say it as a WorkflowDefinition",
    )


def _no_functions(payload: Any) -> dict[str, Function]:  # noqa: ARG001 - a definition has none
    return {}


def _defined(said: Mapping[str, Any], functions: Mapping[str, Function]) -> WorkflowDefinition:  # noqa: ARG001 - as above
    return WorkflowDefinition.from_dict(said["definition"])


WORKFLOW = declare_own_kind(
    Kind(
        "workflow",
        check=_check,
        adapt=_adapt,
        reader="`host.workflows`",
        crossing=Crossing(describe=_describe, functions=_no_functions, proxy=_defined),
    )
)
