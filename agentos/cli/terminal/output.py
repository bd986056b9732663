"""What the command says: to people by rich, to programs as one JSON document.

Text may come from packs, files and models: it is never read as markup, and what a terminal would obey is written out.
"""

import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO

from agentos.cli.terminal.harmless_text import clean, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

__all__ = ["Out", "clean", "one_line", "plain"]

_UNBOUNDED = 1_000_000
"""How wide lines may be when no terminal limits them: whoever reads from a pipe wants whole rows."""
_STDOUT, _STDERR = 1, 2
_NARROW = 60
"""In less than so many columns a table of several columns is written as records."""


def plain(value: Any) -> Any:
    """Turn *value* into what JSON knows: frozen values into objects, times and paths into text, sets into lists.

    Fields of frozen values are spelt in camelCase, as everything that the command itself names; other keys stay.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(type(value), "__attrs_attrs__"):
        names = [field.name for field in type(value).__attrs_attrs__ if field.repr]
        return {_camel(name): plain(getattr(value, name)) for name in names if not name.startswith("_")}
    return value.as_posix() if isinstance(value, PurePath) else str(value)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Out:
    """Says things. With `--json` only `data` writes to stdout, and what is meant for people is left out."""

    def __init__(self, *, is_json: bool = False, color: bool = True, stdout: TextIO | None = None) -> None:
        self.is_json = is_json
        self.color = color
        self._file = stdout or sys.stdout
        self.has_data = False
        self._is_mid_line = False
        self.write_log: Callable[[str, object], None] | None = None
        """Writes what is said on stderr as a line of the log, while a program runs that has one."""
        if isinstance(self._file, io.TextIOWrapper):  # a terminal that lacks a sign is no reason to stop
            self._file.reconfigure(errors="backslashreplace")

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Keep stdout for what is said here: what foreign code writes to it, in whatever way, goes to stderr."""
        with contextlib.redirect_stdout(_stderr_copy(sys.stderr)), _separate_stdout(self._file) as file:
            before = self._file
            self._use(file)
            try:
                yield
            finally:
                self._use(before)

    def _use(self, file: TextIO) -> None:
        self._file = file
        if "console" in self.__dict__:
            self.console.file = file

    # -- for programs --------------------------------------------------------------------------------------------

    def data(self, value: Any) -> None:
        """Write *value* as the command's one JSON document, if JSON was asked for."""
        if self.is_json and self.has_data:
            raise RuntimeError("a command answers with one JSON document, and this is the second")
        self.line(value, indent=2)

    def line(self, value: Any, *, indent: int | None = None) -> None:
        """Write *value* as one line of JSON, if JSON was asked for: for commands that tell of things as they happen."""
        if self.is_json:
            self.has_data = True
            self._file.write(json.dumps(plain(value), indent=indent) + "\n")
            self._file.flush()

    # -- for people ----------------------------------------------------------------------------------------------

    @cached_property
    def console(self) -> "Console":
        """Return the console of stdout: as wide as the terminal, coloured only there."""
        return self._console(self._file)

    @cached_property
    def errors(self) -> "Console":
        """Return the console of stderr."""
        return self._console(sys.stderr)

    def _console(self, file: TextIO) -> "Console":
        from rich.console import Console

        bare = not self.color or bool(os.environ.get("NO_COLOR"))
        return Console(
            file=file,
            color_system=None if bare else "auto",
            width=None if file.isatty() else _UNBOUNDED,
            markup=False,
            highlight=False,
            emoji=False,
        )

    def show(self, renderable: "RenderableType") -> None:
        """Show a rich object, cleaned of whatever foreign text in it would make a terminal do."""
        if not self.is_json:
            self._write(self.console, renderable)

    def say(self, text: object = "", style: str | None = None) -> None:
        """Say *text* as it is."""
        if not self.is_json:
            self._write(self.console, _text(text, style))

    def raw(self, text: str) -> None:
        """Write *text* of our own as it is, on lines as long as they are."""
        if not self.is_json:
            self._file.write(text if text.endswith("\n") else f"{text}\n")
            self._file.flush()

    def part(self, text: str) -> None:
        """Say a part of a text that comes bit by bit; whatever else is said begins a line of its own."""
        if text and not self.is_json:
            self._file.write(clean(text))
            self._file.flush()
            self._is_mid_line = not text.endswith("\n")

    def end_line(self) -> None:
        """End the line that parts of a text left open."""
        if self._is_mid_line:
            self._is_mid_line = False
            self._file.write("\n")
            self._file.flush()

    def warn(self, text: object) -> None:
        """Say on stderr what deserves attention; with JSON too."""
        if self.write_log is not None:
            self.write_log("warning", text)
            return
        self._label("warning: ", "yellow", text)

    def fail(self, text: object, hint: object = None) -> None:
        """Say on stderr what went wrong, and the way out."""
        if self.write_log is not None:
            self.write_log("error", f"{text}\nhint: {hint}" if hint else text)
            return
        self._label("error: ", "bold red", text)
        if hint:
            self._label("hint: ", "cyan", hint)

    def note(self, text: object) -> None:
        """Say something about the work itself on stderr, with JSON too: what is done goes to stdout."""
        if self.write_log is not None:
            self.write_log("info", text)
            return
        self._write(self.errors, _text(text, "bright_black"))

    def _label(self, label: str, style: str, text: object) -> None:
        from rich.text import Text

        self._write(self.errors, Text.assemble((label, style), clean(text)))

    def _write(self, console: "Console", renderable: "RenderableType") -> None:
        from agentos.cli.terminal.drawing import Cleaned

        self.end_line()
        with console.capture() as capture:
            console.print(Cleaned(renderable), soft_wrap=console.width >= _UNBOUNDED)
        text = capture.get()
        if "\x1b" not in text:  # padding is for boxes; in plain text it is litter
            text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
        console.file.write(text)
        console.file.flush()

    def table(
        self, columns: Sequence[str], rows: "Iterable[Sequence[Any]]", *, title: str | None = None, empty: str = ""
    ) -> None:
        """Show rows of text; a cell may be `(text, style)`. Without rows, *empty* is said; narrow, rows are records."""
        if self.is_json:
            return
        from agentos.cli.terminal.drawing import draw_records, draw_table, natural_width

        cells = [[_cell(cell) for cell in row] for row in rows]
        if not cells:
            self.say(empty)
        elif self.console.width < _NARROW and natural_width(columns, cells) > self.console.width:
            self.show(draw_records(columns, cells, title))
        else:
            self.show(draw_table(columns, cells, title, has_line=self.console.width < _UNBOUNDED))

    def items(self, rows: "Iterable[tuple[tuple[str, str], str]]") -> None:
        """Show texts behind signs; a sign has its style."""
        if not self.is_json:
            from agentos.cli.terminal.drawing import draw_items

            self.show(draw_items([(_cell(sign), _cell(text)) for sign, text in rows]))

    def facts(self, rows: "Iterable[tuple[str, Any]]") -> None:
        """Show names and values, one below the other."""
        if not self.is_json:
            from agentos.cli.terminal.drawing import draw_facts

            self.show(draw_facts([(label, _cell(value)) for label, value in rows]))

    def tree(self, label: str, children: Iterable[str]) -> None:
        """Show a label with branches."""
        if not self.is_json:
            from agentos.cli.terminal.drawing import draw_tree

            self.show(draw_tree(label, children))

    # -- asking --------------------------------------------------------------------------------------------------

    @property
    def can_ask(self) -> bool:
        """Tell whether there is a person at a terminal who could answer."""
        return sys.stdin is not None and sys.stdin.isatty() and not self.is_json

    def ask(self, question: str, *, hidden: bool = False, default: str | None = None) -> str:
        """Ask for text; *hidden* does not show what is typed. Without a person to answer it is a usage error."""
        if not self.can_ask:
            if default is not None:
                return default
            import click

            raise click.UsageError(f"{question}: there is no terminal to ask at; give it on the command line")
        if hidden and os.name == "nt":  # pragma: no cover - a terminal of another kind
            import getpass

            return getpass.getpass(f"{clean(question)}: ", stream=sys.stderr)
        if hidden:
            with _no_echo():
                return self._read(f"{clean(question)}: ")
        shown = f" [{default}]" if default else ""
        return self._read(f"{clean(question)}{shown}: ").strip() or (default or "")

    def _read(self, prompt: str) -> str:
        import click

        from agentos.cli.terminal.signals import wait_to_read

        sys.stderr.write(prompt)
        sys.stderr.flush()
        try:
            wait_to_read(sys.stdin)
            return input()
        except EOFError:
            sys.stderr.write("\n")
            raise click.Abort from None


@contextlib.contextmanager
def _no_echo() -> Iterator[None]:
    """Keep the terminal from showing what is typed, and forget what was typed before."""
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    silent = [*before]
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSAFLUSH, silent)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        sys.stderr.write("\n")


def _stderr_copy(stderr: TextIO) -> TextIO:
    """Return a file that leads where *stderr* does: whoever closes or detaches it closes nothing else."""
    try:
        descriptor = stderr.fileno()
    except (OSError, ValueError):  # a stream without a descriptor
        return stderr
    return os.fdopen(descriptor, "w", buffering=1, encoding=stderr.encoding, errors=stderr.errors, closefd=False)


@contextlib.contextmanager
def _separate_stdout(file: TextIO) -> Iterator[TextIO]:
    """Give a file in the place of stdout, which becomes stderr meanwhile for whoever writes to its descriptor."""
    try:
        is_real = file.fileno() == _STDOUT
    except (OSError, ValueError):  # a stream without a descriptor: nobody else writes there
        is_real = False
    if not is_real or sys.stderr is None:
        yield file
        return
    file.flush()
    with os.fdopen(os.dup(_STDOUT), "w", encoding=file.encoding, errors=file.errors) as own:
        os.dup2(_STDERR, _STDOUT)
        try:
            yield own
        finally:
            os.dup2(own.fileno(), _STDOUT)


def _text(text: object, style: str | None) -> "Text":
    from rich.text import Text

    return text if isinstance(text, Text) else Text(clean(text), style=style or "")


def _cell(cell: Any) -> "Text":
    from rich.text import Text

    if isinstance(cell, Text):
        return cell
    text, style = cell if isinstance(cell, tuple) else (cell, "")
    return Text("" if text is None else clean(text), style=style)
