"""What a manifest says of the host itself: how calls are decided on, and for whom."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.errors import Problem
from agentos.model.field_checks import frozen_mapping
from agentos.model.parsing import show_path
from agentos.model.principal import Principal

KEYS = (
    *("mode", "deny", "budget", "proposalTtl", "allowOtherApprover", "pins", "lock", "auditArguments", "dotenv"),
    "principals",
)
"""The keys of a manifest that are settings."""


@attrs.frozen(kw_only=True)
class Settings:
    """What an operator decided. None says nothing: then the host's own word counts.

    `budget` is a mapping of a budget's fields; `has_budget` tells "no limit" from "nothing said".
    """

    mode: str | None = None
    deny: tuple[str, ...] | None = None
    has_budget: bool = False
    budget: Mapping[str, Any] | None = None
    proposal_ttl: float | None = None
    allow_other_approver: bool | None = None
    pins: str | None = None
    lock: str | None = None
    audit_arguments: bool | None = None
    dotenv: str | None = None
    principals: Mapping[str, Principal] = attrs.field(factory=dict, converter=frozen_mapping)


def structure_settings(data: Mapping[str, Any], base: Path | None) -> Settings:
    """Return the settings in a manifest that was checked; paths are relative to its folder."""
    deny = data.get("deny")
    return Settings(
        mode=data.get("mode"),
        deny=None if deny is None else tuple(deny),
        has_budget="budget" in data,
        budget=data.get("budget"),
        proposal_ttl=data.get("proposalTtl"),
        allow_other_approver=data.get("allowOtherApprover"),
        pins=data.get("pins"),
        lock=_beside(data.get("lock"), base),
        audit_arguments=data.get("auditArguments"),
        dotenv=_beside(data.get("dotenv"), base),
        principals={id: _principal(id, raw) for id, raw in data.get("principals", {}).items()},
    )


def problems_of_settings(data: Any) -> list[Problem]:
    """Find what a JSON Schema can't say of settings, in whatever of *data* has the right shape."""
    principals = data.get("principals") if isinstance(data, dict) else None
    problems = []
    for id, raw in principals.items() if isinstance(principals, dict) else ():
        try:
            _principal(id, raw if isinstance(raw, dict) else {})
        except (TypeError, ValueError) as error:
            problems.append(Problem(show_path(("principals", id)), str(error)))
    return problems


def _principal(id: str, raw: Mapping[str, Any]) -> Principal:
    return Principal(id, raw.get("kind", "user"), frozenset(raw.get("access", ())), raw.get("scopes"))


def _beside(location: str | None, base: Path | None) -> str | None:
    return location if location is None or base is None else str(base / location)
