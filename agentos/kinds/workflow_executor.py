"""The kind `workflow-executor`: does tasks of workflows that are not tools.

A payload is an object with `execute(task, inputs, context)`, sync or async, which returns JSON. A task names it by its
id, and `flow.execute` does so too.
"""

from typing import Any

from agentos.errors import DescriptorError
from agentos.model.descriptor import Descriptor
from agentos.model.guarding import fault_of_parameters
from agentos.model.kind import Kind, declare_own_kind


def _check(descriptor: Descriptor[Any]) -> None:
    payload = descriptor.payload
    if isinstance(payload, type):
        fault: str | None = f"got the class {payload.__name__}; give an object of it"
    else:
        fault = fault_of_parameters(getattr(payload, "execute", None), 3)
    if fault is not None:
        raise DescriptorError(
            f"workflow-executor {descriptor.id!r}: expected an object with execute(task, inputs, context); {fault}"
        )


WORKFLOW_EXECUTOR = declare_own_kind(
    Kind("workflow-executor", check=_check, reader="`host.workflows`, for tasks that name it")
)
