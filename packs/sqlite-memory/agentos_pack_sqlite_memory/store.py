"""MemoryStore: memories in SQLite, for the tools and for the provider."""

import hashlib
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import attrs
from agentos_pack_common import clip, plain
from agentos_pack_common.sqlite import Database, storable

from agentos import Principal
from agentos_pack_sqlite_memory import _search
from agentos_pack_sqlite_memory._meaning import Meanings, fused
from agentos_pack_sqlite_memory._schema import APPLICATION_ID, MIGRATIONS, add_pieces, delete, insert
from agentos_pack_sqlite_memory._scope import Filter, Scope, may_share, owner_of, scope_words
from agentos_pack_sqlite_memory.values import Forgotten, Found, Memory, Plain, Saved, Stats

T = TypeVar("T")

MAX_TEXT = 8_000
MAX_QUERY = 500
MAX_NAME = 64
MAX_TAGS = 16
MAX_KEYS = 16
MAX_METADATA = 4_000
MAX_NUMBER = 1e15
"""Of a value of the metadata; larger numbers are changed by many readers of JSON."""
MAX_LIMIT = 50
MAX_IDS = 100
MAX_TTL = 10 * 366 * 86_400

_MEGABYTE = 1 << 20
_PURGED_AT_ONCE = 500
_COLUMNS = "id, ref, owner, namespace, shared, text, tags, metadata, saved, expires"


@attrs.frozen(kw_only=True)
class MemoryOptions:
    """The options of the pack."""

    path: Path | None = None
    trigram: bool = False
    vectors: bool = False
    max_memories: int = attrs.field(
        default=100_000, validator=[attrs.validators.ge(1), attrs.validators.le(10_000_000)]
    )
    max_megabytes: int = attrs.field(default=1_024, validator=[attrs.validators.ge(1), attrs.validators.le(1_048_576)])
    half_life_days: float = attrs.field(default=30.0, validator=[attrs.validators.gt(0), attrs.validators.le(36_500)])


class MemoryStore:
    """Memories in a SQLite database. Every method acts for a principal; None is the host itself.

    A principal reads what it stored and what was stored as shared; it deletes what it stored. To store as shared, and
    to delete what others shared, it has to hold the rule `memory:share`.
    """

    def __init__(
        self,
        database: Database,
        *,
        trigram: bool = False,
        max_memories: int = 100_000,
        half_life_days: float = 30.0,
        clock: Callable[[], float] = time.time,
        meanings: Meanings | None = None,
    ) -> None:
        self._database = database
        self._trigram = trigram
        self._max_memories = max_memories
        self._half_life_days = half_life_days
        self._clock = clock
        self._meanings = meanings

    @classmethod
    def from_options(cls, options: MemoryOptions) -> "MemoryStore":
        """Return the store that *options* describe; it is not open yet."""
        database = Database(
            options.path,
            application_id=APPLICATION_ID,
            migrations=MIGRATIONS,
            max_bytes=options.max_megabytes * _MEGABYTE,
        )
        return cls(
            database,
            trigram=options.trigram,
            max_memories=options.max_memories,
            half_life_days=options.half_life_days,
            meanings=Meanings.installed() if options.vectors else None,
        )

    @property
    def is_durable(self) -> bool:
        """Tell whether what is stored outlives the process."""
        return self._database.is_durable

    async def open(self) -> None:
        """Open the database, and make what the options ask for."""
        await self._database.open()
        try:
            await self._database.write(self._prepare)
        except BaseException:
            await self._database.close()
            raise

    async def close(self) -> None:
        """Close the database."""
        await self._database.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._purge(connection)
        if self._trigram:
            add_pieces(connection)
        if self._meanings is not None:
            self._meanings.fill(connection)

    # -- store -------------------------------------------------------------------------------------------------

    async def store(
        self,
        text: str,
        *,
        principal: Principal | None = None,
        namespace: str = "default",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Plain] | None = None,
        ttl_seconds: int | None = None,
        shared: bool = False,
        rehearse: bool = False,
    ) -> Saved:
        """Keep *text*. The same text again, by the same principal in the same namespace, makes it fresh again.

        *ttl_seconds* is after how long it is forgotten by itself. With *rehearse* nothing is kept.
        """
        who = principal or Principal.system()
        if shared and not may_share(who):
            raise ValueError("shared: needs the access rule memory:share, which you do not hold; save it unshared")
        now = self._clock()
        entry = _Entry(
            owner=owner_of(who),
            namespace=_name(namespace, "namespace"),
            shared=shared,
            text=_text(text),
            tags=_tags(tags),
            metadata=_metadata(metadata),
            saved=now,
            expires=None if ttl_seconds is None else now + _between(ttl_seconds, 1, MAX_TTL, "ttl_seconds"),
        )
        act = self._database.rehearse if rehearse else self._database.write
        return await act(lambda connection: self._keep(connection, entry))

    def _keep(self, connection: sqlite3.Connection, entry: "_Entry") -> Saved:
        self._purge(connection)
        key = (entry.owner, entry.namespace, entry.shared, entry.digest)
        condition = "owner = ? AND namespace = ? AND shared = ? AND digest = ?"
        known = connection.execute(f"SELECT ref FROM memories WHERE {condition}", key).fetchone()  # noqa: S608
        if known is None:
            self._check_room(connection, entry.owner)
        else:  # under a new number, because the newest are looked at first
            delete(connection, condition, key)
        ref = f"m_{secrets.token_hex(8)}" if known is None else str(known[0])
        id = insert(connection, entry.row(ref))
        if self._meanings is not None:
            self._meanings.add(connection, id, entry.text)
        return Saved(
            id=ref,
            created=known is None,
            namespace=entry.namespace,
            shared=entry.shared,
            expires_at=_iso(entry.expires),
            durable=self.is_durable,
        )

    def _check_room(self, connection: sqlite3.Connection, owner: str) -> None:
        found = connection.execute("SELECT memories FROM owners WHERE owner = ?", (owner,)).fetchone()
        count = 0 if found is None else found[0]
        if count >= self._max_memories:
            raise ValueError(f"text: {count:,} memories are kept, which is the most; forget some first")

    def _purge(self, connection: sqlite3.Connection) -> None:
        """Delete what has had its time, a part of it each time."""
        late = "id IN (SELECT id FROM memories WHERE expires <= ? ORDER BY expires LIMIT ?)"
        delete(connection, late, (self._clock(), _PURGED_AT_ONCE))

    # -- query -------------------------------------------------------------------------------------------------

    async def query(
        self,
        text: str = "",
        *,
        principal: Principal | None = None,
        namespace: str | None = None,
        tags: Sequence[str] = (),
        scope: Scope = "all",
        limit: int = 10,
        max_chars: int = MAX_TEXT,
    ) -> Found:
        """Return the memories that fit *text* best, the best first; without text, the newest."""
        if len(text) > MAX_QUERY:
            raise ValueError(f"query: {len(text):,} characters; at most {MAX_QUERY} are searched for")
        wanted = Filter(
            owner=owner_of(principal or Principal.system()),
            scope=scope,
            namespace=None if namespace is None else _name(namespace, "namespace"),
            tags=_tags(tags),
            now=self._clock(),
        )
        count = _between(limit, 1, MAX_LIMIT, "limit")
        return await self._database.read(lambda connection: self._find(connection, text, wanted, count, max_chars))

    def _find(self, connection: sqlite3.Connection, text: str, wanted: Filter, limit: int, max_chars: int) -> Found:
        if not text.strip():
            ranked = _search.newest(connection, wanted)
        else:
            found = _search.search(connection, text, wanted, enough=limit + 1, pieces=self._trigram)
            ranked = self._ranked(found)
            if self._meanings is not None:
                ranked = fused([id for id, _ in ranked], self._meanings.nearest(connection, text, wanted))
        rows = self._rows(connection, ranked, wanted, limit + 1)
        memories = [_memory(row, score, wanted.owner, max_chars) for row, score in rows[:limit]]
        return Found(memories=memories, truncated=len(rows) > limit)

    def _ranked(self, hits: Iterable[_search.Hit]) -> list[tuple[int, float | None]]:
        now = self._clock()
        scored = [(hit.tier, -hit.score(now, self._half_life_days), -hit.id) for hit in hits]
        return [(-id, round(-score, 4)) for _, score, id in sorted(scored)]

    def _rows(
        self, connection: sqlite3.Connection, ranked: Iterable[tuple[int, float | None]], wanted: Filter, limit: int
    ) -> list[tuple[dict[str, Any], float | None]]:
        """Return the first rows that still count, in their order."""
        now, rows = self._clock(), []
        for id, score in ranked:
            found = connection.execute(f"SELECT {_COLUMNS} FROM memories WHERE id = ?", (id,)).fetchone()  # noqa: S608
            row = dict(zip(_COLUMNS.split(", "), found, strict=True))
            row["tags"] = json.loads(row["tags"])
            if (row["expires"] is None or row["expires"] > now) and wanted.admits(row["tags"]):
                rows.append((row, score))
            if len(rows) == limit:
                break
        return rows

    # -- delete ------------------------------------------------------------------------------------------------

    async def delete(
        self,
        ids: Sequence[str] = (),
        *,
        principal: Principal | None = None,
        namespace: str | None = None,
        rehearse: bool = False,
    ) -> Forgotten:
        """Delete memories by id, or all of the principal's own in a *namespace*. With *rehearse* all of them stay."""
        who = principal or Principal.system()
        if bool(ids) == (namespace is not None):
            raise ValueError("ids: give either ids or a namespace, not both and not neither")
        if len(ids) > MAX_IDS:
            raise ValueError(f"ids: {len(ids)} ids; at most {MAX_IDS} at once")
        act = self._database.rehearse if rehearse else self._database.write
        if namespace is not None:
            name = _name(namespace, "namespace")
            return await act(lambda connection: _drop_namespace(connection, owner_of(who), name))
        wanted = tuple(dict.fromkeys(storable(id, "ids") for id in ids))
        return await act(lambda connection: _drop(connection, wanted, owner_of(who), others=may_share(who)))

    async def delete_own(self, ids: Sequence[str], principal: Principal, namespace: str | None = None) -> int:
        """Delete memories that the principal itself saved, by id and within a *namespace* if named; return how many."""
        wanted = tuple(dict.fromkeys(storable(id, "ids") for id in ids))
        owner = owner_of(principal)

        def drop(connection: sqlite3.Connection) -> int:
            own = "ref = ? AND owner = ? AND (? IS NULL OR namespace = ?)"
            return sum(delete(connection, own, (ref, owner, namespace, namespace)) for ref in wanted)

        return await self._database.write(drop)

    async def excerpts(self, ids: Sequence[str], max_chars: int) -> dict[str, str]:
        """Return how the texts of memories begin, for people who are asked whether to delete them."""

        def read(connection: sqlite3.Connection) -> dict[str, str]:
            texts = [
                (id, connection.execute("SELECT text FROM memories WHERE ref = ?", (id,)).fetchone()) for id in ids
            ]
            return {id: clip(plain(found[0]), max_chars).text for id, found in texts if found}

        return await self._database.read(read)

    # -- stats -------------------------------------------------------------------------------------------------

    async def stats(self, *, principal: Principal | None = None, namespace: str | None = None) -> Stats:
        """Return what a principal has in the memory, in all namespaces or in one."""
        owner = owner_of(principal or Principal.system())
        return await self._database.read(lambda connection: self._stats(connection, owner, namespace))

    def _stats(self, connection: sqlite3.Connection, owner: str, namespace: str | None) -> Stats:
        alive = "owner = ? AND (expires IS NULL OR expires > ?) AND (? IS NULL OR namespace = ?)"
        values = (owner, self._clock(), namespace, namespace)
        count, shared, oldest, newest = connection.execute(
            f"SELECT count(*), coalesce(sum(shared), 0), min(saved), max(saved) FROM memories WHERE {alive}",  # noqa: S608
            values,
        ).fetchone()
        namespaces = connection.execute(
            f"SELECT namespace, count(*) FROM memories WHERE {alive} GROUP BY namespace ORDER BY 2 DESC, 1 LIMIT 100",  # noqa: S608
            values,
        ).fetchall()
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return Stats(
            memories=count,
            shared=shared,
            namespaces=dict(namespaces),
            oldest_at=_iso(oldest),
            newest_at=_iso(newest),
            bytes=pages * size,
            durable=self.is_durable,
        )


# -- rows --------------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class _Entry:
    """A memory on its way into the database."""

    owner: str
    namespace: str
    shared: bool
    text: str
    tags: tuple[str, ...]
    metadata: str
    saved: float
    expires: float | None

    @property
    def digest(self) -> bytes:
        """Return what tells two texts apart."""
        return hashlib.blake2b(self.text.encode(), digest_size=16).digest()

    def row(self, ref: str) -> dict[str, Any]:
        """Return the values of its row."""
        fields = attrs.asdict(self, filter=lambda field, _: field.name != "tags")
        return {
            **fields,
            "ref": ref,
            "digest": self.digest,
            "tags": json.dumps(self.tags, ensure_ascii=False),
            "scope": scope_words(self.owner, self.namespace, self.tags, shared=self.shared),
        }


def _memory(row: Mapping[str, Any], score: float | None, reader: str, max_chars: int) -> Memory:
    text = clip(plain(row["text"]), max_chars)
    return Memory(
        id=row["ref"],
        text=text.text,
        truncated=text.truncated,
        namespace=row["namespace"],
        tags=row["tags"],
        metadata=json.loads(row["metadata"]),
        shared=bool(row["shared"]),
        mine=row["owner"] == reader,
        saved_at=_iso(row["saved"]) or "",
        expires_at=_iso(row["expires"]),
        score=score,
    )


def _drop(connection: sqlite3.Connection, refs: Sequence[str], owner: str, *, others: bool) -> Forgotten:
    """Delete by reference. What somebody may not delete is missing for it, whether it exists or not."""
    may_go = "ref = ? AND (owner = ? OR (shared AND ?))"
    gone = [ref for ref in refs if delete(connection, may_go, (ref, owner, others))]
    return Forgotten(count=len(gone), ids=gone, missing=[ref for ref in refs if ref not in gone])


def _drop_namespace(connection: sqlite3.Connection, owner: str, namespace: str) -> Forgotten:
    key = (owner, namespace)
    first = connection.execute(
        "SELECT ref FROM memories WHERE owner = ? AND namespace = ? ORDER BY id DESC LIMIT ?", (*key, MAX_IDS)
    ).fetchall()
    count = delete(connection, "owner = ? AND namespace = ?", key)
    return Forgotten(count=count, ids=[ref for (ref,) in first], missing=[])


def _iso(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


# -- checks: hosts call the store too, without schemas before it ------------------------------------------------------


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("text: is empty; give what is to be remembered")
    if len(text) > MAX_TEXT:
        raise ValueError(f"text: {len(text):,} characters; at most {MAX_TEXT:,} are kept, so save the gist of it")
    return storable(text, "text")


def _name(value: str, place: str) -> str:
    name = plain(storable(value, place)).strip()
    if not name or len(name) > MAX_NAME or "\n" in name:
        raise ValueError(f"{place}: expected 1 to {MAX_NAME} visible characters on one line")
    return name


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tags, str) or len(tags) > MAX_TAGS:
        raise ValueError(f"tags: expected a list of at most {MAX_TAGS}")
    return tuple(dict.fromkeys(_name(tag, f"tags[{index}]") for index, tag in enumerate(tags)))


def _metadata(metadata: Mapping[str, Plain] | None) -> str:
    try:
        text = json.dumps(dict(metadata or {}), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("metadata: expected plain JSON values") from None
    if len(metadata or ()) > MAX_KEYS or len(text) > MAX_METADATA:
        raise ValueError(f"metadata: expected at most {MAX_KEYS} keys and {MAX_METADATA:,} characters of JSON")
    return storable(text, "metadata")


def _between(value: int, least: int, most: int, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{place}: expected a whole number from {least:,} to {most:,}")
    return value
