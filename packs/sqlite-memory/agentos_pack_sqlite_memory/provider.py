"""SqliteMemory: the memory-provider, what `host.memory` asks. It acts on a principal's own memories alone."""

import math
from collections.abc import Iterable

from agentos import MemoryHit, MemoryRecord, MemoryScope, MemoryStats, Principal
from agentos_pack_sqlite_memory.store import MAX_LIMIT, MAX_QUERY, MemoryStore
from agentos_pack_sqlite_memory.values import Memory

_NAMESPACE = "default"
"""Where a record without a namespace is kept: where the tools save what names none."""


class SqliteMemory:
    """The memories of a MemoryStore, for `host.memory`. What others shared is not among them."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def remember(self, record: MemoryRecord) -> str:
        """Keep a text and return its id; the same text again makes it fresh."""
        saved = await self._store.store(
            record.text,
            principal=_owner(record.principal),
            namespace=record.namespace or _NAMESPACE,
            tags=record.tags,
            metadata=record.metadata,
            ttl_seconds=None if record.seconds is None else math.ceil(record.seconds),
        )
        return saved.id

    async def recall(self, query: str, *, scope: MemoryScope, limit: int = 5) -> list[MemoryHit]:
        """Return the memories of the scope that fit *query* best; of a long query its first words count."""
        found = await self._store.query(
            query[:MAX_QUERY],
            principal=_owner(scope.principal),
            namespace=scope.namespace or None,
            scope="mine",
            limit=min(limit, MAX_LIMIT),
        )
        return [_hit(one, scope.principal) for one in found.memories]

    async def forget(self, ids: Iterable[str], *, scope: MemoryScope) -> int:
        """Delete memories of the scope by id; return how many were there."""
        return await self._store.delete_own(tuple(ids), _owner(scope.principal), scope.namespace or None)

    async def stats(self, scope: MemoryScope) -> MemoryStats:
        """Return what the scope has."""
        found = await self._store.stats(principal=_owner(scope.principal), namespace=scope.namespace or None)
        details = {"bytes": found.bytes, "durable": found.durable, "newest_at": found.newest_at}
        return MemoryStats(found.memories, found.namespaces, details)


def _owner(key: str) -> Principal:
    """Return the principal of a key, without any access: nothing here needs some."""
    if key == "system":
        return Principal("system", "system")
    kind, colon, id = key.partition(":")
    if colon and kind == "service":
        return Principal(id, "service")
    return Principal(id, "system") if colon and kind == "system" else Principal(key)


def _hit(memory: Memory, principal: str) -> MemoryHit:
    return MemoryHit(
        id=memory.id,
        text=memory.text,
        principal=principal,
        namespace=memory.namespace,
        score=memory.score or 0.0,
        tags=memory.tags,
        metadata=memory.metadata,
        saved_at=memory.saved_at,
    )
