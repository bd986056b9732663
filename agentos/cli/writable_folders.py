"""Whether folders take what is written to them: found out by writing, since a full disk shows in no other way."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from agentos.base.atomic_files import write_file

_SIZE = 64 * 1024
"""How much is tried: a page or two of a database, and what it notes beside it."""


def faults_of_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what keeps files from being written in *folder*, with the cure. One that is not there yet is made later."""
    there = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    probe = there / f".agentos-{secrets.token_hex(8)}.tmp"
    try:
        if not there.is_dir():
            raise NotADirectoryError(0, "it is no folder")
        write_file(probe, bytes(_SIZE), mode=0o600)
    except OSError as error:
        why = error.strerror or str(error)
        yield f"nothing can be written in {there}: {why}", "make room there, or give this user the right to write"
    finally:
        with contextlib.suppress(OSError):
            os.unlink(probe)  # noqa: PTH108 - it may never have been there, nor its folder
