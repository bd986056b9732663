"""Finding a secret's value in what a pack tells, also when it is cut, turned round or written otherwise."""

import base64
import re
from collections.abc import Iterator, Mapping

import attrs

from agentos.testing.fakes import canary_of

_SLICE = 6
"""So many characters of a canary in a row, as they are, are the canary: nobody writes them by chance."""
_LOOSE_SLICE = 8
"""So many are it in small or capital letters, backwards, or with something between them."""
_SHORTEST = 8
_BETWEEN = re.compile(r"\\[nrt]|[\W_]+")


@attrs.frozen
class _Forms:
    """What gives a value away."""

    exact: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    """In small letters, to be sought in small letters."""
    spread: frozenset[str] = frozenset()
    """The same, to be sought in nothing but letters and digits."""


class Canaries:
    """Values that must not turn up, by the ids of their secrets."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._forms_of = {id: _forms_of(id, value) for id, value in values.items() if len(value) >= _SHORTEST}

    def found_in(self, text: str) -> list[str]:
        """Return the ids whose value, or a part of it, is in *text*."""
        low = text.lower()
        squeezed = _BETWEEN.sub("", low)
        return [
            id
            for id, forms in self._forms_of.items()
            if _any_in(forms.exact, text) or _any_in(forms.loose, low) or _any_in(forms.spread, squeezed)
        ]


def _any_in(forms: frozenset[str], text: str) -> bool:
    return any(form in text for form in forms)


def _forms_of(id: str, value: str) -> _Forms:
    """Return what gives a value away. Of one that is not a canary only the whole counts: it may be ordinary words."""
    low, encoded = value.lower(), frozenset(_encoded(value))
    if value != canary_of(id):
        return _Forms(loose=encoded | {low, low[::-1]})
    parts = frozenset((*_slices(low, _LOOSE_SLICE), *_slices(low[::-1], _LOOSE_SLICE)))
    return _Forms(exact=frozenset(_slices(value, _SLICE)), loose=encoded | parts, spread=parts)


def _slices(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(len(text) - size + 1))


def _encoded(value: str) -> Iterator[str]:
    data = value.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield base64.b64encode(data).decode().rstrip("=").lower()
