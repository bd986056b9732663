"""Where a rule looks: JSON paths into arguments, the text of what they find there, and globs over that text.

Arguments are foreign: everything here is bounded, and what goes beyond the bounds raises `NotUnderstoodError`, which
whoever asks turns into the more cautious of his two answers.
"""

import fnmatch
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

MOST_VALUES: Final = 10_000
LONGEST_TEXT: Final = 100_000
LONGEST_PATH: Final = 1_000
DEEPEST_VALUE: Final = 100

_EXACT_FLOATS: Final = 2**53


class NotUnderstoodError(Exception):
    """A value that is too large, too deep or no JSON. It never leaves this package."""


class _Every:
    """The step of a path that goes to every child."""

    __slots__ = ()


EVERY: Final = _Every()

Step = str | int | _Every


@attrs.frozen
class ArgumentPath:
    """A path into arguments, parsed."""

    text: str
    steps: tuple[Step, ...] = attrs.field(repr=False)


@attrs.frozen
class PathMatches:
    """What a path leads to. `missing` tells that on some branch of a `*` it leads nowhere."""

    values: list[Any]
    missing: bool


_STEP = re.compile(
    r"""
      \.(?P<name>[\w-]+)
    | \[(?P<index>0|[1-9][0-9]{0,8})\]
    | (?P<every>\.\*|\[\*\])
    | \['(?P<single>(?:[^'\\]|\\['\\])*)'\]
    | \["(?P<double>(?:[^"\\]|\\["\\])*)"\]
    """,
    re.VERBOSE,
)
_SYNTAX = "a path begins with `$` and goes on with `.name`, `['any name']`, `[0]`, `[*]` or `.*`"


def parse_path(text: str) -> ArgumentPath:
    """Parse `$`, `$.a.b`, `$.a[0]`, `$.a[*]`, `$['a b']` or `$.*`; a ValueError says what else it is."""
    if not isinstance(text, str):
        raise ValueError(f"expected a path as a string, got {type(text).__name__}; {_SYNTAX}")  # noqa: TRY004
    if len(text) > LONGEST_PATH:
        raise ValueError(f"expected a path of at most {LONGEST_PATH} characters, got {len(text)}")
    if not text.startswith("$"):
        raise ValueError(f"expected a path such as $.path; {_SYNTAX}")
    return ArgumentPath(text, tuple(_steps(text)))


def _steps(text: str) -> Iterator[Step]:
    position = 1
    while position < len(text):
        if (found := _STEP.match(text, position)) is None:
            raise ValueError(f"can't read {text[position : position + 20]!r} at character {position + 1}; {_SYNTAX}")
        yield _step(found)
        position = found.end()


def _step(found: re.Match[str]) -> Step:
    if found["every"]:
        return EVERY
    if found["index"]:
        return int(found["index"])
    if found["name"]:
        return found["name"]
    return re.sub(r"\\(.)", r"\1", found["single"] or found["double"] or "")


def values_at(path: ArgumentPath, arguments: Any) -> list[Any]:
    """Return every value that *path* leads to; none where it leads nowhere."""
    return find(path, arguments).values


def find(path: ArgumentPath, arguments: Any) -> PathMatches:
    """Follow *path* into *arguments*, at most to `MOST_VALUES` values on the way."""
    values, missing = [arguments], False
    for step in path.steps:
        reached = [_children(value, step) for value in values]
        missing = missing or None in reached
        values = [child for children in reached if children is not None for child in children]
        if len(values) > MOST_VALUES:
            raise NotUnderstoodError
    return PathMatches(values, missing)


def _children(value: Any, step: Step) -> list[Any] | None:
    """Return what *step* leads to from *value*; None if *value* is nothing that has such a step."""
    if isinstance(step, _Every):
        return _all_children(value)
    if isinstance(step, str):
        return [value[step]] if isinstance(value, Mapping) and step in value else None
    return [value[step]] if isinstance(value, list | tuple) and step < len(value) else None


def _all_children(value: Any) -> list[Any] | None:
    if not isinstance(value, Mapping | list | tuple):
        return None
    if len(value) > MOST_VALUES:
        raise NotUnderstoodError
    return list(value.values() if isinstance(value, Mapping) else value)


def text_of(value: Any) -> str:
    """Return what a pattern is compared with: a string itself, anything else as compact JSON with sorted keys.

    A number has one text: `5.0` is `5`, since a tool that wants a whole number gets either.
    """
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise NotUnderstoodError
        return value
    pieces, length = [], 0
    for piece in _pieces(value, 0):
        pieces.append(piece)
        if (length := length + len(piece)) > LONGEST_TEXT:
            raise NotUnderstoodError
    return "".join(pieces)


def _pieces(value: Any, depth: int) -> Iterator[str]:
    """Yield the JSON text of *value* piece by piece, so that too much of it is noticed early."""
    if depth > DEEPEST_VALUE:
        raise NotUnderstoodError
    if isinstance(value, Mapping):
        yield from _members(value, depth)
    elif isinstance(value, list | tuple):
        yield "["
        for index, item in enumerate(value):
            yield "," if index else ""
            yield from _pieces(item, depth + 1)
        yield "]"
    else:
        yield _scalar(value)


def _members(value: Mapping[Any, Any], depth: int) -> Iterator[str]:
    if len(value) > LONGEST_TEXT or not all(isinstance(key, str) for key in value):
        raise NotUnderstoodError
    yield "{"
    for index, key in enumerate(sorted(value)):
        yield f"{',' if index else ''}{_scalar(key)}:"
        yield from _pieces(value[key], depth + 1)
    yield "}"


def _scalar(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_FLOATS:
        value = int(value)
    if value is not None and not isinstance(value, str | int | float):
        raise NotUnderstoodError
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # infinite, or a whole number of thousands of digits
        raise NotUnderstoodError from None


_SEGMENTS = re.compile(r"[/\\=:]")


def misleads(text: str, pattern: str) -> bool:
    """Tell whether *text* may mean a place that the author of *pattern* did not see in it.

    `/tmp/*` was written for what is in `/tmp`, and `/tmp/../etc/passwd` is not; at a NUL many programs end the text,
    so that what the pattern saw behind it does not count. A pattern with `..` (or a NUL) of its own has seen it. An
    option's value is a path too: `--file=../x`.
    """
    if "\0" in text and "\0" not in pattern:
        return True
    if ".." in pattern or ".." not in text:
        return False
    return any(segment.strip() == ".." for segment in _SEGMENTS.split(text))


def readings(text: str) -> set[str]:
    """Return *text* and the simpler spellings of it as a path: a rule on `/etc/*` is meant for `/tmp/../etc/x` too."""
    found = {text}
    if "/" in text:
        rooted = posixpath.normpath("/" + text.lstrip("/"))
        found.add(rooted if text.startswith("/") else posixpath.normpath(text))
        if ".." in text:  # seen from a folder that is not known here, it may lead up to the root
            found.add(rooted)
    return found


def _compiled(glob: "Glob") -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob.pattern))


@attrs.frozen
class Glob:
    """A pattern of `*`, `?` and `[...]` over a whole text, as `fnmatch.fnmatchcase` has it; `*` crosses `/`."""

    pattern: str
    _regex: re.Pattern[str] = attrs.field(
        init=False, repr=False, eq=False, default=attrs.Factory(_compiled, takes_self=True)
    )

    def matches(self, text: str, *, widely: bool) -> bool:
        """Tell whether *text* fits. Widely: in any of its `readings`. Otherwise: as it is, and not if it `misleads`."""
        if widely:
            return any(self._regex.match(reading) for reading in readings(text))
        return self._regex.match(text) is not None and not misleads(text, self.pattern)
