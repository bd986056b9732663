"""Everything beneath a folder, in the order of names, within bounds; links are told and never followed."""

from collections.abc import Iterator, Sequence

from agentos_pack_common import Item, PathError, Root, decode

from agentos_pack_files._clock import Clock
from agentos_pack_files._ignore import FILE_BYTES, FILE_NAME, Rules, is_ignored, read_rules

ENTRIES = 100_000
DEPTH = 64


class Walker:
    """Walks a tree once and counts. `stopped` says why it did not see everything; None if it did."""

    def __init__(self, root: Root, clock: Clock, *, gitignore: bool, depth: int = DEPTH) -> None:
        self._root = root
        self._clock = clock
        self._gitignore = gitignore
        self._depth = depth
        self.seen = 0
        self.unreadable = 0
        self.rules_left_out = 0
        self.stopped: str | None = None

    def walk(self, start: str) -> Iterator[Item]:
        """List what is beneath *start*; a file is listed itself."""
        item = self._root.stat(start)
        if item.kind != "folder":
            yield item
            return
        waiting: list[Iterator[tuple[Item, Sequence[Rules]]]] = [self._inside(item.path, self._rules_above(item.path))]
        while waiting and self.stopped is None:
            found = next(waiting[-1], None)
            if found is None:
                waiting.pop()
                continue
            item, rules = found
            yield item
            self._count()
            if item.kind == "folder" and len(waiting) < self._depth:
                waiting.append(self._inside(item.path, rules))
            elif item.kind == "folder" and self._depth == DEPTH:
                self.stopped = f"folders are nested deeper than {DEPTH} levels"

    def _count(self) -> None:
        self.seen += 1
        if self.seen >= ENTRIES:
            self.stopped = f"the tree has more than {ENTRIES:,} entries; name a folder further down"
        elif self._clock.is_over:
            self.stopped = "the time is up; name a folder further down"

    def _inside(self, folder: str, above: Sequence[Rules]) -> Iterator[tuple[Item, Sequence[Rules]]]:
        try:
            items = list(self._root.scan(folder))
        except PathError:  # not ours to read, or gone meanwhile
            self.unreadable += 1
            return
        rules = above
        if self._gitignore and any(item.kind == "file" and _name(item.path) == FILE_NAME for item in items):
            rules = [*self._read(folder), *above]
        for item in items:
            if not is_ignored(rules, item.path, is_folder=item.kind == "folder"):
                yield item, rules
            elif self._clock.is_over:
                self.stopped = "the time is up; name a folder further down"
                return

    def _rules_above(self, folder: str) -> Sequence[Rules]:
        """Read the rules of the folders above, the nearest first; they do not count for a folder that they ignore."""
        if not self._gitignore or folder == ".":
            return ()
        names = folder.split("/")
        above = ["/".join(names[:count]) or "." for count in range(len(names))]
        rules = [one for each in reversed(above) for one in self._read(each)]
        return () if is_ignored(rules, folder, is_folder=True) else rules

    def _read(self, folder: str) -> list[Rules]:
        path = FILE_NAME if folder == "." else f"{folder}/{FILE_NAME}"
        try:
            if self._root.stat(path, follow=False).kind != "file":  # git follows no link here either
                return []
            with self._root.open_read(path, max_bytes=FILE_BYTES) as file:
                rules = read_rules(folder, decode(file.read()))
        except PathError:
            return []
        self.rules_left_out += rules.left_out
        return [rules]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
