"""Stores that can't be written, read all the same."""

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentos.store.locations import place_of


@contextmanager
def readable(location: str | None) -> Iterator[str | None]:
    """Give where a store can be read: its place, or a copy that is gone afterwards, as of a backup on a read-only disk.

    SQLite has to write beside a file even to read it.
    """
    path = place_of(location).path
    if path is None or not path.is_file() or (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)):
        yield location
        return
    with tempfile.TemporaryDirectory(prefix="agentos-") as folder:
        for one in path.parent.glob(f"{glob.escape(path.name)}*"):
            if one.is_file() and not one.name.endswith("-shm"):  # that one is for those who share a file
                shutil.copyfile(one, Path(folder, one.name))
                Path(folder, one.name).chmod(0o600)
        yield str(Path(folder, path.name))
