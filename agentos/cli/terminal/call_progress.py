"""What a call tells while it runs, on stderr: one line that changes in a terminal, a line for each step elsewhere."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from agentos.cli.terminal.harmless_text import clean, one_line
from agentos.cli.terminal.output import Out, plain
from agentos.extensions.event import Event
from agentos.tools.tool_events import ToolFinished, ToolProgress, ToolStarted

_LONGEST = 500
_LONGEST_ARGUMENTS = 200


def arguments_text(arguments: Mapping[str, Any], longest: int) -> str:
    """Return arguments in short, on one line: enough to tell calls of one tool apart."""
    shown = (f"{name}={json.dumps(plain(value), ensure_ascii=False)}" for name, value in arguments.items())
    text = one_line(" ".join(shown))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class ProgressLine:
    """Listens to a host. With *calls*, also says which tools begin and end."""

    def __init__(self, out: Out, *, calls: bool = False) -> None:
        self._out = out
        self._calls = calls
        self._changes = sys.stderr is not None and sys.stderr.isatty()
        self._has_line = False
        self.has_begun = False
        """Whether a call passed every check and ran."""
        self.arguments: dict[str | None, Mapping[str, Any]] = {}
        """What calls were made with, by their ids, as far as somebody says so; it is shown when they begin."""
        self._last: dict[Any, tuple[float, str]] = {}
        """Where lines can't change, a new one is written for each tenth of the way."""

    def __call__(self, event: Event) -> None:
        """Show what is worth showing."""
        self.has_begun = self.has_begun or isinstance(event, ToolStarted)
        if isinstance(event, ToolProgress):
            self._show_step(event)
        elif self._calls and isinstance(event, ToolStarted):
            said = arguments_text(self.arguments.pop(event.call_id, {}), _LONGEST_ARGUMENTS)
            self._print_line(f"→ {one_line(event.tool)} {said}".rstrip())
        elif self._calls and isinstance(event, ToolFinished):
            sign, end = ("✓", "") if event.success else ("✗", f": {event.error}")
            self._print_line(f"{sign} {one_line(event.tool)}{end} ({event.seconds:.1f} s)")

    def clear(self) -> None:
        """Take the line that changes off the screen."""
        if self._has_line:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._has_line = False

    def status(self, text: str) -> None:
        """Put *text* on the line that changes; where there is none, nothing is said."""
        if self._changes:
            self._out.end_line()
            sys.stderr.write(f"\r\x1b[2K{_fit_to_width(text, max(10, self._out.errors.width - 1))}")
            sys.stderr.flush()
            self._has_line = True

    def _print_line(self, text: str) -> None:
        self.clear()
        self._out.note(text)

    def _show_step(self, event: ToolProgress) -> None:
        self.status(_step_text(event))
        now = (_tenths_done(event), event.message)
        if not self._changes and self._last.get(event.call_id) != now:
            self._last[event.call_id] = now
            self._out.note(_step_text(event))


def _tenths_done(event: ToolProgress) -> float:
    """Return how many tenths of the way are done, as far as the tool says so in numbers."""
    done, total = event.done, event.total
    if not isinstance(done, int | float) or not isinstance(total, int | float | None):
        return 0
    return done if not total else round(done / total, 1)


def _step_text(event: ToolProgress) -> str:
    """Put into words how far a call is: what a tool says of itself may be anything."""
    of = f" of {_number_text(event.total)}" if event.total is not None else ""
    return one_line(f"{event.tool}: {_number_text(event.done)}{of} {event.message}")[:_LONGEST]


def _number_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)[:20]


def _fit_to_width(text: str, width: int) -> str:
    """Cut a line to so many columns, so that it can be taken off again."""
    from rich.cells import set_cell_size

    return set_cell_size(clean(text), width).rstrip()
