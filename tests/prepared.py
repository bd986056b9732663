"""Code run in a process that was prepared as a worker is."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from agentos.workers import start

PREPARED = "import runpy; runpy.run_path({start!r})['prepare']()\n"


def spec(**said):
    """Return what `start.py` is told, for the interpreter of the tests."""
    return {
        "parent": os.getpid(),
        "agentos": str(Path(start.__file__).parents[1]),
        "is_host": True,
        "paths": sys.path,
        "limits": {},
        **said,
    }


def run_prepared(code, said=None, *, plan=None):
    """Run *code* behind the preparation that *said*, or a plan, asks for; return the finished process."""
    head = PREPARED.format(start=start.__file__)
    begin = [sys.executable, "-P", "-S", "-u"] if plan is None else plan.argv[:-2]
    told = json.dumps(spec(**(said or {}))) if plan is None else plan.argv[-1]
    return subprocess.run(
        [*begin, "-c", head + textwrap.dedent(code), told],
        capture_output=True,
        text=True,
        check=False,
        env=None if plan is None else dict(plan.env),
    )


def told_by(code, said=None, *, plan=None):
    """Run *code* in the same way, and return the lines that it prints; it has to end well."""
    done = run_prepared(code, said, plan=plan)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
