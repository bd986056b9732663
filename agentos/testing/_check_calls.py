"""Checks of what happens when a pack's tools are called."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from agentos import Tool, ToolCall, ToolResult
from agentos.testing._canaries import Canaries
from agentos.testing._candidate import Candidate, CandidateHost
from agentos.testing._check_registry import Findings, can_run, changes_things, check, is_bound, tool_check, tools_of
from agentos.testing._folder_snapshots import FolderSnapshot, folders_in
from agentos.testing._transcript import Exchange, Transcript, faults_of, is_success, text_of, transcript_of
from agentos.testing._watchdog import SkippedCall, Watchdog
from agentos.testing.network import Attempt, address_of
from agentos.tools.definition import definition_of
from agentos.tools.tool import as_tool, takes_nothing

# -- arguments ---------------------------------------------------------------------------------------------------------


@tool_check("hostile", is_bound)
async def hostile(candidate: Candidate, tool: Tool) -> Findings:
    """Survive arguments of every kind: each call ends in one result that says what is the matter."""
    if not candidate.arguments(tool):
        message = "no good arguments could be made from its schema"
        yield candidate.finding("hostile", message, "give some in samples=", tool=tool.name, severity="warning")
    seen: set[str] = set()
    for one in (await transcript_of(candidate, tool)).exchanges:
        for message, cure in () if _repeats_bad_text(one) else faults_of(one.result):
            kind = message.partition(":")[0]
            if kind not in seen:
                seen.add(kind)
                yield candidate.finding("hostile", f"{message}, given {one.case}", cure, tool=tool.name)


def _repeats_bad_text(one: Exchange) -> bool:
    """Tell whether a result could not be told for the half of a character that was given: to repeat it is no fault."""
    error = one.result.error if isinstance(one.result, ToolResult) else None
    if error is None or error.type != "ResultNotSerialisable":
        return False
    try:
        json.dumps(one.case.arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, RecursionError):
        return False
    return False


@tool_check("reach", is_bound)
async def reach(candidate: Candidate, tool: Tool) -> Findings:
    """Reach nothing that an argument points at: no inner address, no file elsewhere, no command."""
    transcript = await transcript_of(candidate, tool)
    for message, cure in (*_reached(transcript), *_bait_contents(transcript)):
        yield candidate.finding("reach", message, cure, tool=tool.name)
    for one in transcript.exchanges:
        if one.was_marked:
            cure = "never hand an argument to a shell, an interpreter or an option of a program"
            yield candidate.finding("reach", f"a text was run as a command, given {one.case}", cure, tool=tool.name)


def _reached(transcript: Transcript) -> Iterator[tuple[str, str]]:
    for attempt in dict.fromkeys(transcript.attempts):
        if attempt.what == "connect" and _is_inner(attempt, transcript):
            yield f"it tried to {attempt}, an inner address", "check every address, also of redirects and names"
        elif attempt.what == "open" and _is_bait(attempt.target, transcript):
            yield "it opened a file that only an argument named", "let paths lead nowhere but into a folder of yours"


def _is_inner(attempt: Attempt, transcript: Transcript) -> bool:
    address = address_of(attempt.target)
    if address is None or not address.is_loopback:
        return address is not None and (address.is_link_local or address.is_private)
    return f"{address}:{attempt.port}" == transcript.baits.address


def _is_bait(path: str, transcript: Transcript) -> bool:
    """Tell whether a path that was opened in the working folder leads to the bait, by whatever way."""
    bait = Path(transcript.baits.file)
    workplace = bait.parents[1] / "cwd"
    return path.endswith(bait.name) and os.path.realpath(workplace / path) == os.path.realpath(bait)


def _bait_contents(transcript: Transcript) -> Iterator[tuple[str, str]]:
    for one in transcript.exchanges:
        if transcript.token in text_of(one.result):
            cure = "let paths lead nowhere but into a folder of yours"
            yield f"it revealed what is in a file elsewhere, given {one.case}", cure


@tool_check("samples", lambda candidate, tool: tool.name in candidate.samples and can_run(candidate, tool))
async def samples(candidate: Candidate, tool: Tool) -> Findings:
    """Answer every sample of its author with success."""
    async with candidate.sandbox(), candidate.host() as session:
        for arguments in candidate.arguments(tool):
            result = await session.bounded_call(session.tool(tool.name), arguments)
            if not isinstance(result, SkippedCall) and not is_success(result):
                message = f"the sample {arguments!r:.100} failed: {getattr(result, 'content', result)}"
                yield candidate.finding("samples", message, "mend the tool, or the sample", tool=tool.name)


# -- secrets and standard output ---------------------------------------------------------------------------------------


@check("secrets")
async def secrets(candidate: Candidate) -> Findings:
    """Keep the values of its secrets to itself: in results, events, logs, warnings, outputs, reprs, definitions."""
    tools = [tool for tool in await tools_of(candidate) if is_bound(candidate, tool)]
    async with candidate.sandbox() as sandbox:
        there = set(_files_in(sandbox.folder))
        async with candidate.host() as session:
            canaries = Canaries(session.secrets)
            texts = [*_told_by_reprs(session), *_masked_by_host("its hooks", session.masked)]
            for tool in tools:
                texts += [one async for one in _told_by_calls(session, tool)]
            texts += [(f"the event {event.type}", repr(event)) for event in session.events]
            texts += [one for one in _files_in(sandbox.folder) if one not in there]
        texts += [("the log", line) for line in sandbox.lines()]
        texts += [("a warning", text) for text in sandbox.warnings()]
        texts += [("what it prints", sandbox.output + sandbox.error_output.getvalue())]
    for tool in tools:
        texts += _told_in_transcript(await transcript_of(candidate, tool), tool)
    for where, id in dict.fromkeys((where, id) for where, text in texts for id in canaries.found_in(text)):
        message = f"the value of the secret {id!r} is in {where}"
        yield candidate.finding("secrets", message, "take it from context.secret() where it is needed; tell nobody")


async def _told_by_calls(session: CandidateHost, tool: Tool) -> AsyncIterator[tuple[str, str]]:
    """Call a tool with good arguments, and yield what it told: what is seen, and what the host masked."""
    for arguments in session.candidate.arguments(tool):
        session.masked.clear()
        yield f"a result of {tool.name}", text_of(await session.bounded_call(tool, arguments))
        if Canaries(session.secrets).found_in(json.dumps(arguments, default=str)):
            continue  # it was given the value, and may repeat it
        for one in _masked_by_host(f"a call of {tool.name}", session.masked):
            yield one


def _masked_by_host(where: str, texts: list[str]) -> list[tuple[str, str]]:
    return [(f"what {where} told the host, which masked it", text) for text in texts]


def _files_in(folder: Path) -> Iterator[tuple[str, str]]:
    yield from ((f"the file {one.name}", _read(one)) for one in folder.rglob("*") if one.is_file())


def _told_in_transcript(transcript: Transcript, tool: Tool) -> Iterator[tuple[str, str]]:
    for one in transcript.exchanges:
        yield f"a result of {tool.name}", text_of(one.result)
    yield from _masked_by_host(f"a call of {tool.name}", transcript.masked)
    yield from (("the log", line) for line in transcript.lines)
    yield from (("a warning", text) for text in transcript.warned)
    yield "what it prints", transcript.printed
    yield from ((f"the event {event.type}", repr(event)) for event in transcript.events)


def _told_by_reprs(session: CandidateHost) -> Iterator[tuple[str, str]]:
    pack = session.candidate.pack
    yield "the repr of the pack", repr(pack) + repr(getattr(pack, "description", ""))
    for entry in session.entries():
        name = f"{entry.kind} {entry.id}"
        yield f"the repr of {name}", f"{entry!r} {entry.descriptor!r} {dict(entry.descriptor.metadata)!r}"
        yield f"the repr of the payload of {name}", f"{entry.payload!r} {entry.payload!s}"
        tool = as_tool(entry.payload) if entry.kind == "tool" else None
        if tool is not None:
            yield f"the definition of {tool.name}", repr(definition_of(tool))


def _read(path: Path) -> str:
    try:
        return path.read_bytes()[:1_000_000].decode("utf-8", "replace")
    except OSError:
        return ""


@check("quiet")
async def quiet(candidate: Candidate) -> Findings:
    """Write nothing to standard output: a host may speak a protocol there."""
    tools = await tools_of(candidate)
    async with candidate.sandbox() as sandbox:
        async with candidate.host() as session:
            for tool in tools:
                for arguments in candidate.arguments(tool)[:1] if is_bound(candidate, tool) else ():
                    await session.bounded_call(tool, arguments)
        if printed := sandbox.output:
            message = f"it printed {printed[:80]!r}"
            yield candidate.finding("quiet", message, "log through context.logger, or put it into the result")


# -- dry runs ----------------------------------------------------------------------------------------------------------


@tool_check("dry-run", changes_things)
async def dry_run(candidate: Candidate, tool: Tool) -> Findings:
    """Show what a call would change, without changing anything."""
    if tool.wraps and takes_nothing(tool):
        return  # that of the tool beneath
    if tool.dry_run is None:
        cure = "give it a dry_run(args, context) that says what would happen"
        message = "whoever is asked to approve a call sees only its arguments"
        yield candidate.finding("dry-run", message, cure, tool=tool.name, severity="warning")
        return
    async with candidate.sandbox() as sandbox:
        folders = [sandbox.workplace, *folders_in(candidate.options_here)]
        async with candidate.host() as session:
            for arguments in candidate.arguments(tool):
                before = FolderSnapshot.of(folders), await _readings(session)
                result = await _previewed(session, tool, arguments)
                after = FolderSnapshot.of(folders), await _readings(session)
                for message, cure in _effects_of_preview(result, before, after):
                    yield candidate.finding("dry-run", message, cure, tool=tool.name)


async def _previewed(session: CandidateHost, tool: Tool, arguments: Any) -> Any:
    call = ToolCall(session.qualified(tool), arguments)
    with Watchdog() as watchdog:
        return await watchdog.ended(session.host.tools.preview(call), session.candidate.limit)


async def _readings(session: CandidateHost) -> dict[str, str]:
    """Return what the pack's reading tools say, those that say the same twice."""
    readings: dict[str, str] = {}
    for tool in session.tools():
        for arguments in session.candidate.arguments(tool)[:1] if tool.effect == "read" else ():
            first, second = [text_of(await session.bounded_call(tool, arguments)) for _ in range(2)]
            if first == second:
                readings[tool.name] = first
    return readings


def _effects_of_preview(result: Any, before: Any, after: Any) -> Iterator[tuple[str, str]]:
    cure = "let the dry run read and say, and nothing else"
    yield from faults_of(result)
    for path in before[0].changes(after[0]):
        yield f"the dry run changed {path}", cure
    for name in before[1].keys() & after[1].keys():
        if before[1][name] != after[1][name]:
            yield f"after the dry run {name} answers differently", cure
