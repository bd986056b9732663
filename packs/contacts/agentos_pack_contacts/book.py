"""ContactBook: the table, and the search over it."""

import re
import secrets
import sqlite3
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import attrs
from agentos_pack_common import plain
from agentos_pack_common.sqlite import Database, StorageError, quoted_terms, storable

from agentos_pack_contacts.values import Contact, Deleted, Match, Matches

T = TypeVar("T")

APPLICATION_ID = 0x41504331  # APC1
FIELDS = ("name", "email", "phone", "organisation", "notes")
_CONTACTS = """
CREATE TABLE contacts(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    ref TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    email TEXT,
    phone TEXT,
    organisation TEXT,
    notes TEXT,
    folded TEXT NOT NULL,
    changed REAL NOT NULL
)
"""
_LINES = """
CREATE VIRTUAL TABLE lines USING fts5(
    name, email, phone, organisation, notes,
    content='contacts', content_rowid='id', tokenize='unicode61 remove_diacritics 2', prefix='2 3'
)
"""
MIGRATIONS = ((_CONTACTS, _LINES),)
_SIMILAR = 75.0
"""How alike a name has to be, of 100, to be found though no word of it fits."""
_ASKED = 8
"""How many words of a query are compared with names."""
_COLUMNS = "ref, name, email, phone, organisation, notes, changed"
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,189}")
_PHONE = re.compile(r"[0-9+()/. xX-]{3,40}")


@attrs.frozen(kw_only=True)
class BookOptions:
    """The options of the pack."""

    path: Path | None = None
    create: bool = False
    max_contacts: int = attrs.field(default=20_000, validator=[attrs.validators.ge(1), attrs.validators.le(100_000)])


class ContactBook:
    """Contacts in a SQLite database. There is one book for all who may use it."""

    def __init__(
        self, database: Database | None, *, max_contacts: int = 20_000, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._max_contacts = max_contacts
        self._clock = clock

    @classmethod
    def from_options(cls, options: BookOptions) -> "ContactBook":
        """Return the book that *options* describe; it is not open yet."""
        if options.path is None:
            return cls(None)
        database = Database(options.path, application_id=APPLICATION_ID, migrations=MIGRATIONS, create=options.create)
        return cls(database, max_contacts=options.max_contacts)

    async def open(self) -> None:
        """Open the database; raise StorageError with the reason if it is not there."""
        if self._database is None:
            raise StorageError("the option `path` says nothing about where the database is; give it the path of a file")
        await self._database.open()

    async def close(self) -> None:
        """Close the database, if it is open."""
        if self._database is not None:
            await self._database.close()

    @property
    def _db(self) -> Database:
        if self._database is None:
            raise StorageError("there is no database; call contacts_status")
        return self._database

    # -- reading -----------------------------------------------------------------------------------------------

    async def count(self) -> int:
        """Return how many contacts there are."""
        return await self._db.read(_count)

    async def get(self, id: str) -> Contact:
        """Return one contact."""
        return await self._db.read(lambda connection: _contact(_row(connection, id)))

    async def search(self, query: str, limit: int = 10) -> Matches:
        """Find contacts by words, then by similar names."""
        return await self._db.read(lambda connection: _search(connection, query, limit))

    # -- changing: each also as a rehearsal, which keeps nothing ------------------------------------------------

    async def create(self, fields: Mapping[str, str | None], *, rehearse: bool = False) -> Contact:
        """Add a contact."""
        given = _checked(fields)
        return await self._act(lambda connection: self._create(connection, given), rehearse=rehearse)

    async def update(self, id: str, fields: Mapping[str, str | None], *, rehearse: bool = False) -> Contact:
        """Change the given fields of a contact."""
        given = _checked(fields)
        return await self._act(lambda connection: self._update(connection, id, given), rehearse=rehearse)

    async def delete(self, id: str, *, rehearse: bool = False) -> Deleted:
        """Take a contact out."""
        return await self._act(lambda connection: _delete(connection, id), rehearse=rehearse)

    async def _act(self, work: Callable[[sqlite3.Connection], T], *, rehearse: bool) -> T:
        return await (self._db.rehearse if rehearse else self._db.write)(work)

    def _create(self, connection: sqlite3.Connection, fields: Mapping[str, str | None]) -> Contact:
        if _count(connection) >= self._max_contacts:
            raise ValueError(
                f"name: the book has {self._max_contacts:,} contacts, which is the most; delete some first"
            )
        ref = f"c_{secrets.token_hex(6)}"
        values = {**dict.fromkeys(FIELDS), **fields, "ref": ref}
        connection.execute(
            "INSERT INTO contacts(ref, name, email, phone, organisation, notes, folded, changed)"
            " VALUES (:ref, :name, :email, :phone, :organisation, :notes, :folded, :changed)",
            {**values, "folded": fold(str(values["name"])), "changed": self._clock()},
        )
        _index(connection, ref)
        return _contact(_row(connection, ref))

    def _update(self, connection: sqlite3.Connection, id: str, fields: Mapping[str, str | None]) -> Contact:
        row = _row(connection, id)
        _unindex(connection, id)
        values = {**{field: row[field] for field in FIELDS}, **fields, "ref": id}
        connection.execute(
            "UPDATE contacts SET name = :name, email = :email, phone = :phone, organisation = :organisation,"
            " notes = :notes, folded = :folded, changed = :changed WHERE ref = :ref",
            {**values, "folded": fold(str(values["name"])), "changed": self._clock()},
        )
        _index(connection, id)
        return _contact(_row(connection, id))


# -- rows --------------------------------------------------------------------------------------------------------


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM contacts").fetchone()[0])


def _row(connection: sqlite3.Connection, id: str) -> dict[str, Any]:
    found = connection.execute(f"SELECT {_COLUMNS} FROM contacts WHERE ref = ?", (storable(id, "id"),)).fetchone()  # noqa: S608
    if found is None:
        raise ValueError(f"id: there is no contact {plain(id)[:40]!r}; find its id with contacts_search")
    return dict(zip(_COLUMNS.split(", "), found, strict=True))


def _delete(connection: sqlite3.Connection, id: str) -> Deleted:
    row = _row(connection, id)
    _unindex(connection, id)
    connection.execute("DELETE FROM contacts WHERE ref = ?", (id,))
    return Deleted(id=id, name=plain(row["name"]))


_INDEXED = ", ".join(FIELDS)


def _index(connection: sqlite3.Connection, ref: str) -> None:
    """Take a contact into the full-text index."""
    connection.execute(
        f"INSERT INTO lines(rowid, {_INDEXED}) SELECT id, {_INDEXED} FROM contacts WHERE ref = ?",  # noqa: S608 - ours
        (ref,),
    )


def _unindex(connection: sqlite3.Connection, ref: str) -> None:
    """Take a contact out of the full-text index, before it changes."""
    connection.execute(
        f"INSERT INTO lines(lines, rowid, {_INDEXED}) SELECT 'delete', id, {_INDEXED} FROM contacts WHERE ref = ?",  # noqa: S608
        (ref,),
    )


def _contact(row: Mapping[str, Any]) -> Contact:
    """Return a row as others may see it: without hidden characters."""
    shown: dict[str, Any] = {field: None if row[field] is None else plain(row[field]) for field in FIELDS}
    changed = datetime.fromtimestamp(row["changed"], UTC).isoformat(timespec="seconds")
    return Contact(id=row["ref"], changed_at=changed, **shown)


# -- searching ---------------------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Return *text* without case and accents, for comparing."""
    return "".join(char for char in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(char))


def _search(connection: sqlite3.Connection, query: str, limit: int) -> Matches:
    found = _by_words(connection, query, limit + 1)
    if len(found) <= limit:
        found += _by_name(connection, query, limit + 1 - len(found), {ref for ref, _, _ in found})
    matches = [
        Match(contact=_contact(_row(connection, ref)), by=by, score=round(score, 1)) for ref, by, score in found[:limit]
    ]
    return Matches(matches=matches, truncated=len(found) > limit)


def _by_words(connection: sqlite3.Connection, query: str, limit: int) -> list[tuple[str, Any, float]]:
    """Find contacts that have every word of the query, or a word that begins like it; names count most."""
    terms = [f"{term}*" for term in quoted_terms(query)]
    if not terms:
        return []
    rows = connection.execute(
        "SELECT ref FROM lines JOIN contacts ON contacts.id = lines.rowid WHERE lines MATCH ?"
        " ORDER BY bm25(lines, 10.0, 5.0, 5.0, 3.0, 1.0), contacts.id LIMIT ?",
        (" AND ".join(terms), limit),
    )
    return [(ref, "words", 100.0) for (ref,) in rows]


def _by_name(
    connection: sqlite3.Connection, query: str, limit: int, known: Collection[str]
) -> list[tuple[str, Any, float]]:
    """Find contacts whose names are spelled nearly like the query: each of its words has a name's word alike."""
    asked = fold(query.encode("utf-8", "replace").decode()).split()[:_ASKED]
    holders: dict[str, list[str]] = {}
    for ref, folded in connection.execute("SELECT ref, folded FROM contacts"):
        for word in folded.split() if ref not in known else ():
            holders.setdefault(word, []).append(ref)
    scores: Counter[str] = Counter()
    for word in asked:
        scores.update({ref: score / len(asked) for ref, score in _alike(word, holders).items()})
    near = sorted((-score, ref) for ref, score in scores.items() if score >= _SIMILAR)
    return [(ref, "similar name", -score) for score, ref in near[:limit]]


def _alike(word: str, holders: Mapping[str, list[str]]) -> dict[str, float]:
    """Return whose names have a word like *word*, and how alike it is, of 100."""
    from rapidfuzz import fuzz, process

    best: dict[str, float] = {}
    for near, score, _ in process.extract(word, list(holders), scorer=fuzz.ratio, limit=None, score_cutoff=_SIMILAR):
        for ref in holders[near]:
            best[ref] = max(score, best.get(ref, 0.0))
    return best


# -- checks ------------------------------------------------------------------------------------------------------


def _checked(fields: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return *fields* trimmed; empty text counts as none."""
    given = {field: _trimmed(field, value) for field, value in fields.items()}
    if "name" in given and given["name"] is None:
        raise ValueError("name: is empty; a contact needs a name")
    if (email := given.get("email")) and not _EMAIL.fullmatch(email):
        raise ValueError("email: expected an address such as ada@example.org")
    if (phone := given.get("phone")) and not _PHONE.fullmatch(phone):
        raise ValueError("phone: expected digits, spaces and + - ( ) / . such as +49 30 1234567")
    return given


def _trimmed(field: str, value: str | None) -> str | None:
    if value is None:
        return None
    text = storable(value, field).strip()
    if field != "notes" and len(text.splitlines()) > 1:
        raise ValueError(f"{field}: expected one line")
    return text or None
