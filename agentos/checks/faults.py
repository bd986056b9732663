"""What may be wrong with the store, its folder, and the secrets that are kept: each fault with its cure.

Nothing is changed to find out, and no value of a secret is told.
"""

import asyncio
import contextlib
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from agentos.access.audit import Audit
from agentos.base.atomic_files import write_file
from agentos.base.full_disks import is_full, reason
from agentos.errors import SecretError, StoreError
from agentos.secrets.masking import Masker
from agentos.secrets.vaults import KEY, SecretVault
from agentos.store import Store
from agentos.store.database import database_at
from agentos.store.locations import StorePlace
from agentos.store.marks import mark_file
from agentos.store.sealing_key import VARIABLE, key_file

Fault = tuple[str, str]
"""What is wrong, and the cure."""

_GLANCE = 0.5
"""For how many seconds a lock may be held by others."""
_TRIED_BYTES = 64 * 1024
"""How much is written to see whether a folder takes it: a page or two of a database, and what it notes beside it."""
_OTHERS = 0o077


# -- the store ---------------------------------------------------------------------------------------------------------


def faults_of_store(place: StorePlace, key: bytes | str | None = None) -> Iterator[Fault]:
    """Yield what is wrong with a store; *key* seals it, if it was given one."""
    if not place.is_durable:
        return
    faults = list(faults_of_file(place.path))
    yield from faults
    if faults or (place.path is not None and not place.path.is_file()):
        return
    fault = asyncio.run(_fault_of_tables(place, key))
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
    elif fault := _fault_of_emptiness(path):
        yield fault


def _fault_of_emptiness(path: Path) -> Fault | None:
    """Say that a store was emptied or removed: what is beside it tells that something was in it."""
    place = StorePlace(str(path), path)
    mark, key = mark_file(place), key_file(place)
    beside = [file for file in (mark, key) if file is not None and file.is_file()]
    if path.is_file() and path.stat().st_size == 0 and beside:
        what = f"{path} is empty, and {beside[0].name} beside it says that something was stored there"
    elif not path.exists() and mark in beside:
        what = f"{path} is gone, and {beside[0].name} beside it says that something was stored there"
    else:
        return None
    away = " and ".join(str(file) for file in beside)
    return what, f"restore it from a backup; to begin a new store on purpose, remove {away}"


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


async def _fault_of_tables(place: StorePlace, key: bytes | str | None) -> Fault | None:
    """Look at the version of the tables, and at the seals of the log; nothing is migrated."""
    from agentos.store.migrations import check

    try:
        database = database_at(place)
        try:
            is_made = await check(database) > 0
        finally:
            await database.close()
        return await _fault_of_seals(place, key) if is_made else None
    except StoreError as error:
        return error.message, error.hint or "see that it runs and can be reached from here"


async def _fault_of_seals(place: StorePlace, key: bytes | str | None) -> Fault | None:
    """Look at the key, and at both ends of the audit log."""
    store = Store(place.dsn or place.path, key=key)
    try:
        fault = await Audit(store, Masker(), clock=time.time).fault_of_ends()
    finally:
        await store.close()
    if fault is None:
        return None
    cure = f"restore {key_file(place)} or the database from a backup, or set {VARIABLE}"
    return f"its audit log: {fault}", f"{cure}; `agentos audit verify` says more"


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
        cure = "make room there" if is_full(error) else "make room there, or give this user the right to write"
        yield f"nothing can be written in {there}: {reason(error)}", cure
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
        return error.message, f"agentos secrets remove {quote(str(id))}, and set it again"
    return error.message, f"agentos secrets add {quote(str(id))}" if error.hint == "set it again" else error.hint
