"""A pattern in the lines of many texts: literal ones here, regular expressions in a process that can be ended."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from agentos_pack_common import Limits, run_process

from agentos_pack_files import _lines
from agentos_pack_files._clock import Clock

Places = list[tuple[int, int]]
"""Lines and columns, from 1."""

_PROGRAM = Path(_lines.__file__)
_MEMORY = 512 * 1024 * 1024
_ANSWER = 4_000_000
_PIECE = 1_000_000
_BATCH = 4_000_000
_TOO_MUCH = (
    "pattern: matching took too much time or memory and was stopped; write it without repetitions within or beside "
    "repetitions, search for a literal text, or name fewer files"
)


class LiteralMatcher:
    """Finds a text as it is."""

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        self._pattern = re.compile(re.escape(pattern), re.IGNORECASE if ignore_case else re.NOFLAG)

    async def find(self, texts: Sequence[str], limit: int, clock: Clock) -> list[Places]:  # noqa: ARG002 - as the other
        """Return, of each text, where the pattern is found; not more than *limit* of each."""
        return await asyncio.to_thread(lambda: [self._in(text, limit) for text in texts])

    def _in(self, text: str, limit: int) -> Places:
        # Most files do not have it: one search through the whole text costs less than to take it apart.
        return list(_lines.find(self._pattern, text, limit)) if self._pattern.search(text) else []


@attrs.frozen
class _Piece:
    """A part of a text: whole lines, of which the first has *line* before it."""

    index: int
    line: int
    data: bytes = attrs.field(repr=False)


@attrs.frozen
class RegexMatcher:
    """Finds a regular expression, by a process for every few megabytes."""

    pattern: str
    ignore_case: bool
    seconds: float

    async def find(self, texts: Sequence[str], limit: int, clock: Clock) -> list[Places]:
        """Return, of each text, where the pattern is found; raise ValueError if that takes too long or too much."""
        found: list[Places] = [[] for _ in texts]
        for batch in _batches(texts):
            for piece, places in zip(batch, await self._ask(batch, limit, clock), strict=True):
                found[piece.index] += [(piece.line + line, column) for line, column in places]
        return [places[:limit] for places in found]

    async def _ask(self, batch: Sequence[_Piece], limit: int, clock: Clock) -> list[Places]:
        sizes = [len(piece.data) for piece in batch]
        head = {"pattern": self.pattern, "ignore_case": self.ignore_case, "limit": limit, "sizes": sizes}
        stdin = b"\n".join([json.dumps(head).encode(), b"".join(piece.data for piece in batch)])
        seconds = max(min(self.seconds, clock.left), 0.1)
        limits = Limits(seconds=seconds, memory_bytes=_MEMORY, output_bytes=_ANSWER, file_bytes=0)
        done = await run_process([sys.executable, "-I", "-S", str(_PROGRAM)], stdin=stdin, limits=limits)
        answers = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]
        if answers and "error" in answers[0]:
            raise ValueError(f"pattern: not a regular expression of Python: {answers[0]['error']}")
        if len(answers) != len(batch) + 1:
            raise ValueError(_TOO_MUCH)
        return answers[1:]


def _batches(texts: Sequence[str]) -> Iterator[list[_Piece]]:
    batch: list[_Piece] = []
    size = 0
    for piece in (piece for index, text in enumerate(texts) for piece in _pieces(index, text)):
        if batch and size + len(piece.data) > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += len(piece.data)
    if batch:
        yield batch


def _pieces(index: int, text: str) -> Iterator[_Piece]:
    """Take a text apart after line ends; what a line has beyond a piece is not searched anyway."""
    start = line = 0
    while start < len(text):
        end = _after_line(text, start, start + _PIECE)
        part = text[start : min(end, start + 2 * _PIECE)]
        yield _Piece(index, line, part.encode())
        line += len(_lines.LINE_END.findall(part)) or 1
        start = end


def _after_line(text: str, start: int, at: int) -> int:
    """Return where a line ends: the last before *at*, else the first after it."""
    if at >= len(text):
        return len(text)
    before = max(text.rfind("\n", start, at), text.rfind("\r", start, at - 1)) + 1
    if before > start:
        return before
    found = _lines.LINE_END.search(text, at)
    return found.end() if found else len(text)
