"""The guardrails."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from agentos import Descriptor, GuardContext, GuardedCall, GuardVerdict, ToolResult, read_options
from agentos_pack_injection_guard.invisible import stripped
from agentos_pack_injection_guard.phrases import suspicious
from agentos_pack_injection_guard.taint import Memory, traced


@attrs.frozen
class InjectionOptions:
    """The options of the pack."""

    phrases_in: tuple[Literal["input", "tool_result"], ...] = ("tool_result",)
    """Where suspicious sentences are flagged."""
    strip: bool = True
    """Whether characters that nobody sees are removed."""
    trace: bool = True
    """Whether destinations that came from a tool are flagged."""


def create_descriptors(options: Mapping[str, Any]) -> tuple[Descriptor[Any], ...]:
    """Return the guardrails that *options* ask for."""
    chosen = read_options(InjectionOptions, options)
    guards = {
        "invisible-characters": InvisibleCharacters() if chosen.strip else None,
        "injection": SuspiciousSentences(frozenset(chosen.phrases_in)) if chosen.phrases_in else None,
        "taint": Taint() if chosen.trace else None,
    }
    return tuple(Descriptor("guardrail", id, guard) for id, guard in guards.items() if guard is not None)


class InvisibleCharacters:
    """Removes what nobody sees from what users send and tools return."""

    sanitizes = True

    async def evaluate_input(self, text: str, _context: GuardContext) -> GuardVerdict | None:
        """Look at a user's words."""
        seen = stripped(text)
        return None if seen == text else GuardVerdict.sanitize(seen, _UNSEEN, "InvisibleCharacters")

    async def evaluate_tool_result(self, result: ToolResult, _context: GuardContext) -> GuardVerdict | None:
        """Look at what a tool returned."""
        output, content = _stripped_all(result.output), stripped(result.content)
        if output == result.output and content == result.content:
            return None
        made = attrs.evolve(result, output=output, content=content)
        return GuardVerdict.sanitize(made, _UNSEEN, "InvisibleCharacters")


_UNSEEN = "characters that nobody sees were removed"


def _stripped_all(value: Any) -> Any:
    if isinstance(value, str):
        return stripped(value)
    if isinstance(value, Mapping):
        return {stripped(key): _stripped_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_stripped_all(item) for item in value]
    return value


@attrs.frozen
class SuspiciousSentences:
    """Flags sentences that speak to a model."""

    stages: frozenset[str]

    async def evaluate_input(self, text: str, _context: GuardContext) -> GuardVerdict | None:
        """Look at a user's words."""
        return _flag(text) if "input" in self.stages else None

    async def evaluate_tool_result(self, result: ToolResult, _context: GuardContext) -> GuardVerdict | None:
        """Look at what a tool returned."""
        return _flag(result.content) if "tool_result" in self.stages else None


def _flag(text: str) -> GuardVerdict | None:
    kinds = suspicious(stripped(text))
    if not kinds:
        return None
    return GuardVerdict.flag(f"sentences that speak to a model: {', '.join(kinds)}", "SuspiciousSentence")


class Taint:
    """Flags a destination that came from a tool and not from the user; a person reads it on the proposal."""

    def __init__(self) -> None:
        self._memory = Memory()

    async def evaluate_input(self, text: str, context: GuardContext) -> None:
        """Remember a user's words."""
        self._memory.of(context.principal.id, context.session).hear(text)

    async def evaluate_tool_result(self, result: ToolResult, context: GuardContext) -> None:
        """Remember what a tool returned."""
        if context.call is not None:
            self._memory.of(context.principal.id, context.session).see(context.call.tool, result.content)

    async def evaluate_tool_call(self, call: GuardedCall, context: GuardContext) -> GuardVerdict | None:
        """Say where the destinations of a call came from."""
        found = traced(call.arguments, self._memory.of(context.principal.id, context.session))
        if not found:
            return None
        reason = "; ".join(f"{one.argument} came from {one.tool}, not from the user" for one in found[:10])
        return GuardVerdict.flag(reason, "Tainted")
