"""Manifests of curated packs, chosen by category and name, with a report that says what became of each."""

import functools
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Literal

import attrs

from agentos.errors import ManifestError, Problem
from agentos.loading.curated_packs import CHANNELS, CURATED, CuratedPack
from agentos.loading.entry_points import PackEntryPoints
from agentos.loading.installed import Missing, find_distribution, missing_of, modules_required_by
from agentos.model.field_checks import did_you_mean
from agentos.model.manifest import ExtensionManifest, PackEntry
from agentos.model.overrides import Overrides
from agentos.secrets.catalog import SecretCatalog, as_catalog
from agentos.secrets.masking import Masker
from agentos.secrets.sources import SecretSources

IMPORT_DEADLINE = 60.0
_AT_ONCE = 4

Choice = Literal["all", "none"] | Iterable[str]


class CuratedStatus(StrEnum):
    """What became of a curated pack. The first two are in the manifest, the others are not."""

    SELECTED = "selected"
    SECRET_MISSING = "secret_missing"  # noqa: S105 - a word, not a password
    FILTERED = "filtered"
    NOT_INSTALLED = "not_installed"
    DEPENDENCY_MISSING = "dependency_missing"
    IMPORT_ERROR = "import_error"


@attrs.frozen
class CuratedSecret:
    """A secret of a curated pack: where it was found, or how to give it. Never its value."""

    id: str
    optional: bool
    found: str | None
    env_var: str | None
    docs_url: str | None

    def __str__(self) -> str:
        if self.found:
            return f"{self.id}: from {self.found}"
        way = f"set {self.env_var}" if self.env_var else "give it to the host"
        return f"{self.id}: missing; {way}" + (f" (see {self.docs_url})" if self.docs_url else "")


@attrs.frozen
class CuratedOutcome:
    """What became of one curated pack, why, and the command that would cure it."""

    name: str
    category: str
    status: CuratedStatus
    reason: str
    install: str | None = None
    version: str | None = None
    missing: tuple[Missing, ...] = ()
    secrets: tuple[CuratedSecret, ...] = ()

    @property
    def is_included(self) -> bool:
        """Tell whether the manifest has it. A pack without its secret is loaded, and gated until the secret comes."""
        return self.status in {CuratedStatus.SELECTED, CuratedStatus.SECRET_MISSING}

    def __str__(self) -> str:
        return f"{self.name} ({self.category}) {self.status}: {self.reason}"


@attrs.frozen
class CuratedReport:
    """One outcome for every curated pack there is, in the order of the catalog."""

    outcomes: tuple[CuratedOutcome, ...]

    def of(self, status: CuratedStatus | str) -> list[CuratedOutcome]:
        """Return the outcomes of *status*."""
        return [outcome for outcome in self.outcomes if outcome.status == CuratedStatus(status)]

    def __getitem__(self, name: str) -> CuratedOutcome:
        for outcome in self.outcomes:
            if outcome.name == name:
                return outcome
        raise KeyError(f"{name!r} is not a curated pack{did_you_mean(name, [one.name for one in self.outcomes])}")

    @property
    def install(self) -> str | None:
        """Return one command that installs whatever is wanted and missing."""
        parts = [part for outcome in self.outcomes if outcome.install for part in outcome.install.split()[2:]]
        return f"pip install {' '.join(dict.fromkeys(parts))}" if parts else None

    def __str__(self) -> str:
        return "\n".join(str(outcome) for outcome in self.outcomes)


@attrs.frozen
class CuratedManifest:
    """A manifest of curated packs, and the report on every one."""

    manifest: ExtensionManifest
    report: CuratedReport


def create_curated_manifest(
    *,
    packs: Choice | None = None,
    categories: Choice | None = None,
    channels: Choice = "none",
    exclude: Iterable[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    priorities: Mapping[str, int] | None = None,
    secrets: Mapping[str, str] | None = None,
    overrides: Overrides | Mapping[str, Any] | None = None,
    catalog: SecretCatalog | Mapping[str, Any] | str | Path | None = None,
    dotenv: str | Path | None = None,
    check_imports: bool = False,
) -> CuratedManifest:
    """Return a manifest of curated packs, and say of every curated pack what became of it.

    *packs* and *categories* choose: a pack is taken if it is named or its category is; without both, all are.
    *channels*, packs that send to people, are chosen by name here and never by the other two. *exclude* takes out by
    name or category. *options* and *priorities* are per pack. Of *secrets* each pack sees only what it declares.
    Nothing is imported, unless *check_imports* asks for it: then in a process of its own, with a deadline.
    Names that are not known raise a ManifestError with suggestions.
    """
    problems: list[Problem] = []
    wanted = _Selection.of(packs, categories, channels, exclude, problems)
    own = _Own.of(options, priorities, secrets, problems)
    if problems:
        raise ManifestError("curated packs", problems)
    sources = SecretSources(secrets, catalog=as_catalog(catalog), dotenv=dotenv, masker=Masker())
    for pack in CURATED:
        sources.known.describe(pack, pack.name, (*pack.required, *pack.optional))
    announced = PackEntryPoints()
    outcomes = [_outcome(pack, wanted.why_not(pack), own, sources, announced) for pack in CURATED]
    if check_imports:
        outcomes = _checked(outcomes)
    included = {outcome.name for outcome in outcomes if outcome.is_included}
    entries = [own.entry(pack) for pack in CURATED if pack.name in included]
    return CuratedManifest(
        ExtensionManifest(packs=entries, overrides=overrides),
        CuratedReport(tuple(outcomes)),
    )


@attrs.frozen
class _Selection:
    """Which packs were asked for."""

    names: frozenset[str]
    categories: frozenset[str]
    channels: frozenset[str]
    excluded: frozenset[str]

    @classmethod
    def of(
        cls,
        packs: Choice | None,
        categories: Choice | None,
        channels: Choice,
        exclude: Iterable[str],
        problems: list[Problem],
    ) -> "_Selection":
        """Return what was asked for, and add to *problems* what can't be."""
        tools = [pack.name for pack in CURATED if pack.category != CHANNELS]
        groups = list(dict.fromkeys(pack.category for pack in CURATED if pack.category != CHANNELS))
        others = [pack.name for pack in CURATED if pack.category == CHANNELS]
        if packs is None and categories is None:
            packs = "all"
        return cls(
            _chosen("packs", packs or "none", tools, problems, elsewhere=others),
            _chosen("categories", categories or "none", groups, problems, elsewhere=[CHANNELS]),
            _chosen("channels", channels, others, problems),
            _named_in("exclude", exclude, [*tools, *others, *groups, CHANNELS], problems),
        )

    def why_not(self, pack: CuratedPack) -> str | None:
        """Return why *pack* was not asked for; None if it was."""
        if pack.name in self.excluded or pack.category in self.excluded:
            return "excluded by name" if pack.name in self.excluded else f"its category {pack.category!r} is excluded"
        if pack.category == CHANNELS:
            if pack.name in self.channels:
                return None
            return f"channels are off unless they are named: channels=[{pack.name!r}]"
        if pack.name in self.names or pack.category in self.categories:
            return None
        return "neither it nor its category was asked for"


def _words(place: str, value: Iterable[str], problems: list[Problem]) -> list[Any]:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return list(value)
    got = f"the string {value!r}" if isinstance(value, str) else type(value).__name__
    problems.append(Problem(place, f"expected a list of names, got {got}"))
    return []


def _mapping(place: str, value: Any, problems: list[Problem]) -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        return value
    problems.append(Problem(place, f"expected a mapping, got {type(value).__name__}"))
    return {}


def _chosen(
    place: str, choice: Choice, known: list[str], problems: list[Problem], *, elsewhere: Iterable[str] = ()
) -> frozenset[str]:
    if choice == "none":
        return frozenset()
    if choice == "all":
        return frozenset(known)
    return _named_in(place, choice, known, problems, elsewhere=elsewhere)


def _named_in(
    place: str, choice: Iterable[str], known: list[str], problems: list[Problem], *, elsewhere: Iterable[str] = ()
) -> frozenset[str]:
    names = _words(place, choice, problems)
    for index, name in enumerate(names):
        if name in elsewhere:
            what = "are chosen by name," if name == CHANNELS else "is a channel; choose it"
            problems.append(Problem(f"{place}[{index}]", f"{name!r} {what} by channels=[...]"))
        elif name not in known:
            hint = did_you_mean(str(name), known) or f"; known: {', '.join(known)}"
            problems.append(Problem(f"{place}[{index}]", f"unknown name {name!r}{hint}"))
    return frozenset(name for name in names if isinstance(name, str))


@attrs.frozen
class _Own:
    """What the host gives each pack of its own."""

    options: Mapping[str, Mapping[str, Any]]
    priorities: Mapping[str, int]
    secrets: Mapping[str, str] = attrs.field(repr=False)

    @classmethod
    def of(
        cls,
        options: Mapping[str, Mapping[str, Any]] | None,
        priorities: Mapping[str, int] | None,
        secrets: Mapping[str, str] | None,
        problems: list[Problem],
    ) -> "_Own":
        """Return what was given, and add to *problems* what can't be."""
        options, priorities = _by_pack("options", options, problems), _by_pack("priorities", priorities, problems)
        for name, given in options.items():
            own = _mapping(f"options.{name}", given, problems).get("secrets", {})
            _mapping(f"options.{name}.secrets", own, problems)
        return cls(options, priorities, _mapping("secrets", {} if secrets is None else secrets, problems))

    def declared(self, pack: CuratedPack) -> dict[str, bool]:
        """Return the secrets that *pack* declares, also those that its options name, and whether it can do without."""
        options = self.options.get(pack.name, {})
        required = () if pack.secrets_unless and options.get(pack.secrets_unless) else pack.required
        named = dict.fromkeys(_named(options, pack.secrets_in_options), True)
        declared = {**{need.id: False for need in required}, **{need.id: True for need in pack.optional}}
        return {**declared, **named}

    def of_pack(self, pack: CuratedPack) -> dict[str, str]:
        """Return the secrets that *pack* alone sees: its own options win over what the host gave for all."""
        given = {id: self.secrets[id] for id in self.declared(pack) if id in self.secrets}
        return {**given, **self.options.get(pack.name, {}).get("secrets", {})}

    def entry(self, pack: CuratedPack) -> PackEntry:
        """Return the manifest's entry for *pack*."""
        options = dict(self.options.get(pack.name, {}))
        if secrets := self.of_pack(pack):
            options["secrets"] = secrets
        return PackEntry(
            package=pack.name,
            options=options,
            priority=self.priorities.get(pack.name),
            permissions=pack.permissions,
        )


def _by_pack(place: str, given: Any, problems: list[Problem]) -> Mapping[str, Any]:
    known, by_pack = [pack.name for pack in CURATED], _mapping(place, {} if given is None else given, problems)
    unknown = [name for name in by_pack if name not in known]
    problems += [Problem(f"{place}.{name}", f"unknown pack{did_you_mean(str(name), known)}") for name in unknown]
    return by_pack


def _named(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the ids of secrets at *path* of a pack's options; what is of another shape there, loading it will tell."""
    if not path:
        if isinstance(value, str) and value.strip():
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values() if path[0] == "*" else [value.get(path[0])]:
            yield from _named(inner, path[1:])


def _outcome(
    pack: CuratedPack, why_not: str | None, own: _Own, sources: SecretSources, announced: PackEntryPoints
) -> CuratedOutcome:
    found = find_distribution(pack.distribution)
    version = None if found is None else found.version
    secrets = tuple(_secrets(pack, own, sources))
    ended = functools.partial(CuratedOutcome, pack.name, pack.category, version=version, secrets=secrets)
    if why_not is not None:
        return ended(CuratedStatus.FILTERED, why_not)
    if found is None:
        return ended(CuratedStatus.NOT_INSTALLED, "is not installed", f"pip install {pack.distribution}")
    if missing := tuple(missing_of(found)):
        names, told = " ".join(_quoted(one.requirement) for one in missing), ", ".join(map(str, missing))
        return ended(CuratedStatus.DEPENDENCY_MISSING, f"needs {told}", f"pip install {names}", missing=missing)
    if fault := _fault_of_files(pack, announced):
        return ended(CuratedStatus.IMPORT_ERROR, fault)
    if lacking := [secret for secret in secrets if not secret.optional and not secret.found]:
        reason = "gated until its secrets are there: " + "; ".join(map(str, lacking))
        return ended(CuratedStatus.SECRET_MISSING, reason)
    return ended(CuratedStatus.SELECTED, f"version {version}")


def _quoted(requirement: str) -> str:
    return f"'{requirement}'" if set(requirement) & set("<>=!~") else requirement


def _secrets(pack: CuratedPack, own: _Own, sources: SecretSources) -> Iterator[CuratedSecret]:
    for id, optional in own.declared(pack).items():
        definition = sources.known.get(id, pack)
        found = sources.find(id, own.of_pack(pack), pack)
        yield CuratedSecret(
            id,
            optional=optional,
            found=found[1] if found else None,
            env_var=definition.env_var if definition else None,
            docs_url=definition.docs_url if definition else None,
        )


def _fault_of_files(pack: CuratedPack, announced: PackEntryPoints) -> str | None:
    """Say what can be seen to be wrong from outside: who announces the pack, and whether its module is there."""
    points = announced.find(pack.name)
    if not points:
        return f"{pack.distribution} is installed but announces no pack {pack.name!r}; install it again"
    if len(points) > 1:
        return f"is announced by {' and '.join(point.distribution for point in points)}; uninstall one"
    # Of a name without dots nothing is imported to find it.
    if PathFinder.find_spec(points[0].module.partition(".")[0]) is None:
        return f"{points[0].module} can't be found although {points[0].distribution} is installed; install it again"
    return None


def _checked(outcomes: list[CuratedOutcome]) -> list[CuratedOutcome]:
    """Import what is included, each in a process of its own: a pack that hangs or exits is told of, nothing more."""
    from concurrent.futures import ThreadPoolExecutor

    packs = {pack.name: pack for pack in CURATED}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        included = [packs[outcome.name] if outcome.is_included else None for outcome in outcomes]
        faults = list(pool.map(_fault_of_import, included))
    return [
        outcome if fault is None else attrs.evolve(outcome, status=CuratedStatus.IMPORT_ERROR, reason=fault)
        for outcome, fault in zip(outcomes, faults, strict=True)
    ]


# A pack imports its libraries when a tool needs them: all its modules are imported, and what it requires.
_IMPORTING = """
import importlib, json, pkgutil, sys
module, *libraries = sys.argv[1:]
try:
    for library in libraries:
        importlib.import_module(library)
    package = importlib.import_module(module)
    for found in pkgutil.walk_packages(getattr(package, "__path__", ()), module + "."):
        if not found.name.endswith(".__main__"):
            importlib.import_module(found.name)
except BaseException as error:
    print("\\n" + json.dumps(f"{type(error).__name__}: {error}"[:500]))
else:
    print("\\n" + json.dumps("imported"))
"""


def _fault_of_import(pack: CuratedPack | None) -> str | None:
    if pack is None:
        return None
    found = find_distribution(pack.distribution)
    libraries = () if found is None else modules_required_by(found)
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter, and names from our own table and from metadata
            [sys.executable, "-c", _IMPORTING, pack.module, *libraries],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=IMPORT_DEADLINE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"importing {pack.module} had not ended after {IMPORT_DEADLINE:.0f} seconds"
    try:
        said = str(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        return f"importing {pack.module} ended the process with code {done.returncode}"
    return None if said == "imported" else said
