"""What the operator allows: which commands, in which folder, within which limits."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from agentos_pack_common import Limits, OptionsError, PathError, Root, quoted, read_options

from agentos_pack_shell.programs import Program
from agentos_pack_shell.rules import Rule

MAX_SECONDS = 600
_MEGABYTE = 1_000_000
_MOST_TOLD = 20
_OPEN_FILES = 256


class NotAllowedError(ValueError):
    """A command that the operator does not allow."""


def _between(least: float, most: float) -> Any:
    return attrs.validators.and_(attrs.validators.ge(least), attrs.validators.le(most))


def _variables(_: Any, __: "attrs.Attribute[Any]", value: Mapping[str, str]) -> None:
    for name, text in value.items():
        if not name or "=" in name or "\0" in name + text:
            raise ValueError(
                f"expected names without = and values, both without NUL; {quoted(name)} is no such variable"
            )


@attrs.frozen(kw_only=True)
class Surroundings:
    """Where an allowed command runs, with which variables, and how much it may use."""

    root: Path | None = None
    env: Mapping[str, str] = attrs.field(factory=dict, validator=_variables, repr=False)
    max_seconds: float = attrs.field(default=60.0, validator=_between(1, MAX_SECONDS))
    memory_megabytes: int = attrs.field(default=4_096, validator=_between(16, 1_000_000))
    file_megabytes: int = attrs.field(default=100, validator=_between(0, 1_000_000))
    output_bytes: int = attrs.field(default=100_000, validator=_between(100, 1_000_000))


@attrs.frozen(kw_only=True)
class Options(Surroundings):
    """What a command runs with, and the rules that say which commands are allowed."""

    allow: tuple[Rule, ...] = attrs.field(default=(), validator=attrs.validators.max_len(500))


@attrs.frozen(kw_only=True)
class ManifestOptions(Surroundings):
    """The options as a manifest may write them: a rule may be a command alone."""

    allow: tuple[str | Rule, ...] = attrs.field(default=(), validator=attrs.validators.max_len(500))


@attrs.frozen
class Allowed:
    """A command that may run: started from `program.path`, by `rule`."""

    rule: Rule
    program: Program
    argv: tuple[str, ...]


@attrs.frozen
class Policy:
    """The options, with the files that the rules' programs are."""

    options: Options
    root: Root | None
    programs: tuple[tuple[Rule, Program], ...] = attrs.field(repr=False)

    def allow(self, argv: Sequence[str]) -> Allowed:
        """Return what is started for *argv*; raise NotAllowedError if no rule has it."""
        if not self.programs:
            raise NotAllowedError(
                "argv: nothing may be run here, since the operator allowed nothing. Commands are allowed by the option "
                'allow of the pack shell, such as {"root": "/srv/project", "allow": ["ls", "ls *", "git status"]}'
            )
        if not argv or any("\0" in word for word in argv):
            raise NotAllowedError("argv: expected a program and its arguments, without NUL characters")
        first, arguments = argv[0], argv[1:]
        if "/" in first and not first.startswith("/"):
            raise NotAllowedError(f"argv[0]: {quoted(first)} depends on the folder; give the plain name of a program")
        meant = [(rule, program) for rule, program in self.programs if program.is_meant_by(first)]
        fitting = [(rule, program) for rule, program in meant if rule.fits(arguments)]
        faults = [rule.fault_of(arguments) for rule, _ in fitting]
        if None not in faults:
            raise NotAllowedError(f"argv: {faults[0] if faults else self._why_not(first, [rule for rule, _ in meant])}")
        rule, program = fitting[faults.index(None)]
        return Allowed(rule, program, (_path_of(program), *arguments))

    def _why_not(self, first: str, meant: Sequence[Rule]) -> str:
        rules = meant or [rule for rule, _ in self.programs]
        told = ", ".join(f"`{rule}`" for rule in rules[:_MOST_TOLD])
        more = f" and {len(rules) - _MOST_TOLD} more" if len(rules) > _MOST_TOLD else ""
        what = f"{quoted(first)} with these arguments is not allowed" if meant else f"{quoted(first)} is not allowed"
        return f"{what}; allowed are {told}{more}. The operator adds others to the option allow of the pack shell"

    def limits(self, seconds: float) -> Limits:
        """Return the limits of one run."""
        return Limits(
            seconds=seconds,
            cpu_seconds=math.ceil(seconds) + 1,
            memory_bytes=self.options.memory_megabytes * _MEGABYTE,
            file_bytes=self.options.file_megabytes * _MEGABYTE,
            output_bytes=self.options.output_bytes,
            open_files=_OPEN_FILES,
        )


def _path_of(program: Program) -> str:
    """Return where a program is started from, if it is still what it was."""
    if program.path is None:
        raise NotAllowedError(f"argv[0]: {quoted(program.name)} is allowed, but not installed here")
    if not program.is_unchanged:
        raise NotAllowedError(
            f"argv[0]: {quoted(program.name)} is another file than when the pack was loaded; the operator reloads the "
            "pack if that is right"
        )
    return program.path


def read_policy(options: Mapping[str, Any]) -> Policy:
    """Return the policy of a manifest's *options*; raise OptionsError if there is a mistake."""
    read = read_options(Options, {**options, "allow": _rules(options.get("allow", ()))})
    root = None if read.root is None else _root(read.root)
    if read.allow and root is None:
        raise _mistake("root", "is needed where commands are allowed; say the folder that they run in")
    programs = tuple((rule, Program.find(rule.program)) for rule in read.allow)
    for index, (_, program) in enumerate(programs):
        if root is not None and _is_within(program, root):
            raise _mistake(
                f"allow[{index}]", f"{program.name!r} lies in root, where it can be replaced; keep programs elsewhere"
            )
    return Policy(read, root, programs)


def _root(folder: Path) -> Root:
    try:
        return Root(folder.expanduser())
    except PathError as error:
        raise _mistake("root", str(error)) from None


def _rules(allow: Any) -> Any:
    """Return the rules with those that are plain text written out."""
    if not isinstance(allow, list | tuple):
        return allow
    return [{"command": rule} if isinstance(rule, str) else rule for rule in allow]


def _is_within(program: Program, root: Root) -> bool:
    return any(Path(place).is_relative_to(root.folder) for place in (program.path, program.real) if place)


def _mistake(place: str, message: str) -> OptionsError:
    from agentos.errors import Problem

    return OptionsError([Problem(f"options.{place}", message)])
