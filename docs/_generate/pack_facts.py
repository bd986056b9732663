"""What is true of a curated pack: what it offers when it is loaded, what it needs, and how large it is."""

import asyncio
import logging
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import attrs
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentos import AgentOS, Entry, Tool
from agentos.loading import installed
from agentos.loading.entry_points import GROUP
from agentos.testing import make_host, offline
from agentos.tools.tool import as_tool

ROOT = Path(__file__).parent.parent.parent
AGENTOS = "agentos-host"
PREFIX = "agentos-pack-"


@attrs.frozen
class Size:
    """Bytes on disk: of the pack itself, and of each distribution that it brings and agentos does not."""

    own: int
    brought: Mapping[str, int] = {}
    unmeasured: tuple[str, ...] = ()
    """Why the size of some can't be told."""


@attrs.frozen
class Facts:
    """What a pack offers and needs. `fault` says why it could not be loaded; then it offers nothing."""

    name: str
    folder: Path
    dependencies: tuple[str, ...]
    extras: Mapping[str, Sequence[str]]
    size: Size
    tools: tuple[Tool, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    """Kind and id of what it offers besides tools."""
    required_secrets: tuple[str, ...] = ()
    optional_secrets: tuple[str, ...] = ()
    fault: str | None = None


@cache
def all_facts(packs: Path = ROOT / "packs") -> tuple[Facts, ...]:
    """Return the facts of every pack beneath *packs*; what announces no pack, such as a library, is left out."""
    folders = [file.parent for file in sorted(packs.glob("*/pyproject.toml"))]
    sys.path += [str(folder) for folder in folders if str(folder) not in sys.path]
    announcing = [folder for folder in folders if GROUP in _project(folder).get("entry-points", {})]
    with offline(), _quiet():
        return tuple(_facts(folder) for folder in announcing)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what packs log out of the build's output: a pack that can't be loaded has a fault that says so."""
    logger = logging.getLogger("agentos")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _facts(folder: Path) -> Facts:
    project = _project(folder)
    bare = Facts(
        folder.name,
        folder,
        tuple(project.get("dependencies", ())),
        project.get("optional-dependencies", {}),
        size_of(folder),
    )
    try:
        return asyncio.run(_loaded(bare))
    except Exception as error:  # noqa: BLE001 - foreign code: the page tells of it, and the build fails for it
        return attrs.evolve(bare, fault=_why(error))


def _why(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def _loaded(bare: Facts) -> Facts:
    """Load the pack, as its conformance checks do, and look at everything that it put on a stack."""
    with tempfile.TemporaryDirectory() as folder:
        async with make_host(bare.folder, options=options_of(bare.folder, folder)) as host:
            entries = list(_entries(host, bare.name))
    tools = [tool for entry in entries if (tool := as_tool(entry.payload)) is not None]
    secrets = [one for entry in entries for one in entry.descriptor.required_secrets]
    required = dict.fromkeys(one.id for one in secrets if not one.optional)
    optional = dict.fromkeys(one.id for one in secrets if one.optional and one.id not in required)
    return attrs.evolve(
        bare,
        tools=tuple(tools),
        others=tuple((entry.kind, entry.id) for entry in entries if as_tool(entry.payload) is None),
        required_secrets=tuple(required),
        optional_secrets=tuple(optional),
    )


def _entries(host: AgentOS, pack: str) -> Iterator[Entry]:
    for kind in host.extensions.kinds():
        registry = host.extensions.registry(kind)
        for id in registry.ids():
            yield from (entry for entry in registry.stack(id) if entry.source.pack == pack)


def options_of(pack: Path, folder: str) -> dict[str, Any]:
    """Return the options that its checks give a pack: `{tmp}` is *folder*, and what only a check knows is a number."""
    file = pack / "conformance.toml"
    said = tomllib.loads(file.read_text("utf-8")).get("options", {}) if file.is_file() else {}
    return {key: _with_folder(value, folder) for key, value in said.items()}


def _with_folder(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        filled = value.replace("{tmp}", folder)
        return 9 if re.fullmatch(r"\{\w+\}", filled) else re.sub(r"\{\w+\}", "9", filled)
    if isinstance(value, list):
        return [_with_folder(one, folder) for one in value]
    return {key: _with_folder(one, folder) for key, one in value.items()} if isinstance(value, dict) else value


# -- sizes -------------------------------------------------------------------------------------------------------------


def size_of(folder: Path) -> Size:
    """Measure the pack in *folder*, and what an installer would fetch for it into an environment that has agentos."""
    ours, _ = _closure([Requirement(AGENTOS)], folder.parent)
    found, missing = _closure(_requirements_of(folder), folder.parent)
    brought = {name: size for name, size in found.items() if name not in ours}
    unmeasured = [f"{name} is not installed" for name in missing]
    unmeasured += [f"nobody wrote down the files of {name}" for name, size in brought.items() if size is None]
    measured = {name: size for name, size in sorted(brought.items()) if size is not None}
    return Size(_size_of_package(folder), measured, tuple(sorted(unmeasured)))


def _closure(requirements: Sequence[Requirement], packs: Path) -> tuple[dict[str, int | None], list[str]]:
    """Return what *requirements* bring, with sizes, and the names of what is not installed. agentos itself is free."""
    found: dict[str, int | None] = {}
    missing: dict[str, None] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(requirements)
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in seen:
            continue
        seen.add((name, frozenset(wanted.extras)))
        home = packs / name.removeprefix(PREFIX)
        there = installed.find_distribution(name)
        if name.startswith(PREFIX) and (home / "pyproject.toml").is_file():
            found[name] = _size_of_package(home)
            waiting += _requirements_of(home)
        elif there is None:
            missing[name] = None
        else:
            found |= {} if name == AGENTOS else {name: _size_of_files(there)}
            waiting += installed._requirements(there, wanted.extras)  # noqa: SLF001 - how the loader reads them
    return found, list(missing)


def _requirements_of(folder: Path) -> list[Requirement]:
    stated = [Requirement(text) for text in _project(folder).get("dependencies", ())]
    return [one for one in stated if one.marker is None or one.marker.evaluate()]


def _size_of_files(distribution: Any) -> int | None:
    if distribution.files is None:
        return None
    places = [Path(distribution.locate_file(file)) for file in distribution.files if file.suffix != ".pyc"]
    return sum(place.stat().st_size for place in places if place.is_file())


def _size_of_package(folder: Path) -> int:
    """Return the size of what the pack's wheel holds: its package, for what is installed may only point to it."""
    packages = _read(folder)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    files = [file for package in packages for file in (folder / package).rglob("*") if file.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files if file.is_file())


def _project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = _read(folder)["project"]
    return project


def _read(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
