"""What the library logs, as the command writes it to stderr."""

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import TextIO

from agentos.cli.terminal.harmless_text import clean

LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
"""What is shown: to somebody who is told otherwise, with no `-v`, with one, and with two."""


_TRACEBACK = re.compile(r"\n[ +|]*(?:Exception Group )?Traceback \(most recent call last\):")
_FRAME = re.compile(r'^[ |]*File "(.+)", line (\d+)', re.MULTILINE)


class _Formatter(logging.Formatter):
    """Writes out what a terminal would obey: packs log too. Of a traceback, `is_brief` leaves the last place."""

    def __init__(self, *, is_brief: bool) -> None:
        super().__init__("agentos: %(message)s")
        self._is_brief = is_brief

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return clean(_without_traceback(text) if self._is_brief else text)


def _without_traceback(text: str) -> str:
    found = _TRACEBACK.search(text)
    if found is None:
        return text
    frames = _FRAME.findall(text, found.end())
    place = f" at {frames[-1][0]}:{frames[-1][1]}" if frames else ""
    return f"{text[: found.start()]}{place}; -v shows the traceback"


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to stderr. While `kept` is a list, what comes waits there."""

    kept: list[logging.LogRecord] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.kept is None:
            super().emit(record)
        else:
            self.kept.append(record)


def show_logs(verbosity: int) -> None:
    """Write what agentos logs to stderr, from now on and nowhere else; the more, the more verbose.

    What its store's library has to say is written so, too: it would go there anyway, with a traceback.
    """
    handler = _Handler()
    handler.setFormatter(_Formatter(is_brief=verbosity <= 0))
    level = LEVELS[min(verbosity + 1, len(LEVELS) - 1)]
    for name, least in (("agentos", level), ("sqlalchemy", max(level, logging.WARNING))):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(least)
        logger.propagate = False


@contextlib.contextmanager
def hold_logs() -> Iterator[set[str]]:
    """Let what is logged wait for the end of the block. Lines about what is in the set by then are not written.

    The set is for packs that failed, by key, and for tools whose definition is held back: the command tells of them.
    """
    told: set[str] = set()
    waiting: list[logging.LogRecord] = []
    handlers = [one for one in logging.getLogger("agentos").handlers if isinstance(one, _Handler)]
    for handler in handlers:
        handler.kept = waiting
    try:
        yield told
    finally:
        for handler in handlers:
            handler.kept = None
            for record in waiting:
                if not {getattr(record, name, None) for name in ("failed_pack", "held_back")} & told:
                    handler.handle(record)
