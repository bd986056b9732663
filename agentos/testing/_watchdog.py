"""Breaks into calls that nothing else ends: they keep the event loop to themselves, or defy their cancellation."""

import asyncio
import ctypes
import selectors
import sys
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Self

from agentos.base.foreign import Border

_PERIOD = 0.1
_SLACK = 1.0
_POLL = 0.01
_THROWS = 5
_abandoned: list[Any] = []
"""Tasks that nothing ends. They are kept: to lose them would have them complain."""


async def wait_until_idle(is_busy: Callable[[], object], seconds: float) -> bool:
    """Wait until nothing is busy any more; False if that took longer than *seconds*."""
    until = time.monotonic() + seconds
    await asyncio.sleep(0)
    while is_busy():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(_POLL)  # foreign threads and processes tell nobody when they end
    return True


class StuckError(BaseException):
    """Raised within a call that does not let the event loop go on. No `except Exception` holds it up."""


class EndlessCall(str):
    """A text that stands for the result of a call that did not end, not even when it was cancelled."""

    __slots__ = ()


class SkippedCall(EndlessCall):
    """A text that stands for the result of a call that was not made, since others before did not end."""

    __slots__ = ()


# -- tasks that defy their cancellation --------------------------------------------------------------------------------


def tasks_ignoring_cancel(before: Collection[Any]) -> list[Any]:
    """Return the tasks that came since *before*, were cancelled, and go on."""
    return [task for task in asyncio.all_tasks().difference(before) if task.cancelling()]


async def break_off(tasks: Collection[Any]) -> None:
    """End tasks that defy their cancellation by an exception that they do not expect, or leave them behind."""
    for _ in range(_THROWS):
        pending = [task for task in tasks if not task.done()]
        if not pending:
            break
        for task in pending:
            _throw(task)
        await asyncio.wait(pending, timeout=_POLL)
    for task in tasks:
        if not task.done():
            _abandon(task)
        elif not task.cancelled():
            task.exception()  # seen


def _throw(task: Any) -> None:
    """Raise where a task waits."""
    waiter = task
    while isinstance(waiter, asyncio.Task):
        waiter = getattr(waiter, "_fut_waiter", None)
    if isinstance(waiter, asyncio.Future) and not waiter.done():
        waiter.set_exception(StuckError("it goes on although it was cancelled"))


def _abandon(task: Any) -> None:
    """Let nobody wait for a task any more: whoever ends the event loop would wait for ever."""
    _abandoned.append(task)
    task._log_destroy_pending = False  # noqa: SLF001 - as asyncio.gather does
    asyncio._unregister_task(task)  # noqa: SLF001 - documented, for tasks of other kinds


# -- calls that keep the event loop to themselves ----------------------------------------------------------------------


class Watchdog:
    """Watches the event loop that it was made in, for as long as the block goes."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._deadline: float | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._has_interrupted = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, name="agentos-tool-watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(_PERIOD):
            if not self._is_late() or self._is_alive():
                continue
            with self._lock:
                if self._deadline is not None and not self._is_idle():
                    self._deadline = time.monotonic() + _SLACK
                    self._has_interrupted = True
                    self._interrupt(StuckError)

    def _is_late(self) -> bool:
        with self._lock:
            return self._deadline is not None and time.monotonic() > self._deadline

    def _is_alive(self) -> bool:
        """Tell whether the loop goes on: a call that is merely late is nothing to break into."""
        beat = threading.Event()
        try:
            self._loop.call_soon_threadsafe(beat.set)
        except RuntimeError:  # it was closed
            return True
        return beat.wait(_SLACK)

    def _is_idle(self) -> bool:
        """Tell whether the loop waits for something to happen, after all."""
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - the way to see what another thread does
        return frame is None or frame.f_code.co_filename == selectors.__file__

    def _interrupt(self, error: type[BaseException] | None) -> None:
        raised = None if error is None else ctypes.py_object(error)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), raised)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Break in if the event loop stands still after so many *seconds* of the block."""
        with self._lock:
            self._deadline, self._has_interrupted = time.monotonic() + seconds, False
        try:
            yield
        finally:
            with self._lock:
                self._deadline = None
                if self._has_interrupted:  # what was not raised yet must not be raised elsewhere
                    self._interrupt(None)

    async def ended(self, call: Coroutine[Any, Any, Any], seconds: float, grace: float = _SLACK) -> Any:
        """Await a call. One that does not end, or raises, comes to a text that says so."""
        before = asyncio.all_tasks()
        task = asyncio.create_task(call)
        with self.within(seconds):
            try:
                await asyncio.wait([task], timeout=seconds)
            finally:
                late = not task.done()
                task.cancel()
        late_end = await _wait_for_end_of(task, before, seconds, grace) if late else None
        if self._has_interrupted and not isinstance(late_end, EndlessCall):  # what it made of that is not its result
            return f"the call kept the event loop to itself for more than {seconds:g} s"
        if late_end is not None:
            return late_end
        with Border() as border:  # a call never raises: it has to be told
            result = task.result()
        return result if border.error is None else f"the call raised {type(border.error).__name__}: {border.error}"


async def _wait_for_end_of(task: "asyncio.Task[Any]", before: Collection[Any], seconds: float, grace: float) -> str:
    """Wait for the end of a call that was cancelled; one that has none is broken off."""
    message = f"the call did not end within {seconds:g} s"
    await asyncio.wait([task], timeout=grace)
    if await wait_until_idle(lambda: tasks_ignoring_cancel(before), grace):
        if not task.cancelled():
            task.exception()  # seen
        return message
    await break_off(tasks_ignoring_cancel(before))
    return EndlessCall(f"{message}, nor when it was cancelled")
