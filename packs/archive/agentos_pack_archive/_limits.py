"""How much an archive may be, and the error that says when it is more."""

import attrs

TOO_DENSE = "it unpacks to many times its size: that is taken for a bomb"
RATIO_FROM = 10_000_000
"""From how many unpacked bytes on the ratio counts: small files of zeros are harmless."""


class ArchiveError(ValueError):
    """An archive that can't be used, or not safely; the message says why and what to do."""


@attrs.frozen
class Limits:
    """What one call may read, write and unpack."""

    archive_bytes: int
    bytes: int
    """Of all members together, unpacked."""
    members: int
    ratio: int
    """How many times larger than packed what is unpacked may be."""

    def check_members(self, count: int) -> None:
        """Refuse more members than are allowed."""
        if count > self.members:
            raise ArchiveError(f"it has more than {self.members:,} members, which is the limit")

    def check_places(self, count: int) -> None:
        """Refuse more files and folders than come of that many members: a name can have hundreds of folders in it."""
        if count > 2 * self.members:
            raise ArchiveError(f"it has more than {2 * self.members:,} files and folders, which is the limit")

    def check_bytes(self, unpacked: int) -> None:
        """Refuse more bytes than are allowed."""
        if unpacked > self.bytes:
            raise ArchiveError(f"it unpacks to more than {self.bytes:,} bytes, which is the limit")

    def is_bomb(self, unpacked: int, packed: int) -> bool:
        """Tell whether so much comes out of so little that nothing but a bomb does that."""
        return unpacked > RATIO_FROM and unpacked > self.ratio * max(packed, 1)
