"""What the conformance checks need around them: a database."""  # noqa: INP001

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

_SHOP = """
CREATE TABLE goods (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL);
INSERT INTO goods (name, price) VALUES ('tea', 2.5), ('milk', 1.2), ('salt', 0.4);
CREATE VIEW cheap AS SELECT name FROM goods WHERE price < 1;
"""


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[None]:
    """Make a small shop."""
    with contextlib.closing(sqlite3.connect(tmp / "shop.db")) as database:
        database.executescript(_SHOP)
    yield
