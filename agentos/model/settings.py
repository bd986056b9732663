"""The settings of a host: one class with their defaults, which the host, its manifest and the command share.

What the host gives counts, else what its manifest says, else the default.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.errors import Problem
from agentos.model.field_checks import frozen_mapping
from agentos.model.parsing import camel, show_path
from agentos.model.principal import Principal

UNSET: Any = attrs.NOTHING
"""Stands for a value that was not given, so that a default can be told from the same value given."""
_MEMORY_TTL = 600.0
_DURABLE_TTL = 24 * 3600.0
_DEFAULT_BUDGET = frozen_mapping({"calls": 60, "window": 60.0})


@attrs.frozen(kw_only=True)
class Settings:
    """How a host decides on calls, and for whom."""

    mode: str = "approve"
    """What happens with calls that change something: `approve` asks, `auto` runs them, `unattended` refuses them."""
    deny: Any = ()
    """Names of tools, `pack:tool`, or patterns of either that must not run."""
    budget: Any = _DEFAULT_BUDGET
    """How much each principal may do: a Budget, several, the fields of one as a mapping, or None for no limit."""
    proposal_ttl: float | None = None
    """For how many seconds a call waits for approval; None is ten minutes in memory, 24 hours in a durable store."""
    allow_other_approver: bool = False
    """Whether somebody else than its proposer may approve a call."""
    pins: str = "first-use"
    """`first-use` lets new definitions in and holds changed ones back, `strict` holds new ones back too, `off`."""
    lock: Any = None
    """A lock file; with pins="strict", packs and tools that differ from it are refused."""
    audit_arguments: bool = False
    """Whether the audit log has the arguments of calls, and not only their hash."""
    dotenv: str | Path | None = None
    """A file of environment variables that secrets are read from."""
    principals: Mapping[str, Principal] = attrs.field(factory=dict, converter=frozen_mapping)
    """Who there is, by id."""
    given: frozenset[str] = attrs.field(default=frozenset(), eq=False)
    """The names of those that were given; the others are defaults."""

    def said(self) -> dict[str, Any]:
        """Return those that were given, by name."""
        return {name: getattr(self, name) for name in self.given}

    def overlaid(self, **values: Any) -> "Settings":
        """Return these with *values* over them; UNSET says nothing."""
        said = self.said() | {name: value for name, value in values.items() if value is not UNSET}
        return Settings(**said, given=frozenset(said))

    def seconds_to_approve(self, *, is_durable: bool) -> float:
        """Return for how long a call waits for approval in a store that lasts, or in memory."""
        if self.proposal_ttl is not None:
            return self.proposal_ttl
        return _DURABLE_TTL if is_durable else _MEMORY_TTL


KEYS = {camel(field.name): field.name for field in attrs.fields(Settings) if field.name != "given"}
"""The keys of a manifest that are settings, and the field of each."""


def structure_settings(data: Mapping[str, Any], base: Path | None) -> Settings:
    """Return the settings in a manifest that was checked; paths are relative to its folder."""
    values = {field: data[key] for key, field in KEYS.items() if key in data}
    for field in {"lock", "dotenv"} & values.keys() if base is not None else ():
        values[field] = str(base / values[field])
    if "deny" in values:
        values["deny"] = tuple(values["deny"])
    if "principals" in values:
        values["principals"] = {id: _principal(id, raw) for id, raw in values["principals"].items()}
    return Settings().overlaid(**values)


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
