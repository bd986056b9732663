"""What of a tool a person accepts: its definition, and the hash that tells when it changed."""

from collections.abc import Mapping
from typing import Any

from agentos.base.canonical import canonical, digest
from agentos.tools.tool import Tool, as_tool


def definition_of(payload: Any) -> Mapping[str, Any] | None:
    """Return what the model is told of a tool and what it may do; None if *payload* is no tool.

    How it runs (its code, timeout, placement), how people are shown its calls (`display`: every argument is shown
    beside it, so that it can hide none) and its version are not part of it. What a server says of its tool beside that
    is, whether it is believed or not.
    """
    tool = as_tool(payload)
    if tool is None:
        return None
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "effect": tool.effect,
        "annotations": _annotations(tool),
    }


def _annotations(tool: Tool) -> dict[str, Any]:
    said = getattr(tool, "server_annotations", None)
    return {
        "required_access": "PUBLIC" if tool.is_public else sorted(tool.required_access),  # type: ignore[arg-type]
        "intervention": _intervention(tool.intervention),
        "idempotent": tool.idempotent,
        "display_name": tool.display_name,
        "category": tool.category,
        "aliases": tool.aliases,
        "system_prompt": tool.system_prompt,
        "toolset_prompt": tool.toolset.system_prompt if tool.toolset else None,
        **({} if said is None else {"server_annotations": said}),
    }


def _intervention(value: Any) -> Any:
    if callable(value):
        return "decided by a function"
    if isinstance(value, tuple):
        return [{"policy": rule.policy, "match": dict(rule.match), "kind": rule.kind} for rule in value]
    return value


def definition_hash(tool: Tool) -> str:
    """Return the hash of a tool's definition."""
    return digest(definition_of(tool))


def body_of(definition: Mapping[str, Any]) -> str:
    """Return the hash of a definition without its name: a tool that was renamed keeps it."""
    return digest({key: value for key, value in definition.items() if key != "name"})


def changed_parts(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Name what differs between two definitions, in words."""
    parts = [key for key in after if key != "annotations" and not _same(before.get(key), after[key])]
    old, new = before.get("annotations") or {}, after.get("annotations") or {}
    parts += [key for key in {**new, **old} if not _same(old.get(key), new.get(key))]
    return [part.replace("_", " ") for part in parts]


def _same(one: Any, other: Any) -> bool:
    return canonical(one) == canonical(other)
