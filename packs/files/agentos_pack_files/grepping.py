"""grep_files: find lines by what they say."""

import asyncio
from collections.abc import Iterator
from typing import Annotated

import attrs
from agentos_pack_common import Item, PathError, Root, clip_rows

from agentos import Schema, ToolContext
from agentos_pack_files._clock import Clock, clock_of
from agentos_pack_files._globs import Glob, compile_glob
from agentos_pack_files._matching import LiteralMatcher, Places, RegexMatcher
from agentos_pack_files._text import LINE_END, BinaryError, decode_text
from agentos_pack_files._walk import Walker
from agentos_pack_files.options import FilesOptions
from agentos_pack_files.reading import LISTING_BYTES, FolderArgument, GitignoreArgument

LINE_CHARS = 400
TOTAL_BYTES = 200_000_000
_BATCH_CHARS = 4_000_000
_BATCH_FILES = 500

GlobArgument = Annotated[
    str | None,
    "Only files whose path matches this glob: *.py at any depth, src/**/*.py from the root folder",
    Schema(maxLength=1_000),
]


@attrs.frozen
class Match:
    """A line in which the pattern was found."""

    path: Annotated[str, "Relative to the root folder"]
    line: Annotated[int, "From 1"]
    column: Annotated[int, "Where the pattern begins, in characters from 1"]
    text: Annotated[str, f"The line, or {LINE_CHARS} characters of it around the pattern"]
    before: list[str]
    after: list[str]


@attrs.frozen
class Skipped:
    """Files that were not searched."""

    binary: int
    too_large: int
    unreadable: int


@attrs.frozen
class Matches:
    """What grep_files found."""

    matches: list[Match]
    files_searched: int
    skipped: Skipped
    truncated: Annotated[bool, "There may be more than is given"]
    stopped: Annotated[str | None, "Why there may be more, and what to do"]
    ignore_rules_left_out: Annotated[int, "Lines of .gitignore files that were not used: faulty, or too complex"]


class LineSearch:
    """The tool that goes through what files say."""

    def __init__(self, root: Root, options: FilesOptions) -> None:
        self._root = root
        self._options = options

    async def grep_files(
        self,
        pattern: Annotated[
            str,
            "What to find in a line: a literal text, or with regex a regular expression of Python",
            Schema(minLength=1, maxLength=1_000),
        ],
        path: FolderArgument = ".",
        glob: GlobArgument = None,
        regex: Annotated[bool, "The pattern is a regular expression"] = False,
        ignore_case: Annotated[bool, "Capital and small letters are the same"] = False,
        *,
        context_lines: Annotated[
            int, "How many lines to give before and after each", Schema(minimum=0, maximum=10)
        ] = 0,
        max_matches: Annotated[int, "How many lines to give at most", Schema(minimum=1, maximum=500)] = 100,
        gitignore: GitignoreArgument = True,
        context: ToolContext | None = None,
    ) -> Matches:
        """Find lines that contain a text, in one file or in all files beneath a folder.

        Lines are searched one by one, the first 10,000 characters of each; binary and very large files are skipped
        and counted. A regular expression that takes too long is stopped: prefer a literal text. What the tree's
        .gitignore leaves out is left out unless gitignore is false; secrets are never searched. To find files by
        their names use search_files.
        """
        if LINE_END.search(pattern):
            raise ValueError("pattern: has a line break; lines are searched one by one, so search for a part of one")
        matcher = (
            RegexMatcher(pattern, ignore_case, self._options.regex_seconds)
            if regex
            else LiteralMatcher(pattern, ignore_case=ignore_case)
        )
        search = _Search(self._root, self._options, clock_of(context), gitignore=gitignore)
        wanted = None if glob is None else compile_glob(glob, "glob")
        matches = await search.run(path, wanted, matcher, _Wish(context_lines, max_matches))
        return search.result(matches)


@attrs.frozen
class _Wish:
    around: int
    most: int


@attrs.frozen
class _Opened:
    path: str
    text: str = attrs.field(repr=False)


class _Search:
    """One search through the files of a tree."""

    def __init__(self, root: Root, options: FilesOptions, clock: Clock, *, gitignore: bool) -> None:
        self._root = root
        self._options = options
        self._clock = clock
        self._walker = Walker(root, clock, gitignore=gitignore)
        self._searched = self._bytes = self._binary = self._too_large = self._unreadable = 0
        self._stopped: str | None = None

    async def run(
        self, path: str, glob: Glob | None, matcher: LiteralMatcher | RegexMatcher, wish: _Wish
    ) -> list[Match]:
        """Read the files in batches and search each."""
        matches: list[Match] = []
        batches = self._batches(path, glob)
        while batch := await asyncio.to_thread(next, batches, None):
            places = await matcher.find([file.text for file in batch], wish.most + 1, self._clock)
            for file, found in zip(batch, places, strict=True):
                matches += _matches(file, found, wish.around)
            if len(matches) > wish.most:
                self._stopped = (
                    f"only the first {wish.most:,} lines are given; narrow the pattern, the path or the glob"
                )
                break
        return matches[: wish.most]

    def result(self, matches: list[Match]) -> Matches:
        """Put together what was found and what was not looked at."""
        rows = clip_rows([attrs.asdict(match) for match in matches], max_rows=len(matches), max_bytes=LISTING_BYTES)
        stopped = self._stopped or self._walker.stopped
        if rows.truncated:
            stopped = f"only the first {len(rows.rows):,} lines are given; narrow the pattern, the path or the glob"
        return Matches(
            matches=matches[: len(rows.rows)],
            files_searched=self._searched,
            skipped=Skipped(self._binary, self._too_large, self._unreadable + self._walker.unreadable),
            truncated=stopped is not None,
            stopped=stopped,
            ignore_rules_left_out=self._walker.rules_left_out,
        )

    def _batches(self, path: str, glob: Glob | None) -> Iterator[list[_Opened]]:
        batch: list[_Opened] = []
        size = 0
        for item in self._walker.walk(path):
            if item.kind != "file" or (glob is not None and not glob.matches(item.path)):
                continue
            if self._bytes > TOTAL_BYTES or self._clock.is_over:
                self._stopped = "there is more than can be searched at once; name a folder further down, or a glob"
                break
            if (text := self._read(item)) is not None:
                batch.append(_Opened(item.path, text))
                size += len(text)
            if size > _BATCH_CHARS or len(batch) >= _BATCH_FILES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _read(self, item: Item) -> str | None:
        if item.size > self._options.max_file_bytes:
            self._too_large += 1
            return None
        try:
            with self._root.open_read(item.path, max_bytes=self._options.max_file_bytes) as file:
                data = file.read()
            text = decode_text(data).text
        except PathError:  # gone or replaced meanwhile, or not ours to read
            self._unreadable += 1
        except (BinaryError, UnicodeDecodeError):
            self._binary += 1
        else:
            self._searched += 1
            self._bytes += len(data)
            return text
        return None


def _matches(file: _Opened, places: Places, around: int) -> Iterator[Match]:
    if not places:
        return
    lines = LINE_END.split(file.text)
    if not lines[-1]:
        lines.pop()
    for number, column in places:
        index = number - 1
        yield Match(
            path=file.path,
            line=number,
            column=column,
            text=_around(lines[index], column - 1),
            before=[line[:LINE_CHARS] for line in lines[max(0, index - around) : index]],
            after=[line[:LINE_CHARS] for line in lines[number : number + around]],
        )


def _around(line: str, at: int) -> str:
    """Return the part of a long line that the pattern is in."""
    start = 0 if len(line) <= LINE_CHARS else max(0, min(at - LINE_CHARS // 4, len(line) - LINE_CHARS))
    return line[start : start + LINE_CHARS]
