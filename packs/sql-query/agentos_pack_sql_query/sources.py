"""Which database: what db.url says, or the files of the options."""

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

Dialect = Literal["sqlite", "duckdb", "postgresql"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_EXPECTED = "expected sqlite:///file.db, duckdb:///file.duckdb, postgresql://user:password@host/name, or a path"
_FORMATS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".parquet": "read_parquet",
    ".json": "read_json_auto",
    ".ndjson": "read_json_auto",
    ".jsonl": "read_json_auto",
}
_GLOB = re.compile(r"[*?\[\]{}]")
_MEGABYTE = 1 << 20


@attrs.frozen(kw_only=True)
class Source:
    """A database to read. `target` is a path or a URL and may hold a password."""

    dialect: Dialect
    target: str = attrs.field(default="", repr=False)
    files: Mapping[str, tuple[str, str]] = attrs.field(factory=dict, repr=False)
    """For tables made of files: the function that reads each, and its path."""


def source_of_url(url: str) -> Source:
    """Return the database that *url* names. Messages never repeat it: it may hold a password."""
    text = url.strip()
    found = _SCHEME.fullmatch(text)
    if found is None:
        return _file(text, "duckdb" if text.endswith(".duckdb") else "sqlite")
    scheme, rest = found[1].lower(), found[2]
    if scheme in ("postgres", "postgresql"):
        return Source(dialect="postgresql", target=text)
    if scheme not in ("sqlite", "duckdb"):
        raise ValueError(f"db.url: the scheme {scheme[:20]!r} is not supported; {_EXPECTED}")
    if not rest.startswith("/") or len(rest) == 1:
        raise ValueError(f"db.url: there is no path after {scheme}://; {_EXPECTED}")
    return _file(rest[1:], "sqlite" if scheme == "sqlite" else "duckdb")


def _file(path: str, dialect: Dialect) -> Source:
    if not path or "\0" in path:
        raise ValueError(f"db.url: is no path; {_EXPECTED}")
    return Source(dialect=dialect, target=str(_regular(Path(path).expanduser(), "db.url", "its file")))


def source_of_files(files: Mapping[str, Path], max_megabytes: int) -> Source:
    """Return a database with a table for each file."""
    tables, size = {}, 0
    for name, given in files.items():
        place = f"options.files.{name}"
        path = _regular(given.expanduser(), place, f"the file {given.name!r}")
        reader = _FORMATS.get(path.suffix.lower())
        if reader is None:
            raise ValueError(f"{place}: {path.suffix or 'no suffix'!r} is not read; use {', '.join(_FORMATS)}")
        if _GLOB.search(str(path)):
            raise ValueError(f"{place}: a path with one of * ? [ ] {{ }} would match other files too; rename it")
        size += path.stat().st_size
        tables[name] = (reader, str(path))
    if size > max_megabytes * _MEGABYTE:
        raise ValueError(f"options.files: {size:,} bytes in all; at most {max_megabytes:,} MB (maxFileMegabytes)")
    return Source(dialect="duckdb", files=tables)


def _regular(path: Path, place: str, name: str) -> Path:
    """Return the path in full, if it is that of a regular file."""
    try:
        if stat.S_ISREG(path.stat().st_mode):
            return path.resolve()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no path"
        raise ValueError(f"{place}: {name} can't be read: {reason}; correct the path") from None
    raise ValueError(f"{place}: {name} is no regular file; give the path of one")
