"""The tables, version by version, and the full-text indexes over them.

The indexes hold no text of their own; they are kept true here and not by triggers, which SQLite lets touch an index
only in a schema that is trusted whatever it says.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

APPLICATION_ID = 0x41504D31  # APM1

_MEMORIES = """
CREATE TABLE memories(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    ref TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    namespace TEXT NOT NULL,
    shared INTEGER NOT NULL,
    text TEXT NOT NULL,
    digest BLOB NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    scope TEXT NOT NULL,
    saved REAL NOT NULL,
    expires REAL,
    UNIQUE(owner, namespace, shared, digest)
)
"""

# Counted as they come and go: counting them all at each save would take longer than saving.
_COUNT_UP = """
CREATE TRIGGER counted_up AFTER INSERT ON memories BEGIN
    INSERT INTO owners VALUES (new.owner, 1) ON CONFLICT(owner) DO UPDATE SET memories = memories + 1;
END
"""
_COUNT_DOWN = """
CREATE TRIGGER counted_down AFTER DELETE ON memories BEGIN
    UPDATE owners SET memories = memories - 1 WHERE owner = old.owner;
END
"""


@attrs.frozen
class Index:
    """A full-text index over columns of the memories."""

    name: str
    columns: str
    tokenizer: str

    @property
    def definition(self) -> str:
        """Return the statement that makes it."""
        content = "content='memories', content_rowid='id'"
        return f"CREATE VIRTUAL TABLE {self.name} USING fts5({self.columns}, {content}, tokenize='{self.tokenizer}')"

    def add(self, connection: sqlite3.Connection, id: int) -> None:
        """Take a row in."""
        connection.execute(
            f"INSERT INTO {self.name}(rowid, {self.columns}) SELECT id, {self.columns} FROM memories WHERE id = ?",  # noqa: S608
            (id,),
        )

    def drop(self, connection: sqlite3.Connection, condition: str, values: Sequence[Any]) -> None:
        """Take rows out that are about to be deleted."""
        connection.execute(
            f"INSERT INTO {self.name}({self.name}, rowid, {self.columns})"  # noqa: S608 - the names are ours
            f" SELECT 'delete', id, {self.columns} FROM memories WHERE {condition}",
            values,
        )


WORDS = Index("words", "text, tags, scope", "porter unicode61 remove_diacritics 2")
PIECES = Index("pieces", "text, scope", "trigram")
"""The second index, for parts of words; made when a host first asks for it, and kept from then on."""

MIGRATIONS = (
    (
        _MEMORIES,
        "CREATE INDEX memories_by_end ON memories(expires) WHERE expires IS NOT NULL",
        "CREATE TABLE owners(owner TEXT PRIMARY KEY, memories INTEGER NOT NULL) WITHOUT ROWID",
        _COUNT_UP,
        _COUNT_DOWN,
        WORDS.definition,
    ),
    (
        "CREATE TABLE vectors(id INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
        "CREATE TRIGGER vector_dropped AFTER DELETE ON memories BEGIN DELETE FROM vectors WHERE id = old.id; END",
    ),
)


def add_pieces(connection: sqlite3.Connection) -> None:
    """Make the second index of what is there, if there is none yet."""
    if not _has_pieces(connection):
        connection.execute(PIECES.definition)
        connection.execute("INSERT INTO pieces(pieces) VALUES ('rebuild')")


def insert(connection: sqlite3.Connection, row: Mapping[str, Any]) -> int:
    """Put a row into the table and into every index; return its number."""
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    done = connection.execute(f"INSERT INTO memories({names}) VALUES ({marks})", row)  # noqa: S608 - the names are ours
    id = int(done.lastrowid or 0)
    for index in _indexes(connection):
        index.add(connection, id)
    return id


def delete(connection: sqlite3.Connection, condition: str, values: Sequence[Any]) -> int:
    """Take the rows of *condition* out of the table and of every index; return how many."""
    for index in _indexes(connection):
        index.drop(connection, condition, values)
    return connection.execute(f"DELETE FROM memories WHERE {condition}", values).rowcount  # noqa: S608 - as above


def _indexes(connection: sqlite3.Connection) -> list[Index]:
    return [WORDS, PIECES] if _has_pieces(connection) else [WORDS]


def _has_pieces(connection: sqlite3.Connection) -> bool:
    """Tell whether there is a second index: another process may have made it meanwhile."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'pieces'").fetchone() is not None
