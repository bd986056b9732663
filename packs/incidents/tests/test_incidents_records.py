"""The incidents themselves: what is kept, what is refused, and who wins when two change one."""

import asyncio
import sqlite3
import stat

import pytest
from agentos_pack_incidents import records
from agentos_pack_incidents.records import open_book
from agentos_pack_incidents.values import Actor, Draft, IncidentError, Question, StaleError

ANN = Actor("ann", at="2024-07-01T12:00:00+00:00")
BOB = Actor("bob", "p-1", at="2024-07-02T15:30:00+00:00")
DRAFT = Draft(title="Login fails", severity="high", service="auth", summary="Since noon")


@pytest.fixture
async def book(path):
    made = open_book(path)
    await made.open()
    yield made
    await made.close()


async def add(book, **more):
    return await book.write(lambda db: records.add(db, Draft(**{"title": "x", "severity": "low", **more}), ANN))


async def test_a_new_incident_has_all_it_was_given(book):
    await book.write(lambda db: records.add(db, DRAFT, ANN))
    found = await book.read(lambda db: records.get(db, 1, 10))

    assert (found.title, found.severity, found.service, found.summary) == ("Login fails", "high", "auth", "Since noon")
    assert (found.status, found.version, found.opened_by, found.opened_at) == ("open", 1, "ann", ANN.at)
    assert [(entry.kind, entry.by, entry.at) for entry in found.timeline] == [("opened", "ann", ANN.at)]


async def test_an_update_says_what_changed(book):
    await book.write(lambda db: records.add(db, DRAFT, ANN))
    fields = {"severity": "low", "status": "monitoring"}
    changed = await book.write(lambda db: records.update(db, 1, 1, fields, "calmer", BOB))
    entry = (await book.read(lambda db: records.get(db, 1, 1))).timeline[-1]

    assert changed.changes == ["severity: high -> low", "status: open -> monitoring"]
    assert (changed.version, changed.severity, changed.status) == (2, "low", "monitoring")
    assert entry.text == "severity: high -> low; status: open -> monitoring\ncalmer"
    assert (entry.by, entry.proposal) == ("bob", "p-1")


async def test_an_update_without_effect_is_refused(book):
    await add(book)

    with pytest.raises(IncidentError, match="incident 1 is like that already; give a note"):
        await book.write(lambda db: records.update(db, 1, 1, {"severity": "low"}, "", ANN))


async def test_a_resolved_incident_keeps_its_resolution_until_it_is_reopened(book):
    await add(book)
    await book.write(lambda db: records.resolve(db, 1, 1, "restarted", BOB))
    closed = await book.read(lambda db: records.get(db, 1, 5))
    await book.write(lambda db: records.update(db, 1, 2, {"status": "open"}, "again", BOB))
    again = await book.read(lambda db: records.get(db, 1, 5))

    assert (closed.status, closed.resolution, closed.resolved_at) == ("resolved", "restarted", BOB.at)
    assert (again.status, again.resolution, again.resolved_at) == ("open", None, None)
    assert [entry.kind for entry in again.timeline] == ["opened", "resolved", "reopened"]


async def test_a_note_on_a_resolved_incident_leaves_it_resolved(book):
    await add(book)
    await book.write(lambda db: records.resolve(db, 1, 1, "restarted", BOB))
    changed = await book.write(lambda db: records.update(db, 1, 2, {}, "report is written", BOB))

    assert changed.status == "resolved"


async def test_an_incident_is_resolved_once(book):
    await add(book)
    await book.write(lambda db: records.resolve(db, 1, 1, "restarted", BOB))

    with pytest.raises(IncidentError, match="resolved already; incident_update with a status reopens it"):
        await book.write(lambda db: records.resolve(db, 1, 2, "again", BOB))


async def test_only_what_is_resolved_can_be_purged(book):
    await add(book)

    with pytest.raises(IncidentError, match="is open; only resolved incidents can be purged"):
        await book.write(lambda db: records.purge(db, 1, 1))


async def test_a_purged_number_is_never_given_again(book):
    await add(book)
    await book.write(lambda db: records.resolve(db, 1, 1, "restarted", BOB))
    await book.write(lambda db: records.purge(db, 1, 2))

    assert (await add(book)).id == 2


async def test_nothing_of_a_purged_incident_stays_in_the_file(book, path):
    await add(book, summary="the-customer-was-Rosalind")
    await book.write(lambda db: records.resolve(db, 1, 1, "Rosalind-was-called-back", BOB))
    await book.write(lambda db: records.purge(db, 1, 2))
    await book.close()

    assert all(b"Rosalind" not in file.read_bytes() for file in path.parent.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda db: records.update(db, 1, 1, {}, "late", ANN),
        lambda db: records.resolve(db, 1, 1, "late", ANN),
        lambda db: records.purge(db, 1, 1),
    ],
    ids=["update", "resolve", "purge"],
)
async def test_a_change_for_another_version_is_refused(book, change):
    await add(book)
    await book.write(lambda db: records.update(db, 1, 1, {}, "first", ANN))

    with pytest.raises(StaleError, match="is at version 2, and this call was made for version 1; nothing was done"):
        await book.write(change)


async def test_of_many_changes_for_one_version_one_is_done(book, path):
    await add(book)
    other = open_book(path)
    await other.open()
    notes = [
        one.write(lambda db, n=n: records.update(db, 1, 1, {}, f"note {n}", ANN))
        for n, one in enumerate([book, other] * 5)
    ]
    outcomes = await asyncio.gather(*notes, return_exceptions=True)
    await other.close()

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Changed"] + 9 * ["StaleError"]
    assert (await book.read(lambda db: records.get(db, 1, 50))).timeline_total == 2


async def test_an_unknown_number_says_where_to_look(book):
    with pytest.raises(IncidentError, match="there is no incident 7; incident_list shows"):
        await book.read(lambda db: records.get(db, 7, 1))


async def test_the_list_is_the_newest_first_and_pages(book):
    for n in range(5):
        await add(book, title=f"n{n}")
    first = await book.read(lambda db: records.search(db, Question(limit=2)))
    last = await book.read(lambda db: records.search(db, Question(limit=2, before=2)))

    assert [line.title for line in first.incidents] == ["n4", "n3"]
    assert (first.total, first.truncated) == (5, True)
    assert ([line.title for line in last.incidents], last.truncated) == (["n0"], False)


async def test_the_list_is_filtered(book):
    await add(book, title="one", severity="high")
    await add(book, title="two", service="One")
    await add(book, title="three")
    await book.write(lambda db: records.resolve(db, 3, 1, "done", ANN))

    async def titles(**asked):
        return [line.title for line in (await book.read(lambda db: records.search(db, Question(**asked)))).incidents]

    assert await titles(status="unresolved") == ["two", "one"]
    assert await titles(status="resolved") == ["three"]
    assert await titles(severity="high") == ["one"]
    assert await titles(text="ONE") == ["two", "one"]


@pytest.mark.parametrize("text", ["%", "_", "\\", "' OR 1=1 --", '"', "*", "a%b"])
async def test_searched_text_stands_for_itself(book, text):
    await add(book, title="plain")
    await add(book, title=f"with {text} in it")
    found = await book.read(lambda db: records.search(db, Question(text=text)))

    assert [line.id for line in found.incidents] == [2]


async def test_a_long_timeline_is_cut_from_its_beginning(book):
    await add(book)
    for n in range(4):
        await book.write(lambda db, n=n: records.update(db, 1, n + 1, {}, f"note {n}", ANN))
    found = await book.read(lambda db: records.get(db, 1, 2))

    assert [entry.text for entry in found.timeline] == ["note 2", "note 3"]
    assert (found.timeline_total, found.truncated) == (5, True)


async def test_a_timeline_has_an_end(book, monkeypatch):
    monkeypatch.setattr(records, "MAX_TIMELINE", 2)
    await add(book)
    await book.write(lambda db: records.update(db, 1, 1, {}, "second", ANN))

    with pytest.raises(IncidentError, match="2 timeline entries, the limit; go on in a new incident"):
        await book.write(lambda db: records.update(db, 1, 2, {}, "third", ANN))
    assert (await book.read(lambda db: records.get(db, 1, 9))).version == 2


async def test_the_number_of_incidents_has_an_end(book, monkeypatch):
    monkeypatch.setattr(records, "MAX_INCIDENTS", 1)
    await add(book)

    with pytest.raises(IncidentError, match="purge resolved ones first"):
        await add(book)


async def test_the_file_is_its_owners_alone(book, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_incidents_outlive_the_pack(book, path):
    await add(book, title="stays")
    await book.close()
    again = open_book(path)
    await again.open()
    found = await again.read(lambda db: records.get(db, 1, 1))
    await again.close()

    assert found.title == "stays"


async def test_the_tables_take_no_other_words(book):
    def forge(db):
        db.execute("UPDATE incidents SET severity = 'urgent'")

    await add(book)
    with pytest.raises(sqlite3.IntegrityError):
        await book.write(forge)
