"""The model that `agentos chat` talks to: where it is, whose client speaks to it, and what is said if it fails."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import attrs
import click

from agentos.cli.app import App, Fail
from agentos.cli.host_session import UNUSABLE, USAGE

if TYPE_CHECKING:
    from agentos.cli.terminal.call_progress import ProgressLine
    from agentos.host import AgentOS
    from agentos.turn.adapters.model_adapter import Api, ModelAdapter

KEYS = {
    "chat": "openai.apiKey",
    "responses": "openai.apiKey",
    "anthropic": "anthropic.apiKey",
    "gemini": "gemini.apiKey",
}
"""The secret that is the API key, where nobody names another."""


@attrs.frozen(kw_only=True)
class Endpoint:
    """Which model to talk to, where, and how."""

    api: "Api"
    model: str | None
    base_url: str | None
    key: str
    system: str | None

    @property
    def request(self) -> dict[str, Any]:
        """Return what says the system prompt in each request, where that is no message."""
        if not self.system or self.api == "chat":
            return {}
        if self.api == "gemini":
            return {"config": {"system_instruction": self.system}}
        return {"instructions" if self.api == "responses" else "system": self.system}

    @property
    def messages(self) -> list[Any]:
        """Return what a conversation begins with."""
        return [{"role": "system", "content": self.system}] if self.system and self.api == "chat" else []

    def fault(self, host: "AgentOS", error: Exception) -> Fail:
        """Return what to say of an endpoint that did not answer as it should; no key is in it."""
        words = host.extensions.masker.describe(error)
        hint = None
        if getattr(error, "status_code", getattr(error, "code", None)) in (401, 403):
            hint = f"`agentos secrets add {self.key}` gives it another key"
        elif type(error).__name__ in ("APIConnectionError", "ConnectError"):
            hint = f"is {self.base_url or 'the endpoint'} there? --base-url names another"
        return Fail(f"the model did not answer: {words}", hint=hint)


def endpoint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that name a model and where it is."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--model", envvar="AGENTOS_CHAT_MODEL", show_envvar=True, metavar="NAME", help="The model's name there."
    ),
    click.option(
        "--api", type=click.Choice(list(KEYS)), default="chat", show_default=True, help="How the endpoint is spoken to."
    ),
    click.option(
        "--base-url",
        envvar="OPENAI_BASE_URL",
        show_envvar=True,
        metavar="URL",
        help="Any endpoint that speaks the API.",
    ),
    click.option(
        "--key",
        metavar="ID",
        help="The secret that is the endpoint's API key; openai.apiKey, or that of the other API.",
    ),
)


def endpoint_of(options: Mapping[str, Any]) -> Endpoint:
    """Return the endpoint that the options of a command name."""
    api, base_url = options["api"], options["base_url"] or None
    source = click.get_current_context().get_parameter_source("base_url")
    if api in ("anthropic", "gemini") and source is click.core.ParameterSource.ENVIRONMENT:
        base_url = None  # the variable names an endpoint of another kind
    return Endpoint(
        api=api,
        model=options["model"] or None,
        base_url=base_url,
        key=options["key"] or KEYS[api],
        system=options.get("system"),
    )


# -- its client --------------------------------------------------------------------------------------------------------


def open_client(app: App, host: "AgentOS", endpoint: Endpoint) -> Any:
    """Return the SDK's client of an endpoint."""
    make = _MAKERS[endpoint.api]
    try:
        client = make()
    except ImportError as error:
        raise Fail(str(error), code=UNUSABLE) from None
    _check_address(endpoint.base_url)
    key = _key(host, endpoint.key)
    if key is None and endpoint.base_url is None:
        raise Fail(
            f"there is no API key: the secret {endpoint.key!r} has no value",
            code=UNUSABLE,
            hint=f"`agentos secrets add {endpoint.key}`; or name another endpoint with --base-url",
        )
    if key is not None and _is_unencrypted(endpoint.base_url):
        app.out.warn(f"the API key and all that is said travel in the clear to {endpoint.base_url}; use https")
    return client(api_key=key or "none", base_url=endpoint.base_url)


def _openai() -> Any:
    from agentos.base.extras import import_extra

    return import_extra("openai", "openai").AsyncOpenAI


def _anthropic() -> Any:
    from agentos.base.extras import import_extra

    return import_extra("anthropic", "anthropic").AsyncAnthropic


def _gemini() -> Any:
    from agentos.base.extras import import_extra

    client = import_extra("google.genai", "gemini").Client
    return lambda api_key, base_url: client(api_key=api_key, http_options=base_url and {"base_url": base_url})


_MAKERS: Mapping[str, Callable[[], Any]] = {
    "chat": _openai,
    "responses": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


async def close_client(client: Any) -> None:
    """Close a client's connections."""
    if hasattr(client, "aio"):
        await client.aio.aclose()
    closed = client.close()
    if inspect.isawaitable(closed):
        await closed


def _check_address(url: str | None) -> None:
    """Refuse what is no address of an endpoint."""
    try:
        parts = urlsplit(url or "https://")
        is_one = url is None or (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        is_one = False
    if not is_one or not (url or "").isprintable():
        raise Fail(f"--base-url: expected an address such as http://localhost:11434/v1, got {url!r}", code=USAGE)


def _key(host: "AgentOS", id: str) -> str | None:
    """Return the API key, from wherever secrets come; from now on it is masked in all that is said."""
    found = host.extensions.secret_sources.find(id, {})
    return None if found is None else found[0]


def _is_unencrypted(url: str | None) -> bool:
    from agentos.mcp.auth import is_loopback

    parts = urlsplit(url or "https:")
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


@attrs.frozen
class ThinkingClient:
    """A client that says whom everybody waits for, and what the model wants to call with which arguments."""

    _target: Any
    _adapter: "ModelAdapter"
    _host: "AgentOS"
    _progress: "ProgressLine"
    _model: str | None

    def __getattr__(self, name: str) -> Any:
        """Return a part of the client; what makes requests tells of them."""
        found = getattr(self._target, name)
        return self._telling(found) if inspect.ismethod(found) else attrs.evolve(self, target=found)

    def _telling(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def ask(**request: Any) -> Any:
            self._progress.status(f"{self._model or 'the model'} is thinking ...")
            try:
                response = await method(**request)
            except BaseException:
                self._progress.clear()
                raise
            if not hasattr(response, "__aiter__"):
                self._progress.clear()
                self._progress.arguments = self._arguments(response)
            return response

        return ask

    def _arguments(self, response: Any) -> dict[str | None, Mapping[str, Any]]:
        calls = self._adapter.read(response).calls
        return {call.id: shown_arguments(self._host, call.arguments_json) for call in calls}


def shown_arguments(host: "AgentOS", given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a call is made with, known secrets masked; what is no object is told by the call's failure."""
    read = json.loads(given) if isinstance(given, str) else given
    shown: dict[str, Any] = host.extensions.masker.mask_data(dict(read)) if isinstance(read, Mapping) else {}
    return shown
