"""Run measurements and show them: `python -m benchmarks [names...] [--json FILE] [--quick]`."""

import argparse
import contextlib
import importlib
import importlib.metadata
import json
import os
import pkgutil
import platform
import sys
import traceback
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks._measure import Effort, Measurement, Row

HEADER = ("what", "ours", "beside", "theirs", "ratio", "half of the turns", "goal")
PEERS = ("agentos-host", "attrs", "cattrs", "pluggy", "stevedore", "mcp", "fastmcp")


def find() -> dict[str, list[Measurement]]:
    """Return the measurements of every module here, by the module's name."""
    names = [found.name for found in pkgutil.iter_modules(benchmarks.__path__) if not found.name.startswith("_")]
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    return {name: module.MEASUREMENTS for name, module in modules.items() if hasattr(module, "MEASUREMENTS")}


def choose(names: Sequence[str], known: dict[str, list[Measurement]]) -> list[Measurement]:
    """Return what *names* mean, each a measurement or a whole module; without names, every default one."""
    everything = [one for module in known.values() for one in module]
    if not names:
        return [one for one in everything if one.default]
    by_name = {one.name: [one] for one in everything} | known
    if unknown := [name for name in names if name not in by_name]:
        raise SystemExit(f"unknown: {', '.join(unknown)}. Known: {', '.join(by_name)}")
    return list({one.name: one for name in names for one in by_name[name]}.values())


def run(chosen: Iterable[Measurement], effort: Effort) -> tuple[list[Row], list[str]]:
    """Run each in turn; return the rows, and the names of those that broke."""
    rows: list[Row] = []
    broken: list[str] = []
    for one in chosen:
        print(f"... {one.name}: {one.about}", file=sys.stderr, flush=True)
        try:
            rows += one.run(effort)
        except Exception:  # noqa: BLE001 - the others are still worth measuring
            traceback.print_exc()
            broken.append(one.name)
    return rows, broken


def table(rows: Iterable[Row]) -> str:
    """Write *rows* as plain text in columns."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    lines.insert(1, tuple("-" * width for width in widths))
    right = {1, 3, 4, 5}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    goal = "" if row.goal is None else f"{row.goal} {'met' if row.met else 'missed'}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    spread = "" if row.spread is None else "{:.2f} to {:.2f}".format(*row.spread)
    return (row.what, str(row.ours), row.beside, str(row.theirs or ""), ratio, spread, goal)


def machine() -> dict[str, Any]:
    """Say what the figures were measured on; they mean nothing elsewhere."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    """Return the versions of what is installed of the peers: not every measurement needs all of them."""
    versions = {}
    for name in PEERS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def as_data(row: Row) -> dict[str, Any]:
    """Return *row* for a JSON file, every sample included."""
    return {
        "what": row.what,
        "unit": row.ours.unit,
        "ours": row.ours.median,
        "beside": row.beside or None,
        "theirs": None if row.theirs is None else row.theirs.median,
        "ratio": row.ratio,
        "goal": None if row.goal is None else str(row.goal),
        "met": row.met,
        "samples": {"ours": row.ours.samples, "theirs": None if row.theirs is None else row.theirs.samples},
        "ratios": row.ratios,
        "spread": row.spread,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for. A goal that is missed is no failure; a measurement that broke is."""
    known = find()
    names = [one.name for module in known.values() for one in module]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"modules ({', '.join(known)}) or measurements ({', '.join(names)})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, with every sample, to FILE")
    parser.add_argument("--quick", action="store_true", help="fewer turns and smaller sizes: does it run at all?")
    options = parser.parse_args(arguments)
    effort = Effort(quick=options.quick)
    rows, broken = run(choose(options.names, known), effort)
    told = machine()
    print(f"Python {told['python']}, {told['cores']} cores, {told['date'][:10]}, CPU time, medians of one run\n")
    print(table(rows))
    if options.json:
        data = {"machine": told, "quick": effort.quick, "broken": broken, "rows": [as_data(row) for row in rows]}
        options.json.write_text(json.dumps(data, indent=2) + "\n")
    if broken:
        print(f"\nbroken: {', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
