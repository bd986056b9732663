"""The steps of whatever writes to the store or runs a tool; the process ends at one of them, as by `kill -9`."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from agentos.access.audit import Audit
from agentos.calls.executor import ToolExecutor
from agentos.store import Store


class Steps:
    """Counts steps while it is armed, and kills the process at the fatal one.

    A transaction counts as four steps; *finely*, every statement and record within it counts too.
    """

    def __init__(self, fatal: int, tell: Callable[[str], None], *, finely: bool) -> None:
        self._fatal = fatal
        self._tell = tell
        self._count = 0
        self._writing: set[AsyncConnection] = set()
        self.armed = False
        self._watch_transactions()
        self._watch(ToolExecutor, "run", before="to be run", after="run")
        if finely:
            self._watch(AsyncConnection, "execute", before=None, after="statement", when=self._writing.__contains__)
            self._watch(Audit, "_append", before="to be recorded", after="recorded")

    def reached(self, name: str) -> None:
        """Say that a step was reached. The fatal one does not return."""
        if not self.armed:
            return
        self._count += 1
        self._tell(name)
        if self._count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def _watch_transactions(self) -> None:
        original, steps = Store.begin, self

        @contextlib.asynccontextmanager
        async def begin(store: Store) -> AsyncIterator[AsyncConnection]:
            steps.reached("to be begun")
            async with original(store) as connection:
                steps._writing.add(connection)
                steps.reached("begun")
                yield connection
                steps._writing.discard(connection)
                steps.reached("to be committed")
            steps.reached("committed")

        Store.begin = begin

    def _watch(
        self, owner: type, name: str, *, before: str | None, after: str, when: Callable[[Any], bool] = lambda _: True
    ) -> None:
        original, steps = getattr(owner, name), self

        async def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            if before is not None and when(self):
                steps.reached(before)
            result = await original(self, *args, **kwargs)
            if when(self):
                steps.reached(after)
            return result

        setattr(owner, name, watched)
