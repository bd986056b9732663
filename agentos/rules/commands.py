"""What a command line runs, as far as its words show it, and patterns over that.

The rules are those of a POSIX shell (not of cmd.exe or PowerShell). The text is hostile: `parse` never guesses. Where
anything may run, be written or be put in that the words don't show, the line is `opaque`. Whoever asks in order to be
more cautious takes an opaque line for a match, whoever asks in order to be less cautious does not.

A pattern over commands is a fence, not a wall: what a program does once it runs (`python x.py`, `make`) is not in its
words. Programs that are known to run others (`agentos.rules.launchers`) are looked through.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import attrs

from agentos.rules.argument_paths import LONGEST_TEXT, MOST_VALUES, Glob
from agentos.rules.launchers import Words, is_unknown, launches, name_of

LONGEST_COMMAND: Final = 10_000
DEEPEST_COMMAND: Final = 3
MOST_OPTIONS: Final = 16
MOST_INNER_TEXT: Final = 100_000
"""Characters of command lines within a command that are looked at; with more it is not understood."""


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


@attrs.frozen
class Commands:
    """The simple commands of a line, each as its words.

    `opaque` tells that the words don't show everything. `expanding` has the places `(part, word)` of arguments in which
    a shell still puts other text: file names for `*.py`, a folder for `~/x`.
    """

    parts: tuple[Words, ...]
    opaque: bool
    expanding: frozenset[tuple[int, int]] = frozenset()


@attrs.frozen
class _Word:
    """A word without its quotes. In `glob`, what was quoted stands for itself."""

    text: str
    glob: str
    expands: bool


_ENDS_IN_MIDAIR = ("&&", "||", "|", "|&")
_BLANK_OR_OPERATOR = r"(?P<blank>[ \t]+) | (?P<operator>\n|;|&&|\|\||\|&|&|\|)"
_SUBSTITUTION = r"(?P<open>\$\(|[<>]?\() | (?P<close>\)) | (?P<backtick>`)"
_PLAIN: Final = re.compile(
    rf"""
      (?P<literal>[^\s;&|<>(){{}}$`"'\\\#~!*?\[]+|!(?=[\s=]|\Z))
    | {_BLANK_OR_OPERATOR}
    | \\(?P<escaped>[^\n]) | '(?P<single>[^']*)' | (?P<double>")
    | (?P<wild>[*?\[~]) | (?P<comment>\#)
    | {_SUBSTITUTION}
    | (?P<redirection>[<>]) | (?P<brace>[{{}}]) | (?P<expansion>\$) | (?P<history>!)
    | (?P<continuation>\\\n) | (?P<odd>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED: Final = re.compile(
    r"""
      (?P<single>[^"\\$`!]+|\\(?![$`"\\\n])|!(?=[\s="]|\Z))
    | \\(?P<escaped>[$`"\\]) | (?P<double>")
    | (?P<open>\$\() | (?P<backtick>`) | (?P<expansion>\$) | (?P<history>!)
    | (?P<continuation>\\\n)
    """,
    re.VERBOSE | re.DOTALL,
)
_FAULTS: Final = {
    "open": "a substitution or subshell",
    "close": "a parenthesis",
    "backtick": "a substitution",
    "redirection": "a redirection",
    "brace": "a brace",
    "expansion": "an expansion by `$`",
    "history": "a `!` that an interactive shell replaces",
    "continuation": "a line continued by a backslash",
    "odd": "a quote or backslash without its other half",
}
_RESERVED: Final = _words(
    "! [[ ]] case coproc do done elif else end esac fi for foreach function if in nocorrect noglob repeat select then",
    "time until while",
)


@attrs.define
class _Frame:
    """One level of a line: the line itself, or a substitution in it. `pieces` are of the word at hand."""

    closing: str = ""
    words: list[_Word] = attrs.field(factory=list)
    pieces: list[tuple[str, bool]] = attrs.field(factory=list)
    quoted: bool = False
    wild: bool = False
    operator: str = "\n"


@attrs.define
class _Scanner:
    """Takes the tokens of a line one by one, without recursion. Substitutions are commands like any other."""

    parts: list[list[_Word]] = attrs.field(factory=list)
    faults: list[str] = attrs.field(factory=list)
    frames: list[_Frame] = attrs.field(factory=lambda: [_Frame()])

    @property
    def frame(self) -> _Frame:
        return self.frames[-1]

    def take(self, kind: str, text: str) -> None:
        if kind in _FAULTS:
            self.faults.append(_FAULTS[kind])
        match kind:
            case "blank":
                self.end_word()
            case "operator":
                self.end_part(text)
            case "escaped" | "single":
                self.frame.pieces.append((text, True))
            case "double":
                self.frame.pieces.append(("", True))
                self.frame.quoted = not self.frame.quoted
            case "open" | "close" | "backtick":
                self.nest(text)
            case "redirection":
                self.end_word()
            case _:
                self.plain(kind, text)

    def plain(self, kind: str, text: str) -> None:
        before = self.frame.pieces
        if kind == "comment" and not before:
            self.faults.append("a comment")
        if kind == "wild" and (text != "~" or not before or before[-1][0].endswith(("=", ":"))):
            self.frame.wild = True
        before.append((text, False))

    def nest(self, text: str) -> None:
        if text == self.frame.closing:
            self.leave()
        elif text == ")":
            self.end_part(";")
        else:
            self.frames.append(_Frame("`" if text == "`" else ")"))

    def leave(self) -> None:
        self.end_part("\n")
        self.frames.pop()

    def end_word(self) -> None:
        frame = self.frame
        if frame.pieces:
            text = "".join(piece for piece, _ in frame.pieces)
            glob = "".join(_escaped(piece) if quoted else piece for piece, quoted in frame.pieces)
            frame.words.append(_Word(text, glob, frame.wild))
        frame.pieces, frame.wild = [], False

    def end_part(self, operator: str) -> None:
        self.end_word()
        frame = self.frame
        if frame.words:
            self.parts.append(frame.words)
            frame.words, frame.operator = [], operator
        elif operator != "\n":
            self.faults.append(f"a `{operator}` with no command before it")

    def finish(self) -> None:
        if self.frame.quoted or len(self.frames) > 1:
            self.faults.append(_FAULTS["odd"])
        while len(self.frames) > 1:
            self.leave()
        self.end_part("\n")
        if self.frame.operator in _ENDS_IN_MIDAIR:
            self.faults.append(f"a `{self.frame.operator}` with no command behind it")


def _escaped(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)


def _scan(text: str) -> _Scanner:
    scanner = _Scanner()
    if len(text) > LONGEST_COMMAND:
        scanner.faults.append(f"more than {LONGEST_COMMAND} characters")
        return scanner
    if not text.translate(_BREAKS).isprintable():
        scanner.faults.append("a character that can't be printed")
    position = 0
    while position < len(text):
        token = (_QUOTED if scanner.frame.quoted else _PLAIN).match(text, position)
        kind: str = token.lastgroup  # type: ignore[union-attr,assignment] # between them, the groups take any character
        scanner.take(kind, token[kind])  # type: ignore[index]
        position = token.end()  # type: ignore[union-attr]
    scanner.finish()
    return scanner


_BREAKS: Final = str.maketrans("", "", "\n\t")


def _fault_of_command_word(word: _Word) -> str | None:
    """Say what keeps the first word of a command from being what runs."""
    if "=" in word.text:
        return "an assignment"
    if word.text in _RESERVED or word.text.startswith("^"):
        return f"{word.text[:20]!r}, a word of the shell's own,"
    return None


def parse(text: str) -> Commands:
    """Split a command line into simple commands at `;`, `&&`, `||`, `|`, `|&`, `&` and line ends.

    It is opaque if it has a substitution, redirection, subshell, brace, `$`, comment, continued line, unbalanced quote,
    unprintable character, a leading assignment, a reserved word, or a command word that a shell still expands; if it
    is no whole command line; and if it is longer than `LONGEST_COMMAND`. What is in a substitution is listed too.
    """
    scanner = _scan(text)
    parts = tuple(tuple(word.text for word in words) for words in scanner.parts)
    expanding = frozenset(
        (row, column) for row, words in enumerate(scanner.parts) for column, word in enumerate(words) if word.expands
    )
    odd = any(words[0].expands or _fault_of_command_word(words[0]) for words in scanner.parts)
    return Commands(parts, bool(scanner.faults) or odd, expanding)


def commands_of(value: Any) -> Commands:
    """Return the commands of an argument: of a command line, or of a list of words, which is one command as it is."""
    if isinstance(value, str):
        return parse(value)
    if not isinstance(value, list | tuple) or len(value) > MOST_VALUES or not _are_words(value):
        return Commands((), opaque=True)
    return Commands((tuple(value),) if value else (), opaque=False)


def _are_words(value: Sequence[Any]) -> bool:
    return all(isinstance(word, str) and "\0" not in word for word in value) and sum(map(len, value)) <= LONGEST_TEXT


@attrs.define
class _Effort:
    """What is left to spend on lines within lines, and those that were looked at."""

    text: int = MOST_INNER_TEXT
    lines: set[str] = attrs.field(factory=set)

    def takes(self, line: str) -> bool:
        """Tell whether *line* is to be looked at: it is new."""
        if line in self.lines:
            return False
        self.lines.add(line)
        self.text -= len(line)
        return True


@attrs.frozen
class CommandPattern:
    """A simple command whose words are globs: `git add *`.

    It is split as a command line is; a quoted `*` stands for itself. A final bare `*` stands for one or more further
    words, or for none where matching widely; no other word matches more than one. `CommandPattern.parse` makes one.
    """

    text: str
    _head: tuple[Glob, ...] = attrs.field(repr=False)
    _goes_on: bool = attrs.field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "CommandPattern":
        """Split *text* into its words; a ValueError says why that can't be done."""
        scanner = _scan(text)
        faults = [fault for fault in scanner.faults if fault != _FAULTS["history"]]  # `[!x]` is a glob
        if faults:
            raise ValueError(f"{faults[0]} can't be matched; in single quotes a character stands for itself")
        if len(scanner.parts) != 1:
            raise ValueError(
                f"expected one simple command such as `git add *`, got {len(scanner.parts)}; write a rule for each"
            )
        words = scanner.parts[0]
        if fault := _fault_of_command_word(words[0]):
            raise ValueError(f"a command that begins with {fault} is never understood; match what it runs")
        goes_on = words[-1].glob == "*"
        return cls(text, tuple(Glob(word.glob) for word in (words[:-1] if goes_on else words)), goes_on)

    def matches(self, value: Any, *, widely: bool, runs_others: bool = False) -> bool:
        """Tell whether *value*, a command line or a list of words, is what the pattern says.

        Widely: one command of it is, or it is opaque. The command word may then have a folder before it
        (`/bin/rm`), options with their values may stand before any further word of the pattern (`git -C dir push`),
        and what a launcher such as `sudo`, `xargs` or `sh -c` is given counts as a command too, as does what may be a
        command among the words of an unknown program. Otherwise: nothing is opaque and every command is; a word that
        the shell still expands is met by the final `*` alone, and a launched command by words that are written out,
        unless *runs_others* says that it may be any.
        """
        commands = commands_of(value)
        if widely:
            return self._is_in(commands, DEEPEST_COMMAND, _Effort())
        if commands.opaque or not commands.parts:
            return False
        fits = all(self._fits(words, expanding) for words, expanding in _rows(commands))
        return fits and (runs_others or all(self.launched_by(words) is None for words in commands.parts))

    def launched_by(self, words: Words) -> str | None:
        """Return the word of *words*, which fit, that makes them run a command the pattern does not write out."""
        if self._is_literal:
            return None
        for launch in launches(words):
            if launch.place >= len(self._head) or _MAGIC.search(self._head[launch.place].pattern):
                return words[min(launch.place, len(words) - 1)]
        return None

    @property
    def _is_literal(self) -> bool:
        return not self._goes_on and not any(_MAGIC.search(glob.pattern) for glob in self._head)

    def _fits(self, words: Words, expanding: Sequence[int]) -> bool:
        if not self._fits_length(len(words)) or (expanding and expanding[0] < len(self._head)):
            return False
        pairs = zip(self._head, words, strict=False)
        return all(glob.pattern == "*" or glob.matches(word, widely=False) for glob, word in pairs)

    def _fits_length(self, length: int) -> bool:
        return length > len(self._head) if self._goes_on else length == len(self._head)

    def _is_in(self, commands: Commands, depth: int, effort: _Effort) -> bool:
        if commands.opaque or depth == 0 or effort.text < 0:
            return True
        return any(self._is_run_by(words, expanding, depth, effort) for words, expanding in _rows(commands))

    def _is_run_by(self, words: Words, expanding: Sequence[int], depth: int, effort: _Effort) -> bool:
        """Tell whether the command of *words*, or one that it is given to run, may be a match."""
        loose = frozenset(expanding)
        if self._may_fit(words, 0, loose):
            return True
        first = 1 if is_unknown(words[0]) else len(words)
        for launch in launches(words):
            if launch.line is not None:
                if effort.takes(launch.line) and self._is_in(parse(launch.line), depth - 1, effort):
                    return True
            elif launch.start is None:
                return True
            else:
                first = min(first, 1)
        if any(self._may_fit(words, start, loose) for start in range(first, len(words))):
            return True
        return is_unknown(words[0]) and self._may_be_said_in(words[1:], depth, effort)

    def _may_be_said_in(self, words: Words, depth: int, effort: _Effort) -> bool:
        """Tell whether a word of an unknown program is a line with a match; what is not understood does not match."""
        lines = (parse(word) for word in words if _SEPARATOR.search(word) and effort.takes(word))
        return any(not line.opaque and self._is_in(line, depth - 1, effort) for line in lines)

    def _may_fit(self, words: Words, start: int, loose: Collection[int]) -> bool:
        """Tell whether the words from *start* on may be a match. From the first that expands, anything may follow."""
        places = {start}
        for index, glob in enumerate(self._head):
            if index:
                places = _behind_options(words, places)
            if any(place in loose or place - start - index > MOST_OPTIONS for place in places):
                return True
            reached = (place for place in places if place < len(words) and _may_be(glob, words[place], index))
            places = {place + 1 for place in reached}
        return any(self._goes_on or place == len(words) for place in places)


def _behind_options(words: Words, places: set[int]) -> set[int]:
    """Return *places*, and those that are reached from them past options and what may be an option's value."""
    found, waiting = set(places), sorted(places)
    for place in waiting:
        if place - waiting[0] > MOST_OPTIONS or place >= len(words) or not words[place].startswith("-"):
            continue
        further = {place + 1} if "=" in words[place] else {place + 1, place + 2}
        waiting.extend(sorted(further - found))
        found |= further
    return found


_SEPARATOR: Final = re.compile(r"[\s;&|]")
_MAGIC: Final = re.compile(r"[*?\[]")


def _rows(commands: Commands) -> Iterator[tuple[Words, list[int]]]:
    """Yield each command with the places of its words that expand, in order."""
    columns: dict[int, list[int]] = {}
    for row, column in sorted(commands.expanding):
        columns.setdefault(row, []).append(column)
    for row, words in enumerate(commands.parts):
        yield words, columns.get(row, [])


def _may_be(glob: Glob, word: str, index: int) -> bool:
    return glob.matches(word, widely=True) or (index == 0 and glob.matches(name_of(word), widely=True))
