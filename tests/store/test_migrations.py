"""Databases move forward, one whole step at a time, or are left as they are."""

import asyncio
import logging
import sqlite3

import pytest
from sqlalchemy import inspect, text
from store_fixtures import outcome, python

from agentos.errors import StoreError
from agentos.store import Store, schema
from agentos.store.database import database_at
from agentos.store.locations import place_of
from agentos.store.migrations import STEPS, check, migrate

FIRST = ("CREATE TABLE things (name TEXT NOT NULL)",)


def second(connection):
    connection.execute(text("ALTER TABLE things ADD COLUMN size INTEGER"))
    connection.execute(text("UPDATE things SET size = 7"))


def failing(connection):
    second(connection)
    raise LookupError("a step that fails")


@pytest.fixture
async def database(store_url):
    """Return an empty database of each kind in turn, with nothing of ours in it."""
    database = database_at(place_of(store_url))
    yield database
    await database.close()


async def rows(database, sql):
    return await database.read(lambda connection: [tuple(row) for row in connection.execute(text(sql))])


async def change(database, *statements):
    def carry_out(connection):
        for statement in statements:
            connection.execute(text(statement))

    await database.write(carry_out)


async def test_a_new_database_gets_the_newest_version(database):
    await migrate(database, (FIRST, second))

    assert await rows(database, "SELECT version FROM agentos_schema") == [(2,)]


async def test_an_old_database_keeps_its_rows(database):
    await migrate(database, (FIRST,))
    await change(database, "INSERT INTO things VALUES ('old')")
    await migrate(database, (FIRST, second))

    assert await rows(database, "SELECT * FROM things") == [("old", 7)]


async def test_migrating_again_changes_nothing(database):
    await migrate(database, (FIRST, second))
    await change(database, "INSERT INTO things VALUES ('new', 1)")
    await migrate(database, (FIRST, second))

    assert await rows(database, "SELECT * FROM things") == [("new", 1)]


async def test_a_step_that_fails_leaves_version_and_rows_as_they_were(database):
    await migrate(database, (FIRST,))
    await change(database, "INSERT INTO things VALUES ('old')")
    with pytest.raises(LookupError):
        await migrate(database, (FIRST, failing))

    assert await rows(database, "SELECT * FROM things") == [("old",)]
    assert await rows(database, "SELECT version FROM agentos_schema") == [(1,)]


async def test_a_step_before_one_that_fails_is_kept(database):
    with pytest.raises(LookupError):
        await migrate(database, (FIRST, failing))

    assert await rows(database, "SELECT version FROM agentos_schema") == [(1,)]


async def test_after_a_step_failed_it_can_be_taken_again(database):
    with pytest.raises(LookupError):
        await migrate(database, (FIRST, failing))
    await migrate(database, (FIRST, second))

    assert await rows(database, "SELECT version FROM agentos_schema") == [(2,)]


async def test_statements_that_fail_are_a_store_error(database):
    with pytest.raises(StoreError, match="nonsense"):
        await migrate(database, (("CREATE TABLE things (name TEXT)", "nonsense"),))

    assert await check(database) == 0


async def test_a_newer_database_is_refused_with_both_versions_and_the_way_out(database):
    await migrate(database, (FIRST, second))

    with pytest.raises(StoreError, match=r"is of version 2, .* up to 1\. Upgrade agentos, or give it another"):
        await migrate(database, (FIRST,))


async def test_a_store_refuses_a_newer_database(store_url, database):
    await migrate(database, (*STEPS, ("CREATE TABLE things (name TEXT)",)))

    with pytest.raises(StoreError, match=f"is of version {len(STEPS) + 1}"):
        await Store(store_url).open()


async def test_an_empty_version_table_alone_is_a_new_database(database):
    await change(database, "CREATE TABLE agentos_schema (version INTEGER NOT NULL)")
    await migrate(database, (FIRST,))

    assert await rows(database, "SELECT version FROM agentos_schema") == [(1,)]


async def test_a_database_of_somebody_else_is_refused(database):
    await change(database, *(f"CREATE TABLE {name} (x INTEGER)" for name in ("their1", "their2", "their3", "their4")))

    with pytest.raises(
        StoreError, match=r"belongs to something else: it has tables \(their1, their2, their3, \.\.\.\)"
    ):
        await migrate(database)


async def test_a_store_leaves_a_database_of_somebody_else_as_it_is(tmp_path):
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as theirs:
        theirs.execute("CREATE TABLE theirs (x INTEGER)")
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="belongs to something else"):
        await Store(path).open()

    assert (path.read_bytes(), [file.name for file in tmp_path.iterdir()]) == (before, ["theirs.db"])


async def test_our_tables_without_a_version_are_refused(database):
    await migrate(database)
    await change(database, "DELETE FROM agentos_schema")

    with pytest.raises(StoreError, match="has our tables but not their version"):
        await check(database)


@pytest.mark.parametrize("versions", [(0,), (-1,), (1, 1)])
async def test_a_version_that_can_not_be_is_refused(database, versions):
    await migrate(database)
    await change(database, "DELETE FROM agentos_schema")
    await change(database, *(f"INSERT INTO agentos_schema VALUES ({version})" for version in versions))

    with pytest.raises(StoreError, match="no usable version"):
        await check(database)


async def test_a_step_is_logged(database, caplog):
    with caplog.at_level(logging.INFO, "agentos.store"):
        await migrate(database, (FIRST,))

    assert caplog.messages == [f"the store at {database.place.shown} is now of version 1"]


async def test_hosts_that_migrate_at_once_do_it_once(store_url):
    databases = [database_at(place_of(store_url)) for _ in range(4)]
    await asyncio.gather(*(migrate(database, (FIRST, second)) for database in databases))
    found = await rows(databases[0], "SELECT version FROM agentos_schema")
    for database in databases:
        await database.close()

    assert found == [(2,)]


def test_processes_that_start_at_once_on_a_new_database_make_it_once(store_url):
    script = """
        import asyncio, sys
        from agentos.store import Store, schema

        async def main():
            print("ready", flush=True)
            sys.stdin.readline()
            store = Store(sys.argv[1])
            values = {"pack": store.instance, "enabled": True, "at": 1.0}
            await store.write(lambda connection: connection.execute(schema.flags.insert(), values).rowcount)
            version = await store.read(lambda connection: connection.execute(schema.version.select()).all())
            print(version, store.key_id)
            await store.close()

        asyncio.run(main())
    """
    processes = [python(script, store_url) for _ in range(5)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = {outcome(process) for process in processes}

    assert len(said) == 1
    assert said.pop().startswith(f"[({len(STEPS)},)]")


# -- the steps and the tables of schema.py agree ---------------------------------------------------------------


def shape(connection):
    """Return everything about the tables that counts."""
    found = inspect(connection)
    return {
        table: {
            "columns": [
                (column["name"], str(column["type"]), column["nullable"]) for column in found.get_columns(table)
            ],
            "key": found.get_pk_constraint(table)["constrained_columns"],
            "unique": sorted(tuple(one["column_names"]) for one in found.get_unique_constraints(table)),
            "indexes": sorted((one["name"], tuple(one["column_names"])) for one in found.get_indexes(table)),
        }
        for table in sorted(found.get_table_names())
    }


async def shape_of(database):
    return await database.read(shape)


async def test_the_steps_lead_to_the_tables_that_the_code_uses(database):
    await migrate(database)
    migrated = await shape_of(database)
    await database.write(schema.metadata.drop_all)
    await database.write(schema.metadata.create_all)

    assert await shape_of(database) == migrated


async def test_the_tables_have_the_names_that_are_documented(store):
    await store.open()
    names = await store.read(lambda connection: set(inspect(connection).get_table_names()))

    assert names == {
        *("agentos_schema", "proposals", "grants", "idempotency", "pins", "flags", "audit", "audit_head"),
        *("declarations", "turns", "channel_inbox", "channel_outbox", "bus_messages"),
        *("workflow_runs", "workflow_waits", "workflow_signals", "workflow_hosts", "workflow_schedules"),
    }


async def test_the_audit_has_no_head_before_its_first_record(store):
    assert await store.read(lambda connection: connection.execute(schema.audit_head.select()).all()) == []


async def test_a_number_and_a_time_come_back_as_they_were(store):
    values = {"pack": "p", "enabled": False, "at": 1795000000.123456, "by": "ann"}

    def write(connection):
        connection.execute(schema.flags.insert(), values)
        connection.execute(schema.audit.insert(), {"seq": 2**62, "prev": "a", "hash": "b", "body": "c"})

    def look(connection):
        flag = connection.execute(schema.flags.select()).mappings().one()
        return dict(flag), connection.execute(schema.audit.select()).one()

    await store.write(write)
    flag, record = await store.read(look)

    assert (flag, record.seq) == (values, 2**62)
