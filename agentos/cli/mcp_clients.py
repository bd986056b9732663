"""The settings of MCP clients: where each keeps its servers, and how this host is written there."""

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from agentos.base.atomic_files import replace_file, write_file
from agentos.cli.app import Fail
from agentos.cli.host_session import USAGE

_PATHS = ("AGENTOS_DATA", "AGENTOS_DOTENV", "AGENTOS_LOCK")
_WORDS = ("AGENTOS_MODE", "AGENTOS_PINS", "AGENTOS_DENY", "AGENTOS_PROPOSAL_TTL")
_SECRET = ("AGENTOS_STORE", "AGENTOS_STORE_KEY")
"""What may hold a password or is one: it is not written into the settings of another program."""


@attrs.frozen(kw_only=True)
class MCPClient:
    """A program that starts MCP servers.

    files: its file by platform, beneath the user's home; `any` for all others. None: there is no file.
    in_folder: whether the file belongs to a project, and stands in the manifest's folder.
    key: under what its servers stand. extra: what each of its entries says besides.
    """

    files: Mapping[str, str] | None
    in_folder: bool = False
    key: str = "mcpServers"
    extra: Mapping[str, Any] = attrs.field(factory=dict)


_STDIO = {"type": "stdio"}
CLIENTS: Mapping[str, MCPClient] = {
    "claude": MCPClient(
        files={
            "darwin": "Library/Application Support/Claude/claude_desktop_config.json",
            "win32": "AppData/Roaming/Claude/claude_desktop_config.json",
            "any": ".config/Claude/claude_desktop_config.json",
        }
    ),
    "claude-code": MCPClient(files={"any": ".mcp.json"}, in_folder=True, extra=_STDIO),
    "cursor": MCPClient(files={"any": ".cursor/mcp.json"}),
    "gemini": MCPClient(files={"any": ".gemini/settings.json"}),
    "vscode": MCPClient(files={"any": ".vscode/mcp.json"}, in_folder=True, key="servers", extra=_STDIO),
    "windsurf": MCPClient(files={"any": ".codeium/windsurf/mcp_config.json"}),
    "json": MCPClient(files=None),
}
"""Every client whose file is known, and `json` for all others that read the same format."""


@attrs.frozen
class ClientFile:
    """Where a client's settings are, and under which key its servers stand there."""

    path: Path | None
    key: str

    @classmethod
    def of(cls, client: MCPClient, folder: Path, given: str | None) -> "ClientFile":
        """Return the file that was *given*, else the usual one: of the project in *folder*, or of this user."""
        if given is not None:
            return cls(Path(given).expanduser().absolute(), client.key)
        if client.files is None:
            return cls(None, client.key)
        file = client.files.get(sys.platform, client.files["any"])
        return cls((folder if client.in_folder else Path.home()) / file, client.key)


def own_command() -> list[str]:
    """Return the command that starts agentos, whatever is on PATH: the script of this environment, else Python."""
    script = Path(sysconfig.get_path("scripts"), "agentos.exe" if os.name == "nt" else "agentos")
    return [str(script)] if os.access(script, os.X_OK) else [sys.executable, "-m", "agentos.cli"]


def own_entry(
    manifest: Path, principal: str | None, extra: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> tuple[dict[str, Any], list[str]]:
    """Return how a client starts `agentos serve` on *manifest*, and the variables that count now and are left out.

    Clients hand hardly any variable on: those that agentos reads are written, unless they may be secret.
    """
    command, *words = own_command()
    acting = [] if principal is None else ["--principal", principal]
    env = {name: environ[name] for name in _WORDS if environ.get(name)}
    env |= {name: str(Path(environ[name]).expanduser().absolute()) for name in _PATHS if environ.get(name)}
    entry = {
        **extra,
        "command": command,
        "args": [*words, "--manifest", str(manifest), "serve", *acting],
        **({"env": env} if env else {}),
    }
    return entry, [name for name in _SECRET if environ.get(name)]


def install_entry(place: ClientFile, name: str, entry: Mapping[str, Any], *, replace: bool) -> Path | None:
    """Write *entry* into a client's file, where nothing else changes; return the copy of what was there, if any."""
    from agentos.cli.manifest_edit.editing import put

    if place.path is None:
        raise Fail("give --file: which file such a client reads is not known", code=USAGE)
    path = place.path.resolve()
    before = path.read_bytes() if path.exists() else None
    if not (before or b"").strip():
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = (json.dumps({place.key: {name: dict(entry)}}, indent=2, ensure_ascii=False) + "\n").encode()
        write_file(path, whole) if before is None else replace_file(path, whole, expected=before)
        return None
    standing = _standing(path, place.key, name)
    if standing == entry:
        return None
    if standing is not None and not replace and not _is_ours(standing, entry):
        raise Fail(f"{path} has another server {name!r}", hint="--replace puts this one in its place; or give --name")
    backup = _copy_of(path)
    try:
        put(path, place.key, name, entry)
    except Fail:
        backup.unlink()
        raise
    return backup


def _standing(path: Path, key: str, name: str) -> Any:
    """Return what a client's file says of a server; fail where it can't be read, or is of another shape."""
    try:
        data = json.loads(path.read_bytes())
    except ValueError as error:
        hint = "leave out --install, and put it there by hand"
        raise Fail(f"{path} is not plain JSON, so it is left as it is: {error}", hint=hint) from None
    servers = data.get(key, {}) if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise Fail(f"{path}: expected an object with {key!r}, so it is left as it is")
    return servers.get(name)


def _is_ours(standing: Any, entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry starts a host on the same manifest: then it is brought up to date."""
    words = standing.get("args") if isinstance(standing, dict) else None
    manifest = entry["args"][entry["args"].index("--manifest") + 1]
    return isinstance(words, list) and manifest in words and "serve" in words


def _copy_of(path: Path) -> Path:
    """Copy a file beside itself, with its mode: it may hold secrets."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    backup = path.with_name(f"{path.name}.{now}.bak")
    shutil.copy2(path, backup)
    return backup
