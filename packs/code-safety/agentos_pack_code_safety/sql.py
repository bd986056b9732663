"""Statements: rules about their syntax tree. What can't be read is told, not passed over."""

import logging
import re
from collections.abc import Iterator
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from agentos_pack_code_safety.dangers import Danger, Severity

_LONGEST = 100_000
_REACHING_OUT = re.compile(
    r"\b(?:xp_cmdshell|sp_oacreate|load_file|pg_read_(?:binary_)?file|pg_ls_dir|lo_import|lo_export|pg_execute_server_program"
    r"|dblink(?:_connect|_exec)?|load_extension|readfile|writefile|edit|utl_(?:http|file|tcp)|dbms_scheduler|system)\s*\(",
    re.IGNORECASE,
)
_IN_TEXT: tuple[tuple[str, Severity, str, re.Pattern[str]], ...] = (
    ("run-program", "block", "runs a program on the server", re.compile(r"\bcopy\b[^;]{0,500}\b(?:from|to)\s+program\b|\bxp_cmdshell\b", re.IGNORECASE)),
    ("reach-files", "block", "reads or writes files of the server", re.compile(r"\binto\s+(?:out|dump)file\b|\bload\s+data\b", re.IGNORECASE)),
    ("reach-outside", "block", "uses a function that reaches beyond the database", _REACHING_OUT),
    ("change-engine", "block", "changes how the engine protects itself", re.compile(r"\bpragma\s+writable_schema|\bset\s+(?:global|session_replication_role)|\balter\s+system\b|\battach\s+(?:database\s+)?['\"]", re.IGNORECASE)),
)  # fmt: skip


def dangers_of_sql(text: str) -> list[Danger]:
    """Return what is dangerous in one or several statements."""
    if len(text) > _LONGEST:
        return [_danger("unreadable", "flag", "is too long to be looked at")]
    found = [_danger(rule, severity, reason) for rule, severity, reason, pattern in _IN_TEXT if pattern.search(text)]
    try:
        statements = [one for one in _parsed(text) if one is not None]
    except (SqlglotError, RecursionError):
        return sorted({*found, _danger("unreadable", "flag", "can't be read as SQL")})
    if len(statements) > 1:
        found.append(_danger("several-statements", "flag", "has more than one statement"))
    return sorted({*found, *(danger for one in statements for danger in _of_statement(one))})


def _parsed(text: str) -> list[Any]:
    logger = logging.getLogger("sqlglot")
    logger.addFilter(_quiet)
    try:
        return sqlglot.parse(text)
    finally:
        logger.removeFilter(_quiet)


def _quiet(_record: logging.LogRecord) -> bool:
    return False


def _danger(rule: str, severity: Severity, reason: str) -> Danger:
    return Danger(f"sql.{rule}", severity, reason)


def _of_statement(statement: exp.Expression) -> Iterator[Danger]:
    for node in statement.walk():
        match node:
            case exp.Drop() | exp.TruncateTable():
                yield _danger("drop", "block", "deletes a table or database")
            case exp.Delete() | exp.Update() if _is_for_all(node):
                yield _danger(
                    "change-everything", "block", "changes or deletes all rows: there is no WHERE that limits it"
                )
            case exp.Alter():
                yield _danger("change-schema", "flag", "changes the structure")
            case exp.Grant() | exp.Revoke():
                yield _danger("change-rights", "block", "changes who may do what")
            case exp.Command() if str(node.this).upper() in ("GRANT", "REVOKE", "CREATE USER", "ALTER USER"):
                yield _danger("change-rights", "block", "changes who may do what")
            case exp.Or() if any(_is_true(side) for side in (node.left, node.right)):
                yield _danger("always-true", "flag", "has a condition that is always true")


def _is_for_all(node: exp.Expression) -> bool:
    where = node.args.get("where")
    return where is None or _is_true(where.this)


def _is_true(side: exp.Expr) -> bool:
    node = side.unnest()
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.EQ):
        return bool(node.left == node.right) and not isinstance(node.left, exp.Placeholder | exp.Parameter)
    return isinstance(node, exp.Literal) and not node.is_string and node.this != "0"
