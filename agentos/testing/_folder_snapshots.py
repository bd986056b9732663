"""What folders contain, to see what a call changed in them."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

_MOST_FILES = 2_000
_MOST_BYTES = 200_000
_PASSING = ("-wal", "-shm", "-journal", ".pyc", "__pycache__")
"""What a database or the interpreter keeps beside a file, and changes by reading."""


@attrs.frozen
class FolderSnapshot:
    """The files of some folders, and what is in them."""

    files: Mapping[str, str]

    @classmethod
    def of(cls, folders: Iterable[Path]) -> "FolderSnapshot":
        """Look at every file beneath *folders*, up to a limit."""
        files: dict[str, str] = {}
        for path in _walk(folders):
            if len(files) >= _MOST_FILES:
                break
            files[str(path)] = _print_of(path)
        return cls(files)

    def changes(self, after: "FolderSnapshot") -> list[str]:
        """Name what came, went or is different."""
        return sorted(path for path in {**self.files, **after.files} if self.files.get(path) != after.files.get(path))


def _walk(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        if folder.is_file():
            yield folder
        for top, inner, files in os.walk(folder):
            yield from (Path(top) / name for name in (*sorted(inner), *sorted(files)) if not name.endswith(_PASSING))


def _print_of(path: Path) -> str:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:  # reading a pipe would wait
            return f"{stat.S_IFMT(found.st_mode)} {found.st_size if stat.S_ISREG(found.st_mode) else ''}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return type(error).__name__


def folders_in(value: Any) -> list[Path]:
    """Return the folders and files that any text in options names."""
    if isinstance(value, Mapping):
        return [one for inner in value.values() for one in folders_in(inner)]
    if isinstance(value, list | tuple):
        return [one for inner in value for one in folders_in(inner)]
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        return []
    path = Path(value)
    try:
        return [path] if path.is_absolute() and path.exists() else []
    except OSError:
        return []
