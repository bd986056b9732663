"""Definitions that are held back until a person accepts them: which command that is."""

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentos.errors import ManifestError

if TYPE_CHECKING:
    from agentos.access.pins import Pin
    from agentos.cli.layered_config import Config

_STATES = {"new": "is new", "changed": "changed since it was accepted", "renamed": "is known under another name"}


def way_to_accept(config: "Config", tool: str) -> str:
    """Return the command that accepts the definition of *tool* (pack:id): a lock file, where there is one, decides."""
    return "agentos lock" if _is_locked(config, tool) else f"agentos packs accept {shlex.quote(tool)}"


def _is_locked(config: "Config", tool: str) -> bool:
    from agentos.access.lock import Lock

    settings = config.manifest.settings
    if settings.lock is None or settings.pins != "strict":
        return False
    try:
        packs = Lock.read(settings.lock).packs
    except ManifestError:
        return False
    owner, _, id = tool.partition(":")
    return any(pack.name == owner and id in pack.tools for pack in packs)


def words_of(config: "Config", tool: str, state: str) -> str:
    """Say that a definition waits, why, and which command accepts it."""
    return (
        f"{tool} is held back: its definition {_STATES.get(state, state)}; `{way_to_accept(config, tool)}` accepts it"
    )


def without_way_out(reason: str) -> str:
    """Return why a definition is held back without the call of the library that accepts it: here it is a command."""
    return reason.partition("; a person has to accept it")[0]


def log_of(pins: "Iterable[Pin]") -> set[str]:
    """Return how the library's own lines about *pins* begin."""
    return {f"held back: the definition of {pin.tool} " for pin in pins}


def data_of_held(config: "Config", pending: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what programs are told of definitions that wait."""
    return [{**one, "accept": way_to_accept(config, one["tool"])} for one in pending]


def held_tool(pins: "Iterable[Pin]", message: str) -> str | None:
    """Return the tool that a message of the library calls held back."""
    return next((pin.tool for pin in pins if f"the definition of {pin.tool} " in message), None)
