"""The process that asks a database: one request on standard input, one reply on standard output.

It runs apart because a single step of a query can take longer, or more memory, than anybody waits for, and no library
can be stopped in the middle of one. A process can. Of the standard library alone, but for DuckDB and sqlglot where a
request needs them; where these are found is part of the request.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO


class RefusedError(Exception):
    """A statement that is not a single query, or reaches for what it may not.

    `is_clear` says that the message is enough; else it helps to know what kind of statement it was.
    """

    def __init__(self, message: str, *, is_clear: bool = False) -> None:
        super().__init__(message)
        self.is_clear = is_clear


def main() -> None:
    """Answer one request."""
    replies = _private_stdout()
    request = json.load(sys.stdin)
    sys.path.extend(request.pop("paths", ()))
    try:
        reply: dict[str, Any] = {"ok": _action(request)(request)}
    except RefusedError as error:
        reply = {"refused": str(error), "is_clear": error.is_clear}
    except MemoryError:
        reply = {"error": "it needs more memory than it may have; ask for less"}
    except Exception as error:  # noqa: BLE001 - whatever the database says is the reply
        reply = {"error": _database_message(error)}
    with replies:
        json.dump(reply, replies)


def _private_stdout() -> TextIO:
    """Return standard output for the reply alone; what a library prints goes nowhere, by whatever way it prints it."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return replies


def _action(request: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    if request["action"] == "classify":
        from agentos_pack_sql_query._child_kinds import classify

        return classify
    if request["dialect"] == "sqlite":
        from agentos_pack_sql_query import _child_sqlite

        return {"query": _child_sqlite.query, "schema": _child_sqlite.schema}[request["action"]]
    from agentos_pack_sql_query import _child_duckdb

    return {"query": _child_duckdb.query, "schema": _child_duckdb.schema}[request["action"]]


def _database_message(error: Exception) -> str:
    """Return what the database says, without the hints that it adds for people at its own prompt."""
    return str(error).partition("\n\n")[0].strip()[:500] or type(error).__name__


if __name__ == "__main__":
    main()
