"""The method: in turns within one run, in CPU time, by medians.

Times of two runs, or of two machines, can't be compared. So whatever stands in one row was measured in the same run,
turn by turn (A, B, A, B, ...), and a row's ratio is the median of the ratios within each turn: what slows the machine
down for a while slows both sides of a turn.
"""

import atexit
import functools
import gc
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs

ROOT = Path(__file__).resolve().parent.parent

Work = Callable[[], object]
Probe = Callable[[], float]

_ENOUGH = 3
"""Fewer turns than this have no middle half."""

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@attrs.frozen
class Figure:
    """What several turns measured of one thing: seconds of CPU time, or bytes."""

    samples: Sequence[float]
    unit: Literal["s", "B"] = "s"

    @property
    def median(self) -> float:
        """Return the value that half of the turns stayed below."""
        return statistics.median(self.samples)

    def __str__(self) -> str:
        if self.unit == "B":
            return f"{self.median:,.0f} B"
        scale, unit = next((pair for pair in _TIME_UNITS if self.median >= pair[0]), _TIME_UNITS[-1])
        return f"{self.median / scale:.3g} {unit}" if self.median / scale < 100 else f"{self.median / scale:.0f} {unit}"


@attrs.frozen
class Goal:
    """A limit on our median, or on the ratio. It informs; nothing fails by it."""

    limit: float
    of: Literal["ours", "ratio"]
    unit: Literal["s", "B"] = "s"

    def __str__(self) -> str:
        return f"< {Figure([self.limit], self.unit)}" if self.of == "ours" else f"<= {self.limit:g}x"


def cpu_below(seconds: float) -> Goal:
    """Ask for a median of less than *seconds*."""
    return Goal(seconds, "ours")


def ratio_at_most(limit: float) -> Goal:
    """Ask for at most *limit* times what stands beside it."""
    return Goal(limit, "ratio")


FLAT = ratio_at_most(1.5)
"""What does not depend on the size has a ratio of 1; the rest is the processor's caches and noise."""


@attrs.frozen(kw_only=True)
class Row:
    """One line of the table: our figure and, if there is one, the floor or the peer beside it."""

    what: str
    ours: Figure
    beside: str = ""
    theirs: Figure | None = None
    goal: Goal | None = None

    @property
    def ratios(self) -> list[float]:
        """Return how many times theirs ours was in each turn; nothing where theirs is zero."""
        if self.theirs is None:
            return []
        return [ours / theirs for ours, theirs in zip(self.ours.samples, self.theirs.samples, strict=True) if theirs]

    @property
    def ratio(self) -> float | None:
        """Return how many times theirs ours is; None with nothing, or with zero, beside it."""
        return statistics.median(ratios) if (ratios := self.ratios) else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """Return between which ratios the middle half of the turns lies: a goal within it is neither met nor missed."""
        if len(self.ratios) < _ENOUGH:
            return None
        low, _, high = statistics.quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    @property
    def met(self) -> bool | None:
        """Tell whether the goal is met; None without one."""
        if self.goal is None:
            return None
        if self.goal.of == "ours":
            return self.ours.median < self.goal.limit
        return self.ratio is not None and self.ratio <= self.goal.limit


@attrs.frozen
class Effort:
    """How much to measure."""

    quick: bool = False

    @property
    def rounds(self) -> int:
        """Return how many turns count."""
        return 3 if self.quick else 11

    @property
    def few(self) -> int:
        """Return how many turns count where one takes long or always measures the same."""
        return 1 if self.quick else 3

    def size(self, full: int) -> int:
        """Return *full*, or a tenth of it for a quick look."""
        return max(1, full // 10) if self.quick else full


@attrs.frozen
class Measurement:
    """Something that can be chosen by name. A module lists its own in `MEASUREMENTS`."""

    name: str
    about: str
    run: Callable[[Effort], Iterable[Row]]
    default: bool = True
    """Whether it runs when nothing is chosen."""


def take_turns(probes: Mapping[str, Probe], rounds: int, unit: Literal["s", "B"] = "s") -> dict[str, Figure]:
    """Let every probe measure once per round, every other round in reverse order; the first round only warms up."""
    samples: dict[str, list[float]] = {name: [] for name in probes}
    for turn in range(rounds + 1):
        for name in reversed(probes) if turn % 2 else probes:
            value = probes[name]()
            if turn:
                samples[name].append(value)
    return {name: Figure(values, unit) for name, values in samples.items()}


def timed(prepare: Callable[[], Work], pieces: int = 1) -> Probe:
    """Return a probe of the CPU time of one piece of the work that *prepare* returns; preparing is not counted.

    The collector is on while the work runs, as in a real program, and sees only what the work itself makes.
    """

    def probe() -> float:
        work = prepare()
        gc.collect()
        gc.freeze()
        try:
            began = time.process_time_ns()
            work()
            return (time.process_time_ns() - began) / 1e9 / pieces
        finally:
            gc.unfreeze()

    return probe


def answer_of_child(*arguments: str, env: Mapping[str, str] | None = None) -> float:
    """Run Python with *arguments* in a process of its own and return the number that it prints."""
    return float(_run_child(arguments, env).stdout)


def cpu_of_child(*arguments: str) -> float:
    """Run Python with *arguments* in a process of its own and return the CPU time of all of it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run_child(arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _run_child(arguments: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**_same_for_all(), **(env or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )


@functools.cache
def _same_for_all() -> dict[str, str]:
    """Return the environment of every child: ours, and a cache of bytecode that the warm-up round fills.

    Where bytecode is not written, our modules would be compiled at each import and the installed ones beside them not.
    """
    cache = tempfile.mkdtemp(prefix="agentos-benchmarks-")
    atexit.register(shutil.rmtree, cache, ignore_errors=True)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": cache}
