"""One allowed command, as the operator writes it: `git log *`, and which options it may have."""

from collections.abc import Sequence
from typing import Any

import attrs
from agentos_pack_common import quoted

from agentos.rules.commands import CommandPattern, parse
from agentos.rules.launchers import launcher_of
from agentos_pack_shell._flags import fault_of_flag, forbidden, unlisted


def _command(_: Any, __: "attrs.Attribute[str]", value: str) -> None:
    """Check a pattern by the matcher that decides on it; its program must be named, not matched."""
    CommandPattern.parse(value)
    commands = parse(value)
    if commands.opaque:
        raise ValueError("expected a program's name and words such as `git log *`; the program can't be a pattern")
    program = commands.parts[0][0]
    if "/" in program and not program.startswith("/"):
        raise ValueError("the program depends on the folder; write a plain name such as `git`, or a whole path")


def _flags(_: Any, __: "attrs.Attribute[Any]", value: Sequence[str] | None) -> None:
    for flag in value or ():
        if fault := fault_of_flag(flag):
            raise ValueError(fault)


@attrs.frozen(kw_only=True)
class Rule:
    """A command that may run.

    command: a simple command whose words are globs; a final bare `*` stands for one or more words. flags: the only
    options it may have; None for any. forbid: options it may not have. runs_others: said aloud, for programs such as
    `env` and `find` that run whatever they are told, and for those such as `git` and `tar` that do so by some options.
    """

    command: str = attrs.field(validator=_command)
    flags: tuple[str, ...] | None = attrs.field(default=None, validator=_flags)
    forbid: tuple[str, ...] = attrs.field(default=(), validator=_flags)
    runs_others: bool = False
    _pattern: CommandPattern = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_pattern", CommandPattern.parse(self.command))
        if self.is_open and runs_others(self.program) and not self.runs_others:
            raise ValueError(
                f"`{self.program}` runs any other program that it is given; write out every word of its commands, "
                "or say runsOthers: true"
            )

    @property
    def program(self) -> str:
        """Return the program as the rule names it."""
        return parse(self.command).parts[0][0]

    @property
    def is_open(self) -> bool:
        """Tell whether some word of the command is left to the caller."""
        return bool(parse(self.command).expanding)

    @property
    def _written(self) -> list[str]:
        """Return the words that the command writes out: its own options need not be listed again."""
        commands = parse(self.command)
        return [word for place, word in enumerate(commands.parts[0]) if (0, place) not in commands.expanding]

    def fits(self, arguments: Sequence[str]) -> bool:
        """Tell whether *arguments*, the words behind the program, are those of the command."""
        return self._pattern.matches([self.program, *arguments], widely=False, runs_others=True)

    def fault_of(self, arguments: Sequence[str]) -> str | None:
        """Say which of *arguments*, which fit, is not allowed: an option, or what runs another program."""
        if self.flags is not None and (word := unlisted(arguments, {*self.flags, *self._written})) is not None:
            allowed = ", ".join(self.flags) or "none"
            return (
                f"the option {quoted(word)} is not allowed for `{self.command}`; options that are: {allowed}. Write an "
                "option's value as a word of its own, or behind ="
            )
        if (found := forbidden(arguments, self.forbid)) is not None:
            return (
                f"the option {quoted(found[0])} is, or may be read as, {found[1]}, which `{self.command}` may not have"
            )
        return None if self.runs_others else self._fault_of_launch(arguments)

    def _fault_of_launch(self, arguments: Sequence[str]) -> str | None:
        word = self._pattern.launched_by((self.program, *arguments))
        if word is None:
            return None
        return (
            f"by {quoted(word)}, `{self.program}` runs another program, or may; the operator allows that by "
            f"runsOthers: true for `{self.command}`"
        )

    def __str__(self) -> str:
        only = [] if self.flags is None else [f"options: {' '.join(self.flags) or 'none'}"]
        never = [f"never: {' '.join(self.forbid)}"] if self.forbid else []
        return f"{self.command} ({'; '.join([*only, *never])})" if only or never else self.command


def runs_others(program: str) -> bool:
    """Tell whether *program* is known to run others, whatever its options."""
    launcher = launcher_of(program)
    return launcher is not None and launcher.operands is not None
