"""The watch of a host over runs: it takes those that can go on, and those of hosts that are gone.

A host shows that it lives in two ways. Its process holds a lock of the store, which ends with it: whoever dies is seen
at the next look. And it counts a number up in the store: a host whose number stands still for a lease, by the clock of
who looks, is taken for dead as well, though its process holds the lock; one that is stopped is such. What it writes
later is refused by the fence of each run.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from agentos.errors import StoreError
from agentos.secrets.masking import MaskingLogger
from agentos.workflows.run_execution import RunExecution
from agentos.workflows.run_store import Claim, RunStore

LEASE = 5.0
"""After how many seconds of silence a host is taken for dead."""
LOOK = 0.5
"""After how many seconds a host looks for runs that can go on."""
CAPACITY = 100
"""How many runs a host works on at once. Those that wait do not count."""
_REST = (0.5, 60.0)
"""For how many seconds a run rests that can't be carried on: at first, and at the most."""
_GRACE = 5.0
"""For how many seconds the steps under way may go on when a host ends."""


@attrs.define
class _Seen:
    """The last number of a host, and when it was seen to change."""

    beat: int
    at: float


@attrs.frozen
class _Resting:
    """For how long a run rests that can't be carried on, and until when."""

    pause: float
    until: float


class RunWatch:
    """Looks, takes and carries, until it is closed."""

    def __init__(
        self,
        runs: RunStore,
        make: Callable[[Claim], Awaitable[RunExecution | None]],
        also: Callable[[], Awaitable[None]],
        logger: MaskingLogger,
        *,
        lease: float = LEASE,
        capacity: int = CAPACITY,
    ) -> None:
        self._runs = runs
        self._make = make
        self._also = also
        self._logger = logger
        self._lease = lease
        self._capacity = capacity
        self._carried: dict[str, tuple[RunExecution | None, asyncio.Task[None]]] = {}
        self._seen: dict[str, _Seen] = {}
        self._kicked = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._beaten_at = -1e9
        self._looked_at = time.monotonic()
        self._is_closing = False
        self._troubled: dict[str, _Resting] = {}

    @property
    def has_room(self) -> bool:
        """Tell whether another run may be taken."""
        return len(self._carried) < self._capacity and not self._is_closing

    @property
    def is_open(self) -> bool:
        """Tell whether it looks."""
        return bool(self._tasks)

    def is_fresh(self) -> bool:
        """Tell whether this host showed so recently that it lives that nobody can have taken it for dead."""
        return time.monotonic() - self._beaten_at < self._lease / 2

    def execution(self, id: str) -> RunExecution | None:
        """Return the execution of a run that is under way here."""
        found = self._carried.get(id)
        return None if found is None else found[0]

    def kick(self) -> None:
        """Look at once."""
        self._kicked.set()

    async def open(self) -> None:
        """Begin."""
        if not self._tasks and not self._is_closing:
            self._tasks = [asyncio.ensure_future(self._beat()), asyncio.ensure_future(self._watch())]
            await self._beat_once()

    async def _beat_once(self) -> None:
        began = time.monotonic()
        await self._runs.beat()
        self._beaten_at = began

    async def _beat(self) -> None:
        while not self._is_closing:
            await asyncio.sleep(self._lease / 4)
            with contextlib.suppress(StoreError):
                await self._beat_once()

    async def _watch(self) -> None:
        while not self._is_closing:
            self._kicked.clear()
            try:
                await self._look()
            except StoreError as error:
                self._logger.warning("what runs can go on can't be read: %s", error)
            except Exception:  # whatever it is, the next look may find it gone
                self._logger.exception("a look at the runs failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):  # not wait_for, which loses a cancellation now and then
                    await self._kicked.wait()

    async def _look(self) -> None:
        await self._see_wishes()
        await self._see_the_dead()
        await self._also()
        if self.has_room:
            for id in await self._runs.due(self._capacity - len(self._carried)):
                await self._take(id)

    async def _see_wishes(self) -> None:
        for row in await self._runs.ours():
            found = self._carried.get(row["id"])
            if found is None:  # something kept it from being carried on, or let go
                if (trouble := self._troubled.get(row["id"])) is None or trouble.until <= time.monotonic():
                    await self._take(row["id"], taken_from=self._runs.me)
            elif found[0] is not None and row["wants"] is not None:
                found[0].want(row["wants"])
            elif found[0] is not None and row["deadline"] is not None and row["deadline"] <= self._runs.now():
                found[0].want("expire")

    async def _take(self, id: str, taken_from: str | None = None) -> None:
        row = await self._runs.get(id)
        if row is None or id in self._carried or not self.has_room or row["owner"] != taken_from:
            return
        claim = await self._runs.claim(id, fence=row["fence"], taken_from=taken_from)
        if claim is not None:
            self.carry(claim)

    def carry(self, claim: Claim) -> None:
        """Carry a run that was claimed, in a task of its own."""
        task = asyncio.ensure_future(self._carry(claim))
        self._carried[claim.id] = (None, task)
        task.add_done_callback(lambda _: self._let_go(claim.id))

    async def _carry(self, claim: Claim) -> None:
        try:
            execution = await self._make(claim)
            if execution is None:
                return
            self._carried[claim.id] = (execution, self._carried[claim.id][1])
            if self._is_closing:
                execution.want("release")
            await execution.carry()
            self._troubled.pop(claim.id, None)
        except StoreError as error:
            self._logger.warning("the run %s can't be carried on now: %s", claim.id, error)
            self._note_trouble(claim.id)
        except Exception:
            self._logger.exception("the run %s can't be carried on now", claim.id)
            self._note_trouble(claim.id)

    def _note_trouble(self, id: str) -> None:
        """Let a run that can't be carried on rest for a while, longer each time."""
        before = self._troubled.get(id)
        pause = _REST[0] if before is None else min(2 * before.pause, _REST[1])
        self._troubled[id] = _Resting(pause, time.monotonic() + pause)

    def _let_go(self, id: str) -> None:
        self._carried.pop(id, None)
        self._kicked.set()

    # -- hosts that are gone -----------------------------------------------------------------------------------

    async def _see_the_dead(self) -> None:
        now = time.monotonic()
        if now - self._looked_at > self._lease / 2:  # we were silent ourselves: nothing is known of others
            self._seen.clear()
        self._looked_at = now
        beats = await self._runs.beats()
        for owner in self._seen.keys() - beats.keys():
            del self._seen[owner]
        for owner, beat in beats.items():
            if await self._is_dead(owner, beat, now):
                await self._take_from(owner)

    async def _is_dead(self, owner: str, beat: int, now: float) -> bool:
        seen = self._seen.get(owner)
        if seen is None or seen.beat != beat:
            self._seen[owner] = _Seen(beat, now)
        elif now - seen.at > self._lease:
            return True
        return not await self._runs.is_alive(owner)

    async def _take_from(self, owner: str) -> None:
        rows = await self._runs.of_owner(owner)
        if not rows:
            if not await self._runs.is_alive(owner):
                await self._runs.forget_host(owner)
            return
        for row in rows:
            if not self.has_room:
                return
            await self._take(row["id"], taken_from=owner)

    # -- the end -----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Let every run go: to another host, or to this one when it is there again."""
        self._is_closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for execution, _ in list(self._carried.values()):
            if execution is not None:
                execution.want("release")
        if carried := [task for _, task in self._carried.values()]:
            _, late = await asyncio.wait(carried, timeout=_GRACE)
            for execution, task in list(self._carried.values()):
                if task in late and execution is not None:
                    execution.abort()
            if late:
                await asyncio.wait(late, timeout=_GRACE)
        if self._tasks:
            self._tasks = []
            with contextlib.suppress(StoreError):
                await self._runs.leave()

    def facts(self) -> Mapping[str, Any]:
        """Return how many runs are under way here."""
        return {"running": len(self._carried), "capacity": self._capacity}
