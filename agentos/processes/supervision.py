"""When a process is started, and when it is left alone for a while: what was told, and the time, say it all.

DORMANT ──begin──▶ MOUNTING ──mounted──▶ READY          stop: back to DORMANT from anywhere
│                    │
└──────struck────────┤   too few strikes: DORMANT, and the next one who needs it begins
▼   enough of them: DEGRADED until `retry_at`; then `begin` is a trial
DEGRADED
"""

from collections import deque
from collections.abc import Callable

import attrs

from agentos.errors import AgentOSError
from agentos.model.isolation import WorkerState
from agentos.processes.backoff import Backoff


@attrs.frozen(kw_only=True)
class SupervisionRules:
    """How much is put up with. Times are in seconds."""

    strikes: int = 3
    """How many deaths or missed deadlines within `window` it takes to be left alone."""
    window: float = 300.0
    first_delay: float = 30.0
    """For how long it is left alone; twice as long each time that a trial fails."""
    longest_delay: float = 3_600.0
    steady: float = 300.0
    """One that was ready for this long is as good as one that did its work."""
    silence: float = 10.0
    """For how long one may not answer at all after a call of it was given up; then it is ended, which is a strike."""
    jitter: float = 0.0
    """By which part a delay may be shorter: those that went away together are not all tried at the same moment."""


class NotDueError(AgentOSError):
    """A process can't be started now: it is starting, or ready, or left alone for a while."""


class Supervision:
    """Counts what happens to one process and says what it is. Starts nothing and waits for nothing.

    Each start has a number, higher than all before; what is told of an older one changes nothing.
    """

    def __init__(self, rules: SupervisionRules, clock: Callable[[], float]) -> None:
        self._rules = rules
        self._clock = clock
        self._strikes: deque[float] = deque(maxlen=rules.strikes)
        self._backoff = Backoff(rules.first_delay, rules.longest_delay, rules.jitter)
        self.state = WorkerState.DORMANT
        self.since = clock()
        self.mount = 0
        self.reason: str | None = None
        """Why the last one ended, if it did by itself."""
        self.retry_at: float | None = None

    @property
    def strikes(self) -> int:
        """Return how many strikes count now."""
        oldest = self._clock() - self._rules.window
        return sum(at > oldest for at in self._strikes)

    @property
    def is_on_trial(self) -> bool:
        """Tell whether it was left alone and has not done its work since: the next strike counts for all."""
        return self._backoff.attempts > 0

    def begin(self) -> int:
        """Start: return the number of this start. Raise NotDueError if that is not what is next."""
        if self.state in (WorkerState.MOUNTING, WorkerState.READY):
            raise NotDueError(f"it is {self.state} already")
        if self.retry_at is not None and self._clock() < self.retry_at:
            raise NotDueError(f"it is {self.state}: {self.reason}")
        self.mount += 1
        self.retry_at = None
        self._become(WorkerState.MOUNTING)
        return self.mount

    def mounted(self, mount: int) -> bool:
        """Note that a start succeeded; tell whether it is the last one."""
        if mount != self.mount or self.state is not WorkerState.MOUNTING:
            return False
        self._become(WorkerState.READY)
        return True

    def succeeded(self, mount: int) -> None:
        """Note that it did its work. What was held against it because of a trial is forgotten."""
        if mount == self.mount and self.state is WorkerState.READY and self.is_on_trial:
            self._forgive()

    def struck(self, mount: int, reason: str) -> bool:
        """Note a death or a missed deadline; tell whether it is the last start's."""
        if mount != self.mount or self.state not in (WorkerState.MOUNTING, WorkerState.READY):
            return False
        now = self._clock()
        if self.state is WorkerState.READY and now - self.since >= self._rules.steady:
            self._forgive()
        self.reason = reason
        self._strikes.append(now)
        if self.is_on_trial or self.strikes >= self._rules.strikes:
            self.retry_at = now + self._backoff.next()
            self._become(WorkerState.DEGRADED)
        else:
            self._become(WorkerState.DORMANT)
        return True

    def stopped(self) -> None:
        """Note that it is not wanted any more, or is to begin anew: nothing is held against it."""
        self._forgive()
        self.retry_at = self.reason = None
        self._become(WorkerState.DORMANT)

    def _forgive(self) -> None:
        self._backoff.reset()
        self._strikes.clear()

    def _become(self, state: WorkerState) -> None:
        self.state = state
        self.since = self._clock()
