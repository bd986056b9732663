"""What kind of statement somebody sent, for a message that says so. Never a guard: parsers and databases differ."""

from typing import Any

_DIALECTS = {"sqlite": "sqlite", "duckdb": "duckdb", "postgresql": "postgres"}
_LISTED = 5


def classify(request: dict[str, Any]) -> str | None:
    """Say what the statements are, such as "a DELETE"; None if they can't be read or are a single query."""
    import sqlglot
    from sqlglot import expressions

    try:
        parsed = [one for one in sqlglot.parse(request["sql"], read=_DIALECTS[request["dialect"]]) if one is not None]
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    kinds = [_kind(one) for one in parsed]
    if len(kinds) > 1:
        return f"{len(kinds)} statements ({', '.join(kinds[:_LISTED])})"
    if not kinds or isinstance(parsed[0], expressions.Query):
        return None
    return f"{'an' if kinds[0][0] in 'AEIOU' else 'a'} {kinds[0]}"


def _kind(statement: Any) -> str:
    from sqlglot import expressions

    if isinstance(statement, expressions.Command):
        return str(statement.this).upper()[:20]
    return str(statement.key).upper()
