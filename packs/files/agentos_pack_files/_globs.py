"""Glob patterns over whole paths, matched in time that no pattern can blow up.

Within a part of a path `*`, `?` and `[...]` mean what they mean in a shell: `fnmatch` compiles them to expressions
that never go back over what they matched. `**` stands for any number of parts, which are matched as a table.
"""

import fnmatch
import re
from collections.abc import Callable

import attrs

PARTS = 32


@attrs.frozen
class Glob:
    """A compiled pattern. One without a slash is looked for at every depth."""

    parts: tuple[re.Pattern[str] | None, ...] = attrs.field(repr=False)
    """One expression for each part; None stands for `**`."""

    def matches(self, path: str) -> bool:
        """Tell whether a path, written with slashes and relative to the root, matches whole."""
        reached = {0}
        for name in path.split("/"):
            reached = self._after(self._skipping(reached), name)
            if not reached:
                return False
        return len(self.parts) in self._skipping(reached)

    def _skipping(self, reached: set[int]) -> set[int]:
        """Add the places that are reached because a `**` stands for nothing."""
        for place in range(len(self.parts)):
            if place in reached and self.parts[place] is None:
                reached = reached | {place + 1}
        return reached

    def _after(self, reached: set[int], name: str) -> set[int]:
        found = set()
        for place in reached - {len(self.parts)}:
            part = self.parts[place]
            if part is None:
                found.add(place)
            elif part.match(name):
                found.add(place + 1)
        return found


def compile_glob(pattern: str, argument: str = "pattern", *, ignore_case: bool = False) -> Glob:
    """Compile a pattern; *argument* is named in what is raised."""
    names = [name for name in pattern.strip("/").split("/") if name not in ("", ".")]
    if not names or ".." in names:
        raise ValueError(f"{argument}: expected a glob such as '*.py' or 'src/**/*.py' below the root, got {pattern!r}")
    if len(names) > PARTS:
        raise ValueError(f"{argument}: {len(names)} parts between slashes; at most {PARTS} are allowed")
    if "/" not in pattern and names != ["**"]:
        names = ["**", *names]
    compiled = _compiler(ignore_case=ignore_case)
    return Glob(tuple(None if name == "**" else compiled(name) for name in names))


def _compiler(*, ignore_case: bool) -> Callable[[str], re.Pattern[str]]:
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    return lambda name: re.compile(fnmatch.translate(name), flags)
