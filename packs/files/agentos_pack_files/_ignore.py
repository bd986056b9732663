"""What a tree's own `.gitignore` files leave out, by pathspec, in time that no rule can blow up.

A rule becomes a regular expression that goes back over every `*`: with ten of them in a line, one long name takes
years. So a line with more wildcards than people write is left out, as is one that can't be read; both are counted.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FILE_NAME = ".gitignore"
FILE_BYTES = 64_000
RULES = 500
_LINE_CHARS = 256
_IN_PART = 3
_IN_LINE = 4
_STARS = re.compile(r"\*+")


@attrs.frozen
class Rules:
    """The rules of one `.gitignore`, which stands in *folder*, and how many of its lines were left out."""

    folder: str
    spec: "GitIgnoreSpec" = attrs.field(repr=False)
    left_out: int = 0

    def decide(self, path: str, *, is_folder: bool) -> bool | None:
        """Tell whether a path is ignored (True) or kept by a negated rule (False); None if no rule speaks of it."""
        inner = path if self.folder == "." else path[len(self.folder) + 1 :]
        return self.spec.check_file(f"{inner}/" if is_folder else inner).include


def read_rules(folder: str, text: str) -> Rules:
    """Read the rules of a `.gitignore`."""
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    patterns = []
    for line in lines[:RULES]:
        if is_simple(line):
            try:
                patterns.append(GitIgnoreSpecPattern(line))
            except (ValueError, re.error):  # a faulty range: git leaves such a line out as well
                continue
    return Rules(folder, GitIgnoreSpec(patterns, backend="simple"), len(lines) - len(patterns))


def is_simple(line: str) -> bool:
    """Tell whether matching a rule stays cheap, whatever the path is."""
    stars = [len(_STARS.findall(part)) for part in line.split("/")]
    return len(line) <= _LINE_CHARS and max(stars) <= _IN_PART and sum(stars) <= _IN_LINE


def is_ignored(rules: Iterable[Rules], path: str, *, is_folder: bool) -> bool:
    """Tell whether a path is ignored: of the files that speak of it, the one nearest to it counts."""
    decisions = (one.decide(path, is_folder=is_folder) for one in rules)
    return next((decided for decided in decisions if decided is not None), False)
