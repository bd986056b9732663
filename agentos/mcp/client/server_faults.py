"""What is wrong with a server that was taken in: it can't be reached, or what is said of its tools fits none."""

import os
import shutil
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from shlex import quote

from agentos.base.spelling import did_you_mean
from agentos.mcp.client.server_spec import ServerSpec
from agentos.model.trouble import Trouble
from agentos.stacks.entry import EntryState
from agentos.tools.listing import ToolInfo

_SHOWN = 5


def not_connected(server: ServerSpec, why: str) -> Trouble:
    """Say that a server is not connected, why, and what to do about it."""
    about = f"server {server.name}"
    aside = f"or leave it out: agentos packs disable --in-manifest {quote(server.owner)}"
    if server.command is None:
        cure = f"see that it runs and can be reached from here, correct mcpServers.{server.name}.url, {aside}"
        return Trouble("error", about, why, cure)
    if not _is_program(server):
        place = Path(server.cwd or ".", server.command).absolute()
        where = "on PATH" if os.sep not in server.command else f"at {place}"
        cure = f"install it, or correct mcpServers.{server.name}.command"
        return Trouble("error", about, f"there is no program {server.command!r} {where}", cure)
    cure = f"run its command by hand to see why, correct mcpServers.{server.name}, {aside}"
    return Trouble("error", about, why, cure)


def _is_program(server: ServerSpec) -> bool:
    command = server.command or ""
    if os.sep in command:
        return os.access(Path(server.cwd or ".", command), os.X_OK)
    return shutil.which(command, path=server.env.get("PATH")) is not None


def unmatched_keys(server: ServerSpec, offered: Iterable[str]) -> Iterator[Trouble]:
    """Yield what the manifest says of tools by patterns that fit none of those *offered* by the server."""
    names = sorted(offered)
    for field, patterns in (("tools", server.tools or ()), ("effects", server.effects)):
        for pattern in patterns:
            if not any(name == pattern or fnmatchcase(name, pattern) for name in names):
                message = f"{field} names {pattern!r}, and it offers no such tool{did_you_mean(pattern, names)}"
                cure = f"correct mcpServers.{server.name}.{field}, or take it out"
                yield Trouble("warning", f"server {server.name}", message, cure)


def shadowed(server: ServerSpec, infos: Iterable[ToolInfo]) -> Iterator[Trouble]:
    """Yield which tools of a server are in the shadow of another server's that have the same names."""
    infos = list(infos)
    active = {one.name: _owner(one) for one in infos if one.state is EntryState.ACTIVE and one.source == "mcp"}
    mine = sorted(one.name for one in infos if _owner(one) == server.owner and one.state is EntryState.SHADOWED)
    names: dict[str, list[str]] = {}
    for name in mine:
        if name in active:
            names.setdefault(active[name], []).append(name)
    for other, same in names.items():
        more = f" and {len(same) - _SHOWN} more" if len(same) > _SHOWN else ""
        listed = ", ".join(same[:_SHOWN]) + more
        message = f"{other} has tools of the same names, which are in force: {listed}"
        cure = f"set mcpServers.{server.name}.prefix, or call them as {server.owner}:{same[0]}"
        yield Trouble("warning", f"server {server.name}", message, cure)


def _owner(info: ToolInfo) -> str:
    return info.fully_qualified_id.partition(":")[0]


def unusable(server: ServerSpec, what: str) -> Trouble:
    """Say that something that a server offers is left out."""
    cure = f"have the server mended, or name in mcpServers.{server.name}.tools those that are wanted"
    return Trouble("warning", f"server {server.name}", f"left out: {what}", cure)
