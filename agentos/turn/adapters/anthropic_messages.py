"""Anthropic's messages."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentos.interop import anthropic
from agentos.interop._provider_calls import Message, ModelCall, Reply, ToolHost, ToolList, first_field, plain_data
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.turn.adapters.model_adapter import (
    Api,
    Assembler,
    CutStreamError,
    EndedBy,
    Ending,
    ModelFailedError,
    ModelRequest,
    checked,
    count,
    joined,
    word,
)

_MAX_TOKENS = 8_192
"""How long an answer may be where the caller does not say: Anthropic demands a number."""
_ENDED_BY: Mapping[str, EndedBy] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class AnthropicMessages:
    """Speaks to `client.messages`."""

    api: Api = "anthropic"

    def tools(self, host: ToolHost, principal: Principal | None, *, strict: bool) -> ToolList:  # noqa: ARG002 - the protocol's signature
        """Return what a principal is offered."""
        return anthropic.tools(host, principal)

    def method(self, client: Any, *, streams: bool) -> Callable[..., Any]:  # noqa: ARG002 - the protocol's signature
        """Return what of *client* is called with a request."""
        create: Callable[..., Any] = client.messages.create
        return create

    def request(self, asked: ModelRequest) -> dict[str, Any]:
        """Return the keywords of a request."""
        made = {"max_tokens": _MAX_TOKENS, **checked(asked.more)}
        if asked.model is not None:
            made["model"] = asked.model
        if asked.tools:
            made["tools"] = asked.tools
        if not asked.tools or (not asked.is_first and _forces(made.get("tool_choice"))):
            made.pop("tool_choice", None)
        if asked.system:
            made["system"] = _with_system(made.get("system"), asked.system)
        if asked.streams:
            made["stream"] = True
        return {**made, "messages": list(asked.messages)}

    def assembler(self) -> Assembler:
        """Return what puts a streamed response together."""
        return _MessageAssembler()

    def read(self, response: Any) -> Reply:
        """Read what a model said."""
        return anthropic.read(response)

    def ending(self, response: Any) -> Ending:
        """Say how a response ended."""
        tokens = count(first_field(response, "usage"), *_COUNTED)
        return Ending(_ENDED_BY.get(word(response, "stop_reason"), "answer"), tokens)

    def text(self, reply: Reply) -> str:
        """Return the words in what a model said."""
        blocks = [block for message in reply.messages for block in message["content"]]
        return "".join(block["text"] for block in blocks if block.get("type") == "text")

    def with_text(self, reply: Reply, text: str) -> Reply:
        """Return what a model said with other words; its calls stay."""
        blocks: list[dict[str, Any]] = []
        is_put = not text.strip()
        for block in [block for message in reply.messages for block in message["content"]]:
            if block.get("type") != "text":
                blocks.append(block)
            elif not is_put:
                blocks.append({"type": "text", "text": text})
                is_put = True
        return Reply([{"role": "assistant", "content": blocks}] if blocks else [], reply.calls)

    def said(self, text: str, *, by_user: bool = False) -> Message:
        """Return a message with that text, of the model or of its user."""
        return {"role": "user" if by_user else "assistant", "content": text}

    def answers(self, calls: Sequence[ModelCall], results: Sequence[ToolResult], *, media: bool) -> list[Message]:
        """Return what answers every call."""
        return anthropic.answers(calls, results, media=media)


def _forces(choice: Any) -> bool:
    return word(choice, "type") in ("any", "tool")


def _with_system(given: Any, system: str) -> Any:
    if isinstance(given, list | tuple):
        return [*given, {"type": "text", "text": system}]
    return joined(given, system)


_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class _MessageAssembler:
    """Puts the events of a message together."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._is_whole = False

    def add(self, chunk: Any) -> str:
        """Take a part in; return the text in it."""
        data = plain_data(chunk)
        kind = data.get("type")
        if kind == "message_start":
            self._message = data["message"]
        elif kind == "content_block_start":
            self._blocks[data["index"]] = data["content_block"]
            return self._text_of(data["content_block"])
        elif kind == "content_block_delta":
            return self._add_delta(data["index"], data["delta"])
        elif kind == "message_delta":
            self._message.update(data.get("delta") or {})
            self._message["usage"] = {**(self._message.get("usage") or {}), **(data.get("usage") or {})}
        elif kind == "message_stop":
            self._is_whole = True
        elif kind == "error":
            raise ModelFailedError(f"the model failed: {word(data.get('error'), 'message') or 'no reason given'}")
        return ""

    def _text_of(self, block: dict[str, Any]) -> str:
        return block.get("text") or "" if block.get("type") == "text" else ""

    def _add_delta(self, index: int, delta: dict[str, Any]) -> str:
        block, kind = self._blocks[index], str(delta.get("type"))
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + (delta.get("partial_json") or "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        elif (key := _DELTAS.get(kind)) is not None:
            block[key] = (block.get(key) or "") + (delta.get(key) or "")
        return delta.get("text") or "" if kind == "text_delta" else ""

    def response(self) -> Any:
        """Return the response as if it had come at once; an input that is no JSON stays text, which is refused."""
        if not self._is_whole:
            raise CutStreamError
        for index, text in self._inputs.items():
            if text.strip():
                self._blocks[index]["input"] = _parsed(text)
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
