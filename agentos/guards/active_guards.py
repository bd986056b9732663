"""The guardrails in force, by stage and tool, in the order in which they are asked."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from agentos.guards.guard_context import AskedGuard, CallTool
from agentos.model.guarding import HELD_BACK, GuardSettings, Stage, functions_of, settings_of
from agentos.model.tool_pattern import ToolPattern
from agentos.payloads.foreign_job import is_async, never_waits
from agentos.payloads.payload_context import active_in_order
from agentos.stacks.entry import Entry
from agentos.stacks.in_use import Users
from agentos.stacks.registry import Registry
from agentos.tools.tool import Tool

EVERYTHING = "*"


@attrs.frozen(eq=False)
class ActiveGuard:
    """One guardrail in force, at one stage."""

    id: str
    pack: str
    entry: Entry
    function: Callable[..., Any]
    settings: GuardSettings
    patterns: tuple[ToolPattern, ...]
    is_async: bool
    never_waits: bool
    """It is async and ends in the step that begins it: it needs no task of its own."""
    timeout: float
    users: Users
    call_tool: CallTool
    """Runs a call that it makes."""

    @property
    def holds_back(self) -> int:
        """Return how many characters of a stream it must see together."""
        return HELD_BACK if self.settings.holds_back is None else self.settings.holds_back

    def is_for(self, tool: Tool, qualified_id: str) -> bool:
        """Tell whether it is asked about calls of a tool."""
        return any(one.text == EVERYTHING or one.fits(tool, qualified_id) for one in self.patterns)


@attrs.frozen(eq=False)
class GuardSet:
    """The guardrails that are asked together, and the required ones that are not in force."""

    guards: tuple[ActiveGuard, ...] = ()
    missing: tuple[str, ...] = ()
    sanitizers: tuple[ActiveGuard, ...] = attrs.field(init=False)
    others: tuple[ActiveGuard, ...] = attrs.field(init=False)
    timeout: float = attrs.field(init=False)
    """For how many seconds all of them together may think: as long as the most patient one."""

    is_quick: bool = attrs.field(init=False)
    """None of them sanitizes or waits for anything."""

    @sanitizers.default
    def _sanitizers(self) -> tuple[ActiveGuard, ...]:
        return tuple(guard for guard in self.guards if guard.settings.sanitizes)

    @others.default
    def _others(self) -> tuple[ActiveGuard, ...]:
        return tuple(guard for guard in self.guards if not guard.settings.sanitizes)

    @timeout.default
    def _timeout(self) -> float:
        return max((guard.settings.timeout for guard in self.guards), default=0.0)

    @is_quick.default
    def _is_quick(self) -> bool:
        return all(guard.never_waits and not guard.settings.sanitizes for guard in self.guards)

    def __bool__(self) -> bool:
        return bool(self.guards or self.missing)

    def without(self, asked: Sequence[AskedGuard]) -> "GuardSet":
        """Return these but for *asked*: who is being asked about something is not asked about what he does himself."""
        entries = [one.entry for one in asked]
        return GuardSet(tuple(guard for guard in self.guards if guard.entry not in entries), self.missing)


class ActiveGuards:
    """Reads the guardrails off their stacks: once for every change of these, not for every call."""

    def __init__(self, registry: Registry, required: Iterable[str], call_tool: CallTool) -> None:
        self.registry = registry
        self.call_tool = call_tool
        self.required = tuple(required)
        self._version = -1
        self._by_stage: dict[Stage, tuple[ActiveGuard, ...]] = {}
        self._missing: tuple[str, ...] = ()
        self._texts: dict[Stage, GuardSet] = {}

    def missing(self) -> tuple[str, ...]:
        """Return the required guardrails that are not in force."""
        self._read()
        return self._missing

    def for_text(self, stage: Stage) -> GuardSet:
        """Return who is asked about a text."""
        self._read()
        if stage not in self._texts:
            self._texts[stage] = GuardSet(self._by_stage.get(stage, ()), self._missing)
        return self._texts[stage]

    def for_tool(self, stage: Stage, tool: Tool, qualified_id: str) -> GuardSet:
        """Return who is asked about calls of a tool, or about their results."""
        self._read()
        guards = self._by_stage.get(stage, ())
        return GuardSet(tuple(one for one in guards if one.is_for(tool, qualified_id)), self._missing)

    def _read(self) -> None:
        if self._version == self.registry.version:
            return
        found: dict[Stage, list[ActiveGuard]] = {}
        for entry in active_in_order(self.registry):
            for stage, function in functions_of(entry.payload).items():
                found.setdefault(stage, []).append(_guard(entry, function, self.call_tool))
        self._by_stage = {stage: tuple(guards) for stage, guards in found.items()}
        self._missing = tuple(id for id in self.required if self.registry.get_active(id) is None)
        self._texts = {}
        self._version = self.registry.version


def _guard(entry: Entry, function: Callable[..., Any], call_tool: CallTool) -> ActiveGuard:
    settings = settings_of(entry.payload)
    return ActiveGuard(
        id=entry.id,
        pack=entry.source.pack,
        entry=entry,
        function=function,
        settings=settings,
        patterns=tuple(map(ToolPattern, settings.tools)),
        is_async=is_async(function),
        never_waits=never_waits(function),
        timeout=settings.timeout,
        call_tool=call_tool,
        users=entry._slot.users,  # noqa: SLF001 - the slot is our own
    )
