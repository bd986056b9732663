"""A SQLite file: what a query may do, and what none can."""

import asyncio
import contextlib
import hashlib
import os
import sqlite3

import pytest
from agentos_pack_sql_query import _child_sqlite
from agentos_pack_sql_query.engines import engine_for
from agentos_pack_sql_query.sources import source_of_url
from agentos_pack_sql_query.values import Options


def engine(path, **options):
    return engine_for(source_of_url(str(path)), Options(**options))


async def rows(path, sql, *parameters, limit=100, **options):
    return (await engine(path, **options).query(sql, list(parameters), limit)).rows


async def refusal(path, sql, **options):
    with pytest.raises(ValueError, match=r"^sql: ") as caught:
        await engine(path, **options).query(sql, [], 100)
    return str(caught.value)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# -- what it answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT name FROM customers ORDER BY id", [["Ada"], ["Bob"]]),
        ("SELECT * FROM spending ORDER BY name", [["Ada", 10.0], ["Bob", 7.0]]),
        ("SELECT count(*) FROM orders", [[3]]),
        ("SELECT 1, 2.5, 'x', NULL, 9007199254740993", [[1, 2.5, "x", None, "9007199254740993"]]),
        ("WITH big AS (SELECT * FROM orders WHERE total > 5) SELECT count(*) FROM big", [[2]]),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3) SELECT i FROM n", [[1], [2], [3]]),
        ("SELECT value FROM json_each('[1, \"a\"]')", [[1], ["a"]]),
        ("SELECT json_extract('{\"a\": [1, 2]}', '$.a[1]')", [[2]]),
        ("SELECT name, rank() OVER (ORDER BY name DESC) FROM customers ORDER BY id", [["Ada", 2], ["Bob", 1]]),
        (
            "SELECT upper(name), length(name), date('2024-02-28', '+2 days') FROM customers LIMIT 1",
            [["ADA", 3, "2024-03-01"]],
        ),
        ("VALUES (1), (2)", [[1], [2]]),
        ("SELECT group_concat(name, ', ') FROM (SELECT name FROM customers ORDER BY name)", [["Ada, Bob"]]),
        ("SELECT name FROM customers WHERE name LIKE 'a%' -- a comment\n;", [["Ada"]]),
        ("SELECT 1 WHERE 'x; DROP TABLE customers' <> ''", [[1]]),
        ("SELECT (SELECT max(total) FROM orders), sqrt(16)", [[9.5, 4.0]]),
        ("SELECT * FROM (SELECT 5 AS five)", [[5]]),
        ("SELECT count(*) FROM (SELECT 5)", [[1]]),
    ],
)
async def test_queries_are_answered(shop, sql, expected):
    assert await rows(shop, sql) == expected


async def test_parameters_are_values_and_never_sql(shop):
    assert await rows(shop, "SELECT name FROM customers WHERE name = ?", "x' OR '1'='1") == []
    assert await rows(shop, "SELECT ?, ?, ?, ?", "a", 1, 2.5, None) == [["a", 1, 2.5, None]]


async def test_columns_have_names_even_twice(shop):
    answer = await engine(shop).query("SELECT id, id, total AS t FROM orders WHERE 0", [], 10)

    assert (answer.columns, answer.rows, answer.row_count) == (["id", "id", "t"], [], 0)


async def test_bytes_come_as_base64_or_as_their_number(shop):
    assert await rows(shop, "SELECT photo, zeroblob(5000) FROM customers WHERE id = 1") == [
        [{"bytes": 2, "base64": "AP8="}, {"bytes": 5000, "base64": None}]
    ]


async def test_text_that_is_no_utf8_is_shown(shop):
    assert await rows(shop, "SELECT CAST(x'61ff62' AS TEXT)") == [["a\ufffdb"]]


async def test_infinity_is_text(shop):
    assert await rows(shop, "SELECT 9e999, -9e999") == [["inf", "-inf"]]


@pytest.mark.parametrize(("limit", "count", "truncated"), [(2, 2, True), (3, 3, False), (100, 3, False)])
async def test_rows_are_limited_and_say_so(shop, limit, count, truncated):
    answer = await engine(shop).query("SELECT * FROM orders", [], limit)

    assert (answer.row_count, answer.truncated) == (count, truncated)


async def test_bytes_of_the_answer_are_limited_and_say_so(shop):
    answer = await engine(shop, max_bytes=1_000).query(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50) SELECT hex(zeroblob(50)) FROM n",
        [],
        100,
    )

    assert (answer.row_count, answer.truncated) == (9, True)


async def test_a_long_text_is_cut_and_says_so(shop):
    answer = await engine(shop).query("SELECT hex(zeroblob(50000))", [], 1)

    assert answer.truncated
    assert answer.rows[0][0].endswith("0... [100,000 characters]")


async def test_full_text_indexes_can_be_searched(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.executescript("CREATE VIRTUAL TABLE f USING fts5(t); INSERT INTO f VALUES ('hello world'), ('other')")

    assert await rows(
        tmp_path / "a.db", "SELECT t, snippet(f, 0, '[', ']', '', 5) FROM f WHERE f MATCH ?", "world"
    ) == [["hello world", "hello [world]"]]


async def test_a_database_that_somebody_writes_can_be_read(shop):
    with contextlib.closing(sqlite3.connect(shop, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM orders")

        assert await rows(shop, "SELECT count(*) FROM orders") == [[3]]


def put_in_wal_mode(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")


async def test_reading_a_database_in_wal_mode_leaves_nothing_beside_it(shop):
    put_in_wal_mode(shop)
    before = digest(shop)

    assert await rows(shop, "SELECT count(*) FROM orders") == [[3]]
    assert len((await engine(shop).schema("", 100)).tables) == 3
    assert [file.name for file in shop.parent.iterdir()] == ["shop.db"]
    assert digest(shop) == before


async def test_a_file_that_has_gone_is_told_without_its_path(shop):
    asked = engine(shop)
    shop.unlink()

    with pytest.raises(ValueError, match="unable to open database file") as caught:
        await asked.query("SELECT 1", [], 1)
    assert "shop" not in str(caught.value)


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_a_database_that_changes_while_it_is_read_alone_is_read_again(shop, ends):
    put_in_wal_mode(shop)
    modes = []

    def read(request, mode):
        modes.append(mode)
        if len(modes) == 1:
            with contextlib.closing(sqlite3.connect(request["target"], isolation_level=None)) as db:
                db.execute("DELETE FROM orders")
            if ends == "raises":
                raise sqlite3.DatabaseError("database disk image is malformed")
        return {"read": len(modes)}

    assert _child_sqlite._leaving_nothing(read, {"target": str(shop)}) == {"read": 2}
    assert modes == ["mode=ro&immutable=1", "mode=ro"]


# -- what it refuses ---------------------------------------------------------------------------------------------

WRITES = [
    "DELETE FROM customers",
    "DELETE FROM customers RETURNING *",
    "INSERT INTO customers VALUES (3, 'Eve', NULL)",
    "REPLACE INTO customers VALUES (1, 'Eve', NULL)",
    "UPDATE customers SET name = 'Eve'",
    "UPDATE customers SET name = 'Eve' RETURNING name",
    "WITH x AS (SELECT 1) DELETE FROM customers",
    "CREATE TABLE t(x)",
    "CREATE TEMP TABLE t(x)",
    "CREATE TABLE t AS SELECT * FROM customers",
    "CREATE VIEW w AS SELECT 1",
    "CREATE INDEX i ON customers(name)",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
    "CREATE TRIGGER g AFTER INSERT ON customers BEGIN SELECT 1; END",
    "DROP TABLE customers",
    "ALTER TABLE customers RENAME TO c",
    "UPDATE sqlite_master SET sql = 'x'",
    "INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)",
    "DELETE FROM sqlite_sequence",
    "ANALYZE",
    "REINDEX",
    "VACUUM",
    "VACUUM INTO '{out}'",
    "ATTACH '{out}' AS other",
    "ATTACH ':memory:' AS other",
    "ATTACH 'file:{out}?mode=rwc' AS other",
    "DETACH main",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT s",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA user_version",
    "PRAGMA temp_store_directory = '/tmp'",
    "SELECT 1; SELECT 2",
    "SELECT 1; DELETE FROM customers",
    "SELECT 1;;SELECT 2",
    "; DELETE FROM customers",
    "/* SELECT */ DELETE FROM customers",
    "EXPLAIN DELETE FROM customers",
    "EXPLAIN QUERY PLAN DELETE FROM customers",
    "SELECT load_extension('{out}')",
    "SELECT load_extension('{out}', 'entry')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('{out}', 'x')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT fts5(NULL)",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('customers')",
    "SELECT * FROM pragma_query_only('OFF')",
    "SELECT count(*) FROM pragma_database_list",
    "SELECT * FROM dbstat",
    "SELECT count(*) FROM dbstat",
    "SELECT * FROM sqlite_master",
    "SELECT sql FROM main.sqlite_schema",
    "SELECT count(*) FROM sqlite_master",
    "SELECT rowid FROM sqlite_master",
    "SELECT name FROM customers WHERE name IN (SELECT name FROM sqlite_master)",
    "SELECT * FROM sqlite_stmt",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM fsdir('/')",
    "SELECT * FROM temp.sqlite_master; DROP TABLE customers",
    "SELECT name FROM customers WHERE (DELETE FROM orders)",
    "",
    " ",
    "-- nothing",
    ";",
    "SELECT",
    "SELECT * FROM absent",
    "hello",
    "SELECT 'unclosed",
]


async def test_nothing_but_a_query_runs_and_nothing_changes(shop, tmp_path):
    before, out = digest(shop), tmp_path / "out"
    outcomes = await all_at_once(shop, [sql.replace("{out}", str(out)) for sql in WRITES])

    assert [sql for sql, outcome in zip(WRITES, outcomes, strict=True) if not is_refusal(outcome)] == []
    assert digest(shop) == before
    assert not out.exists()


async def all_at_once(path, statements, **options):
    """Return the outcome of each statement, answer or error; a few processes run side by side."""
    turn = asyncio.Semaphore(4)

    async def one(sql):
        async with turn:
            return await engine(path, **options).query(sql, [], 100)

    return await asyncio.gather(*(one(sql) for sql in statements), return_exceptions=True)


def is_refusal(outcome):
    return isinstance(outcome, ValueError) and str(outcome).startswith("sql: ")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM customers", "this is a DELETE; only a single SELECT is allowed"),
        ("insert into customers values (1,2,3)", "this is an INSERT"),
        ("PRAGMA user_version", "this is a PRAGMA"),
        ("SELECT 1; DROP TABLE customers", r"this is 2 statements \(SELECT, DROP\)"),
        ("SELECT load_extension('x')", "load_extension may not be used"),
        ("SELECT * FROM pragma_table_info('x')", "pragma_table_info may not be used"),
        ("SELECT * FROM absent", "no such table: absent"),
        ("SELECT nam FROM customers", "no such column: nam"),
        ("SELECT ? + ?", "[Ii]ncorrect number of bindings"),
        ("SELEC 1", "syntax error"),
    ],
)
async def test_a_refusal_says_what_it_was_about(shop, sql, words):
    with pytest.raises(ValueError, match=words):
        await engine(shop).query(sql, [], 10)


async def test_reading_while_nobody_may_write_the_folder(shop):
    """The file is opened as what it is: nothing beside it is made or changed."""
    before = sorted(os.listdir(shop.parent))  # noqa: PTH208 - names alone

    await rows(shop, "SELECT 1 FROM customers")
    assert sorted(os.listdir(shop.parent)) == before  # noqa: PTH208


# -- bombs -------------------------------------------------------------------------------------------------------

COUNT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
NINE = "(VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9))"
ZEROS = f"(SELECT hex(zeroblob(490000)) AS z), {NINE}"
ENDLESS = [
    f"{COUNT} SELECT count(*) FROM c",
    f"{COUNT} SELECT x, hex(randomblob(500)) AS y FROM c ORDER BY y",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION SELECT x + 1 FROM c) SELECT x FROM c ORDER BY 1 DESC",
    # One step of SQLite's machine each, which no progress handler can stop:
    f"SELECT length(replace(z, substr(z, 1, 400000) || '1', 'x')) FROM {ZEROS}",
    f"SELECT instr(z, substr(z, 1, 450000) || '1') FROM {ZEROS}",
    f"SELECT length(trim(z, replace(hex(randomblob(40000)), '0', '') || '0')) FROM {ZEROS}",
]


async def test_what_would_not_end_is_ended(shop):
    outcomes = await all_at_once(shop, ENDLESS, timeout_seconds=0.3)

    assert [str(one).partition(";")[0] for one in outcomes] == ["sql: it took longer than 0.3 s"] * len(ENDLESS)


CHILD = """
import json, sys
from agentos_pack_sql_query import _child_sqlite
asked = {"max_rows": 1, "max_bytes": 1_000, "max_value_bytes": 1_000, "parameters": [], "seconds": 0.2}
try:
    _child_sqlite.query({**asked, "target": sys.argv[1], "sql": sys.argv[2]})
except TimeoutError as error:
    print(error)
"""


def test_sqlite_ends_a_query_by_itself_when_its_time_is_up(shop, run_python):
    """Without anybody who ends the process: the handler of its progress does."""
    said = run_python(CHILD, shop, f"{COUNT} SELECT count(*) FROM c", timeout=30)

    assert said == "it took longer than 0.2 s; ask for less, or narrow it with WHERE"


MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000)"
LARGE = [
    "SELECT zeroblob(2000000000)",
    "SELECT hex(zeroblob(900000))",
    "SELECT randomblob(1000000000)",
    "SELECT replace(hex(zeroblob(1000)), '0', hex(zeroblob(1000)))",
    f"{MANY} SELECT group_concat(hex(zeroblob(1000))) FROM n",
    f"{MANY} SELECT json_group_array(hex(zeroblob(1000))) FROM n",
    "SELECT " + ", ".join(["randomblob(900000)"] * 900),
]


async def test_what_would_fill_the_memory_is_refused(shop):
    told = [str(one) for one in await all_at_once(shop, LARGE, timeout_seconds=10)]

    expected = ("more than 1,000,000 bytes", "more memory than it may have")
    assert [words for words in told if not any(one in words for one in expected)] == []


async def test_a_printed_width_without_bound_gives_nothing(shop):
    assert await rows(shop, "SELECT printf('%1000000000d', 1)") == [[None]]


async def test_what_sqlite_bounds_by_itself_since_some_version_is_ended_by_either(shop):
    """Newer ones give NULL for too long a text, and take parentheses apart without a stack of fixed size."""
    (printed,) = await all_at_once(shop, ["SELECT length(printf('%.*c', 1000000000, 'x'))"], timeout_seconds=0.3)
    (nested,) = await all_at_once(shop, ["SELECT " + "(" * 5_000 + "1" + ")" * 5_000], timeout_seconds=30)

    assert "it took longer than 0.3 s" in str(printed) or printed.rows == [[None]]
    assert isinstance(nested, ValueError) or nested.rows == [[1]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'x' LIKE '" + "%a" * 2_000 + "'",
        "SELECT 'x' GLOB '" + "*a" * 2_000 + "'",
        "SELECT 1" + "+1" * 5_000,
        "SELECT " + "-" * 1_500 + "1",
        "SELECT 1" + " UNION SELECT 1" * 600,
        "SELECT abs(" + "abs(" * 2_000 + "1" + ")" * 2_001,
    ],
    ids=range(6),
)
async def test_statements_that_are_bombs_themselves_are_refused(shop, sql):
    await refusal(shop, sql[:20_000])


async def test_a_pattern_that_goes_back_and_forth_ends(shop):
    sql = "SELECT hex(zeroblob(40000)) LIKE '" + "%0" * 40 + "1'"

    assert await rows(shop, sql) == [[0]]


async def test_there_are_no_regular_expressions(shop):
    assert "no such function: regexp" in (await refusal(shop, "SELECT 'a' REGEXP '(a+)+$'")).lower()


async def test_the_parser_that_words_refusals_is_bounded_too(shop):
    await refusal(shop, "DELETE FROM customers WHERE " + "(" * 9_000)


# -- hostile files -----------------------------------------------------------------------------------------------


async def test_views_can_not_do_what_queries_can_not(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.executescript(
            "CREATE VIEW spy AS SELECT * FROM pragma_database_list;"
            "CREATE VIEW ext AS SELECT load_extension('x');"
            "CREATE VIEW endless AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c;"
        )

    for view in ("spy", "ext"):
        await refusal(tmp_path / "a.db", f"SELECT * FROM {view}")
    assert len(await rows(tmp_path / "a.db", "SELECT * FROM endless", limit=5)) == 5
    assert "longer" in await refusal(tmp_path / "a.db", "SELECT count(*) FROM endless", timeout_seconds=0.3)


async def test_a_damaged_file_is_an_error_and_no_more(shop):
    data = bytearray(shop.read_bytes())
    data[100:4096] = os.urandom(3996)
    shop.write_bytes(data)

    with pytest.raises(ValueError, match=r"^(sql|database): "):
        await engine(shop).query("SELECT * FROM customers", [], 10)
    with pytest.raises(ValueError, match=r"^(sql|database): "):
        await engine(shop).schema("", 10)


async def test_a_file_that_is_no_database_is_an_error(tmp_path):
    (tmp_path / "a.db").write_text("hello " * 1_000)

    assert "not a database" in await refusal(tmp_path / "a.db", "SELECT 1 FROM x")


# -- schema ------------------------------------------------------------------------------------------------------


async def test_the_schema_has_tables_columns_and_references(shop):
    found = await engine(shop).schema("", 100)

    assert (found.dialect, found.placeholder, found.truncated) == ("sqlite", "?", False)
    assert [(table.name, table.kind) for table in found.tables] == [
        ("customers", "table"),
        ("orders", "table"),
        ("spending", "view"),
    ]
    customers, orders, _ = found.tables
    assert [(one.name, one.type, one.nullable, one.primary_key) for one in customers.columns] == [
        ("id", "INTEGER", True, True),
        ("name", "TEXT", False, False),
        ("photo", "BLOB", True, False),
    ]
    assert [(one.column, one.table, one.to) for one in orders.references] == [("customer", "customers", "id")]


@pytest.mark.parametrize(("containing", "names"), [("ORD", ["orders"]), ("%", []), ("zz", [])])
async def test_the_schema_can_be_narrowed(shop, containing, names):
    found = await engine(shop).schema(containing, 100)

    assert [table.name for table in found.tables] == names


async def test_more_tables_than_asked_for_are_told(shop):
    found = await engine(shop).schema("", 2)

    assert (len(found.tables), found.truncated) == (2, True)


HOSTILE = ['we"ird', "semi;colon", "a'b", "select", "x\u202ey", "new\nline", "]", "-- comment", "100%", "🙂", " "]


async def test_names_of_any_kind_are_quoted_so_that_they_work(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        for name in HOSTILE:
            escaped = name.replace('"', '""')
            db.execute(f'CREATE TABLE "{escaped}"("{escaped}" TEXT)')
            db.execute(f'INSERT INTO "{escaped}" VALUES (?)', (name,))
        db.commit()
    found = await engine(tmp_path / "a.db").schema("", 100)

    parts = [f"SELECT {table.columns[0].quoted} AS x FROM {table.quoted}" for table in found.tables]
    assert await rows(tmp_path / "a.db", f"{' UNION ALL '.join(parts)} ORDER BY x") == [
        [one] for one in sorted(HOSTILE)
    ]


async def test_names_are_shown_without_hidden_characters(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute('CREATE TABLE "pay\u202eme"(x)')

    (table,) = (await engine(tmp_path / "a.db").schema("", 10)).tables
    assert table.name == "payme"


async def test_a_view_of_nothing_is_listed_with_its_problem(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute("CREATE VIEW broken AS SELECT * FROM gone")

    (table,) = (await engine(tmp_path / "a.db").schema("", 10)).tables
    assert "no such table" in table.problem


async def test_a_table_with_very_many_columns_is_cut(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute(f"CREATE TABLE wide({', '.join(f'c{n}' for n in range(500))})")

    found = await engine(tmp_path / "a.db").schema("", 10)
    assert (len(found.tables[0].columns), found.truncated) == (200, True)
