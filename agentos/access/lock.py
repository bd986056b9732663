"""The lock file: which packs were agreed on, and how what is there now differs from that."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal, Self

import attrs

from agentos.base.atomic_files import replace_file
from agentos.base.full_disks import reason
from agentos.errors import ManifestError, Problem
from agentos.loading.pack_files import PackFiles, hash_files
from agentos.model.field_checks import frozen_mapping
from agentos.model.parsing import check, show_path

FORMAT = 1
SIZE_LIMIT = 64 * 1024 * 1024

OriginKind = Literal["factory", "module", "package"]
What = Literal[
    "added",
    "removed",
    "version",
    "file added",
    "file removed",
    "file changed",
    "tool added",
    "tool removed",
    "tool changed",
]

_OF_FILES: tuple[What, What, What] = ("file added", "file removed", "file changed")
_OF_TOOLS: tuple[What, What, What] = ("tool added", "tool removed", "tool changed")
_SAYINGS: Mapping[What, str] = {
    "added": "is there as {found}, but not in the lock; lock again if it is meant to be there",
    "removed": "is in the lock as {locked}, but not there; put it back, or lock again without it",
    "version": "is of version {found}, but locked is {locked}; install that one, or lock again to accept this one",
    "file added": "has the file {subject}, which is not in the lock; remove it, or lock again to accept it",
    "file removed": "lacks the file {subject}, which is in the lock; put it back, or lock again without it",
    "file changed": "has another file {subject} ({found}) than the locked one ({locked}); "
    "put that one back, or lock again to accept this one",
    "tool added": "offers the tool {subject}, which is not in the lock; lock again to accept it",
    "tool removed": "does not offer the tool {subject}, which is in the lock; lock again without it",
    "tool changed": "defines the tool {subject} ({found}) otherwise than locked ({locked}); "
    "read what it says now, then lock again to accept it",
}
_HASH_SHOWN = 20
_SHOWN = 60


@attrs.frozen
class Difference:
    """One thing that is not as locked. What a side does not have is None there."""

    pack: str
    what: What
    subject: str
    locked: str | None = None
    found: str | None = None

    def __str__(self) -> str:
        said = _SAYINGS[self.what]
        return f"pack {self.pack!r} " + said.format(
            subject=repr(self.subject), locked=_shown(self.locked), found=_shown(self.found)
        )


def _shown(value: str | None) -> str:
    """Write foreign text on one line; of a hash, the beginning is enough."""
    if value is None:
        return "none"
    return repr(value) if len(value) < _SHOWN else f"{value[:_HASH_SHOWN]!r}..."


@attrs.frozen
class LockedPack:
    """A pack as it was agreed on, or as it is now.

    `version` is that of the distribution which the pack was installed with, else the pack's own. `tools` has the hash
    of each tool's definition by the tool's id.
    """

    key: str
    name: str
    version: str | None
    origin_kind: OriginKind
    files: Mapping[str, str] = attrs.field(converter=frozen_mapping, repr=False)
    tools: Mapping[str, str] = attrs.field(converter=frozen_mapping, repr=False)

    def __str__(self) -> str:
        version = f" {self.version}" if self.version else ""
        return f"{self.name}{version} ({self.origin_kind})"


def _by_key(packs: Iterable[LockedPack]) -> tuple[LockedPack, ...]:
    return tuple(sorted(packs, key=lambda pack: pack.key))


@attrs.frozen
class Lock:
    """The packs that were agreed on, sorted by key."""

    packs: tuple[LockedPack, ...] = attrs.field(converter=_by_key)
    version: int = FORMAT

    def __attrs_post_init__(self) -> None:
        if problems := [*_faults_of_version(self.version), *_twice(pack.key for pack in self.packs)]:
            raise ManifestError("lock", problems)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a lock file; everything that is wrong with it is in one ManifestError."""
        data = _parsed(Path(path))
        _require_sound(data, str(path))
        return cls(packs=[_pack_of(raw) for raw in data["packs"]], version=data["version"])

    def write(self, path: str | Path) -> None:
        """Write a lock file, the same text for the same packs. When it can't be written, the old one is left whole."""
        data = {"version": self.version, "packs": [_data_of(pack) for pack in self.packs]}
        _require_sound(data, str(path))
        raw = (json.dumps(data, indent=2, sort_keys=True) + "\n").encode("ascii")
        try:
            _require_size(raw)
            replace_file(Path(path), raw)
        except (OSError, ValueError) as error:
            why = reason(error) if isinstance(error, OSError) else error
            raise ManifestError(str(path), [Problem("", f"can't be written: {why}")]) from error

    def pack(self, key: str) -> LockedPack | None:
        """Return what was agreed on for the pack of *key*."""
        return next((pack for pack in self.packs if pack.key == key), None)

    def differences(self, other: "Lock") -> list[Difference]:
        """List what of *other*, which is there now, is not as agreed here; in order of keys."""
        agreed, present = ({pack.key: pack for pack in lock.packs} for lock in (self, other))
        keys = sorted(agreed.keys() | present.keys())
        return [one for key in keys for one in _between(key, agreed.get(key), present.get(key))]


def check_files(locked: LockedPack | None, key: str, found: PackFiles | None) -> list[Difference]:
    """List what about a pack is not as locked, as far as that can be told before any of its code runs."""
    version = None if found is None else found.version
    if locked is None:
        return [Difference(key, "added", key, None, f"{key} {version}" if version else key)]
    files = _changes(key, _OF_FILES, locked.files, {} if found is None else hash_files(found))
    if version in (None, locked.version):  # a pack that states its version itself has not done so yet
        return list(files)
    return [Difference(key, "version", locked.name, locked.version, version), *files]


# -- comparing -----------------------------------------------------------------------------------------------------


def _between(key: str, agreed: LockedPack | None, present: LockedPack | None) -> Iterator[Difference]:
    if agreed is not None and present is not None and _identity(agreed) == _identity(present):
        if agreed.version != present.version:
            yield Difference(key, "version", agreed.name, agreed.version, present.version)
        yield from _changes(key, _OF_FILES, agreed.files, present.files)
        yield from _changes(key, _OF_TOOLS, agreed.tools, present.tools)
        return
    if agreed is not None:
        yield Difference(key, "removed", agreed.name, str(agreed), None)
    if present is not None:
        yield Difference(key, "added", present.name, None, str(present))


def _identity(pack: LockedPack) -> tuple[str, OriginKind]:
    """Return what makes a pack another one, rather than a changed one."""
    return pack.name, pack.origin_kind


def _changes(
    key: str, words: tuple[What, What, What], agreed: Mapping[str, str], present: Mapping[str, str]
) -> Iterator[Difference]:
    added, removed, changed = words
    for subject in sorted(agreed.keys() | present.keys()):
        before, now = agreed.get(subject), present.get(subject)
        if before != now:
            what = added if before is None else removed if now is None else changed
            yield Difference(key, what, subject, before, now)


# -- reading and writing -------------------------------------------------------------------------------------------


def _pack_of(raw: Mapping[str, Any]) -> LockedPack:
    return LockedPack(raw["key"], raw["name"], raw["version"], raw["originKind"], raw["files"], raw["tools"])


def _data_of(pack: LockedPack) -> dict[str, Any]:
    return {
        "key": pack.key,
        "name": pack.name,
        "version": pack.version,
        "originKind": pack.origin_kind,
        "files": dict(pack.files),
        "tools": dict(pack.tools),
    }


def _parsed(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            raw = file.read(SIZE_LIMIT + 1)
        _require_size(raw)
        return json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_unique)
    except OSError as error:
        raise ManifestError(str(path), [Problem("", f"can't be read: {error.strerror or error}")]) from error
    except (ValueError, RecursionError) as error:
        raise ManifestError(str(path), [Problem("", f"can't be parsed: {error}; put it back, or lock again")]) from None


def _require_size(raw: bytes) -> None:
    if len(raw) > SIZE_LIMIT:
        raise ValueError(f"larger than {SIZE_LIMIT:,} bytes")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: people would read the first, and the last would count."""
    for problem in _twice(name for name, _ in pairs):
        raise ValueError(problem.message)
    return dict(pairs)


def _twice(keys: Iterable[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, key in enumerate(keys):
        if key in seen:
            yield Problem(show_path(("packs", index, "key")), f"the key {key!r} stands twice")
        seen.add(key)


def _require_sound(data: Any, origin: str) -> None:
    """Raise what is wrong with *data*, before it is written too: what can't be read again is not worth writing."""
    version = data.get("version") if isinstance(data, dict) else None
    if problems := list(_faults_of_version(version)) or check(data, "lock") or list(_faults(data["packs"])):
        raise ManifestError(origin, list(dict.fromkeys(problems)))


def _faults_of_version(version: object) -> Iterator[Problem]:
    if isinstance(version, int) and version > FORMAT:
        message = f"the lock file is of version {version}, this agentos knows {FORMAT}; update agentos, or lock again"
        yield Problem("version", message)


def _faults(packs: list[dict[str, Any]]) -> Iterator[Problem]:
    """Find what a JSON Schema can't say: keys that stand twice, and paths that hold on one machine only."""
    yield from _twice(pack["key"] for pack in packs)
    for index, pack in enumerate(packs):
        if _is_absolute(pack["key"]):
            message = "is an absolute path, which holds on one machine only; give the manifest entry an identifier"
            yield Problem(show_path(("packs", index, "key")), message)
        for name in pack["files"]:
            if _is_absolute(name) or {"", ".", ".."} & set(name.split("/")):
                message = "expected a path relative to the pack, with forward slashes"
                yield Problem(show_path(("packs", index, "files", name)), message)


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
