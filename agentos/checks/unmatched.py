"""Denials, grants, rules and required guardrails that match nothing that is there: a slip does nothing, silently."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from agentos.access.grants import Grant
from agentos.base.spelling import did_you_mean
from agentos.extensions.manager import ExtensionManager
from agentos.extensions.troubles import CURE
from agentos.model.principal import EVERYTHING, Principal
from agentos.model.tool_pattern import ToolPattern
from agentos.model.trouble import Trouble
from agentos.tools.definition import definition_hash
from agentos.tools.tool import Tool, as_tool


@attrs.frozen(kw_only=True)
class NamedThings:
    """What a host's settings name: its denials, its grants, who there is, and the guardrails that it requires."""

    deny: Iterable[str] = ()
    grants: Iterable[Grant] = ()
    principals: Mapping[str, Principal] = attrs.field(factory=dict)
    required_guardrails: Iterable[str] = ()


def unmatched(manager: ExtensionManager, named: NamedThings) -> list[Trouble]:
    """Return a trouble for whatever is named and matches nothing that *manager* has, overrides included."""
    tools = _tools(manager)
    known = [*tools, *(name for tool in tools.values() for name in (tool.name, *tool.aliases))]
    lacking = manager.perhaps_elsewhere
    return [
        *manager.unmatched_overrides(),
        *_denials(named.deny, tools, known, lacking),
        *_grants(named.grants, tools, known, lacking),
        *_rules(named.principals, tools.values(), lacking),
        *_guardrails(manager, named.required_guardrails, lacking),
    ]


def _tools(manager: ExtensionManager) -> dict[str, Tool]:
    """Return every tool on any stack, in force or not, by its fully-qualified id."""
    registry = manager.registry("tool")
    entries = [entry for id in registry.ids() for entry in registry.stack(id)]
    made = ((f"{entry.pack}:{entry.id}", as_tool(entry.payload)) for entry in entries)
    return {id: tool for id, tool in made if tool is not None}


def _denials(
    patterns: Iterable[str], tools: Mapping[str, Tool], known: Iterable[str], lacking: str
) -> Iterator[Trouble]:
    for text in (patterns,) if isinstance(patterns, str) else patterns:
        pattern = ToolPattern(text)
        if not any(pattern.fits(tool, id) for id, tool in tools.items()):
            message = f"{text!r} denies nothing that is there{did_you_mean(text, known)}{lacking}"
            yield Trouble("warning", "deny", message, CURE)


def _grants(
    grants: Iterable[Grant], tools: Mapping[str, Tool], known: Iterable[str], lacking: str
) -> Iterator[Trouble]:
    for grant in grants:
        if fault := _fault_of_grant(grant, tools, known, lacking):
            cure = f"agentos grants remove {grant.id[:8]}, and grant what is meant"
            yield Trouble("warning", "grants", f"{grant}: {fault}", cure)


def _fault_of_grant(grant: Grant, tools: Mapping[str, Tool], known: Iterable[str], lacking: str) -> str | None:
    if grant.decision == "never":
        is_about_something = any(grant.names(tool, id) for id, tool in tools.items())
    else:
        is_about_something = grant.tool in tools
    if not is_about_something:
        return f"it is about nothing that is there{did_you_mean(grant.tool, known)}{lacking}"
    if grant.definition is not None and grant.definition != definition_hash(tools[grant.tool]):
        return "the tool's definition changed since, so that it counts no more"
    return None


def _rules(principals: Mapping[str, Principal], tools: Iterable[Any], lacking: str) -> Iterator[Trouble]:
    required = sorted({rule for tool in tools if not tool.is_public for rule in tool.required_access})
    for id, principal in principals.items():
        for rule in sorted(principal.access | (principal.scopes or frozenset())):
            if rule not in required and rule != EVERYTHING:
                message = f"nothing that is there requires its rule {rule!r}{did_you_mean(rule, required)}{lacking}"
                yield Trouble("warning", f"principal {id}", message, CURE)


def _guardrails(manager: ExtensionManager, required: Iterable[str], lacking: str) -> Iterator[Trouble]:
    """Yield which required guardrails are not in force: nothing is let through without them."""
    registry = manager.registry("guardrail")
    for id in (required,) if isinstance(required, str) else required:
        if registry.get_active(id) is None:
            message = f"the required guardrail {id!r} is not in force{did_you_mean(id, registry.ids())}{lacking}"
            cure = "load a pack that offers it, or take it out of requiredGuardrails"
            yield Trouble("error", "requiredGuardrails", message, cure)
