"""What an operator says of the pack."""

from pathlib import Path
from typing import Any

import attrs
from agentos_pack_common import DEFAULT_HIDDEN, Limits, Root

_MEMORY = 2_000_000_000
_FILE = 1_000_000_000
_OPEN_FILES = 256


def _identity(_: Any, __: "attrs.Attribute[str]", value: str) -> None:
    if len(value) > 200 or not value.isprintable() or set(value) & set("<>"):  # noqa: PLR2004 - as the message says
        raise ValueError("expected at most 200 characters, on one line and without < and >")


def _folder(_: Any, __: "attrs.Attribute[Path]", value: Path) -> None:
    if not value.expanduser().is_dir():
        raise ValueError("is not a folder that exists; make it, or name another one")


@attrs.frozen(kw_only=True)
class Options:
    """The options of the pack.

    root: the folder that repositories are in; left out, the host's working folder. author_name, author_email: who
    commits. hooks: whether a repository's own hooks run on a commit. hidden: patterns of files that are withheld
    besides the usual secrets. max_seconds: for each git command. max_bytes: of one answer.
    """

    root: Path = attrs.field(default=Path(), validator=_folder)
    author_name: str = attrs.field(default="", validator=_identity)
    author_email: str = attrs.field(default="", validator=_identity)
    hooks: bool = False
    hidden: tuple[str, ...] = ()
    max_seconds: float = attrs.field(
        default=30.0, validator=attrs.validators.and_(attrs.validators.ge(1), attrs.validators.le(300))
    )
    max_bytes: int = attrs.field(
        default=200_000, validator=attrs.validators.and_(attrs.validators.ge(1_000), attrs.validators.le(1_000_000))
    )

    def open_root(self) -> Root:
        """Return the folder that no path may leave."""
        return Root(self.root.expanduser())

    def withheld(self, empty: Path) -> Root:
        """Return a folder with nothing in it, which tells of any path whether its name is hidden."""
        return Root(empty, hidden=(*DEFAULT_HIDDEN, *self.hidden))

    def limits(self, output_bytes: int) -> Limits:
        """Return the limits of one git command."""
        return Limits(
            seconds=self.max_seconds,
            cpu_seconds=int(self.max_seconds) + 1,
            memory_bytes=_MEMORY,
            file_bytes=_FILE,
            open_files=_OPEN_FILES,
            output_bytes=output_bytes,
        )
