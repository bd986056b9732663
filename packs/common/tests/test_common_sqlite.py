"""A pack's own SQLite database."""

import asyncio
import contextlib
import gc
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from agentos_pack_common.sqlite import (
    Database,
    StorageError,
    like_pattern,
    quoted_terms,
    storable,
)

FIRST = ("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL)",)
SECOND = ("ALTER TABLE notes ADD COLUMN tag TEXT", "CREATE INDEX by_tag ON notes(tag)")
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


def database(path, *, migrations=(FIRST,), **fields):
    return Database(path, **{"application_id": 0x41414141, "migrations": migrations, **fields})


@contextlib.asynccontextmanager
async def opened(path, **fields):
    made = database(path, **fields)
    await made.open()
    try:
        yield made
    finally:
        await made.close()


def adding(*texts):
    def work(connection):
        connection.executemany("INSERT INTO notes(text) VALUES (?)", [(text,) for text in texts])
        return len(texts)

    return work


def texts(connection):
    return [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY id")]


def threads():
    return [one.name for one in threading.enumerate() if one.name.startswith("agentos-sqlite")]


def open_files(folder):
    links = list(Path("/proc/self/fd").iterdir())
    return [name for link in links if (name := _target(link)).startswith(str(folder))]


def _target(link):
    try:
        return str(link.readlink())
    except FileNotFoundError:  # the descriptor of the folder that was listed
        return ""


# -- opening -----------------------------------------------------------------------------------------------------


async def test_a_file_is_made_for_its_owner_alone(tmp_path):
    async with opened(tmp_path / "deep" / "a.db") as db:
        await db.write(adding("x"))

        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "deep").iterdir()}
        assert set(modes.values()) == {0o600}
        assert "a.db-wal" in modes


async def test_what_was_written_is_there_again(tmp_path):
    async with opened(tmp_path / "a.db") as db:
        await db.write(adding("x", "y"))
    async with opened(tmp_path / "a.db") as db:
        assert await db.read(texts) == ["x", "y"]


@pytest.mark.parametrize(("path", "durable"), [(None, False), ("a.db", True)])
async def test_it_tells_whether_it_lasts(tmp_path, path, durable):
    async with opened(path and tmp_path / path) as db:
        assert db.is_durable is durable


async def test_opening_twice_is_opening_once(tmp_path):
    async with opened(tmp_path / "a.db") as db:
        await db.open()

        assert await db.write(adding("x")) == 1


async def test_it_can_be_opened_again_after_closing(tmp_path):
    db = database(tmp_path / "a.db")
    await db.open()
    await db.close()
    await db.open()
    await db.close()

    assert not db.is_open


async def test_a_missing_file_is_refused_when_it_may_not_be_made(tmp_path):
    with pytest.raises(StorageError, match=r"^the database 'a\.db' does not exist"):
        await database(tmp_path / "a.db", create=False).open()

    assert list(tmp_path.iterdir()) == []


async def test_a_folder_is_refused(tmp_path):
    with pytest.raises(StorageError, match="no regular file"):
        await database(tmp_path).open()


async def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.db")

    with pytest.raises(StorageError, match="no regular file"):
        await database(tmp_path / "a.db").open()


async def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path):
    (tmp_path / "a.db").write_text("my diary, and not short either" * 50)

    with pytest.raises(StorageError, match="no SQLite database"):
        await database(tmp_path / "a.db").open()
    assert (tmp_path / "a.db").read_text().startswith("my diary")


async def test_somebody_elses_database_is_refused_and_not_changed(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as other:
        other.execute("CREATE TABLE theirs(x)")
    before = (tmp_path / "a.db").read_bytes()

    with pytest.raises(StorageError, match="belongs to another program"):
        await database(tmp_path / "a.db").open()
    assert (tmp_path / "a.db").read_bytes() == before


async def test_messages_name_the_file_and_not_its_folder(tmp_path):
    (tmp_path / "a.db").mkdir()

    with pytest.raises(StorageError) as caught:
        await database(tmp_path / "a.db").open()
    assert str(tmp_path) not in str(caught.value)


async def test_a_folder_in_the_way_is_told(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="can't be opened"):
        await database(tmp_path / "file" / "a.db").open()


# -- migrations --------------------------------------------------------------------------------------------------


async def test_a_new_file_gets_every_migration(tmp_path):
    async with opened(tmp_path / "a.db", migrations=(FIRST, SECOND)) as db:
        assert await db.read(lambda c: c.execute("PRAGMA user_version").fetchone()) == (2,)


async def test_an_old_file_gets_the_rest_and_keeps_its_rows(tmp_path):
    async with opened(tmp_path / "a.db") as db:
        await db.write(adding("x"))
    async with opened(tmp_path / "a.db", migrations=(FIRST, SECOND)) as db:
        assert await db.read(lambda c: c.execute("SELECT text, tag FROM notes").fetchall()) == [("x", None)]


async def test_a_file_of_a_later_version_is_refused(tmp_path):
    async with opened(tmp_path / "a.db", migrations=(FIRST, SECOND)):
        pass

    with pytest.raises(StorageError, match="version 2, but this pack knows 1"):
        await database(tmp_path / "a.db").open()


async def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path):
    async with opened(tmp_path / "a.db") as db:
        await db.write(adding("x"))
    with pytest.raises(sqlite3.OperationalError):
        await database(tmp_path / "a.db", migrations=(FIRST, (SECOND[0], "CREATE nonsense"))).open()

    async with opened(tmp_path / "a.db", migrations=(FIRST, SECOND)) as db:
        assert await db.read(lambda c: c.execute("SELECT text, tag FROM notes").fetchall()) == [("x", None)]
    assert open_files(tmp_path) == []


def test_processes_that_open_a_new_file_at_once_all_succeed(tmp_path):
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from agentos_pack_common.sqlite import Database\n"
        "async def main():\n"
        "    db = Database(Path(sys.argv[1]), application_id=7, migrations=[['CREATE TABLE t(x)']])\n"
        "    await db.open()\n"
        "    await db.write(lambda c: c.execute('INSERT INTO t VALUES (1)'))\n"
        "    await db.close()\n"
        "asyncio.run(main())"
    )
    common = str(Path(sys.modules[Database.__module__].__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([common, os.environ.get("PYTHONPATH", "")])}
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a.db")], env=env, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    complaints = [child.communicate(timeout=60)[1] for child in children]

    assert complaints == [b""] * 4
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (4,)


# -- work --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["file", "memory"])
async def db(request, tmp_path):
    async with opened(tmp_path / "a.db" if request.param == "file" else None, seconds=20) as made:
        yield made


async def test_a_change_that_raises_is_taken_back(db):
    def work(connection):
        adding("x")(connection)
        raise KeyError("y")

    with pytest.raises(KeyError):
        await db.write(work)

    assert await db.read(texts) == []


async def test_a_rehearsal_tells_what_would_be_and_keeps_nothing(db):
    assert await db.rehearse(adding("x", "y")) == 2

    assert await db.read(texts) == []


async def test_reading_changes_nothing(db):
    with pytest.raises(StorageError, match="can't be written"):
        await db.read(adding("x"))

    assert await db.write(adding("y")) == 1
    assert await db.read(texts) == ["y"]


async def test_a_broken_constraint_is_the_packs_business(db):
    with pytest.raises(sqlite3.IntegrityError):
        await db.write(adding("x", "x"))


async def test_many_at_once_all_succeed(db):
    await asyncio.gather(*(db.write(adding(f"n{n}")) for n in range(50)), *(db.read(texts) for _ in range(50)))

    assert len(await db.read(texts)) == 50


async def test_work_that_takes_too_long_is_interrupted(tmp_path):
    async with opened(tmp_path / "a.db", seconds=0.1) as db:
        with pytest.raises(StorageError, match=r"took longer than 0\.1 s"):
            await db.read(lambda connection: connection.execute(ENDLESS).fetchone())


async def test_a_cancelled_reader_is_interrupted(db):
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(connection):
        loop.call_soon_threadsafe(begun.set)
        connection.execute(ENDLESS).fetchone()

    task = asyncio.create_task(db.read(work))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await db.read(texts) == []


async def test_a_cancelled_change_is_taken_back_and_the_next_one_works(db):
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(connection):
        adding("x")(connection)
        loop.call_soon_threadsafe(begun.set)
        connection.execute(ENDLESS).fetchone()

    task = asyncio.create_task(db.write(work))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await db.write(adding("y"))
    assert await db.read(texts) == ["y"]


async def test_a_full_database_says_so_and_can_be_read(tmp_path):
    async with opened(tmp_path / "a.db", max_bytes=40_960) as db:
        with pytest.raises(StorageError, match="is full: it may have 40,960 bytes"):
            await db.write(adding("x" * 100_000))

        assert await db.read(texts) == []


async def test_a_lock_of_another_process_is_waited_for(tmp_path):
    async with opened(tmp_path / "a.db") as db:
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(db.write(adding("x")))
        for _ in range(20):
            await asyncio.sleep(0)
        other.execute("INSERT INTO notes(text) VALUES ('theirs')")
        other.execute("COMMIT")
        other.close()
        await task

        assert await db.read(texts) == ["theirs", "x"]


async def test_readers_do_not_wait_for_a_writer(tmp_path):
    async with opened(tmp_path / "a.db") as db:
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            assert await db.read(texts) == []
        finally:
            other.close()


async def test_nothing_else_can_be_attached(db):
    with pytest.raises(sqlite3.OperationalError, match="too many attached"):
        await db.write(lambda connection: connection.execute("ATTACH ':memory:' AS other"))


# -- closing -----------------------------------------------------------------------------------------------------


async def test_closing_leaves_no_file_and_no_thread(tmp_path):
    async with opened(tmp_path / "a.db") as db:
        await asyncio.gather(db.write(adding("x")), *(db.read(texts) for _ in range(8)))

    gc.collect()
    assert open_files(tmp_path) == []
    assert threads() == []
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


async def test_closing_interrupts_what_is_under_way(tmp_path):
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(connection):
        loop.call_soon_threadsafe(begun.set)
        connection.execute(ENDLESS).fetchone()

    async with opened(tmp_path / "a.db", seconds=600) as db:
        tasks = [asyncio.create_task(way(work)) for way in (db.read, db.write)]
        await begun.wait()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [StorageError, StorageError]
    assert open_files(tmp_path) == []


@pytest.mark.parametrize("way", ["read", "write", "rehearse"])
async def test_a_closed_database_says_so(tmp_path, way):
    async with opened(tmp_path / "a.db") as db:
        pass

    with pytest.raises(StorageError, match=r"the database 'a\.db' is closed"):
        await getattr(db, way)(texts)


async def test_closing_twice_is_closing_once(tmp_path):
    async with opened(tmp_path / "a.db") as db:
        await db.close()

    assert not db.is_open


async def test_a_cancelled_opening_leaves_nothing_open(tmp_path):
    db = database(tmp_path / "a.db")
    task = asyncio.create_task(db.open())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not db.is_open
    assert open_files(tmp_path) == []


# -- text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fault"), [("a\0b", "note: has a NUL character"), ("a\ud800", "note: has half a character at 2")]
)
def test_text_that_sqlite_can_not_keep_is_refused(text, fault):
    with pytest.raises(ValueError, match=fault):
        storable(text, "note")


HOSTILE = [
    '"',
    '""',
    "'",
    "a AND",
    "AND OR NOT",
    "NEAR(a b, 2)",
    "a*",
    "^a",
    "{text}: a",
    "text:a",
    "-text:a",
    "(((",
    "a + b",
    "col : x",
    "*",
    "a\0b",
    "\ud800 a",
    "\u202e",
    "''; DROP TABLE f;--",
    "a" * 5_000,
    "🙂 🙂",
    "!!! ???",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_can_be_searched_for(text):
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE f USING fts5(text)")
        for terms in (" AND ".join(quoted_terms(text)), " OR ".join(quoted_terms(text))):
            if terms:
                db.execute("SELECT rowid FROM f WHERE f MATCH ?", (terms,)).fetchall()


@pytest.mark.parametrize("text", ["text:a", "a AND", "*", "(((", '"'])
def test_raw_text_would_have_raised(text):
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE f USING fts5(body)")

        with pytest.raises(sqlite3.OperationalError):
            db.execute("SELECT rowid FROM f WHERE f MATCH ?", (text,)).fetchall()


def test_terms_are_few_and_different():
    assert quoted_terms("b a b c", limit=2) == ['"b"', '"a"']


@pytest.mark.parametrize(("text", "found"), [("50%", ["50% off"]), ("a_b", ["a_b"]), ("c\\d", ["c\\d"]), ("zz", [])])
def test_a_pattern_finds_text_as_it_is(text, found):
    rows = ["50% off", "500", "a_b", "axb", "c\\d"]
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE t(x)")
        db.executemany("INSERT INTO t VALUES (?)", [(row,) for row in rows])

        query = "SELECT x FROM t WHERE x LIKE ? ESCAPE '\\'"
        assert [row for (row,) in db.execute(query, (like_pattern(text),))] == found
