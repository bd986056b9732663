"""The settings of a host: one class with their defaults, which the host, its manifest and the command share.

What the host gives counts, else what its manifest says, else the default.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.errors import Problem
from agentos.model.channels import ChannelSettings
from agentos.model.field_checks import frozen_mapping
from agentos.model.parsing import camel, show_path
from agentos.model.persona import Persona
from agentos.model.principal import Principal
from agentos.model.workflow_definition import WorkflowDefinition, problems_of_workflow, structure_workflow

UNSET: Any = attrs.NOTHING
"""Stands for a value that was not given, so that a default can be told from the same value given."""
_SMALLEST_LIMIT = 1_000
_MEMORY_TTL = 600.0
_DURABLE_TTL = 24 * 3600.0
_DEFAULT_BUDGET = frozen_mapping({"calls": 60, "window": 60.0, "counts": "changes", "reads": 1_000})

_DEFAULT_LIMITS = frozen_mapping({"content": 60_000, "output": 2_000_000, "state": 2_000_000, "media": 8_000_000})


@attrs.frozen(kw_only=True)
class ResultLimits:
    """How large the parts of a result may be, in characters; the settings `limits.content` and so on.

    content: what a model is given; the rest is cut, with a note. output: JSON that is kept as output. state: JSON that
    is kept as state, as what a tool says in `meta`, and as details of an error. media: images, sound and files, all
    together, in bytes.
    """

    content: int = _DEFAULT_LIMITS["content"]
    output: int = _DEFAULT_LIMITS["output"]
    state: int = _DEFAULT_LIMITS["state"]
    media: int = _DEFAULT_LIMITS["media"]

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int) or value < _SMALLEST_LIMIT:
                raise ValueError(f"limits.{name}: expected a whole number from {_SMALLEST_LIMIT} on, got {value!r}")

    @classmethod
    def of(cls, given: "ResultLimits | Mapping[str, Any]") -> "ResultLimits":
        """Return limits from themselves, or from some of their fields."""
        if isinstance(given, ResultLimits):
            return given
        if not isinstance(given, Mapping) or not set(given) <= set(_DEFAULT_LIMITS):
            known = ", ".join(_DEFAULT_LIMITS)
            raise ValueError(f"limits: expected ResultLimits, or a mapping with {known}; got {given!r:.80}")
        return cls(**given)


@attrs.frozen(kw_only=True)
class Settings:
    """How a host decides on calls, and for whom."""

    mode: str = "approve"
    """What happens with calls that change something: `approve` asks, `auto` runs them, `unattended` refuses them."""
    deny: Any = ()
    """Names of tools, `pack:tool`, or patterns of either that must not run."""
    budget: Any = _DEFAULT_BUDGET
    """How much each principal may do: a Budget, several, the fields of one as a mapping, or None for no limit."""
    limits: Any = _DEFAULT_LIMITS
    """How large the parts of a result may be: ResultLimits, or some of their fields as a mapping."""
    media_folders: Any = ()
    """Folders from which files that tools return as `Media(path=...)` are read; without any, no such file is read."""
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
    required_guardrails: Any = ()
    """The ids of guardrails without which no call runs and no text passes."""
    dotenv: str | Path | None = None
    """A file of environment variables that secrets are read from."""
    principals: Mapping[str, Principal] = attrs.field(factory=dict, converter=frozen_mapping)
    """Who there is, by id."""
    personas: Mapping[str, Persona] = attrs.field(factory=dict, converter=frozen_mapping)
    """The personas that the manifest says, by id."""
    channels: Mapping[str, ChannelSettings] = attrs.field(factory=dict, converter=frozen_mapping)
    """The channels that the manifest turns on, by id."""
    workflows: Mapping[str, WorkflowDefinition] = attrs.field(factory=dict, converter=frozen_mapping)
    """The workflows that the manifest says as data, by id."""
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
    if "media_folders" in values:
        values["media_folders"] = [str(folder if base is None else base / folder) for folder in values["media_folders"]]
    for field in {"deny", "required_guardrails", "media_folders"} & values.keys():
        values[field] = tuple(values[field])
    for field, default in (("budget", _DEFAULT_BUDGET), ("limits", _DEFAULT_LIMITS)):
        if isinstance(values.get(field), Mapping):
            values[field] = {**default, **values[field]}
    if "principals" in values:
        values["principals"] = {id: _principal(id, raw) for id, raw in values["principals"].items()}
    if "personas" in values:
        values["personas"] = {id: _persona(id, raw) for id, raw in values["personas"].items()}
    if "channels" in values:
        values["channels"] = {id: _channel(id, raw) for id, raw in values["channels"].items()}
    if "workflows" in values:
        values["workflows"] = {id: structure_workflow(id, raw) for id, raw in values["workflows"].items()}
    return Settings().overlaid(**values)


def problems_of_settings(data: Any) -> list[Problem]:
    """Find what a JSON Schema can't say of settings, in whatever of *data* has the right shape."""
    problems = []
    for key, made in (("principals", _principal), ("personas", _persona), ("channels", _channel)):
        named = data.get(key) if isinstance(data, dict) else None
        for id, raw in named.items() if isinstance(named, dict) else ():
            try:
                made(id, raw if isinstance(raw, dict) else {})
            except (TypeError, ValueError) as error:
                problems.append(Problem(show_path((key, id)), str(error)))
    return [*problems, *_problems_of_workflows(data)]


def _problems_of_workflows(data: Any) -> Iterator[Problem]:
    named = data.get("workflows") if isinstance(data, dict) else None
    for id, raw in named.items() if isinstance(named, dict) else ():
        place = show_path(("workflows", id))
        for one in problems_of_workflow(id, raw):
            yield Problem(".".join(part for part in (place, one.path) if part), one.message)


def _principal(id: str, raw: Mapping[str, Any]) -> Principal:
    return Principal(id, raw.get("kind", "user"), frozenset(raw.get("access", ())), raw.get("scopes"))


def _persona(id: str, raw: Mapping[str, Any]) -> Persona:
    fields = {camel(field.name): field.name for field in attrs.fields(Persona) if field.init and field.name != "id"}
    return Persona(id, **{fields[key]: value for key, value in raw.items() if key in fields})


def _channel(_: str, raw: Mapping[str, Any]) -> ChannelSettings:
    fields = {camel(field.name): field.name for field in attrs.fields(ChannelSettings)}
    return ChannelSettings(**{fields[key]: value for key, value in raw.items() if key in fields})
