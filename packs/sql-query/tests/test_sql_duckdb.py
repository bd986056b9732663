"""DuckDB: files of other kinds, and databases of its own."""

import asyncio

import duckdb
import pytest
from agentos_pack_sql_query import _child_duckdb, _files
from agentos_pack_sql_query._child import RefusedError
from agentos_pack_sql_query.engines import engine_for
from agentos_pack_sql_query.sources import source_of_files, source_of_url
from agentos_pack_sql_query.values import Options

SALES = "day,product,price,count\n2024-01-31,tea,2.5,4\n2024-02-01,milk,1.25,2\n2024-02-02,tea,2.5,1\n"


@pytest.fixture
def sales(tmp_path):
    (tmp_path / "sales.csv").write_text(SALES)
    return tmp_path / "sales.csv"


@pytest.fixture(autouse=True)
def _extensions_come_from_a_folder(tmp_path, monkeypatch):
    """Where statements run in this process, a guard that fails must not have DuckDB fetch anything."""
    for name in ("custom_extension_repository", "autoinstall_extension_repository"):
        monkeypatch.setitem(_child_duckdb._CONFIG, name, str(tmp_path / "no-extensions"))


def on_files(files, **options):
    made = Options(**options)
    return engine_for(source_of_files(files, made.max_file_megabytes), made)


async def rows(engine, sql, *parameters):
    return (await engine.query(sql, list(parameters), 100)).rows


async def test_a_csv_file_is_a_table(sales):
    engine = on_files({"sales": sales})

    sql = "SELECT product, sum(price * count) FROM sales GROUP BY product ORDER BY product"
    assert await rows(engine, sql) == [["milk", 2.5], ["tea", 12.5]]


async def test_parquet_and_json_files_are_too(tmp_path):
    duckdb.sql(f"COPY (SELECT 1 AS a, 'x' AS b) TO '{tmp_path / 'p.parquet'}'")
    (tmp_path / "j.ndjson").write_text('{"a": 1, "c": [1, {"d": 2}]}\n')
    engine = on_files({"p": tmp_path / "p.parquet", "j": tmp_path / "j.ndjson"})

    assert await rows(engine, "SELECT b, c[1] FROM p JOIN j USING (a)") == [["x", "1"]]


async def test_parameters_are_values(sales):
    sql = "SELECT count FROM sales WHERE product = ? AND price > ?"

    assert await rows(on_files({"sales": sales}), sql, "milk", 1) == [[2]]
    assert await rows(on_files({"sales": sales}), sql, "' OR 1=1 --", 1) == []


async def test_values_are_json(sales):
    sql = (
        "SELECT day, 1.10::DECIMAL(9,2), 12345678901234567890.5::DECIMAL(30,1), 'a'::BLOB, NULL, 1e308 * 10 FROM sales"
    )

    (first, *_) = await rows(on_files({"sales": sales}), sql)
    assert first == ["2024-01-31", 1.1, "12345678901234567890.5", {"bytes": 1, "base64": "YQ=="}, None, "inf"]


async def test_the_schema_lists_the_files(sales):
    found = await on_files({"sales": sales}).schema("", 10)

    assert (found.dialect, [table.name for table in found.tables]) == ("duckdb", ["sales"])
    columns = [(column.name, column.type) for column in found.tables[0].columns]
    assert columns == [("day", "DATE"), ("product", "VARCHAR"), ("price", "DOUBLE"), ("count", "BIGINT")]


async def test_a_database_file_is_read(tmp_path):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as db:
        db.execute('CREATE TABLE "we""ird"(x INTEGER)')
        db.execute('INSERT INTO "we""ird" VALUES (7)')
    engine = engine_for(source_of_url(f"duckdb:///{tmp_path / 'a.duckdb'}"), Options())
    (table,) = (await engine.schema("", 10)).tables

    assert await rows(engine, f"SELECT * FROM {table.quoted}") == [[7]]


EAGER = "from agentos_pack_sql_query import _child_duckdb as it; it._SHUT = (*{settings}, *it._SHUT); main()"


async def test_what_duckdb_prints_is_no_part_of_the_reply(sales, monkeypatch):
    settings = ("enable_progress_bar = true", "progress_bar_time = 1")
    monkeypatch.setattr(_files, "_RUN", _files._RUN.replace("main()", EAGER.format(settings=settings)))

    assert await rows(on_files({"sales": sales}), "SELECT count(sin(range)) FROM range(20000000)") == [[20_000_000]]


async def test_duckdb_shows_no_progress(sales):
    assert await rows(on_files({"sales": sales}), "SELECT current_setting('enable_progress_bar')") == [[False]]


@pytest.mark.parametrize("said", ["", "50% ====", "[]"], ids=["nothing", "words", "no-reply"])
async def test_a_reply_that_can_not_be_read_is_told(sales, monkeypatch, said):
    monkeypatch.setattr(_files, "_RUN", f"print({said!r})")

    with pytest.raises(ValueError, match=r"^sql: the process that asks the database gave no reply"):
        await rows(on_files({"sales": sales}), "SELECT 1")


REFUSED = [
    "DELETE FROM sales",
    "INSERT INTO sales VALUES (1, 2, 3, 4)",
    "CREATE TABLE t(x INT)",
    "CREATE MACRO f(x) AS x",
    "DROP TABLE sales",
    "COPY sales TO '{out}'",
    "EXPORT DATABASE '{out}'",
    "ATTACH '{out}' AS other",
    "ATTACH ':memory:' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '100GB'",
    "RESET memory_limit",
    "PRAGMA version",
    "CALL pragma_version()",
    "CHECKPOINT",
    "BEGIN",
    "EXPLAIN ANALYZE DELETE FROM sales",
    "PREPARE p AS DELETE FROM sales",
    "SELECT 1; DELETE FROM sales",
    "SELECT 1; SELECT 2",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('/tmp/*')",
    "SELECT * FROM read_csv('https://127.0.0.1/x.csv')",
    "SELECT * FROM 's3://bucket/x.parquet'",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM parquet_metadata('{secret}')",
    "SELECT * FROM query('COPY sales TO ''{out}''')",
    "SELECT getenv('HOME')",
    "SELECT * FROM request",
    "SELECT * FROM connection",
    "SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')",
    "SELECT * FROM query_table('{secret}')",
    "SELECT * FROM query_table(['{secret}'])",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{secret}'')'))",
    "SELECT * FROM read_duckdb('{secret}', table_name = 't')",
    "SELECT * FROM read_single_csv_file('{secret}')",
    "SELECT * FROM read_csv_auto(['{secret}'])",
    "SELECT * FROM read_ndjson_objects('{secret}')",
    "SELECT * FROM parquet_schema('{secret}')",
    "SELECT * FROM parquet_kv_metadata('{secret}')",
    "SELECT * FROM parquet_bloom_probe('{secret}', 'a', 1)",
    "SELECT * FROM summary((FROM '{secret}'))",
    "SELECT * FROM (SUMMARIZE '{secret}')",
    "SELECT * FROM (DESCRIBE '{secret}')",
    "SELECT price FROM sales UNION ALL SELECT content FROM read_text('{secret}')",
    "SELECT (SELECT content FROM read_text('{secret}'))",
    "SELECT * FROM sales WHERE EXISTS (FROM '{secret}')",
    "SELECT list_transform([1], x -> (SELECT content FROM read_text('{secret}')))",
    "VALUES ((SELECT content FROM read_text('{secret}')))",
    'TABLE "{secret}"',
    "FROM 'file://{secret}'",
    "FROM '/dev/stdin'",
    "FROM glob('/etc/*')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_blob('/proc/self/cmdline')",
    "SELECT * FROM read_text('/dev/fd/0')",
    "SELECT * FROM read_text('~/.bashrc')",
    "SELECT * FROM 'http://127.0.0.1:1/x.csv'",
    "SELECT * FROM enable_logging('QueryLog', storage = 'file', storage_path = '{out}')",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {'path': '{out}'})",
    "SELECT * FROM enable_logging(level = 'debug', storage = 'stdout')",
    "SELECT * FROM enable_profiling(save_location = '{out}')",
    "SELECT * FROM create_external_resource('x', 'y')",
    "SELECT * FROM register_external_resource('x')",
    "SELECT * FROM register_external_resource_type('x')",
    "SELECT * FROM pandas_scan(1::POINTER)",
    "SELECT * FROM arrow_scan(1::POINTER, 1::POINTER, 1::POINTER)",
    "SELECT * FROM python_map_function(1::POINTER)",
    "WITH x AS (DELETE FROM sales RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO sales SELECT * FROM sales RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE sales SET price = 0 RETURNING *) SELECT * FROM x",
    "WITH x AS (COPY sales TO '{out}') SELECT * FROM x",
    "SELECT * FROM (COPY sales TO '{out}')",
    "SELECT * INTO x FROM sales",
    "EXPLAIN ANALYZE COPY sales TO '{out}'",
    "SELECT /* ; */ 1; COPY sales TO '{out}'",
    "SELECT 1 ;; COPY sales TO '{out}' --",
    "/*/**/*/ COPY sales TO '{out}'",
    "COPY (SELECT 1) TO '{out}' (FORMAT csv)",
    "COPY FROM DATABASE memory TO other",
    "IMPORT DATABASE '{out}'",
    "ATTACH '{secret}' AS o (READ_ONLY)",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs FROM '{out}'",
    "FORCE INSTALL httpfs",
    "LOAD '{out}/x.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "CREATE SECRET (TYPE s3)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE OR REPLACE TABLE sales AS SELECT 1",
    "ALTER TABLE sales ADD COLUMN c INT",
    "COMMENT ON TABLE sales IS 'x'",
    "TRUNCATE sales",
    "MERGE INTO sales USING sales s ON true WHEN MATCHED THEN DELETE",
    "VACUUM",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET GLOBAL allowed_paths = ['/']",
    "SET VARIABLE x = 1",
    "RESET enable_external_access",
    "PRAGMA enable_profiling",
    "CALL enable_logging()",
    "EXECUTE p",
    "ROLLBACK",
    "COMMIT; DELETE FROM sales",
    "ROLLBACK; DELETE FROM sales",
    "START TRANSACTION",
    "",
    "nonsense",
]


async def all_at_once(make, statements):
    turn = asyncio.Semaphore(3)

    async def one(sql):
        async with turn:
            return await make().query(sql, [], 10)

    return await asyncio.gather(*(one(sql) for sql in statements), return_exceptions=True)


def here(sql, **source):
    """Ask as the process does that is started for each query, but in this one: starting it so often takes long."""
    limits = {"max_rows": 10, "max_bytes": 10_000, "seconds": 10, "memory_megabytes": 256}
    return _child_duckdb.query({"sql": sql, "parameters": [], "target": "", "files": {}, **limits, **source})


@pytest.mark.parametrize("sql", REFUSED)
def test_nothing_but_a_query_on_the_tables_runs(sales, tmp_path, sql):
    secret, out = tmp_path / "secret.csv", tmp_path / "out"
    secret.write_text("password\nhunter2\n")

    with pytest.raises((RefusedError, duckdb.Error, ValueError)) as caught:
        here(sql.replace("{out}", str(out)).replace("{secret}", str(secret)), files={"sales": ("read_csv", str(sales))})
    assert "hunter2" not in str(caught.value)
    assert not out.exists()
    assert sales.read_text() == SALES


def test_what_only_looks_like_writing_runs_and_writes_nothing(sales):
    """DuckDB's own switches that are let through act on this one process, which ends with its query."""
    harmless = ["checkpoint()", "truncate_duckdb_logs()"]

    assert [here(f"SELECT * FROM {one}", files={"sales": ("read_csv", str(sales))})["rows"] for one in harmless] == [
        [],
        [],
    ]


def test_the_home_of_who_runs_it_is_not_told():
    assert here("SELECT current_setting('secret_directory'), current_setting('home_directory')")["rows"] == [
        ["none", ""]
    ]


def test_there_are_no_secrets_to_be_listed():
    assert here("SELECT * FROM duckdb_secrets()")["rows"] == []


async def test_a_database_file_can_not_be_changed(tmp_path):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as db:
        db.execute("CREATE TABLE t AS SELECT 1 AS x")
    before = (tmp_path / "a.duckdb").read_bytes()
    made = engine_for(source_of_url(str(tmp_path / "a.duckdb")), Options())
    statements = ["INSERT INTO t VALUES (2)", "CREATE TABLE u(x INT)", "SELECT * FROM read_text('/etc/hostname')"]
    outcomes = await all_at_once(lambda: made, statements)

    assert [type(one) for one in outcomes] == [ValueError] * 3
    assert (tmp_path / "a.duckdb").read_bytes() == before


BOMBS = [
    "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t",
    "SELECT length(repeat('a', 4000000000))",
    "SELECT list(range) FROM range(1000000000)",
    "SELECT * FROM range(1000000000) ORDER BY random()",
    "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = 7",
]


async def test_bombs_end_by_time_or_memory(sales):
    outcomes = await all_at_once(lambda: on_files({"sales": sales}, timeout_seconds=1.0, memory_megabytes=128), BOMBS)

    expected = ("took longer", "memory", "Memory")
    told = [str(one) for one in outcomes]
    assert [words for words in told if not any(one in words for one in expected)] == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM sales", "this is a DELETE; only a single SELECT is allowed"),
        ("SELECT * FROM read_text('/etc/hostname')", "outside the tables"),
        ("SELECT nope FROM sales", "nope"),
    ],
)
async def test_a_refusal_says_what_it_was_about(sales, sql, words):
    with pytest.raises(ValueError, match=f"^sql: .*{words}"):
        await on_files({"sales": sales}).query(sql, [], 10)


async def test_a_file_that_can_not_be_read_is_told_without_its_path(tmp_path):
    (tmp_path / "p.parquet").write_text("no parquet")

    with pytest.raises(ValueError, match="the file of table 'p' can't be read") as caught:
        await on_files({"p": tmp_path / "p.parquet"}).query("SELECT 1", [], 1)
    assert str(tmp_path) not in str(caught.value)
