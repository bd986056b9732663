"""What the library logs, as the command writes it to stderr."""

import contextlib
import json
import logging
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TextIO

from agentos.cli.terminal.harmless_text import clean

LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
"""What is shown: to somebody who is told otherwise, with no `-v`, with one, and with two."""


_TRACEBACK = re.compile(r"\n[ +|]*(?:Exception Group )?Traceback \(most recent call last\):")
_FRAME = re.compile(r'^[ |]*File "(.+)", line (\d+)', re.MULTILINE)


FORMATS = ("text", "json")
"""How a program that runs for long writes lines: for people with the time first, or each as a JSON object."""


class _Formatter(logging.Formatter):
    """Writes out what a terminal would obey: packs log too. Of a traceback, `is_brief` leaves the last place.

    style: one of FORMATS; None is for a command that is over soon, where the time would say nothing.
    """

    def __init__(self, *, is_brief: bool, style: str | None) -> None:
        super().__init__()
        self._is_brief = is_brief
        self._lines = style

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        text = clean(_without_traceback(text) if self._is_brief else text)
        if self._lines is None:
            return _fitted(f"agentos: {text}")
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._lines == "text":
            return f"{time} {record.levelname} {record.name}: {text}"
        return json.dumps({"time": time, "level": record.levelname.lower(), "logger": record.name, "message": text})


def _fitted(text: str) -> str:
    """Return *text* with its lines broken where stderr's terminal ends, if it is one."""
    if not sys.stderr.isatty():
        return text
    width = os.get_terminal_size(sys.stderr.fileno()).columns or len(text)
    lines = text.splitlines() or [""]
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in lines
    )


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


def write_line(level: str, text: object) -> None:
    """Write what the command itself has to say as a line of the log, however much of it is shown."""
    number = logging.getLevelNamesMapping()[level.upper()]
    record = logging.LogRecord("agentos.cli", number, "", 0, str(text), None, None)
    for handler in logging.getLogger("agentos").handlers:
        handler.handle(record)


def show_logs(verbosity: int, style: str | None = None) -> None:
    """Write what agentos logs to stderr, from now on and nowhere else; the more, the more verbose.

    What its store's library has to say is written so, too: it would go there anyway, with a traceback.
    """
    handler = _Handler()
    handler.setFormatter(_Formatter(is_brief=verbosity <= 0, style=style))
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
