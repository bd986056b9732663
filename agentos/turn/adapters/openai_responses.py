"""OpenAI's responses."""

from collections.abc import Callable, Sequence
from typing import Any

from agentos.interop import openai
from agentos.interop._provider_calls import Message, ModelCall, Reply, ToolHost, ToolList, first_field, plain_data
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.turn.adapters.model_adapter import (
    Api,
    Assembler,
    CutStreamError,
    Ending,
    ModelFailedError,
    ModelRequest,
    checked,
    count,
    joined,
    word,
)
from agentos.turn.adapters.openai_chat import with_tools


class OpenAIResponses:
    """Speaks to `client.responses`."""

    api: Api = "responses"

    def tools(self, host: ToolHost, principal: Principal | None, *, strict: bool) -> ToolList:
        """Return what a principal is offered."""
        return openai.tools(host, principal, api="responses", strict=strict)

    def method(self, client: Any, *, streams: bool) -> Callable[..., Any]:  # noqa: ARG002 - the protocol's signature
        """Return what of *client* is called with a request."""
        create: Callable[..., Any] = client.responses.create
        return create

    def request(self, asked: ModelRequest) -> dict[str, Any]:
        """Return the keywords of a request."""
        made = with_tools(checked(asked.more), asked)
        if asked.model is not None:
            made["model"] = asked.model
        if asked.system:
            made["instructions"] = joined(made.get("instructions"), asked.system)
        if asked.streams:
            made["stream"] = True
        return {**made, "input": list(asked.messages)}

    def assembler(self) -> Assembler:
        """Return what puts a streamed response together."""
        return _ResponseAssembler()

    def read(self, response: Any) -> Reply:
        """Read what a model said; raise ModelFailedError if the provider says that it failed."""
        if word(response, "status") == "failed":
            message = word(first_field(response, "error"), "message")
            raise ModelFailedError(f"the model failed: {message or 'no reason given'}")
        return openai.read(response)

    def ending(self, response: Any) -> Ending:
        """Say how a response ended."""
        tokens = count(first_field(response, "usage"), "total_tokens")
        reason = word(first_field(response, "incomplete_details"), "reason")
        if reason:
            return Ending("length" if reason == "max_output_tokens" else "refusal", tokens)
        parts = [part for item in first_field(response, "output") or () for part in first_field(item, "content") or ()]
        return Ending("refusal" if any(word(part, "type") == "refusal" for part in parts) else "answer", tokens)

    def text(self, reply: Reply) -> str:
        """Return the words in what a model said."""
        parts = [part for item in reply.messages if _is_text(item) for part in item["content"]]
        return "".join(part.get("text") or part.get("refusal") or "" for part in parts)

    def with_text(self, reply: Reply, text: str) -> Reply:
        """Return what a model said with other words; its calls stay."""
        made: list[Message] = []
        content = [{"type": "output_text", "text": text, "annotations": []}]
        for item in reply.messages:
            if not _is_text(item):
                made.append(item)
            elif not any(map(_is_text, made)):
                made.append({**item, "content": content})
        return Reply(made, reply.calls)

    def said(self, text: str, *, by_user: bool = False) -> Message:
        """Return a message with that text, of the model or of its user."""
        return {"role": "user" if by_user else "assistant", "content": text}

    def answers(self, calls: Sequence[ModelCall], results: Sequence[ToolResult], *, media: bool) -> list[Message]:
        """Return what answers every call."""
        return openai.answers(calls, results, media=media)


def _is_text(item: Message) -> bool:
    return item.get("type") == "message" and isinstance(item.get("content"), list)


class _ResponseAssembler:
    """Waits for the event that has the whole response."""

    def __init__(self) -> None:
        self._response: Any = None

    def add(self, chunk: Any) -> str:
        """Take a part in; return the text in it."""
        kind = word(chunk, "type")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self._response = first_field(chunk, "response")
        elif kind == "error":
            raise ModelFailedError(f"the model failed: {word(chunk, 'message') or 'no reason given'}")
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            return word(chunk, "delta")
        return ""

    def response(self) -> Any:
        """Return the response as if it had come at once."""
        if self._response is None:
            raise CutStreamError
        return plain_data(self._response)
