"""Denials, grants, rules, required guardrails and `tools` of guardrails and middleware that match nothing.

Each is a slip that does nothing, silently.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from agentos.access.grants import Grant
from agentos.base.foreign import Border
from agentos.base.spelling import did_you_mean
from agentos.extensions.manager import ExtensionManager
from agentos.extensions.troubles import CURE
from agentos.model.guarding import settings_of
from agentos.model.middleware import middleware_settings
from agentos.model.principal import EVERYTHING, Principal
from agentos.model.tool_pattern import ToolPattern
from agentos.model.trouble import Trouble
from agentos.stacks.entry import Entry
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
        *_patterns(manager, tools, known, lacking),
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
        if not _fits_any(text, tools):
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


# -- what guardrails and middleware are about --------------------------------------------------------------------------

_EVERY_TOOL = "*"
_MOST_TEXTS = 10_000
"""How many texts of a pack's options are looked at."""
_READ: dict[str, Callable[[Any], Any]] = {"guardrail": settings_of, "tool-middleware": middleware_settings}
"""The kinds whose payloads say which tools they are about, and who reads that."""


def _patterns(
    manager: ExtensionManager, tools: Mapping[str, Tool], known: Iterable[str], lacking: str
) -> Iterator[Trouble]:
    """Yield which patterns of what is in force fit no tool, if somebody meant a tool by them.

    What an operator wrote in a pack's options means one. What stands in a pack's code means one if it is a name: a
    glob may be about what other hosts load. So may the name of a pack that is not loaded, if nothing here is near it.
    """
    packs = sorted({id.partition(":")[0] for id in tools})
    for entry in (one for kind in _READ for one in manager.registry(kind).list_active()):
        unmatched = [text for text in _tools_of(entry) if not _fits_any(text, tools)]
        said = _texts(entry.options) if unmatched else ()
        for text in unmatched:
            is_glob = any(sign in text for sign in "*?[")
            meant = did_you_mean(text, [f"{pack}:*" for pack in packs] if is_glob else known)
            is_by_operator = text in said
            is_near = bool(meant) or ":" not in text or text.partition(":")[0] in packs
            if is_by_operator or (is_near and not is_glob):
                yield _unmatched_pattern(entry, text, f"{meant}{lacking}", is_by_operator=is_by_operator)


def _tools_of(entry: Entry) -> tuple[str, ...]:
    """Return which tools a payload says that it is about, but for `*`; nothing of one that does not say it any more."""
    with Border():  # already to look at a payload may run its code
        return tuple(text for text in dict.fromkeys(_READ[entry.kind](entry.payload).tools) if text != _EVERY_TOOL)
    return ()


def _texts(options: Mapping[str, Any]) -> set[str]:
    """Return every text in options, keys included."""
    found: set[str] = set()
    rest: list[Any] = [options]
    while rest and len(found) < _MOST_TEXTS:
        value = rest.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, Mapping):
            rest += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            rest += value
    return found


def _fits_any(text: str, tools: Mapping[str, Tool]) -> bool:
    pattern = ToolPattern(text)
    return any(pattern.fits(tool, id) for id, tool in tools.items())


def _unmatched_pattern(entry: Entry, text: str, more: str, *, is_by_operator: bool) -> Trouble:
    pack = entry.source.pack
    about, place = f"{entry.kind}:{entry.id}", f"the options of {pack}" if is_by_operator else f"its `tools` in {pack}"
    cure = f"correct it in the options of {pack}, or take it out" if is_by_operator else CURE
    return Trouble("warning", about, f"{text!r} in {place} is about no tool that is there{more}", cure)
