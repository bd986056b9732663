"""Gemini, by google-genai."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentos.interop import gemini
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

_REFUSALS = (
    *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "LANGUAGE"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
)
_SAID_ALL = ("", "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")


class GeminiContents:
    """Speaks to `client.models`, by its async side where it has one."""

    api: Api = "gemini"

    def tools(self, host: ToolHost, principal: Principal | None, *, strict: bool) -> ToolList:  # noqa: ARG002 - the protocol's signature
        """Return what a principal is offered."""
        return gemini.tools(host, principal)

    def method(self, client: Any, *, streams: bool) -> Callable[..., Any]:
        """Return what of *client* is called with a request."""
        models = getattr(client, "aio", client).models
        found: Callable[..., Any] = models.generate_content_stream if streams else models.generate_content
        return found

    def request(self, asked: ModelRequest) -> dict[str, Any]:
        """Return the keywords of a request; what is not known of `generate_content` goes into its config."""
        made = checked(asked.more)
        config = checked(_fields(made.pop("config", None)))
        config = {**config, **made}
        if asked.tools:
            config["tools"] = [{"function_declarations": list(asked.tools)}]
        if not asked.tools or (not asked.is_first and _forces(config.get("tool_config"))):
            config.pop("tool_config", None)
        if asked.system:
            config["system_instruction"] = _with_system(config.get("system_instruction"), asked.system)
        named = {} if asked.model is None else {"model": asked.model}
        return {**named, "contents": list(asked.messages), **({"config": config} if config else {})}

    def assembler(self) -> Assembler:
        """Return what puts a streamed response together."""
        return _ContentAssembler()

    def read(self, response: Any) -> Reply:
        """Read what a model said; a response without candidates says nothing.

        Raise ModelFailedError if it says nothing and gives another reason than that it was done, cut or refused.
        """
        candidates = first_field(response, "candidates")
        if not candidates:
            return Reply([], [])
        reply, reason = gemini.read(response), word(candidates[0], "finish_reason", "finishReason")
        if not reply.calls and reason not in (*_SAID_ALL, *_REFUSALS) and not self.text(reply).strip():
            raise ModelFailedError(f"the model failed: {reason}; ask again")
        return reply

    def ending(self, response: Any) -> Ending:
        """Say how a response ended."""
        usage = first_field(response, "usage_metadata", "usageMetadata")
        tokens = count(usage, "total_token_count", "totalTokenCount")
        candidates = first_field(response, "candidates")
        reason = word(candidates[0] if candidates else None, "finish_reason", "finishReason")
        if not candidates or reason in _REFUSALS:
            return Ending("refusal", tokens)
        return Ending("length" if reason == "MAX_TOKENS" else "answer", tokens)

    def text(self, reply: Reply) -> str:
        """Return the words in what a model said, without its thoughts."""
        return "".join(part["text"] for message in reply.messages for part in message["parts"] if _is_text(part))

    def with_text(self, reply: Reply, text: str) -> Reply:
        """Return what a model said with other words; its calls stay."""
        parts: list[dict[str, Any]] = []
        is_put = not text
        for part in [part for message in reply.messages for part in message["parts"]]:
            if not _is_text(part):
                parts.append(part)
            elif not is_put:
                parts.append({**part, "text": text})
                is_put = True
        return Reply([{"role": "model", "parts": parts}] if parts else [], reply.calls)

    def said(self, text: str, *, by_user: bool = False) -> Message:
        """Return a content with that text, of the model or of its user."""
        return {"role": "user" if by_user else "model", "parts": [{"text": text}]}

    def answers(self, calls: Sequence[ModelCall], results: Sequence[ToolResult], *, media: bool) -> list[Message]:
        """Return what answers every call."""
        return gemini.answers(calls, results, media=media)


def _is_text(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and not part.get("thought")


def _fields(config: Any) -> dict[str, Any]:
    """Return the fields of a config that were set, with the SDK's own values."""
    if config is None or isinstance(config, Mapping):
        return dict(config or {})
    return {name: getattr(config, name) for name in config.model_fields_set}


def _forces(choice: Any) -> bool:
    calling = first_field(choice, "function_calling_config", "functionCallingConfig")
    return word(calling, "mode") == "ANY"


def _with_system(given: Any, system: str) -> Any:
    if given is None or isinstance(given, str):
        return joined(given, system)
    parts = first_field(given, "parts")
    return [*(parts if parts is not None else given if isinstance(given, list) else [given]), {"text": system}]


class _ContentAssembler:
    """Puts the chunks of a response together: texts that follow each other become one part."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}

    def add(self, chunk: Any) -> str:
        """Take a part in; return the text in it."""
        data = plain_data(chunk, by_alias=False)
        self._last = {**self._last, **{key: value for key, value in data.items() if value is not None}}
        text = ""
        for candidate in (data.get("candidates") or ())[:1]:
            self._candidate = {**self._candidate, **{key: value for key, value in candidate.items() if value}}
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._add_part(part)
                text += part["text"] if _is_text(part) else ""
        return text

    def _add_part(self, part: dict[str, Any]) -> None:
        last = self._parts[-1] if self._parts else {}
        is_alike = {**part, "text": ""} == {**last, "text": ""} and "text" in part and "text" in last
        if is_alike and not last.get("thought_signature"):
            last["text"] += part["text"]
        else:
            self._parts.append(dict(part))

    def response(self) -> Any:
        """Return the response as if it had come at once."""
        if not self._candidate:
            if self._last.get("prompt_feedback"):
                return {**self._last, "candidates": []}
            raise CutStreamError
        if not self._candidate.get("finish_reason"):
            raise CutStreamError
        candidate = {**self._candidate, "content": {"role": "model", "parts": self._parts}}
        return {**self._last, "candidates": [candidate]}
