"""What a check is: an id, a sentence, and a function that finds things."""

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import attrs

from agentos import Entry, Tool
from agentos.base.foreign import Border
from agentos.testing._candidate import Candidate, NotLoadedError, is_excused
from agentos.testing._leftovers import ResourceSnapshot
from agentos.testing._preparation import PreparationError
from agentos.tools.lint.findings import Finding

Findings = AsyncIterator[Finding]
Function = Callable[..., Findings]
STOP_CHECKS = "not again"
"""What is kept of a candidate that could be loaded once, and then no more."""
_SURVEY = "survey"
_MOST = 5
"""How many findings of one check about one tool are listed: the rest would be the same again."""


def _always(candidate: Candidate, tool: Tool | None) -> bool:  # noqa: ARG001 - the signature is the contract
    return True


@attrs.frozen
class Check:
    """Something that holds for every good pack. One that is about tools is made for each of them."""

    id: str
    function: Function = attrs.field(repr=False)
    is_about_tools: bool = False
    applies: Callable[[Candidate, Any], bool] = attrs.field(default=_always, repr=False)

    @property
    def summary(self) -> str:
        """Return what the check says of a pack that passes, in a sentence."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    async def run(self, candidate: Candidate, tool: Tool | None = None) -> list[Finding]:
        """Return what the check finds; that it could not be finished is a finding too."""
        with Border() as border:  # a pack is foreign code, whatever it is asked
            found = self.function(candidate, tool) if self.is_about_tools else self.function(candidate)
            return _shortened([finding async for finding in found])
        error = border.raised
        if isinstance(error, NotLoadedError):
            message, cure = _cant_be_loaded(candidate, error)
        elif isinstance(error, PreparationError):
            message, cure = str(error), "fix what prepares the sandbox, such as conformance.py"
        else:
            message, cure = f"it could not be checked: {type(error).__name__}: {error}", "see where that comes from"
        return [candidate.finding(self.id, message, cure, tool=tool.name if tool else "")]


def _cant_be_loaded(candidate: Candidate, error: NotLoadedError) -> tuple[str, str]:
    if _SURVEY not in candidate.cache:
        return f"the pack can't be loaded: {error}", "see the check `loads`"
    candidate.cache[STOP_CHECKS] = True
    return f"the pack can't be loaded again: {error}", "undo in on_deactivate what on_activate did"


def _shortened(found: list[Finding]) -> list[Finding]:
    """Leave out what says the same again."""
    unique = list(dict.fromkeys(found))
    if len(unique) <= _MOST:
        return unique
    last = attrs.evolve(unique[_MOST - 1], message=f"{unique[_MOST - 1].message} (and {len(unique) - _MOST} more)")
    return [*unique[: _MOST - 1], last]


CHECKS: dict[str, Check] = {}
"""The checks by their ids, in the order in which they are made."""


def check(id: str, **more: Any) -> Callable[[Function], Function]:
    """Add a check about a pack; *more* are other fields of it."""

    def add(function: Function) -> Function:
        CHECKS[id] = Check(id, function, **more)
        return function

    return add


def tool_check(id: str, applies: Callable[[Candidate, Any], bool] = _always) -> Callable[[Function], Function]:
    """Add a check about every tool of a pack that it *applies* to."""
    return check(id, is_about_tools=True, applies=applies)


@attrs.frozen
class PackSurvey:
    """What was seen when the pack was loaded for the first time."""

    tools: list[Tool]
    idle: list[Entry]
    """What is not in force, although its secrets are there."""
    left_over: list[tuple[str, str]]
    is_empty: bool
    """Whether there is nothing of it on any stack."""
    secrets: list[str]
    """The ids of the secrets that were declared or asked for."""


async def survey_pack(candidate: Candidate) -> PackSurvey:
    """Load the pack and unload it; the first time is the only one in which what is made once can be seen to stay."""
    if _SURVEY not in candidate.cache:
        async with candidate.sandbox() as sandbox:
            before = ResourceSnapshot.now(sandbox)
            async with candidate.host() as session:
                tools, entries = session.all_tools(), session.entries()
                declared = [need.id for one in entries for need in one.descriptor.required_secrets]
                asked = [*dict.fromkeys([*declared, *session.secrets.reads])]
            idle = [one for one in entries if not one.state.in_force and not is_excused(one)]
            candidate.cache[_SURVEY] = PackSurvey(
                tools, idle, await before.left_over_resources(candidate.grace), not entries, asked
            )
    return known_survey(candidate)


def known_survey(candidate: Candidate) -> PackSurvey:
    """Return what was seen when the pack was loaded; it was."""
    found: PackSurvey = candidate.cache[_SURVEY]
    return found


async def tools_of(candidate: Candidate) -> list[Tool]:
    """Return the tools that the pack has on the stacks once it is loaded with all its secrets."""
    return (await survey_pack(candidate)).tools


def is_bound(candidate: Candidate, tool: Tool) -> bool:  # noqa: ARG001 - the signature is the contract
    """Tell whether a tool can be called at all."""
    return tool.execute is not None


def changes_things(candidate: Candidate, tool: Tool) -> bool:
    """Tell whether a tool can be called and changes something."""
    return is_bound(candidate, tool) and tool.effect != "read"


def can_run(candidate: Candidate, tool: Tool) -> bool:
    """Tell whether a tool may really be run in an examination."""
    return is_bound(candidate, tool) and candidate.may_run(tool)
