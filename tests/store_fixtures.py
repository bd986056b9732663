"""Fixtures for tests that need a store; a conftest imports those that it wants by name."""

import contextlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pg
import pytest

ROOT = Path(__file__).parents[1]


class _Shared:
    """One server for the whole run, however many conftests import the fixture."""

    def __init__(self):
        self._users = 0
        self._stack = contextlib.ExitStack()
        self._server = None

    @contextlib.contextmanager
    def server(self):
        if self._users == 0:
            self._server = self._stack.enter_context(pg.start_postgres())
        self._users += 1
        try:
            yield self._server
        finally:
            self._users -= 1
            if self._users == 0:
                self._stack.close()


_SHARED = _Shared()


@pytest.fixture(scope="session")
def postgres_server():
    """Return a PostgreSQL that runs."""
    try:
        pg.find_binaries()
    except pg.PostgresMissingError as error:
        pytest.skip(str(error))
    with _SHARED.server() as server:
        yield server


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """Return the folder that stands for the user's own, and see that no key comes from elsewhere."""
    folder = tmp_path / "data"
    monkeypatch.setenv("AGENTOS_DATA", str(folder))
    monkeypatch.delenv("AGENTOS_STORE_KEY", raising=False)
    return folder


@pytest.fixture
def postgres_url(postgres_server, data_folder):
    """Return the URL of an empty PostgreSQL database."""
    url = pg.fresh_database(postgres_server)
    yield url
    pg.clear_database(postgres_server, url)


@pytest.fixture
def sqlite_url(tmp_path, data_folder):
    """Return the URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'agentos.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request):
    """Return the URL of an empty database, of each kind in turn."""
    return request.getfixturevalue(f"{request.param}_url")


def python(script, *arguments, options=("-W", "error")):
    """Start *script* in a Python of its own, with pipes; `arguments` are its `sys.argv[1:]`."""
    command = [sys.executable, *options, "-c", textwrap.dedent(script), *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def outcome(process, input=None):
    """Wait for *process* and return what it printed; fail if it failed or wrote anything to its standard error."""
    out, err = process.communicate(input, timeout=120)
    assert (process.returncode, err) == (0, "")
    return out.strip()
