"""Which command accepts a definition that is held back."""

import shlex

from agentos.errors import ManifestError
from agentos.model.settings import Settings


def command_to_accept(settings: Settings, tool: str) -> str:
    """Return the command that accepts the definition of *tool* (pack:id): a lock file, where there is one, decides."""
    return "agentos lock" if _is_locked(settings, tool) else f"agentos packs accept {shlex.quote(tool)}"


def _is_locked(settings: Settings, tool: str) -> bool:
    from agentos.access.lock import Lock

    if settings.lock is None or settings.pins != "strict":
        return False
    try:
        packs = (settings.lock if isinstance(settings.lock, Lock) else Lock.read(settings.lock)).packs
    except ManifestError:
        return False
    owner, _, id = tool.partition(":")
    return any(pack.name == owner and id in pack.tools for pack in packs)
