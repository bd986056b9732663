"""Signals that are never missed: Python alone does not see one that comes just before it begins to wait."""

import contextlib
import functools
import os
import signal
import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import asyncio

TERMINATED = 143
_CHUNK = 4096
_GRACE = 1.0
"""For how many seconds what runs may keep the event loop from hearing that it is to end."""


class Interruption:
    """Cancels a task on the first signal. The second one ends at once whatever runs in the main thread.

    Where that keeps the loop from hearing of the first, as foreign code does that sleeps, a second one is sent.
    """

    def __init__(self) -> None:
        self.number: signal.Signals | None = None

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Hear Ctrl-C and SIGTERM for the block, in the task that runs it."""
        import asyncio

        loop = asyncio.get_running_loop()
        take = functools.partial(self._take, loop, asyncio.current_task())
        _heard.set(self)
        with waking(loop), handled(signal.SIGINT, take), handled(signal.SIGTERM, take):
            yield

    def _take(
        self, loop: "asyncio.AbstractEventLoop", task: "asyncio.Task[Any] | None", number: int, _frame: object
    ) -> None:
        if self.number is not None:
            raise self.end()
        self.number = signal.Signals(number)
        if task is not None:
            task.cancel()
        heard = threading.Event()
        loop.call_soon_threadsafe(heard.set)  # it wakes up, too
        threading.Thread(target=self._insist, args=(heard,), daemon=True).start()

    def _insist(self, heard: threading.Event) -> None:
        main = threading.main_thread().ident
        if not heard.wait(_GRACE) and main is not None and self.number is not None:
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(main, self.number)
            else:  # pragma: no cover - elsewhere there are no such signals
                interrupt_main(self.number)

    def end(self) -> BaseException:
        """Return what ends the command, by the signal that came."""
        return KeyboardInterrupt() if self.number == signal.SIGINT else SystemExit(TERMINATED)


_heard: ContextVar[Interruption | None] = ContextVar("agentos_interruption", default=None)


def may_be_ctrl_c() -> bool:
    """Tell whether Ctrl-C may have raised a KeyboardInterrupt: where the first one cancels, only a second raises."""
    interruption = _heard.get()
    return interruption is None or interruption.number is not None


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
