"""A guardrail made of a detector: it looks at texts, streams, arguments and results, and blocks, hides or flags."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import attrs

from agentos import GuardContext, GuardedCall, GuardVerdict, ToolResult
from agentos_pack_common.findings import Finding, hidden

Action = Literal["block", "sanitize", "flag"]
STAGES = ("input", "output", "tool_call", "tool_result")
_LARGE = 20_000
"""From how many characters on a text is looked at in a thread."""


@attrs.frozen
class TextGuard:
    """Asks a detector about everything that is text.

    A finding is told by its kind alone: neither the reason nor the details have anything of the text.
    """

    find: Callable[[str], list[Finding]]
    action: Action
    noun: str
    """What is looked for, in the plural, for people: `secrets`."""
    code: str
    stages: frozenset[str] = frozenset(STAGES)
    holds_back: int = 256
    timeout: float = 5.0
    allowed: frozenset[str] = frozenset()
    """Texts that were found and are no finding."""

    @property
    def sanitizes(self) -> bool:
        """Tell whether it replaces what it finds."""
        return self.action == "sanitize"

    async def evaluate_input(self, text: str, _context: GuardContext) -> GuardVerdict | None:
        """Look at a user's words."""
        return await self._text(text, "") if "input" in self.stages else None

    async def evaluate_output(self, text: str, context: GuardContext) -> GuardVerdict | None:
        """Look at what leaves, with what left before it."""
        return await self._text(text, context.preceding) if "output" in self.stages else None

    async def evaluate_tool_call(self, call: GuardedCall, _context: GuardContext) -> GuardVerdict | None:
        """Look at every text in the arguments."""
        if "tool_call" not in self.stages:
            return None
        arguments, kinds = await self._off_loop(call.arguments)
        return self._verdict(arguments, kinds)

    async def evaluate_tool_result(self, result: ToolResult, _context: GuardContext) -> GuardVerdict | None:
        """Look at every text in what a tool returned."""
        if "tool_result" not in self.stages:
            return None
        parts = {"output": result.output, "content": result.content, "state": result.state}
        if result.error is not None:
            parts |= {"message": result.error.message, "details": dict(result.error.details)}
        cleaned, kinds = await self._off_loop(parts)
        return self._verdict(_with_parts(result, cleaned), kinds) if kinds else None

    async def _text(self, text: str, preceding: str) -> GuardVerdict | None:
        findings = await _run(self._found, preceding + text, size=len(text))
        moved = [
            Finding(one.kind, max(one.start - len(preceding), 0), one.end - len(preceding))
            for one in findings
            if one.end > len(preceding)
        ]
        return self._verdict(hidden(text, moved) if self.sanitizes else None, [one.kind for one in moved])

    async def _off_loop(self, value: Any) -> tuple[Any, list[str]]:
        kinds: list[str] = []
        return await _run(self._cleaned, value, "", kinds, size=_size(value)), kinds

    def _found(self, text: str) -> list[Finding]:
        return [one for one in self.find(text) if text[one.start : one.end] not in self.allowed]

    def _cleaned(self, value: Any, name: str, kinds: list[str]) -> Any:
        """Return *value* without what was found in its texts, and add to *kinds* what that was."""
        if isinstance(value, str):
            return self._cleaned_text(value, name, kinds)
        if isinstance(value, Mapping):
            return {
                self._cleaned_text(key, "", kinds): self._cleaned(item, str(key), kinds) for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._cleaned(item, name, kinds) for item in value]
        return value

    def _cleaned_text(self, text: str, name: str, kinds: list[str]) -> str:
        """Look at a text with its name before it, as it would stand in a file: some are told by their name alone."""
        before = f'{name}="' if name else ""
        found = [one for one in self._found(f'{before}{text}"' if name else text) if one.end > len(before)]
        kinds += [one.kind for one in found]
        size = len(text)
        return hidden(
            text,
            [
                Finding(one.kind, max(one.start - len(before), 0), min(one.end - len(before), size))
                for one in found
            ],
        )  # fmt: skip

    def _verdict(self, replacement: Any, kinds: Iterable[str]) -> GuardVerdict | None:
        names = sorted(set(kinds))
        if not names:
            return None
        reason = f"{self.noun} found: {', '.join(names)}"
        if self.action == "block":
            return GuardVerdict.block(reason, self.code)
        if self.action == "sanitize":
            return GuardVerdict.sanitize(replacement, reason, self.code)
        return GuardVerdict.flag(reason, self.code)


async def _run(function: Callable[..., Any], *arguments: Any, size: int) -> Any:
    return function(*arguments) if size < _LARGE else await asyncio.to_thread(function, *arguments)


def _size(value: Any) -> int:
    """Return about how many characters *value* has, counted no further than needed."""
    waiting, size = [value], 0
    while waiting and size < _LARGE:
        match waiting.pop():
            case str(text):
                size += len(text)
            case Mapping() as mapping:
                waiting += [*mapping.values()]
                size += len(mapping)
            case list() | tuple() as items:
                waiting += items
                size += len(items)
    return size


def _with_parts(result: ToolResult, parts: Mapping[str, Any]) -> ToolResult:
    error = result.error
    if error is not None:
        error = attrs.evolve(error, message=parts["message"], details=parts["details"])
    return attrs.evolve(result, output=parts["output"], content=parts["content"], state=parts["state"], error=error)
