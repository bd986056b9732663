"""The steps of whatever writes to the store or runs a tool; the process ends at one of them, as by `kill -9`."""

import inspect
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Connection

from agentos.access.audit import Audit
from agentos.calls.steps import run as run_step
from agentos.store import Store
from agentos.store.rows import PlainSql


class Steps:
    """Counts steps while it is armed, and kills the process at the fatal one.

    A transaction counts as four steps; *finely*, every statement and record within it counts too.
    """

    def __init__(self, fatal: int, tell: Callable[[str], None], *, finely: bool) -> None:
        self._fatal = fatal
        self._tell = tell
        self._count = 0
        self._thread = threading.local()
        self.armed = False
        self._watch_transactions()
        for way in ("_on_loop", "_in_thread"):
            self._watch_tools(way)
        if finely:
            self._watch(Connection, "execute", before=None, after="statement", when=self._is_writing)
            self._watch(PlainSql, "_run", before=None, after="statement", when=self._is_writing)
            self._watch(Audit, "extend", before="to be recorded", after="recorded")

    def reached(self, name: str) -> None:
        """Say that a step was reached. The fatal one does not return."""
        if not self.armed:
            return
        self._count += 1
        self._tell(name)
        if self._count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def _is_writing(self, _: object) -> bool:
        return getattr(self._thread, "is_writing", False)

    def _watch_transactions(self) -> None:
        original, steps = Store.write, self

        async def write(store: Store, function: Callable[[Any], Any], then: Any = None) -> Any:
            def watched(connection: Connection) -> Any:
                steps._thread.is_writing = True
                steps.reached("begun")
                result = function(connection)
                steps._thread.is_writing = False
                steps.reached("to be committed")
                return result

            steps.reached("to be begun")
            result = await original(store, watched, then)
            steps.reached("committed")
            return result

        Store.write = write

    def _watch_tools(self, way: str) -> None:
        original, steps = getattr(run_step, way), self

        async def watched(invocation: Any) -> Any:
            if invocation.decision is None:  # a dry run
                return await original(invocation)
            steps.reached("to be run")
            value = await original(invocation)
            steps.reached("run")
            return value

        setattr(run_step, way, watched)

    def _watch(
        self, owner: type, name: str, *, before: str | None, after: str, when: Callable[[Any], bool] = lambda _: True
    ) -> None:
        original, steps = getattr(owner, name), self

        def begun(self: Any) -> None:
            if before is not None and when(self):
                steps.reached(before)

        def ended(self: Any) -> None:
            if when(self):
                steps.reached(after)

        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            begun(self)
            result = await original(self, *args, **kwargs)
            ended(self)
            return result

        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            begun(self)
            result = original(self, *args, **kwargs)
            ended(self)
            return result

        setattr(owner, name, awaited if inspect.iscoroutinefunction(original) else called)
