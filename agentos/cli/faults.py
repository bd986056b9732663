"""What may be wrong with the store, its folder, and the secrets that are kept: each fault with its cure.

Nothing is changed to find out, and no value of a secret is told.
"""

import asyncio
import contextlib
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from agentos.base.atomic_files import write_file
from agentos.errors import SecretError, StoreError
from agentos.secrets.vaults import KEY, SecretVault
from agentos.store.database import database_at
from agentos.store.locations import StorePlace

Fault = tuple[str, str]
"""What is wrong, and the cure."""

_GLANCE = 0.5
"""For how many seconds a lock may be held by others."""
_TRIED_BYTES = 64 * 1024
"""How much is written to see whether a folder takes it: a page or two of a database, and what it notes beside it."""
_OTHERS = 0o077


# -- the store ---------------------------------------------------------------------------------------------------------


def faults_of_store(place: StorePlace) -> Iterator[Fault]:
    """Yield what is wrong with a store."""
    if not place.is_durable:
        return
    faults = list(faults_of_file(place.path))
    yield from faults
    if faults or (place.path is not None and not place.path.is_file()):
        return
    fault = asyncio.run(_fault_of_tables(place))
    if fault is not None:
        yield fault


def faults_of_file(path: Path | None) -> Iterator[Fault]:
    """Yield what keeps a store's file from being used, as far as that is seen from outside."""
    if path is None:
        return
    folder = next((one for one in path.parents if one.exists()), path.parent)
    if path.is_dir():
        yield f"{path} is a folder", "name a file in it"
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield f"the folder {folder} can't be written", "give this user the right to, or name another store"
    elif path.is_file() and not os.access(path, os.R_OK | os.W_OK):
        yield f"{path} can't be read and written", "give this user the right to, or name another store"
    elif path.is_file() and _is_locked(path):
        yield f"{path} is locked by another program", "end what holds it, or wait until it is done"


def _is_locked(path: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_GLANCE, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    except sqlite3.DatabaseError:  # no database at all: its tables tell
        return False
    return False


async def _fault_of_tables(place: StorePlace) -> Fault | None:
    """Look at the version of the tables; nothing is migrated."""
    from agentos.store.migrations import check

    try:
        database = database_at(place)
        try:
            await check(database)
        finally:
            await database.close()
    except StoreError as error:
        return error.message, error.hint or "see that it runs and can be reached from here"
    return None


def faults_of_folder(folder: Path) -> Iterator[Fault]:
    """Yield what keeps files from being written in *folder*: found by writing, since a full disk shows in no other way.

    One that is not there yet is made later.
    """
    there = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    probe = there / f".agentos-{secrets.token_hex(8)}.tmp"
    try:
        if not there.is_dir():
            raise NotADirectoryError(0, "it is no folder")
        write_file(probe, bytes(_TRIED_BYTES), mode=0o600)
    except OSError as error:
        why = error.strerror or str(error)
        yield f"nothing can be written in {there}: {why}", "make room there, or give this user the right to write"
    finally:
        with contextlib.suppress(OSError):
            os.unlink(probe)  # noqa: PTH108 - it may never have been there, nor its folder


def is_open_to_others(file: Path) -> bool:
    """Tell whether other users of this machine may use a file."""
    return os.name == "posix" and file.is_file() and bool(stat.S_IMODE(file.stat().st_mode) & _OTHERS)


# -- secrets -----------------------------------------------------------------------------------------------------------


def faults_of_kept() -> Iterator[Fault]:
    """Yield what is wrong with the secrets that are kept: files that can't be read, or that others can use."""
    vault = SecretVault()
    yield from dict.fromkeys(_faults_of_values(vault))
    for file in (vault.path, vault.path.with_name(KEY)):
        if is_open_to_others(file):
            yield f"{file} is open to other users", f"chmod 600 {quote(str(file))}"


def _faults_of_values(vault: SecretVault) -> Iterator[Fault]:
    try:
        kept = list(vault.kept())
    except (SecretError, OSError) as error:
        yield _fault_of_secret(error)
        return
    for id in kept:
        try:
            vault(id)
        except (SecretError, OSError) as error:
            yield _fault_of_secret(error, id)


def _fault_of_secret(error: SecretError | OSError, id: str | None = None) -> Fault:
    if isinstance(error, OSError):
        return f"{error.filename} can't be read: {error.strerror}", "give this user the right to"
    if error.hint is None:
        return error.message, f"agentos secrets unset {quote(str(id))}, and set it again"
    return error.message, f"agentos secrets set {quote(str(id))}" if error.hint == "set it again" else error.hint
