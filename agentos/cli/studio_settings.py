"""What the studio is told of how it was started: the model that it talks to, and where personas are saved."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentos.cli.app import App, Fail
from agentos.cli.chat_endpoint import KEYS, Endpoint, open_client
from agentos.errors import AgentOSError

if TYPE_CHECKING:
    from agentos.host import AgentOS


def studio_settings(app: App, host: "AgentOS", endpoint: Endpoint | None) -> dict[str, Any]:
    """Return the settings of a studio."""
    settings: dict[str, Any] = {} if endpoint is None else {"chat": chat_model(app, host, endpoint)}
    if (path := app.config.path) is not None:
        settings["save_persona"] = partial(save_persona, Path(path))
    return settings


def settings_beside_mcp(app: App, host: "AgentOS") -> dict[str, Any]:
    """Return the settings of a studio whose model only the environment names; without its key there is no chat."""
    model = os.environ.get("AGENTOS_CHAT_MODEL")
    base_url = os.environ.get("OPENAI_BASE_URL") or None
    endpoint = Endpoint(api="chat", model=model, base_url=base_url, key=KEYS["chat"], system=None) if model else None
    try:
        return studio_settings(app, host, endpoint)
    except Fail as fail:
        app.out.warn(f"the studio has no chat: {fail.message}")
        return studio_settings(app, host, None)


def chat_model(app: App, host: "AgentOS", endpoint: Endpoint) -> Any:
    """Return the model that the page Chat talks to; its key stays with the client."""
    from agentos.studio.studio_chats import ChatModel

    client = open_client(app, host, endpoint)
    where = endpoint.base_url or ""
    return ChatModel(client=lambda: client, model=endpoint.model, api=endpoint.api, place=where)


def save_persona(path: Path, id: str, said: Mapping[str, Any]) -> str:
    """Write what a persona says into the manifest; what else it says there stays, and so does the rest of the file."""
    from agentos.cli.manifest_edit.editing import edit, put
    from agentos.model.parsing import read_file

    data = read_file(path)
    there = data.get("personas") if isinstance(data, dict) else None
    try:
        if isinstance(there, dict) and isinstance(there.get(id), dict):
            edit(path, {("personas", id): {**there[id], **said}})
        else:
            put(path, "personas", id, said)
    except Fail as fail:
        raise AgentOSError(fail.message) from None
    return path.name
