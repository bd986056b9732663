"""The middleware in force, by tool, the outermost first."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from agentos.model.middleware import middleware_settings
from agentos.model.principal import Principal
from agentos.model.tool_pattern import ToolPattern
from agentos.payloads.foreign_job import is_async
from agentos.payloads.payload_context import PayloadContext, active_in_order
from agentos.stacks.entry import Entry
from agentos.stacks.in_use import Users
from agentos.stacks.registry import Registry
from agentos.tools.tool import Tool

OWN_TIME = 60.0
"""For how many seconds middleware may work itself that names no limit."""


@attrs.frozen(eq=False)
class ActiveMiddleware:
    """Middleware in force."""

    entry: Entry
    function: Callable[..., Any]
    is_async: bool
    timeout: float
    patterns: tuple[ToolPattern, ...]
    users: Users

    @property
    def qualified_id(self) -> str:
        """Return who it is."""
        return f"{self.entry.source.pack}:{self.entry.id}"

    def is_for(self, tool: Tool, qualified_id: str) -> bool:
        """Tell whether it runs around a tool."""
        return any(one.fits(tool, qualified_id) for one in self.patterns)


@attrs.frozen(eq=False)
class MiddlewareCall:
    """A call as middleware sees it. Its arguments are a copy: changing them changes nothing."""

    tool: str
    """The fully-qualified id of the tool."""
    name: str
    arguments: dict[str, Any] = attrs.field(repr=False)
    effect: str
    idempotent: bool
    principal: Principal
    session: Mapping[str, Any] = attrs.field(repr=False)
    depth: int
    context: PayloadContext
    """What the middleware's own pack may use."""


class MiddlewareStacks:
    """Reads the middleware off its stacks: once for every change of these."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._version = -1
        self._active: tuple[ActiveMiddleware, ...] = ()

    def for_tool(self, tool: Tool, qualified_id: str) -> tuple[ActiveMiddleware, ...]:
        """Return what runs around a tool, the outermost first."""
        if self._version != self.registry.version:
            self._active = tuple(_active(entry) for entry in active_in_order(self.registry))
            self._version = self.registry.version
        return tuple(one for one in self._active if one.is_for(tool, qualified_id))


def _active(entry: Entry) -> ActiveMiddleware:
    settings = middleware_settings(entry.payload)
    return ActiveMiddleware(
        entry=entry,
        function=entry.payload,
        is_async=is_async(entry.payload),
        timeout=OWN_TIME if settings.timeout is None else settings.timeout,
        patterns=tuple(map(ToolPattern, settings.tools)),
        users=entry._slot.users,  # noqa: SLF001 - the slot is our own
    )
