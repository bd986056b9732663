"""The guardrail and the tool."""

import asyncio
import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

import attrs

from agentos import PUBLIC, Descriptor, GuardContext, GuardedCall, GuardVerdict, Schema, Tool, read_options, tool
from agentos_pack_code_safety.dangers import Danger
from agentos_pack_code_safety.python import dangers_of_python
from agentos_pack_code_safety.shell import dangers_of_shell
from agentos_pack_code_safety.sql import dangers_of_sql

Language = Literal["shell", "sql", "python"]
LANGUAGES: dict[Language, Callable[[Any], list[Danger]]] = {
    "shell": dangers_of_shell,
    "sql": lambda text: dangers_of_sql(text) if isinstance(text, str) else [],
    "python": lambda text: dangers_of_python(text) if isinstance(text, str) else [],
}
_ARGUMENTS: dict[Language, re.Pattern[str]] = {
    "shell": re.compile(r"^(?:argv|cmd|command(?:_?line)?s?|shell(?:_?command)?|bash|script)$", re.IGNORECASE),
    "sql": re.compile(r"^(?:sql|statements?|sql_?query)$", re.IGNORECASE),
    "python": re.compile(r"^(?:python|code|source|python_?code|snippet)$", re.IGNORECASE),
}
"""What an argument is called that is executed."""
_DATABASE = re.compile(r"sql|database|(?:^|[_:-])db(?:$|[_:-])|postgres|duckdb|mysql|warehouse", re.IGNORECASE)
"""In the name of a tool whose `query` is SQL."""
_SHOWN = 10
_OWN = "code-safety:scan_code"
"""Looks at code without executing it."""


@attrs.frozen
class CodeOptions:
    """The options of the pack."""

    tools: Mapping[str, Mapping[str, Language]] = attrs.field(factory=dict)
    """Which arguments of which tools are executed, where their names don't tell: `{"lab:*": {"cell": "python"}}`."""
    action: Literal["block", "flag"] = "block"
    """What is done about the worst dangers; `flag` never blocks."""
    allowed: tuple[str, ...] = ()
    """Rules that are not applied, such as `shell.more-rights`; `*` stands for anything."""


def create_descriptors(options: Mapping[str, Any]) -> tuple[Descriptor[Any] | Tool, ...]:
    """Return the guardrail `code-safety` and the tool `scan_code`."""
    return Descriptor("guardrail", "code-safety", CodeGuard(read_options(CodeOptions, options))), scan_code


@attrs.frozen
class CodeGuard:
    """Looks at what a tool is about to execute."""

    options: CodeOptions

    async def evaluate_tool_call(self, call: GuardedCall, _context: GuardContext) -> GuardVerdict | None:
        """Say which rules the arguments break."""
        executed = list(self._executed(call))
        if not executed or call.tool == _OWN:
            return None
        found = await asyncio.to_thread(_dangers, executed)
        kept = [one for one in found if not any(fnmatch.fnmatchcase(one.rule, each) for each in self.options.allowed)]
        if not kept:
            return None
        reason = "; ".join(f"{one.rule}: {one.reason}" for one in kept[:_SHOWN])
        worst = [one for one in kept if one.severity == "block"]
        if worst and self.options.action == "block":
            return GuardVerdict.block(reason, worst[0].rule)
        return GuardVerdict.flag(reason, kept[0].rule)

    def _executed(self, call: GuardedCall) -> Iterator[tuple[Language, Any]]:
        said = {
            name: language
            for pattern, arguments in self.options.tools.items()
            if fnmatch.fnmatchcase(call.tool, pattern) or fnmatch.fnmatchcase(call.name, pattern)
            for name, language in arguments.items()
        }
        for name, value in call.arguments.items():
            language = said.get(name) or _language(call.tool, name)
            if language is not None:
                yield language, value


def _language(tool_id: str, argument: str) -> Language | None:
    if argument == "query":
        return "sql" if _DATABASE.search(tool_id) else None
    return next((language for language, pattern in _ARGUMENTS.items() if pattern.match(argument)), None)


def _dangers(executed: list[tuple[Language, Any]]) -> list[Danger]:
    return sorted({danger for language, value in executed for danger in LANGUAGES[language](value)})


@attrs.frozen
class FoundDanger:
    """A rule that a text breaks."""

    rule: str
    severity: str
    reason: str


@tool(effect="read", required_access=PUBLIC, timeout=20, idempotent=True, category="safety")
def scan_code(
    code: Annotated[str, "The command line, statements or program to look at", Schema(maxLength=100_000)],
    language: Annotated[Language, "What it is written in"],
) -> list[FoundDanger]:
    """Tell what is dangerous in a command line, SQL or Python, by rules; nothing is executed."""
    return [FoundDanger(one.rule, one.severity, one.reason) for one in LANGUAGES[language](code)]
