"""The audit log: whatever is done to it is found, and nothing that changes something runs without it."""

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
import math
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import attrs
import psycopg
import pytest
import store_fixtures
from access.workers.places import by_socket
from access.workers.recording import KEY, Log, host_at
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos import PUBLIC, AgentOS, ExtensionPack, ToolCall, tool
from agentos.access.audit import AuditHead
from agentos.errors import StoreError
from agentos.store.sqlite import SqliteWorker

postgres_server = store_fixtures.postgres_server

COUNT = 6
GENESIS = "0" * 64
COLUMNS = ("seq", "prev", "hash", "body")
HEAD = ("first_seq", "first_prev", "seq", "hash", "key_id", "signature")


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request, tmp_path):
    """Return the URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'agentos.db'}"
    return by_socket(request.getfixturevalue("postgres_server"))


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'agentos.db'}"


# -- by the side door --------------------------------------------------------------------------------------------------


class SqliteDoor:
    """The database of a store, without agentos."""

    def __init__(self, url):
        self._path = url.removeprefix("sqlite:///")

    async def run(self, *statements):
        with contextlib.closing(sqlite3.connect(self._path)) as connection, connection:
            for sql, *values in statements:
                connection.execute(sql, values)

    async def fetch(self, sql):
        with contextlib.closing(sqlite3.connect(self._path)) as connection:
            return connection.execute(sql).fetchall()


class PostgresDoor:
    """The same for PostgreSQL."""

    def __init__(self, url):
        self._url = url

    async def run(self, *statements):
        with psycopg.connect(self._url) as connection:
            for sql, *values in statements:
                connection.execute(sql.replace("?", "%s"), values or None)

    async def fetch(self, sql):
        with psycopg.connect(self._url) as connection:
            return connection.execute(sql).fetchall()


def door_of(url):
    return (PostgresDoor if url.startswith("postgresql") else SqliteDoor)(url)


@attrs.frozen
class Chain:
    """A log as it was written."""

    url: str
    rows: tuple
    head: dict

    async def put(self, rows=None, head=None):
        """Replace the whole log; a head of {} is none."""
        head = self.head if head is None else head
        insert = f"INSERT INTO audit ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?)"
        added = [(insert, *(row[column] for column in COLUMNS)) for row in (self.rows if rows is None else rows)]
        if head:
            marks = ", ".join("?" * len(HEAD))
            insert = f"INSERT INTO audit_head (id, {', '.join(HEAD)}) VALUES (1, {marks})"
            added.append((insert, *(head[column] for column in HEAD)))
        await door_of(self.url).run(("DELETE FROM audit",), ("DELETE FROM audit_head",), *added)

    def changed(self, number, **values):
        """Return the rows, one of them changed."""
        return [{**row, **values} if row["seq"] == number else row for row in self.rows]


async def chain_at(url):
    door = door_of(url)
    rows = await door.fetch(f"SELECT {', '.join(COLUMNS)} FROM audit ORDER BY seq")
    [head] = await door.fetch(f"SELECT {', '.join(HEAD)} FROM audit_head")
    chain = tuple(dict(zip(COLUMNS, row, strict=True)) for row in rows)
    return Chain(url, chain, dict(zip(HEAD, head, strict=True)))


async def write_log(url, count=COUNT):
    """Have a host write so many records."""
    async with AgentOS(store=url, store_key=KEY) as host:
        for number in range(count):
            await host.grants.add(f"tool{number}", "never")


async def found_by_another(url, known=None):
    """Return what a host finds that is started now."""
    async with AgentOS(store=url, store_key=KEY) as host:
        return await host.audit.verify(known=known)


async def known_head(url):
    async with AgentOS(store=url, store_key=KEY) as host:
        return await host.audit.head()


@attrs.frozen
class Bench:
    """A log that can be replaced by others, and a host that looks at each of them."""

    chain: Chain
    host: AgentOS
    run: Callable

    def verdict(self, rows=None, head=None, known=None):
        """Replace the log and return what is found."""
        self.run(self.chain.put(rows, head))
        return self.run(self.host.audit.verify(known=known))

    def places(self, forgeries):
        """Return for each of several logs whether it is taken for good, and where it is broken."""
        verdicts = [self.verdict(rows) for rows in forgeries]
        return [(verdict.ok, verdict.broken_at) for verdict in verdicts]


@contextlib.contextmanager
def bench_at(url):
    with asyncio.Runner() as runner:
        runner.run(write_log(url))
        host = AgentOS(store=url, store_key=KEY)
        yield Bench(runner.run(chain_at(url)), host, runner.run)
        runner.run(host.shutdown())


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def bench(request, tmp_path_factory):
    """Return a log of six records to tamper with, on each kind of store in turn."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('log') / 'agentos.db'}"
    else:
        url = by_socket(request.getfixturevalue("postgres_server"))
    with bench_at(url) as bench:
        yield bench


@pytest.fixture
def chain(bench):
    return bench.chain


def relinked(rows):
    """Return rows with hashes that fit: what somebody can do who knows the rule and not the key."""
    previous, linked = GENESIS, []
    for row in rows:
        link = hashlib.sha256(f"{row['seq']}\n{previous}\n{row['body']}".encode()).hexdigest()
        linked.append({**row, "prev": previous, "hash": link})
        previous = link
    return linked


def sealed(head, key):
    """Return a head that is sealed with *key*, as agentos does it."""
    text = "\n".join(str(head[column]) for column in ("first_seq", "first_prev", "seq", "hash"))
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return {**head, "key_id": name, "signature": hmac.digest(key.encode(), text.encode(), "sha256").hex()}


def ends_of(chain):
    """Return a known head for every record."""
    return [AuditHead(row["seq"], row["hash"]) for row in chain.rows]


# -- tampering ---------------------------------------------------------------------------------------------------------


NUMBERS = range(1, COUNT + 1)


def broken_at(numbers):
    return [(False, number) for number in numbers]


def test_a_log_that_nobody_touched_is_fine(bench):
    verdict = bench.verdict()

    assert (verdict.ok, verdict.broken_at, verdict.reason, verdict.records) == (True, None, "", COUNT)


def test_the_head_is_sealed_as_this_test_does_it(chain):
    """Or the forgeries below would be found for the wrong reason."""
    assert sealed(chain.head, KEY) == chain.head


def test_the_rows_are_linked_as_this_test_does_it(chain):
    assert relinked(chain.rows) == list(chain.rows)


@pytest.mark.parametrize("column", ["prev", "hash", "body"])
def test_a_changed_column_is_found_at_its_row(bench, chain, column):
    values = ["", "{}", "a\nb", *{row[column] for row in chain.rows}]
    touched = [(row["seq"], value) for row in chain.rows for value in values if row[column] != value]

    assert bench.places(chain.changed(seq, **{column: value}) for seq, value in touched) == broken_at(
        seq for seq, _ in touched
    )


@pytest.mark.parametrize("to", [-1, 0, 100, 2**62])
def test_a_changed_number_is_found_where_it_is_missing(bench, chain, to):
    assert bench.places(chain.changed(number, seq=to) for number in NUMBERS[:-1]) == broken_at(NUMBERS[:-1])


def test_a_changed_number_of_the_last_record_is_found(bench, chain):
    assert not bench.verdict(chain.changed(COUNT, seq=100))


def test_a_changed_number_of_the_last_record_is_found_where_it_is_missing(bench, chain):
    assert bench.verdict(chain.changed(COUNT, seq=100)).broken_at == COUNT


def test_what_is_missing_is_named(bench, chain):
    first, second, _, fourth, *rest = chain.rows
    reasons = [bench.verdict([first, second, *left]).reason for left in ([fourth, *rest], rest, [])]

    assert reasons[:2] == ["record 3 is missing", "records 3 to 4 are missing"]
    assert reasons[2].startswith(f"records 3 to {COUNT} are missing at the end")
    assert bench.verdict(chain.rows[:-1]).reason.startswith(f"record {COUNT} is missing at the end")


def test_a_deleted_row_is_found_where_it_is_missing(bench, chain):
    assert bench.places([row for row in chain.rows if row["seq"] != number] for number in NUMBERS) == broken_at(NUMBERS)


def test_two_swapped_rows_are_found_at_the_first_of_them(bench, chain):
    pairs = list(itertools.combinations(range(COUNT), 2))
    forgeries = []
    for one, other in pairs:
        rows = [dict(row) for row in chain.rows]
        rows[one]["seq"], rows[other]["seq"] = rows[other]["seq"], rows[one]["seq"]
        forgeries.append(rows)

    assert bench.places(forgeries) == broken_at(one + 1 for one, _ in pairs)


def test_a_cut_off_end_is_found_where_it_begins(bench, chain):
    assert bench.places(chain.rows[:left] for left in range(COUNT)) == broken_at(NUMBERS)


def test_a_cut_off_end_with_a_head_to_fit_is_found(bench, chain):
    ends = [(chain.rows[:left], chain.rows[left - 1]) for left in NUMBERS[:-1]]
    heads = [{**chain.head, "seq": last["seq"], "hash": last["hash"]} for _, last in ends]
    verdicts = [bench.verdict(rows, head) for (rows, _), head in zip(ends, heads, strict=True)]

    assert [(verdict.ok, verdict.broken_at) for verdict in verdicts] == broken_at(NUMBERS[1:])
    assert {verdict.reason for verdict in verdicts} == {"the seal of its head does not fit; somebody changed the head"}


def test_a_cut_off_beginning_with_a_head_to_fit_is_found(bench, chain):
    heads = [{**chain.head, "first_seq": row["seq"], "first_prev": row["prev"]} for row in chain.rows[1:]]
    verdicts = [bench.verdict(chain.rows[head["first_seq"] - 1 :], head) for head in heads]

    assert [verdict.ok for verdict in verdicts] == [False] * (COUNT - 1)


def test_a_head_that_is_gone_is_found(bench):
    verdict = bench.verdict(head={})

    assert (verdict.ok, verdict.broken_at, verdict.reason) == (False, COUNT + 1, "the head of the log is missing")


@pytest.mark.parametrize("column", HEAD)
def test_a_changed_head_is_found(bench, chain, column):
    value = 3 if column in ("first_seq", "seq") else "f" * 64

    assert not bench.verdict(head={**chain.head, column: value})


@pytest.mark.parametrize("column", HEAD)
def test_a_changed_head_is_told_as_one(bench, chain, column):
    value = 3 if column in ("first_seq", "seq") else "f" * 64
    verdict = bench.verdict(head={**chain.head, column: value})

    assert (verdict.broken_at, " head " in verdict.reason) == (COUNT + 1, True)


def test_a_row_that_was_added_is_found(bench, chain):
    row = {"seq": COUNT + 1, "prev": GENESIS, "hash": GENESIS, "body": '{"at":0,"event":"call"}'}

    assert bench.places([[*chain.rows, row], relinked([*chain.rows, row])]) == broken_at([COUNT + 1] * 2)


@pytest.mark.parametrize("seq", [0, -7])
def test_a_row_that_was_added_before_the_first_is_found(bench, chain, seq):
    row = {"seq": seq, "prev": GENESIS, "hash": GENESIS, "body": '{"at":0,"event":"call"}'}

    assert not bench.verdict([row, *chain.rows])


def rewritten(chain, number):
    """Return the log with another text in one record, and hashes that fit from there on."""
    return relinked(chain.changed(number, body=chain.rows[number - 1]["body"].replace("never", "always")))


def test_a_rewritten_chain_does_not_fit_its_head(bench, chain):
    verdicts = [bench.verdict(rewritten(chain, number)) for number in NUMBERS]

    assert {(verdict.ok, verdict.broken_at, verdict.reason) for verdict in verdicts} == {
        (False, COUNT + 1, "the last record is not the one that the sealed head names")
    }


@pytest.mark.parametrize("by", ["nobody", "another key", "another key by our name"])
def test_a_rewritten_chain_with_a_head_to_fit_lacks_the_seal(bench, chain, by):
    rows = rewritten(chain, 3)
    head = {**chain.head, "hash": rows[-1]["hash"]}
    if by != "nobody":
        head = sealed(head, "the key of somebody else")
    if by == "another key by our name":
        head["key_id"] = chain.head["key_id"]
    verdict = bench.verdict(rows, head)

    assert (verdict.ok, verdict.broken_at) == (False, COUNT + 1)
    assert ("another key" in verdict.reason) == (by == "another key")


def test_what_was_rewritten_with_the_key_is_found_by_a_head_that_was_kept(bench, chain):
    """Who has the key can forge the log, but not what somebody kept elsewhere."""
    rows = rewritten(chain, 3)
    head = sealed({**chain.head, "hash": rows[-1]["hash"]}, KEY)
    verdicts = [bench.verdict(rows, head, known) for known in [None, *ends_of(chain)]]

    assert [verdict.broken_at for verdict in verdicts] == [None, None, None, 3, 4, 5, 6]
    assert all("is not the one that was known" in verdict.reason for verdict in verdicts[3:])


def test_a_log_that_goes_on_is_fine_for_every_head_that_was_kept(bench, chain):
    verdicts = [bench.verdict(known=known) for known in [AuditHead(0, GENESIS), *ends_of(chain)]]

    assert [verdict.ok for verdict in verdicts] == [True] * (COUNT + 1)


@pytest.mark.parametrize("left", [1, COUNT - 1])
def test_an_old_copy_is_found_by_a_head_that_was_kept(bench, chain, left):
    """Its head was sealed once, so nothing but a head that is kept elsewhere can tell."""
    rows = chain.rows[:left]
    head = sealed({**chain.head, "seq": left, "hash": rows[-1]["hash"]}, KEY)
    known = AuditHead(chain.head["seq"], chain.head["hash"])
    verdicts = [bench.verdict(rows, head, known) for known in (None, known)]

    assert [(verdict.ok, verdict.broken_at) for verdict in verdicts] == [(True, None), (False, left + 1)]


async def test_an_old_copy_that_went_on_is_found_by_a_head_that_was_kept(store_url):
    await write_log(store_url, 2)
    old = await chain_at(store_url)
    await write_log(store_url, 2)
    known = await known_head(store_url)
    await old.put()
    await write_log(store_url, 4)
    verdict = await found_by_another(store_url, known)

    assert (verdict.ok, verdict.broken_at) == (False, 4)


EMPTIED = (("DELETE FROM audit",), ("DELETE FROM audit_head",))
EVERYTHING = tuple((f"DELETE FROM {table}",) for table in ("proposals", "grants", "pins", "flags", "idempotency"))


async def test_a_log_that_was_never_begun_is_fine(store_url):
    assert (await found_by_another(store_url)).ok


@pytest.mark.parametrize("more", [(), EVERYTHING], ids=["the log", "everything"])
async def test_a_log_that_was_emptied_with_its_head_is_found(store_url, more):
    await write_log(store_url)
    await door_of(store_url).run(*EMPTIED, *more)
    verdict = await found_by_another(store_url)

    assert (verdict.ok, verdict.broken_at) == (False, 1)
    assert "the log that was begun here is not in this database" in verdict.reason


async def test_a_log_that_was_emptied_and_went_on_is_found(store_url):
    await write_log(store_url)
    await door_of(store_url).run(*EMPTIED)
    await write_log(store_url)
    verdict = await found_by_another(store_url)

    assert (verdict.ok, verdict.broken_at, "was begun here" in verdict.reason) == (False, 1, True)


async def test_a_host_that_goes_on_with_another_log_says_so(store_url, caplog):
    await write_log(store_url, 1)
    await door_of(store_url).run(*EMPTIED)
    await write_log(store_url)

    assert [line for line in caplog.messages if "the log that was begun here is not in this database" in line]


async def test_a_log_whose_one_record_was_its_last_is_marked(store_url):
    await write_log(store_url, 1)
    await door_of(store_url).run(*EMPTIED)

    assert not (await found_by_another(store_url)).ok


async def test_an_emptied_log_is_found_by_what_was_written_with_it_if_its_mark_is_gone(sqlite_url, tmp_path):
    await write_log(sqlite_url)
    (tmp_path / "agentos.db.begun").unlink()
    await door_of(sqlite_url).run(*EMPTIED)
    verdict = await found_by_another(sqlite_url)

    assert (verdict.ok, verdict.broken_at, "rows in the table grants" in verdict.reason) == (False, 1, True)


async def test_a_new_log_is_fine_once_the_mark_of_the_old_one_was_removed(sqlite_url, tmp_path):
    await write_log(sqlite_url)
    for file in ("agentos.db", "agentos.db.begun"):
        (tmp_path / file).unlink()
    await write_log(sqlite_url)

    assert (await found_by_another(sqlite_url)).ok


async def test_a_backup_of_the_same_log_is_fine(sqlite_url, tmp_path):
    await write_log(sqlite_url, 2)
    shutil.copy(tmp_path / "agentos.db", tmp_path / "backup")
    await write_log(sqlite_url, 2)
    shutil.copy(tmp_path / "backup", tmp_path / "agentos.db")

    assert (await found_by_another(sqlite_url)).ok


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("nonsense", "does not hold the mark"),
        ('{"first": "0", "at": "then", "key_id": "0", "seal": "0"}', "is sealed with another key"),
        ('{"first": "0", "at": "then", "key_id": "270abff6d2c0f5f9", "seal": "0"}', "was changed"),
    ],
)
async def test_a_mark_that_is_not_ours_is_found(sqlite_url, tmp_path, mark, words):
    await write_log(sqlite_url)
    (tmp_path / "agentos.db.begun").write_text(mark)
    verdict = await found_by_another(sqlite_url)

    assert (verdict.ok, words in verdict.reason) == (False, True)


async def test_a_mark_that_can_not_be_made_stops_nothing(sqlite_url, tmp_path, caplog):
    (tmp_path / "agentos.db.begun").mkdir()
    await write_log(sqlite_url)
    async with AgentOS(store=sqlite_url, store_key=KEY) as host:
        records = await host.audit.records()

    assert len(records) == COUNT
    assert [line for line in caplog.messages if "can't be read" in line]


async def test_a_record_that_names_another_proposal_than_it_closed_is_found(store_url, tmp_path):
    async with host_at(store_url, Log(tmp_path / "executions")) as host:
        await host.approvals.approve((await call(host, "write")).error.details["token"])
    untouched = await found_by_another(store_url)
    await door_of(store_url).run(("UPDATE audit SET closes = NULL",))
    verdict = await found_by_another(store_url)

    assert untouched.ok
    assert (verdict.ok, "the proposal that it closes" in verdict.reason) == (False, True)


async def test_an_old_file_in_place_of_the_database_is_found_by_a_head_that_was_kept(sqlite_url, tmp_path):
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    await write_log(sqlite_url, 3)
    shutil.copy(path, tmp_path / "old")
    await write_log(sqlite_url, 3)
    known = await known_head(sqlite_url)
    shutil.copy(tmp_path / "old", path)
    verdict = await found_by_another(sqlite_url, known)

    assert (verdict.ok, verdict.broken_at, "rolled back" in verdict.reason) == (False, 4, True)


# SQLite keeps any value in any column.
STRANGE = {
    "text for a number": "UPDATE audit SET seq = 'x' WHERE seq = 3",
    "a blob for a number": "UPDATE audit SET seq = X'00' WHERE seq = 3",
    "a fraction for a number": "UPDATE audit SET seq = 2.5 WHERE seq = 3",
    "a blob for a text": "UPDATE audit SET body = X'7b7d' WHERE seq = 3",
    "a number for a hash": "UPDATE audit SET hash = 5 WHERE seq = 3",
    "text that is not Unicode": "UPDATE audit SET body = CAST(X'ff' AS TEXT) WHERE seq = 3",
    "text for the last number": "UPDATE audit SET seq = 'x' WHERE seq = 6",
    "text for the head's number": "UPDATE audit_head SET seq = 'x'",
    "text for the head's first number": "UPDATE audit_head SET first_seq = 'x'",
    "a blob for the seal": "UPDATE audit_head SET signature = X'00'",
}


@pytest.mark.parametrize("statement", STRANGE.values(), ids=STRANGE)
async def test_a_value_of_another_type_is_found(sqlite_url, statement):
    await write_log(sqlite_url)
    await door_of(sqlite_url).run((statement,))

    assert not await found_by_another(sqlite_url)


# -- any edits at all --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a log of six records in a SQLite file."""
    with bench_at(f"sqlite:///{tmp_path_factory.mktemp('log') / 'agentos.db'}") as bench:
        yield bench


def texts_of(chain):
    return sorted({row[column] for row in chain.rows for column in COLUMNS[1:]})


@st.composite
def edits(draw):
    """Draw what is done to a log: a function of its rows and its head."""
    kind = draw(st.sampled_from(["change", "renumber", "delete", "swap", "insert", "truncate", "head", "behead"]))
    places = st.integers(0, COUNT - 1)
    return kind, draw(places), draw(places), draw(st.sampled_from(COLUMNS[1:])), draw(st.integers(0, 40))


def edited(chain, rows, head, edit):
    """Do one edit, with texts of the log itself, which fit better than others."""
    kind, one, other, _, number = edit
    texts = texts_of(chain)
    if kind == "head" and head:
        name = HEAD[number % len(HEAD)]
        return rows, {**head, name: 1 + number % 9 if name.endswith("seq") else texts[number % len(texts)]}
    if kind == "behead":
        return rows, {}
    if kind == "insert":
        body = texts[number % len(texts)]
        return [*rows, {"seq": 1 + number % 9, "prev": texts[one], "hash": texts[other], "body": body}], head
    return _edited_rows(rows, edit, texts), head


def _edited_rows(rows, edit, texts):
    kind, one, other, column, number = edit
    if kind == "truncate":
        return rows[:one]
    rows = [dict(row) for row in rows]
    if one >= len(rows):
        return rows
    if kind == "change":
        rows[one][column] = texts[number % len(texts)]
    elif kind == "renumber":
        rows[one]["seq"] = 1 + number % 9
    elif kind == "delete":
        del rows[one]
    elif kind == "swap" and other < len(rows):
        rows[one]["seq"], rows[other]["seq"] = rows[other]["seq"], rows[one]["seq"]
    return rows


def first_difference(chain, rows, head):
    """Return the number of the first link that is not what it was; the head comes last. None if all are."""
    for number, row in enumerate(chain.rows, start=1):
        here = [other for other in rows if other["seq"] == number]
        if here != [row]:
            return number
    beyond = [row["seq"] for row in rows if row["seq"] > COUNT]
    return COUNT + 1 if beyond or head != chain.head else None


def without_repeats(rows):
    """Return rows as a database takes them: one of each number."""
    return list({row["seq"]: row for row in rows}.values())


@settings(max_examples=examples(150))
@given(st.lists(edits(), max_size=4))
def test_whatever_is_done_to_a_log_is_found(written, done):
    rows, head = list(written.chain.rows), dict(written.chain.head)
    for edit in done:
        rows, head = edited(written.chain, rows, head, edit)
    rows = without_repeats(rows)
    verdict = written.verdict(rows, head)

    assert verdict.ok == (first_difference(written.chain, rows, head) is None)


@settings(max_examples=examples(150))
@given(st.lists(edits(), max_size=4))
def test_whatever_is_done_to_the_records_is_found_where_it_begins(written, done):
    rows = list(written.chain.rows)
    for edit in done:
        rows, _ = edited(written.chain, rows, written.chain.head, edit)
    rows = [row for row in without_repeats(rows) if row["seq"] <= COUNT]
    verdict = written.verdict(rows)

    assert verdict.broken_at == first_difference(written.chain, rows, written.chain.head)


# -- no record, no run -------------------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "executions")


@pytest.fixture
async def host(store_url, log, anyio_backend):
    """Return a host that runs what changes something without asking."""
    host = host_at(store_url, log, mode="auto", audit_arguments=True)
    await host.initialize()
    yield host
    await host.shutdown()


async def call(host, tool, text="text", key=None):
    return await host.tools.process_tool_call(ToolCall(tool, {"text": text}, idempotency_key=key))


FORGED_HEADS = {
    "another seal": "UPDATE audit_head SET signature = 'f'",
    "another key": "UPDATE audit_head SET key_id = 'f'",
    "another hash": "UPDATE audit_head SET hash = prev FROM audit WHERE audit.seq = 1",
    "another number": "UPDATE audit_head SET seq = seq - 1",
    "another beginning": "UPDATE audit_head SET first_seq = 2",
    "no head": "DELETE FROM audit_head",
}


@pytest.mark.parametrize("sql", FORGED_HEADS.values(), ids=FORGED_HEADS)
async def test_after_the_head_was_changed_nothing_runs_that_changes_something(host, log, store_url, sql):
    await door_of(store_url).run((sql,))
    result = await call(host, "write")

    assert (result.error.type, "the audit log can't be written" in result.content) == ("Refused", True)
    assert log.lines() == []


async def test_after_the_head_was_made_another_type_nothing_runs_and_nothing_is_raised(sqlite_url, log):
    async with host_at(sqlite_url, log, mode="auto") as host:
        await door_of(sqlite_url).run(("UPDATE audit_head SET signature = X'00'",))
        try:
            result = await call(host, "write")
        finally:
            await door_of(sqlite_url).run(("DELETE FROM audit_head",), ("DELETE FROM audit",))

    assert (result.error.type, log.lines()) == ("Refused", [])


async def test_after_the_head_was_changed_reads_go_on(host, store_url):
    await door_of(store_url).run(("UPDATE audit_head SET signature = 'f'",))

    assert (await call(host, "look")).output == "text"


async def test_after_the_head_was_changed_no_proposal_is_applied(store_url, log):
    async with host_at(store_url, log) as host:
        token = (await call(host, "write")).error.details["token"]
        [(seal,)] = await door_of(store_url).fetch("SELECT signature FROM audit_head")
        await door_of(store_url).run(("UPDATE audit_head SET signature = 'f'",))
        refused = await host.approvals.approve(token)
        ran = log.lines()
        await door_of(store_url).run(("UPDATE audit_head SET signature = ?", seal))
        applied = await host.approvals.approve(token)

    assert (refused.error.type, ran) == ("Refused", [])
    assert (applied.success, log.lines()) == (True, ["text"])


# -- a full disk -------------------------------------------------------------------------------------------------------

LARGE = "x" * 20_000
"""What does not fit into the free space of any page."""


class SqliteDisk:
    """Lets a database grow, or not; every connection of this process is told so when it is used."""

    def __init__(self):
        self._pages = 2**30
        self._begin = SqliteWorker.begin
        SqliteWorker.begin = lambda worker, transactions: self._limit(worker, transactions)

    def _limit(self, worker, transactions):
        worker.driver.execute(f"PRAGMA max_page_count={self._pages}").close()
        self._begin(worker, transactions)

    async def fill(self):
        self._pages = 1  # SQLite takes it for the present size

    async def free(self):
        self._pages = 2**30

    async def close(self):
        SqliteWorker.begin = self._begin


class PostgresDisk:
    """Has the server say what it says of a full disk."""

    def __init__(self, url):
        self._door = door_of(url)

    async def fill(self):
        body = "BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END"
        await self._door.run(
            (f"CREATE FUNCTION full_disk() RETURNS trigger AS $$ {body} $$ LANGUAGE plpgsql",),
            ("CREATE TRIGGER full_disk BEFORE INSERT ON audit EXECUTE FUNCTION full_disk()",),
        )

    async def free(self):
        await self._door.run(("DROP FUNCTION IF EXISTS full_disk CASCADE",))

    async def close(self):
        await self.free()


@pytest.fixture
async def disk(store_url, anyio_backend):
    """Return the disk of a store, which has room again when the host is shut down."""
    disk = PostgresDisk(store_url) if store_url.startswith("postgresql") else SqliteDisk()
    yield disk
    await disk.close()


@pytest.fixture
async def host_on_disk(disk, host, anyio_backend):
    yield host
    await disk.free()


async def test_with_a_full_disk_nothing_runs_that_changes_something(host_on_disk, disk, log):
    await disk.fill()
    result = await call(host_on_disk, "write", LARGE)

    assert (result.error.type, result.error.message) == (
        "Refused",
        "nothing was done, because the audit log can't be written now: the disk is full",
    )
    assert log.lines() == []


async def test_with_a_full_disk_the_hosts_log_says_why(host_on_disk, disk, caplog):
    await disk.fill()
    await call(host_on_disk, "write", LARGE)

    assert [text for text in caplog.messages if "recorder:write was refused" in text and "full" in text] or [
        text for text in caplog.messages if "recorder:write was refused" in text and "could not extend" in text
    ]


async def test_with_a_full_disk_reads_go_on(host_on_disk, disk):
    await disk.fill()
    results = [await call(host_on_disk, "look", LARGE) for _ in range(3)]

    assert [result.success for result in results] == [True] * 3


async def test_what_was_read_while_the_disk_was_full_is_recorded_when_there_is_room(host_on_disk, disk):
    await disk.fill()
    await call(host_on_disk, "look", LARGE)
    await call(host_on_disk, "write", LARGE)
    await disk.free()
    await call(host_on_disk, "write")
    told = [
        (record.event, record.data.get("tool"), record.data.get("answer"))
        for record in await host_on_disk.audit.records()
    ]

    assert ("call", "recorder:look", "run") in told
    assert ("decision", "recorder:write", "refuse") in told
    assert "gap" not in [event for event, *_ in told]
    assert await host_on_disk.audit.verify()


async def test_an_idempotency_key_that_met_a_full_disk_is_free_later(host_on_disk, disk, log):
    await disk.fill()
    refused = await call(host_on_disk, "write", LARGE, "key")
    await disk.free()
    ran = await call(host_on_disk, "write", LARGE, "key")

    assert (refused.error.type, ran.success, len(log.lines())) == ("Refused", True, 1)


async def test_a_proposal_that_met_a_full_disk_can_be_approved_later(store_url, disk, log):
    async with host_at(store_url, log, audit_arguments=True) as host:
        token = (await call(host, "write", LARGE)).error.details["token"]
        await disk.fill()
        refused = await host.approvals.approve(token)
        state = (await host.approvals.describe(token)).state
        await disk.free()
        applied = await host.approvals.approve(token)

    assert (refused.error.type, state) == ("Refused", "proposed")
    assert (applied.success, len(log.lines())) == (True, 1)


async def test_a_call_that_cannot_be_proposed_on_a_full_disk_says_so(store_url, disk, log):
    async with host_at(store_url, log, audit_arguments=True) as host:
        await disk.fill()
        refused = await call(host, "write", LARGE)
        await disk.free()
        pending = await host.approvals.pending()

    assert (refused.error.type, "no proposal could be made" in refused.content, pending) == ("Refused", True, [])


async def test_a_call_whose_end_could_not_be_recorded_gives_its_result_and_is_recorded_later(store_url, disk, log):
    async def fill(text):
        await disk.fill()

    async with host_at(store_url, log, mode="auto", audit_arguments=True, meanwhile=fill) as host:
        result = await call(host, "write", LARGE)
        await disk.free()
        told = [(record.event, record.data.get("success")) for record in await host.audit.records()]
        verdict = await host.audit.verify()

    assert (result.success, told[-1], bool(verdict)) == (True, ("call", True), True)


async def test_a_gap_tells_how_many_records_were_lost(host_on_disk, disk):
    """More than 10,000 records do not wait."""
    before = len(await host_on_disk.audit.records())
    await disk.fill()
    host_on_disk.grants.fresh_until = math.inf  # a look at the store would let a batch begin, which takes records out
    await call(host_on_disk, "look", LARGE)
    for number in range(10_100):
        await call(host_on_disk, "look", str(number))
    with pytest.raises(StoreError):  # what is being written does not count as waiting
        await host_on_disk.audit.commit()
    await disk.free()
    told = (await host_on_disk.audit.records())[before:]

    assert [record.data for record in told if record.event == "gap"] == [{"lost": 101}]
    assert (len(told), told[0].event, told[1].data["arguments"]) == (10_001, "gap", {"text": "100"})
    assert await host_on_disk.audit.verify()


def clogging(disk):
    """Return what a tool does while it runs: the disk is full before it ends."""

    async def fill(text):
        await disk.fill()

    return fill


async def test_a_proposal_whose_end_can_not_be_recorded_yet_has_its_result_here(store_url, disk, log):
    async with host_at(store_url, log, audit_arguments=True, meanwhile=clogging(disk)) as host:
        token = (await call(host, "write", LARGE)).error.details["token"]
        result = await host.approvals.approve(token)
        found = await host.approvals.result(token), await host.approvals.describe(token)
        await disk.free()

    assert (result.success, found[0].output, found[1].state) == (True, result.output, "applied")


@pytest.mark.parametrize("way", ["asked", "noted", "shut down"])
async def test_a_proposal_whose_end_could_not_be_recorded_is_recorded_when_that_can_be_done(store_url, disk, log, way):
    async with host_at(store_url, log, audit_arguments=True, meanwhile=clogging(disk)) as host:
        token = (await call(host, "write", LARGE)).error.details["token"]
        result = await host.approvals.approve(token)
        await disk.free()
        if way == "asked":
            await host.approvals.result(token)
        elif way == "noted":
            await call(host, "look")
            await host.audit._write_batch()
        if way != "shut down":
            states = await door_of(store_url).fetch("SELECT state FROM proposals")
            assert states == [("applied",)]
    async with host_at(store_url, log) as host:
        later = await host.approvals.result(token)
        told = [record.event for record in await host.audit.records() if record.event.startswith("proposal")]

    assert (later.output, told) == (result.output, ["proposal", "proposal:applying", "proposal:applied"])


async def test_a_proposal_whose_end_was_never_recorded_is_unknown_after_a_restart(store_url, disk, log):
    async with host_at(store_url, log, audit_arguments=True, meanwhile=clogging(disk)) as host:
        token = (await call(host, "write", LARGE)).error.details["token"]
        result = await host.approvals.approve(token)
    await disk.free()
    async with host_at(store_url, log) as host:
        state = (await host.approvals.describe(token)).state
        again = await host.approvals.approve(token)

    assert (result.success, state, again.error.type, len(log.lines())) == (True, "unknown", "ProposalInvalid", 1)


# -- several at once ---------------------------------------------------------------------------------------------------


async def test_a_verification_does_not_mistake_what_is_written_meanwhile(store_url):
    """Another host writes after the head was read, and again when it is read a second time."""
    await write_log(store_url, 2)
    async with AgentOS(store=store_url, store_key=KEY) as host, AgentOS(store=store_url, store_key=KEY) as other:
        read, reads = host.audit._head, itertools.count(1)

        async def read_meanwhile():
            if (number := next(reads)) == 2:
                await other.grants.add("before the second", "never")
            head = await read()
            if number == 1:
                await other.grants.add("after the first", "never")
            return head

        host.audit._head = read_meanwhile
        verdict = await host.audit.verify()

    assert (verdict.ok, verdict.reason) == (True, "")


async def _is_awaited(url):
    """Wait until somebody waits for a lock on the server."""
    while not await door_of(url).fetch("SELECT 1 FROM pg_locks WHERE NOT granted"):
        await asyncio.sleep(0.002)


async def test_two_hosts_can_write_the_first_record_at_once(postgres_server):
    url = by_socket(postgres_server)
    async with AgentOS(store=url, store_key=KEY) as host, AgentOS(store=url, store_key=KEY) as other:
        link, extended, release = host.audit.link("first"), threading.Event(), threading.Event()

        def extend(connection):
            host.audit.extend(connection, link)
            extended.set()
            release.wait(60)

        extending = asyncio.create_task(host.audit.write(extend))
        while not extended.is_set():
            await asyncio.sleep(0)
        adding = asyncio.create_task(other.grants.add("tool", "never"))
        await asyncio.wait([adding, asyncio.create_task(_is_awaited(url))], return_when="FIRST_COMPLETED")
        release.set()
        await asyncio.gather(extending, adding)

        assert len(await host.audit.records()) == 2


# -- export ------------------------------------------------------------------------------------------------------------


def verified(path):
    """Return the hash at the end of an exported log; raise if it is no chain. This is all that one needs to know."""
    previous = "0" * 64
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        record = json.loads(line)
        link = hashlib.sha256(f"{number}\n{previous}\n{record['body']}".encode()).hexdigest()
        if (record["seq"], record["prev"], record["hash"]) != (number, previous, link):
            raise ValueError(f"record {number} is broken")
        previous = link
    return previous


async def test_an_exported_log_can_be_verified_without_agentos(host, tmp_path):
    for text in ("plain", 'with "quotes"\nand lines\u2028', "\u00fcnic\u00f6de \U0001f600", "\x00\x1f\x7f"):
        await call(host, "write", text)
        await call(host, "look", text)
    count = await host.audit.export(tmp_path / "log.jsonl")

    assert verified(tmp_path / "log.jsonl") == (await host.audit.head()).hash
    assert count == (await host.audit.head()).seq


async def test_an_exported_log_has_the_records(host, tmp_path):
    await call(host, "write", "a text")
    await host.audit.export(tmp_path / "log.jsonl")
    bodies = [json.loads(json.loads(line)["body"]) for line in (tmp_path / "log.jsonl").read_text().splitlines()]

    assert [(body["event"], body.get("arguments")) for body in bodies[-2:]] == [
        ("decision", {"text": "a text"}),
        ("call", {"text": "a text"}),
    ]


async def test_a_line_that_was_changed_in_an_exported_log_is_found(host, tmp_path):
    await call(host, "write", "a text")
    await host.audit.export(tmp_path / "log.jsonl")
    exported = (tmp_path / "log.jsonl").read_text()
    (tmp_path / "log.jsonl").write_text(exported.replace("a text", "no text", 1))

    with pytest.raises(ValueError, match="record 4 is broken"):
        verified(tmp_path / "log.jsonl")


async def test_a_long_log_is_exported_and_verified_whole(host, tmp_path):
    """It is read a thousand records at a time."""
    for number in range(2_500):
        await call(host, "look", str(number))
    count = await host.audit.export(tmp_path / "log.jsonl")
    verdict = await host.audit.verify()

    assert (verdict.ok, verdict.records, count) == (True, 2_503, 2_503)
    assert verified(tmp_path / "log.jsonl") == (await host.audit.head()).hash


# -- many reads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["memory", "file"])
async def test_no_read_is_lost_however_many_come_without_a_pause(tmp_path, kept):
    """A tool that never suspends gives nobody else a turn: the log has to take one."""

    @tool(effect="read", required_access=PUBLIC)
    async def look() -> int:
        """Look."""
        return 1

    store = None if kept == "memory" else tmp_path / "agentos.db"
    async with AgentOS(store=store, budget=None) as host:
        await host.extensions.load_pack(ExtensionPack("eyes", "1", [look]))
        for _ in range(20_000):
            await host.tools.process_tool_call(ToolCall("look"))
        events = [record.event for record in await host.audit.records()]

    assert (events.count("call"), events.count("gap")) == (20_000, 0)
