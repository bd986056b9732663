"""What operators change without touching a pack."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.errors import ManifestError, Problem
from agentos.model.field_checks import fault_of_priority, frozen_mapping
from agentos.model.parsing import check, plain, read_file, show_path, structure

GROUPS: Mapping[str, str] = {
    "tools": "tool",
    "guardrails": "guardrail",
    "responses": "response-processor",
}
"""Names of override groups that are not the name of their kind."""


@attrs.frozen
class Override:
    """What an operator says of an entry. A field that is None says nothing."""

    enabled: bool | None = None
    priority: int | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)

    def __attrs_post_init__(self) -> None:
        if fault := fault_of_priority(self.priority):
            raise ManifestError("override", [Problem("priority", fault)])
        if self.enabled is not None and not isinstance(self.enabled, bool):
            fault = f"expected true or false, got {type(self.enabled).__name__}"
            raise ManifestError("override", [Problem("enabled", fault)])


def _by_kind(groups: Mapping[str, Mapping[str, Override]]) -> Mapping[str, Mapping[str, Override]]:
    """Sort *groups* by kind; a group under two names is one group."""
    merged: dict[str, dict[str, Override]] = {}
    for group, overrides in groups.items():
        said = {key: one if isinstance(one, Override) else Override(**one) for key, one in overrides.items()}
        merged.setdefault(GROUPS.get(group, group), {}).update(said)
    return frozen_mapping({kind: frozen_mapping(overrides) for kind, overrides in merged.items()})


@attrs.frozen
class Overrides:
    """Overrides by kind, then by `id` or `pack:id`."""

    by_kind: Mapping[str, Mapping[str, Override]] = attrs.field(factory=dict, converter=_by_kind)

    @classmethod
    def from_file(cls, path: str | Path) -> "Overrides":
        """Read a `.json`, `.toml` or `.yaml` file."""
        return as_overrides(path)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Overrides":
        """Take a mapping in the spelling of the files."""
        return as_overrides(data)

    def of(self, kind: str) -> Mapping[str, Override]:
        """Return the overrides of one kind."""
        return self.by_kind.get(kind, {})

    def with_one(self, kind: str, key: str, override: Override | None) -> "Overrides":
        """Return these with one more; None takes it away."""
        kind = GROUPS.get(kind, kind)
        group = {name: value for name, value in self.of(kind).items() if name != key}
        if override is not None:
            group[key] = override
        return Overrides({**self.by_kind, kind: group})


@attrs.frozen
class Resolved:
    """What all overrides together say of one entry, and which of them said it."""

    enabled: bool | None = None
    enabled_by: str = ""
    priority: int | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)


_NOTHING_SAID = Resolved()


@attrs.frozen
class OverrideLayers:
    """Overrides of several origins, strongest first: set at run time, the host's, the manifest's."""

    runtime: Overrides = Overrides()
    host: Overrides = Overrides()
    manifest: Overrides = Overrides()

    def resolve(self, kind: str, id: str, pack: str) -> Resolved:
        """Merge field by field what is said of *pack*'s entry on the stack of *kind* and *id*."""
        if not (kind in self.runtime.by_kind or kind in self.host.by_kind or kind in self.manifest.by_kind):
            return _NOTHING_SAID
        said = list(self._said_of(kind, id, pack))
        if not said:
            return _NOTHING_SAID
        switch = next(((override.enabled, by) for by, override in said if override.enabled is not None), (None, ""))
        options: dict[str, Any] = {}
        for _, override in reversed(said):
            options.update(override.options)
        return Resolved(
            enabled=switch[0],
            enabled_by=switch[1],
            priority=next((override.priority for _, override in said if override.priority is not None), None),
            options=options,
        )

    def options_for(self, kind: str, id: str, pack: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the options that each override has for *pack*'s entry, weakest first, and where they stand."""
        group = next((name for name, one in GROUPS.items() if one == kind), kind)
        layers = {"overrides": self.manifest, "the host's overrides": self.host, "the run-time overrides": self.runtime}
        for name, layer in layers.items():
            for key in (id, f"{pack}:{id}"):
                override = layer.of(kind).get(key)
                if override is not None and override.options:
                    yield f"{name}.{show_path((group, key, 'options'))}", override.options

    def _said_of(self, kind: str, id: str, pack: str) -> Iterator[tuple[str, Override]]:
        for name, layer in (("run-time", self.runtime), ("host", self.host), ("manifest", self.manifest)):
            if group := layer.by_kind.get(kind):
                for key in (f"{pack}:{id}", id):
                    if key in group:
                        yield f"the {name} override {key!r}", group[key]


def structure_overrides(data: Mapping[str, Any], origin: str) -> Overrides:
    """Make overrides of data that was checked."""
    groups = {group: overrides for group, overrides in data.items() if group != "$schema"}
    return Overrides(
        {
            group: {key: structure(raw, Override, origin, (group, key)) for key, raw in overrides.items()}
            for group, overrides in groups.items()
        }
    )


def as_overrides(value: "Overrides | Mapping[str, Any] | str | Path | None", origin: str = "overrides") -> Overrides:
    """Return overrides from a value, a mapping in the files' spelling, or a file."""
    if value is None:
        return Overrides()
    if isinstance(value, Overrides):
        return value
    if isinstance(value, str | Path):
        origin = str(value)
        value = read_file(Path(value))
    data = plain(_unstructured(value), origin)
    if problems := check(data, "overrides"):
        raise ManifestError(origin, problems)
    return structure_overrides(data, origin)


def _unstructured(value: Any) -> Any:
    """Let Override values stand in a mapping where files have mappings."""
    if isinstance(value, Override):
        said = {"enabled": value.enabled, "priority": value.priority}
        return {name: field for name, field in said.items() if field is not None} | {"options": value.options}
    if isinstance(value, Mapping):
        return {key: _unstructured(item) for key, item in value.items()}
    return value


def as_override(value: "Override | Mapping[str, Any]", kind: str, key: str) -> Override:
    """Return one override from a value or a mapping in the files' spelling."""
    if isinstance(value, Override):
        return value
    return as_overrides({kind: {key: value}}, f"override {kind}:{key}").of(kind)[key]
