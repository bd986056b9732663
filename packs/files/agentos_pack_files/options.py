"""What a host says about the pack in its manifest."""

from pathlib import Path

import attrs
from agentos_pack_common import DEFAULT_HIDDEN, Root
from attrs import validators

_MEGABYTE = 1_000_000


@attrs.frozen
class FilesOptions:
    """The options of the pack `files`; in files they are written in camelCase."""

    root: Path = Path()
    """The folder that the tools work in; relative to the host's working folder, which is the default."""
    writable: bool = True
    """False: the tools that change something are not offered."""
    hidden: tuple[str, ...] = ()
    """Patterns of names that are hidden besides the usual secrets."""
    max_file_bytes: int = attrs.field(
        default=10 * _MEGABYTE, validator=[validators.ge(1_000), validators.le(100 * _MEGABYTE)]
    )
    """How much of one file is read, searched or written."""

    regex_seconds: float = attrs.field(default=5.0, validator=[validators.gt(0), validators.le(60)])
    """How long a regular expression may take over a few megabytes before its process is ended."""

    def open_root(self) -> Root:
        """Return the folder as paths are looked up in it."""
        return Root(self.root, writable=self.writable, hidden=(*DEFAULT_HIDDEN, *self.hidden))
