"""What a pack's tools could say better: findings with severity, place and cure.

    lint_pack   every descriptor of a pack
    lint_tool   one tool, or what means to be one
    tool_rule   adds a rule about one tool
    pack_rule   adds a rule about a pack's tools among each other
    hidden_characters   names what people do not see in a text, and models do

A rule is a generator of remarks `(severity, place, message, cure)`. It sees a `Subject`: plain values, read once, so
that a rule need not mistrust what a pack brought. Findings come in the order of the descriptors, then of the rules.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from agentos.base.foreign import Border
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.tools.lint.lint_rules import PACK_RULES, TOOL_RULES, hidden_characters, pack_rule, tool_rule
from agentos.tools.lint.subject import Remark, Severity, Spot, Subject, subject

__all__ = [
    "Finding",
    "Severity",
    "Spot",
    "Subject",
    "hidden_characters",
    "lint_pack",
    "lint_tool",
    "pack_rule",
    "tool_rule",
]


@attrs.frozen
class Finding:
    """One thing that could be better: how bad it is, where, what it is, and what to do about it."""

    severity: Severity
    place: str
    rule: str
    message: str
    cure: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.place}: {self.message}; {self.cure} [{self.rule}]"


def lint_pack(pack: ExtensionPack) -> list[Finding]:
    """List what could be better about the tools of *pack*."""
    if not isinstance(pack, ExtensionPack):
        cure = "give what create_extension_pack returns"
        return [Finding("error", "pack", "no-pack", f"expected an ExtensionPack, got {type(pack).__name__}", cure)]
    offered = [(one, subject(one.payload, f"{pack.name}:{one.id}")) for one in pack.descriptors if one.kind == "tool"]
    found = [finding for one, subject in offered for finding in _of_descriptor(one, subject)]
    subjects = [subject for _, subject in offered]
    for name, rule in PACK_RULES.items():
        found.extend(_findings(name, pack.name, functools.partial(rule, pack, subjects)))
    return list(dict.fromkeys(found))


def lint_tool(tool: object, place: str) -> list[Finding]:
    """List what could be better about *tool*, which stands at *place*."""
    return list(dict.fromkeys(_of_subject(subject(tool, place))))


def _of_descriptor(descriptor: Descriptor[Any], subject: "Subject") -> Iterator[Finding]:
    if subject.is_tool and subject.name not in ("", descriptor.id):
        message = f"the descriptor's id is {descriptor.id!r}, its tool's name {subject.name!r}: it can't be registered"
        yield Finding("error", subject.place, "id", message, "give both the same name, or hand over the tool alone")
    yield from _of_subject(subject)


def _of_subject(subject: "Subject") -> Iterator[Finding]:
    if not subject.is_tool:
        yield Finding("warning", subject.place, "no-tool", subject.fault, subject.cure)
        return
    for name, rule in TOOL_RULES.items():
        yield from _findings(name, subject.place, functools.partial(rule, subject))


def _findings(rule: str, place: str, check: Callable[[], Iterable[Remark]]) -> list[Finding]:
    """Run a rule; one that raises is itself a finding, so that the others are still heard."""
    found = []
    with Border() as border:  # rules are foreign code too
        for severity, where, message, cure in check():
            found.append(Finding(severity, where, rule, message, cure))
    if border.error is not None:
        found.append(Finding("warning", place, rule, f"the rule raised {type(border.error).__name__}", "mend the rule"))
    return found
