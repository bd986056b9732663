"""Chat completions."""

from collections.abc import Callable, Sequence
from typing import Any

from agentos.interop import openai
from agentos.interop._provider_calls import (
    Message,
    ModelCall,
    Reply,
    ToolHost,
    ToolList,
    first_field,
    plain_data,
)
from agentos.model.principal import Principal
from agentos.model.tool_call import ToolResult
from agentos.turn.adapters.model_adapter import (
    Api,
    Assembler,
    CutStreamError,
    Ending,
    ModelRequest,
    checked,
    count,
    joined,
    word,
)

_ENDED_BY = {"length": "length", "content_filter": "refusal"}


class OpenAIChat:
    """Speaks to `client.chat.completions`."""

    api: Api = "chat"

    def tools(self, host: ToolHost, principal: Principal | None, *, strict: bool) -> ToolList:
        """Return what a principal is offered."""
        return openai.tools(host, principal, strict=strict)

    def method(self, client: Any, *, streams: bool) -> Callable[..., Any]:  # noqa: ARG002 - the protocol's signature
        """Return what of *client* is called with a request."""
        create: Callable[..., Any] = client.chat.completions.create
        return create

    def request(self, asked: ModelRequest) -> dict[str, Any]:
        """Return the keywords of a request."""
        made = with_tools(checked(asked.more), asked)
        if asked.model is not None:
            made["model"] = asked.model
        if asked.streams:
            made["stream"] = True
            if asked.counts:
                made.setdefault("stream_options", {"include_usage": True})
        return {**made, "messages": _with_system(list(asked.messages), asked.system)}

    def assembler(self) -> Assembler:
        """Return what puts a streamed response together."""
        return _ChatAssembler()

    def read(self, response: Any) -> Reply:
        """Read what a model said."""
        return openai.read(response)

    def ending(self, response: Any) -> Ending:
        """Say how a response ended."""
        tokens = count(first_field(response, "usage"), "total_tokens")
        choices = first_field(response, "choices")
        choice = choices[0] if choices else None
        if first_field(first_field(choice, "message"), "refusal"):
            return Ending("refusal", tokens)
        return Ending(_ENDED_BY.get(word(choice, "finish_reason"), "answer"), tokens)  # type: ignore[arg-type]

    def text(self, reply: Reply) -> str:
        """Return the words in what a model said."""
        message = reply.messages[0]
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
        return content or message.get("refusal") or ""

    def with_text(self, reply: Reply, text: str) -> Reply:
        """Return what a model said with other words; its calls stay."""
        message = {**reply.messages[0], "content": text}
        message.pop("refusal", None)
        return Reply([message, *reply.messages[1:]], reply.calls)

    def said(self, text: str, *, by_user: bool = False) -> Message:
        """Return a message with that text, of the model or of its user."""
        return {"role": "user" if by_user else "assistant", "content": text}

    def answers(self, calls: Sequence[ModelCall], results: Sequence[ToolResult], *, media: bool) -> list[Message]:
        """Return what answers every call."""
        made = openai.answers(calls, results, media=media)
        return [*made, *(openai.media_messages(calls, results) if media else ())]


def with_tools(made: dict[str, Any], asked: ModelRequest) -> dict[str, Any]:
    """Return a request with its tools. A choice that forces a call holds for the first step, or no answer comes."""
    if asked.tools:
        made["tools"] = asked.tools
    if not asked.tools or (not asked.is_first and made.get("tool_choice") not in ("auto", "none")):
        made.pop("tool_choice", None)
    if not asked.tools:
        made.pop("parallel_tool_calls", None)
    return made


def _with_system(messages: list[Any], system: str) -> list[Any]:
    if not system:
        return messages
    first = plain_data(messages[0]) if messages else {}
    if first.get("role") in ("system", "developer") and isinstance(first.get("content"), str):
        return [{**first, "content": joined(first["content"], system)}, *messages[1:]]
    return [{"role": "system", "content": system}, *messages]


class _ChatAssembler:
    """Puts chunks of a chat completion together.

    Calls are told apart by their index, by their id where that is missing, and where it is the same for all of them.
    """

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._call_at: dict[Any, dict[str, Any]] = {}
        """The last call of each index."""
        self._finish: str | None = None
        self._usage: Any = None

    def add(self, chunk: Any) -> str:
        """Take a part in; return the text in it."""
        data = plain_data(chunk)
        self._usage = data.get("usage") or self._usage
        text = ""
        for choice in data.get("choices") or ():
            if choice.get("index"):
                continue  # one answer is enough
            self._finish = choice.get("finish_reason") or self._finish
            text += self._add_delta(choice.get("delta") or {})
        return text

    def _add_delta(self, delta: dict[str, Any]) -> str:
        for part in delta.pop("tool_calls", None) or ():
            self._add_call(part)
        content = delta.get("content")
        if isinstance(content, list):
            content = delta["content"] = "".join(part.get("text") or "" for part in content)
        for key, value in delta.items():
            _extend(self._message, key, value)
        return (content or "") + (delta.get("refusal") or "")

    def _add_call(self, part: dict[str, Any]) -> None:
        call = self._call_of(part)
        for key in ("function", "custom"):
            if (given := part.pop(key, None)) is not None:
                kept = call.setdefault(key, {})
                for name, value in given.items():
                    _extend(kept, name, value)
        for key, value in part.items():
            if value is not None:
                call[key] = value

    def _call_of(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return the call that a part belongs to; a name that comes with another id begins another call."""
        index, id = part.pop("index", None), part.get("id")
        if index is None:
            index = id or next(reversed(self._call_at), 0)
        call = self._call_at.get(index)
        is_named = bool((part.get("function") or part.get("custom") or {}).get("name"))
        if call is None or (is_named and id and call.get("id", id) != id):
            call = self._call_at[index] = {"type": "function"}
            self._calls.append(call)
        return call

    def response(self) -> Any:
        """Return the response as if it had come at once."""
        if self._finish is None:
            raise CutStreamError
        if self._calls:
            self._message["tool_calls"] = self._calls
        choice = {"index": 0, "finish_reason": self._finish, "message": self._message}
        return {"choices": [choice], "usage": self._usage}


_WHOLE = ("role", "name", "id")
"""What is a word and not a part of one, though some endpoints say it with every chunk."""


def _extend(kept: dict[str, Any], key: str, value: Any) -> None:
    if isinstance(value, str) and isinstance(kept.get(key), str) and key not in _WHOLE:
        kept[key] += value
    elif value is not None and value != "":
        kept[key] = value
