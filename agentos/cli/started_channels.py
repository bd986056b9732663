"""The channels of a host that a command runs: started, what they lack said plainly, and stopped in time."""

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from agentos.cli.app import App
from agentos.cli.host_session import held_in_memory
from agentos.errors import AgentOSError

if TYPE_CHECKING:
    from agentos.channels.channel_router import ChannelInfo
    from agentos.host import AgentOS


def turned_on(app: App) -> list[str]:
    """Return the channels that the manifest turns on."""
    return sorted(id for id, said in app.config.manifest.settings.channels.items() if said.enabled)


async def start_channels(app: App, host: "AgentOS") -> None:
    """Start what the manifest turns on, and say of each channel what it lacks."""
    for one in await host.channels.known():
        if one.is_on:
            _tell_gaps(app, one)
    await host.channels.start()


def _tell_gaps(app: App, one: "ChannelInfo") -> None:
    if one.pack is None:
        app.out.warn(f"no pack that is in force offers the channel {one.id}; `agentos packs list` says more")
    if not one.senders:
        app.out.warn(
            f"channel {one.id} knows no senders, so nobody is answered; [channels.{one.id}.senders] names them"
        )
    if one.answered_by == "handler":
        app.out.warn(f"channel {one.id} names no model, so what comes in waits for a host with a handler")


@contextlib.asynccontextmanager
async def served_channels(app: App, host: "AgentOS", *, seconds: float, is_for_one: bool) -> AsyncIterator[None]:
    """Run the channels beside a server for the time of the block, and stop them within about *seconds*.

    What is wrong with them never ends the server. Where it serves one client, which ends it at any time, channels need
    a store that lasts: what waits would be lost.
    """
    ids = turned_on(app)
    if ids and is_for_one and held_in_memory(app):
        why = "the manifest names no store, and what waits would be lost when the client ends this"
        app.out.warn(f"not running {_named(ids)}: {why}")
        ids = []
    if not ids:
        yield
        return
    try:
        await start_channels(app, host)
    except AgentOSError as error:
        app.out.warn(f"not running {_named(ids)}: {error}")
    else:
        app.out.note(f"running {_named(ids)}")
    try:
        yield
    finally:
        await host.channels.close(seconds)


def _named(ids: list[str]) -> str:
    return f"the channel{'' if len(ids) == 1 else 's'} {', '.join(ids)}"
