"""A call and its one result."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from agentos.model.field_checks import frozen_mapping
from agentos.model.media import Media


@attrs.frozen
class ToolCall:
    """A call by name, as a model, a client or a person makes it.

    `arguments` is JSON text or a mapping. `id` is the caller's own name for the call.
    """

    name: str
    arguments: str | Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    id: str | None = None
    idempotency_key: str | None = None


def _without_token(details: Mapping[str, Any]) -> str:
    """Show details, but for the token of a proposal: who has it can approve."""
    return repr({key: "***" if key == "token" else value for key, value in details.items()})


@attrs.frozen
class ToolError:
    """What went wrong: a type that programs know, a message that people and models can act on, and data."""

    type: str
    message: str
    details: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=_without_token)


def _as_media(given: Iterable[Media]) -> tuple[Media, ...]:
    return tuple(given)


@attrs.frozen
class ToolResult:
    """How a call ended. Every call ends in exactly one.

    `output` is JSON and fits the tool's output schema. `content` is what the model reads and is never empty. `state`
    is for a user interface, never for the model, and is kept when the call fails. `stop` asks a chat loop to end.
    `media` is what is more than text: a model that can see or hear is shown it, and `content` may name it.
    """

    success: bool
    output: Any = None
    content: str = ""
    state: Any = None
    error: ToolError | None = None
    stop: bool = False
    meta: Mapping[str, Any] = attrs.field(factory=dict)
    call_id: str | None = None
    media: tuple[Media, ...] = attrs.field(default=(), converter=_as_media)

    @classmethod
    def ok(
        cls,
        output: Any = None,
        content: str | None = None,
        state: Any = None,
        *,
        stop: bool = False,
        media: Iterable[Media] = (),
    ) -> "ToolResult":
        """Return a success; without *content* the model reads the output as text, and the names of *media*."""
        media = tuple(media)
        said = content or ("" if media else _text(output))
        return cls(success=True, output=output, content=said, state=state, stop=stop, media=media)

    @classmethod
    def fail(cls, type: str, message: str, details: Mapping[str, Any] | None = None, state: Any = None) -> "ToolResult":
        """Return a failure of *type* that says what happened and what to do."""
        error = ToolError(type, message, details or {})
        return cls(success=False, content=f"{type}: {message}", state=state, error=error)

    @property
    def pending(self) -> Mapping[str, Any] | None:
        """Return what says that the call waits for a person: the proposal's id, until when, and why; None if not."""
        if self.error is None or self.error.type != "ApprovalRequired":
            return None
        found = self.meta.get("pending")
        return found if isinstance(found, Mapping) else None


class Batch:
    """Many results as one."""

    @staticmethod
    def of(results: Iterable[ToolResult]) -> ToolResult:
        """Return one result with how many succeeded, how many failed, and each; failures make a PartialFailure."""
        results = list(results)
        failed = sum(not result.success for result in results)
        output = {
            "succeeded": len(results) - failed,
            "failed": failed,
            "results": [_summary(result) for result in results],
        }
        media = [one for result in results for one in result.media]
        if not failed:
            return ToolResult.ok(output, _text(output), media=media)
        content = f"PartialFailure: {failed} of {len(results)} failed\n{_text(output)}"
        message = f"{failed} of {len(results)} failed; see results for each"
        error = ToolError("PartialFailure", message, {"succeeded": len(results) - failed, "failed": failed})
        return ToolResult(success=False, output=output, content=content, error=error, media=media)


def _text(output: Any) -> str:
    """Return what a model reads of plain JSON; anything else is put into words when the call ends."""
    if isinstance(output, str):
        return output if output.strip() else "(empty text)"
    if output is None:
        return "(no output)"
    try:
        return json.dumps(output, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def _summary(result: ToolResult) -> dict[str, Any]:
    summary: dict[str, Any] = {"success": result.success, "output": result.output}
    if result.error is not None:
        summary["error"] = {"type": result.error.type, "message": result.error.message}
    return summary
