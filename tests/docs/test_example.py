"""What `make run` shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "examples" / "run.py"


@pytest.mark.proof
def test_the_tour_tells_of_the_slip_once_and_in_its_place():
    env = {name: value for name, value in os.environ.items() if not name.startswith("AGENTOS_")}
    done = subprocess.run(
        [sys.executable, str(RUN)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    first, second, *_ = done.stdout.split("\n--- ")[1:]

    assert done.stdout.count("did you mean 'calculator'?") == 1
    assert first.rstrip().endswith("did you mean 'calculator'?")
    assert "calculater is disabled in agentos.toml" in second


@pytest.mark.proof
def test_a_pack_crashes_its_process_and_the_host_goes_on():
    script = RUN.with_name("survive.py")
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, check=True)
    first, crash, greeting, again = done.stdout.split("\n\n")[1:5]

    assert '"quotient": 0.25' in first
    assert "WorkerDied" in crash
    assert "Hello, Ada!" in greeting
    assert '"quotient": 0.75' in again
