"""Results as JSON text and back, for what must last."""

import json
from typing import Any

from agentos.base.canonical import in_order
from agentos.model.tool_call import ToolError, ToolResult


def result_to_text(result: ToolResult) -> str:
    """Return a result, which is masked and bounded already, as JSON."""
    error = result.error
    return in_order(
        {
            "success": result.success,
            "output": result.output,
            "content": result.content,
            "state": result.state,
            "error": None if error is None else [error.type, error.message, _kept(error)],
            "stop": result.stop,
            "meta": dict(result.meta),
        }
    )


def _kept(error: ToolError) -> dict[str, Any]:
    """Return the details of an error without the token of a proposal, which is shown once and never written."""
    return {key: value for key, value in error.details.items() if key != "token"}


def result_from_text(text: str, **meta: object) -> ToolResult:
    """Return the result that `result_to_text` wrote, with *meta* added to its own."""
    data = json.loads(text)
    error = data["error"]
    return ToolResult(
        success=data["success"],
        output=data["output"],
        content=data["content"],
        state=data["state"],
        error=None if error is None else ToolError(*error),
        stop=data["stop"],
        meta={**data["meta"], **meta},
    )
