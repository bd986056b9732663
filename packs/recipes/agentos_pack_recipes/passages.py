"""Which passages of a text are about a question: those that have most of its words."""

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w{3,}")
_COMMON_WORDS = """about and are been but can could did does for from had has have how into its may not our should than
that the their them then there these they this those was were what when where which while who why will with would you
your"""
_COMMON = frozenset(_COMMON_WORDS.split())
_LONGEST = 600
_SHORTEST = 40


def words_of(text: str) -> set[str]:
    """Return the words of a question that say what it is about."""
    return {word for word in _WORD.findall(text.lower()) if word not in _COMMON}


def best_passages(text: str, question: str, limit: int) -> list[str]:
    """Return the passages of *text* that have most words of *question*, in the order of the text."""
    wanted = words_of(question)
    between = r"\n\s*\n" if "\n\n" in text.strip() else r"\n"
    passages = [_clipped(part) for part in re.split(between, text) if len(part.strip()) >= _SHORTEST]
    scored = [(len(wanted & set(_WORD.findall(part.lower()))), -index) for index, part in enumerate(passages)]
    best = sorted((score for score in scored if score[0]), reverse=True)[:limit]
    return [passages[-index] for _, index in sorted(best, key=lambda one: -one[1])]


def _clipped(part: str) -> str:
    line = " ".join(part.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rsplit(' ', 1)[0]}…"


def quoted(passages: Sequence[str]) -> str:
    """Return passages as quotations in Markdown: none of them can end its quotation."""
    return "\n>\n".join(f"> {passage}" for passage in passages)
