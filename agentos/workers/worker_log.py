"""What a worker says: its output and its log records, as its pack's log. Bounded, masked, and the last of it kept."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from agentos.model.pack_context import PackLogger
from agentos.processes.lines import EXCERPT_SIZE

_KEPT = 500
_NOISE = 1_000
"""How many lines of one process are logged; the last ones are kept all the same."""
_STREAMS = {1: "stdout", 2: "stderr"}
_RECORD_LIMIT = 4_000
_TOO_LONG = b"(a line that is too long to be shown)"


class WorkerLog:
    """Takes what one worker says, through all of its processes."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self.logger: Any = None
        """Where it is written."""
        self._lines: deque[tuple[str, str | bytes]] = deque(maxlen=_KEPT)
        self._count = 0
        self._last_words = b""

    def begin(self, logger: PackLogger) -> None:
        """Begin to count anew, for a new process, and write to *logger*."""
        self.logger = logger
        self._count, self._last_words = 0, b""

    def note(self, fd: int, line: bytes, is_whole: bool) -> None:
        """Take a line of a process's output; of one that came in parts only that it came: it may have half a value."""
        if not line.strip():
            return
        line = line if is_whole else _TOO_LONG
        if fd != 1:
            self._last_words = line
        self._lines.append((_STREAMS[fd], line))
        if self._is_heard():
            self.logger.info("%s: %s", _STREAMS[fd], self._shown(line))

    def log(self, level: int, text: str, *args: object) -> None:
        """Take a log record, as a logger does."""
        text = self._mask(text % args)[:_RECORD_LIMIT]  # masked first: half a value would be left
        self._lines.append((logging.getLevelName(level).lower(), text))
        if self._is_heard():
            self.logger.log(level, "%s", text)

    def _is_heard(self) -> bool:
        self._count += 1
        if self._count == _NOISE + 1:
            self.logger.warning("its process said more than %s lines; the rest is not logged", _NOISE)
        return self._count <= _NOISE

    @property
    def last_words(self) -> str:
        """Return the last line of the process's standard error, as it may be shown."""
        return self._shown(self._last_words) if self._last_words else ""

    def lines(self) -> list[str]:
        """Return the last lines, as they may be shown."""
        return [f"{name}: {self._shown(line)}" for name, line in self._lines]

    def _shown(self, line: str | bytes) -> str:
        text = line if isinstance(line, str) else line.decode("utf-8", "replace")
        masked = self._mask(text)
        cut = masked if len(masked) <= EXCERPT_SIZE else f"{masked[:EXCERPT_SIZE]}..."
        return "".join(char if char.isprintable() else " " for char in cut)
