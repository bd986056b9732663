"""Words into matches, matches into an order.

Ranking every row that has a common word would take as long as the memory is large. So only CANDIDATES rows, the newest
that fit, are ranked: those with all the words; where these are too few, those with any word that is not common. And
they are ranked by the words that are not common alone: the others would add next to nothing to bm25, and most of its
time. What is recent is raised.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence

import attrs
from agentos_pack_common.sqlite import quoted_terms

from agentos_pack_sqlite_memory._scope import Filter

CANDIDATES = 300
COMMON = 2_000
"""A word that more rows have than this tells little."""
_RECENT = 0.5
"""By how much of its score a memory of this moment is raised."""
_FLOOR = 1e-3
"""What a row that fits is worth without a word that tells something: then the newest come first."""
_DAY = 86_400.0
_TRIGRAM = 3
"""The index of pieces finds no word that is shorter."""


@attrs.frozen(kw_only=True)
class Hit:
    """A row that fits. Those of a lower tier come first, whatever their score."""

    id: int
    tier: int
    relevance: float
    saved: float

    def score(self, now: float, half_life_days: float) -> float:
        """Return how well it fits, raised by up to a half for what is recent."""
        age = max(0.0, now - self.saved) / _DAY
        return float((self.relevance + _FLOOR) * (1 + _RECENT * 0.5 ** (age / half_life_days)))


def newest(connection: sqlite3.Connection, wanted: Filter) -> list[tuple[int, float | None]]:
    """Return the newest rows that may be seen, without a score."""
    return [(id, None) for id in _admitted(connection, _candidates(connection, "words", wanted.words, wanted), wanted)]


def search(connection: sqlite3.Connection, text: str, wanted: Filter, *, enough: int, pieces: bool) -> list[Hit]:
    """Return the rows that fit *text*, in no order; at least *enough* if there are as many."""
    terms = quoted_terms(text)
    if not terms:
        return []
    telling = [term for term in terms if not _is_common(connection, term)]
    tiers = _with_words(connection, terms, wanted, " AND ", 0)
    if len(tiers) < enough and len(terms) > 1:
        tiers = _with_words(connection, telling or terms, wanted, " OR ", 1) | tiers
    if len(tiers) < enough and pieces:
        tiers = _with_pieces(connection, terms, wanted) | tiers
    saved = _admitted(connection, tiers, wanted)
    ranks = _ranks(connection, telling, saved)
    return [Hit(id=id, tier=tiers[id], relevance=ranks.get(id, 0.0), saved=saved[id]) for id in saved]


def _with_words(
    connection: sqlite3.Connection, terms: Sequence[str], wanted: Filter, join: str, tier: int
) -> dict[int, int]:
    ids = _candidates(connection, "words", f"{wanted.words} AND {_in_text(terms, join)}", wanted)
    return dict.fromkeys(ids, tier)


def _with_pieces(connection: sqlite3.Connection, terms: Sequence[str], wanted: Filter) -> dict[int, int]:
    """Find words that contain the terms: parts of names, and writing without spaces."""
    long = [term for term in terms if len(term) >= _TRIGRAM + 2]
    if not long:
        return {}
    expression = f"{wanted.words} AND text : ({' AND '.join(long)})"
    return dict.fromkeys(_candidates(connection, "pieces", expression, wanted), 2)


def _candidates(connection: sqlite3.Connection, index: str, expression: str, wanted: Filter) -> list[int]:
    """Return the newest rows that *expression* matches; those that have had their time would take others' places.

    CROSS JOIN keeps SQLite from beginning with the table.
    """
    rows = connection.execute(
        f"SELECT {index}.rowid FROM {index} CROSS JOIN memories ON memories.id = {index}.rowid"  # noqa: S608 - the names are ours
        f" WHERE {index} MATCH ? AND (expires IS NULL OR expires > ?) ORDER BY {index}.rowid DESC LIMIT ?",
        (expression, wanted.now, CANDIDATES),
    )
    return [id for (id,) in rows]


def _admitted(connection: sqlite3.Connection, ids: Collection[int], wanted: Filter) -> dict[int, float]:
    """Return those of *ids* that the reader may really see, the newest first, and when each was saved."""
    condition, values = wanted.condition
    rows = connection.execute(
        "SELECT id, saved FROM memories WHERE id IN (SELECT value FROM json_each(:ids))"  # noqa: S608 - as above
        f" AND {condition} ORDER BY id DESC",
        {"ids": json.dumps(list(ids)), **values},
    )
    return dict(rows.fetchall())


def _ranks(connection: sqlite3.Connection, terms: Sequence[str], ids: Collection[int]) -> dict[int, float]:
    """Return how well each of *ids* fits the terms. The plus keeps SQLite from asking the index once for each id."""
    if not terms or not ids:
        return {}
    rows = connection.execute(
        "SELECT rowid, -bm25(words, 1.0, 0.7, 0.0) FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?"
        " AND +rowid IN (SELECT value FROM json_each(?))",
        (_in_text(terms, " OR "), min(ids), max(ids), json.dumps(list(ids))),
    )
    return dict(rows.fetchall())


def _is_common(connection: sqlite3.Connection, term: str) -> bool:
    (count,) = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)", (_in_text([term], ""), COMMON + 1)
    ).fetchone()
    return bool(count > COMMON)


def _in_text(terms: Sequence[str], join: str) -> str:
    return f"{{text tags}} : ({join.join(terms)})"
