"""Finding tools by what they do: BM25 over names, descriptions and parameters, without any dependency."""

import functools
import heapq
import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from agentos.tools.listing import ToolInfo

QUERY_LIMIT = 4_000
"""How many characters of a query count."""
TEXT_LIMIT = 2_000
"""How many characters of one description count."""
PARAMETER_LIMIT = 200
"""How many parameters of one tool count, nested ones included."""
RESULT_LIMIT = 100
_TERMS = 256
_DEPTH = 4
_SATURATION = 1.2
_LENGTH = 0.4
_NAME, _DESCRIPTION, _PARAMETER, _PARAMETER_TEXT = 4.0, 1.0, 1.5, 0.5
_PREFIX = 0.5
_SHORTEST_PREFIX = 3
_COMPLETIONS = 50

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")


_QUESTIONS = """
a about all also am an and any are as at be been but by can could did do does find for from get give had has have help
how i if in into is it its know let like ll looking me my need of on or our please provide re should so some tell than
that the their them then there these they this to up us ve want was we were what when where which who will with would
you your
"""
_STOP_WORDS = frozenset(_QUESTIONS.split())
"""Words of questions that say nothing about the tool. They count only where a query has no others."""

_SUFFIXES = """
izations ization isations isation ational ations ation ement ments ment ingly ings ing ized izes ize ised ises ise ers
er ors or ives ive edly ed ies ely ly ions ion ities ity ness able ible al es s e y
"""
_ENDINGS = tuple(_SUFFIXES.split())
"""What is cut off an English word, the first that fits."""
_SHORTEST_STEM = 3


def terms_of(text: str) -> list[str]:
    """Return the words of *text* in the form in which they are compared: `sendMails` and `sending_mail` are alike."""
    if not text.islower():
        text = _HUMP.sub(" ", text)
    return [_stem(word) for word in _WORD.findall(text.casefold())]


@functools.lru_cache(maxsize=8_192)
def _stem(word: str) -> str:
    """Return what `converts`, `converting`, `converted` and `conversion` nearly have in common; not always a word."""
    if len(word) <= _SHORTEST_STEM or not word.isascii() or not word.isalpha():
        return word
    ending = next((one for one in _ENDINGS if word.endswith(one) and len(word) - len(one) >= _SHORTEST_STEM), "")
    stem = word.removesuffix(ending)
    if len(stem) > _SHORTEST_STEM and (stem[-1] in "ei" or stem[-1] == stem[-2]):
        return stem[:-1]
    return stem


def _terms_of_query(query: str) -> list[str]:
    words = _WORD.findall(_HUMP.sub(" ", query).casefold())
    telling = [word for word in words if word not in _STOP_WORDS]
    return list(dict.fromkeys(_stem(word) for word in telling or words))[:_TERMS]


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
        self._vocabulary = sorted(found)
        average = sum(lengths) / len(lengths) if lengths else 1.0
        norms = [_SATURATION * (1 - _LENGTH + _LENGTH * length / (average or 1.0)) for length in lengths]
        self._postings = {term: _gains(places, weights, norms) for term, (places, weights) in found.items()}

    def __len__(self) -> int:
        return len(self._infos)

    def search(self, query: str, limit: int = 10, among: Container[str] | None = None) -> list[Hit]:
        """Return the tools that fit *query* best, the best first; with *among*, only tools of those names."""
        scores: dict[int, float] = {}
        query = query[:QUERY_LIMIT]
        for term in _terms_of_query(query):
            for word, share in self._meant(term):
                for place, gain in zip(*self._postings[word], strict=True):
                    scores[place] = scores.get(place, 0.0) + share * gain
        best = max(scores.values(), default=0.0)
        for place in self._named.get(query.strip().casefold(), ()):
            scores[place] = scores.get(place, 0.0) + best + 1.0  # whoever knows the name means that tool
        wanted = scores if among is None else [place for place in scores if self._infos[place].name in among]
        first = heapq.nsmallest(min(limit, RESULT_LIMIT), wanted, key=lambda place: (-scores[place], place))
        return [Hit(self._infos[place], scores[place]) for place in first]

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


def _gains(places: "array[int]", weights: "array[float]", norms: Sequence[float]) -> "tuple[array[int], array[float]]":
    """Return the places of a term, and what it adds to the score of each."""
    rarity = math.log(1 + (len(norms) - len(places) + 0.5) / (len(places) + 0.5))
    gains = (
        rarity * weight * (_SATURATION + 1) / (weight + norms[place])
        for place, weight in zip(places, weights, strict=True)
    )
    return places, array("d", gains)


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
