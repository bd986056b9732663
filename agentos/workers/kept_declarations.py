"""What packs declared last time, kept in the store: so that a listing starts no process.

Each is bound to the files of its pack and to what its entry says: another file, or another option, and it is unknown.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentos._version import __version__
from agentos.base.canonical import digest, in_order
from agentos.errors import PackLoadError, StoreError
from agentos.loading.pack_files import files_of, hash_files
from agentos.model.manifest import PackEntry
from agentos.store import Store
from agentos.store.rows import fetch_one

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection


class KeptDeclarations:
    """The declarations of packs in one store. What can't be read or written is as good as unknown."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, entry: PackEntry) -> Mapping[str, Any] | None:
        """Return what the pack of *entry* declared, if it is still the same."""
        from agentos.store import schema

        bound = await self._bound(entry)
        if bound is None:
            return None
        query = schema.declarations.select().where(schema.declarations.c.pack == entry.label)
        try:
            row = await self._store.read(lambda connection: fetch_one(connection, query))
        except StoreError:
            return None
        is_it = row is not None and row["bound"] == bound and self._store.is_sealed(bound + row["body"], row["seal"])
        return json.loads(row["body"]) if row is not None and is_it else None

    async def keep(self, entry: PackEntry, declared: Mapping[str, Any]) -> None:
        """Keep what the pack of *entry* declares now."""
        from agentos.store import schema

        bound = await self._bound(entry)
        if bound is None:
            return
        table, body = schema.declarations, in_order(declared)
        row = {"pack": entry.label, "bound": bound, "body": body, "at": time.time(), "seal": ""}

        def replace(connection: "Connection") -> None:
            connection.execute(table.delete().where(table.c.pack == entry.label))
            connection.execute(table.insert(), {**row, "seal": self._store.seal(bound + body)})

        try:
            await self._store.write(replace)
        except StoreError:
            return

    async def _bound(self, entry: PackEntry) -> str | None:
        """Return what a declaration is bound to; None if none can be kept."""
        if not self._store.is_durable:
            return None
        try:
            return await asyncio.to_thread(_bound, entry)
        except PackLoadError:
            return None


def _bound(entry: PackEntry) -> str | None:
    files = files_of(entry)
    if files is None:
        return None
    options = {name: value for name, value in entry.options.items() if name != "secrets"}
    said = [entry.module, entry.package, entry.identifier, entry.python, list(entry.requirements), options]
    return digest([__version__, hash_files(files), said])
