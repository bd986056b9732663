"""The store: what must last beyond one run, in a SQLite file, in PostgreSQL, or in memory.

locations.py        where a store is: a path or URL becomes a place that can be shown to anybody
sealing_key.py      the key that seals what is stored
marks.py            that a log was begun, noted beside the key
failures.py         a database's errors in our words, without anybody's data
transactions.py     plain functions of a connection, each run in one hop to a thread
sqlite.py           the embedded database: a thread that writes, and readers beside it
postgres.py         the shared database: a few threads
alive.py            which hosts still run, told by the operating system
server_presence.py  the same, told by PostgreSQL
server_listening.py what hosts on one PostgreSQL tell one another
schema.py           the tables
migrations.py       from one version of the tables to the next
rows.py             rows as plain dicts, and statements that are compiled once
database.py         Store: all of it together

Importing this package imports no database library; opening a store does.
"""

from agentos.store.database import Store

__all__ = ["Store"]
