"""The store: what must last beyond one run, in a SQLite file, in PostgreSQL, or in memory.

locations.py    where a store is: a path or URL becomes a place that can be shown to anybody
keys.py         the key that seals what is stored
marks.py        that a log was begun, noted beside the key
failures.py     a database's errors in our words, without anybody's data
connections.py  transactions, in turn
sqlite.py       the embedded database: one connection per thread, no statement left half done
postgres.py     the shared database
alive.py        which hosts still run, told by the operating system
schema.py       the tables
migrations.py   from one version of the tables to the next
rows.py         rows as plain dicts
database.py     Store: all of it together

Importing this package imports no database library; opening a store does.
"""

from agentos.store.database import Store

__all__ = ["Store"]
