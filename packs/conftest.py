"""What the tests of every pack share: packs importable without being installed, fresh interpreters, no network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentos.testing.network import offline

PATHS = [str(file.parent) for file in sorted(Path(__file__).parent.glob("*/pyproject.toml"))]
sys.path[:0] = [path for path in PATHS if path not in sys.path]


@pytest.fixture(autouse=True)
def _nothing_leaves_the_machine():
    """Refuse all but loopback: many tests name addresses that only the guard under test keeps from being reached."""
    with offline():
        yield


@pytest.fixture(scope="session")
def run_python():
    """Return a function that runs code in a fresh interpreter, perhaps by another program; a hang fails the test."""

    def run(code, *arguments, by=(), timeout=60):
        paths = [*PATHS, os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [*by, sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
