"""The tables as they are now; `migrations.py` makes them. JSON is text, times are seconds since 1970."""

from typing import Any

from sqlalchemy import (
    DOUBLE_PRECISION,
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()


def _required(name: str, type_: Any = Text, **options: Any) -> "Column[Any]":
    return Column(name, type_, nullable=False, **options)


def _key(name: str, type_: Any = Text) -> "Column[Any]":
    return Column(name, type_, primary_key=True, nullable=False, autoincrement=False)


version = Table("agentos_schema", metadata, _required("version", Integer))

proposals = Table(
    "proposals",
    metadata,
    _key("id"),
    _required("token_hash", unique=True),
    _required("principal", index=True),
    _required("principal_data"),
    _required("tool"),
    Column("arguments", Text),
    _required("arguments_hash"),
    _required("definition"),
    _required("entry_state"),
    _required("preview"),
    _required("effect"),
    _required("reason"),
    _required("shadows"),
    _required("pack"),
    Column("version", Text),
    _required("origin"),
    Column("session_id", Text),
    Column("idempotency_key", Text),
    Column("parent", Text),
    _required("state", index=True),
    _required("created_at", DOUBLE_PRECISION),
    _required("expires_at", DOUBLE_PRECISION),
    Column("decided_at", DOUBLE_PRECISION),
    Column("decided_by", Text),
    Column("note", Text),
    Column("owner", Text),
    _required("attempts", Integer),
    Column("result", Text),
    _required("seal"),
    Column("flags", Text),
    Column("call_id", Text),
    Index("ix_proposals_parent", "parent"),
)

turns = Table(
    "turns",
    metadata,
    _key("id"),
    _required("state"),
    Column("owner", Text),
    _required("data"),
    _required("created_at", DOUBLE_PRECISION, index=True),
    _required("seal"),
)

grants = Table(
    "grants",
    metadata,
    _key("id"),
    _required("tool"),
    Column("definition", Text),
    _required("decision"),
    Column("principal", Text),
    Column("arguments", Text),
    Column("session_id", Text),
    _required("created_at", DOUBLE_PRECISION),
    Column("created_by", Text),
    _required("state"),
    Column("ended_at", DOUBLE_PRECISION),
    _required("seal"),
)

idempotency = Table(
    "idempotency",
    metadata,
    _key("principal"),
    _key("tool"),
    _key("key"),
    _required("arguments_hash"),
    _required("state"),
    _required("owner"),
    Column("proposal", Text),
    Column("result", Text),
    _required("created_at", DOUBLE_PRECISION, index=True),
    Column("finished_at", DOUBLE_PRECISION),
    _required("seal"),
)

pins = Table(
    "pins",
    metadata,
    _key("tool"),
    _required("kind"),
    _required("definition"),
    _required("data"),
    _required("accepted_at", DOUBLE_PRECISION),
    Column("accepted_by", Text),
    Column("renamed_from", Text),
    _required("seal"),
)

flags = Table(
    "flags",
    metadata,
    _key("pack"),
    _required("enabled", Boolean),
    _required("at", DOUBLE_PRECISION),
    Column("by", Text),
)

declarations = Table(
    "declarations",
    metadata,
    _key("pack"),
    _required("bound"),
    _required("body"),
    _required("at", DOUBLE_PRECISION),
    _required("seal"),
)

channel_inbox = Table(
    "channel_inbox",
    metadata,
    _key("id"),
    _required("channel"),
    _required("message"),
    _required("conversation"),
    _required("sender"),
    _required("data"),
    _required("position", BigInteger, index=True),
    _required("state", index=True),
    Column("owner", Text),
    _required("attempts", Integer),
    Column("reason", Text),
    Column("turn", Text),
    _required("received_at", DOUBLE_PRECISION, index=True),
    _required("seal"),
    UniqueConstraint("channel", "message"),
    Index("ix_channel_inbox_conversation", "channel", "conversation", "state"),
)

channel_outbox = Table(
    "channel_outbox",
    metadata,
    _key("id"),
    _required("channel"),
    _required("conversation"),
    Column("answers", Text, index=True),
    _required("data"),
    _required("position", BigInteger, index=True),
    _required("state", index=True),
    Column("owner", Text),
    _required("attempts", Integer),
    _required("due_at", DOUBLE_PRECISION),
    Column("reason", Text),
    Column("receipt", Text),
    _required("created_at", DOUBLE_PRECISION, index=True),
    _required("seal"),
    Index("ix_channel_outbox_conversation", "channel", "conversation", "state"),
)

bus_messages = Table(
    "bus_messages",
    metadata,
    _key("id"),
    _required("body"),
    _required("created_at", DOUBLE_PRECISION, index=True),
)

workflow_runs = Table(
    "workflow_runs",
    metadata,
    _key("id"),
    _required("workflow"),
    _required("version"),
    Column("run_key", Text),
    Column("parent", Text, index=True),
    _required("data"),
    _required("state", index=True),
    Column("reason", Text),
    Column("result", Text),
    Column("ending", Text),
    Column("wants", Text),
    Column("decisions", Text),
    Column("owner", Text, index=True),
    _required("fence", BigInteger),
    _required("segment", BigInteger),
    Column("deadline", DOUBLE_PRECISION),
    _required("created_at", DOUBLE_PRECISION, index=True),
    _required("updated_at", DOUBLE_PRECISION),
    _required("seal"),
    UniqueConstraint("workflow", "run_key"),
)

workflow_waits = Table(
    "workflow_waits",
    metadata,
    _key("run"),
    _key("step"),
    _required("name"),
    _required("kind"),
    Column("ref", Text),
    Column("due_at", DOUBLE_PRECISION, index=True),
    _required("since", DOUBLE_PRECISION),
    Index("ix_workflow_waits_kind", "kind", "ref"),
)

workflow_signals = Table(
    "workflow_signals",
    metadata,
    _key("id"),
    _required("run"),
    _required("name"),
    _required("value"),
    _required("position", BigInteger),
    Column("taken_by", Text, index=True),
    _required("seal"),
    Index("ix_workflow_signals_run", "run", "name"),
)

workflow_hosts = Table("workflow_hosts", metadata, _key("owner"), _required("beat", BigInteger))

workflow_schedules = Table(
    "workflow_schedules",
    metadata,
    _key("id"),
    _required("workflow"),
    _required("data"),
    _required("next_at", DOUBLE_PRECISION, index=True),
    Column("last_at", DOUBLE_PRECISION),
    _required("seal"),
)

audit = Table(
    "audit",
    metadata,
    _key("seq", BigInteger),
    _required("prev"),
    _required("hash"),
    _required("body"),
    Column("closes", Text),
)
Index("ix_audit_closes", audit.c.closes)  # migrations.py leaves NULL out of it; to say so here imports every dialect

audit_head = Table(
    "audit_head",
    metadata,
    _key("id", Integer),
    _required("first_seq", BigInteger),
    _required("first_prev"),
    _required("seq", BigInteger),
    _required("hash"),
    _required("key_id"),
    _required("signature"),
)
