"""The memory on a disk: a process that is killed, and processes side by side."""

import contextlib
import json
import sqlite3

PRELUDE = """
import asyncio, sys, threading
from pathlib import Path
from agentos_pack_sqlite_memory.store import MemoryOptions, MemoryStore

store = MemoryStore.from_options(MemoryOptions(path=Path(sys.argv[1]), trigram=True))
"""
WRITER = (
    PRELUDE
    + """
async def main():
    await store.open()
    number = 0
    while number < int(sys.argv[3]):
        saved = await store.store(f"memory {number} of {sys.argv[2]}")
        print(saved.id)
        number += 1
    await store.close()

asyncio.run(main())
"""
)
HALF = (
    PRELUDE
    + """
def half(connection):
    connection.execute("DELETE FROM memories")
    connection.execute("INSERT INTO words(words) VALUES ('delete-all')")
    print("in the middle")
    threading.Event().wait()

async def main():
    await store.open()
    await store.store("kept")
    await store._database.write(half)

asyncio.run(main())
"""
)


def sound(path):
    """Return the rows of a database, after looking whether it and its indexes are whole."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for index in ("words", "pieces"):
            db.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")
        return dict(db.execute("SELECT ref, text FROM memories").fetchall())


async def test_what_was_acknowledged_survives_a_kill(child, tmp_path, make_store):
    writer = child(WRITER, tmp_path / "memory.db", "a", 10**9)
    acknowledged = [writer.stdout.readline().strip() for _ in range(60)]
    writer.kill()
    acknowledged += [line.strip() for line in writer.stdout if line.endswith("\n")]
    writer.wait()

    assert set(acknowledged) <= set(sound(tmp_path / "memory.db"))
    async with make_store() as store:
        await store.store("and it goes on")
        assert len((await store.query("memory", limit=50)).memories) == 50


async def test_a_change_that_was_killed_in_the_middle_never_was(child, tmp_path, make_store):
    writer = child(HALF, tmp_path / "memory.db")
    assert writer.stdout.readline() == "in the middle\n"
    writer.kill()
    writer.wait()

    assert list(sound(tmp_path / "memory.db").values()) == ["kept"]
    async with make_store() as store:
        assert [memory.text for memory in (await store.query("kept")).memories] == ["kept"]


async def test_two_processes_write_at_once_and_a_third_reads(child, tmp_path, make_store):
    writers = [child(WRITER, tmp_path / "memory.db", name, 100) for name in ("a", "b")]
    async with make_store() as store:
        await store.store("my own")
        ends = [writer.communicate(timeout=60) for writer in writers]
        found = await store.query("memory 99", limit=50)

    assert [complaint for _, complaint in ends] == ["", ""]
    ids = [line for told, _ in ends for line in told.split()]
    assert len(set(ids)) == 200
    assert set(ids) <= set(sound(tmp_path / "memory.db"))
    assert {"memory 99 of a", "memory 99 of b"} <= {memory.text for memory in found.memories}


def test_the_file_is_readable_by_its_owner_alone(child, tmp_path):
    writer = child(WRITER, tmp_path / "memory.db", "a", 1)
    writer.communicate(timeout=60)

    assert (tmp_path / "memory.db").stat().st_mode & 0o077 == 0
    assert json.dumps(list(sound(tmp_path / "memory.db").values())) == '["memory 0 of a"]'
