"""What the tools take from the host, and what they give back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import validators as v

MAX_SQL = 20_000
MAX_PARAMETERS = 100
MAX_ROWS = 10_000
MAX_NAME = 128


@attrs.frozen(kw_only=True)
class Options:
    """The options of the pack."""

    files: Mapping[str, Path] = attrs.field(factory=dict)
    max_rows: int = attrs.field(default=1_000, validator=[v.ge(1), v.le(MAX_ROWS)])
    max_bytes: int = attrs.field(default=200_000, validator=[v.ge(1_000), v.le(1_000_000)])
    max_value_bytes: int = attrs.field(default=1_000_000, validator=[v.ge(1_000), v.le(100_000_000)])
    max_file_megabytes: int = attrs.field(default=100, validator=[v.ge(1), v.le(100_000)])
    timeout_seconds: float = attrs.field(default=10.0, validator=[v.gt(0), v.le(300)])
    memory_megabytes: int = attrs.field(default=256, validator=[v.ge(64), v.le(65_536)])

    @files.validator
    def _check_files(self, _: Any, files: Mapping[str, Path]) -> None:
        for name in files:
            if not name.isidentifier() or len(name) > MAX_NAME:
                raise ValueError(f"{name[:40]!r} is no table name; use letters, digits and _, such as sales_2024")


@attrs.frozen(kw_only=True)
class Answer:
    """The rows of a query. `truncated` tells that there are more, or that a value was cut.

    Bytes come as {"bytes": how many, "base64": they, or null if there are many}, long texts end in a note of their
    length. Dates and times are text, and so are numbers that would lose digits otherwise.
    """

    columns: list[str]
    rows: list[list[Any]]
    row_count: int
    truncated: bool
    dialect: str


@attrs.frozen(kw_only=True)
class Column:
    """A column; `quoted` is how to write its name in SQL."""

    name: str
    quoted: str
    type: str
    nullable: bool
    primary_key: bool


@attrs.frozen(kw_only=True)
class Reference:
    """A foreign key: the column here, and the table and column it refers to."""

    column: str
    table: str
    to: str | None


@attrs.frozen(kw_only=True)
class Table:
    """A table or view; `quoted` is how to write its name in SQL. `problem` says why its columns are not known."""

    name: str
    quoted: str
    kind: str
    columns: list[Column]
    references: list[Reference]
    problem: str | None


@attrs.frozen(kw_only=True)
class Schema:
    """The tables of a database; `truncated` tells that there are more, or more columns."""

    dialect: str
    placeholder: str
    tables: list[Table]
    truncated: bool
