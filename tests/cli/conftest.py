"""What the tests of the command share: folders with manifests and packs, and ways to run it."""

import contextlib
import json
import os
import signal
import subprocess

import attrs
import pytest
from terminal import AGENTOS, BAD, GIFS, GREET, PATIENCE, environment

from agentos.cli.main import main

LONGEST = 600
"""After how many seconds a test counts as stuck, on the slowest machine."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Let no test hang for ever: whatever it waits for, fixtures included, is ended by a TimeoutError."""

    def give_up(number, frame):
        raise TimeoutError(f"{item.nodeid} is stuck")

    try:
        before = signal.signal(signal.SIGALRM, give_up)
    except ValueError:  # not in the main thread
        return (yield)
    signal.alarm(LONGEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@attrs.frozen
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch, tmp_path):
    """Let no test see the variables of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("AGENTOS_") or name.endswith(("_KEY", "_TOKEN"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENTOS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def command(capsys):
    """Return a function that runs the command in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return Ended(code, told.out, told.err)

    return run


class Started(subprocess.Popen):
    """A command that runs."""

    def until(self, words, stream="stderr"):
        """Return the next line with *words* in it."""
        for line in getattr(self, stream):
            if words in line:
                return line
        raise AssertionError(f"never said: {words}")

    def end(self, number):
        """Send a signal; return the exit code and all that is left to read."""
        self.send_signal(number)
        out, err = self.communicate(timeout=PATIENCE)
        return self.returncode, out, err


@pytest.fixture
def started():
    """Return a function that starts the command with pipes. What still runs when the test is over is killed."""
    with contextlib.ExitStack() as stack:

        def start(*arguments, cwd=None, env=None):
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            child = Started([*AGENTOS, *arguments], cwd=cwd, env=environment(env), text=True, **pipes)
            stack.enter_context(child)
            stack.callback(child.kill)
            return child

        yield start


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder that is the working folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def project(folder):
    """Return a function that writes a manifest and packs into the working folder."""

    def write(*packs, more="", files=None):
        for name, text in {"hello.py": GREET, "gifs.py": GIFS, **(files or {})}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        for name in packs:
            if name in BAD:
                (folder / f"{name}.py").write_text(BAD[name], "utf-8")
        entries = "".join(f'\n[[packs]]\nmodule = "{name}.py"\n' for name in packs)
        (folder / "agentos.toml").write_text(f"# ours\n{more}{entries}", "utf-8")
        return folder

    return write
