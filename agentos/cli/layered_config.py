"""One manifest, and what is layered over it: each value with where it came from.

Weakest first: built-in defaults, the manifest file, `overrides.local.*` beside it (overrides only), the environment,
the command line. Every file is read once, and reading a configuration imports no pack.

    load_config     all layers together; ConfigError has everything that is wrong with any of them
    build_host      an AgentOS of a configuration, not initialized yet
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from agentos.cli.hidden_secrets import is_hidden, shown_tree
from agentos.cli.manifest_files import locals_in
from agentos.errors import AgentOSError, ManifestError, Problem, StoreError
from agentos.model.manifest import ExtensionManifest, PackEntry
from agentos.model.overrides import Overrides, as_overrides
from agentos.model.parsing import check, read_file, show_path
from agentos.model.settings import KEYS, Settings, structure_settings

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.secrets.catalog import SecretCatalog
    from agentos.secrets.sources import Fallback, SecretSources, Vault

DEFAULT = "default"
COMMAND_LINE = "the command line"

VARIABLES: Mapping[str, str] = {
    "AGENTOS_MANIFEST": "the manifest file",
    "AGENTOS_MODE": "mode: approve, auto or unattended",
    "AGENTOS_STORE": "store: a path, a database URL, or default",
    "AGENTOS_PINS": "pins: first-use, strict or off",
    "AGENTOS_DENY": "deny: tools that must not run, separated by commas",
    "AGENTOS_PROPOSAL_TTL": "proposalTtl: for how many seconds a call waits for approval",
    "AGENTOS_LOCK": "lock: the lock file",
    "AGENTOS_DOTENV": "dotenv: a file of environment variables that secrets are read from",
    "AGENTOS_DATA": "the folder for the user's data",
    "AGENTOS_STORE_KEY": "the key that seals what is stored",
    "AGENTOS_CHAT_MODEL": "the model that `agentos chat` talks to",
}
"""The environment variables that agentos reads, and what they say."""
_KEYS = {
    "AGENTOS_MODE": "mode",
    "AGENTOS_STORE": "store",
    "AGENTOS_PINS": "pins",
    "AGENTOS_DENY": "deny",
    "AGENTOS_PROPOSAL_TTL": "proposalTtl",
    "AGENTOS_LOCK": "lock",
    "AGENTOS_DOTENV": "dotenv",
}
OF_MANIFESTS = frozenset({*KEYS, "name", "store", "packs", "mcpServers", "overrides"})
"""What stands in a manifest, at its top."""

Layer = tuple[Mapping[str, Any], str]
"""What something says, by keys of a manifest, and its name."""


class ConfigError(AgentOSError, ValueError):
    """A configuration that can't be used: every problem of every layer."""

    def __init__(self, problems: list[str]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"the configuration has {count}:\n" + "\n".join(f"  {problem}" for problem in problems))
        self.problems = tuple(problems)


@attrs.frozen
class Setting:
    """One value, as it may be shown to anybody, and where it came from."""

    path: str
    value: Any
    origin: str


@attrs.frozen
class Config:
    """What counts, after all layers."""

    path: Path
    manifest: ExtensionManifest
    entries: tuple[PackEntry, ...] = ()
    """What is loaded, in order: the packs, then the MCP servers."""
    overrides: Overrides = attrs.field(factory=Overrides)
    local: Path | None = None
    layers: tuple[Layer, ...] = attrs.field(default=(), repr=False)

    @property
    def folder(self) -> Path:
        """Return the folder of the manifest, which paths in it are relative to."""
        return self.path.parent

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Return every value that counts, in the order of the file, secrets hidden."""
        layers = [(_defaults(self), DEFAULT), *self.layers]
        values = {name: Setting(name, value, origin) for data, origin in layers for name, value in _leaves(data, ())}
        return tuple(values.values())


_BY_NAME = ("principals", "personas", "channels", "workflows")
"""The keys of a manifest that hold things by name, of which there are none by default."""


def _defaults(config: Config) -> dict[str, Any]:
    """Return the defaults by the keys of a manifest; what a budget does not say is as by default, if there is one."""
    from agentos.store.locations import place_of

    settings = Settings()
    values = {key: getattr(settings, field) for key, field in KEYS.items() if key not in _BY_NAME}
    values["proposalTtl"] = settings.seconds_to_approve(is_durable=place_of(config.manifest.store).is_durable)
    if config.manifest.settings.budget is None:
        del values["budget"]
    return {"store": None, **values}


# -- loading ---------------------------------------------------------------------------------------------------------


def load_config(
    path: str | Path, environ: Mapping[str, str] | None = None, given: Mapping[str, Any] | None = None
) -> Config:
    """Read the manifest at *path* with every layer over it; *given* is what the command line says, by manifest key."""
    path = Path(path).expanduser().absolute()
    problems: list[str] = []
    data: Any = {}
    manifest = ExtensionManifest()
    with _collecting(problems):
        data = read_file(path) or {}
        manifest = ExtensionManifest.from_dict(data, origin=str(path), folder=path.parent)
    local, local_data, overrides = _local_overrides(problems, path.parent)
    said = [
        *_from_environment(problems, os.environ if environ is None else environ),
        *(({key: value}, COMMAND_LINE) for key, value in (given or {}).items()),
    ]
    servers: list[PackEntry] = []
    with _collecting(problems):
        servers = _servers(manifest)
    if problems:
        raise ConfigError(problems)
    beside = _default_dotenv(path.parent)
    layers = [(beside, DEFAULT), (data, path.name), *local_data, *said]
    manifest = _layered(manifest, {} if "dotenv" in data else beside, said)
    return Config(path, manifest, (*manifest.packs, *servers), overrides, local, tuple(layers))


@contextlib.contextmanager
def _collecting(problems: list[str]) -> Iterator[None]:
    """Note what is wrong with a file, and go on."""
    try:
        yield
    except ManifestError as error:
        name = Path(error.origin).name if os.sep in error.origin else error.origin
        problems += [f"{name}: {problem}" for problem in error.problems]
    except StoreError as error:
        problems.append(str(error))


def _servers(manifest: ExtensionManifest) -> list[PackEntry]:
    if not manifest.mcp_servers:
        return []
    from agentos.mcp.client.manifest_servers import server_entries

    return server_entries(manifest)


def _local_overrides(problems: list[str], folder: Path) -> tuple[Path | None, list[Layer], Overrides]:
    """Return the file of local overrides, what it says as a layer, and as overrides."""
    found = locals_in(folder)
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        problems.append(f"{names}: there is more than one file of local overrides; keep one")
    if len(found) != 1:
        return None, [], Overrides()
    data: Any = {}
    overrides = Overrides()
    with _collecting(problems):
        data = read_file(found[0]) or {}
        overrides = _overrides_in(data, found[0])
    return found[0], [({"overrides": data}, found[0].name)], overrides


def _overrides_in(data: Any, path: Path) -> Overrides:
    """Return local overrides. What belongs in a manifest is told: read as a kind, it would do nothing."""
    keys = [key for key in data if key in OF_MANIFESTS] if isinstance(data, dict) else []
    if not keys:
        return as_overrides(data, str(path))
    problems = [Problem(key, _misplaced_fault(key)) for key in keys]
    try:
        as_overrides({key: value for key, value in data.items() if key not in keys})
    except ManifestError as error:
        problems += error.problems
    raise ManifestError(str(path), problems)


def _misplaced_fault(key: str) -> str:
    only = "only overrides belong here"
    return f"{only}; leave out the leading `overrides`" if key == "overrides" else f"{only}; it goes into the manifest"


def _from_environment(problems: list[str], environ: Mapping[str, str]) -> Iterator[Layer]:
    """Yield what each variable says. A blank one says nothing."""
    for variable, key in _KEYS.items():
        if text := environ.get(variable, "").strip():
            data = {key: _parse_variable(key, text)}
            problems += [f"{variable}: {problem.message}" for problem in check(data, "manifest")]
            yield data, variable


def _parse_variable(key: str, text: str) -> Any:
    if key == "deny":
        return [name for part in text.split(",") if (name := part.strip())]
    if key == "proposalTtl":
        try:
            return float(text)
        except ValueError:
            return text  # the schema says what was expected
    if key in ("lock", "dotenv") or (key == "store" and text != "default" and "://" not in text):
        return str(Path(text).expanduser().absolute())
    return text


def _default_dotenv(folder: Path) -> dict[str, Any]:
    """Let a `.env` beside the manifest count where nothing else is said."""
    return {"dotenv": str(folder / ".env")} if (folder / ".env").is_file() else {}


def _layered(manifest: ExtensionManifest, beside: Mapping[str, Any], said: list[Layer]) -> ExtensionManifest:
    stronger = {key: value for data, _ in said for key, value in data.items()}
    settings = structure_settings({**beside, **stronger}, None)
    return attrs.evolve(
        manifest,
        settings=manifest.settings.overlaid(**settings.said()),
        store=stronger.get("store", manifest.store),
    )


def _leaves(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield every value beneath *at* with its path, secrets hidden; lists of plain values are one value."""
    if isinstance(value, Mapping) and value and not is_hidden(at):
        for key, item in value.items():
            if key != "$schema":
                yield from _leaves(item, (*at, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*at, index))
    elif at and not (value == {} and at == ("overrides",)):
        yield show_path(at), shown_tree(value, at)


# -- a host ----------------------------------------------------------------------------------------------------------


def build_host(config: Config, *, starts_servers: bool = True, **overrides: Any) -> "AgentOS":
    """Return a host of *config*, not initialized yet; *overrides* are arguments of AgentOS that win.

    With *starts_servers* False, an MCP server whose tools are known from earlier runs is started when it is called.
    What `agentos secrets add` keeps is the host's last source of secrets. Who there is, the manifest says.
    """
    from agentos.host import AgentOS

    entries = config.entries if starts_servers else _started_when_called(config)
    manifest = attrs.evolve(config.manifest, packs=entries, mcp_servers={})
    overrides.setdefault("extension_secrets", kept_secrets())
    overrides.setdefault("carry_workflows", False)  # else a command that is over soon would begin what it can't end
    overrides.setdefault("principals", manifest.settings.principals)
    return AgentOS(extension_manifest=manifest, extension_overrides=config.overrides, **overrides)


def _started_when_called(config: Config) -> "Sequence[PackEntry]":
    if not config.manifest.mcp_servers:
        return config.entries
    from agentos.mcp.client.manifest_servers import start_when_called

    return start_when_called(config.entries)


# -- secrets ---------------------------------------------------------------------------------------------------------


def kept_secrets() -> "Fallback | None":
    """Return the source of secrets that were kept with `agentos secrets add`, which counts last; None if none were."""
    from agentos.secrets.sources import Fallback
    from agentos.secrets.vaults import SecretVault

    vault = SecretVault()
    return Fallback(vault) if vault.path.exists() else None


def sources_of(
    config: Config | None, vault: "Vault | None" = None, *, known: "SecretCatalog | None" = None
) -> "SecretSources":
    """Return where secrets are looked for without a host: *config* says which `.env`, *vault* stands for the host.

    *known* says of secrets what the shipped catalog does not.
    """
    from agentos.secrets.masking import Masker
    from agentos.secrets.sources import SecretSources

    dotenv = None if config is None else config.manifest.settings.dotenv
    return SecretSources(vault, catalog=known, dotenv=dotenv, masker=Masker())
