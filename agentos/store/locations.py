"""Where a store is: a path or a URL becomes a place that can be shown to anybody."""

import os
import re
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import attrs

from agentos.errors import StoreError

ACCEPTED = (
    "give a path, sqlite:///path, postgresql://user@host/database, 'default' for the user's own file, "
    "or nothing for a store in memory"
)
_SQLITE = ("sqlite", "sqlite+aiosqlite")
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg", "postgresql+asyncpg")
_IN_MEMORY = ("", ":memory:")
_SLIP = re.compile(r"(sqlite|postgres(ql)?)(\+\w+)?:", re.IGNORECASE)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::(?P<port>\d{1,5}))?")


@attrs.frozen
class StorePlace:
    """Where a store keeps its data: a file, a server, or (neither given) memory. `shown` has no password in it."""

    shown: str
    path: Path | None = None
    dsn: str | None = attrs.field(default=None, repr=False)

    @property
    def is_durable(self) -> bool:
        """Tell whether what is stored there outlives the process."""
        return self.path is not None or self.dsn is not None


IN_MEMORY = StorePlace("memory")


def data_folder() -> Path:
    """Return the folder for the user's data: `AGENTOS_DATA`, else what the platform says."""
    given = os.environ.get("AGENTOS_DATA")
    if given:
        return Path(given).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("agentos", appauthor=False))


def default_location() -> Path:
    """Return the database file in the user's data folder."""
    return data_folder() / "agentos.db"


def place_of(location: str | Path | None) -> StorePlace:
    """Return the place that *location* means; raise StoreError if it means none."""
    if location is None:
        return IN_MEMORY
    if not isinstance(location, str | Path):
        raise StoreError(f"a store can't be at a value of type {type(location).__name__}; {ACCEPTED}")
    if location == "default":
        return _file(default_location())
    if isinstance(location, Path) or "://" not in location:
        return _file_or_memory(str(location))
    scheme = location.partition("://")[0].lower()
    if scheme in _SQLITE:
        return _in_sqlite_url(location)
    if scheme in _POSTGRES:
        return _on_server("postgresql" + location[len(scheme) :])
    raise StoreError(f"a store can't be at a {scheme[:40]!r} URL; {ACCEPTED}")


def _file_or_memory(path: str) -> StorePlace:
    if not path or "\0" in path or _SLIP.match(path):
        raise StoreError(f"that is no path for a store; {ACCEPTED}")  # not shown: it may be a URL with a password
    return IN_MEMORY if path == ":memory:" else _file(Path(path))


def _file(path: Path) -> StorePlace:
    # A folder called `~` is never what was meant; and the working folder may change before the store is opened.
    path = path.expanduser().absolute()
    return StorePlace(str(path), path=path)


def _in_sqlite_url(url: str) -> StorePlace:
    rest = url.partition("://")[2]
    if rest in _IN_MEMORY:
        return IN_MEMORY
    if not rest.startswith("/") or "?" in rest:
        raise StoreError(
            "a SQLite URL for a store has no host and no options; write sqlite:///relative/path or sqlite:////absolute/path"
        )
    return IN_MEMORY if rest[1:] in _IN_MEMORY else _file_or_memory(rest[1:])


def _on_server(url: str) -> StorePlace:
    parts = _split(url)
    options = dict(parse_qsl(parts.query))
    spec = parts.netloc.rpartition("@")[2] or options.get("host") or os.environ.get("PGHOST") or "localhost"
    default_port = options.get("port") or os.environ.get("PGPORT") or "5432"
    hosts = ",".join(_with_port(unquote(host), default_port) for host in spec.split(","))
    return StorePlace(f"postgresql://{hosts}/{_database_name(parts, options)}", dsn=url)


def _split(url: str) -> SplitResult:
    """Take a PostgreSQL URL apart. What is wrong with it is said without the URL: a part of it is a password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise StoreError(f"the PostgreSQL URL can't be read; {ACCEPTED}") from None
    if parts.fragment or parts.netloc.count("@") > 1 or "@" in parts.path + parts.query:
        raise StoreError(
            "the PostgreSQL URL is ambiguous: write @ as %40, / as %2F, ? as %3F and # as %23 in a password"
        )
    return parts


def _with_port(host: str, port: str) -> str:
    if host.startswith("/"):
        return f"{host}:{port}"  # the folder of a socket
    found = _HOST.fullmatch(host)
    if found is None:
        raise StoreError("the PostgreSQL URL has no usable host and port; write postgresql://user@host:5432/database")
    return f"{found['host'].lower() or 'localhost'}:{found['port'] or port}"


def _database_name(parts: SplitResult, options: dict[str, str]) -> str:
    named = unquote(parts.path[1:]) or options.get("dbname") or options.get("database")
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    return named or os.environ.get("PGDATABASE") or unquote(user) or options.get("user") or ""
