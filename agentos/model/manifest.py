"""What a host hands over: which packs, in which order, and what operators changed."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import attrs

from agentos.errors import ManifestError, Problem
from agentos.model.extension_pack import ExtensionPack
from agentos.model.field_checks import fault_of_owner, fault_of_priority, frozen_mapping
from agentos.model.isolation import (
    LONGEST_MOUNT,
    MOUNT_TIMEOUT,
    WorkerLimits,
    as_worker_limits,
    problems_of_process_fields,
)
from agentos.model.overrides import Overrides, as_overrides, structure_overrides
from agentos.model.parsing import camel, check, plain, read_file, show_path, structure
from agentos.model.settings import Settings, problems_of_settings, structure_settings

PERMISSIONS = ("tools:register", "http:public", "bus")
ISOLATIONS = ("inline", "process")


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@attrs.frozen
class PackEntry:
    """One pack of a manifest: exactly one of `factory`, `module` and `package` says where it comes from.

    `options` may hold a pack's own secrets, so it stays out of the repr. With isolation="process", `python` is the
    interpreter it runs in, `requirements` are what an environment made for it holds, `worker` says what it may use,
    `eager` starts it with the host, and `mount_timeout` is how many seconds it has to be ready.
    """

    factory: Any = None
    module: str | None = None
    package: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)
    priority: int | None = None
    enabled: bool = True
    identifier: str | None = None
    version: str | None = None
    required: bool = False
    isolation: Literal["inline", "process"] = "inline"
    permissions: tuple[str, ...] = attrs.field(default=(), converter=_names)
    base_path: Path | None = attrs.field(default=None, repr=False)
    python: str | None = attrs.field(default=None, kw_only=True)
    requirements: tuple[str, ...] = attrs.field(default=(), converter=_names, kw_only=True)
    worker: WorkerLimits = attrs.field(factory=WorkerLimits, converter=as_worker_limits, kw_only=True)
    eager: bool = attrs.field(default=False, kw_only=True)
    mount_timeout: float = attrs.field(default=MOUNT_TIMEOUT, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if problems := list(self._problems()):
            raise ManifestError("PackEntry", problems)

    @property
    def key(self) -> str | None:
        """Return the key that is known before the pack is made: None for a factory without identifier."""
        return self.identifier or self.package or self.module

    @property
    def label(self) -> str:
        """Name the entry for people: by its key, or by what makes it."""
        if self.key is not None:
            return self.key
        if isinstance(self.factory, ExtensionPack):
            return self.factory.name
        return getattr(self.factory, "__qualname__", None) or type(self.factory).__name__

    def _problems(self) -> Iterable[Problem]:
        yield from self._problems_of_place()
        faults = {
            "priority": fault_of_priority(self.priority),
            "identifier": None if self.identifier is None else fault_of_owner(self.identifier),
            "version": None if self.version is None else fault_of_specifier(self.version),
            "isolation": None if self.isolation in ISOLATIONS else f"expected one of {', '.join(ISOLATIONS)}",
        }
        yield from (Problem(name, fault) for name, fault in faults.items() if fault)
        for permission in self.permissions:
            if permission not in PERMISSIONS:
                yield Problem("permissions", f"unknown permission {permission!r}; known: {', '.join(PERMISSIONS)}")
        yield from self._problems_of_process()
        yield from self._problems_of_secrets()

    def _problems_of_process(self) -> Iterable[Problem]:
        given = {name: value for name, default in PROCESS_FIELDS.items() if (value := getattr(self, name)) != default}
        yield from problems_of_process_fields(given, self.isolation)
        if self.python is not None and not (isinstance(self.python, str) and self.python.strip()):
            yield Problem("python", "expected the path or name of an interpreter")
        if not isinstance(self.worker, WorkerLimits):
            yield Problem("worker", f"expected WorkerLimits, got {type(self.worker).__name__}")
        timeout = self.mount_timeout
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= LONGEST_MOUNT:
            yield Problem("mount_timeout", f"expected seconds, at most {LONGEST_MOUNT}; got {timeout!r:.40}")

    def _problems_of_place(self) -> Iterable[Problem]:
        named = [name for name in ("factory", "module", "package") if getattr(self, name) is not None]
        if len(named) != 1:
            found = " and ".join(named) or "none"
            yield Problem("", f"expected exactly one of factory, module, package; got {found}")
        if self.factory is not None and not (callable(self.factory) or isinstance(self.factory, ExtensionPack)):
            yield Problem("factory", f"expected a callable, got {type(self.factory).__name__}")
        for name in ("module", "package"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                yield Problem(name, "expected a name")

    def _problems_of_secrets(self) -> Iterable[Problem]:
        secrets = self.options.get("secrets", {})
        if not isinstance(secrets, Mapping):
            yield Problem("options.secrets", f"expected a mapping, got {type(secrets).__name__}")
            return
        for id, value in secrets.items():
            if not isinstance(value, str):
                yield Problem(f"options.secrets.{id}", f"expected a string, got {type(value).__name__}")


PROCESS_FIELDS: Mapping[str, Any] = {
    "python": None,
    "requirements": (),
    "worker": WorkerLimits(),
    "eager": False,
    "mount_timeout": MOUNT_TIMEOUT,
}
"""The fields of an entry that count for a process of its own, and what they are where nobody says it."""


def fault_of_specifier(text: object) -> str | None:
    """Say what keeps *text* from being a PEP 440 specifier; None if nothing does."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(str(text))
    except InvalidSpecifier:
        return f"expected a version specifier such as '>=1.2,<2', got {text!r}"
    return None


def _entries(value: Iterable[Any]) -> tuple[PackEntry, ...]:
    if isinstance(value, PackEntry | str | Mapping):
        raise ManifestError("manifest", [Problem("packs", f"expected a list, got {type(value).__name__}")])
    return tuple(_entry(item, index) for index, item in enumerate(value))


def _entry(item: Any, index: int) -> PackEntry:
    if isinstance(item, PackEntry):
        return item
    if isinstance(item, ExtensionPack) or callable(item):
        return PackEntry(factory=item)
    if isinstance(item, Mapping):
        try:
            return ExtensionManifest.from_dict({"packs": [item]}).packs[0]
        except ManifestError as error:
            here = [Problem(one.path.replace("packs[0]", f"packs[{index}]", 1), one.message) for one in error.problems]
        raise ManifestError("manifest", here)
    raise ManifestError("manifest", [Problem(f"packs[{index}]", f"expected a PackEntry, got {type(item).__name__}")])


def _overrides(value: "Overrides | Mapping[str, Any] | None") -> Overrides:
    return as_overrides(value, "overrides")


@attrs.frozen
class ExtensionManifest:
    """The packs to load, in order, the overrides that come with them, and where to keep what must last.

    `mcp_servers` are MCP servers to take in as packs, by name and in the spelling of files; they may hold secrets, so
    they stay out of the repr. `store` is a path, a database URL, or `default` for a file in the user's data folder.
    `name` is what clients are told that the server of this manifest is called.
    """

    packs: tuple[PackEntry, ...] = attrs.field(default=(), converter=_entries)
    overrides: Overrides = attrs.field(default=None, converter=_overrides)
    store: str | None = attrs.field(default=None, repr=False)
    mcp_servers: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)
    settings: Settings = attrs.field(factory=Settings)
    name: str | None = None

    @classmethod
    def from_file(cls, path: str | Path) -> "ExtensionManifest":
        """Read a `.json`, `.toml` or `.yaml` file; paths in it are relative to its folder."""
        data = read_file(Path(path))
        return cls.from_dict({} if data is None else data, origin=str(path), folder=Path(path).absolute().parent)

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, origin: str = "manifest", folder: Path | None = None
    ) -> "ExtensionManifest":
        """Take a mapping in the spelling of the files; a factory may be a callable.

        *origin* names it in errors, and paths in it are relative to *folder*.
        """
        return _structure(data, origin, folder)


def _structure(data: Any, origin: str, base: Path | None) -> ExtensionManifest:
    data = plain(data, origin)
    if problems := [
        *check(data, "manifest"),
        *_bad_versions(data),
        *_bad_process_fields(data),
        *_bad_server_names(data),
        *problems_of_settings(data),
    ]:
        raise ManifestError(origin, problems)
    entries, problems = [], []
    for index, raw in enumerate(data.get("packs", ())):
        try:
            entry = structure(raw, PackEntry, origin, ("packs", index))
        except ManifestError as error:
            problems.extend(error.problems)
        else:
            entries.append(attrs.evolve(entry, base_path=base))
    if problems:
        raise ManifestError(origin, problems)
    overrides = structure_overrides(data.get("overrides", {}), origin)
    return ExtensionManifest(
        packs=entries,
        overrides=overrides,
        store=_store(data.get("store"), base),
        mcp_servers={name: _server(raw, base) for name, raw in data.get("mcpServers", {}).items()},
        settings=structure_settings(data, base),
        name=data.get("name"),
    )


def _server(raw: Mapping[str, Any], base: Path | None) -> Mapping[str, Any]:
    """Return what is said of an MCP server; one that is started runs in the manifest's folder, or relative to it."""
    if base is None or "command" not in raw:
        return raw
    return {**raw, "cwd": str(base / raw.get("cwd", "."))}


def _store(location: str | None, base: Path | None) -> str | None:
    """Return where the store is; a relative path is relative to the manifest's folder."""
    if location is None or base is None or location == "default" or "://" in location:
        return location
    return str(base / location)


def _bad_versions(data: Any) -> Iterable[Problem]:
    """Find what a JSON Schema can't say of versions, in whatever of *data* has the right shape."""
    packs = data.get("packs") if isinstance(data, dict) else None
    for index, raw in enumerate(packs if isinstance(packs, list) else ()):
        version = raw.get("version") if isinstance(raw, dict) else None
        if isinstance(version, str) and (fault := fault_of_specifier(version)):
            yield Problem(f"packs[{index}].version", fault)


def _bad_process_fields(data: Any) -> Iterable[Problem]:
    """Find what a JSON Schema can't say of packs in processes of their own, in whatever of *data* has the shape."""
    packs = data.get("packs") if isinstance(data, dict) else None
    for index, raw in enumerate(packs if isinstance(packs, list) else ()):
        if isinstance(raw, dict):
            given = {key: raw[key] for key in map(camel, PROCESS_FIELDS) if key in raw}
            for problem in problems_of_process_fields(given, raw.get("isolation")):
                yield Problem(f"packs[{index}].{problem.path}", problem.message)


def _bad_server_names(data: Any) -> Iterable[Problem]:
    """Find the names of MCP servers that can't be part of a pack's name."""
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    for name in servers if isinstance(servers, dict) else ():
        if fault := fault_of_server_name(name):
            yield Problem(show_path(("mcpServers", name)), fault)


def fault_of_server_name(name: object) -> str | None:
    """Say what keeps *name* from naming an MCP server; None if nothing does."""
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        return None
    return "expected a name of at most 64 letters, digits, '.', '_' and '-', beginning with a letter or digit"


class ManifestHolder(Protocol):
    """Something that was made together with a manifest, as a curated one is with its report."""

    @property
    def manifest(self) -> ExtensionManifest:
        """Return the manifest."""
        ...


ManifestSource = ExtensionManifest | ManifestHolder | Mapping[str, Any] | str | Path
"""What a host may hand over."""


def as_manifest(value: ManifestSource | None) -> ExtensionManifest:
    """Return a manifest from a value, what holds one, a mapping in the files' spelling, a file, or nothing."""
    if value is None:
        return ExtensionManifest()
    if isinstance(held := getattr(value, "manifest", None), ExtensionManifest):
        return held
    if isinstance(value, ExtensionManifest):
        return value
    if isinstance(value, str | Path):
        return ExtensionManifest.from_file(value)
    if isinstance(value, list | tuple):
        return ExtensionManifest(packs=value)
    return ExtensionManifest.from_dict(cast("Mapping[str, Any]", value))


Factory = Callable[..., Any]
