"""What a host says about the pack in its manifest."""

from pathlib import Path
from typing import Any

import attrs
from agentos_pack_common import DEFAULT_HIDDEN, Root
from attrs import validators

from agentos_pack_archive._limits import Limits

_MEGABYTE = 1_000_000


def _between(least: int, most: int) -> list[Any]:
    return [validators.ge(least), validators.le(most)]


@attrs.frozen
class ArchiveOptions:
    """The options of the pack `archive`; in files they are written in camelCase."""

    root: Path = Path()
    """The folder that the tools work in; relative to the host's working folder, which is the default."""
    writable: bool = True
    """False: only zip_list is offered."""
    hidden: tuple[str, ...] = ()
    """Patterns of names that are hidden besides the usual secrets."""
    max_archive_bytes: int = attrs.field(default=100 * _MEGABYTE, validator=_between(1_000, 1_000 * _MEGABYTE))
    """How large an archive may be that is read or made."""
    max_bytes: int = attrs.field(default=200 * _MEGABYTE, validator=_between(1_000, 1_000 * _MEGABYTE))
    """How much may be packed or unpacked at once."""
    max_members: int = attrs.field(default=5_000, validator=_between(1, 50_000))
    """How many members an archive may have."""
    max_ratio: int = attrs.field(default=200, validator=_between(2, 2_000))
    """How many times its size something large may unpack to."""

    def open_root(self) -> Root:
        """Return the folder as paths are looked up in it."""
        return Root(self.root, writable=self.writable, hidden=(*DEFAULT_HIDDEN, *self.hidden))

    @property
    def limits(self) -> Limits:
        """Return what one call may do."""
        return Limits(self.max_archive_bytes, self.max_bytes, self.max_members, self.max_ratio)
