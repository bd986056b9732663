"""Signals that are never missed: Python alone does not see one that comes just before it begins to wait."""

import contextlib
import functools
import os
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import asyncio

_CHUNK = 4096


@contextlib.contextmanager
def handled(number: signal.Signals, handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Have a signal handled for the block."""
    try:
        before = signal.signal(number, handler)
    except ValueError:  # not in the main thread: then somebody else sees to signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(number, before)


@contextlib.contextmanager
def waking(loop: "asyncio.AbstractEventLoop") -> Iterator[None]:
    """Let every signal wake *loop* for the block, so that its handler runs at once."""
    with _descriptor() as woken:
        if woken is None:
            yield
            return
        loop.add_reader(woken, os.read, woken, _CHUNK)
        try:
            yield
        finally:
            loop.remove_reader(woken)


def wait_to_read(file: TextIO) -> None:
    """Wait until *file* can be read. What a signal's handler raises ends the wait, whenever the signal comes."""
    try:
        descriptor = file.fileno()
    except OSError:  # it has none: nothing is waited for there
        return
    with _descriptor() as woken:
        if woken is None:
            return
        import select

        while descriptor not in select.select([descriptor, woken], [], [])[0]:
            os.read(woken, _CHUNK)


@contextlib.contextmanager
def _descriptor() -> Iterator[int | None]:
    """Give what can be read once a signal has come; None where there is no such thing."""
    if os.name == "nt":  # pragma: no cover - pipes can't be waited for there
        yield None
        return
    reading, writing = _pipe()
    try:
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    except ValueError:  # not in the main thread: its signals are not ours
        yield None
        return
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)


@functools.cache
def _pipe() -> tuple[int, int]:
    """Make the pipe once: a signal that comes while one is made or closed can then leave none behind each time."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    return reading, writing
