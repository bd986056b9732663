"""Make the pack importable if it is not installed, and run dangerous code where it can be ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def run_python():
    """Return a function that runs code in a fresh interpreter; code that hangs fails the test."""

    def run(code, *arguments, timeout=30):
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
