"""Checks of how a pack comes and goes."""

import copy
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from agentos import PUBLIC, Descriptor, EntryState, ExtensionPack, Tool
from agentos.testing._candidate import Candidate, CandidateHost, NotLoadedError, is_excused
from agentos.testing._check_registry import Findings, check, survey_pack, tools_of
from agentos.testing._leftovers import ActivitySnapshot, ResourceSnapshot
from agentos.testing._sandbox import Sandbox
from agentos.testing.fakes import canary_of

_SABOTEUR = "agentos.testing"


class SabotageError(Exception):
    """What fails on purpose."""


@check("gate")
async def gate(candidate: Candidate) -> Findings:
    """Load without secrets, gated where one is required; be in force as soon as they are there."""
    async with candidate.sandbox():
        try:
            async with candidate.host(with_secrets=False) as session:
                for message, cure in _ungated(session):
                    yield candidate.finding("gate", message, cure)
                for finding in [one async for one in _after_secrets(session)]:
                    yield finding
        except NotLoadedError as error:
            cure = "declare the secret in required_secrets and let the host gate what needs it"
            yield candidate.finding("gate", f"it can't be loaded without its secrets: {error}", cure)


def _ungated(session: CandidateHost) -> Iterator[tuple[str, str]]:
    for entry in session.entries():
        needs_secrets = any(not need.optional for need in entry.descriptor.required_secrets)
        if needs_secrets and entry.state != EntryState.GATED:
            what = f"the {entry.kind} {entry.id}"
            yield f"{what} is {entry.state} without the secrets that it requires", "do not set them yourself"


async def _after_secrets(session: CandidateHost) -> Findings:
    """Give the secrets one after another, and see what is still out of force."""
    candidate = session.candidate
    declared = dict.fromkeys(need.id for entry in session.entries() for need in entry.descriptor.required_secrets)
    for id in declared:
        await session.host.extensions.set_secret(id, candidate.values.get(id, canary_of(id)))
    for entry in session.entries():
        if not entry.state.in_force and not is_excused(entry):
            message = f"the {entry.kind} {entry.id} is {entry.state} although its secrets came: {entry.reason}"
            yield candidate.finding("gate", message, "let on_activate work when it is run later than the load")


@check("twice")
async def twice(candidate: Candidate) -> Findings:
    """Come and go twice: loaded, switched off and on, unloaded, and all that again, with nothing left running."""
    async with candidate.sandbox():
        before = ActivitySnapshot.now()
        async with candidate.host(load=False) as session:
            found = [one async for one in _coming_and_going(session)]
        for message, cure in (*found, *await before.left_over(candidate.grace)):
            yield candidate.finding("twice", message, cure)


async def _coming_and_going(session: CandidateHost) -> AsyncIterator[tuple[str, str]]:
    first: Sequence[Any] = ()
    for round in ("first", "second"):
        outcome = await session.attempt()
        if outcome.status != "loaded":
            yield f"it can't be loaded a {round} time: {outcome.reason}", "undo in on_deactivate what on_activate did"
            return
        first = first or [(entry.kind, entry.id, str(entry.state)) for entry in session.entries()]
        switched = await _switched(session, first)
        raised = await session.host.extensions.unload(session.key)
        for message in [*switched, *(f"unloading raised {error}" for error in raised)]:
            yield f"the {round} time {message}", "make the hooks undo each other, however often they run"


async def _switched(session: CandidateHost, first: Sequence[Any]) -> list[str]:
    """Switch the pack off and on again, and say what is different then."""
    manager = session.host.extensions
    try:
        await manager.disable(session.key)
        await manager.enable(session.key)
    except Exception as error:  # noqa: BLE001 - a hook is foreign code
        return [f"it can't be switched off and on: {error}"]
    found = [(entry.kind, entry.id, str(entry.state)) for entry in session.entries()]
    missing = [one for one in first if one not in found]
    return [f"{kind} {id} is no longer {state}" for kind, id, state in missing]


@check("leaks")
async def leaks(candidate: Candidate) -> Findings:
    """Leave nothing behind: no task, thread, descriptor, process, file, or setting of the process."""
    known = await survey_pack(candidate)
    for message, cure in known.left_over:
        yield candidate.finding("leaks", message, cure)
    for is_first in (True, False):
        async with candidate.sandbox() as sandbox:
            before = ResourceSnapshot.now(sandbox)
            async with candidate.host() as session:
                await _call_all(session, known.tools)
                await session.host.extensions.unload(session.key)
            grace = candidate.grace
            for message, cure in await (before.left_over_resources(grace) if is_first else before.left_over(grace)):
                yield candidate.finding("leaks", message, cure)


async def _call_all(session: CandidateHost, tools: list[Tool]) -> None:
    """Call every tool once with good arguments."""
    for tool in tools:
        for arguments in session.candidate.arguments(tool)[:1] if tool.execute is not None else ():
            await session.bounded_call(tool, arguments)


@check("sabotage")
async def sabotage(candidate: Candidate) -> Findings:
    """Leave nothing behind when a part of it can't be activated, wherever in the pack that part is."""
    await tools_of(candidate)
    async with candidate.sandbox() as sandbox:
        for place in ("first", "last"):
            for finding in [
                one async for one in _load_with_failing_part(candidate, sandbox, is_first=place == "first")
            ]:
                yield finding


async def _load_with_failing_part(candidate: Candidate, sandbox: Sandbox, *, is_first: bool) -> Findings:
    def fails() -> None:
        raise SabotageError("on purpose")

    saboteur = Descriptor(_SABOTEUR, "saboteur", "a part that can't be activated", on_activate=fails)
    before = ResourceSnapshot.now(sandbox)
    async with candidate.host(load=False) as session:
        await session.attempt(lambda given: [saboteur, *given] if is_first else [*given, saboteur])
    where = "its first part" if is_first else "its last part"
    for message, cure in await before.left_over(candidate.grace):
        yield candidate.finding("sabotage", f"after {where} failed: {message}", cure.replace("on_", "the pack's on_"))


class _StandIn:
    """A tool that was there first. It is an ordinary object, so that what is done to it can be seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.description = "Answer what the tool beneath answers."
        self.input_schema: dict[str, Any] = {"type": "object", "additionalProperties": True}
        self.effect = "read"
        self.required_access = PUBLIC

    async def execute(self, args: Any, context: Any) -> None:
        """Answer nothing."""


@check("restores")
async def restores(candidate: Candidate) -> Findings:
    """Give back what it displaced, as it was, when it is unloaded."""
    await tools_of(candidate)
    descriptors = [] if candidate.pack is None else candidate.pack.descriptors
    ground = [Descriptor(one.kind, one.id, _stand_in(one), -(10**9)) for one in descriptors]
    beneath = [ExtensionPack(_STAND_INS, "0", ground)]
    async with candidate.sandbox(), candidate.host(beneath=beneath, load=False) as session:
        kept = [_state(one, session) for one in ground]
        await session.load()
        await session.host.extensions.unload(session.key)
        for one, before in zip(ground, kept, strict=True):
            if (after := _state(one, session)) != before:
                what = "changed" if after[0] == before[0] else "gone"
                message = f"the {one.kind} {one.id} that was there before is {what}"
                yield candidate.finding("restores", message, "undo in on_deactivate what was done to others")


_STAND_INS = "stand-ins"


def _stand_in(descriptor: Descriptor[Any]) -> Any:
    """Return what was there first: for other kinds than tools the pack's own payload, which is sure to be taken."""
    return _StandIn(descriptor.id) if descriptor.kind == "tool" else descriptor.payload


def _state(descriptor: Descriptor[Any], session: CandidateHost) -> tuple[Any, Any]:
    """Return who is active on a stack, and what the stand-in there is like."""
    active = session.host.extensions.registry(descriptor.kind).get_active(descriptor.id)
    payload = descriptor.payload
    like = copy.deepcopy(vars(payload)) if isinstance(payload, _StandIn) else None
    return None if active is None else active.source.pack, like
