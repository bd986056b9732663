"""One listener: its queue, its calls one after the other, its end."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar
from functools import partial
from typing import Any

from agentos.payloads.foreign_job import ForeignJob, Threads, is_async
from agentos.secrets.masking import MaskingLogger
from agentos.stacks.in_use import Users

Listener = Callable[[Any], Any]
"""Takes in a message, sync or async."""

QUEUE_LENGTH = 1_000
"""How many messages wait for a listener at most."""
QUEUE_SIZE = 8_000_000
"""How many characters these have at most, all together."""
_SECONDS = 60.0
"""How long a listener may take for one message."""
_ENDING = 2.0
"""For how many seconds the end of a subscription waits for the listener to end."""

_hearing: ContextVar["BusSubscription | None"] = ContextVar("agentos_bus_hearing", default=None)
"""Whose listener runs."""


class BusSubscription:
    """A listener of a topic. What comes faster than it listens waits; what is too much of that is dropped."""

    def __init__(
        self,
        topic: str,
        listener: Listener,
        *,
        owner: object,
        pack: str,
        threads: Threads,
        logger: MaskingLogger,
        tell_dropped: "Callable[[BusSubscription, int], None]",
    ) -> None:
        self.topic = topic
        self.owner = owner
        self.pack = pack
        self.is_over = False
        self._listener = listener
        self._is_async = is_async(listener)
        self._threads = threads
        self._logger = logger
        self._tell_dropped = tell_dropped
        self._queue: deque[str] = deque()
        self._size = 0
        self._dropped = 0
        self._told = 0
        self._users = Users()
        self._task: asyncio.Task[None] | None = None

    def take(self, text: str) -> None:
        """Let the listener hear a message, when it has heard those before."""
        if self.is_over:
            return
        if len(self._queue) >= QUEUE_LENGTH or self._size + len(text) > QUEUE_SIZE:
            self._dropped += 1
            if self._told == 0:
                self._tell()
            return
        self._queue.append(text)
        self._size += len(text)
        if self._task is None:
            # Not in the context of who publishes: what a listener does is no part of what that one is doing.
            self._task = asyncio.get_running_loop().create_task(self._hear(), context=Context())

    def _tell(self) -> None:
        """Tell of the first message that was dropped, and of all others when the listener has come after."""
        self._tell_dropped(self, self._dropped - self._told)
        self._told = self._dropped

    async def _hear(self) -> None:
        _hearing.set(self)
        try:
            while self._queue and not self.is_over:
                text = self._queue.popleft()
                self._size -= len(text)
                await self._call(json.loads(text))
        finally:
            self._task = None
            if self._dropped > self._told:
                self._tell()
            self._dropped = self._told = 0

    async def _call(self, message: Any) -> None:
        job = ForeignJob(
            partial(self._listener, message),
            is_async=self._is_async,
            seconds=_SECONDS,
            threads=self._threads,
            users=self._users,
        )
        _, error = await job.start().outcome()
        if error is not None:
            self._logger.warning("a listener of %s on topic %s failed", self.pack, self.topic, exc_info=error)

    def stop(self) -> None:
        """Let no further call begin; from any thread."""
        self.is_over = True

    async def ended(self) -> None:
        """Wait until the listener has ended, for a few seconds; then it is cancelled. One may end itself."""
        self.stop()
        self._queue.clear()
        task = self._task
        if task is None or _hearing.get() is self:
            return
        await asyncio.wait([task], timeout=_ENDING)
        task.cancel()
        await asyncio.wait([task])
