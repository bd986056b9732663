"""Offer stores, hosts and child processes."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATHS = [str(ROOT), str(ROOT.parent / "common")]


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make_store(tmp_path, clock):
    """Return a function that opens a store, in a file unless told otherwise, until the end of a block."""
    from agentos_pack_common.sqlite import Database
    from agentos_pack_sqlite_memory._schema import APPLICATION_ID, MIGRATIONS
    from agentos_pack_sqlite_memory.store import MemoryStore

    @contextlib.asynccontextmanager
    async def opened(path=tmp_path / "memory.db", **fields):
        database = Database(path, application_id=APPLICATION_ID, migrations=MIGRATIONS)
        store = MemoryStore(database, **{"clock": clock, **fields})
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    return opened


@pytest.fixture
async def store(make_store):
    async with make_store() as made:
        yield made


@pytest.fixture(scope="session")
def child():
    """Return a function that starts code in a fresh interpreter; whatever still runs at the end is killed."""
    started = []

    def start(code, *arguments):
        paths = [*PATHS, os.environ.get("PYTHONPATH", "")]
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-u", "-c", code, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()
