"""The conformance suite: how long it takes for each curated pack, beside loading and unloading the pack once.

The checks wait for nothing but the pack's own work, so CPU time is counted, that of child processes too. Packs that a
machine has not installed all the parts of are left out and named.
"""

import asyncio
import resource
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._measure import ROOT, Effort, Measurement, Probe, Row, take_turns

FOLDERS = [file.parent for file in sorted(ROOT.glob("packs/*/pyproject.toml"))]
sys.path += [str(folder) for folder in FOLDERS]


def settings_of(folder: Path) -> dict[str, Any]:
    """Return what the pack's own `conformance.toml` says."""
    file = folder / "conformance.toml"
    return tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}


def spent() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def checking(folder: Path) -> Probe:
    from agentos.testing import check_pack

    def probe() -> float:
        began = spent()
        check_pack(folder, **settings_of(folder))
        return spent() - began

    return probe


def loading(folder: Path) -> Probe:
    from agentos.testing import make_host

    async def load() -> None:
        async with make_host(folder):
            pass

    def probe() -> float:
        began = spent()
        asyncio.run(load())
        return spent() - began

    return probe


def suite(effort: Effort) -> Iterator[Row]:
    """Measure the suite for every pack that can be loaded here."""
    for folder in FOLDERS:
        if folder.name == "common":
            continue
        try:
            figures = take_turns({"suite": checking(folder), "load": loading(folder)}, effort.few)
        except (AssertionError, ImportError) as error:
            print(f"    {folder.name} is left out: {str(error)[:200]}", file=sys.stderr)
            continue
        yield Row(
            what=f"the conformance suite on {folder.name}",
            ours=figures["suite"],
            beside="load and unload it",
            theirs=figures["load"],
        )


MEASUREMENTS = [Measurement("conformance_suite", "the conformance checks on every curated pack", suite)]
