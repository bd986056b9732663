"""How much a principal may do: calls and cost units per window, and calls at once. Slots are reserved beforehand."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal

import attrs

_SWEPT_FROM = 1_000
"""From how many accounts on those are closed that count for nothing any more."""


def _is_limit(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


@attrs.frozen
class Budget:
    """A limit for each principal: on every tool by itself, or on all tools together (`scope="principal"`).

    `calls` and `cost` count within `window` seconds, `concurrency` counts what runs at one moment. None is no limit.
    What a call costs is said by its tool (`cost`, 1 by default). `counts="changes"` leaves out calls that only read;
    `reads` is how many of those a principal may have running at one moment, of all tools together.
    """

    calls: int | None = 60
    window: float = 60.0
    cost: float | None = None
    concurrency: int | None = None
    scope: Literal["tool", "principal"] = "tool"
    counts: Literal["all", "changes"] = "all"
    reads: int | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("calls", "window", "cost", "concurrency", "reads"):
            value = getattr(self, name)
            whole = name in ("calls", "concurrency", "reads")
            if (value is None and name != "window") or (_is_limit(value) and (not whole or isinstance(value, int))):
                continue
            kind = "whole number" if whole else "number"
            raise ValueError(f"Budget.{name}: expected a positive {kind}, got {value!r}")
        if self.scope not in ("tool", "principal"):
            raise ValueError(f"Budget.scope: expected tool or principal, got {self.scope!r}")
        if self.counts not in ("all", "changes"):
            raise ValueError(f"Budget.counts: expected all or changes, got {self.counts!r}")


def as_budgets(value: Budget | Iterable[Budget] | None) -> tuple[Budget, ...]:
    """Return budgets from one, several or none."""
    if value is None:
        return ()
    if not isinstance(value, Iterable | Budget):
        raise TypeError(f"budget: expected a Budget, several, or None, got {type(value).__name__}")
    given = (value,) if isinstance(value, Budget) else tuple(value)
    for one in given:
        if not isinstance(one, Budget):
            raise TypeError(f"budget: expected a Budget, got {type(one).__name__}")
    return given


class _Account:
    """What one principal has used of one budget."""

    __slots__ = ("calls", "running", "spent", "tools", "total")

    def __init__(self, calls: int | None) -> None:
        self.calls: deque[float] | None = None if calls is None else deque(maxlen=calls)
        self.tools: deque[str] = deque(maxlen=calls)
        self.spent: deque[tuple[float, float, str]] = deque()
        self.total = 0.0
        self.running = 0

    def last(self) -> float:
        """Return when it was last used."""
        return max(self.calls[-1] if self.calls else 0.0, self.spent[-1][0] if self.spent else 0.0)


class _Book(dict[tuple[str, str], _Account]):
    """The accounts of one budget. One that still counts is never closed, however many there are."""

    sweep_at = _SWEPT_FROM
    """At how many accounts it is looked again which are idle: at twice as many as there were left the last time."""

    def __init__(self, concurrency_setting: str = "budget.concurrency") -> None:
        super().__init__()
        self.concurrency_setting = concurrency_setting

    def opened(self, key: tuple[str, str], budget: Budget, now: float) -> _Account:
        """Return a new account."""
        if len(self) >= self.sweep_at:
            for old in [one for one, account in self.items() if _is_idle(account, now - budget.window)]:
                del self[old]
            self.sweep_at = max(_SWEPT_FROM, 2 * len(self))
        account = self[key] = _Account(budget.calls)
        return account


@attrs.frozen
class Refusal:
    """Why there is no slot, after how many seconds there will be one, and which setting is the limit."""

    reason: str
    retry_after: float | None
    setting: str = ""

    def __str__(self) -> str:
        return f"{self.reason} (the limit is the setting `{self.setting}`)"


class Budgets:
    """Keeps the accounts of all budgets. A reservation takes a slot of each, or of none."""

    def __init__(
        self,
        budgets: tuple[Budget, ...],
        clock: Callable[[], float] = time.monotonic,
        books: list[tuple[Budget, _Book]] | None = None,
    ) -> None:
        self._books = [(one, _Book()) for one in budgets] if books is None else books
        self._clock = clock
        self._reading: Budgets | None = None
        self.has_any = bool(self._books)
        self.counts_running = any(one.concurrency is not None for one, _ in self._books)

    def of(self, effect: str) -> "Budgets":
        """Return those that calls of an *effect* are counted by: the same accounts, as far as both are counted."""
        if effect != "read":
            return self
        if self._reading is None:
            at_once = [(_limit_of_reads(one), _Book("budget.reads")) for one, _ in self._books if one.reads is not None]
            shared = [pair for pair in self._books if pair[0].counts == "all"]
            self._reading = Budgets((), self._clock, [*shared, *at_once])
        return self._reading

    def asking(self) -> "Budgets":
        """Return accounts for calls that ask: as many may ask as may run. Waiting for an answer is not running."""
        kept = (attrs.evolve(one, concurrency=None, reads=None) for one, _ in self._books)
        return Budgets(tuple(kept), self._clock)

    def now(self) -> float:
        """Return the time that slots are counted by."""
        return self._clock()

    def reserve(self, principal: str, tool: str, cost: float, at: float | None = None) -> Refusal | None:
        """Take a slot for a call, before it runs; a refusal says why there is none, and takes nothing."""
        now = self._clock() if at is None else at
        accounts = []
        for budget, book in self._books:
            key = (principal, tool if budget.scope == "tool" else "")
            account = book.get(key)
            if account is None:
                account = book.opened(key, budget, now)
            what = tool if budget.scope == "tool" else "tools"
            refusal = _refusal(budget, account, now, cost, what, book.concurrency_setting)
            if refusal is not None:
                return refusal
            accounts.append((budget, account))
        for budget, account in accounts:
            if account.calls is not None:
                account.calls.append(now)
                account.tools.append(tool)
            if budget.cost is not None:
                account.spent.append((now, cost, tool))
                account.total += cost
            if budget.concurrency is not None:
                account.running += 1
        return None

    def release(self, principal: str, tool: str) -> None:
        """Say that a call which had a slot runs no more."""
        if not self.counts_running:
            return
        for budget, book in self._books:
            account = book.get((principal, tool if budget.scope == "tool" else ""))
            if account is not None and account.running:
                account.running -= 1

    def refund(self, principal: str, tool: str, cost: float, at: float | None = None) -> None:
        """Give a slot back whose call did not run: the one taken at that moment, else the last one of that tool."""
        self.release(principal, tool)
        for budget, book in self._books:
            account = book.get((principal, tool if budget.scope == "tool" else ""))
            if account is not None:
                _give_back(account, tool, cost, at)


def _give_back(account: _Account, tool: str, cost: float, at: float | None) -> None:
    calls = account.calls or ()
    for place in range(len(calls) - 1, -1, -1):
        if account.tools[place] == tool and at in (None, calls[place]):
            del account.tools[place]
            del account.calls[place]  # type: ignore[union-attr]  # it has that place
            break
    for place in range(len(account.spent) - 1, -1, -1):
        when, price, what = account.spent[place]
        if (what, price) == (tool, cost) and at in (None, when):
            del account.spent[place]
            account.total -= cost
            return


def _limit_of_reads(budget: Budget) -> Budget:
    return Budget(calls=None, window=budget.window, concurrency=budget.reads, scope="principal")


def _is_idle(account: _Account, since: float) -> bool:
    return account.running == 0 and account.last() <= since


def _refusal(
    budget: Budget, account: _Account, now: float, cost: float, what: str, concurrency_setting: str
) -> Refusal | None:
    begin = now - budget.window
    calls = account.calls
    if calls is not None and len(calls) == calls.maxlen and calls[0] > begin:
        wait = calls[0] - begin
        reason = f"{budget.calls} calls of {what} in {budget.window:g} s are used up; {_later(wait)}"
        return Refusal(reason, wait, "budget.calls")
    if budget.concurrency is not None and account.running >= budget.concurrency:
        reason = f"{budget.concurrency} calls of {what} run already; wait for one to end"
        return Refusal(reason, None, concurrency_setting)
    if budget.cost is None:
        return None
    while account.spent and account.spent[0][0] <= begin:
        account.total -= account.spent.popleft()[1]
    if account.total + cost <= budget.cost + 1e-9:
        return None
    if cost > budget.cost:
        reason = f"a call of {what} costs {cost:g}, more than the whole budget of {budget.cost:g}"
        return Refusal(reason, None, "budget.cost")
    wait = _until_enough(account, budget.cost - cost) - begin
    reason = f"{budget.cost:g} cost units in {budget.window:g} s are used up; {_later(wait)}"
    return Refusal(reason, wait, "budget.cost")


def _until_enough(account: _Account, room: float) -> float:
    """Return when the spending was made whose end leaves no more than *room* spent."""
    left = account.total
    for at, cost, _ in account.spent:
        left -= cost
        if left <= room + 1e-9:
            return at
    return account.spent[-1][0]


def _later(seconds: float) -> str:
    return f"try again in {math.ceil(seconds)} s"
