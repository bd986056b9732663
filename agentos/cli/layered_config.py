"""One manifest, and what is layered over it: each value with where it came from.

Weakest first: built-in defaults, the manifest file, `overrides.local.*` beside it (overrides only), the environment,
the command line. Reading a configuration imports no pack.

    find_manifest   the nearest manifest, here or above
    load_config     all layers together; ConfigError has everything that is wrong with any of them
    build_host      an AgentOS of a configuration, not initialized yet
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from agentos.errors import AgentOSError, ManifestError, Problem, StoreError
from agentos.model.manifest import ExtensionManifest, PackEntry
from agentos.model.overrides import Overrides
from agentos.model.parsing import check, read_file, show_path
from agentos.model.settings import structure_settings

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.secrets.sources import Fallback, SecretSources, Vault

T = TypeVar("T")

ENDINGS = (".toml", ".yaml", ".yml", ".json")
DEFAULT = "default"
COMMAND_LINE = "the command line"
HIDDEN = "(hidden)"

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
_DEFAULTS: Mapping[str, Any] = {
    "store": None,
    "mode": "approve",
    "deny": [],
    "budget": {"calls": 60, "window": 60.0},
    "proposalTtl": 600.0,
    "allowOtherApprover": False,
    "pins": "first-use",
    "lock": None,
    "auditArguments": False,
    "dotenv": None,
}
OF_MANIFESTS = frozenset({*_DEFAULTS, "packs", "mcpServers", "principals", "overrides"})
"""What stands in a manifest, at its top."""
_SOUNDS_SECRET = re.compile(
    r"token|secret|passw|pwd|credential|cookie|api[-_]?key|authoriz|auth(?!or)|private"
    r"|(?<![a-z])key$|(?-i:(?<=[a-z])Key$)|(?<![a-z])pin(?![a-z])",
    re.IGNORECASE,
)
_LOOKS_SECRET = re.compile(
    r"(?<=://)[^/@\s:]*:[^/\s]+(?=@)|\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abprs]|hf)[-_][A-Za-z0-9_-]{8,}"
    r"|\bAKIA[A-Z0-9]{12,}|(?<=\bBearer )[A-Za-z0-9._~+/=-]{8,}"
)
"""What is a secret wherever it stands: a password in an address, and keys in the forms that are in use."""
_BEHIND_NAME = re.compile(r"=|:\s*")
"""What stands between a name and its value in an argument: `--key=value`, `Name: value`."""
_REFERENCE = re.compile(r"\$\{secret:[^}]*\}")


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
    overrides: Overrides = attrs.field(factory=Overrides)
    local: Path | None = None
    settings: tuple[Setting, ...] = ()

    @property
    def folder(self) -> Path:
        """Return the folder of the manifest, which paths in it are relative to."""
        return self.path.parent

    @property
    def origins(self) -> dict[str, str]:
        """Return where each value came from, by its path."""
        return {setting.path: setting.origin for setting in self.settings}

    @property
    def entries(self) -> tuple[PackEntry, ...]:
        """Return what is loaded, in order: the packs, then the MCP servers."""
        from agentos.mcp.client.manifest_servers import server_entries

        return (*self.manifest.packs, *server_entries(self.manifest))


# -- finding ---------------------------------------------------------------------------------------------------------


def find_manifest(start: Path | None = None) -> Path | None:
    """Return the nearest manifest: in *start*, else in the folders above it."""
    start = (start or Path.cwd()).absolute()
    for folder in (start, *start.parents):
        if found := manifests_in(folder):
            return found[0]
    return None


def manifests_in(folder: Path) -> list[Path]:
    """Return the manifests in one folder; the first of them counts."""
    return [path for ending in ENDINGS if (path := folder / f"agentos{ending}").is_file()]


def unusable_in(folder: Path) -> list[Path]:
    """Return what has the name of a manifest in one folder, and is none."""
    places = [folder / f"agentos{ending}" for ending in ENDINGS]
    return [path for path in places if fault_of_place(path) is not None]


def fault_of_place(path: Path) -> str | None:
    """Say what else than a file is there; None for a file, and where nothing is."""
    if path.is_dir():
        return "is a folder"
    return "is a link that leads nowhere" if path.is_symlink() and not path.exists() else None


def locals_in(folder: Path) -> list[Path]:
    """Return the files of local overrides in one folder; there should be one at most."""
    return [path for ending in ENDINGS if (path := folder / f"overrides.local{ending}").is_file()]


def files_read_for(manifest: Path) -> list[Path]:
    """Return every file that says something if *manifest* counts, also those that are not there yet."""
    return [manifest, *(manifest.with_name(f"overrides.local{ending}") for ending in ENDINGS)]


# -- loading ---------------------------------------------------------------------------------------------------------


def load_config(
    path: str | Path, environ: Mapping[str, str] | None = None, given: Mapping[str, Any] | None = None
) -> Config:
    """Read the manifest at *path* with every layer over it; *given* is what the command line says, by manifest key."""
    path = Path(path).expanduser().absolute()
    environ = os.environ if environ is None else environ
    problems: list[str] = []
    manifest = _tried(problems, ExtensionManifest.from_file, path) or ExtensionManifest()
    local = _local(problems, path.parent)
    overrides = (_tried(problems, _overrides_in, local) if local else None) or Overrides()
    said = _from_environment(problems, environ)
    _tried(problems, _servers, manifest)
    if problems:
        raise ConfigError(problems)
    layers = [
        (_default_dotenv(path.parent), DEFAULT),
        *said,
        *(({key: value}, COMMAND_LINE) for key, value in (given or {}).items()),
    ]
    manifest = _layered(manifest, layers)
    return Config(path, manifest, overrides, local, tuple(_settings(path, local, layers)))


def _tried(problems: list[str], read: Callable[[Any], T], what: Any) -> T | None:
    try:
        return read(what)
    except ManifestError as error:
        name = Path(error.origin).name if os.sep in error.origin else error.origin
        problems += [f"{name}: {problem}" for problem in error.problems]
    except StoreError as error:
        problems.append(str(error))
    return None


def _servers(manifest: ExtensionManifest) -> None:
    if manifest.mcp_servers:
        from agentos.mcp.client.manifest_servers import parse_servers

        parse_servers(manifest.mcp_servers)


def _local(problems: list[str], folder: Path) -> Path | None:
    found = locals_in(folder)
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        problems.append(f"{names}: there is more than one file of local overrides; keep one")
        return None
    return found[0] if found else None


def _overrides_in(path: Path) -> Overrides:
    """Read a file of local overrides. What belongs in a manifest is told: read as a kind, it would do nothing."""
    data = read_file(path)
    if data is None:  # comments alone, or nothing
        return Overrides()
    keys = [key for key in data if key in OF_MANIFESTS] if isinstance(data, dict) else []
    if not keys:
        return Overrides.from_file(path)
    problems = [Problem(key, _misplaced(key)) for key in keys]
    try:
        Overrides.from_dict({key: value for key, value in data.items() if key not in keys})
    except ManifestError as error:
        problems += error.problems
    raise ManifestError(str(path), problems)


def _misplaced(key: str) -> str:
    only = "only overrides belong here"
    return f"{only}; leave out the leading `overrides`" if key == "overrides" else f"{only}; it goes into the manifest"


def _from_environment(problems: list[str], environ: Mapping[str, str]) -> list[tuple[dict[str, Any], str]]:
    """Return what variables say, by manifest key, each with the variable's name. A blank one says nothing."""
    said = []
    for variable, key in _KEYS.items():
        if text := environ.get(variable, "").strip():
            data = {key: _read(key, text)}
            problems += [f"{variable}: {problem.message}" for problem in check(data, "manifest")]
            said.append((data, variable))
    return said


def _read(key: str, text: str) -> Any:
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


def _layered(manifest: ExtensionManifest, layers: list[tuple[dict[str, Any], str]]) -> ExtensionManifest:
    settings, store = manifest.settings, manifest.store
    for data, origin in layers:
        more = structure_settings(data, None)
        changed = {
            field.name: value
            for field in attrs.fields(type(more))
            if field.name not in ("principals", "has_budget", "budget")
            and (value := getattr(more, field.name)) is not None
        }
        if origin == DEFAULT:
            changed = {name: value for name, value in changed.items() if getattr(settings, name) is None}
        settings = attrs.evolve(settings, **changed)
        store = data.get("store", store)
    return attrs.evolve(manifest, settings=settings, store=store)


# -- what may be shown -----------------------------------------------------------------------------------------------


def _settings(path: Path, local: Path | None, layers: list[tuple[dict[str, Any], str]]) -> Iterator[Setting]:
    """Yield every value that counts, in the order of the file, secrets hidden."""
    data = read_file(path) or {}
    found = {name: Setting(name, value, DEFAULT) for name, value in _leaves(_DEFAULTS, ())}
    if data.get("budget", {}) is None:  # no limit; else what it does not say is as by default
        found = {name: one for name, one in found.items() if not name.startswith("budget")}
    found |= _from(layers[:1], ())
    found |= {name: Setting(name, value, path.name) for name, value in _leaves(data, ())}
    if local is not None:
        laid = ((name, value) for name, value in _leaves(read_file(local) or {}, ("overrides",)))
        found |= {name: Setting(name, value, local.name) for name, value in laid}
    found |= _from(layers[1:], ())
    yield from found.values()


def _from(layers: list[tuple[dict[str, Any], str]], at: tuple[str, ...]) -> dict[str, Setting]:
    return {name: Setting(name, value, origin) for data, origin in layers for name, value in _leaves(data, at)}


def _leaves(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield every value beneath *at* with its path; lists of plain values are one value."""
    if isinstance(value, Mapping) and value and not _is_hidden(at):
        for key, item in value.items():
            if key != "$schema":
                yield from _leaves(item, (*at, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*at, index))
    elif at:
        yield show_path(at), shown_tree(value, at)


def shown_tree(value: Any, at: tuple[str | int, ...]) -> Any:
    """Return a part of the manifest as it may be shown to anybody: what may be a secret is hidden, however deep."""
    if isinstance(value, Mapping) and not _is_hidden(at):
        return {key: shown_tree(item, (*at, key)) for key, item in value.items()}
    if isinstance(value, list) and not _is_hidden(at) and at[-1:] != ("args",):
        return [shown_tree(item, (*at, index)) for index, item in enumerate(value)]
    return shown_value(value, at)


def shown_value(value: Any, at: tuple[str | int, ...]) -> Any:
    """Return one value of the manifest as it may be shown to anybody: what may be a secret is hidden."""
    if at == ("store",) and isinstance(value, str):
        return shown_store(value)
    if _is_hidden(at) and not (isinstance(value, str) and _REFERENCE.search(value)):
        return HIDDEN if not isinstance(value, Mapping) else dict.fromkeys(value, HIDDEN)
    if isinstance(value, str):
        text = value.partition("?")[0] if at[-1:] == ("url",) else value
        return _LOOKS_SECRET.sub(HIDDEN, text)
    if at[-1:] == ("args",) and isinstance(value, list):
        return [_argument(value, index) for index in range(len(value))]
    return value


def _is_hidden(at: tuple[str | int, ...]) -> bool:
    """Tell whether what stands at a path may be a secret: its own name or that of what is around it says so."""
    if "options" in at:
        return any(_SOUNDS_SECRET.search(str(part)) for part in at[at.index("options") + 1 :])
    return at[:1] == ("mcpServers",) and at[2:3] in (("env",), ("headers",)) and len(at) > 3  # noqa: PLR2004


def _argument(arguments: list[Any], index: int) -> Any:
    """Hide the argument of a command that sounds secret or looks so, or that follows one which sounds secret."""
    before, said = str(arguments[index - 1]) if index else "", arguments[index]
    if before.startswith("-") and not _BEHIND_NAME.search(before) and _SOUNDS_SECRET.search(before):
        return HIDDEN
    return _LOOKS_SECRET.sub(HIDDEN, _without_value(said)) if isinstance(said, str) else said


def _without_value(argument: str) -> str:
    """Hide what stands behind a name that sounds secret."""
    for found in _BEHIND_NAME.finditer(argument):
        if _SOUNDS_SECRET.search(argument[: found.start()]):
            return argument[: found.end()] + HIDDEN
    return argument


def shown_store(location: str | None) -> str | None:
    """Return where a store is, without the password in its URL."""
    from agentos.store.locations import place_of

    try:
        return None if location is None else location if "://" not in location else place_of(location).shown
    except StoreError:
        return HIDDEN


# -- a host ----------------------------------------------------------------------------------------------------------


def build_host(config: Config, **overrides: Any) -> "AgentOS":
    """Return a host of *config*, not initialized yet; *overrides* are arguments of AgentOS that win.

    What `agentos secrets set` keeps is its last source of secrets. Who there is, the manifest says.
    """
    from agentos.host import AgentOS

    manifest = attrs.evolve(config.manifest, packs=config.entries, mcp_servers={})
    overrides.setdefault("extension_secrets", kept_secrets())
    overrides.setdefault("principals", manifest.settings.principals)
    return AgentOS(extension_manifest=manifest, extension_overrides=config.overrides, **overrides)


# -- secrets ---------------------------------------------------------------------------------------------------------


def kept_secrets() -> "Fallback | None":
    """Return the source of secrets that were kept with `agentos secrets set`; None if none were.

    It counts last: a pack's own options, the environment and the manifest's `.env` are nearer to the program.
    """
    from agentos.secrets.sources import Fallback
    from agentos.secrets.vaults import SecretVault

    vault = SecretVault()
    return Fallback(vault) if vault.path.exists() else None


def sources_of(config: Config | None, vault: "Vault | None" = None) -> "SecretSources":
    """Return where secrets are looked for: the environment, the manifest's `.env`, and then *vault*."""
    from agentos.secrets.masking import Masker
    from agentos.secrets.sources import SecretSources

    dotenv = None if config is None else config.manifest.settings.dotenv
    return SecretSources(vault, dotenv=dotenv, masker=Masker())
