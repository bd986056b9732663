"""Where the destinations of a call came from: the user's words, or what a tool returned."""

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import re2

_SESSIONS = 1_000
"""How many sessions are remembered; the one that was used least recently is forgotten first."""
_WORDS = 100_000
_RESULTS = 1_000_000
"""How many characters of a session are remembered, of the user and of tools; the oldest are forgotten first."""
_VALUES = 200
"""How many destinations of one call are looked at."""
_SHORTEST = 4

_DESTINATIONS = re2.compile(
    r"(?i)(?:^|[_\W])(?:to|recipients?|cc|bcc|e?-?mails?|mail|address(?:es)?|urls?|links?|uri|href|hosts?|domains?|endpoint|webhook|iban|"
    r"accounts?|payee|beneficiary|paths?|files?|filenames?|folders?|director(?:y|ies)|destinations?|targets?|channels?|users?|usernames?|"
    r"participants?|invitees?|attendees?|phones?|phone_numbers?|repo|repository|bucket|server|wallet)(?:$|[_\W])"
)
"""What an argument is called that says where something goes."""
_SHAPES = re2.compile(
    r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|(?i:https?|ftp|wss?|s3|file)://[^\s\"'<>)]{3,}|(?i:www\.)[\w-]+(?:\.[\w-]+)+[^\s\"'<>)]*"
    r"|\b[A-Z]{2}\d{2}[A-Z0-9]{11,30}\b|\b0x[0-9a-fA-F]{40}\b"
)
"""What is a destination wherever it stands: an address, a link, an account."""


@attrs.frozen
class Trace:
    """A destination that came from a tool and not from the user."""

    argument: str
    """The way to it in the arguments."""
    tool: str
    """The tool that returned it."""


@attrs.define
class _Session:
    words: deque[str] = attrs.field(factory=deque)
    results: deque[tuple[str, str]] = attrs.field(factory=deque)
    word_size: int = 0
    result_size: int = 0

    def hear(self, text: str) -> None:
        self.words.append(text[-_WORDS:].casefold())
        self.word_size += len(self.words[-1])
        while self.word_size > _WORDS and len(self.words) > 1:
            self.word_size -= len(self.words.popleft())

    def see(self, tool: str, text: str) -> None:
        self.results.append((tool, text[:_RESULTS].casefold()))
        self.result_size += len(self.results[-1][1])
        while self.result_size > _RESULTS and len(self.results) > 1:
            self.result_size -= len(self.results.popleft()[1])


class Memory:
    """What users said and tools returned, by session, within limits."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    def of(self, principal: str, session: Mapping[str, Any]) -> _Session:
        """Return what is remembered of a session; calls without one are one session of their principal."""
        key = principal, str(session.get("id", ""))[:200]
        found = self._sessions.setdefault(key, _Session())
        self._sessions.move_to_end(key)
        while len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return found


def traced(arguments: Mapping[str, Any], session: _Session) -> list[Trace]:
    """Return the destinations in *arguments* that stand in an earlier result and not in the user's words."""
    found: dict[str, Trace] = {}
    for (place, value), _ in zip(destinations(arguments), range(_VALUES), strict=False):
        sought = value.casefold()
        if place not in found and not any(sought in words for words in session.words):
            tool = next((tool for tool, text in reversed(session.results) if sought in text), None)
            if tool is not None:
                found[place] = Trace(place, tool)
    return list(found.values())


def destinations(value: Any, place: str = "", *, is_named: bool = False) -> Iterator[tuple[str, str]]:
    """Yield what says where something goes: arguments by their name, and addresses, links and accounts in any text."""
    if isinstance(value, str):
        if is_named and len(value.strip()) >= _SHORTEST:
            yield place, value.strip()
        for match in _SHAPES.finditer(value):
            yield place, match.group().rstrip(".,;:!?")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            inner = f"{place}.{key}" if place else str(key)
            yield from destinations(item, inner, is_named=is_named or bool(_DESTINATIONS.search(_words(str(key)))))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from destinations(item, f"{place}[{number}]", is_named=is_named)


def _words(name: str) -> str:
    """Return a name with its words apart, however it is spelled."""
    return "".join(f"_{one}" if one.isupper() else one for one in name)
