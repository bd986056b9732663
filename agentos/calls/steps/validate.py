"""Whether the arguments are good: parsed, checked and completed, or refused in words."""

from collections.abc import Awaitable

from agentos.access.grants import is_text
from agentos.access.idempotency import KEY_LIMIT
from agentos.calls.invocation import Invocation, Next, answered
from agentos.calls.results import Results
from agentos.model.tool_call import ToolCall, ToolResult
from agentos.schema.validation import BadArguments
from agentos.tools.ready import ReadyTool


def validate(invocation: Invocation, next: Next) -> Awaitable[ToolResult]:
    """Parse the arguments, check them against the tool's schema and fill in its defaults."""
    ready, call = invocation.ready, invocation.call
    try:
        invocation.arguments = ready.checker.arguments(call.arguments)
    except BadArguments as error:
        reason, refusal = "the arguments do not fit", invalid_arguments(invocation.services.results, ready, error)
    else:
        if call.idempotency_key is None or not invocation.services.has_access or _is_key(call.idempotency_key):
            return next(invocation)
        message = f"idempotency_key: expected text of 1 to {KEY_LIMIT} characters"
        reason, refusal = "the idempotency key is invalid", invocation.failure("InvalidArguments", message)
    invocation.services.note_refusal(ready.qualified_id, invocation.principal, "arguments", reason)
    return answered(refusal)


def checked_arguments(results: Results, ready: ReadyTool, call: ToolCall) -> dict[str, object] | ToolResult:
    """Return the arguments of a call that is not made yet, as they would run; or what is wrong with them."""
    try:
        return ready.checker.arguments(call.arguments)
    except BadArguments as error:
        return invalid_arguments(results, ready, error)


def invalid_arguments(results: Results, ready: ReadyTool, error: BadArguments) -> ToolResult:
    """Return the result of a call whose arguments do not fit."""
    lines = [str(problem) for problem in error.problems]
    message = f"{error}{': ' if lines else ''}{'; '.join(lines)}"
    details = {"problems": [{"path": one.path, "message": one.message} for one in error.problems]}
    return results.failure("InvalidArguments", message, ready.meta, details)


def _is_key(key: object) -> bool:
    return isinstance(key, str) and 0 < len(key) <= KEY_LIMIT and is_text(key)
