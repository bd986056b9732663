"""Offer databases, hosts and a PostgreSQL."""

import contextlib
import json
import sqlite3

import pytest

SHOP = """
CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT NOT NULL, photo BLOB);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers(id), total REAL);
CREATE VIEW spending AS
    SELECT name, sum(total) AS total FROM customers JOIN orders ON customer = customers.id GROUP BY name;
INSERT INTO customers VALUES (1, 'Ada', x'00ff'), (2, 'Bob', NULL);
INSERT INTO orders VALUES (1, 1, 9.5), (2, 1, 0.5), (3, 2, 7);
"""


@pytest.fixture
def shop(tmp_path):
    """Return the path of a small SQLite database."""
    path = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(SHOP)
    return path


@pytest.fixture
def hosted():
    """Return a function that opens a host with the pack."""
    from agentos import AgentOS, PackEntry

    @contextlib.asynccontextmanager
    async def opened(url=None, **options):
        secrets = {} if url is None else {"db.url": str(url)}
        entry = PackEntry(module="agentos_pack_sql_query", options=options, required=True)
        async with AgentOS(extension_manifest=[entry], extension_secrets=secrets) as host:
            yield host

    return opened


@pytest.fixture
def ask(hosted):
    """Return a function that calls one tool on a host of its own."""
    from agentos import ToolCall

    async def asked(url, name, /, *, _options=None, **arguments):
        async with hosted(url, **(_options or {})) as host:
            return await host.tools.process_tool_call(ToolCall(name, json.dumps(arguments)))

    return asked
