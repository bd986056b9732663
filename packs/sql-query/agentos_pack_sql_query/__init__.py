"""Read a SQL database: its schema, and one SELECT at a time.

sources    which database: db.url, or files
values     Answer, Schema, Table, Column, Options
engines    Engine, and the one for a source
_files     SQLite and DuckDB files, each call in a process of its own
_child     what runs in that process       (_child_sqlite, _child_duckdb, _child_kinds)
_postgres  PostgreSQL, by asyncpg
_rows      rows as JSON, within bounds
_tools     sql_schema, sql_query

A query can't write, read other files, load code, or use more time and memory than it may. That is enforced by the
database and the operating system; SQL is parsed only to say better what was wrong with it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos import ExtensionPack, PackContext

__version__ = "0.1.0"

__all__ = ["create_extension_pack"]


def create_extension_pack(context: "PackContext") -> "ExtensionPack":
    """Return the pack `sql-query` with its two tools; they wait for the secret db.url unless files are given."""
    from agentos_pack_common import read_options

    from agentos import Descriptor, ExtensionPack, SecretRequirement, with_displays
    from agentos_pack_sql_query._displays import DISPLAYS
    from agentos_pack_sql_query._tools import SqlTools
    from agentos_pack_sql_query.values import Options

    options = read_options(Options, context.options)
    needs = () if options.files else (SecretRequirement("db.url", description="Which database to read"),)
    return ExtensionPack(
        name="sql-query",
        version=__version__,
        description="The schema of a SQL database, and one SELECT at a time, read-only and within limits.",
        options=Options,
        descriptors=with_displays(
            [Descriptor("tool", one.name, one, required_secrets=needs) for one in SqlTools(options).all()], DISPLAYS
        ),
    )
