"""Definitions that are held back until a person accepts them: which command that is."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentos.checks.accepting import command_to_accept

if TYPE_CHECKING:
    from agentos.access.pins import Pin
    from agentos.cli.layered_config import Config
    from agentos.host import AgentOS

_STATES = {"new": "is new", "changed": "changed since it was accepted", "renamed": "is known under another name"}


def way_to_accept(config: "Config", tool: str) -> str:
    """Return the command that accepts the definition of *tool* (pack:id)."""
    return command_to_accept(config.manifest.settings, tool)


def words_of(config: "Config", tool: str, state: str) -> str:
    """Say that a definition waits, why, and which command accepts it."""
    way = way_to_accept(config, tool)
    return f"{tool} is held back: its definition {_STATES.get(state, state)}; `{way}` accepts it"


def data_of_held(config: "Config", pending: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what programs are told of definitions that wait."""
    return [{**one, "accept": way_to_accept(config, one["tool"])} for one in pending]


def held_tool(host: "AgentOS", pins: "Iterable[Pin]", name: str) -> str | None:
    """Return the tool (pack:id) that a call of *name* would have met, if its definition was not held back."""
    waiting, id = {pin.tool for pin in pins}, name.partition(":")[2] or name
    offered = [f"{entry.source.pack}:{id}" for entry in host.extensions.registry("tool").stack(id)]
    return next((tool for tool in offered if tool in waiting), None)
