"""Which adapter a client needs: by what it can do, so that no SDK must be there."""

from typing import Any, get_args

from agentos.turn.adapters.model_adapter import Api, ModelAdapter


def adapter_for(client: Any, api: Api | None = None) -> ModelAdapter:
    """Return who speaks to *client*; *api* says which way, where a client knows several."""
    if api is not None and api not in get_args(Api):
        raise ValueError(f"api: expected one of {', '.join(get_args(Api))}, got {api!r}")
    wanted = _api_of(client) if api is None else api
    if wanted == "anthropic":
        from agentos.turn.adapters.anthropic_messages import AnthropicMessages

        return AnthropicMessages()
    if wanted == "gemini":
        from agentos.turn.adapters.gemini_contents import GeminiContents

        return GeminiContents()
    if wanted == "responses":
        from agentos.turn.adapters.openai_responses import OpenAIResponses

        return OpenAIResponses()
    from agentos.turn.adapters.openai_chat import OpenAIChat

    return OpenAIChat()


def _api_of(client: Any) -> Api:
    ways: dict[Api, tuple[str, ...]] = {
        "chat": ("chat", "completions", "create"),
        "responses": ("responses", "create"),
        "anthropic": ("messages", "create"),
        "gemini": ("models", "generate_content"),
    }
    for api, way in ways.items():
        found = client
        for name in way:
            found = getattr(found, name, None)
        if callable(found):
            return api
    raise TypeError(
        f"client: expected one with chat.completions.create, responses.create, messages.create or "
        f"models.generate_content, got {type(client).__name__}"
    )
