"""Find tokens in a text: words first, then the patterns of what those words may begin, then what is no secret after all."""

import functools
import math
from collections import Counter
from collections.abc import Iterator

import re2
from agentos_pack_common.findings import Finding, encoded, in_characters, without_overlap

from agentos_pack_secret_guard.formats import FORMATS, TokenFormat

_PLACEHOLDERS = re2.compile(
    rb"(?i)x{5,}|\*{3,}|#{4,}|\.{3,}|_{4,}|0{8,}|1234567890|abcdefghijkl|redacted|placeholder|changeme|replace_?me|<[a-z_ -]+>|\$\{|\{\{|%\(|EXAMPLE$"
)
"""What stands in a token that was never one."""
_ORDINARY = re2.compile(
    rb"(?i)example|sample|dummy|your[_-]?|my[_-]?(?:api|secret|token|password|key)|insert|todo|undefined|null|none|true|false"
    rb"|password|passwd|username|secret|token|apikey|api[_-]key|access[_-]?key|localhost|process\.|env\.|config\.|self\.|this\."
)
"""What stands, besides, in a value that only a name calls secret."""
_WORD = re2.compile(rb"\w")
"""What does not follow a token: it would be a longer word."""


def find(text: str) -> list[Finding]:
    """Return what looks like a secret in *text*, in order and without overlap."""
    data = encoded(text)
    found = without_overlap(
        Finding(one.id, start, end) for one in _worth_trying(data) for start, end in _places(one, data)
    )
    return found if len(data) == len(text) else in_characters(found, data)


def _worth_trying(data: bytes) -> Iterator[TokenFormat]:
    words, formats = _index()
    hits = words.Match(data) or ()
    chosen = sorted({place for hit in hits for place in formats[hit]})
    return (FORMATS[place] for place in chosen)


@functools.cache
def _index() -> tuple[re2.Set, list[list[int]]]:
    """Return all words as one pattern, and for each the places of the formats that it may begin."""
    by_word: dict[str, list[int]] = {}
    for place, one in enumerate(FORMATS):
        for word in one.words:
            by_word.setdefault(word.lower(), []).append(place)
    options = _options()
    options.case_sensitive = False
    options.literal = True
    words = re2.Set.SearchSet(options)
    for word in by_word:
        words.Add(word)
    words.Compile()
    return words, list(by_word.values())


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return options


@functools.cache
def _compiled(pattern: str) -> re2._Regexp:
    return re2.compile(pattern.encode(), _options())


def _places(format: TokenFormat, data: bytes) -> Iterator[tuple[int, int]]:
    for match in _compiled(format.pattern).finditer(data):
        start, end = match.span(1)
        if not _WORD.match(data[end : end + 1]) and _is_secret(format, data[start:end]):
            yield start, end


def _is_secret(format: TokenFormat, value: bytes) -> bool:
    if _PLACEHOLDERS.search(value) or (format.is_named and _ORDINARY.search(value)):
        return False
    return _entropy(value) >= format.entropy and (not format.has_digit or any(byte in b"0123456789" for byte in value))


def _entropy(value: bytes) -> float:
    """Return the bits of a character of *value*, by how often each stands in it."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())
