"""Finding tools by what they do: BM25 over names, descriptions and parameters, without any dependency."""

import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import attrs

from agentos.tools.listing import ToolInfo

QUERY_LIMIT = 1_000
"""How many characters of a query count."""
TEXT_LIMIT = 2_000
"""How many characters of one description count."""
PARAMETER_LIMIT = 200
"""How many parameters of one tool count, nested ones included."""
RESULT_LIMIT = 100
_TERMS = 32
_DEPTH = 4
_SATURATION = 1.2
_LENGTH = 0.75
_NAME, _DESCRIPTION, _PARAMETER, _PARAMETER_TEXT = 4.0, 1.0, 1.5, 0.5
_PREFIX = 0.5
_SHORTEST_PREFIX = 3
_COMPLETIONS = 50

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")


def terms_of(text: str) -> list[str]:
    """Return the words of *text* in the form in which they are compared: `sendMails` and `send_mail` are alike."""
    if not text.islower():
        text = _HUMP.sub(" ", text)
    return [_stem(word) for word in _WORD.findall(text.casefold())]


def _stem(word: str) -> str:
    """Return a plural as its singular; enough for names and short sentences."""
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):  # noqa: PLR2004 - as `bus`
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]


@attrs.frozen
class Hit:
    """A tool that was found, and how well it fits: a number that only compares with others of the same search."""

    info: ToolInfo
    score: float


class ToolIndex:
    """Ranks tools for a query. Made once from a list; a list that changed needs a new one."""

    def __init__(self, infos: Iterable[ToolInfo]) -> None:
        self._infos = tuple(infos)
        self._named: dict[str, list[int]] = {}
        found: dict[str, tuple[array[int], array[float]]] = {}
        lengths: list[float] = []
        for place, info in enumerate(self._infos):
            self._named.setdefault(info.name.casefold(), []).append(place)
            weights = _weights(info)
            lengths.append(sum(weights.values()))
            for term, weight in weights.items():
                if (posting := found.get(term)) is None:
                    posting = found[term] = (array("l"), array("d"))
                posting[0].append(place)
                posting[1].append(weight)
        self._postings = found
        self._vocabulary = sorted(found)
        average = sum(lengths) / len(lengths) if lengths else 1.0
        self._norms = [_SATURATION * (1 - _LENGTH + _LENGTH * length / (average or 1.0)) for length in lengths]

    def __len__(self) -> int:
        return len(self._infos)

    def search(self, query: str, limit: int = 10, among: Container[str] | None = None) -> list[Hit]:
        """Return the tools that fit *query* best, the best first; with *among*, only tools of those names."""
        scores: dict[int, float] = {}
        query = query[:QUERY_LIMIT]
        for term in list(dict.fromkeys(terms_of(query)))[:_TERMS]:
            for word, share in self._meant(term):
                self._add(word, share, scores)
        best = max(scores.values(), default=0.0)
        for place in self._named.get(query.strip().casefold(), ()):
            scores[place] = scores.get(place, 0.0) + best + 1.0  # whoever knows the name means that tool
        ranked = sorted(scores, key=lambda place: (-scores[place], place))
        wanted = (place for place in ranked if among is None or self._infos[place].name in among)
        hits = (Hit(self._infos[place], scores[place]) for place in wanted)
        return [hit for hit, _ in zip(hits, range(max(0, min(limit, RESULT_LIMIT))), strict=False)]

    def _meant(self, term: str) -> Iterator[tuple[str, float]]:
        """Yield the words that a term stands for: itself, or if nobody uses it the words that begin with it."""
        if term in self._postings:
            yield term, 1.0
        elif len(term) >= _SHORTEST_PREFIX:
            start = bisect_left(self._vocabulary, term)
            for word in self._vocabulary[start : start + _COMPLETIONS]:
                if not word.startswith(term):
                    break
                yield word, _PREFIX

    def _add(self, term: str, share: float, scores: dict[int, float]) -> None:
        places, weights = self._postings[term]
        count = len(self._infos)
        rarity = share * math.log(1 + (count - len(places) + 0.5) / (len(places) + 0.5))
        norms = self._norms
        for place, weight in zip(places, weights, strict=True):
            gain = rarity * weight * (_SATURATION + 1) / (weight + norms[place])
            scores[place] = scores.get(place, 0.0) + gain


def _weights(info: ToolInfo) -> dict[str, float]:
    """Return how often each word stands in what is told of a tool, weighted by where."""
    weights: dict[str, float] = {}
    _count(weights, info.name, _NAME)
    _count(weights, info.description, _DESCRIPTION)
    for name, description in _parameters(info.input_schema):
        _count(weights, name, _PARAMETER)
        _count(weights, description, _PARAMETER_TEXT)
    return weights


def _count(weights: dict[str, float], text: str, weight: float) -> None:
    for term in terms_of(text[:TEXT_LIMIT]):
        weights[term] = weights.get(term, 0.0) + weight


def _parameters(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    _collect(schema, found, 0)
    return found


def _collect(schema: Any, found: list[tuple[str, str]], depth: int) -> None:
    """Gather names and descriptions of parameters, nested ones too, within bounds: a schema is foreign text."""
    if depth > _DEPTH or not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if len(found) >= PARAMETER_LIMIT:
            return
        described = part.get("description") if isinstance(part, Mapping) else None
        found.append((str(name), described if isinstance(described, str) else ""))
        _collect(part, found, depth + 1)
    _collect(schema.get("items"), found, depth + 1)
