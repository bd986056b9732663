"""What can go wrong says where, what, and what to do; and leaves nothing half done."""

import asyncio
import secrets
import socket
import sqlite3

import pg
import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, OperationalError

from agentos.errors import StoreError
from agentos.store import Store, failures, postgres, schema
from agentos.store.locations import IN_MEMORY, place_of


def flag(pack):
    return {"pack": pack, "enabled": True, "at": 1.0}


def inserting(*packs):
    def insert(connection):
        for pack in packs:
            connection.execute(schema.flags.insert(), flag(pack))

    return insert


def said_to(connection, *statements):
    for statement in statements:
        connection.exec_driver_sql(statement)


async def add(store, *packs):
    await store.write(inserting(*packs))


async def packs(store):
    return await store.read(lambda connection: sorted(connection.execute(select(schema.flags.c.pack)).scalars()))


async def refusal(store, use=Store.open):
    """Return what a store says when it can't be used."""
    with pytest.raises(StoreError) as caught:
        await use(store)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return str(caught.value)


# -- SQLite ----------------------------------------------------------------------------------------------------


async def test_a_file_that_is_no_database_is_named_and_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes, " * 1000)
    said = await refusal(Store(path))

    assert said == (
        f"the store at {path}: file is not a database. Give another path, or move that file away; it was not changed"
    )
    assert path.read_text() == "my notes, " * 1000
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


async def test_a_folder_given_as_path_is_named(tmp_path):
    assert await refusal(Store(tmp_path)) == (
        f"the store at {tmp_path} can't be opened: Is a directory. "
        "Give a path to a file, in a folder that this user may write"
    )


async def test_a_path_through_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "my.db"

    assert (await refusal(Store(path))).startswith(f"the store at {path} can't be opened: ")


async def test_an_empty_file_becomes_a_database(tmp_path, data_folder):
    (tmp_path / "my.db").write_bytes(b"")
    store = Store(tmp_path / "my.db")
    await add(store, "a")
    found = await packs(store)
    await store.close()

    assert found == ["a"]


async def test_a_damaged_file_asks_for_a_backup(tmp_path, data_folder):
    path = tmp_path / "my.db"
    store = Store(path)
    await add(store, *(f"{number:0200}" for number in range(200)))
    await store.close()
    text = bytearray(path.read_bytes())
    text[4096:] = b"\xff" * (len(text) - 4096)
    path.write_bytes(text)

    assert (await refusal(store, packs)).endswith("database disk image is malformed. Restore the file from a backup")


async def page_limit(store, pages):
    await store.write(lambda connection: said_to(connection, f"PRAGMA max_page_count={pages}"))


async def fill(store):
    await add(store, "small", *("x" * 5000 + str(number) for number in range(20)))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_full_disk_undoes_the_transaction_and_later_ones_work(kind, request):
    store = Store(None if kind == "memory" else request.getfixturevalue("sqlite_url"))
    await add(store, "before")
    await page_limit(store, 1)  # SQLite takes it for the present size
    said = await refusal(store, fill)
    left = await packs(store)
    await page_limit(store, 2**30)
    await fill(store)
    count = len(await packs(store))
    await store.close()

    assert said.endswith("is full. Free some space on that disk; nothing of this transaction was written")
    assert (left, count) == (["before"], 22)


async def test_after_a_full_disk_the_rest_of_the_block_is_not_committed_singly(sqlite_url):
    store = Store(sqlite_url)
    await store.open()
    await page_limit(store, 1)

    def go_on(connection):
        connection.execute(schema.flags.insert(), flag("a"))
        with pytest.raises(OperationalError):
            connection.execute(schema.flags.insert(), [flag("x" * 5000 + str(i)) for i in range(100)])
        with pytest.raises(sqlite3.OperationalError, match="rolled back after an error"):
            connection.execute(schema.flags.insert(), flag("b"))

    said = await refusal(store, lambda store: store.write(go_on))
    left = await packs(store)
    await store.close()

    assert said.endswith("the transaction was rolled back after an error in it")
    assert left == []


async def test_a_commit_that_fails_undoes_the_transaction(sqlite_url, tmp_path):
    store = Store(sqlite_url)
    tables = (
        "CREATE TABLE parents (id INTEGER PRIMARY KEY)",
        "CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)",
    )
    await store.write(lambda connection: said_to(connection, *tables))

    async def orphan(store):
        await store.write(lambda connection: said_to(connection, "INSERT INTO children VALUES (1)"))

    said = await refusal(store, orphan)
    await add(store, "a")
    left = await store.read(lambda connection: connection.exec_driver_sql("SELECT * FROM children").all())
    await store.close()

    assert "FOREIGN KEY constraint failed" in said
    assert left == []


@pytest.mark.parametrize(
    ("code", "way"),
    [
        (sqlite3.SQLITE_READONLY, "mounted read-only"),
        (sqlite3.SQLITE_READONLY | (8 << 8), "mounted read-only"),
        (sqlite3.SQLITE_CANTOPEN, "may write the file and its folder"),
        (sqlite3.SQLITE_PERM, "may write the file and its folder"),
        (sqlite3.SQLITE_IOERR | (10 << 8), "the system's log"),
        (sqlite3.SQLITE_BUSY | (2 << 8), "Another process keeps it locked"),
    ],
)
def test_each_trouble_with_a_disk_has_its_way_out(code, way):
    error = sqlite3.OperationalError("something")
    error.sqlite_errorcode = code

    assert way in str(failures.described(error, IN_MEMORY))


def test_an_error_without_words_is_named():
    assert str(failures.described(sqlite3.InterfaceError(), IN_MEMORY)) == "the store at memory: InterfaceError"


def test_an_error_that_is_no_drivers_is_named_without_its_words():
    error = DBAPIError(None, None, RuntimeError("with a secret in it"))

    assert str(failures.described(error.orig, IN_MEMORY)) == "the store at memory: RuntimeError"


def test_what_a_driver_says_is_bounded():
    assert len(str(failures.described(sqlite3.DatabaseError("x" * 10_000), IN_MEMORY))) < 600


# -- PostgreSQL ------------------------------------------------------------------------------------------------


def with_password(url, password):
    head, _, tail = url.rpartition("@")
    return f"{head.rpartition(':')[0]}:{password}@{tail}"


async def test_a_server_that_does_not_run_is_named(data_folder):
    with socket.socket() as taken:  # bound, not listening: refused
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        said = await refusal(Store(f"postgresql://ann:hunter2secret@127.0.0.1:{port}/notes"))

    assert said.startswith(f"the store at postgresql://127.0.0.1:{port}/notes: ")
    assert said.endswith("See that PostgreSQL runs there and takes connections, and that the address is right")
    assert "hunter2secret" not in said


async def test_a_wrong_password_is_not_shown(postgres_url):
    said = await refusal(Store(with_password(postgres_url, "hunter2secret")))

    assert said.endswith("Check the user and the password in the URL")
    assert "hunter2secret" not in said


async def test_a_database_that_does_not_exist_is_named(postgres_server, data_folder):
    said = await refusal(Store(postgres_server.url("nowhere")))

    assert 'database "nowhere" does not exist' in said
    assert "createdb" in said
    assert postgres_server.password not in said


async def test_an_option_that_the_driver_refuses_is_a_store_error(postgres_url):
    said = await refusal(Store(f"{postgres_url}?sslmode=nonsense"))

    assert said.startswith("the store at postgresql://")


async def test_a_user_without_rights_is_told_what_is_missing(postgres_url):
    store, name = Store(postgres_url), f"weak_{secrets.token_hex(4)}"
    statements = (
        f"CREATE ROLE {name} LOGIN PASSWORD 'hunter2secret'",
        f"DROP TABLE agentos_schema, {', '.join(schema.metadata.tables)}",
    )
    await store.write(lambda connection: said_to(connection, *statements))
    await store.close()
    said = await refusal(Store(with_password(postgres_url, "hunter2secret").replace("tester", name)))

    assert said.endswith("Grant that user the right to create and to write tables there")


async def test_an_error_that_was_passed_over_does_not_become_a_commit_of_nothing(postgres_url):
    store = Store(postgres_url)

    def pass_over(connection):
        connection.execute(schema.flags.insert(), flag("a"))
        with pytest.raises(DBAPIError):
            connection.execute(schema.flags.insert(), flag("a"))

    said = await refusal(store, lambda store: store.write(pass_over))
    left = await packs(store)
    await store.close()

    assert said.endswith("the transaction was rolled back after an error in it")
    assert left == []


async def test_a_statement_that_takes_too_long_is_given_up(postgres_url, monkeypatch):
    monkeypatch.setattr(postgres, "_STATEMENT_LIMIT", 0.2)
    store = Store(postgres_url)
    await store.open()

    async def wait(store):
        await store.write(lambda connection: said_to(connection, "SELECT pg_sleep(60)"))

    said = await refusal(store, wait)
    await add(store, "a")
    found = await packs(store)
    await store.close()

    assert "it did not answer in time" in said
    assert found == ["a"]


async def test_a_connection_that_breaks_within_a_transaction_is_a_store_error(postgres_url):
    store = Store(postgres_url)

    def cut(connection):
        connection.execute(schema.flags.insert(), flag("a"))
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    await refusal(store, lambda store: store.write(cut))
    await add(store, "b")
    found = await packs(store)
    await store.close()

    assert found == ["b"]


async def test_a_connection_that_broke_unnoticed_does_not_become_a_commit_of_nothing(postgres_url):
    store = Store(postgres_url)

    def pass_over(connection):
        connection.execute(schema.flags.insert(), flag("a"))
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    said = await refusal(store, lambda store: store.write(pass_over))
    found = await packs(store)
    await store.close()

    assert said.endswith("the transaction was rolled back after an error in it")
    assert found == []


async def test_going_on_after_a_connection_broke_is_a_store_error(postgres_url):
    store = Store(postgres_url)

    def go_on(connection):
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
        connection.execute(schema.flags.insert(), flag("a"))

    said = await refusal(store, lambda store: store.write(go_on))
    found = await packs(store)
    await store.close()

    assert said.endswith("the transaction was rolled back after an error in it")
    assert found == []


async def test_a_task_cancelled_while_the_server_refuses_it_is_cancelled(data_folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = place_of(f"postgresql://ann@127.0.0.1:{taken.getsockname()[1]}/notes")
        database = postgres.PostgresDatabase(place)
        reaching = asyncio.create_task(database.read(inserting()))
        await asyncio.sleep(0)
        reaching.cancel()
        results = await asyncio.gather(reaching, return_exceptions=True)
        await database.close()

    assert [type(result) for result in results] == [asyncio.CancelledError]


async def test_a_server_that_was_restarted_is_found_again(data_folder):
    try:
        starting = pg.start_postgres()
        server = starting.__enter__()
    except pg.PostgresMissingError as error:
        pytest.skip(str(error))
    try:
        store = Store(pg.fresh_database(server))
        await asyncio.gather(*(add(store, str(number)) for number in range(5)))
        server.restart()
        found = await packs(store)
        await store.close()
    finally:
        starting.__exit__(None, None, None)

    assert found == ["0", "1", "2", "3", "4"]
