"""Which files make up a pack, found without importing it, and their hashes: what a lock file agrees on.

Nothing here runs a pack's code. The packages around a module are not imported either: each is looked up in the
folders of the one above it.
"""

import csv
import functools
import hashlib
import inspect
import io
import itertools
import json
import os
import pkgutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from agentos.errors import PackLoadError
from agentos.loading.entry_points import GROUP, PackEntryPoints
from agentos.loading.modules import is_path, locate
from agentos.model.extension_pack import ExtensionPack
from agentos.model.manifest import PackEntry

if TYPE_CHECKING:
    from importlib.metadata import Distribution

FILE_LIMIT = 20_000
BYTE_LIMIT = 1_000_000_000
_CHUNK = 1024 * 1024


def _in_order(files: Mapping[str, Path]) -> Mapping[str, Path]:
    return MappingProxyType(dict(sorted(files.items())))


@attrs.frozen
class PackFiles:
    """The files of a pack by their relative POSIX names.

    `origin` is what the loader will call the pack's origin. `version` is that of the distribution it was installed
    with, None where there is none. `pack` names the pack to people.
    """

    origin: str
    version: str | None
    files: Mapping[str, Path] = attrs.field(converter=_in_order, repr=False)
    pack: str = ""


def files_of(entry: PackEntry, installed: PackEntryPoints | None = None) -> PackFiles | None:
    """Find the files of *entry*'s pack; None if there is nothing on disk to find.

    What is nowhere at all, and what can't be listed in full, is a PackLoadError. Give what is *installed* to look for
    many packs: the distributions are read once then.
    """
    try:
        return _found(entry, installed or PackEntryPoints())
    except OSError as error:  # such as a folder that this user may not look into
        message = f"its files can't be found: {error.filename or 'the working folder'}: {error.strerror or error}"
        raise PackLoadError(entry.label, message) from error


def _found(entry: PackEntry, installed: PackEntryPoints) -> PackFiles | None:
    if entry.factory is not None:
        return _of_factory(entry)
    if entry.module is None:
        return _of_package(entry, str(entry.package), installed)
    if is_path(entry.module):
        return _of_path(entry, entry.module)
    return _of_module(entry, entry.module)


def hash_files(files: PackFiles) -> dict[str, str]:
    """Return `sha256:<hex>` of every file, of its bytes as they are; bounded in number and in size."""
    pack = files.pack or files.origin
    if len(files.files) > FILE_LIMIT:
        raise _too_many(pack)
    hashes: dict[str, str] = {}
    room = BYTE_LIMIT
    for name, path in files.files.items():
        try:
            hashes[name], size = _hash(path, room)
        except OSError as error:
            message = f"its file {name!r} can't be read: {error.strerror or error}"
            raise PackLoadError(pack, message, origin=files.origin) from error
        room -= size
        if room < 0:
            message = f"its files have more than {BYTE_LIMIT:,} bytes; keep data and models out of a pack's folder"
            raise PackLoadError(pack, message, origin=files.origin)
    return hashes


def _hash(path: Path, room: int) -> tuple[str, int]:
    """Return the hash and the size of a file; reading stops when there is no more *room*."""
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for who writes to it
        raise OSError("it is no regular file")
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while size <= room and (chunk := file.read(_CHUNK)):
            digest.update(chunk)
            size += len(chunk)
    return f"sha256:{digest.hexdigest()}", size


def _too_many(pack: str) -> PackLoadError:
    return PackLoadError(pack, f"it has more than {FILE_LIMIT:,} files; give the pack a folder of its own")


# -- a factory -----------------------------------------------------------------------------------------------------


def _of_factory(entry: PackEntry) -> PackFiles | None:
    path = None if isinstance(entry.factory, ExtensionPack) else _source_of(entry.factory)
    return None if path is None else PackFiles("factory", None, {path.name: path}, entry.label)


def _source_of(factory: Any) -> Path | None:
    """Return the file that *factory* was written in; None for what was typed in, or made by C code."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    try:
        written = inspect.unwrap(factory)
        if not (inspect.isroutine(written) or inspect.isclass(written)):
            written = type(written)
        path = Path(inspect.getfile(written))
    except (TypeError, ValueError, OSError):
        return None
    return path if path.is_file() else None


# -- a path --------------------------------------------------------------------------------------------------------


def _of_path(entry: PackEntry, name: str) -> PackFiles:
    try:
        path, file = locate(name, entry.base_path)
    except ModuleNotFoundError as error:
        raise PackLoadError(entry.label, str(error)) from None
    # Names begin beneath the folder: what it is called itself may be another matter on another machine.
    inside = _walk(entry.label, path, "") if path.is_dir() else [(file.name, file)]
    return PackFiles(str(file), None, _gathered(entry.label, inside), entry.label)


def _gathered(pack: str, pairs: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for name, path in pairs:
        files.setdefault(name, path)
        if len(files) > FILE_LIMIT:
            raise _too_many(pack)
    return files


def _walk(pack: str, top: Path, prefix: str, listed: AbstractSet[str] = frozenset()) -> Iterator[tuple[str, Path]]:
    """Yield every file beneath *top*. A link must stay inside, unless an installer *listed* it."""
    waiting = [(prefix, top)]
    for _ in range(FILE_LIMIT + 1):
        if not waiting:
            return
        above, folder = waiting.pop()
        for item in _listing(pack, folder):
            name, path = f"{above}{item.name}", Path(item.path)
            if item.is_symlink():
                _check_link(pack, name, path, None if name in listed else top)
            if item.is_dir():
                waiting.append((f"{name}/", path))
            elif item.is_file():
                yield name, path
    raise _too_many(pack)


def _listing(pack: str, folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as scan:
            found = list(itertools.islice((item for item in scan if not _is_noise(item.name)), FILE_LIMIT + 1))
    except OSError as error:
        message = f"its folder {str(folder)!r} can't be listed: {error.strerror or error}"
        raise PackLoadError(pack, message) from error
    return sorted(found, key=lambda item: item.name)


def _is_noise(name: str) -> bool:
    """Tell what is no part of a pack: hidden files, and the bytecode that running it leaves behind."""
    return name.startswith(".") or name == "__pycache__" or name.endswith(".pyc")


def _check_link(pack: str, name: str, path: Path, top: Path | None) -> None:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise PackLoadError(pack, f"{name!r} is a symbolic link to a folder; put the folder itself there")
    if top is not None and not target.is_relative_to(os.path.realpath(top)):
        raise PackLoadError(pack, f"{name!r} is a symbolic link that leaves the pack; put the file itself there")


# -- a module by name ----------------------------------------------------------------------------------------------


@attrs.frozen
class _Located:
    """A module on disk: the file an import would run, those of the packages around it, and its own folders."""

    name: str
    path: Path
    around: tuple[tuple[str, Path], ...]
    folders: tuple[Path, ...]
    prefix: str

    def files(self, pack: str, listed: AbstractSet[str] = frozenset()) -> Iterator[tuple[str, Path]]:
        yield from self.around
        yield self.name, self.path
        for folder in self.folders:
            if folder.is_dir():  # in an archive it is not
                yield from _walk(pack, folder, self.prefix, listed)


def _of_module(entry: PackEntry, name: str) -> PackFiles | None:
    located = _located(entry.label, name, lambda: "; install what provides it, or correct the name")
    if located is None:
        return None
    return PackFiles(str(located.path), None, _gathered(entry.label, located.files(entry.label)), entry.label)


def _located(pack: str, name: str, hint: Callable[[], str]) -> _Located | None:
    """Locate a module; None if it is there but not on disk. *hint* says what to do if it is not there."""
    specs = _specs(name)
    if specs:
        return _on_disk(name, specs)
    if name in sys.modules:
        return None
    raise PackLoadError(pack, f"no module named {name!r} is on the import path{hint()}")


def _specs(name: str) -> list[ModuleSpec]:
    """Find the module and the packages around it, outermost first; nothing if one of them is missing."""
    parts = name.split(".")
    if not all(parts):
        return []
    specs: list[ModuleSpec] = []
    folders: Iterable[str] = sys.path
    for count in range(1, len(parts) + 1):
        full = ".".join(parts[:count])
        spec = _spec_in(full, folders) or (_spec_elsewhere(full) if count == 1 else None)
        if spec is None:
            return []
        specs.append(spec)
        folders = spec.submodule_search_locations or ()
    return specs


def _spec_in(name: str, folders: Iterable[str]) -> ModuleSpec | None:
    """Look for a module in *folders*.

    PathFinder does the same, but wants the package around a nested namespace package to be imported.
    """
    portions: list[str] = []
    for folder in (one for one in folders if isinstance(one, str)):  # an import passes over everything else
        finder = pkgutil.get_importer(folder or str(Path.cwd()))
        if finder is None:
            continue
        getattr(finder, "invalidate_caches", lambda: None)()  # a listing is as old as its folder's time stamp
        spec = finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        portions += (spec.submodule_search_locations or ()) if spec is not None else ()
    if not portions:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


def _spec_elsewhere(name: str) -> ModuleSpec | None:
    """Ask the process's other finders, such as those of editable installs, where a top-level module is."""
    try:
        return find_spec(name)
    except ValueError:  # it was imported, and does not say from where
        return None


def _on_disk(name: str, specs: list[ModuleSpec]) -> _Located | None:
    around = [found for spec in specs[:-1] if (found := _file_of(spec)) is not None]
    own = _file_of(specs[-1])
    if own is None:
        return None
    folders = tuple(Path(folder) for folder in specs[-1].submodule_search_locations or ())
    return _Located(*own, tuple(around), folders, f"{name.replace('.', '/')}/")


def _file_of(spec: ModuleSpec) -> tuple[str, Path] | None:
    """Return the file that importing a module runs, under the name that it has beneath the import path."""
    if not spec.has_location or spec.origin is None:
        return None
    path = Path(spec.origin)
    if path.is_file():
        above = spec.name if spec.submodule_search_locations is not None else spec.name.rpartition(".")[0]
        return "/".join([*filter(None, above.split(".")), path.name]), path
    archive = next((folder for folder in path.parents if folder.is_file()), None)
    return None if archive is None else (archive.name, archive)


# -- an installed package ------------------------------------------------------------------------------------------


def _of_package(entry: PackEntry, name: str, installed: PackEntryPoints) -> PackFiles | None:
    announced = installed.find_one(name, entry.label)
    hint = lambda: f", nor is it an entry point in the group {GROUP!r}{installed.hint(name)}"  # noqa: E731 - takes long
    located = _located(entry.label, announced.module if announced else name, hint)
    if located is None:
        return None
    owner = announced._distribution if announced else _owner_of(located)  # noqa: SLF001 - of the same house
    origin = announced.distribution if announced else str(located.path)
    version = None if owner is None else owner.version
    return PackFiles(origin, version, _gathered(entry.label, _installed(entry.label, located, owner)), entry.label)


def _installed(pack: str, located: _Located, owner: "Distribution | None") -> Iterator[tuple[str, Path]]:
    """Yield what was installed, and what else is in the package's folder: an import would find that too."""
    recorded = {} if owner is None else _recorded(owner)
    if not _is_same(recorded.get(located.name), located.path):
        # An editable install, or another module comes first on the path: what is recorded is not what would run.
        recorded = {name: path for name, path in recorded.items() if _is_metadata(PurePosixPath(name))}
    yield from recorded.items()
    yield from located.files(pack, recorded.keys())


def _recorded(owner: "Distribution") -> dict[str, Path]:
    """Return the files that the distribution's RECORD lists and that bear on what runs, as far as they are there."""
    names = (PurePosixPath(name) for name in _record(owner))
    found = {name.as_posix(): Path(str(owner.locate_file(str(name)))) for name in names if _counts(name)}
    return {name: path for name, path in found.items() if path.is_file()}


def _record(owner: "Distribution") -> list[str]:
    try:
        rows = csv.reader(io.StringIO(owner.read_text("RECORD") or "", newline=""))
        return [row[0] for row in rows if row]
    except (csv.Error, UnicodeDecodeError):  # then the package's folder has to tell
        return []


def _counts(name: PurePosixPath) -> bool:
    """Tell whether a file is the same on every machine and may run: scripts and installers' notes are neither."""
    if name.is_absolute() or ".." in name.parts or any(map(_is_noise, name.parts)):
        return False
    return _is_metadata(name) or not any(part.endswith(".dist-info") for part in name.parts[:1])


def _is_metadata(name: PurePosixPath) -> bool:
    """Tell the one file of a distribution's metadata that decides what runs."""
    return name.name == "entry_points.txt" and name.parent.name.endswith(".dist-info")


def _is_same(one: Path | None, other: Path) -> bool:
    return one is not None and one.samefile(other)


def _owner_of(located: _Located) -> "Distribution | None":
    """Return the distribution that brought a module which nobody announces."""
    from importlib.metadata import distributions

    everything = list(distributions())
    if brought := next((one for one in everything if _brought(one, located)), None):
        return brought
    path = located.path.resolve()
    edited = [(project, one) for one in everything if (project := _project_of(one)) and path.is_relative_to(project)]
    # A project may lie within another one's folder: the innermost is the module's own.
    return max(edited, key=lambda pair: len(pair[0].parts), default=(None, None))[1]


def _brought(one: "Distribution", located: _Located) -> bool:
    return located.name in _record(one) and _is_same(_recorded(one).get(located.name), located.path)


def _project_of(one: "Distribution") -> Path | None:
    """Return the folder that a distribution is an editable install of; None if it is not editable."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        said = json.loads(one.read_text("direct_url.json") or "null")
        folder = Path(url2pathname(urlsplit(said["url"]).path)).resolve()
        return folder if said["dir_info"]["editable"] is True else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # it says nothing of the kind
        return None
