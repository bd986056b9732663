"""What the tests of the site share: the pages, the generators, and a shell in an empty folder."""

import fcntl
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from itertools import takewhile
from pathlib import Path

import pytest
from terminal import environment

from agentos.cli.main import main

ROOT = Path(__file__).parents[2]


def load(name):
    """Import a module that stands in the folder docs, which is no package."""
    place = ROOT / "docs" / name
    if place.is_dir():
        sys.path.insert(0, str(ROOT / "docs"))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location(f"docs_{name}", place.with_suffix(".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def generate():
    """Return the package that makes the reference."""
    return load("_generate")


@pytest.fixture(scope="session")
def reference(generate, tmp_path_factory):
    """Return every generated page, by its path beneath docs/reference; one worker makes them for all."""
    folder = tmp_path_factory.getbasetemp()
    kept = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "reference.json"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_text(json.dumps({str(path): text for path, text in generate.pages().items()}))
    return json.loads(kept.read_text())


@pytest.fixture(scope="session")
def first_hour():
    """Return the script of the newcomer's first hour."""
    return load("first_hour")


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Return an empty folder, and a function that runs a line there: our command in this process, others in a shell."""
    program = tmp_path / "bin" / "agentos"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m agentos.cli "$@"\n')
    program.chmod(0o755)
    here = tmp_path / "demo"
    here.mkdir()
    # A home of its own, and not AGENTOS_DATA: MCP clients hand that one on to the servers that they start.
    ours = {"HOME": str(tmp_path), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    paths = f"{program.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = environment({"PATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **ours})
    monkeypatch.chdir(here)
    theirs = [name for name in os.environ if name.startswith(("AGENTOS_", "XDG_")) or name.endswith(("_KEY", "_TOKEN"))]
    for name in ("COLUMNS", *theirs):
        monkeypatch.delenv(name, raising=False)
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    codes = [0]

    def run(line):
        line = line.replace("$?", str(codes[-1]))
        variables, words = command_of(line)
        code, said = run_here(variables, words) if words else run_in_shell(line, env)
        codes.append(code)
        return said

    def run_here(variables, words):
        said = io.StringIO()
        with monkeypatch.context() as patch, redirect_stdout(said), redirect_stderr(said):
            for name, value in variables:
                patch.setenv(name, value)
            return main(words), said.getvalue()

    return here, run


def command_of(line):
    """Return the variables and the arguments of a line that is nothing but our command; no arguments for all others."""
    if any(char in line for char in "|()><;&"):
        return [], []
    words = shlex.split(line)
    variables = list(takewhile(lambda word: re.match(r"[A-Z_]+=", word), words))
    rest = words[len(variables) :]
    return [one.split("=", 1) for one in variables], rest[1:] if rest[:1] == ["agentos"] else []


def run_in_shell(line, env):
    done = subprocess.run(
        ["bash", "-c", line], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout
