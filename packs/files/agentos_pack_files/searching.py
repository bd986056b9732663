"""search_files: find files by their names."""

import heapq
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

import attrs
from agentos_pack_common import Item, Root, clip_rows

from agentos import Schema, ToolContext
from agentos_pack_files._clock import clock_of
from agentos_pack_files._globs import Glob, compile_glob
from agentos_pack_files._walk import Walker
from agentos_pack_files.reading import LISTING_BYTES, Entry, FolderArgument, GitignoreArgument, entry_of

SCORE = 60.0


@attrs.frozen
class Hit:
    """A file or folder whose name was found."""

    path: Annotated[str, "Relative to the root folder"]
    kind: Literal["file", "folder", "link", "other"]
    size: Annotated[int, "Bytes; of a file only"]
    modified: Annotated[str, "ISO 8601, UTC"]
    score: Annotated[float | None, "How near the name is, up to 100; null for a glob"]


@attrs.frozen
class Found:
    """What search_files found."""

    matches: list[Hit]
    searched: Annotated[int, "How many files, folders and links were looked at"]
    truncated: Annotated[bool, "There may be more than is given"]
    stopped: Annotated[str | None, "Why there may be more, and what to do"]
    unreadable: Annotated[int, "Folders that could not be read"]
    ignore_rules_left_out: Annotated[int, "Lines of .gitignore files that were not used: faulty, or too complex"]


class NameSearch:
    """The tool that goes through the names of a tree."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def search_files(
        self,
        query: Annotated[
            str,
            "A glob such as *.py (at any depth) or src/**/test_*.py (from the root folder); or, with mode fuzzy, "
            "roughly what the path is called",
            Schema(minLength=1, maxLength=1_000),
        ],
        path: FolderArgument = ".",
        mode: Annotated[
            Literal["glob", "fuzzy"], "glob: names that match; fuzzy: the nearest names, best first"
        ] = "glob",
        kind: Annotated[Literal["file", "folder", "any"], "What to look for"] = "file",
        max_matches: Annotated[int, "How many to give at most", Schema(minimum=1, maximum=1_000)] = 100,
        gitignore: GitignoreArgument = True,
        *,
        context: ToolContext | None = None,
    ) -> Found:
        """Find files and folders by their names in a whole tree.

        What the tree's .gitignore leaves out is left out unless gitignore is false; files that usually hold secrets
        are never found; links are not followed. To find what files say use grep_files.
        """
        walker = Walker(self._root, clock_of(context), gitignore=gitignore)
        items = (item for item in walker.walk(path) if kind in (item.kind, "any"))
        found = (
            _by_glob(items, compile_glob(query, "query"))
            if mode == "glob"
            else _by_score(items, query, max_matches + 1)
        )
        rows = clip_rows(map(attrs.asdict, found), max_rows=max_matches, max_bytes=LISTING_BYTES)
        stopped = walker.stopped
        if rows.truncated and stopped is None:
            stopped = f"only the first {len(rows.rows):,} are given; narrow the query or the path"
        return Found(
            matches=[Hit(**row) for row in rows.rows],
            searched=walker.seen,
            truncated=stopped is not None,
            stopped=stopped,
            unreadable=walker.unreadable,
            ignore_rules_left_out=walker.rules_left_out,
        )


def _by_glob(items: Iterator[Item], glob: Glob) -> Iterator[Hit]:
    return (_hit(item, None) for item in items if glob.matches(item.path))


def _by_score(items: Iterator[Item], query: str, most: int) -> list[Hit]:
    score = _scorer(query)
    scored = ((score(item.path), item) for item in items)
    kept = ((points, item) for points, item in scored if points >= SCORE)
    best = heapq.nsmallest(most, kept, key=lambda one: (-one[0], one[1].path))
    return [_hit(item, round(points, 1)) for points, item in best]


def _scorer(query: str) -> Callable[[str], float]:
    from rapidfuzz import fuzz

    wanted = query.casefold()

    def score(path: str) -> float:
        folded = path.casefold()
        name = folded.rpartition("/")[2]
        return max(
            fuzz.WRatio(wanted, name), 0.95 * fuzz.partial_ratio(wanted, folded), 0.9 * fuzz.WRatio(wanted, folded)
        )

    return score


def _hit(item: Item, score: float | None) -> Hit:
    entry: Entry = entry_of(item)
    return Hit(entry.path, entry.kind, entry.size, entry.modified, score)
