"""The examination of a pack: every check, and one error that lists all that was found."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agentos.model.field_checks import did_you_mean
from agentos.testing._candidate import Candidate
from agentos.testing._check_registry import STOP_CHECKS, PackSurvey, survey_pack
from agentos.testing._examination_settings import OWN_FILE, check_settings, folder_settings, refuse, unknown_names
from agentos.testing._pack_sources import folder_named
from agentos.testing._preparation import Prepare
from agentos.testing._sandbox import leaving_sandboxes
from agentos.testing.checks import CHECKS, Check, tools_of
from agentos.tools.lint.findings import Finding

__all__ = ["Finding", "assert_pack_ok", "check_pack", "chosen_checks", "examine_pack", "is_failure", "report"]


async def examine_pack(
    pack: Any,
    *,
    options: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    samples: Mapping[str, Any] | None = None,
    beneath: Sequence[Any] | None = None,
    seed: str | Path | None = None,
    prepare: Prepare | None = None,
    skip: Collection[str] | None = None,
    only: Collection[str] | None = None,
    sandboxed: bool | None = None,
    isolation: str | None = None,
    limit: float | None = None,
    grace: float | None = None,
    cases: int | None = None,
) -> list[Finding]:
    """Run the conformance checks on *pack*, and return what they find.

    *pack* is what `make_host` takes: a pack, a factory, a name, a path. In texts of *options*, *samples* and *secrets*,
    `{tmp}` stands for a folder that is fresh whenever a check begins: empty, or a copy of the folder *seed*. *prepare*
    is called with that folder and gives an async context manager, entered before each check and left after it; what it
    yields are values for further `{name}`s. *secrets* are values for a pack that looks at them; all others are
    canaries. *samples* are good arguments by the names of tools: a mapping, or several. *beneath* are packs that are
    loaded first. *skip* and *only* are ids of checks, or `check:tool`; *skip* may say the reason of each. Tools that
    change something are only asked what they would do, unless *sandboxed* says that whatever they do is harmless. With
    *isolation* "process" the pack runs in a worker, as its manifest entry may say. A call may take *limit* seconds (5),
    what was told to end *grace* seconds (2), and a tool gets up to *cases* hostile calls (200) that fit its schema and
    as many others. Of a pack that is named by the folder of its distribution, what is not given here is
    taken from the files `conformance.toml` and `conformance.py` there.
    """
    given = {name: value for name, value in locals().items() if name != "pack" and value is not None}
    said = settings_of(pack)
    settings = {**said, **check_settings(given), "said_in": _places(pack, said.keys() - given.keys())}
    skip, only = settings.pop("skip", ()), settings.pop("only", ())
    settings.pop("strict", None)
    candidate = Candidate(pack, **settings)
    wanted = list(chosen_checks(skip, only, candidate.said_in))
    try:
        with leaving_sandboxes():
            return await _examined(candidate, wanted, skip, only)
    finally:
        candidate.close()


def settings_of(pack: Any) -> dict[str, Any]:
    """Return what a pack's own folder says of it, if it is named by that."""
    folder = folder_named(pack)
    return {} if folder is None else folder_settings(folder)


def _places(pack: Any, names: Collection[str]) -> dict[str, str]:
    folder = folder_named(pack)
    return {} if folder is None else dict.fromkeys(names, str(folder / OWN_FILE))


async def _examined(
    candidate: Candidate, wanted: Iterable[Check], skip: Collection[str], only: Collection[str]
) -> list[Finding]:
    found = await CHECKS["loads"].run(candidate)
    if any(map(is_failure, found)):
        return found
    tools = await tools_of(candidate)
    check_names(candidate, await survey_pack(candidate), skip, only)
    for check in wanted:
        if check.id == "loads":
            continue
        for tool in tools if check.is_about_tools else [None]:
            if tool is None or (check.applies(candidate, tool) and is_wanted(check.id, tool.name, skip, only)):
                found += await check.run(candidate, tool)
            if STOP_CHECKS in candidate.cache:  # all others would say the same
                return found
    return found


async def assert_pack_ok(pack: Any, *, strict: bool | None = None, **settings: Any) -> list[Finding]:
    """Raise one AssertionError with everything that the conformance checks find wrong; return what they only remark.

    *strict* counts warnings too. Other keywords are those of `examine_pack`.
    """
    found = await examine_pack(pack, **settings)
    strict = bool(settings_of(pack).get("strict")) if strict is None else strict
    wrong = [finding for finding in found if is_failure(finding, strict=strict)]
    if wrong:
        raise AssertionError(report(wrong))
    return found


def check_pack(pack: Any, *, strict: bool | None = None, **settings: Any) -> list[Finding]:
    """Do what `assert_pack_ok` does, in a test that is not async."""
    with leaving_sandboxes():
        return asyncio.run(assert_pack_ok(pack, strict=strict, **settings))


def is_failure(finding: Finding, *, strict: bool = False) -> bool:
    """Tell whether a finding fails the examination."""
    return finding.severity == "error" or (strict and finding.severity == "warning")


def report(found: Sequence[Finding]) -> str:
    """Return all findings as one text, each with pack, tool, check and cure."""
    things = "1 thing" if len(found) == 1 else f"{len(found)} things"
    return "\n".join([f"{things} to mend:", *(f"  {finding}" for finding in found)])


def chosen_checks(
    skip: Collection[str], only: Collection[str], said_in: Mapping[str, str] = MappingProxyType({})
) -> Iterable[Check]:
    """Yield the checks to make; an id that there is not is refused with the nearest one, and with its file."""
    for place, ids in (("skip", skip), ("only", only)):
        unknown = [name for id in ids if (name := id.partition(":")[0]) not in CHECKS]
        faults = (
            f"there is no check {one!r}{did_you_mean(one, CHECKS)}; known: {', '.join(CHECKS)}" for one in unknown
        )
        refuse(faults, _beginning(said_in, place))
    named = {id.partition(":")[0] for id in only}
    return (check for id, check in CHECKS.items() if id not in skip and (not named or id in named))


def check_names(candidate: Candidate, known: PackSurvey, skip: Collection[str], only: Collection[str]) -> None:
    """Refuse settings that name a tool or a secret which the pack does not have, each with the file that says so."""
    tools = [tool.name for tool in known.tools]
    found = {
        "samples": unknown_names(candidate.samples, tools, "samples", "tool"),
        "secrets": unknown_names(candidate.secrets, known.secrets, "secrets", "secret"),
        "skip": _faults_of_ids("skip", skip, tools),
        "only": _faults_of_ids("only", only, tools),
    }
    refuse(f"{_beginning(candidate.said_in, name)}{fault}" for name, faults in found.items() for fault in faults)


def _beginning(said_in: Mapping[str, str], name: str) -> str:
    return f"{said_in[name]}: " if name in said_in else ""


def _faults_of_ids(place: str, ids: Collection[str], tools: Sequence[str]) -> Iterator[str]:
    for id in ids:
        name, colon, tool = id.partition(":")
        if colon and not CHECKS[name].is_about_tools:
            yield f"{place}: {id!r}: the check {name!r} is about the whole pack; say {name!r}"
        elif colon:
            yield from unknown_names([tool], tools, f"{place}: {id!r}", "tool")


def is_wanted(check: str, tool: str, skip: Collection[str], only: Collection[str]) -> bool:
    """Tell whether a check of one tool is to be made."""
    key = f"{check}:{tool}"
    return key not in skip and (not only or check in only or key in only)
