"""Several lists of results as one, by reciprocal rank: what several providers rank high comes first."""

from collections.abc import Sequence

import attrs

from agentos_pack_web_search.hits import Hit

_DAMPING = 60
"""How much a first place counts over a second: the usual constant of the method."""


@attrs.frozen(kw_only=True)
class Found:
    """A result. `providers` says who found it; `published` is the provider's own words."""

    title: str
    url: str
    snippet: str
    published: str | None
    providers: list[str]


@attrs.define
class _Merged:
    hit: Hit
    best: int
    score: float = 0.0
    providers: list[str] = attrs.field(factory=list)

    def add(self, provider: str, hit: Hit, rank: int) -> None:
        self.score += 1 / (_DAMPING + rank)
        self.providers.append(provider)
        self.best = min(self.best, rank)
        if not self.hit.snippet:
            self.hit = attrs.evolve(self.hit, snippet=hit.snippet)
        if self.hit.published is None:
            self.hit = attrs.evolve(self.hit, published=hit.published)


def fuse(lists: Sequence[tuple[str, Sequence[Hit]]]) -> list[Found]:
    """Return the results of several providers, each page once, best first; ties go to the provider named first."""
    merged: dict[str, _Merged] = {}
    for provider, hits in lists:
        first_of_each = {hit.key: hit for hit in reversed(hits)}
        for rank, key in enumerate(dict.fromkeys(hit.key for hit in hits), start=1):
            hit = first_of_each[key]
            merged.setdefault(key, _Merged(hit, rank)).add(provider, hit, rank)
    ordered = sorted(merged.values(), key=lambda one: (-one.score, one.best))
    return [_result_of(one) for one in ordered]


def _result_of(one: _Merged) -> Found:
    hit = one.hit
    return Found(title=hit.title, url=hit.url, snippet=hit.snippet, published=hit.published, providers=one.providers)
