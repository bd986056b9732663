"""PostgreSQL: a real server, read by somebody who may only read."""

import asyncio

import asyncpg
import pg
import pytest
from agentos_pack_sql_query.engines import engine_for
from agentos_pack_sql_query.sources import source_of_url
from agentos_pack_sql_query.values import Options

SETUP = """
CREATE TABLE customers(id serial PRIMARY KEY, name text NOT NULL, born date, wealth numeric, notes jsonb, photo bytea);
CREATE TABLE orders(id int PRIMARY KEY, customer int REFERENCES customers(id), total double precision);
CREATE VIEW spending AS SELECT customer, sum(total) AS total FROM orders GROUP BY customer;
CREATE TABLE hidden(x int);
CREATE SCHEMA other;
CREATE TABLE other."we""ird"("a b" int);
INSERT INTO customers(name, born, wealth, notes, photo) VALUES
  ('Ada', '1815-12-10', 12345678901234567890.5, '{"likes": ["tea"]}', '\\x00ff'), ('Bob', NULL, 1.5, NULL, NULL);
INSERT INTO orders VALUES (1, 1, 9.5), (2, 1, 0.5), (3, 2, 7);
CREATE ROLE reader LOGIN PASSWORD 'reading';
CREATE ROLE writer LOGIN PASSWORD 'reading';
CREATE ROLE filer LOGIN PASSWORD 'reading';
GRANT pg_read_server_files TO filer;
CREATE ROLE signaller LOGIN PASSWORD 'reading';
GRANT pg_signal_backend TO signaller;
CREATE ROLE copier LOGIN REPLICATION PASSWORD 'reading';
CREATE ROLE chief SUPERUSER;
CREATE ROLE vassal LOGIN NOINHERIT PASSWORD 'reading';
GRANT chief TO vassal;
CREATE FUNCTION delete_orders() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN DELETE FROM orders; RETURN 1; END $$;
CREATE FUNCTION delete_orders_read_write() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM orders; RETURN 1; END $$;
CREATE FUNCTION delete_orders_committed() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
  $$ BEGIN COMMIT; DELETE FROM orders; RETURN 1; END $$;
GRANT USAGE ON SCHEMA public, other TO reader, writer;
GRANT SELECT ON customers, orders, spending, other."we""ird" TO reader;
GRANT ALL ON ALL TABLES IN SCHEMA public TO writer;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO writer;
"""


@pytest.fixture(scope="module")
def server():
    try:
        with pg.start_postgres() as running:
            yield running
    except pg.PostgresMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def database(server):
    """Return the URL of the owner of a small database."""
    url = pg.fresh_database(server)

    async def set_up():
        connection = await asyncpg.connect(url)
        await connection.execute(SETUP)
        await connection.close()

    asyncio.run(set_up())
    return url


def as_user(url, name, password="reading"):
    return url.replace(url.split("://")[1].split("@")[0], f"{name}:{password}")


@pytest.fixture
def reader(database):
    return engine_for(source_of_url(as_user(database, "reader")), Options(timeout_seconds=5))


@pytest.fixture
def writer(database):
    """Return an engine whose user could write, if it were let."""
    return engine_for(source_of_url(as_user(database, "writer")), Options(timeout_seconds=5))


async def rows(engine, sql, *parameters, limit=100):
    return (await engine.query(sql, list(parameters), limit)).rows


async def test_queries_are_answered(reader):
    sql = "SELECT name, born, wealth, notes, photo FROM customers ORDER BY id"

    assert await rows(reader, sql) == [
        ["Ada", "1815-12-10", "12345678901234567890.5", {"likes": ["tea"]}, "\\x00ff"],
        ["Bob", None, 1.5, None, None],
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM spending ORDER BY 1;", [[1, 10.0], [2, 7.0]]),
        ("WITH x AS (SELECT 1 AS a) SELECT a, a FROM x -- end", [[1, 1]]),
        ("VALUES (1), (2)", [[1], [2]]),
        ("SELECT 'a;b' AS x ; ;\n", [["a;b"]]),
        ("TABLE spending", [[2, 7.0], [1, 10.0]]),
    ],
)
async def test_all_forms_of_a_query_are(reader, sql, expected):
    assert sorted(await rows(reader, sql)) == sorted(expected)


async def test_parameters_are_values(reader):
    sql = "SELECT name FROM customers WHERE name = $1 AND id >= $2"

    assert await rows(reader, sql, "Ada", 1) == [["Ada"]]
    assert await rows(reader, sql, "x' OR 'a'='a", 1) == []


async def test_parameters_that_do_not_fit_are_told(reader):
    with pytest.raises(ValueError, match=r"^(parameters|sql): "):
        await reader.query("SELECT name FROM customers WHERE id = $1", ["one"], 10)
    with pytest.raises(ValueError, match=r"^parameters: "):
        await reader.query("SELECT 1", [1], 10)


async def test_columns_have_names_even_without_rows(reader):
    answer = await reader.query("SELECT id, id, name AS n FROM customers WHERE false", [], 10)

    assert (answer.columns, answer.rows, answer.dialect) == (["id", "id", "n"], [], "postgresql")


async def test_rows_are_limited_and_say_so(reader):
    answer = await reader.query("SELECT generate_series(1, 100000)", [], 3)

    assert (answer.rows, answer.truncated) == ([[1], [2], [3]], True)


async def test_a_row_that_is_too_large_is_not_sent(reader):
    with pytest.raises(ValueError, match=r"^sql: a row has 5,000,\d+ bytes; at most 200,000"):
        await reader.query("SELECT repeat('a', 5000000) AS a", [], 10)


async def test_what_takes_too_long_is_ended_by_the_server(database):
    engine = engine_for(source_of_url(as_user(database, "reader")), Options(timeout_seconds=0.2))

    with pytest.raises(ValueError, match=r"^sql: it took longer than 0\.2 s"):
        await engine.query("SELECT pg_sleep(60)", [], 1)


async def test_a_query_can_not_switch_its_time_limit_off(database):
    """It is fetched in parts, and the limit of one part holds no longer for the next."""
    engine = engine_for(source_of_url(as_user(database, "reader")), Options(timeout_seconds=0.2))
    later = "CASE WHEN i <= 100 THEN set_config('statement_timeout', '0', false) ELSE pg_sleep(60)::text END"

    with pytest.raises(ValueError, match=r"^sql: it took longer than 0\.2 s"):
        await engine.query(f"SELECT {later} FROM generate_series(1, 200) AS i", [], 1_000)


REFUSED = [
    "DELETE FROM orders",
    "DELETE FROM orders RETURNING *",
    "INSERT INTO orders VALUES (9, 1, 1)",
    "UPDATE orders SET total = 0",
    "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone",
    "SELECT * INTO copied FROM orders",
    "CREATE TABLE t(x int)",
    "DROP TABLE orders",
    "TRUNCATE orders",
    "COPY orders TO '/tmp/agentos-out'",
    "COPY orders TO PROGRAM 'cat'",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "CALL something()",
    "SET transaction_read_only = off",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "BEGIN",
    "COMMIT",
    "COMMIT; DELETE FROM orders",
    "SELECT 1; DELETE FROM orders",
    "SELECT 1) AS q; DELETE FROM orders; SELECT * FROM (SELECT 1",
    "SELECT 1) AS q LIMIT 1) AS s; DELETE FROM orders --",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "LOCK TABLE orders",
    "SELECT * FROM orders FOR UPDATE",
    "SELECT nextval('customers_id_seq')",
    "SELECT setval('customers_id_seq', 1)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_export(1, '/tmp/agentos-out')",
    "SELECT lo_import('/etc/passwd')",
    "LISTEN x",
    "VACUUM",
    "",
    "-- nothing",
    "nonsense",
]

REFUSED_TOO = [
    "SELECT query_to_xml('DELETE FROM orders', true, true, '')",
    "SELECT set_config('transaction_read_only', 'off', true), query_to_xml('DELETE FROM orders', true, true, '')",
    "SELECT set_config('default_transaction_read_only', 'off', true), query_to_xml('TRUNCATE orders', true, true, '')",
    "SELECT set_config('role', 'tester', false)",
    "SELECT set_config('session_authorization', 'tester', false)",
    "SELECT delete_orders()",
    "SELECT delete_orders_read_write()",
    "SELECT delete_orders_committed()",
    "SELECT cursor_to_xml('x', 1, true, true, '')",
    "SELECT lo_put(1, 0, 'x')",
    "SELECT pg_read_binary_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT pg_ls_logdir()",
    "SELECT pg_stat_file('/etc/passwd')",
    "SELECT pg_current_logfile()",
    "SELECT pg_reload_conf()",
    "SELECT pg_rotate_logfile()",
    "SELECT pg_switch_wal()",
    "SELECT pg_create_restore_point('x')",
    "SELECT pg_promote()",
    "SELECT pg_stat_reset()",
    "SELECT pg_replication_origin_create('x')",
    "SELECT pg_create_physical_replication_slot('x')",
    "SELECT pg_drop_replication_slot('x')",
    "SELECT * FROM pg_file_settings",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM pg_authid",
    "SELECT current_setting('data_directory')",
    "SELECT dblink('host=127.0.0.1', 'SELECT 1')",
    "SELECT dblink_exec('host=127.0.0.1', 'DELETE FROM orders')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tester'",
    "WITH x AS (INSERT INTO orders VALUES (9, 1, 9) RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE orders SET total = 0 RETURNING *) SELECT * FROM x",
    "SELECT * FROM (DELETE FROM orders RETURNING *) AS x",
    "SELECT 1 UNION DELETE FROM orders",
    "SELECT 1 INTO TEMP t",
    "SELECT * FROM orders FOR KEY SHARE",
    "EXPLAIN (ANALYZE) SELECT 1",
    "SET ROLE tester",
    "SET SESSION AUTHORIZATION tester",
    "RESET ALL",
    "DISCARD ALL",
    "COPY orders TO STDOUT",
    "COPY orders FROM PROGRAM 'id'",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "CREATE EXTENSION dblink",
    "CREATE TEMP TABLE t(x int)",
    "LOAD 'x'",
    "PREPARE p AS DELETE FROM orders",
    "DECLARE c CURSOR FOR SELECT 1",
    "CHECKPOINT",
    "GRANT ALL ON orders TO public",
    "ALTER ROLE writer SUPERUSER",
    "ALTER SYSTEM SET log_min_messages = 'debug5'",
    "NOTIFY a",
    "SAVEPOINT a",
    "ROLLBACK; DELETE FROM orders",
    "SELECT 1; COMMIT; DELETE FROM orders",
    "SELECT 1 /*; */; DELETE FROM orders",
    "SELECT $$)$$ ) AS q) AS s; DELETE FROM orders; --",
    "SELECT U&'d\\0061t'; DELETE FROM orders",
    "SELECT '\\'; DELETE FROM orders; --'; DELETE FROM orders",
    "TABLE orders; DELETE FROM orders",
    "VALUES (1); DELETE FROM orders",
]


@pytest.mark.parametrize("statements", [REFUSED, pytest.param(REFUSED_TOO, marks=pytest.mark.proof)])
async def test_nothing_changes_even_for_somebody_who_may_write(writer, statements):
    turn = asyncio.Semaphore(4)

    async def one(sql):
        async with turn:
            return await writer.query(sql, [], 10)

    outcomes = await asyncio.gather(*(one(sql) for sql in statements), return_exceptions=True)

    assert [sql for sql, one in zip(statements, outcomes, strict=True) if not isinstance(one, ValueError)] == []
    assert await rows(writer, "SELECT count(*), sum(total) FROM orders") == [[3, 17.0]]


async def test_what_a_query_did_on_the_side_is_taken_back(writer, database):
    await rows(writer, "SELECT pg_notify('c', 'x'), set_config('statement_timeout', '0', false)")

    assert await rows(writer, "SELECT current_setting('statement_timeout')") == [["5s"]]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM orders", "this is a DELETE; only a single SELECT is allowed"),
        ("WITH x AS (DELETE FROM orders RETURNING 1) SELECT * FROM x", "WITH clause containing a data-modifying"),
        ("SELECT nope FROM orders", 'column "nope" does not exist'),
        ("SELECT * FROM hidden", "permission denied for table hidden"),
    ],
)
async def test_a_refusal_says_what_it_was_about(reader, sql, words):
    with pytest.raises(ValueError, match=f"^sql: .*{words}"):
        await reader.query(sql, [], 10)


async def test_the_schema_lists_what_may_be_read(reader):
    found = await reader.schema("", 100)

    assert (found.dialect, found.placeholder) == ("postgresql", "$1")
    names = [(table.name, table.quoted, table.kind) for table in found.tables]
    assert names == [
        ('other.we"ird', '"other"."we""ird"', "table"),
        ("customers", '"customers"', "table"),
        ("orders", '"orders"', "table"),
        ("spending", '"spending"', "view"),
    ]
    orders = found.tables[2]
    assert [(one.name, one.type, one.nullable, one.primary_key) for one in orders.columns][:2] == [
        ("id", "integer", False, True),
        ("customer", "integer", True, False),
    ]
    assert [(one.column, one.table, one.to) for one in orders.references] == [("customer", "customers", "id")]


async def test_the_schema_can_be_narrowed_and_cut(reader):
    assert [table.name for table in (await reader.schema("ORD", 10)).tables] == ["orders"]
    assert (await reader.schema("", 2)).truncated


async def test_a_user_who_may_do_anything_is_refused(database):
    engine = engine_for(source_of_url(database), Options())

    with pytest.raises(
        ValueError, match=r"^db\.url: its user may do anything on the server; give one who may only read"
    ):
        await engine.query("SELECT 1", [], 1)


@pytest.mark.parametrize("user", ["filer", "signaller", "copier", "vassal"])
async def test_a_user_who_may_do_more_than_read_tables_by_its_roles_is_refused(database, user):
    """`set_config('role', ...)` takes on a role within a SELECT, and `query_to_xml` then acts as that role."""
    engine = engine_for(source_of_url(as_user(database, user)), Options())

    with pytest.raises(ValueError, match="may do anything"):
        await engine.query("SELECT 1", [], 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda url: as_user(url, "reader", "wrong-secret"), "the password is wrong"),
        (lambda url: as_user(url, "nobody-there"), "the password is wrong"),
        (lambda url: as_user(url, "reader").rpartition("/")[0] + "/absent", "there is no such database"),
        (lambda _: "postgresql://reader:reading@127.0.0.1:1/x", "nobody answers"),
        (lambda _: "postgresql://reader:reading@[::bad/x", "can't be reached"),
    ],
)
async def test_a_connection_that_fails_says_why_and_tells_no_secret(database, change, reason):
    url = change(database)

    with pytest.raises(ValueError, match=f"^db.url: .*{reason}") as caught:
        await engine_for(source_of_url(url), Options()).query("SELECT 1", [], 1)
    assert not {"reading", "wrong-secret", "127.0.0.1"} & set(str(caught.value).split())


async def test_connections_do_not_stay(reader, database):
    await rows(reader, "SELECT 1")
    connection = await asyncpg.connect(database)
    try:
        count = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'agentos sql-query' AND usename = 'reader'"
        )
        async with asyncio.timeout(30):
            while await connection.fetchval(count):
                pass
    finally:
        await connection.close()


async def test_a_cancelled_query_ends(reader):
    task = asyncio.create_task(reader.query("SELECT pg_sleep(60)", [], 1))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
