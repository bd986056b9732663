"""The name that was probably meant."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the word of *known* that *word* was probably meant to be."""
    lowered = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or nothing when nothing is near."""
    match = nearest(word, known)
    return f"; did you mean {match!r}?" if match else ""


def is_one_letter_away(word: str, known: str) -> bool:
    """Tell whether *word* is *known* with one letter more, less or other, or with two neighbours in turn."""
    if abs(len(word) - len(known)) > 1 or word == known:
        return False
    start = next((number for number, (a, b) in enumerate(zip(word, known, strict=False)) if a != b), None)
    if start is None:
        return True  # one has a letter more at its end
    left, right = word[start:], known[start:]
    ways = [(left[1:], right[1:]), (left[1:], right), (left, right[1:])]
    return any(a == b for a, b in ways) or (left[:2] == right[1::-1] and left[2:] == right[2:])
