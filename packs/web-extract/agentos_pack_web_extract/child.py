"""Runs the reading of a foreign document in a process of its own, within limits."""

import asyncio
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from agentos_pack_common import Limits, ProcessResult, run_python

_CHILD = Path(__file__).with_name("_child.py")
_MEMORY = 1_500_000_000
_OUTPUT = 16_000_000
_START = 10.0
"""Seconds for the process to start, on a machine that is busy."""
_AT_ONCE = 4


@attrs.frozen
class Reading:
    """What a process told, and in words what kept it from telling more."""

    lines: tuple[Mapping[str, Any], ...] = attrs.field(repr=False)
    problem: str | None = None


class LibraryError(ValueError):
    """A library that reads documents can't be imported on this machine."""


class Reader:
    """Reads documents, a few at once."""

    def __init__(self, seconds: float) -> None:
        self._limits = Limits(
            seconds=seconds + _START,
            cpu_seconds=math.ceil(seconds),
            memory_bytes=_MEMORY,
            file_bytes=0,
            output_bytes=_OUTPUT,
            open_files=64,
        )
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def read(self, document: bytes, **task: Any) -> Reading:
        """Return what *document* says; raise LibraryError if nothing here can read such documents."""
        async with self._places:
            done = await run_python(_CHILD, json.dumps(task), stdin=document, limits=self._limits)
        lines = _lines(done.stdout)
        _check_library(lines)
        return Reading(tuple(lines), _problem(done))


def _lines(said: bytes) -> list[Mapping[str, Any]]:
    """Return the whole lines; the last one may have been cut off."""
    whole = [line for line in said.split(b"\n")[:-1] if line]
    return [json.loads(line) for line in whole]


def _check_library(lines: list[Mapping[str, Any]]) -> None:
    if lines and "unusable" in lines[-1]:
        library, reason = lines[-1]["unusable"], lines[-1]["reason"]
        raise LibraryError(
            f"the library {library} can't be imported on this machine ({reason}); whoever runs it installs "
            "agentos-pack-web-extract again, with its dependencies"
        )


def _problem(done: ProcessResult) -> str | None:
    if done.timed_out or done.signal in ("SIGXCPU", "SIGKILL"):
        return "reading it took too long and was ended"
    if done.truncated:
        return "it has too much text"
    if done.exit_code != 0:
        return "reading it failed; it may be broken, or made to exhaust the reader"
    return None
