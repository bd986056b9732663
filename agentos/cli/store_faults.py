"""What may be wrong with a store, found without changing it."""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from agentos.errors import StoreError
from agentos.store.locations import StorePlace

_GLANCE = 0.5
"""For how many seconds a lock may be held by others."""


def faults_of_store(place: StorePlace) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a store, each with the cure."""
    if not place.is_durable:
        return
    faults = list(faults_of_file(place.path))
    yield from faults
    if faults or (place.path is not None and not place.path.is_file()):
        return
    fault = asyncio.run(_fault_of_tables(place))
    if fault is not None:
        yield fault


def faults_of_file(path: Path | None) -> Iterator[tuple[str, str]]:
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


async def _fault_of_tables(place: StorePlace) -> tuple[str, str] | None:
    """Look at the version of the tables; nothing is migrated."""
    from agentos.store.database import database_at
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
