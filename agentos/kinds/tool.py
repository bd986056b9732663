"""The kind `tool`: payloads that a model may call, consumed by the executor and the orchestrator.

A payload is a Tool, or an object with a tool's parts. Anything else may stand on a stack of this kind, for a host's
own use: it is never offered and can't be called.
"""

from collections.abc import Sequence
from typing import Any

from agentos.errors import DescriptorError
from agentos.model.descriptor import Descriptor
from agentos.model.kind import Kind, declare_kind
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
        return [Descriptor("tool", tool.name, tool) for tool in offered]
    tool = as_tool(offered)
    return () if tool is None else [Descriptor("tool", tool.name, offered)]


TOOL = declare_kind(
    Kind("tool", check=_check, is_bound=_is_bound, adapt=_adapt, definition=definition_of, service=ToolsService)
)
