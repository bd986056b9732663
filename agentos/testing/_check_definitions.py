"""Checks of what a pack says about itself and its tools."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentos import Tool
from agentos.schema.validation import compile_schema
from agentos.testing._candidate import Candidate, CandidateHost, NotLoadedError
from agentos.testing._check_registry import Findings, can_run, check, survey_pack, tool_check, tools_of
from agentos.testing._folder_snapshots import FolderSnapshot, folders_in
from agentos.tools.lint.findings import Finding, Severity, lint_pack, lint_tool
from agentos.tools.lint.subject import Spot, subject
from agentos.tools.wire_names import WireNames

_CHECK_OF_LINT_RULE = {
    "effect": "effects",
    "access": "effects",
    "name-and-effect": "effects",
    "open-object": "schemas",
    "parameter-description": "schemas",
    "wire-name": "wire-names",
    "dry-run": "dry-run",
    "strict": "",  # what a provider's strict mode can't take is no fault of a pack
}
"""Lint rules that another check is about."""


@check("loads")
async def loads(candidate: Candidate) -> Findings:
    """Load into a host with its secrets, and be in force there."""
    try:
        known = await survey_pack(candidate)
    except NotLoadedError as error:
        yield candidate.finding("loads", str(error), "see the message; options= and secrets= may be needed")
        return
    for entry in known.idle:
        message = f"the {entry.kind} is {entry.state}: {entry.reason}"
        yield candidate.finding("loads", message, "see why, although its secrets are there", tool=entry.id)
    pack = candidate.pack
    if known.is_empty and pack is not None and not (pack.descriptors or pack.on_activate):
        cure = "give it descriptors, or see whether options= are needed"
        yield candidate.finding("loads", "it offers nothing: it has no descriptors", cure, severity="warning")


@check("lints")
async def lints(candidate: Candidate) -> Findings:
    """Say about itself what models and people need, without what lint finds wrong."""
    tools = await tools_of(candidate)
    pack = candidate.pack
    found = [] if pack is None else lint_pack(pack)
    declared = set() if pack is None else {one.id for one in pack.descriptors if one.kind == "tool"}
    for tool in tools:
        if tool.name not in declared:
            found += lint_tool(tool, candidate.finding("", "", "", tool=tool.name).place)
    for one in found:
        if one.rule not in _CHECK_OF_LINT_RULE:
            yield _from_lint(candidate, "lints", one)


def _from_lint(candidate: Candidate, check: str, found: Finding) -> Finding:
    """Take over a finding of lint: its errors and warnings count, what it only remarks is remarked."""
    severity: Severity = "info" if found.severity == "info" else "warning" if found.rule == "secrets" else "error"
    cure = f"{found.cure} [lint: {found.rule}]"
    _, _, tool = found.place.partition(":")
    return candidate.finding(check, found.message, cure, tool=tool, severity=severity)


def _lint_findings(candidate: Candidate, check: str, tool: Tool) -> Iterator[Finding]:
    for one in lint_tool(tool, f"{candidate.name}:{tool.name}"):
        if _CHECK_OF_LINT_RULE.get(one.rule) == check:
            yield _from_lint(candidate, check, one)


# -- schemas -----------------------------------------------------------------------------------------------------------


@tool_check("schemas")
async def schemas(candidate: Candidate, tool: Tool) -> Findings:
    """Take closed objects, with a description and a fitting default for every parameter."""
    for finding in _lint_findings(candidate, "schemas", tool):
        yield finding
    for spot in subject(tool, tool.name).spots:
        for word in ("default", "examples"):
            for value in _values_of(spot.schema, word):
                if not _fits(spot.schema, tool, value):
                    shown = json.dumps(value, default=str)[:60]
                    message = f"the {word.rstrip('s')} {shown} of {spot.path or 'the arguments'} does not fit"
                    yield candidate.finding("schemas", message, "give one that its own schema takes", tool=tool.name)


def _values_of(schema: Mapping[str, Any], word: str) -> list[Any]:
    value = schema.get(word, [])
    return list(value) if word == "examples" and isinstance(value, list) else [value] if word in schema else []


def _fits(schema: Mapping[str, Any], tool: Tool, value: Any) -> bool:
    known = {word: tool.input_schema[word] for word in ("$defs", "definitions") if word in tool.input_schema}
    return bool(compile_schema({**known, **schema}, "a parameter").is_valid(value))


_BOUNDED_FORMATS = ("date", "date-time", "time", "duration", "ipv4", "ipv6", "uuid")
_CHOICES = {"enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if"}


@tool_check("bounds")
async def bounds(candidate: Candidate, tool: Tool) -> Findings:
    """Bound every parameter: how long a text, how large a number, how many items."""
    spots = subject(tool, tool.name).spots
    quantities = {spot.path for spot in spots if "number" in _kinds(spot.schema)}
    around: dict[str, dict[str, Any]] = {}
    for spot in spots:
        if spot.schema.keys() & _CHOICES:  # what stands beside a choice holds for each of its variants
            around[spot.path] = {**around.get(spot.path, {}), **spot.schema}
        for message, cure in _unbounded(spot, around.get(spot.path, {})):
            where = spot.path or "the arguments"
            severity: Severity = "warning" if message == _ANY_NUMBER and spot.path in quantities else "error"
            yield candidate.finding("bounds", f"{where}: {message}", cure, tool=tool.name, severity=severity)


_ANY_NUMBER = "a number may have any size"
"""Of a count that is a fault; a quantity may be meant to."""


def _unbounded(spot: Spot, around: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if spot.schema.keys() & _CHOICES or spot.is_part:
        return
    schema, kinds = {**around, **spot.schema}, _kinds(spot.schema)
    if "string" in kinds and not _bounds_text(schema):
        yield "a text may have any length", "give it a maxLength, such as Annotated[str, ..., Schema(maxLength=1000)]"
    if kinds & {"integer", "number"} and not _bounds_number(schema):
        yield _ANY_NUMBER, "give it a minimum and a maximum"
    if "array" in kinds and not _bounds_array(schema):
        yield "a list may have any number of items", "give it maxItems"
    if spot.is_object and not spot.is_closed and "maxProperties" not in schema:
        yield "an object may have any number of keys", "close it, or give it maxProperties"
    if not kinds and spot.is_parameter and not spot.is_object:
        yield "any value at all is taken", "say which type it has"


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kind = schema.get("type")
    return {kind} if isinstance(kind, str) else set(kind or ())


def _bounds_text(schema: Mapping[str, Any]) -> bool:
    pattern = schema.get("pattern")
    is_short = isinstance(pattern, str) and pattern.startswith("^") and not re.search(r"[*+]|,\}", pattern)
    return "maxLength" in schema or schema.get("format") in _BOUNDED_FORMATS or is_short


def _bounds_number(schema: Mapping[str, Any]) -> bool:
    return bool(schema.keys() & {"minimum", "exclusiveMinimum"} and schema.keys() & {"maximum", "exclusiveMaximum"})


def _bounds_array(schema: Mapping[str, Any]) -> bool:
    return "maxItems" in schema or ("prefixItems" in schema and schema.get("items") is False)


# -- effects and names -------------------------------------------------------------------------------------------------


@tool_check("effects")
async def effects(candidate: Candidate, tool: Tool) -> Findings:
    """Say what a call does and who may make it, in words that fit its name and what it really does."""
    for finding in _lint_findings(candidate, "effects", tool):
        yield finding
    if not can_run(candidate, tool) or tool.effect != "read":
        return
    async with candidate.sandbox() as sandbox, candidate.host() as session:
        for path in await _files_changed_by(session, tool, [sandbox.workplace, *folders_in(candidate.options_here)]):
            message = f"it says that it reads, but calling it again changed {path}"
            yield candidate.finding("effects", message, 'say effect="mutate"', tool=tool.name)


async def _files_changed_by(session: CandidateHost, tool: Tool, folders: list[Path]) -> list[str]:
    """Return which files differ after a second call: making something once, such as a cache, is no effect."""
    for arguments in session.candidate.arguments(tool)[:1]:
        await session.bounded_call(tool, arguments)
        before = FolderSnapshot.of(folders)
        await session.bounded_call(tool, arguments)
        return before.changes(FolderSnapshot.of(folders))
    return []


@check("wire-names")
async def wire_names(candidate: Candidate) -> Findings:
    """Have names that every provider accepts as they are."""
    tools = await tools_of(candidate)
    for tool in tools:
        for finding in _lint_findings(candidate, "wire-names", tool):
            yield finding
    names = WireNames.of(name for tool in tools for name in (tool.name, *tool.aliases))
    for tool in tools:
        for alias in tool.aliases:
            if names.to_wire[alias] != alias:
                message = (
                    f"the alias {alias!r} is refused by providers; on the wire it becomes {names.to_wire[alias]!r}"
                )
                yield candidate.finding("wire-names", message, "use letters, digits, _ and - only", tool=tool.name)
