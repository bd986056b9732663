"""The memory of sqlite-memory: how long a search takes among 100,000 memories.

Figures are what 50 and 95 of 100 searches stay below, in elapsed time, which includes what a busy machine does
meanwhile, and in CPU time of all threads. The texts are words by Zipf's law, as in real prose: the most frequent word
is in most of them. The words searched for are taken from the texts, frequent ones included.
"""

import asyncio
import itertools
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks._measure import ROOT, Effort, Figure, Measurement, Row, cpu_below

sys.path[:0] = [str(ROOT / "packs" / name) for name in ("common", "sqlite-memory")]

MEMORIES = 100_000
SEARCHES = 200
PLAIN_SEARCHES = 40
"""Fewer the plain way: one takes up to a quarter of a second."""
WORDS = 20_000
LENGTH = 25
BATCH = 5_000

PARTS = {50: None, 95: cpu_below(20e-3)}
"""Of how many in 100 searches the time is told, and its goal."""
CLOCKS = {"elapsed": time.perf_counter, "CPU": time.process_time}
Search = Callable[[str], Any]


def texts(count: int) -> Iterator[str]:
    """Yield texts, the same in every run."""
    dice = random.Random(7)
    words = [f"{dice.choice('bdfgklmnprst')}{dice.choice('aeiou')}{index}" for index in range(WORDS)]
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(WORDS)))
    for _ in range(count):
        yield " ".join(dice.choices(words, cum_weights=weights, k=LENGTH))


def questions(count: int, among: int) -> list[str]:
    """Return what to search for: one to five words that stand side by side in some text."""
    dice = random.Random(11)
    chosen = set(dice.sample(range(among), count))
    found = []
    for number, text in enumerate(texts(among)):
        if number in chosen:
            words, length = text.split(), dice.randint(1, 5)
            start = dice.randrange(LENGTH - length + 1)
            found.append(" ".join(words[start : start + length]))
    return found


async def fill(store: Any, count: int) -> None:
    """Store texts as `store.store` does, many in a transaction."""
    from agentos_pack_sqlite_memory.store import _Entry

    now = time.time()
    entries = (
        _Entry(
            owner="system:system",
            namespace="default",
            shared=False,
            text=text,
            tags=(),
            metadata="{}",
            saved=now - count + number,
            expires=None,
        )
        for number, text in enumerate(texts(count))
    )
    while batch := list(itertools.islice(entries, BATCH)):
        await store._database.write(lambda connection, batch=batch: [store._keep(connection, one) for one in batch])


def ranking_all(path: Path) -> Search:
    """Return the plain way: every row that has any of the words is ranked."""
    connection = sqlite3.connect(path)

    def search(question: str) -> list[Any]:
        words = " OR ".join(f'"{word}"' for word in question.split())
        return connection.execute(
            "SELECT m.text, w.rank FROM words AS w JOIN memories AS m ON m.id = w.rowid WHERE words MATCH ?"
            " ORDER BY w.rank LIMIT 10",
            (words,),
        ).fetchall()

    return search


def times_of(search: Search, asked: list[str]) -> dict[str, list[float]]:
    """Ask every question once, and return how long each search took by each clock."""
    took: dict[str, list[float]] = {kind: [] for kind in CLOCKS}
    for question in asked:
        began = {kind: clock() for kind, clock in CLOCKS.items()}
        found = search(question)
        for kind, clock in CLOCKS.items():
            took[kind].append(clock() - began[kind])
        if not found:
            raise RuntimeError(f"nothing found for {question!r}")
    return took


def in_turns(sides: Mapping[str, tuple[Search, list[str]]], rounds: int) -> dict[tuple[str, int, str], Figure]:
    """Let both sides ask in turns, and return what 50 and 95 of 100 searches stay below; the first turn warms up."""
    samples: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for turn in range(rounds + 1):
        for side, (way, asked) in sides.items():
            for kind, took in times_of(way, asked).items():
                cuts = statistics.quantiles(took, n=100, method="inclusive")
                for part in PARTS if turn else ():
                    samples[side, part, kind].append(cuts[part - 1])
    return {place: Figure(values) for place, values in samples.items()}


def search(effort: Effort) -> Iterator[Row]:
    """Measure searches of one to five words."""
    from agentos_pack_sqlite_memory.store import MemoryOptions, MemoryStore

    count = effort.size(MEMORIES)
    asked = questions(effort.size(SEARCHES), count)
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        path = Path(folder) / "memory.db"
        store = MemoryStore.from_options(MemoryOptions(path=path))
        runner.run(store.open())
        runner.run(fill(store, count))
        ours, plain = (lambda question: runner.run(store.query(question)).memories), ranking_all(path)
        plain_asked = asked[: effort.size(PLAIN_SEARCHES)]
        figures = in_turns({"ours": (ours, asked), "plain": (plain, plain_asked)}, effort.few)
        runner.run(store.close())
    for part, goal in PARTS.items():
        for kind in CLOCKS:
            yield Row(
                what=f"search {count:,} memories for 1 to 5 words, p{part}, {kind}",
                ours=figures["ours", part, kind],
                beside="FTS5: rank all that have any of the words",
                theirs=figures["plain", part, kind],
                goal=goal,
            )


MEASUREMENTS = [Measurement("memory_search", "sqlite-memory: search among 100,000 memories", search)]
