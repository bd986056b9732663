"""What texts mean: static word vectors, kept beside the rows, and those nearest to a query.

A vector is the mean of those of a text's words, so "a drink in the morning" is near "coffee for breakfast". They come
with the extra `vectors`; nothing is fetched.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from agentos_pack_sqlite_memory._scope import Filter

NEAREST = 50
"""How many of those that are near count."""
COMPARED = 20_000
"""With how many rows, the newest, a query is compared."""
_NEAR = 0.18
"""How alike two texts must be at the least: the cosine of their vectors."""
_FLAT = 20
"""How little the first of an order counts more than the next."""
_FILLED_AT_ONCE = 10_000


class Meanings:
    """Keeps the vectors of memories, and finds the nearest."""

    def __init__(self, vectors: Any) -> None:
        import numpy as np

        self._np = np
        self._vectors = vectors

    @classmethod
    def installed(cls) -> "Meanings":
        """Return those of the extra `vectors`; raise ValueError if it is not installed."""
        from agentos import word_vectors

        vectors = word_vectors()
        if vectors is None:
            extra = "agentos-pack-sqlite-memory[vectors]"
            raise ValueError(f"options.vectors: the word vectors are not installed; pip install '{extra}'")
        return cls(vectors)

    def add(self, connection: sqlite3.Connection, id: int, text: str) -> None:
        """Keep the vector of a row."""
        vector = self._vectors.of(text).astype(self._np.float16).tobytes()
        connection.execute("INSERT OR REPLACE INTO vectors(id, vector) VALUES (?, ?)", (id, vector))

    def fill(self, connection: sqlite3.Connection) -> None:
        """Make the vectors of rows that have none, the newest first: they were saved without."""
        rows = connection.execute(
            "SELECT id, text FROM memories WHERE id NOT IN (SELECT id FROM vectors) ORDER BY id DESC LIMIT ?",
            (_FILLED_AT_ONCE,),
        )
        for id, text in rows.fetchall():
            self.add(connection, id, text)

    def nearest(self, connection: sqlite3.Connection, text: str, wanted: Filter) -> list[int]:
        """Return the rows that the reader may see and that mean what *text* means, the nearest first."""
        condition, values = wanted.condition
        rows = connection.execute(
            "SELECT memories.id, vector FROM memories JOIN vectors ON vectors.id = memories.id"  # noqa: S608 - the names are ours
            f" WHERE {condition} AND (expires IS NULL OR expires > :now) ORDER BY memories.id DESC LIMIT :most",
            {**values, "now": wanted.now, "most": COMPARED},
        ).fetchall()
        if not rows:
            return []
        kept = self._np.frombuffer(b"".join(vector for _, vector in rows), self._np.float16).reshape(len(rows), -1)
        alike = self._np.einsum("ij,j->i", kept.astype(self._np.float32), self._vectors.of(text))
        order = self._np.argsort(-alike, kind="stable")[:NEAREST]
        return [rows[place][0] for place in order.tolist() if alike[place] > _NEAR]


def fused(by_words: Sequence[int], by_meaning: Sequence[int]) -> list[tuple[int, float | None]]:
    """Return both orders in one, by reciprocal rank, with what each row counts."""
    scores: dict[int, float] = {}
    for order in (by_words, by_meaning):
        for rank, id in enumerate(order):
            scores[id] = scores.get(id, 0.0) + 1 / (_FLAT + rank)
    return [(id, round(scores[id], 4)) for id in sorted(scores, key=lambda id: (-scores[id], -id))]
