"""The catalog: which secrets are known, and in which environment variables they are found."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.errors import ManifestError, Problem
from agentos.model.parsing import check, plain, read_file, structure

FILE_NAME = "extension-secrets.json"


@attrs.frozen
class SecretDefinition:
    """A known secret: what it is, where it is found, where to get one. Never a value."""

    id: str
    env_var: str | None
    label: str = ""
    description: str = ""
    docs_url: str | None = None
    providers: tuple[str, ...] = ()
    optional: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the environment variables that may hold it, in the order in which they count."""
        return self.aliases if self.env_var is None else (self.env_var, *self.aliases)


@attrs.frozen
class SecretCatalog:
    """Definitions by id."""

    definitions: Mapping[str, SecretDefinition] = attrs.field(factory=dict)

    @classmethod
    def of(cls, definitions: Iterable[SecretDefinition], origin: str = "catalog") -> "SecretCatalog":
        """Make a catalog; an id or a variable that stands twice is refused."""
        definitions = list(definitions)
        if problems := list(_repeated(definitions)):
            raise ManifestError(origin, problems)
        return cls({definition.id: definition for definition in definitions})

    @classmethod
    def from_file(cls, path: str | Path) -> "SecretCatalog":
        """Read a catalog from a `.json`, `.toml` or `.yaml` file."""
        return cls.from_dict(read_file(Path(path)), origin=str(path))

    @classmethod
    def from_dict(cls, data: Any, origin: str = "catalog") -> "SecretCatalog":
        """Take `{"secrets": [...]}` as in the file, a list of entries, or a mapping of ids to entries or variables."""
        data = plain(_in_shape(data), origin)
        if problems := check(data, "secrets"):
            raise ManifestError(origin, problems)
        return cls.of(_structured(data, origin), origin)

    @classmethod
    def shipped(cls) -> "SecretCatalog":
        """Return the catalog that comes with agentos."""
        # Not checked against its schema here: a test does, and every start would pay for it.
        found = _structured(json.loads(shipped_text()), FILE_NAME)
        return cls({definition.id: definition for definition in found})

    def get(self, id: str) -> SecretDefinition | None:
        """Return the definition of *id*, if it is known."""
        return self.definitions.get(id)

    def extended(self, other: "SecretCatalog") -> "SecretCatalog":
        """Return these definitions with those of *other*, which win; one variable may then be that of two ids."""
        return SecretCatalog({**self.definitions, **other.definitions})

    def __iter__(self) -> Iterator[SecretDefinition]:
        return iter(self.definitions.values())

    def __len__(self) -> int:
        return len(self.definitions)


def shipped_text() -> str:
    """Return the shipped catalog's text: from inside the wheel, or from the top of a checkout."""
    from importlib import resources

    inside = resources.files("agentos").joinpath(FILE_NAME)
    if inside.is_file():
        return inside.read_text("utf-8")
    return Path(__file__).parents[2].joinpath(FILE_NAME).read_text("utf-8")


def as_catalog(value: "SecretCatalog | Mapping[str, Any] | str | Path | None") -> SecretCatalog | None:
    """Return what a host adds to the shipped catalog: a value, a mapping or a file, or nothing."""
    if value is None or isinstance(value, SecretCatalog):
        return value
    if isinstance(value, str | Path):
        return SecretCatalog.from_file(value)
    return SecretCatalog.from_dict(value)


def _in_shape(data: Any) -> Any:
    """Bring a list, or a mapping of ids, into the shape of the file; what is wrong in it the schema says."""
    if not isinstance(data, Mapping):
        return {"secrets": data}
    if "secrets" in data or "$schema" in data:
        return data
    return {"secrets": [_entry(id, entry) for id, entry in data.items()]}


def _entry(id: Any, entry: Any) -> Any:
    if isinstance(entry, str):
        return {"id": id, "envVar": entry}
    return {"id": id, **entry} if isinstance(entry, Mapping) else entry


def _structured(data: Mapping[str, Any], origin: str) -> Iterator[SecretDefinition]:
    for index, raw in enumerate(data["secrets"]):
        yield structure(raw, SecretDefinition, origin, ("secrets", index))


def _repeated(definitions: Iterable[SecretDefinition]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for definition in definitions:
        if definition.id in seen:
            yield Problem(definition.id, "this id stands twice")
        seen[definition.id] = definition.id
    owners: dict[str, str] = {}
    for definition in definitions:
        for variable in definition.variables:
            if variable in owners:
                yield Problem(definition.id, f"the variable {variable} is taken by {owners[variable]!r}")
            owners[variable] = definition.id
