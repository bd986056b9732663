"""A test that hangs is ended with its stack shown, whatever it hangs in; the others go on."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HANGS = """
import collections, itertools

def test_before():
    pass

def test_hangs_where_no_signal_is_seen():
    collections.deque(itertools.repeat(None), maxlen=0)

def test_after():
    pass
"""


@pytest.mark.proof
def test_a_test_that_hangs_in_c_code_is_ended_and_named(tmp_path):
    file = tmp_path / "test_hanging_one.py"
    file.write_text(HANGS)
    settings = ["faulthandler_timeout=5", "faulthandler_exit_on_timeout=true", "timeout=2"]
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    options = [part for setting in settings for part in ("-o", setting)]
    done = subprocess.run([*command, *options, str(file)], capture_output=True, text=True, check=False, cwd=tmp_path)
    shown = done.stdout + done.stderr

    assert "1 failed, 2 passed" in shown
    assert "crashed while running 'test_hanging_one.py::test_hangs_where_no_signal_is_seen'" in shown
    assert 'test_hanging_one.py", line 8 in test_hangs_where_no_signal_is_seen' in shown


def test_our_tests_are_run_with_such_limits():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]

    assert options["faulthandler_exit_on_timeout"]
    assert options["timeout"] < options["faulthandler_timeout"] <= 600


def test_no_test_may_take_longer_by_its_own_mark_than_until_its_process_is_ended():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    files = [file for folder in ("tests", "packs") for file in (ROOT / folder).rglob("test_*.py")]
    marks = [int(one) for file in files for one in re.findall(r"mark\.timeout\((\d+)", file.read_text("utf-8"))]

    assert marks
    assert max(marks) < options["faulthandler_timeout"]
