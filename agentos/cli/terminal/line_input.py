"""Lines that a person types while the event loop runs on: waiting for one can be cancelled, and holds nobody up."""

import asyncio
import contextlib
import os
import re
import sys

from agentos.cli.terminal.harmless_text import clean
from agentos.cli.terminal.output import Out

_CHUNK = 4096
_LONGEST = 1_000_000
_KEYS = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def can_ask(out: Out) -> bool:
    """Tell whether a person sees a question on stderr and can answer it."""
    return out.can_ask and sys.stderr is not None and sys.stderr.isatty()


async def read_line(prompt: str, *, afresh: bool = False) -> str | None:
    """Show *prompt* and return the next line without its end; None at the end of input.

    With *afresh* what was typed before the question was there does not count as its answer.
    """
    if afresh:
        _forget_typed()
    sys.stderr.write(clean(prompt))
    sys.stderr.flush()
    raw = await _next_line()
    if raw is None:
        sys.stderr.write("\n")
        return None
    return without_keys(raw.decode("utf-8", "replace"))


def without_keys(text: str) -> str:
    """Return *text* without what arrow and function keys leave in it."""
    return _KEYS.sub("", text)


def _stdin() -> int:
    return sys.stdin.fileno()


def _forget_typed() -> None:
    try:
        import termios
    except ImportError:  # pragma: no cover - another platform
        return
    with contextlib.suppress(termios.error):
        termios.tcflush(_stdin(), termios.TCIFLUSH)


async def _next_line() -> bytes | None:
    """Return a line's bytes. A terminal gives one line at a time, so nothing is taken that belongs to the next."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes | None] = loop.create_future()
    taken = bytearray()

    def take() -> None:
        try:
            chunk = os.read(_stdin(), _CHUNK)
        except OSError:  # the terminal is gone
            chunk = b""
        taken.extend(chunk)
        if not done.done() and (not chunk or chunk.endswith(b"\n") or len(taken) > _LONGEST):
            done.set_result(bytes(taken).rstrip(b"\r\n") if taken else None)

    try:
        loop.add_reader(_stdin(), take)
    except NotImplementedError:  # pragma: no cover - a platform whose loop can't wait for a terminal
        return await _typed_in_a_thread()
    try:
        return await done
    finally:
        loop.remove_reader(_stdin())


async def _typed_in_a_thread() -> bytes | None:  # pragma: no cover - as above
    try:
        return (await asyncio.to_thread(input)).encode("utf-8", "replace")
    except EOFError:
        return None
