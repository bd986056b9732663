"""Hostile calls of one tool, made once, and everything that came of them."""

import builtins
import contextlib
import json
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from agentos import Tool, ToolResult
from agentos.testing._candidate import Candidate, CandidateHost
from agentos.testing._sandbox import Sandbox
from agentos.testing._watchdog import EndlessCall, SkippedCall, Watchdog
from agentos.testing.hostile import MARKER, Baits, Case, hostile_arguments
from agentos.testing.network import Attempt

_MAX_STUCK = 3
"""After how many calls that do not end the rest is left out."""


@attrs.frozen
class Exchange:
    """One call and what became of it: a result, or a text that says why there is none."""

    case: Case
    result: Any
    seconds: float
    was_marked: bool = False
    """Whether the marker of hostile texts was made: something ran one of them."""


@attrs.frozen
class Transcript:
    """What happened in the calls of one tool."""

    exchanges: list[Exchange]
    attempts: list[Attempt]
    lines: list[str]
    warned: list[str]
    printed: str
    events: list[Any]
    masked: list[str]
    """What had a secret in it before the host masked it."""
    baits: Baits
    token: str
    """What the file says that hostile paths lead to."""


async def transcript_of(candidate: Candidate, tool: Tool) -> Transcript:
    """Return the transcript of a tool's hostile calls; they are made once for all checks."""
    key = ("transcript", tool.name)
    if key not in candidate.cache:
        async with candidate.sandbox() as sandbox:
            with _laid_out_baits(sandbox) as (baits, token):
                candidate.cache[key] = await _make_transcript(candidate, tool, sandbox, baits, token)
    found: Transcript = candidate.cache[key]
    return found


@contextlib.contextmanager
def _laid_out_baits(sandbox: Sandbox) -> Iterator[tuple[Baits, str]]:
    """Lay out what hostile texts point at: a file that nobody should read, a port that nobody should connect to."""
    token = f"bait-{os.urandom(8).hex()}"
    file = sandbox.folder / "b" / "bait.txt"
    file.parent.mkdir()
    file.write_text(token, "ascii")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield Baits(str(file), f"127.0.0.1:{listener.getsockname()[1]}"), token


async def _make_transcript(candidate: Candidate, tool: Tool, sandbox: Sandbox, baits: Baits, token: str) -> Transcript:
    samples = candidate.arguments(tool)
    cases = hostile_arguments(tool.input_schema, samples=samples, baits=baits, limit=candidate.cases)
    del sandbox.attempts[:]  # laying out the baits was ours
    with Watchdog() as watchdog:
        async with candidate.host() as session:
            exchanges = await _make_calls(session, session.tool(tool.name), cases, watchdog)
            events, masked = list(session.events), list(session.masked)
    printed = sandbox.output + sandbox.error_output.getvalue()
    lines, warned = list(sandbox.lines()), sandbox.warnings()
    return Transcript(exchanges, list(sandbox.attempts), lines, warned, printed, events, masked, baits, token)


async def _make_calls(session: CandidateHost, tool: Tool, cases: Iterable[Case], watchdog: Watchdog) -> list[Exchange]:
    exchanges: list[Exchange] = []
    for case in cases:
        began = time.perf_counter()
        result = await session.watched_call(watchdog, tool, case.arguments)
        seconds = time.perf_counter() - began
        exchanges.append(Exchange(case, result, seconds, was_marked=_remove_marker(Path(MARKER))))
        is_hopeless = isinstance(result, EndlessCall)
        if is_hopeless or sum(not isinstance(one.result, ToolResult) for one in exchanges) >= _MAX_STUCK:
            break
    return exchanges


def _remove_marker(marker: Path) -> bool:
    if marker.is_dir():
        marker.rmdir()
        return True
    try:
        marker.unlink()
    except OSError:
        return False
    return True


# -- what is wrong with a result ---------------------------------------------------------------------------------------


def is_success(result: Any) -> bool:
    """Tell whether a call ended in success."""
    return isinstance(result, ToolResult) and result.success


_TRACEBACK = re.compile(r'Traceback \(most recent call last\)|File "[^"]+", line \d+')
_PROGRAMMING_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    LookupError,
    MemoryError,
    NameError,
    NotImplementedError,
    RecursionError,
    StopIteration,
    SyntaxError,
    SystemExit,
    TypeError,
    UnicodeError,
)
"""Exceptions that say that a program slipped, rather than that it refused something."""
_PROGRAMMING_ERROR_NAMES = ("CancelledError", "PatternError", "error")
_PROGRAMMING_ERROR_CURE = (
    "refuse what the tool can't use with a ValueError that names the parameter and says what is expected"
)


def faults_of(result: Any) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with how a call ended, with its cure."""
    if isinstance(result, SkippedCall):
        return
    if not isinstance(result, ToolResult):
        yield str(result), "bound what a call may do, and give the tool a timeout="
        return
    yield from _faults_of_shape(result)
    error = result.error
    if error is not None and error.type in ("InvalidOutput", "ResultNotSerialisable"):
        yield f"{error.type}: {error.message}", "return what fits the output schema, on every path"
    if error is not None and error.type == "ToolRaised" and _is_programming_error(str(error.details.get("exception"))):
        yield f"it raised {error.message}", _PROGRAMMING_ERROR_CURE
    if _TRACEBACK.search(text_of(result)):
        yield "a traceback is in the result", "tell what went wrong in a sentence, and log the rest"


def _faults_of_shape(result: ToolResult) -> Iterator[tuple[str, str]]:
    if not isinstance(result.content, str) or not result.content.strip():
        yield "the content is empty", "give the model something to read"
    if result.success != (result.error is None):
        yield "the result is neither a success nor a failure", "use ToolResult.ok and ToolResult.fail"
    try:
        _result_json(result)
    except (TypeError, ValueError) as error:
        yield f"the result is not JSON: {error}", "return plain values"


def _result_json(result: ToolResult) -> str:
    """Return all that a result tells anybody, as JSON."""
    error = None if result.error is None else [result.error.type, result.error.message, dict(result.error.details)]
    parts = [result.content, result.output, result.state, error, dict(result.meta)]
    return json.dumps(parts, ensure_ascii=False, allow_nan=False).replace("\\\\", "\\").replace('\\"', '"')


def text_of(result: Any) -> str:
    """Return all that a result tells anybody; a text that stands for a missing one is itself."""
    try:
        return _result_json(result) if isinstance(result, ToolResult) else str(result)
    except (TypeError, ValueError):
        return repr(result)


def _is_programming_error(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return name in _PROGRAMMING_ERROR_NAMES or (isinstance(kind, type) and issubclass(kind, _PROGRAMMING_ERRORS))
