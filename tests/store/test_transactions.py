"""Transactions: whole or not at all, one writer at a time, readers beside it."""

import asyncio
import logging
import sqlite3
import stat

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError, InvalidRequestError
from store_fixtures import outcome, python

from agentos.errors import StoreError
from agentos.store import Store, schema, sqlite

SECRET = "hunter2secret"
HEAD = {"id": 1, "first_seq": 1, "first_prev": "", "seq": 0, "hash": "", "key_id": "", "signature": ""}


def flag(pack, enabled=True):
    return {"pack": pack, "enabled": enabled, "at": 1.0, "by": SECRET}


async def add(connection, *packs):
    for pack in packs:
        await connection.execute(schema.flags.insert(), flag(pack))


async def packs(store):
    async with store.read() as connection:
        return list((await connection.execute(select(schema.flags.c.pack).order_by(schema.flags.c.pack))).scalars())


async def pragma(connection, name):
    return (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar()


async def test_what_a_block_did_is_kept(any_store):
    async with any_store.begin() as connection:
        await add(connection, "a", "b")

    assert await packs(any_store) == ["a", "b"]


async def test_what_a_block_did_before_it_raised_is_undone(any_store):
    async def fail():
        async with any_store.begin() as connection:
            await add(connection, "a")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()

    assert await packs(any_store) == []


async def test_a_block_may_do_nothing(any_store):
    async with any_store.begin():
        pass
    async with any_store.read():
        pass

    assert await packs(any_store) == []


async def test_many_rows_go_in_at_once(any_store):
    async with any_store.begin() as connection:
        await connection.execute(schema.flags.insert(), [flag(str(number)) for number in range(500)])
    async with any_store.read() as connection:
        count = (await connection.execute(select(func.count()).select_from(schema.flags))).scalar_one()

    assert count == 500


async def test_a_change_says_how_many_rows_it_met(any_store):
    async with any_store.begin() as connection:
        await add(connection, "a", "b")
        changed = await connection.execute(schema.flags.update().values(enabled=False))
        again = await connection.execute(schema.flags.delete().where(schema.flags.c.pack == "c"))

    assert (changed.rowcount, again.rowcount) == (2, 0)


async def test_rows_can_be_streamed(any_store):
    async with any_store.begin() as connection:
        await add(connection, "a", "b", "c")
    async with any_store.read() as connection:
        streamed = [row.pack async for row in await connection.stream(schema.flags.select())]

    assert sorted(streamed) == ["a", "b", "c"]


async def test_rows_can_be_streamed_one_by_one_and_in_parts(any_store):
    async with any_store.begin() as connection:
        await add(connection, *"abcde")
    async with any_store.read() as connection:
        query = select(schema.flags.c.pack).order_by(schema.flags.c.pack)
        result = (await connection.stream(query, execution_options={"max_row_buffer": 1})).scalars()
        first, then, rest = await result.fetchmany(1), await result.fetchmany(2), await result.all()

    assert [first, then, rest] == [["a"], ["b", "c"], ["d", "e"]]


async def test_a_part_can_be_undone_by_itself(any_store):
    async with any_store.begin() as connection:
        await add(connection, "a")
        with pytest.raises(IntegrityError):
            async with connection.begin_nested():
                await add(connection, "b", "a")
        await add(connection, "c")

    assert await packs(any_store) == ["a", "c"]


async def test_a_block_can_not_commit_before_its_end(any_store):
    async def go_on():
        async with any_store.begin() as connection:
            await add(connection, "a")
            await connection.commit()
            await add(connection, "b")

    with pytest.raises(InvalidRequestError):
        await go_on()

    assert await packs(any_store) == ["a"]


@pytest.mark.parametrize(("how", "expected"), [("commit", ["a"]), ("rollback", [])])
async def test_a_block_may_end_its_transaction_itself_as_the_last_thing(any_store, how, expected):
    async with any_store.begin() as connection:
        await add(connection, "a")
        await getattr(connection, how)()

    assert await packs(any_store) == expected


async def test_writing_where_reading_was_asked_for_is_refused(any_store):
    with pytest.raises(StoreError, match=r"needs begin\(\), not read\(\)"):
        async with any_store.read() as connection:
            await add(connection, "a")
    async with any_store.begin() as connection:
        await add(connection, "b")

    assert await packs(any_store) == ["b"]


@pytest.mark.parametrize("outer", ["begin", "read"])
@pytest.mark.parametrize("inner", ["begin", "read"])
async def test_a_transaction_within_another_is_refused_instead_of_waiting_for_itself(any_store, outer, inner):
    with pytest.raises(StoreError, match="within a transaction of the store already"):
        async with getattr(any_store, outer)(), getattr(any_store, inner)():
            pass


async def test_closing_within_a_transaction_is_refused(any_store):
    with pytest.raises(StoreError, match="within a transaction of the store already"):
        async with any_store.begin():
            await any_store.close()


async def test_a_task_may_have_one_transaction_after_another(any_store):
    for pack in "abc":
        async with any_store.begin() as connection:
            await add(connection, pack)

    assert await packs(any_store) == ["a", "b", "c"]


# -- side by side ----------------------------------------------------------------------------------------------


async def count_up(store):
    async with store.begin() as connection:
        table = schema.audit_head
        query = table.select().where(table.c.id == 1).with_for_update()
        row = (await connection.execute(query)).one()
        await connection.execute(table.update().values(seq=row.seq + 1))


async def test_writers_do_not_lose_each_others_changes(any_store):
    async with any_store.begin() as connection:
        await connection.execute(schema.audit_head.insert(), HEAD)
    await asyncio.gather(*(count_up(any_store) for _ in range(40)))
    async with any_store.read() as connection:
        row = (await connection.execute(schema.audit_head.select())).one()

    assert row.seq == 40


async def test_writers_of_a_file_take_turns_in_the_order_they_came(sqlite_url):
    store, order = Store(sqlite_url), []

    async def write(number):
        async with store.begin() as connection:
            order.append(number)
            await add(connection, str(number))

    await asyncio.gather(*(write(number) for number in range(20)))
    await store.close()

    assert order == list(range(20))


async def test_a_reader_does_not_wait_for_a_writer(store):
    async def look():
        return await packs(store)

    async with store.begin() as connection:
        await add(connection, "a")
        seen = await asyncio.create_task(look())

    assert seen == []


async def test_in_memory_a_reader_waits_for_a_writer():
    store = Store()
    async with store.begin() as connection:
        await add(connection, "a")
        looking = asyncio.create_task(packs(store))
        await add(connection, "b")

    assert await looking == ["a", "b"]
    await store.close()


async def test_more_readers_than_connections_all_get_their_turn(any_store):
    async with any_store.begin() as connection:
        await add(connection, "a")

    assert await asyncio.gather(*(packs(any_store) for _ in range(30))) == [["a"]] * 30


async def test_two_stores_on_one_database_see_each_others_rows(store, store_url):
    other = Store(store_url)
    async with store.begin() as connection:
        await add(connection, "a")
    async with other.begin() as connection:
        await add(connection, "b")
    seen = await packs(store), await packs(other)
    await other.close()

    assert seen == (["a", "b"], ["a", "b"])


async def test_two_stores_on_one_file_wait_for_each_other(sqlite_url):
    store, other = Store(sqlite_url), Store(sqlite_url)
    async with store.begin() as connection:
        await add(connection, "a")

        async def write():
            async with other.begin() as connection:
                await add(connection, "b")

        writing = asyncio.create_task(write())
        for _ in range(50):
            await add(connection, f"a{_}")
        was_waiting = not writing.done()
    await writing
    count = len(await packs(store))
    await other.close()
    await store.close()

    assert (was_waiting, count) == (True, 52)


async def test_a_writer_waits_for_another_process_longer_than_it_takes_to_look_up(sqlite_url, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_GLANCE", 0.001)
    store, looks = Store(sqlite_url), []
    await store.open()
    blocker = sqlite3.connect(tmp_path / "agentos.db", isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    did = sqlite.Connection._did

    def look(connection, *arguments):
        looks.append(did(connection, *arguments))
        if len(looks) == 3:
            blocker.execute("ROLLBACK")
        return looks[-1]

    monkeypatch.setattr(sqlite.Connection, "_did", look)
    async with store.begin() as connection:
        await add(connection, "a")
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
        async with store.begin() as connection:
            await add(connection, "a")
    blocker.execute("ROLLBACK")
    blocker.close()
    async with store.begin() as connection:
        await add(connection, "b")
    left = await packs(store)
    await store.close()

    assert left == ["b"]


async def test_a_task_that_waits_for_a_locked_file_can_be_cancelled(sqlite_url, tmp_path):
    store = Store(sqlite_url)
    await store.open()
    blocker = sqlite3.connect(tmp_path / "agentos.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")

    async def write():
        async with store.begin() as connection:
            await add(connection, "a")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await write()
    blocker.execute("ROLLBACK")
    blocker.close()
    await write()
    left = await packs(store)
    await store.close()

    assert left == ["a"]


PROCESS = """
    import asyncio, sys
    from agentos.store import Store, schema

    async def main():
        store = Store(sys.argv[1])
        await store.open()
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(25):
            async with store.begin() as connection:
                query = schema.audit_head.select().where(schema.audit_head.c.id == 1).with_for_update()
                seq = (await connection.execute(query)).one().seq
                await connection.execute(schema.audit_head.update().values(seq=seq + 1))
        await store.close()

    asyncio.run(main())
"""

KILLED = """
    import asyncio, sys
    from agentos.store import Store, schema

    async def main():
        store = Store(sys.argv[1])
        async with store.begin() as connection:
            await connection.execute(schema.flags.insert(), {"pack": "a", "enabled": True, "at": 1.0})
            print("ready", flush=True)
            sys.stdin.readline()

    asyncio.run(main())
"""


async def test_processes_do_not_lose_each_others_changes(store, store_url):
    async with store.begin() as connection:
        await connection.execute(schema.audit_head.insert(), HEAD)
    processes = [python(PROCESS, store_url) for _ in range(4)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        outcome(process)
    async with store.read() as connection:
        row = (await connection.execute(schema.audit_head.select())).one()

    assert row.seq == 100


async def test_what_a_killed_process_had_not_committed_is_not_there(store, store_url):
    process = python(KILLED, store_url)
    process.stdout.readline()
    process.kill()
    process.communicate()
    async with store.begin() as connection:
        await add(connection, "a")

    assert await packs(store) == ["a"]


# -- how the databases are set up ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("busy_timeout", 30000)],
)
async def test_a_file_is_set_up_to_lose_nothing(sqlite_url, name, value):
    store = Store(sqlite_url)
    async with store.begin() as connection:
        found = await pragma(connection, name)
    await store.close()

    assert found == value


async def test_a_file_and_those_beside_it_are_for_their_owner_alone(sqlite_url, tmp_path):
    store = Store(sqlite_url)
    await store.open()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir() if file.is_file()}
    await store.close()

    assert modes == {f"agentos.db{end}": 0o600 for end in ("", "-wal", "-shm", ".key")}


async def test_a_transaction_that_writes_is_read_committed_in_postgresql(postgres_url):
    store = Store(postgres_url)
    async with store.begin() as connection:
        level = (await connection.exec_driver_sql("SHOW transaction_isolation")).scalar()
    await store.close()

    assert level == "read committed"


# -- what the database has to say ------------------------------------------------------------------------------


def chain_of(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


async def test_a_database_error_is_a_store_error_with_the_drivers_words(any_store):
    with pytest.raises(StoreError, match=r"UNIQUE constraint failed: flags\.pack|duplicate key .* \"flags_pkey\""):
        async with any_store.begin() as connection:
            await add(connection, "a", "a")

    assert await packs(any_store) == []


async def test_a_store_error_carries_no_parameters(any_store):
    with pytest.raises(StoreError) as caught:
        async with any_store.begin() as connection:
            await add(connection, SECRET, SECRET)

    assert [repr(error) for error in chain_of(caught.value) if SECRET in repr(error) + str(error)] == []
    assert list(chain_of(caught.value)) == [caught.value]


async def test_a_database_error_can_be_handled_within_the_block(any_store):
    async with any_store.begin() as connection:
        await add(connection, "a")
        with pytest.raises(IntegrityError):
            async with connection.begin_nested():
                await add(connection, "a")

    assert await packs(any_store) == ["a"]


@pytest.mark.parametrize("value", [f"{SECRET}\udc80", 2**70, [SECRET]], ids=["surrogate", "huge", "list"])
async def test_a_value_that_can_not_be_stored_is_refused_without_showing_it(any_store, value):
    column = "seq" if isinstance(value, int) else "body"
    row = {"seq": 1, "prev": "", "hash": "", "body": "", column: value}
    with pytest.raises(StoreError) as caught:
        async with any_store.begin() as connection:
            await connection.execute(schema.audit.insert(), row)

    assert SECRET not in str(caught.value)
    assert list(chain_of(caught.value)) == [caught.value]


async def test_a_missing_parameter_is_refused_without_showing_the_others(any_store):
    statement = schema.flags.select().where(schema.flags.c.pack == func.coalesce(SECRET))
    with pytest.raises(StoreError) as caught:
        async with any_store.begin() as connection:
            await connection.execute(statement.with_only_columns(func.nothing_like_this(SECRET)))

    assert SECRET not in str(caught.value)


async def test_what_a_block_raises_itself_passes_unchanged(any_store):
    for error in (TimeoutError("mine"), OSError("mine"), ValueError("mine"), StoreError("mine")):
        with pytest.raises(type(error)) as caught:
            async with any_store.begin():
                raise error

        assert caught.value is error


async def test_parameters_are_not_logged(any_store, caplog):
    with caplog.at_level(logging.DEBUG):
        async with any_store.begin() as connection:
            await add(connection, "a")

    assert SECRET not in caplog.text
