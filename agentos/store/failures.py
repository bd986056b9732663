"""A database's errors in our words: the place, what the driver said, and the way out. Never anybody's data."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from agentos.base.full_disks import FREE_SOME, has_no_room, is_full
from agentos.errors import StoreError
from agentos.store.locations import StorePlace

_WRITABLE = "See that this user may write the file and its folder, and that the disk is not mounted read-only"
_SQLITE_WAYS: Mapping[int, str] = {
    sqlite3.SQLITE_READONLY: f"{_WRITABLE}; code that writes needs write(), not read()",
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_PERM: _WRITABLE,
    sqlite3.SQLITE_NOTADB: "Give another path, or move that file away; it was not changed",
    sqlite3.SQLITE_CORRUPT: "Restore the file from a backup",
    sqlite3.SQLITE_BUSY: "Another process keeps it locked; end that process, or try again",
    sqlite3.SQLITE_IOERR: "See what the system's log says about that disk",
}
_NEEDS_ROOM = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
"""What SQLite says, among others, where a file beside the database can't be made: even to read, it makes some."""
_OF_SURROUNDINGS = (
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
)
_UNREACHABLE = "See that PostgreSQL runs there and takes connections, and that the address is right"
_GRANT = "Grant that user the right to create and to write tables there"
_POSTGRES_WAYS: Mapping[str, str] = {  # by the beginning of the SQLSTATE
    "28": "Check the user and the password in the URL",
    "3D": "Create the database with `createdb`, or correct its name in the URL",
    "42501": _GRANT,
    "3F": _GRANT,
    "25006": "Code that writes needs write(), not read(); and the server must not be a read-only copy",
    "53": "Give the server more connections, memory or disk, or try again when it has less to do",
    "08": _UNREACHABLE,
    "57": _UNREACHABLE,
}
_REFUSALS: Mapping[str, str] = {  # what a server says to who connects: psycopg passes on the words alone
    "password": "28",
    "pg_hba.conf": "28",
    'role "': "28",
    'database "': "3D",
    "too many": "53",
    "connection slots": "53",
}
_DISK_FULL = "53100"
_AWAY = ("08", "28", "3D", "53", "57")
_DATA_EXCEPTION = "22"
"""The class of SQLSTATE whose messages quote the values that were given."""
_LIMIT = 500
UNDONE = "the transaction was rolled back after an error in it"
"""What is said to who passes over an error and goes on."""


def in_our_words(error: BaseException, place: StorePlace, *, reaching: bool = False) -> BaseException:
    """Return what a database raised as a StoreError, with nothing chained to it; any other error as it is.

    With *reaching* nothing but the database can have raised it, so that an OSError is the database's too.
    """
    driver_error = _driver_error(error, reaching=reaching)
    return error if driver_error is None else described(driver_error, place)


def _driver_error(error: BaseException, *, reaching: bool) -> BaseException | None:
    from sqlalchemy.exc import PendingRollbackError, StatementError

    if isinstance(error, PendingRollbackError):
        return sqlite3.OperationalError(UNDONE)
    if isinstance(error, StatementError):
        return error.orig or error
    if isinstance(error, sqlite3.Error) or _is_of_psycopg(error):
        return error
    return error if reaching and isinstance(error, OSError | ValueError) else None


def described(error: BaseException, place: StorePlace) -> StoreError:
    """Return what the driver said, and what to do about it."""
    if _is_of_full_disk(error, place):
        disk = "the disk is full" if place.dsn is None else "the server's disk is full"
        way = f"{FREE_SOME}; nothing of this transaction was written"
        return StoreError(f"the store at {place.shown}: {disk}", hint=way, full_disk=True)
    said = f"the store at {place.shown}: {_words(error)[:_LIMIT]}"
    return StoreError(said, hint=_way_out(error), unavailable=_is_of_surroundings(error))


def _is_of_full_disk(error: BaseException, place: StorePlace) -> bool:
    """Tell whether a full disk is behind *error*: SQLite says so only where a write fails, not where it can't read."""
    if not isinstance(error, sqlite3.Error):
        return is_full(error) or _sqlstate(error) == _DISK_FULL
    code = _sqlite_code(error)
    return code == sqlite3.SQLITE_FULL or (
        code in _NEEDS_ROOM and place.path is not None and has_no_room(place.path.parent)
    )


def _is_of_surroundings(error: BaseException) -> bool:
    """Tell whether the disk, a lock, rights or the way to a server are behind *error*, and not what is stored."""
    if isinstance(error, sqlite3.Error):
        return _sqlite_code(error) in _OF_SURROUNDINGS
    return isinstance(error, OSError) or _is_of_connecting(error) or (_sqlstate(error) or "").startswith(_AWAY)


def _sqlite_code(error: sqlite3.Error) -> int:
    """Return what went wrong, without the details that SQLite adds to it."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, sqlite3.Error | OSError):
        return _one_line(error) or type(error).__name__
    if _is_of_connecting(error):
        return _one_line(error).rpartition("FATAL: ")[2]
    state = _sqlstate(error)
    if state is None or state.startswith(_DATA_EXCEPTION):
        return f"{_name(error)}: a value that it can't take" if state else _name(error)
    diagnosis: Any = getattr(error, "diag", None)  # the whole text has the row in it
    return _one_line((diagnosis and diagnosis.message_primary) or "") or _name(error)


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())


def _name(error: BaseException) -> str:
    """Return the name of the driver's own class where SQLAlchemy has put another around it."""
    return type(getattr(error, "orig", None) or error).__name__


def _way_out(error: BaseException) -> str | None:
    if isinstance(error, sqlite3.Error):
        return _SQLITE_WAYS.get(_sqlite_code(error))
    if isinstance(error, OSError):
        return _UNREACHABLE
    if _is_of_connecting(error):
        said = str(error)
        return _POSTGRES_WAYS[next((state for part, state in _REFUSALS.items() if part in said), "08")]
    state = _sqlstate(error) or ""
    return next((way for beginning, way in _POSTGRES_WAYS.items() if state.startswith(beginning)), None)


def _sqlstate(error: BaseException) -> str | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def _is_of_psycopg(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] == "psycopg" for kind in type(error).__mro__)


def _is_of_connecting(error: BaseException) -> bool:
    """Tell whether a connection could not be made, or was lost: what is said of that has no data in it."""
    if not _is_of_psycopg(error) or _sqlstate(error) is not None:
        return False
    return any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)


def heard(context: Any) -> Any:
    """Set right what SQLAlchemy makes of a driver's errors (for its event `handle_error`).

    A text that is not Unicode and a number that is too large come as ValueError and OverflowError: wrapped, they can be
    told from what the function around a statement raises.
    """
    from sqlalchemy.exc import DBAPIError

    error = context.original_exception
    if context.sqlalchemy_exception is None and isinstance(error, ValueError | OverflowError):
        return DBAPIError(None, None, error, hide_parameters=True)
    return None
