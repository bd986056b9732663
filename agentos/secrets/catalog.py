"""The catalog: which secrets are known, and in which environment variables they are found."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.errors import ManifestError, Problem
from agentos.model.files import check, plain, read_file, structure

FILE_NAME = "extension-secrets.json"


@attrs.frozen
class SecretDefinition:
    """A known secret: what it is, where it is found, where to get one. Never a value."""

    id: str
    env_var: str
    label: str = ""
    description: str = ""
    docs_url: str | None = None
    providers: tuple[str, ...] = ()
    optional: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the environment variables that may hold it, in the order in which they count."""
        return (self.env_var, *self.aliases)


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
        data = plain({"secrets": _as_list(data)}, origin)
        if problems := check(data, "secrets"):
            raise ManifestError(origin, problems)
        entries = data["secrets"]
        return cls.of(
            (structure(raw, SecretDefinition, origin, ("secrets", i)) for i, raw in enumerate(entries)),
            origin,
        )

    @classmethod
    def shipped(cls) -> "SecretCatalog":
        """Return the catalog that comes with agentos."""
        # Not checked against its schema here: a test does, and every start would pay for it.
        entries = read_file(shipped_file())["secrets"]
        return cls({raw["id"]: structure(raw, SecretDefinition, FILE_NAME) for raw in entries})

    def get(self, id: str) -> SecretDefinition | None:
        """Return the definition of *id*, if it is known."""
        return self.definitions.get(id)

    def extended(self, other: "SecretCatalog") -> "SecretCatalog":
        """Return these definitions with those of *other*, which win."""
        merged = {**self.definitions, **other.definitions}
        return SecretCatalog.of(merged.values())

    def hint(self, id: str) -> str:
        """Name *id* with the way to set it."""
        definition = self.get(id)
        if definition is None:
            return f"{id!r} (give it to the host as {id!r})"
        return f"{id!r} (set {definition.env_var} in the environment or .env)"

    def __iter__(self) -> Iterator[SecretDefinition]:
        return iter(self.definitions.values())

    def __len__(self) -> int:
        return len(self.definitions)


def shipped_file() -> Path:
    """Return where the shipped catalog is: inside the wheel, or at the top of a checkout."""
    from importlib import resources

    package = Path(str(resources.files("agentos")))
    inside = package / FILE_NAME
    return inside if inside.exists() else package.parent / FILE_NAME


def as_catalog(value: "SecretCatalog | Mapping[str, Any] | str | Path | None") -> SecretCatalog:
    """Return a catalog from a value, a mapping or a file; None means the shipped one."""
    if value is None:
        return SecretCatalog.shipped()
    if isinstance(value, SecretCatalog):
        return value
    if isinstance(value, str | Path):
        return SecretCatalog.from_file(value)
    return SecretCatalog.from_dict(value)


def _as_list(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return data
    if isinstance(data.get("secrets"), list | tuple):
        if extra := [key for key in data if key not in ("$schema", "secrets")]:
            raise ManifestError("catalog", [Problem(key, "unknown key. Known keys: $schema, secrets") for key in extra])
        return data["secrets"]
    return [{"id": id, **({"envVar": entry} if isinstance(entry, str) else dict(entry))} for id, entry in data.items()]


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
