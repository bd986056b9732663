"""Finding tools by their words and by what these mean: BM25, and static word vectors where the extra `search` is there.

The vectors come with the package that the extra installs; nothing is fetched. Both orders are fused by rank, so that
neither needs to know how the other counts.
"""

import functools
import heapq
import math
from collections.abc import Container, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentos.tools.listing import ToolInfo
from agentos.tools.search import _HUMP, QUERY_LIMIT, RESULT_LIMIT, TEXT_LIMIT, Hit, ToolIndex, _terms_of_query

_DEPTH = 50
"""How many of each order count, at the least."""
_FLAT = 5
"""How little the first of an order counts more than the next."""
_NEAR = 0.2
"""How alike a tool and a query must be at the least: the cosine of their vectors."""


class WordVectors:
    """Texts as vectors: the mean of those of their words."""

    def __init__(self, model: Any) -> None:
        import numpy as np

        self._np = np
        self._embedding = model.embedding
        self._tokenizer = model.tokenizer

    def of(self, text: str) -> Any:
        """Return the vector of a text, of length one, or of zeros if there is no word in it."""
        whole = text.encode("utf-8", "replace").decode()  # half a surrogate pair has no form that could be read
        ids = self._tokenizer.encode(whole, add_special_tokens=False).ids
        added = self._embedding.take(ids, axis=0, mode="clip").sum(axis=0, dtype=self._np.float32)
        return added / (math.sqrt(float((added * added).sum())) or 1.0)

    def rows(self, texts: Iterable[str]) -> Any:
        """Return the vectors of texts, one beneath the other."""
        rows = [self.of(text) for text in texts]
        return self._np.stack(rows) if rows else self._np.zeros((0, self._embedding.shape[1]), self._np.float32)


@functools.cache
def word_vectors() -> WordVectors | None:
    """Return the vectors of the extra `search`; None if it is not installed, or what is installed has none in it."""
    if find_spec("wordllama") is None:
        return None
    try:
        import wordllama

        home = Path(str(wordllama.__file__)).parent
        return WordVectors(wordllama.WordLlama.load("l2_supercat", home, dim=256, disable_download=True))
    except (ImportError, OSError, ValueError):
        return None


def index_of(infos: Iterable[ToolInfo]) -> ToolIndex:
    """Return the best index of *infos* that there is."""
    vectors = word_vectors()
    return ToolIndex(infos) if vectors is None else FusedToolIndex(infos, vectors)


class FusedToolIndex(ToolIndex):
    """Ranks tools by words and by meaning. A tool of the very name that is asked for stays the first."""

    def __init__(self, infos: Iterable[ToolInfo], vectors: WordVectors) -> None:
        import numpy as np

        super().__init__(infos)
        self._np = np
        self._vectors = vectors
        self._rows = vectors.rows(_told(info) for info in self._infos)
        self._columns = {
            term: (np.frombuffer(places, f"i{places.itemsize}"), np.frombuffer(gains))
            for term, (places, gains) in self._postings.items()
        }

    def search(self, query: str, limit: int = 10, among: Container[str] | None = None) -> list[Hit]:
        """Return the tools that fit *query* best, the best first; with *among*, only tools of those names."""
        query, limit = query[:QUERY_LIMIT], min(limit, RESULT_LIMIT)
        scores: dict[int, float] = {}
        for order in (self._by_words(query), self._by_meaning(query)):
            for rank, place in enumerate(self._first(order, max(limit, _DEPTH), among)):
                scores[place] = scores.get(place, 0.0) + 1 / (_FLAT + rank)
        for place in self._first(self._named.get(query.strip().casefold(), ()), limit, among):
            scores[place] = scores.get(place, 0.0) + 1.0
        first = heapq.nsmallest(limit, scores, key=lambda place: (-scores[place], place))
        return [Hit(self._infos[place], scores[place]) for place in first]

    def _by_words(self, query: str) -> Iterator[int]:
        scores = self._np.zeros(len(self._infos))
        for term in _terms_of_query(query):
            for word, share in self._meant(term):
                places, gains = self._columns[word]
                scores[places] += share * gains
        return self._order(scores, 0.0)

    def _by_meaning(self, query: str) -> Iterator[int]:
        wanted = self._vectors.of(_spaced(query))
        # Not by `@`: its threads wait for more to do, and cost more than they help with so little.
        return self._order(self._np.einsum("ij,j->i", self._rows, wanted), _NEAR)

    def _order(self, scores: Any, least: float) -> Iterator[int]:
        """Return the places of all that score more than *least*, the best first, of equals the earlier."""
        found = self._np.flatnonzero(scores > least)
        return iter(found[self._np.argsort(-scores[found], kind="stable")].tolist())

    def _first(self, order: Iterable[int], count: int, among: Container[str] | None) -> Iterator[int]:
        allowed = (place for place in order if among is None or self._infos[place].name in among)
        return (place for _, place in zip(range(count), allowed, strict=False))


def _told(info: ToolInfo) -> str:
    return f"{_spaced(info.name)}. {info.description[:TEXT_LIMIT]}"


def _spaced(text: str) -> str:
    """Return *text* with the words of names apart: `sendMail` and `send_mail` are two words."""
    return _HUMP.sub(" ", text).replace("_", " ").replace(".", " ").replace("-", " ")
