"""Transactions: whole or not at all, one writer at a time, readers beside it."""

import asyncio
import functools
import logging
import sqlite3
import stat
import threading

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from store_fixtures import outcome, python

from agentos.errors import StoreError
from agentos.store import Store, schema, sqlite

SECRET = "hunter2secret"
HEAD = {"id": 1, "first_seq": 1, "first_prev": "", "seq": 0, "hash": "", "key_id": "", "signature": ""}


def flag(pack, enabled=True):
    return {"pack": pack, "enabled": enabled, "at": 1.0, "by": SECRET}


def add(*packs):
    """Return a function that adds rows of those names."""

    def insert(connection):
        for pack in packs:
            connection.execute(schema.flags.insert(), flag(pack))

    return insert


def names(connection):
    return list(connection.execute(select(schema.flags.c.pack).order_by(schema.flags.c.pack)).scalars())


async def packs(store):
    return await store.read(names)


def nothing(connection):
    """Do nothing."""


async def test_what_a_function_did_is_kept(any_store):
    await any_store.write(add("a", "b"))

    assert await packs(any_store) == ["a", "b"]


async def test_what_a_function_returns_is_returned(any_store):
    assert await any_store.write(lambda connection: 7) == 7


async def test_what_a_function_did_before_it_raised_is_undone(any_store):
    def fail(connection):
        add("a")(connection)
        raise LookupError

    with pytest.raises(LookupError):
        await any_store.write(fail)

    assert await packs(any_store) == []


async def test_a_function_may_do_nothing(any_store):
    await any_store.write(nothing)
    await any_store.read(nothing)

    assert await packs(any_store) == []


async def test_a_function_runs_in_a_thread_of_the_store(any_store):
    threads = {await any_store.write(lambda _: threading.get_ident()) for _ in range(3)}

    assert threading.get_ident() not in threads


async def test_many_rows_go_in_at_once(any_store):
    rows = [flag(str(number)) for number in range(500)]
    await any_store.write(lambda connection: connection.execute(schema.flags.insert(), rows).rowcount)
    query = select(func.count()).select_from(schema.flags)

    assert await any_store.read(lambda connection: connection.execute(query).scalar_one()) == 500


async def test_a_change_says_how_many_rows_it_met(any_store):
    def change(connection):
        add("a", "b")(connection)
        changed = connection.execute(schema.flags.update().values(enabled=False)).rowcount
        return changed, connection.execute(schema.flags.delete().where(schema.flags.c.pack == "c")).rowcount

    assert await any_store.write(change) == (2, 0)


async def test_rows_can_be_had_in_parts(any_store):
    def look(connection):
        result = connection.execute(select(schema.flags.c.pack).order_by(schema.flags.c.pack)).scalars()
        return [result.fetchmany(1), result.fetchmany(2), result.all()]

    await any_store.write(add(*"abcde"))

    assert await any_store.read(look) == [["a"], ["b", "c"], ["d", "e"]]


async def test_a_part_can_be_undone_by_itself(any_store):
    def work(connection):
        add("a")(connection)
        with pytest.raises(IntegrityError), connection.begin_nested():
            add("b", "a")(connection)
        add("c")(connection)

    await any_store.write(work)

    assert await packs(any_store) == ["a", "c"]


@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("others", [0, 3])
async def test_a_function_that_ends_its_transaction_itself_is_refused_and_undone(any_store, how, others):
    def end(connection):
        add("a")(connection)
        getattr(connection, how)()

    writing = [any_store.write(end), *(any_store.write(add(f"b{number}")) for number in range(others))]
    results = await asyncio.gather(*writing, return_exceptions=True)

    assert [type(result) for result in results] == [StoreError, *[type(None)] * others]
    assert "must not commit or roll back" in str(results[0])
    assert await packs(any_store) == [f"b{number}" for number in range(others)]


async def test_a_function_that_goes_on_after_that_is_refused_and_undone_too(any_store):
    def go_on(connection):
        add("a")(connection)
        with pytest.raises(StoreError):
            connection.commit()
        add("b")(connection)

    with pytest.raises(StoreError, match="rolled back after an error"):
        await any_store.write(go_on)
    await any_store.write(add("c"))

    assert await packs(any_store) == ["c"]


async def test_writing_where_reading_was_asked_for_is_refused(any_store):
    with pytest.raises(StoreError, match=r"needs write\(\), not read\(\)"):
        await any_store.read(add("a"))
    await any_store.write(add("b"))

    assert await packs(any_store) == ["b"]


async def test_a_task_may_have_one_transaction_after_another(any_store):
    for pack in "abc":
        await any_store.write(add(pack))

    assert await packs(any_store) == ["a", "b", "c"]


# -- several that share a commit -------------------------------------------------------------------------------


async def held_up(store, *functions):
    """Give the functions to a store whose thread is busy, so that all of them wait at the same time."""
    release = threading.Event()
    first = asyncio.create_task(store.write(lambda _: release.wait()))
    await asyncio.sleep(0)
    writing = [asyncio.create_task(store.write(function)) for function in functions]
    await asyncio.sleep(0)
    release.set()
    await first
    return await asyncio.gather(*writing, return_exceptions=True)


def number_of_commits(store, connection):
    """Return how many commits there were, as far as SQLite counts them for those who share a file."""
    return connection.exec_driver_sql("PRAGMA data_version").scalar()


async def test_writers_that_wait_at_the_same_time_share_a_commit(sqlite_url):
    store = Store(sqlite_url)
    await store.open()
    before = await store.read(functools.partial(number_of_commits, store))
    await held_up(store, *(add(str(number)) for number in range(9)))
    commits = await store.read(functools.partial(number_of_commits, store)) - before
    found = await packs(store)
    await store.close()

    assert (commits, len(found)) == (1, 9)


async def test_one_that_fails_takes_nobody_of_the_same_commit_with_it(any_store):
    def fail(connection):
        add("x")(connection)
        raise LookupError

    await any_store.open()
    results = await held_up(any_store, add("a"), fail, add("b"), add("d", "d"), add("c"))

    assert [type(result) for result in results] == [type(None), LookupError, type(None), StoreError, type(None)]
    assert await packs(any_store) == ["a", "b", "c"]


async def test_what_can_not_be_committed_together_is_committed_one_by_one(sqlite_url):
    store = Store(sqlite_url)

    def make_tables(connection):
        connection.exec_driver_sql("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        connection.exec_driver_sql(
            "CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)"
        )

    def orphan(connection):
        connection.exec_driver_sql("INSERT INTO children VALUES (1)")

    await store.write(make_tables)
    results = await held_up(store, add("a"), orphan, add("b"))
    found = await packs(store)
    await store.close()

    assert [type(result) for result in results] == [type(None), StoreError, type(None)]
    assert found == ["a", "b"]


async def test_a_full_disk_is_told_to_who_filled_it_alone(sqlite_url):
    store = Store(sqlite_url)
    await store.open()

    def fill(connection):
        connection.exec_driver_sql("PRAGMA max_page_count=1")  # SQLite takes it for the present size
        try:
            add(*("x" * 5000 + str(number) for number in range(100)))(connection)
        finally:
            connection.connection.dbapi_connection.execute(f"PRAGMA max_page_count={2**30}")

    results = await held_up(store, add("a"), fill, add("b"))
    found = await packs(store)
    await store.close()

    assert [type(result) for result in results] == [type(None), StoreError, type(None)]
    assert found == ["a", "b"]


async def test_what_is_to_be_done_after_a_commit_is_done_even_if_the_caller_was_cancelled(any_store):
    begun, release, done = threading.Event(), threading.Event(), []

    def write(connection):
        begun.set()
        release.wait()
        add("a")(connection)
        return 7

    await any_store.open()
    writing = asyncio.create_task(any_store.write(write, done.append))
    while not begun.is_set():
        await asyncio.sleep(0)
    writing.cancel()
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(writing, return_exceptions=True)

    assert (writing.cancelled(), done, await packs(any_store)) == (True, [7], ["a"])


async def test_what_is_to_be_done_after_a_commit_is_not_done_without_one(any_store):
    done = []
    with pytest.raises(StoreError):
        await any_store.write(add("a", "a"), done.append)

    assert done == []


# -- side by side ----------------------------------------------------------------------------------------------


def count_up(connection):
    table = schema.audit_head
    row = connection.execute(table.select().where(table.c.id == 1).with_for_update()).one()
    connection.execute(table.update().values(seq=row.seq + 1))


def insert_head(connection):
    connection.execute(schema.audit_head.insert(), HEAD)


def count(connection):
    return connection.execute(schema.audit_head.select()).one().seq


async def test_writers_do_not_lose_each_others_changes(any_store):
    await any_store.write(insert_head)
    await asyncio.gather(*(any_store.write(count_up) for _ in range(40)))

    assert await any_store.read(count) == 40


async def test_writers_of_a_file_take_turns_in_the_order_they_came(sqlite_url):
    store, order = Store(sqlite_url), []
    await asyncio.gather(*(store.write(lambda _, number=number: order.append(number)) for number in range(20)))
    await store.close()

    assert order == list(range(20))


async def seen_meanwhile(store, look):
    """Write a row, and before it is committed have *look* do its work; return what it saw."""
    written, release = threading.Event(), threading.Event()

    def write(connection):
        add("a")(connection)
        written.set()
        release.wait()

    writing = asyncio.create_task(store.write(write))
    while not written.is_set():
        await asyncio.sleep(0)
    try:
        return await look()
    finally:
        release.set()
        await writing


async def test_a_reader_does_not_wait_for_a_writer(store):
    assert await seen_meanwhile(store, lambda: packs(store)) == []


async def test_in_memory_a_reader_waits_for_a_writer():
    store = Store()

    async def look():
        looking = asyncio.create_task(packs(store))
        await asyncio.sleep(0)
        return looking

    looking = await seen_meanwhile(store, look)

    assert await looking == ["a"]
    await store.close()


async def test_more_readers_than_connections_all_get_their_turn(any_store):
    await any_store.write(add("a"))

    assert await asyncio.gather(*(packs(any_store) for _ in range(30))) == [["a"]] * 30


async def test_two_stores_on_one_database_see_each_others_rows(store, store_url):
    other = Store(store_url)
    await store.write(add("a"))
    await other.write(add("b"))
    seen = await packs(store), await packs(other)
    await other.close()

    assert seen == (["a", "b"], ["a", "b"])


async def test_two_stores_on_one_file_wait_for_each_other(sqlite_url):
    store, other = Store(sqlite_url), Store(sqlite_url)
    await other.open()

    async def look():
        writing = asyncio.create_task(other.write(add("b")))
        for _ in range(50):
            await packs(store)
        return writing, writing.done()

    writing, was_done = await seen_meanwhile(store, look)
    await writing
    found = await packs(store)
    await other.close()
    await store.close()

    assert (was_done, found) == (False, ["a", "b"])


async def test_a_writer_waits_for_another_process_longer_than_it_takes_to_look_up(sqlite_url, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "GLANCE", 0.001)
    store, looks = Store(sqlite_url), []
    await store.write(nothing)
    blocker = sqlite3.connect(tmp_path / "agentos.db", isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    is_done = sqlite._is_done

    def look(*arguments):
        looks.append(is_done(*arguments))
        if len(looks) == 3:
            blocker.execute("ROLLBACK")
        return looks[-1]

    monkeypatch.setattr(sqlite, "_is_done", look)
    await store.write(add("a"))
    blocker.close()
    await store.close()

    assert looks == [False, False, False, True]


async def test_a_file_that_stays_locked_is_given_up_with_the_way_out(sqlite_url, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "PATIENCE", 0.0)
    store = Store(sqlite_url)
    await store.open()
    blocker = sqlite3.connect(tmp_path / "agentos.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"database is locked\. Another process keeps it locked; end that process"):
        await store.write(add("a"))
    blocker.execute("ROLLBACK")
    blocker.close()
    await store.write(add("b"))
    left = await packs(store)
    await store.close()

    assert left == ["b"]


async def test_a_task_that_waits_for_a_locked_file_can_be_cancelled(sqlite_url, tmp_path):
    store = Store(sqlite_url)
    await store.open()
    blocker = sqlite3.connect(tmp_path / "agentos.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await store.write(add("a"))
    blocker.execute("ROLLBACK")
    blocker.close()
    await store.write(add("b"))
    left = await packs(store)
    await store.close()

    assert left == ["b"]


PROCESS = """
    import asyncio, sys
    from agentos.store import Store, schema

    def count_up(connection):
        query = schema.audit_head.select().where(schema.audit_head.c.id == 1).with_for_update()
        seq = connection.execute(query).one().seq
        connection.execute(schema.audit_head.update().values(seq=seq + 1))

    async def main():
        store = Store(sys.argv[1])
        await store.open()
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(25):
            await store.write(count_up)
        await store.close()

    asyncio.run(main())
"""

KILLED = """
    import asyncio, sys
    from agentos.store import Store, schema

    def write(connection):
        connection.execute(schema.flags.insert(), {"pack": "a", "enabled": True, "at": 1.0})
        print("ready", flush=True)
        sys.stdin.readline()

    asyncio.run(Store(sys.argv[1]).write(write))
"""


async def test_processes_do_not_lose_each_others_changes(store, store_url):
    await store.write(insert_head)
    processes = [python(PROCESS, store_url) for _ in range(4)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        outcome(process)

    assert await store.read(count) == 100


async def test_what_a_killed_process_had_not_committed_is_not_there(store, store_url):
    process = python(KILLED, store_url)
    process.stdout.readline()
    process.kill()
    process.communicate()
    await store.write(add("a"))

    assert await packs(store) == ["a"]


# -- how the databases are set up ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)],
)
async def test_a_file_is_set_up_to_lose_nothing(sqlite_url, name, value):
    store = Store(sqlite_url)
    found = await store.write(lambda connection: connection.exec_driver_sql(f"PRAGMA {name}").scalar())
    await store.close()

    assert found == value


async def test_a_reader_waits_as_long_as_a_writer_for_a_file_that_is_locked(sqlite_url):
    store = Store(sqlite_url)
    found = await store.read(lambda connection: connection.exec_driver_sql("PRAGMA busy_timeout").scalar())
    await store.close()

    assert found == 30000


async def test_a_file_and_those_beside_it_are_for_their_owner_alone(sqlite_url, tmp_path):
    store = Store(sqlite_url)
    await store.open()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir() if file.is_file()}
    await store.close()

    assert modes == {f"agentos.db{end}": 0o600 for end in ("", "-wal", "-shm", ".key")}


async def test_a_folder_that_is_made_for_a_file_is_for_its_owner_alone(tmp_path):
    store = Store(f"sqlite:///{tmp_path / 'made' / 'agentos.db'}")
    await store.open()
    await store.close()

    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700


async def test_a_transaction_that_writes_is_read_committed_in_postgresql(postgres_url):
    store = Store(postgres_url)
    level = await store.write(lambda connection: connection.exec_driver_sql("SHOW transaction_isolation").scalar())
    await store.close()

    assert level == "read committed"


# -- what the database has to say ------------------------------------------------------------------------------


def chain_of(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


async def test_a_database_error_is_a_store_error_with_the_drivers_words(any_store):
    with pytest.raises(StoreError, match=r"UNIQUE constraint failed: flags\.pack|duplicate key .* \"flags_pkey\""):
        await any_store.write(add("a", "a"))

    assert await packs(any_store) == []


async def test_a_store_error_carries_no_parameters(any_store):
    with pytest.raises(StoreError) as caught:
        await any_store.write(add(SECRET, SECRET))

    assert [repr(error) for error in chain_of(caught.value) if SECRET in repr(error) + str(error)] == []
    assert list(chain_of(caught.value)) == [caught.value]


async def test_a_database_error_can_be_handled_within_the_function(any_store):
    def handle(connection):
        add("a")(connection)
        with pytest.raises(IntegrityError), connection.begin_nested():
            add("a")(connection)

    await any_store.write(handle)

    assert await packs(any_store) == ["a"]


@pytest.mark.parametrize("value", [f"{SECRET}\udc80", 2**70, [SECRET]], ids=["surrogate", "huge", "list"])
async def test_a_value_that_can_not_be_stored_is_refused_without_showing_it(any_store, value):
    column = "seq" if isinstance(value, int) else "body"
    row = {"seq": 1, "prev": "", "hash": "", "body": "", column: value}
    with pytest.raises(StoreError) as caught:
        await any_store.write(lambda connection: connection.execute(schema.audit.insert(), row))

    assert SECRET not in str(caught.value)
    assert list(chain_of(caught.value)) == [caught.value]


async def test_a_missing_parameter_is_refused_without_showing_the_others(any_store):
    statement = schema.flags.select().where(schema.flags.c.pack == func.coalesce(SECRET))
    statement = statement.with_only_columns(func.nothing_like_this(SECRET))
    with pytest.raises(StoreError) as caught:
        await any_store.write(lambda connection: connection.execute(statement))

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("error", [TimeoutError("mine"), OSError("mine"), ValueError("mine"), StoreError("mine")])
async def test_what_a_function_raises_itself_passes_unchanged(any_store, error):
    def fail(connection):
        raise error

    with pytest.raises(type(error)) as caught:
        await any_store.write(fail)

    assert caught.value is error


async def test_parameters_are_not_logged(any_store, caplog):
    with caplog.at_level(logging.DEBUG):
        await any_store.write(add("a"))

    assert SECRET not in caplog.text
