"""A database's errors in our words: the place, what the driver said, and the way out. Never anybody's data."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from agentos.errors import StoreError
from agentos.store.locations import Place

_WRITABLE = "See that this user may write the file and its folder, and that the disk is not mounted read-only"
_SQLITE_WAYS: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: "Free some space on that disk; nothing of this transaction was written",
    sqlite3.SQLITE_READONLY: f"{_WRITABLE}; code that writes needs begin(), not read()",
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_PERM: _WRITABLE,
    sqlite3.SQLITE_NOTADB: "Give another path, or move that file away; it was not changed",
    sqlite3.SQLITE_CORRUPT: "Restore the file from a backup",
    sqlite3.SQLITE_BUSY: "Another process keeps it locked; end that process, or try again",
    sqlite3.SQLITE_IOERR: "See what the system's log says about that disk",
}
_UNREACHABLE = "See that PostgreSQL runs there and takes connections, and that the address is right"
_GRANT = "Grant that user the right to create and to write tables there"
_POSTGRES_WAYS: Mapping[str, str] = {  # by the beginning of the SQLSTATE
    "28": "Check the user and the password in the URL",
    "3D": "Create the database with `createdb`, or correct its name in the URL",
    "42501": _GRANT,
    "3F": _GRANT,
    "25006": "Code that writes needs begin(), not read(); and the server must not be a read-only copy",
    "53": "Give the server more connections, memory or disk, or try again when it has less to do",
    "08": _UNREACHABLE,
    "57": _UNREACHABLE,
}
_DATA_EXCEPTION = "22"
"""The class of SQLSTATE whose messages quote the values that were given."""
_LIMIT = 500
UNDONE = "the transaction was rolled back after an error in it"
"""What is said to who passes over an error and goes on."""


@contextlib.contextmanager
def told(place: Place, *, reaching: bool = False) -> Iterator[None]:
    """Raise what a database raises in the block as a StoreError; what is no database's error passes.

    With *reaching* the block does nothing but reach the database, so that an OSError in it is the database's too.
    """
    try:
        yield
    except Exception as error:
        driver_error = _driver_error(error, reaching=reaching)
        if driver_error is None:
            raise
        raise_alone(described(driver_error, place))


def raise_alone(problem: StoreError) -> NoReturn:
    """Raise *problem* with nothing chained to it: the driver's own error may carry parameters."""
    try:
        raise problem from None
    finally:
        problem.__context__ = None


def _driver_error(error: Exception, *, reaching: bool) -> BaseException | None:
    from sqlalchemy.exc import PendingRollbackError, StatementError

    if isinstance(error, PendingRollbackError):
        return sqlite3.OperationalError(UNDONE)
    if isinstance(error, StatementError):
        return error.orig or error
    if reaching and (isinstance(error, OSError | ValueError | sqlite3.Error) or _is_of_asyncpg(error)):
        return error
    return None


def described(error: BaseException, place: Place) -> StoreError:
    """Return what the driver said, and what to do about it."""
    return StoreError(f"the store at {place.shown}: {_words(error)[:_LIMIT]}", hint=_way_out(error))


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, sqlite3.Error | OSError):
        return _one_line(error) or type(error).__name__
    state = _sqlstate(error)
    if state is None or state.startswith(_DATA_EXCEPTION):
        return f"{_name(error)}: a value that it can't take" if state else _name(error)
    return _one_line(error.args[0] if error.args else "") or _name(error)


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())


def _name(error: BaseException) -> str:
    """Return the name of the driver's own class where SQLAlchemy has put another around it."""
    return type(getattr(error, "orig", None) or error).__name__


def _way_out(error: BaseException) -> str | None:
    if isinstance(error, sqlite3.Error):
        return _SQLITE_WAYS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if isinstance(error, OSError):
        return _UNREACHABLE
    state = _sqlstate(error) or ""
    return next((way for beginning, way in _POSTGRES_WAYS.items() if state.startswith(beginning)), None)


def _sqlstate(error: BaseException) -> str | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def _is_of_asyncpg(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] == "asyncpg"


def heard(context: Any) -> Any:
    """Set right what SQLAlchemy makes of a driver's errors (for its event `handle_error`).

    A connection that breaks, a limit of time and a text that is not Unicode come as OSError, TimeoutError and
    ValueError: wrapped, they can be told from what the block around a statement raises. A cancelled statement would
    have its connection thrown away at once, by a task that may be cancelled again: that is left to who rolls back.
    """
    from sqlalchemy.exc import DBAPIError

    error = context.original_exception
    if isinstance(error, asyncio.CancelledError):
        context.is_disconnect = False
    elif context.sqlalchemy_exception is None and isinstance(error, OSError | ValueError | OverflowError):
        return DBAPIError(None, None, error, hide_parameters=True)
    return None
