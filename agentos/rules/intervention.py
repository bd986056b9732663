"""Patterns over a call's arguments, and the rules that say by them whether a person is asked.

There is one matcher, `ArgumentPattern`, and it can be asked in two ways. Where a match makes things more cautious (a
denial, a rule that says `required` or `always`) it is asked widely: one value that fits is enough, and what can't be
understood fits. Where a match makes things less cautious (a grant, a rule that says `never`) every value must fit, and
what can't be understood does not. So a value that was built to confuse the matcher ends up with a person, either way.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import attrs

from agentos.errors import RuleError
from agentos.model.field_checks import did_you_mean
from agentos.rules.argument_paths import ArgumentPath, Glob, NotUnderstoodError, find, misleads, parse_path, text_of

PatternKind = Literal["glob", "regex", "command"]
Policy = Literal["never", "required", "always"]

KINDS: Final[tuple[str, ...]] = get_args(PatternKind)
POLICIES: Final[tuple[str, ...]] = get_args(Policy)

MOST_RULES: Final = 200
MOST_PATHS: Final = 50
LONGEST_PATTERN: Final = 10_000
LONGEST_REGEX: Final = 1_000
LONGEST_SEARCHED: Final = 10_000
_LARGEST_REGEX: Final = 2**20
"""How many bytes a regular expression may take once it is compiled: its size is what a search costs per character."""

Test = Callable[[Any, bool], bool]


def _glob(pattern: str) -> Test:
    glob = Glob(pattern)
    return lambda value, widely: glob.matches(text_of(value), widely=widely)


def _regex(pattern: str) -> Test:
    if len(pattern) > LONGEST_REGEX:
        raise ValueError(f"expected at most {LONGEST_REGEX} characters, got {len(pattern)}; use several rules")
    _check_regex(pattern)
    is_in = _searcher(pattern)
    # In a regex `..` is any two characters: only escaped dots show that the author thought of the folder above.
    seen = ".." if r"\.\." in pattern else ""

    def test(value: Any, widely: bool) -> bool:
        text = text_of(value)
        if len(text) > LONGEST_SEARCHED:
            raise NotUnderstoodError
        if widely:  # a line is a line, whether or not its end is written
            return is_in(text) or (text.endswith("\n") and is_in(text[:-1]))
        return is_in(text) and not misleads(text, seen)

    return test


_GROUPED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


def _check_regex(pattern: str) -> None:
    """Refuse what is no regular expression in Python's eyes, or would be another one in those of who searches."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as exc:
        raise ValueError(f"is no regular expression: {exc}; a plain text is best matched by kind 'glob'") from None
    if re.search(r"[*+?}]\+", _GROUPED.sub("x", pattern)):
        raise ValueError("has a possessive repetition (`*+`), which is not known here; leave the second sign out")


def _searcher(pattern: str) -> Callable[[str], bool]:
    """Return what searches a text in time that grows with its length alone: Python's own `re` has no such bound."""
    import jsonschema_rs  # most programs have no rule by regular expression

    try:
        validator = jsonschema_rs.validator_for(
            {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions(size_limit=_LARGEST_REGEX)
        )
    except ValueError:
        raise ValueError(
            "can't be searched in bounded time; look-around, back-references, `\\Z`, comments and very large counts "
            "(`{5000}`) are not known here"
        ) from None

    def is_in(text: str) -> bool:
        try:
            return validator.is_valid(text)
        except UnicodeEncodeError:  # half of a surrogate pair
            raise NotUnderstoodError from None

    return is_in


def _command(pattern: str) -> Test:
    from agentos.rules.commands import CommandPattern  # most programs have no rule about commands

    command = CommandPattern.parse(pattern)
    return lambda value, widely: command.matches(value, widely=widely)


_COMPILERS: Final[Mapping[str, Callable[[str], Test]]] = {"glob": _glob, "regex": _regex, "command": _command}


@attrs.frozen
class _Condition:
    """One path with the test of what it leads to."""

    path: ArgumentPath
    test: Test

    def holds(self, arguments: Any, *, widely: bool) -> bool:
        try:
            found = find(self.path, arguments)
        except NotUnderstoodError:
            return widely
        fits = (self._fits(value, widely=widely) for value in found.values)
        return any(fits) if widely else bool(found.values) and not found.missing and all(fits)

    def _fits(self, value: Any, *, widely: bool) -> bool:
        try:
            return self.test(value, widely)
        except NotUnderstoodError:
            return widely


def _patterns(value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise RuleError("match", f"expected paths with patterns such as {{'$.path': '/tmp/*'}}, got {_named(value)}")
    if len(value) > MOST_PATHS:
        raise RuleError("match", f"expected at most {MOST_PATHS} paths, got {len(value)}; use several rules")
    return MappingProxyType(dict(value))


def _one_of(place: str, value: Any, known: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in known:
        hint = did_you_mean(value[:100], known) if isinstance(value, str) else ""
        raise RuleError(place, f"expected one of {', '.join(known)}, got {_shown(value)}{hint}")


def _conditions(pattern: "ArgumentPattern") -> tuple[_Condition, ...]:
    _one_of("kind", pattern.kind, KINDS)
    return tuple(_condition(path, text, pattern.kind) for path, text in pattern.match.items())


def _condition(path: str, pattern: Any, kind: str) -> _Condition:
    place = f"match[{_shown(path)}]"
    if not isinstance(pattern, str):
        raise RuleError(place, f"expected a pattern as a string, got {_named(pattern)}; write 5 as '5', true as 'true'")
    if len(pattern) > LONGEST_PATTERN:
        raise RuleError(place, f"expected a pattern of at most {LONGEST_PATTERN} characters, got {len(pattern)}")
    try:
        return _Condition(parse_path(path), _COMPILERS[kind](pattern))
    except ValueError as exc:
        raise RuleError(place, str(exc)) from None


def _as_items(match: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(match.items())


@attrs.frozen
class ArgumentPattern:
    r"""Patterns for the arguments of a call, all of which must fit: `ArgumentPattern({"$.path": "/tmp/*"})`.

    No pattern at all fits everything; a path that leads nowhere fits nothing. A value that is no string is compared as
    its JSON text: `5`, `true`, `null`, `{"a":1}`. The kinds:

    - `glob`: `*`, `?` and `[...]` over the whole value; `*` crosses `/`.
    - `regex`: found anywhere in the value, so anchor it: `^/tmp/[^/]+$`. It is searched in linear time, as the
      `pattern` of a JSON Schema is: there is no look-around and no back-reference, `\w`, `\d` and `\b` know ASCII
      alone, and `$` is the end of the value, not the line end before it.
    - `command`: a command line, or a list of words: `git add *`.

    Where a match makes things less cautious, a value with a `..` in its path does not fit a pattern without one, nor
    one with a NUL: `/tmp/../etc/passwd` begins as `/tmp/*` does, and is elsewhere.
    """

    match: Mapping[str, str] = attrs.field(converter=_patterns, eq=_as_items)
    kind: PatternKind = "glob"
    _conditions: tuple[_Condition, ...] = attrs.field(
        init=False, repr=False, eq=False, default=attrs.Factory(_conditions, takes_self=True)
    )

    def matches(self, arguments: Mapping[str, Any], *, widely: bool) -> bool:
        """Tell whether *arguments* fit: *widely* if a match makes things more cautious, else in every respect."""
        return all(condition.holds(arguments, widely=widely) for condition in self._conditions)

    def __str__(self) -> str:
        if not self.match:
            return "any arguments"
        shown = [f"{_shown(path)[1:-1]} = {_shown(pattern)}" for path, pattern in list(self.match.items())[:3]]
        more = f" and {len(self.match) - 3} more" if len(self.match) > 3 else ""  # noqa: PLR2004 - three are shown
        return f"{self.kind} {' and '.join(shown)}{more}"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON for the store."""
        return {"match": dict(self.match), "kind": self.kind}

    @classmethod
    def from_json(cls, data: Any) -> "ArgumentPattern":
        """Make it again from `as_json`. One without its `match` is refused: it would fit everything."""
        fields = _fields(data, "pattern", ("match", "kind"))
        if "match" not in fields:
            raise RuleError("match", "is missing; an empty one fits any arguments")
        return cls(**fields)


@attrs.frozen
class InterventionRule:
    """What a tool's author says of asking, for arguments that fit: `never`, `required` or `always`.

    Rules are ordered and the first that applies counts; one with an empty match applies to everything. `never` applies
    only where every value fits; `required` and `always` apply where one does, or where that can't be told.
    """

    policy: Policy
    match: Mapping[str, str] = attrs.field(factory=dict, converter=_patterns, eq=_as_items)
    kind: PatternKind = "glob"
    pattern: ArgumentPattern = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        _one_of("policy", self.policy, POLICIES)
        object.__setattr__(self, "pattern", ArgumentPattern(self.match, self.kind))

    def applies(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether the rule is for a call with *arguments*."""
        return self.pattern.matches(arguments, widely=self.policy != "never")


def policy_of(rules: Sequence[InterventionRule], arguments: Mapping[str, Any]) -> tuple[Policy | None, str]:
    """Return what the first of *rules* that applies says, and which one it is, counted from 1."""
    for number, rule in enumerate(rules, start=1):
        if rule.applies(arguments):
            return rule.policy, f"rule {number} ({rule.pattern}) says {rule.policy}"
    return None, "no rule matches"


def as_rules(value: Any) -> tuple[InterventionRule, ...]:
    """Return a tool's `intervention` as rules: each a rule already, or a mapping with `policy`, `match` and `kind`."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise RuleError("intervention", f"expected a list of rules, got {_named(value)}; put a single rule in a list")
    if len(value) > MOST_RULES:
        raise RuleError("intervention", f"expected at most {MOST_RULES} rules, got {len(value)}")
    return tuple(_placed(value))


def _placed(rules: Sequence[Any]) -> Iterator[InterventionRule]:
    for index, rule in enumerate(rules):
        try:
            yield rule if isinstance(rule, InterventionRule) else _rule(rule)
        except RuleError as exc:
            inner = f".{exc.place}" if exc.place else ""
            raise RuleError(f"intervention[{index}]{inner}", exc.message) from None


def _rule(data: Any) -> InterventionRule:
    fields = _fields(data, "rule", ("policy", "match", "kind"))
    if "policy" not in fields:
        raise RuleError("policy", f"is missing; say one of {', '.join(POLICIES)}")
    return InterventionRule(**fields)


def _fields(data: Any, what: str, known: Sequence[str]) -> dict[str, Any]:
    """Return *data* as keyword arguments. An unknown key is refused: a misspelt `match` would fit everything."""
    if not isinstance(data, Mapping):
        raise RuleError("", f"expected a {what} as a mapping with {', '.join(known)}, got {_named(data)}")
    for key in data:
        if key not in known:
            hint = did_you_mean(str(key)[:100], known)
            raise RuleError(_shown(key), f"unknown key{hint or '; known are ' + ', '.join(known)}")
    return dict(data)


def _shown(value: Any) -> str:
    """Return the beginning of *value* as it would be written, in at most 60 characters."""
    shown = repr(value[:60] if isinstance(value, str) else value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."  # noqa: PLR2004 - as the docstring says


def _named(value: Any) -> str:
    return type(value).__name__
