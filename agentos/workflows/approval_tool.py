"""The tool by which a workflow asks a person: nothing but a question, which stands in the inbox of all others."""

from collections.abc import Mapping
from typing import Any

from agentos.tools.tool import PUBLIC, Tool
from agentos.tools.tool_context import ToolContext

_NAME = "workflow_approval"
APPROVAL_TOOL = f"builtin:{_NAME}"
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What is asked."},
        "details": {"type": "object", "description": "What whoever decides has to know.", "additionalProperties": True},
        "workflow": {"type": "string"},
        "run": {"type": "string"},
        "step": {"type": "string"},
    },
    "required": ["text", "workflow", "run", "step"],
    "additionalProperties": False,
}


async def _approved(args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:  # noqa: ARG001 - a tool's signature
    """Say that it was approved: whoever approved let this run."""
    return {"approved": True}


def approval_tool() -> Tool:
    """Return the tool, which always asks, and does nothing."""
    return Tool(
        name=_NAME,
        description="Ask a person to approve a step of a workflow. For workflows: a call only asks and does nothing.",
        input_schema=_SCHEMA,
        effect="mutate",
        required_access=PUBLIC,
        intervention="always",
        idempotent=True,
        is_hidden=True,
        execute=_approved,
    )
