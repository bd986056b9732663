"""The kind `tool`: payloads that a model may call, consumed by the executor and the orchestrator.

A payload is a Tool, or an object with a tool's parts. Anything else may stand on a stack of this kind, for a host's
own use: it is never offered and can't be called.
"""

from collections.abc import Sequence
from typing import Any

import attrs

from agentos.calls.tool_crossing import TOOL_CROSSING
from agentos.errors import DescriptorError
from agentos.model.descriptor import Descriptor, as_requirements
from agentos.model.kind import Kind, declare_own_kind
from agentos.schema.validation import compile_schema
from agentos.tools.definition import definition_of
from agentos.tools.service import ToolsService
from agentos.tools.tool import FunctionTool, Tool, Toolset, as_tool, looks_like_tool


def _check(descriptor: Descriptor[Any]) -> None:
    tool = as_tool(descriptor.payload)
    if tool is None:
        return
    if tool.name != descriptor.id:
        raise DescriptorError(
            f"the descriptor's id {descriptor.id!r} differs from its tool's name {tool.name!r}; they must be the same"
        )
    if not isinstance(tool, FunctionTool):  # a derived schema is valid by construction
        compile_schema(tool.input_schema, f"the input schema of tool {tool.name!r}")
        if tool.output_schema is not None:
            compile_schema(tool.output_schema, f"the output schema of tool {tool.name!r}")


def _is_bound(payload: Any) -> bool:
    if isinstance(payload, Tool):
        return payload.execute is not None
    return not looks_like_tool(payload) or getattr(payload, "execute", None) is not None


def _adapt(offered: object) -> Sequence[Descriptor[Any]]:
    if isinstance(offered, Toolset):
        return [_complete(Descriptor("tool", tool.name, tool)) for tool in offered]
    tool = as_tool(offered)
    return () if tool is None else [_complete(Descriptor("tool", tool.name, offered))]


def _complete(descriptor: Descriptor[Any]) -> Descriptor[Any]:
    """Return a descriptor that requires what its tool does as well, and wraps if its tool does."""
    if not looks_like_tool(descriptor.payload) or isinstance(descriptor.payload, type):
        return descriptor
    said: Any = descriptor.payload
    needs = (*descriptor.required_secrets, *as_requirements(getattr(said, "required_secrets", ())))
    wraps = descriptor.wraps or getattr(said, "wraps", False)
    if len(needs) == len(descriptor.required_secrets) and wraps == descriptor.wraps:
        return descriptor
    return attrs.evolve(descriptor, required_secrets=dict.fromkeys(needs), wraps=wraps)


TOOL = declare_own_kind(
    Kind(
        "tool",
        check=_check,
        is_bound=_is_bound,
        adapt=_adapt,
        complete=_complete,
        definition=definition_of,
        service=ToolsService,
        reader="the calls of every caller: hosts, models, MCP clients and the command",
        crossing=TOOL_CROSSING,
    )
)
