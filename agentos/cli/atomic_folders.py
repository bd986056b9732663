"""Folders that appear complete or not at all; files do so by agentos.base.atomic_files."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentos.base.atomic_files import draft_of, sync_folder, undisturbed, write_file


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a folder to fill, which becomes *path* at the end of the block; raise FileExistsError if that is taken."""
    if path.exists() or path.is_symlink():
        raise FileExistsError(errno.EEXIST, "is there already", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    try:
        draft.mkdir()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # nobody knows the draft by its name
    try:
        yield draft
        for folder in [draft, *(one for one in draft.rglob("*") if one.is_dir())]:
            sync_folder(folder)
        draft.rename(path)  # refused if somebody made it meanwhile, unless they made an empty folder
    except BaseException as error:  # Ctrl-C too must not leave litter
        if isinstance(error, OSError) and (error.filename is None or str(draft) in str(error.filename)):
            error.filename = str(path)  # as above
        with undisturbed():
            shutil.rmtree(draft, ignore_errors=True)
        raise
    sync_folder(path.parent)


def write_new(path: Path, data: bytes) -> None:
    """Write a file in a folder that nobody sees yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, data)
