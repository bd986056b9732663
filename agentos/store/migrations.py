"""From one version of the tables to the next. A step that was released never changes; a new one is added behind it."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agentos.errors import StoreError
from agentos.store.transactions import Database

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

Step = Callable[["Connection"], None] | Sequence[str]
"""What leads to the next version: a function of a connection, or statements that every database understands."""

_logger = logging.getLogger("agentos.store")

_FIRST = (
    """CREATE TABLE proposals (
        id TEXT NOT NULL PRIMARY KEY,
        token_hash TEXT NOT NULL UNIQUE,
        principal TEXT NOT NULL,
        principal_data TEXT NOT NULL,
        tool TEXT NOT NULL,
        arguments TEXT,
        arguments_hash TEXT NOT NULL,
        definition TEXT NOT NULL,
        entry_state TEXT NOT NULL,
        preview TEXT NOT NULL,
        effect TEXT NOT NULL,
        reason TEXT NOT NULL,
        shadows TEXT NOT NULL,
        pack TEXT NOT NULL,
        version TEXT,
        origin TEXT NOT NULL,
        session_id TEXT,
        idempotency_key TEXT,
        parent TEXT,
        state TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION NOT NULL,
        decided_at DOUBLE PRECISION,
        decided_by TEXT,
        note TEXT,
        owner TEXT,
        attempts INTEGER NOT NULL,
        result TEXT,
        seal TEXT NOT NULL
    )""",
    "CREATE INDEX ix_proposals_principal ON proposals (principal)",
    "CREATE INDEX ix_proposals_state ON proposals (state)",
    """CREATE TABLE grants (
        id TEXT NOT NULL PRIMARY KEY,
        tool TEXT NOT NULL,
        definition TEXT,
        decision TEXT NOT NULL,
        principal TEXT,
        arguments TEXT,
        session_id TEXT,
        created_at DOUBLE PRECISION NOT NULL,
        created_by TEXT,
        state TEXT NOT NULL,
        ended_at DOUBLE PRECISION,
        seal TEXT NOT NULL
    )""",
    """CREATE TABLE idempotency (
        principal TEXT NOT NULL,
        tool TEXT NOT NULL,
        "key" TEXT NOT NULL,
        arguments_hash TEXT NOT NULL,
        state TEXT NOT NULL,
        owner TEXT NOT NULL,
        proposal TEXT,
        result TEXT,
        created_at DOUBLE PRECISION NOT NULL,
        finished_at DOUBLE PRECISION,
        seal TEXT NOT NULL,
        PRIMARY KEY (principal, tool, "key")
    )""",
    "CREATE INDEX ix_idempotency_created_at ON idempotency (created_at)",
    """CREATE TABLE pins (
        tool TEXT NOT NULL PRIMARY KEY,
        kind TEXT NOT NULL,
        definition TEXT NOT NULL,
        data TEXT NOT NULL,
        accepted_at DOUBLE PRECISION NOT NULL,
        accepted_by TEXT,
        renamed_from TEXT,
        seal TEXT NOT NULL
    )""",
    """CREATE TABLE flags (
        pack TEXT NOT NULL PRIMARY KEY,
        enabled BOOLEAN NOT NULL,
        "at" DOUBLE PRECISION NOT NULL,
        "by" TEXT
    )""",
    """CREATE TABLE audit (
        seq BIGINT NOT NULL PRIMARY KEY,
        prev TEXT NOT NULL,
        hash TEXT NOT NULL,
        body TEXT NOT NULL,
        closes TEXT
    )""",
    "CREATE INDEX ix_audit_closes ON audit (closes) WHERE closes IS NOT NULL",
    """CREATE TABLE audit_head (
        id INTEGER NOT NULL PRIMARY KEY,
        first_seq BIGINT NOT NULL,
        first_prev TEXT NOT NULL,
        seq BIGINT NOT NULL,
        hash TEXT NOT NULL,
        key_id TEXT NOT NULL,
        signature TEXT NOT NULL
    )""",
)

_FLAGS = ("ALTER TABLE proposals ADD COLUMN flags TEXT",)
"""What guardrails found strange about a call stands in its proposal."""

_TURNS = (
    "ALTER TABLE proposals ADD COLUMN call_id TEXT",
    "CREATE INDEX ix_proposals_parent ON proposals (parent)",
    """CREATE TABLE turns (
        id TEXT NOT NULL PRIMARY KEY,
        state TEXT NOT NULL,
        owner TEXT,
        data TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        seal TEXT NOT NULL
    )""",
    "CREATE INDEX ix_turns_created_at ON turns (created_at)",
)
"""A call that waits has the id that its caller gave it, and a turn that waits for one is kept."""

_DECLARATIONS = (
    """CREATE TABLE declarations (
        pack TEXT NOT NULL PRIMARY KEY,
        bound TEXT NOT NULL,
        body TEXT NOT NULL,
        "at" DOUBLE PRECISION NOT NULL,
        seal TEXT NOT NULL
    )""",
)
"""What packs in processes of their own declared last time."""

_CHANNELS = (
    """CREATE TABLE channel_inbox (
        id TEXT NOT NULL PRIMARY KEY,
        channel TEXT NOT NULL,
        message TEXT NOT NULL,
        conversation TEXT NOT NULL,
        sender TEXT NOT NULL,
        data TEXT NOT NULL,
        position BIGINT NOT NULL,
        state TEXT NOT NULL,
        owner TEXT,
        attempts INTEGER NOT NULL,
        reason TEXT,
        turn TEXT,
        received_at DOUBLE PRECISION NOT NULL,
        seal TEXT NOT NULL,
        UNIQUE (channel, message)
    )""",
    "CREATE INDEX ix_channel_inbox_conversation ON channel_inbox (channel, conversation, state)",
    "CREATE INDEX ix_channel_inbox_state ON channel_inbox (state)",
    "CREATE INDEX ix_channel_inbox_position ON channel_inbox (position)",
    "CREATE INDEX ix_channel_inbox_received_at ON channel_inbox (received_at)",
    """CREATE TABLE channel_outbox (
        id TEXT NOT NULL PRIMARY KEY,
        channel TEXT NOT NULL,
        conversation TEXT NOT NULL,
        answers TEXT,
        data TEXT NOT NULL,
        position BIGINT NOT NULL,
        state TEXT NOT NULL,
        owner TEXT,
        attempts INTEGER NOT NULL,
        due_at DOUBLE PRECISION NOT NULL,
        reason TEXT,
        receipt TEXT,
        created_at DOUBLE PRECISION NOT NULL,
        seal TEXT NOT NULL
    )""",
    "CREATE INDEX ix_channel_outbox_conversation ON channel_outbox (channel, conversation, state)",
    "CREATE INDEX ix_channel_outbox_state ON channel_outbox (state)",
    "CREATE INDEX ix_channel_outbox_position ON channel_outbox (position)",
    "CREATE INDEX ix_channel_outbox_answers ON channel_outbox (answers)",
    "CREATE INDEX ix_channel_outbox_created_at ON channel_outbox (created_at)",
)
"""What came by channels, and what is to be sent by them."""

_BUS = (
    """CREATE TABLE bus_messages (
        id TEXT NOT NULL PRIMARY KEY,
        body TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL
    )""",
    "CREATE INDEX ix_bus_messages_created_at ON bus_messages (created_at)",
)
"""What hosts tell one another and is too large for a notification."""

_WORKFLOWS = (
    """CREATE TABLE workflow_runs (
        id TEXT NOT NULL PRIMARY KEY,
        workflow TEXT NOT NULL,
        version TEXT NOT NULL,
        run_key TEXT,
        parent TEXT,
        data TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        result TEXT,
        ending TEXT,
        wants TEXT,
        decisions TEXT,
        owner TEXT,
        fence BIGINT NOT NULL,
        segment BIGINT NOT NULL,
        deadline DOUBLE PRECISION,
        created_at DOUBLE PRECISION NOT NULL,
        updated_at DOUBLE PRECISION NOT NULL,
        seal TEXT NOT NULL,
        UNIQUE (workflow, run_key)
    )""",
    "CREATE INDEX ix_workflow_runs_state ON workflow_runs (state)",
    "CREATE INDEX ix_workflow_runs_owner ON workflow_runs (owner)",
    "CREATE INDEX ix_workflow_runs_parent ON workflow_runs (parent)",
    "CREATE INDEX ix_workflow_runs_created_at ON workflow_runs (created_at)",
    """CREATE TABLE workflow_waits (
        run TEXT NOT NULL,
        step TEXT NOT NULL,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        ref TEXT,
        due_at DOUBLE PRECISION,
        since DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (run, step)
    )""",
    "CREATE INDEX ix_workflow_waits_due_at ON workflow_waits (due_at)",
    "CREATE INDEX ix_workflow_waits_kind ON workflow_waits (kind, ref)",
    """CREATE TABLE workflow_signals (
        id TEXT NOT NULL PRIMARY KEY,
        run TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        position BIGINT NOT NULL,
        taken_by TEXT,
        seal TEXT NOT NULL
    )""",
    "CREATE INDEX ix_workflow_signals_run ON workflow_signals (run, name)",
    "CREATE INDEX ix_workflow_signals_taken_by ON workflow_signals (taken_by)",
    """CREATE TABLE workflow_hosts (
        owner TEXT NOT NULL PRIMARY KEY,
        beat BIGINT NOT NULL
    )""",
    """CREATE TABLE workflow_schedules (
        id TEXT NOT NULL PRIMARY KEY,
        workflow TEXT NOT NULL,
        data TEXT NOT NULL,
        next_at DOUBLE PRECISION NOT NULL,
        last_at DOUBLE PRECISION,
        seal TEXT NOT NULL
    )""",
    "CREATE INDEX ix_workflow_schedules_next_at ON workflow_schedules (next_at)",
)
"""Runs of workflows: what they are, who has them, and what they wait for. Their steps are DBOS's."""

STEPS: tuple[Step, ...] = (_FIRST, _FLAGS, _TURNS, _DECLARATIONS, _CHANNELS, _BUS, _WORKFLOWS)


async def check(database: Database, steps: Sequence[Step] = STEPS) -> int:
    """Return the version of *database*, 0 if it is empty; raise StoreError if it is not one for us to use."""
    return await database.read(lambda connection: _version(connection, database.place.shown, len(steps)))


async def migrate(database: Database, steps: Sequence[Step] = STEPS) -> None:
    """Bring *database* to the newest version, in one transaction for each step. Several processes may do so at once."""
    while await check(database, steps) < len(steps):
        version = await database.write(lambda connection: _advance(connection, database, steps))
        if version is not None:
            _logger.info("the store at %s is now of version %d", database.place.shown, version)


def _advance(connection: "Connection", database: Database, steps: Sequence[Step]) -> int | None:
    """Take the next step and return the version it leads to; None if another process was faster."""
    from agentos.store import schema

    database.lock(connection)
    version = _version(connection, database.place.shown, len(steps))
    if version == len(steps):
        return None
    if version == 0:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS agentos_schema (version INTEGER NOT NULL)")
        connection.exec_driver_sql("INSERT INTO agentos_schema (version) VALUES (0)")
    _take(steps[version], connection)
    connection.execute(schema.version.update().values(version=version + 1))
    return version + 1


def _take(step: Step, connection: "Connection") -> None:
    if callable(step):
        step(connection)
        return
    for statement in step:
        connection.exec_driver_sql(statement)


def _version(connection: "Connection", shown: str, newest: int) -> int:
    from sqlalchemy import inspect

    tables = set(inspect(connection).get_table_names())
    versions: list[object] = []
    if "agentos_schema" in tables:
        versions = list(connection.exec_driver_sql("SELECT version FROM agentos_schema").scalars())
    if not versions:
        _refuse_strange(tables - {"agentos_schema"}, shown)
        return 0
    version = versions[0]
    if len(versions) > 1 or not isinstance(version, int) or version < 1:
        raise StoreError(
            f"the store at {shown}: its table agentos_schema has no usable version", hint="Restore a backup"
        )
    if version > newest:
        raise StoreError(
            f"the store at {shown} is of version {version}, and this agentos knows versions up to {newest}",
            hint="Upgrade agentos, or give it another database",
        )
    return version


def _refuse_strange(tables: set[str], shown: str) -> None:
    from agentos.store.schema import metadata

    if foreign := sorted(tables - set(metadata.tables)):
        names = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")  # noqa: PLR2004 - enough to know it by
        raise StoreError(
            f"the database at {shown} belongs to something else: it has tables ({names[:200]}) and none of ours",
            hint="Give agentos a database of its own",
        )
    if tables:
        raise StoreError(f"the store at {shown} has our tables but not their version", hint="Restore a backup")
